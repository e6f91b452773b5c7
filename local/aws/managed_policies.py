"""The managed policies of AWS that this simulation has, out of the 1,500 of moto.

moto makes an object of each whenever an account is made, which takes longer than all calls of a whole deployment.
Attaching another one is refused as AWS refuses one that doesn't exist.
"""

from __future__ import annotations

import json

import moto.iam.models as iam

PREFIXES = ("AmazonEKS", "AmazonEC2ContainerRegistry", "AmazonSSM", "AmazonPrometheus", "AmazonS3", "CloudWatch",
            "SecretsManager")  # fmt: skip
DATA = "aws_managed_policies_data"
"""Where moto.iam.models keeps them, as one JSON text."""
NAMES = frozenset({"AdministratorAccess", "PowerUserAccess", "ReadOnlyAccess"})


def trim() -> None:
    """Leave only these in moto. Idempotent."""
    every = json.loads(vars(iam)[DATA])
    kept = {name: policy for name, policy in every.items() if name.startswith(PREFIXES) or name in NAMES}
    if len(kept) < len(every):
        setattr(iam, DATA, json.dumps(kept))
