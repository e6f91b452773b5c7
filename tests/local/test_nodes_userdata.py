"""Kubelet settings as nodeadm merges them."""

from __future__ import annotations

import pytest

from srvmod.local.nodes.config import honoured
from srvmod.local.nodes.userdata import UserDataError, kubelet_settings

NODE_CONFIG = """\
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet:
    config:
      cpuManagerPolicy: static
      topologyManagerPolicy: single-numa-node
      topologyManagerScope: pod
      maxPods: 20
      kubeReserved: {cpu: "1", memory: 1Gi}
"""


def test_karpenters_own_fields_win_and_the_others_survive() -> None:
    settings = kubelet_settings({"userData": NODE_CONFIG, "kubelet": {"maxPods": 60, "kubeReserved": {"cpu": "2"}}})
    assert settings["topologyManagerPolicy"] == "single-numa-node"
    assert settings["maxPods"] == 60
    assert settings["kubeReserved"] == {"cpu": "2", "memory": "1Gi"}


def test_mime_parts_are_read() -> None:
    indented = NODE_CONFIG
    mime = (
        'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="B"\n\n'
        f"--B\nContent-Type: application/node.eks.aws\n\n{indented}\n"
        "--B\nContent-Type: text/x-shellscript\n\n#!/bin/sh\necho hello\n--B--\n"
    )
    assert kubelet_settings({"userData": mime})["topologyManagerScope"] == "pod"


@pytest.mark.parametrize("user_data", [None, "", "  \n", "#!/bin/bash\necho hello\n"])
def test_without_node_config_there_is_nothing(user_data: str | None) -> None:
    assert kubelet_settings({"userData": user_data}) == {}


@pytest.mark.parametrize(
    ("user_data", "said"),
    [
        ("[a: b", "isn't YAML"),
        ("kind: Pod", "kind NodeConfig"),
        ("just text", "kind NodeConfig"),
        ("apiVersion: v1\nkind: NodeConfig", "node.eks.aws/v1alpha1"),
    ],
)
def test_what_nodeadm_would_refuse_is_refused(user_data: str, said: str) -> None:
    with pytest.raises(UserDataError, match=said):
        kubelet_settings({"userData": user_data})


def test_what_cant_work_here_is_left_out_and_named() -> None:
    used, left_out = honoured(kubelet_settings({"userData": NODE_CONFIG}))
    assert "cpuManagerPolicy" not in used
    assert left_out == ("cpuManagerPolicy",)
    assert used["topologyManagerPolicy"] == "single-numa-node"
