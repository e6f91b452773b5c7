"""Who may assume a role."""

from srvmod.infra.aws.documents.statements import Document, allow, document


def service(principal: str) -> Document:
    """Trust for an AWS service, e.g. `ec2.amazonaws.com`."""
    return document(allow("Assume", ["sts:AssumeRole"], principal={"Service": principal}))


def pod_identity() -> Document:
    """Trust for pods through EKS Pod Identity; which pods is said by the association."""
    return document(
        allow("Assume", ["sts:AssumeRole", "sts:TagSession"], principal={"Service": "pods.eks.amazonaws.com"})
    )
