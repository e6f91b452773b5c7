"""Kubelet settings that a p5 would get from its EC2NodeClass: user data first, then what Karpenter sets itself."""

from __future__ import annotations

import email
import email.message
from collections.abc import Mapping
from typing import Any

import yaml

NODE_CONFIG_API = "node.eks.aws/v1alpha1"
NODE_CONFIG_TYPE = "application/node.eks.aws"


class UserDataError(Exception):
    """User data that nodeadm would refuse; the message says what is wrong."""


def kubelet_settings(node_class: Mapping[str, Any]) -> dict[str, Any]:
    """KubeletConfiguration fields of an EC2NodeClass's `spec`, merged as nodeadm does: Karpenter's own come last.

    Raises UserDataError.
    """
    settings: dict[str, Any] = {}
    for document in node_configs(node_class.get("userData") or ""):
        kubelet = (document.get("spec") or {}).get("kubelet") or {}
        settings = _merged(settings, kubelet.get("config") or {})
    return _merged(settings, node_class.get("kubelet") or {})


def node_configs(user_data: str) -> list[dict[str, Any]]:
    """The NodeConfig documents of user data: plain YAML, or the MIME parts of type application/node.eks.aws."""
    if not user_data.strip():
        return []
    if user_data.lstrip().startswith(("MIME-Version:", "Content-Type:")):
        message = email.message_from_string(user_data.lstrip())
        texts = [_text(part) for part in message.walk() if part.get_content_type() == NODE_CONFIG_TYPE]
    elif user_data.startswith("#!"):
        texts = []  # a shell script
    else:
        texts = [user_data]
    documents: list[dict[str, Any]] = []
    for text in texts:
        try:
            found = [document for document in yaml.safe_load_all(text) if document is not None]
        except yaml.YAMLError as error:
            raise UserDataError(f"userData isn't YAML: {error}") from error
        for document in found:
            if not isinstance(document, dict) or document.get("kind") != "NodeConfig":
                raise UserDataError(f"userData: a document of kind NodeConfig ({NODE_CONFIG_API}) is expected")
            if document.get("apiVersion") != NODE_CONFIG_API:
                raise UserDataError(
                    f"userData: apiVersion {document.get('apiVersion')!r}; allowed is {NODE_CONFIG_API}"
                )
            documents.append(document)
    return documents


def _text(part: email.message.Message) -> str:
    content = part.get_payload(decode=True)
    return content.decode() if isinstance(content, bytes) else ""


def _merged(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """Nested mappings are merged key by key, everything else is replaced."""
    result = dict(lower)
    for key, value in upper.items():
        below = result.get(key)
        result[key] = _merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result
