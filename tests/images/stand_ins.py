"""An object store and an API server in memory, with the faults that tests ask for."""

import hashlib
import json
import threading
from collections.abc import Callable
from typing import Any

from weight_cache.errors import ChangedObjectError, MissingObjectError, NetworkError
from weight_cache.kube import Answer
from weight_cache.store import ObjectInfo, Writer


class MemoryStore:
    """A bucket. `before_range` may raise or change things; ranges are handed out in blocks of `block` bytes."""

    def __init__(self, block: int = 1000) -> None:
        self.objects: dict[str, bytes] = {}
        self.block = block
        self.fetched: list[tuple[str, int]] = []
        self.before_range: Callable[[str, int], None] = lambda key, start: None
        self.cut_after: int | None = None
        """Bytes after which the next range breaks off."""
        self._lock = threading.Lock()

    def publish(self, prefix: str, revision: str, files: dict[str, bytes]) -> dict[str, Any]:
        value = {
            "schema": 1,
            "revision": revision,
            "files": [
                {"path": path, "sizeBytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
                for path, data in sorted(files.items())
            ],
        }
        for path, data in files.items():
            self.objects[f"{prefix}/{revision}/{path}"] = data
        self.objects[f"{prefix}/{revision}/manifest.json"] = json.dumps(value).encode()
        return value

    def address(self, key: str) -> str:
        return f"memory://{key}"

    def read(self, key: str, limit: int) -> bytes:
        if key not in self.objects:
            raise MissingObjectError(f"{key}: no such object")
        return self.objects[key]

    def info(self, key: str) -> ObjectInfo:
        data = self.read(key, 0)
        return ObjectInfo(len(data), hashlib.md5(data).hexdigest())

    def read_range(self, key: str, etag: str, start: int, length: int, write: Writer) -> None:
        with self._lock:
            self.fetched.append((key, start))
        self.before_range(key, start)
        if self.info(key).etag != etag:
            raise ChangedObjectError(f"{key}: changed")
        data = self.objects[key][start : start + length]
        for offset in range(0, len(data), self.block):
            if self.cut_after is not None and offset >= self.cut_after:
                raise NetworkError(f"{key}: broke off")
            write(data[offset : offset + self.block])


class MemoryApi:
    """Nodes, with the patch semantics of the API server: a failed `test` is 422, `conflicts` answers are 409."""

    def __init__(self, taints: list[dict[str, Any]] | None) -> None:
        self.node: dict[str, Any] = {"metadata": {"name": "n1"}, "spec": {}}
        if taints is not None:
            self.node["spec"]["taints"] = taints
        self.conflicts = 0
        self.patches: list[Any] = []
        self.before_patch: Callable[[], None] = lambda: None
        self.status: int | None = None

    def call(self, method: str, path: str, body: Any = None, content_type: str | None = None) -> Answer:
        if self.status is not None:
            return Answer(self.status, {"message": "refused by the test"})
        if path != "/api/v1/nodes/n1":
            return Answer(404, {"message": f"{path} not found"})
        if method == "GET":
            return Answer(200, json.loads(json.dumps(self.node)))
        assert method == "PATCH"
        assert content_type == "application/json-patch+json"
        self.before_patch()
        if self.conflicts:
            self.conflicts -= 1
            return Answer(409, {"message": "the object has been modified"})
        self.patches.append(body)
        taints = [*self.node["spec"].get("taints", [])]
        for operation in body:
            index = int(operation["path"].rsplit("/", 1)[1])
            if operation["op"] == "test" and (index >= len(taints) or taints[index] != operation["value"]):
                return Answer(422, {"message": "test failed"})
            if operation["op"] == "remove":
                del taints[index]
        self.node["spec"]["taints"] = taints
        return Answer(200, self.node)
