"""Names that follow from settings alone: known before anything exists, shared by all layers and the outputs."""

from srvmod.contract.account_needs import MODEL_FILES
from srvmod.infra import versions
from srvmod.infra.aws.names import VPC, Account, Names
from srvmod.infra.settings import Settings

POOL = "p5-tp4"


def names(settings: Settings) -> Names:
    """Names and tags of the stack's AWS resources."""
    return Names(cluster=settings.cluster_name, environment=settings.stack, extra_tags=settings.tags)


def account(settings: Settings) -> Account:
    """The stack's account."""
    aws = settings.aws
    return Account(id=aws.account_id, region=aws.region, partition=aws.partition.value)


def weights_bucket(settings: Settings) -> str:
    """Name of the weights bucket; the account's id makes it unique among all buckets of AWS."""
    return names(settings).of(f"weights-{settings.aws.account_id}").lower()


def weights_files(settings: Settings) -> tuple[str, ...]:
    """Patterns of the files without which engines don't start: the model's, and those of its draft model."""
    drafting = settings.engine.speculation
    folders = ("", f"{drafting.draft_folder}/") if drafting else ("",)
    return tuple(f"{folder}{name}" for folder in folders for name in MODEL_FILES)


def log_bucket(settings: Settings) -> str:
    """Name of the bucket that takes the weights bucket's access logs."""
    return names(settings).of(f"logs-{settings.aws.account_id}").lower()


def vpc_name(settings: Settings) -> str:
    """`Name` tag of the VPC that the program makes."""
    return names(settings).of(VPC)


def api_keys_secret(settings: Settings) -> str:
    """Name of the secret in AWS Secrets Manager that holds the clients' API keys."""
    return f"{settings.cluster_name}/api-keys"


def mirrored(settings: Settings, image: str) -> str:
    """An image's reference, from the stack's mirror if it has one (`images.registry`)."""
    registry = settings.images.registry
    return f"{registry}/{image.partition('/')[2]}" if registry else image


def image(settings: Settings, pinned: versions.Image) -> str:
    """A pinned image's reference: from the mirror if there is one, by its tag where images are packed locally."""
    return pinned.tagged if settings.aws.simulated else mirrored(settings, pinned.reference)


def pull_policy(settings: Settings) -> str:
    """Simulated stacks have their images in the nodes already and no registry to ask."""
    return "Never" if settings.aws.simulated else "IfNotPresent"
