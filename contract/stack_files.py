"""Where environments are written: one stack file of Pulumi's for each, `Pulumi.<name>.yaml`."""

from pathlib import Path


def environments(root: Path) -> list[str]:
    """Names of the stacks that have a `Pulumi.<name>.yaml` in `root`, sorted."""
    return sorted(path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in root.glob("Pulumi.*.yaml"))


def unknown_environment(name: str, root: Path) -> str | None:
    """What to say about `--env NAME` when `root` has no such stack file; None when it has."""
    known = environments(root)
    if name in known:
        return None
    return f"--env {name}: no such environment; allowed: {', '.join(known) or f'none, {root} has no Pulumi.NAME.yaml'}"
