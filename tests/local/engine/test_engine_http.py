"""The server over real sockets: vLLM's answers, errors, streams, keys and shutdown."""

import asyncio
import json
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from srvmod_engine import SIMULATION
from srvmod_engine.options import SimOptions

from .rig import LABELS, Client, Server, make_config, serving, slower

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hello there"}], "max_tokens": 5}
TEXT = {"model": "m", "prompt": "hello there", "max_tokens": 5}


def _ask(weights: Path, path: str, body: Any, *flags: str, headers: dict[str, str] | None = None) -> Any:
    async def ask() -> Any:
        async with serving(make_config(weights, *flags)) as server:
            return await server.post(path, body, headers)

    return asyncio.run(ask())


def test_plain_routes_say_that_it_is_a_simulation(weights: Path) -> None:
    async def ask() -> None:
        async with serving(make_config(weights)) as server:
            for path in ("/health", "/ping"):
                reply = await server.call("GET", path)
                assert (reply.status, reply.body) == (200, b"")
                assert reply.headers["x-srvmod-simulation"] == SIMULATION
            version = (await server.call("GET", "/version")).json()
            assert version == {"version": "0.33.0", "simulation": True, "engine": SIMULATION}
            models = (await server.call("GET", "/v1/models")).json()
            assert [card["id"] for card in models["data"]] == ["m"]
            assert models["data"][0]["max_model_len"] == 8192
            assert (await server.call("GET", "/load")).json() == {"server_load": 0}
            tokenized = (await server.post("/tokenize", {"prompt": "hello there"})).json()
            assert tokenized["count"] == len(tokenized["tokens"]) == 3

    asyncio.run(ask())


def test_a_whole_chat_answer(weights: Path) -> None:
    reply = _ask(weights, "/v1/chat/completions", CHAT, headers={"x-request-id": "abc"})
    value = reply.json()
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"
    assert value["id"] == "chatcmpl-abc"
    assert value["object"] == "chat.completion"
    choice = value["choices"][0]
    assert choice["finish_reason"] == "length"
    assert choice["message"]["role"] == "assistant"
    assert len(choice["message"]["content"].split()) == 5
    assert value["usage"]["completion_tokens"] == 5
    assert value["usage"]["total_tokens"] == value["usage"]["prompt_tokens"] + 5
    assert value["system_fingerprint"].startswith("simulated-vllm-0.33.0-tp4-")


def test_a_chat_stream_has_vllms_events(weights: Path) -> None:
    reply = _ask(weights, "/v1/chat/completions", {**CHAT, "stream": True, "stream_options": {"include_usage": True}})
    events = reply.events()
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert list(events[0]) == ["id", "object", "created", "model", "choices", "prompt_token_ids", "prompt_text"]
    assert events[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert [list(event["choices"][0]["delta"]) for event in events[1:-1]] == [["content"]] * 5
    assert [event["choices"][0]["finish_reason"] for event in events[1:-1]] == [None] * 4 + ["length"]
    assert list(events[1]["choices"][0]) == ["index", "delta", "logprobs", "finish_reason", "token_ids"]
    assert list(events[5]["choices"][0]) == [
        "index",
        "delta",
        "logprobs",
        "finish_reason",
        "stop_reason",
        "token_ids",
        "weight_versions",
    ]
    assert events[-1]["choices"] == []
    assert events[-1]["usage"]["completion_tokens"] == 5
    assert "system_fingerprint" in events[-1]
    assert all("usage" not in event for event in events[:-1])
    assert len({event["id"] for event in events}) == 1


def test_streamed_and_whole_answers_are_the_same_text(weights: Path) -> None:
    async def ask() -> None:
        async with serving(make_config(weights)) as server:
            whole = (await server.post("/v1/chat/completions", CHAT)).json()
            stream = (await server.post("/v1/chat/completions", {**CHAT, "stream": True})).events()
            text = "".join(event["choices"][0]["delta"]["content"] for event in stream)
            assert text == whole["choices"][0]["message"]["content"]
            assert "system_fingerprint" in stream[-1]
            plain = (await server.post("/v1/completions", TEXT)).json()
            pieces = (await server.post("/v1/completions", {**TEXT, "stream": True})).events()
            assert "".join(event["choices"][0]["text"] for event in pieces) == plain["choices"][0]["text"]
            assert plain["choices"][0]["text"].startswith(" ")

    asyncio.run(ask())


def test_answers_end_by_themselves_and_ignore_eos_runs_on(weights: Path) -> None:
    async def ask() -> None:
        async with serving(make_config(weights)) as server:
            body = {**CHAT, "max_tokens": 200}
            natural = (await server.post("/v1/chat/completions", body)).json()
            assert natural["choices"][0]["finish_reason"] == "stop"
            assert 10 <= natural["usage"]["completion_tokens"] <= 30
            forced = (await server.post("/v1/chat/completions", {**body, "ignore_eos": True})).json()
            assert forced["choices"][0]["finish_reason"] == "length"
            assert forced["usage"]["completion_tokens"] == 200

    asyncio.run(ask())


def test_several_choices_prompts_and_running_usage(weights: Path) -> None:
    async def ask() -> None:
        async with serving(make_config(weights)) as server:
            value = (await server.post("/v1/chat/completions", {**CHAT, "n": 3})).json()
            assert [choice["index"] for choice in value["choices"]] == [0, 1, 2]
            assert len({choice["message"]["content"] for choice in value["choices"]}) == 3
            assert value["usage"]["completion_tokens"] == 15
            two = (await server.post("/v1/completions", {**TEXT, "prompt": ["a", "b"], "n": 2})).json()
            assert [choice["index"] for choice in two["choices"]] == [0, 1, 2, 3]
            options = {"include_usage": True, "continuous_usage_stats": True}
            body = {**TEXT, "stream": True, "stream_options": options, "n": 2, "return_token_ids": True}
            events = (await server.post("/v1/completions", body)).events()
            assert [event["usage"]["completion_tokens"] for event in events[0:10:2]] == [1, 2, 3, 4, 5]
            assert events[-1]["usage"] == {"prompt_tokens": 3, "total_tokens": 13, "completion_tokens": 10}
            assert all(len(event["choices"][0]["token_ids"]) == 1 for event in events[:-1])
            assert len(events[0]["choices"][0]["prompt_token_ids"]) == 3
            ids = {**TEXT, "prompt": [1, 2, 3, 4]}
            assert (await server.post("/v1/completions", ids)).json()["usage"]["prompt_tokens"] == 4

    asyncio.run(ask())


def test_stop_strings_and_stream_interval(weights: Path) -> None:
    async def ask() -> None:
        async with serving(make_config(weights, "--stream-interval", "4")) as server:
            body = {**CHAT, "max_tokens": 12, "ignore_eos": True}
            text = (await server.post("/v1/chat/completions", body)).json()["choices"][0]["message"]["content"]
            third = text.split()[2]
            value = (await server.post("/v1/chat/completions", {**body, "stop": third})).json()["choices"][0]
            assert (value["finish_reason"], value["stop_reason"]) == ("stop", third)
            assert value["message"]["content"] == text[: text.index(third)]
            events = (await server.post("/v1/chat/completions", {**body, "stream": True})).events()
            words = [len(event["choices"][0]["delta"]["content"].split()) for event in events[1:]]
            assert words == [1, 4, 4, 3]

    asyncio.run(ask())


@pytest.mark.parametrize(
    ("path", "body", "status", "kind", "words"),
    [
        ("/v1/chat/completions", {**CHAT, "model": "x"}, 404, "NotFoundError", "The model `x` does not exist."),
        ("/v1/chat/completions", {"model": "m"}, 400, "Bad Request", "'loc': 'body.messages'"),
        ("/v1/chat/completions", {**CHAT, "messages": []}, 400, "BadRequestError", "list index"),
        ("/v1/chat/completions", {**CHAT, "max_tokens": 0}, 400, "BadRequestError", "max_tokens must be at least 1"),
        ("/v1/chat/completions", {**CHAT, "max_tokens": -3}, 400, "BadRequestError", "at least 1, got -3"),
        ("/v1/chat/completions", {**CHAT, "max_tokens": 9000}, 400, "BadRequestError", "max_tokens=9000 cannot be"),
        (
            "/v1/chat/completions",
            {**CHAT, "max_completion_tokens": 9000},
            400,
            "BadRequestError",
            "max_completion_tokens=9000",
        ),
        ("/v1/chat/completions", {**CHAT, "max_tokens": "many"}, 400, "Bad Request", "body.max_tokens"),
        (
            "/v1/completions",
            {**TEXT, "prompt": "a b " * 5000},
            400,
            "BadRequestError",
            "maximum context length is 8192",
        ),
        ("/v1/completions", {**TEXT, "prompt": ""}, 400, "BadRequestError", "Either prompt or prompt_embeds"),
        ("/v1/completions", {**TEXT, "prompt": [1, 128256]}, 400, "BadRequestError", "128256 is out of vocabulary"),
        ("/v1/completions", {**TEXT, "prompt": [[1], [2**70]]}, 400, "BadRequestError", "is out of vocabulary"),
        ("/v1/completions", {**TEXT, "temperature": 3}, 400, "BadRequestError", "temperature must be in [0, 2]"),
        ("/v1/completions", {**TEXT, "top_p": 0}, 400, "BadRequestError", "top_p must be in (0, 1]"),
        ("/v1/completions", {**TEXT, "n": 0}, 400, "BadRequestError", "n must be at least 1"),
        (
            "/v1/completions",
            {**TEXT, "n": 10**9},
            400,
            "BadRequestError",
            "n must be at most 16384, got 1000000000. To increase this limit, set the VLLM_MAX_N_SEQUENCES environment "
            "variable.",
        ),
        ("/v1/chat/completions", {**CHAT, "n": 16_385}, 400, "BadRequestError", "n must be at most 16384, got 16385."),
        (
            "/v1/completions",
            {**TEXT, "prompt": ["a"] * 1_025},
            400,
            "BadRequestError",
            "prompt list length 1025 exceeds the maximum allowed count of 1024.",
        ),
        (
            "/v1/completions",
            {**TEXT, "prompt": ["a"] * 9, "n": 16_384},
            501,
            "NotImplementedError",
            "`n` times prompts",
        ),
        ("/v1/completions", {**TEXT, "min_tokens": 6}, 400, "BadRequestError", "max_tokens=5, got 6"),
        ("/v1/completions", {**TEXT, "stop": [""]}, 400, "BadRequestError", "empty string"),
        ("/v1/completions", {**TEXT, "stream_options": {}}, 400, "BadRequestError", "`stream=True`"),
        ("/v1/completions", {**TEXT, "logprobs": 1}, 501, "NotImplementedError", "`logprobs`"),
        ("/v1/completions", {**TEXT, "echo": True}, 501, "NotImplementedError", "`echo`"),
        ("/v1/chat/completions", {**CHAT, "response_format": {"type": "json_object"}}, 501, "NotImplementedError", ""),
        ("/v1/chat/completions", {**CHAT, "tools": []}, 400, "BadRequestError", "must not be an empty array"),
        ("/v1/chat/completions", {**CHAT, "tools": [{"type": "function"}]}, 400, "BadRequestError", '"auto"'),
        ("/v1/chat/completions", {**CHAT, "tool_choice": "required"}, 400, "BadRequestError", "`tools` must be set"),
        (
            "/v1/chat/completions",
            {**CHAT, "messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            400,
            "BadRequestError",
            "At most 0 image(s)",
        ),
        ("/v1/completions", b"{", 400, "Bad Request", "json_invalid"),
        ("/v1/completions", b"[1]", 400, "Bad Request", "valid dictionary"),
        ("/v1/responses", {}, 501, "NotImplementedError", "/v1/responses"),
        ("/v1/nothing", {}, 404, "Not Found", "Not Found"),
        ("/v1/models", {}, 405, "Method Not Allowed", "Method Not Allowed"),
    ],
)
def test_errors_have_vllms_shape(  # noqa: PLR0917 - pytest gives them by name
    weights: Path, path: str, body: Any, status: int, kind: str, words: str
) -> None:
    reply = _ask(weights, path, body)
    error = reply.json()["error"]
    assert (reply.status, error["code"], error["type"]) == (status, status, kind)
    assert words in error["message"]
    assert set(error) == {"message", "type", "param", "code"}


def test_a_body_that_is_not_json_by_type_is_refused(weights: Path) -> None:
    reply = _ask(weights, "/v1/completions", TEXT, headers={"content-type": "text/plain"})
    assert reply.status == 400
    assert "Unsupported Media Type" in reply.json()["error"]["message"]


def test_the_key_guards_v1_only(weights: Path) -> None:
    async def ask() -> None:
        async with serving(make_config(weights, "--api-key", "one", "two")) as server:
            for headers in ({}, {"authorization": "Bearer no"}, {"authorization": "Basic one"}):
                reply = await server.post("/v1/completions", TEXT, headers)
                assert (reply.status, reply.json()) == (401, {"error": "Unauthorized"})
            for key in ("one", "two"):
                assert (await server.post("/v1/completions", TEXT, {"authorization": f"Bearer {key}"})).status == 200
            for path in ("/health", "/metrics", "/version"):
                assert (await server.call("GET", path)).status == 200

    asyncio.run(ask())


def test_a_connection_is_kept_and_pipelined_requests_wait_for_their_turn(weights: Path) -> None:
    async def ask() -> None:
        async with serving(make_config(weights)) as server:
            client = await server.client()
            for _ in range(2):
                await client.send("POST", "/v1/completions", {**TEXT, "stream": True})
                assert len((await client.reply()).events()) == 5
            for length in (4, 1, 2):
                await client.send("POST", "/v1/completions", {**TEXT, "max_tokens": length})
            lengths = [(await client.reply()).json()["usage"]["completion_tokens"] for _ in range(3)]
            assert lengths == [4, 1, 2]
            await client.send("GET", "/health", headers={"connection": "close"})
            assert (await client.reply()).headers["connection"] == "close"
            assert await client.reader.read() == b""

    asyncio.run(ask())


def test_an_idle_connection_is_closed_after_vllms_keep_alive_time(weights: Path) -> None:
    async def ask() -> None:
        config = make_config(weights, env={"VLLM_HTTP_TIMEOUT_KEEP_ALIVE": "0.1"})
        async with serving(config) as server:
            client = await server.client()
            await client.send("GET", "/health")
            await client.reply()
            assert await asyncio.wait_for(client.reader.read(), 20) == b""

    asyncio.run(ask())


@pytest.mark.parametrize("junk", [b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\ncontent-length: x\r\n\r\n", b"\x16\x03\x01"])
def test_what_is_not_http_is_hung_up_on(weights: Path, junk: bytes) -> None:
    async def ask() -> None:
        async with serving(make_config(weights)) as server:
            client = await server.client()
            client.writer.write(junk)
            assert (await asyncio.wait_for(client.reader.read(), 20)).startswith(b"HTTP/1.1 400")

    asyncio.run(ask())


async def _until(server: Server, name: str, value: float) -> None:
    end = time.monotonic() + 30
    while await server.metric(name) != value:
        assert time.monotonic() < end, f"{name} didn't become {value}"
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_goes_away_frees_its_sequence(weights: Path, stream: bool) -> None:
    async def ask() -> None:
        async with serving(slower(make_config(weights), 5)) as server:
            client = await server.client()
            await client.send(
                "POST", "/v1/completions", {**TEXT, "max_tokens": 5000, "ignore_eos": True, "stream": stream}
            )
            await _until(server, f"vllm:num_requests_running{{{LABELS}}}", 1)
            client.writer.transport.abort()
            await _until(server, f"vllm:num_requests_running{{{LABELS}}}", 0)
            assert await server.metric(f"vllm:kv_cache_usage_perc{{{LABELS}}}") == 0
            reason = 'engine="0",finished_reason="abort",model_name="m"'
            assert await server.metric(f"vllm:request_success_total{{{reason}}}") == 1

    asyncio.run(ask())


def test_a_short_request_overtakes_a_long_one_and_not_with_one_slot(weights: Path) -> None:
    async def race(*flags: str) -> list[str]:
        order: list[str] = []

        async def ask(server: Server, name: str, length: int) -> None:
            await server.post("/v1/completions", {**TEXT, "max_tokens": length, "ignore_eos": True})
            order.append(name)

        async with serving(make_config(weights, *flags)) as server:
            long = asyncio.create_task(ask(server, "long", 150))
            await asyncio.sleep(0.05)
            await asyncio.gather(long, ask(server, "short", 5))
        return order

    assert asyncio.run(race()) == ["short", "long"]
    assert asyncio.run(race("--max-num-seqs", "1")) == ["long", "short"]


def test_a_slow_reader_gets_everything_merged(weights: Path) -> None:
    choices, length = 8, 3000

    async def ask() -> None:
        config = make_config(weights, env={"VLLM_HTTP_TIMEOUT_KEEP_ALIVE": "60"})
        async with serving(slower(config, 0.05)) as server:
            made = socket.socket()
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # so that the server notices soon
            made.setblocking(False)
            await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", server.port))
            client = Client(*await asyncio.open_connection(sock=made))
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            options = {"include_usage": True, "continuous_usage_stats": True}
            more = {"n": choices, "ignore_eos": True, "stream": True, "return_token_ids": True}
            await client.send(
                "POST", "/v1/completions", {**TEXT, **more, "max_tokens": length, "stream_options": options}
            )
            await _until(server, f"vllm:generation_tokens_total{{{LABELS}}}", choices * length)
            client.writer.transport.resume_reading()  # type: ignore[attr-defined]
            events = (await client.reply()).events()
            assert len(events) < choices * length, "nothing was held back"
            texts = [""] * choices
            for event in events[:-1]:
                choice = event["choices"][0]
                texts[choice["index"]] += choice["text"]
            assert [len(text.split()) for text in texts] == [length] * choices
            assert events[-1]["usage"]["completion_tokens"] == choices * length
            await client.send("POST", "/v1/completions", {**TEXT, "stream": True})
            again = (await client.reply()).events()
            assert "".join(event["choices"][0]["text"] for event in again).startswith(texts[0][:8])

    asyncio.run(ask())


def test_queue_limits_answer_503(weights: Path) -> None:
    async def ask() -> None:
        async with serving(slower(make_config(weights, "--max-num-queued-reqs", "1"), 20)) as server:
            first = asyncio.create_task(server.post("/v1/completions", TEXT))
            await _until(server, f"vllm:num_requests_running{{{LABELS}}}", 1)
            second = await server.post("/v1/completions", TEXT)
            assert second.status == 503
            assert second.json()["error"]["type"] == "Service Unavailable"
            assert (await first).status == 200
            rejected = 'model_name="m",reason="max_num_queued_reqs"'
            assert await server.metric(f"vllm:admission_rejections_total{{{rejected}}}") == 1

    asyncio.run(ask())


def test_shutdown_drains_refuses_new_work_and_keeps_answering_probes(weights: Path) -> None:
    async def ask() -> None:
        async with serving(slower(make_config(weights, "--shutdown-timeout", "10"), 10)) as server:
            running = asyncio.create_task(
                server.post("/v1/completions", {**TEXT, "max_tokens": 40, "ignore_eos": True})
            )
            await _until(server, f"vllm:num_requests_running{{{LABELS}}}", 1)
            server.stop.set()
            await asyncio.sleep(0.02)
            refused = await server.post("/v1/completions", TEXT)
            assert refused.status == 500
            assert refused.json()["error"]["type"] == "InternalServerError"
            assert (await server.call("GET", "/health")).status == 200
            assert (await server.call("GET", "/metrics")).status == 200
            finished = (await running).json()
            assert finished["choices"][0]["finish_reason"] == "length"
            assert finished["usage"]["completion_tokens"] == 40
            await asyncio.wait_for(asyncio.shield(server.task), 30)
            with pytest.raises(ConnectionRefusedError):
                await server.client()

    asyncio.run(ask())


def test_health_turns_while_draining_only_when_asked_to(weights: Path) -> None:
    async def ask() -> None:
        config = slower(make_config(weights, "--shutdown-timeout", "10"), 10)
        config = replace(config, sim=replace(config.sim, drain_health=503))
        async with serving(config) as server:
            running = asyncio.create_task(server.post("/v1/completions", {**TEXT, "max_tokens": 40}))
            await _until(server, f"vllm:num_requests_running{{{LABELS}}}", 1)
            assert (await server.call("GET", "/health")).status == 200
            server.stop.set()
            await asyncio.sleep(0.02)
            assert (await server.call("GET", "/health")).status == 503
            assert (await running).status == 200

    asyncio.run(ask())


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("--max-num-seqs=3",),
        ("--max-num-batched-tokens=64", "--num-gpu-blocks-override=600"),
        ("--num-gpu-blocks-override=24", "--max-model-len=300"),
    ],
    ids=["plain", "queued", "chunked", "preempted"],
)
def test_every_stream_is_its_own_answer_in_order_and_usage_counts_it(weights: Path, flags: tuple[str, ...]) -> None:
    async def ask() -> None:
        async with serving(make_config(weights, *flags)) as server:
            bodies: list[dict[str, Any]] = [
                {"prompt": f"story {number} " * (1 + number), "max_tokens": 7 * number + 1, "n": 1 + number % 2}
                for number in range(12)
            ]
            whole = [(await server.post("/v1/completions", body)).json() for body in bodies]
            streaming = {"stream": True, "stream_options": {"include_usage": True}}
            replies = await asyncio.gather(*(server.post("/v1/completions", {**body, **streaming}) for body in bodies))
            preempted = await server.metric(f"vllm:num_preemptions_total{{{LABELS}}}")
            assert (preempted > 0) == ("--max-model-len=300" in flags)
            for body, expected, reply in zip(bodies, whole, replies, strict=True):
                *events, last = reply.events()
                texts = [""] * body["n"]
                pieces = [0] * body["n"]
                for event in events:
                    (choice,) = event["choices"]
                    texts[choice["index"]] += choice["text"]
                    pieces[choice["index"]] += 1
                assert texts == [choice["text"] for choice in expected["choices"]]
                assert last["usage"] == {key: expected["usage"][key] for key in last["usage"]}
                assert sum(pieces) == last["usage"]["completion_tokens"]
            assert await server.metric(f"vllm:kv_cache_usage_perc{{{LABELS}}}") == 0

    asyncio.run(ask())


@pytest.mark.parametrize("flags", [(), ("--shutdown-timeout", "1")])
def test_what_does_not_end_in_time_is_aborted_with_a_proper_end(weights: Path, flags: tuple[str, ...]) -> None:
    async def ask() -> None:
        async with serving(slower(make_config(weights, *flags), 10)) as server:
            body = {**TEXT, "max_tokens": 5000, "ignore_eos": True, "stream": True}
            running = asyncio.create_task(server.post("/v1/completions", body))
            whole = asyncio.create_task(server.post("/v1/completions", {**body, "stream": False}))
            await _until(server, f"vllm:num_requests_running{{{LABELS}}}", 2)
            begun = time.monotonic()
            server.stop.set()
            assert (await running).events()[-1]["choices"][0]["finish_reason"] == "abort"
            assert (await whole).json()["choices"][0]["finish_reason"] == "abort"
            assert time.monotonic() - begun < 9

    asyncio.run(ask())


def test_pretended_start_keeps_the_port_shut(weights: Path) -> None:
    async def ask() -> float:
        begun = time.monotonic()
        async with serving(make_config(weights, sim=SimOptions(start_seconds=0.3))):
            return time.monotonic() - begun

    assert asyncio.run(ask()) >= 0.3


def test_a_conversation_hits_the_prefix_cache(weights: Path) -> None:
    async def ask() -> None:
        async with serving(make_config(weights, "--enable-prompt-tokens-details")) as server:
            question = {"role": "user", "content": "tell me a long story about gateways and engines " * 4}
            body = {"messages": [question], "max_tokens": 40, "ignore_eos": True}
            first = (await server.post("/v1/chat/completions", body)).json()
            assert first["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}
            said = {"role": "assistant", "content": first["choices"][0]["message"]["content"]}
            again = {**body, "messages": [question, said, {"role": "user", "content": "go on"}]}
            second = (await server.post("/v1/chat/completions", again)).json()
            cached = second["usage"]["prompt_tokens_details"]["cached_tokens"]
            assert cached >= first["usage"]["prompt_tokens"] + 40 - 16
            hits = await server.metric(f"vllm:prefix_cache_hits_total{{{LABELS}}}")
            assert hits == cached

    asyncio.run(ask())


def test_request_bodies_may_come_in_pieces(weights: Path) -> None:
    async def ask() -> None:
        async with serving(make_config(weights)) as server:
            client = await server.client()
            data = json.dumps(TEXT).encode()
            client.writer.write(
                b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json; charset=utf-8\r\n"
                b"transfer-encoding: chunked\r\nexpect: 100-continue\r\n\r\n"
            )
            assert (await client.head())[0] == 100
            for byte in data:
                client.writer.write(b"1\r\n" + bytes([byte]) + b"\r\n")
            client.writer.write(b"0\r\n\r\n")
            assert (await client.reply()).status == 200

    asyncio.run(ask())
