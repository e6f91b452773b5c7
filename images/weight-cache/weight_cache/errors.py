"""What can go wrong, each with the reason that the metric's label and the log line carry."""


class CacheError(Exception):
    """An attempt failed; the taint stays and the agent tries again later. The message names the fix where known."""

    reason = "io"


class ManifestError(CacheError):
    """manifest.json isn't what it should be."""

    reason = "manifest"


class MissingObjectError(CacheError):
    """An object (or the bucket) isn't there."""

    reason = "object_missing"


class ChangedObjectError(CacheError):
    """An object changed while it was being read."""

    reason = "object_changed"


class ChecksumError(CacheError):
    """A file's size or SHA-256 isn't the manifest's."""

    reason = "checksum"


class NoSpaceError(CacheError):
    """The file system is too small or full."""

    reason = "no_space"


class AccessError(CacheError):
    """S3 refused: role, bucket policy or key policy."""

    reason = "access_denied"


class LocalPermissionError(CacheError):
    """The cache directory can't be written."""

    reason = "local_permission"


class NetworkError(CacheError):
    """S3 couldn't be reached, or broke off."""

    reason = "network"


class NodeError(CacheError):
    """The Kubernetes API refused to change the node."""

    reason = "node_api"


class PodError(CacheError):
    """The Kubernetes API refused to list or change the engines' pods."""

    reason = "pod_api"


class StoppedError(Exception):
    """The agent was asked to stop."""
