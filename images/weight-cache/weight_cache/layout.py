"""Where a revision lies on the node, and what the operating system says when it can't."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from weight_cache import manifest
from weight_cache.errors import CacheError, LocalPermissionError, NoSpaceError


@dataclass(frozen=True)
class Layout:
    """Where one revision lies."""

    root: Path
    revision: str

    @property
    def final(self) -> Path:
        """The verified revision."""
        return self.root / self.revision

    @property
    def partial(self) -> Path:
        """The revision while it fills."""
        return self.root / f"{self.revision}.partial"

    @property
    def ready(self) -> Path:
        """The mark that readers wait for."""
        return self.final / manifest.READY


@contextmanager
def translated(layout: Layout) -> Iterator[None]:
    """Turn the operating system's errors into CacheErrors with advice."""
    try:
        yield
    except OSError as error:
        where = error.filename or layout.root
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise NoSpaceError(f"{where}: no space left; is the NVMe RAID mounted at {layout.root}?") from error
        if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
            raise LocalPermissionError(
                f"{where}: {error.strerror}; the agent must own {layout.root} (it runs as root, see its Dockerfile)"
            ) from error
        raise CacheError(f"{where}: {error.strerror or error}") from error
