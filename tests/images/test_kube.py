"""Finding the API server, and talking to one over HTTP."""

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from weight_cache.errors import NodeError
from weight_cache.kube import HttpsApi, Target, from_kubeconfig, in_cluster


@pytest.fixture
def seen() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def server(seen: list[dict[str, Any]]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_PATCH(self) -> None:
            length = int(self.headers["Content-Length"])
            seen.append({"path": self.path, "headers": dict(self.headers), "body": json.loads(self.rfile.read(length))})
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"kind": "Node"}')

        def do_GET(self) -> None:
            self.send_response(503)
            self.end_headers()
            self.wfile.write(b"no json here")

        def log_message(self, format: str, *args: object) -> None:
            return

    made = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{made.server_address[1]}"
    made.shutdown()
    made.server_close()


def test_a_patch_carries_token_and_type(server: str, seen: list[dict[str, Any]], tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    api = HttpsApi(Target(server, token_file=str(token)))
    assert api.call("PATCH", "/api/v1/nodes/n", [{"op": "test"}], "application/json-patch+json").status == 200
    token.write_text("second\n")
    api.call("PATCH", "/api/v1/nodes/n", [], "application/json-patch+json")
    assert [entry["headers"]["Authorization"] for entry in seen] == ["Bearer first", "Bearer second"]
    assert seen[0]["headers"]["Content-Type"] == "application/json-patch+json"
    assert seen[0]["body"] == [{"op": "test"}]


def test_answers_without_json_keep_their_text(server: str) -> None:
    answer = HttpsApi(Target(server)).call("GET", "/x")
    assert (answer.status, answer.message) == (503, "no json here")


def test_no_server_is_a_node_error() -> None:
    with pytest.raises(NodeError, match="ConnectionRefused"):
        HttpsApi(Target("http://127.0.0.1:9")).call("GET", "/x")
    with pytest.raises(NodeError, match="expected https"):
        HttpsApi(Target("ftp://x"))


def test_in_cluster_needs_a_pod(tmp_path: Path) -> None:
    with pytest.raises(NodeError, match="not in a pod"):
        in_cluster({}, tmp_path)
    (tmp_path / "token").write_text("t")
    env = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    assert in_cluster(env, tmp_path).server == "https://[fd00::1]:443"


def _kubeconfig(folder: Path, user: dict[str, Any], cluster: dict[str, Any] | None = None) -> Path:
    path = folder / "config"
    value = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://1.2.3.4:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(value))
    return path


def test_kubeconfig_with_token_and_certificates(tmp_path: Path) -> None:
    data = base64.b64encode(b"PEM").decode()
    target = from_kubeconfig(_kubeconfig(tmp_path, {"token": "t"}, {"certificate-authority-data": data}))
    assert (target.server, target.token) == ("https://1.2.3.4:6443", "t")
    assert target.ca_file is not None
    assert Path(target.ca_file).read_bytes() == b"PEM"
    named = from_kubeconfig(_kubeconfig(tmp_path, {"client-certificate": "c.pem", "client-key-data": data}))
    assert named.certificate is not None
    assert named.certificate[0] == str(tmp_path / "c.pem")


@pytest.mark.parametrize(
    ("user", "cluster", "words"),
    [
        ({"exec": {"command": "aws"}}, {}, "exec"),
        ({"token": "t"}, {"insecure-skip-tls-verify": True}, "name the CA"),
    ],
)
def test_kubeconfigs_that_are_not_supported(
    tmp_path: Path, user: dict[str, Any], cluster: dict[str, Any], words: str
) -> None:
    with pytest.raises(NodeError, match=words):
        from_kubeconfig(_kubeconfig(tmp_path, user, cluster))


@pytest.mark.parametrize("text", ["", "{", "current-context: x", "current-context: x\ncontexts: []"])
def test_broken_kubeconfigs(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(NodeError, match="not a usable kubeconfig"):
        from_kubeconfig(path)
