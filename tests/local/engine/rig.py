"""Engines and servers in this process, and a small client that reads answers byte by byte."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from srvmod_engine.cli import run
from srvmod_engine.config import EngineConfig, build_config
from srvmod_engine.options import SimOptions
from srvmod_engine.serve_args import parse

QUICK = SimOptions(
    step_model="srvmod_engine.step_model:linear",
    step_ms=1.0,
    step_per_seq_us=0.0,
    step_per_prefill_token_us=0.0,
    answer_tokens=20,
)


def make_config(weights: Path, *flags: str, sim: SimOptions = QUICK, env: dict[str, str] | None = None) -> EngineConfig:
    words = [
        str(weights),
        "--served-model-name",
        "m",
        "--tensor-parallel-size=4",
        "--kv-cache-dtype=fp8",
        "--max-num-seqs=64",
        "--host=127.0.0.1",
        "--port=0",
        *flags,
    ]
    return build_config(parse(words), env or {}, sim)


@dataclass
class Reply:
    """A whole HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def events(self) -> list[Any]:
        """Server-sent events, parsed; the last one must be [DONE]."""
        blocks = self.body.decode().split("\n\n")
        assert blocks[-1] == ""
        assert blocks[-2] == "data: [DONE]"
        assert all(block.startswith("data: ") for block in blocks[:-1])
        return [json.loads(block.removeprefix("data: ")) for block in blocks[:-2]]


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> None:
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        head = {"host": "x", "content-length": str(len(data)), "content-type": "application/json", **(headers or {})}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items()), "", ""]
        self.writer.write("\r\n".join(lines).encode() + data)
        await self.writer.drain()

    async def head(self) -> tuple[int, dict[str, str]]:
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines[1:] if line)
        return int(lines[0].split()[1]), headers

    async def chunk(self) -> bytes:
        size = int((await self.reader.readline()).strip(), 16)
        data = await self.reader.readexactly(size)
        assert await self.reader.readexactly(2) == b"\r\n"
        return data

    async def reply(self) -> Reply:
        status, headers = await self.head()
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while piece := await self.chunk():
                body += piece
            return Reply(status, headers, body)
        return Reply(status, headers, await self.reader.readexactly(int(headers["content-length"])))

    def close(self) -> None:
        self.writer.close()


class Server:
    """A running server; `stop` begins its shutdown."""

    def __init__(self, config: EngineConfig, port: int, stop: asyncio.Event, task: "asyncio.Task[None]") -> None:
        self.config = config
        self.port = port
        self.stop = stop
        self.task = task

    async def client(self) -> Client:
        return Client(*await asyncio.open_connection("127.0.0.1", self.port))

    async def call(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
        client = await self.client()
        await client.send(method, path, body, headers)
        reply = await client.reply()
        client.close()
        return reply

    async def post(self, path: str, body: Any, headers: dict[str, str] | None = None) -> Reply:
        return await self.call("POST", path, body, headers)

    async def metric(self, name: str) -> float:
        """One sample by its name with labels, as it stands in the text."""
        text = (await self.call("GET", "/metrics")).body.decode()
        for line in text.splitlines():
            if line.startswith(name + " "):
                return float(line.rpartition(" ")[2])
        raise AssertionError(f"no {name} in\n{text}")


LABELS = 'engine="0",model_name="m"'


@asynccontextmanager
async def serving(config: EngineConfig) -> AsyncIterator[Server]:
    stop = asyncio.Event()
    started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(run(config, stop=stop, started=started))
    await asyncio.wait({started, task}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
    try:
        yield Server(config, started.result(), stop, task)
    finally:
        stop.set()
        await asyncio.wait_for(task, 30)


def slower(config: EngineConfig, step_ms: float) -> EngineConfig:
    return replace(config, sim=replace(config.sim, step_ms=step_ms))
