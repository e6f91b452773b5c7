"""The one AWS provider that everything uses."""

import pulumi_aws as aws

from srvmod.infra.aws.names import Account


def provider(account: Account) -> aws.Provider:
    """An explicit provider: it refuses to work in any account but the stack's own."""
    return aws.Provider("aws", region=account.region, allowed_account_ids=[account.id])
