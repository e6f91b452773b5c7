"""Kubeconfigs for the local stack."""

from __future__ import annotations

from pathlib import Path

import yaml


def write_kubeconfig(file: Path, server: str, ca: Path, cert: Path, key: Path) -> Path:
    """A kubeconfig that refers to certificate files by path; returns `file`."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": {"server": server, "certificate-authority": str(ca)}}],
        "users": [{"name": "local", "user": {"client-certificate": str(cert), "client-key": str(key)}}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": "local"}}],
        "current-context": "local",
    }
    part = file.with_name(file.name + ".part")
    part.touch(mode=0o600)
    part.write_text(yaml.safe_dump(config, sort_keys=False))
    part.replace(file)
    return file
