"""Routes of the simulated server."""

import hashlib
import secrets
import time
import uuid
from collections.abc import Callable
from typing import Final

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest

from srvmod_engine import SIMULATION, VLLM_VERSION, tokens
from srvmod_engine.api import requests
from srvmod_engine.api.answers import StreamAnswer, StreamChoice, Style, WholeAnswer, WholeChoice
from srvmod_engine.api.bodies import json_body, model_card, parse, prompts_of
from srvmod_engine.api.errors import (
    ApiError,
    http_error,
    model_not_found,
    not_simulated,
    shutting_down,
)
from srvmod_engine.api.frames import Frames
from srvmod_engine.config import EngineConfig
from srvmod_engine.engine import Engine, QueueFullError, State
from srvmod_engine.http.messages import Exchange, Request, Response
from srvmod_engine.sequence import Group, Sequence

_GUARDED: Final = ("/v1", "/v2", "/inference", "/cohere")
"""Only these need the API key, as in vLLM: /metrics, /health, /tokenize and /invocations don't."""
_NOT_SIMULATED: Final = frozenset(
    {
        "/detokenize",
        "/inference/v1/generate",
        "/invocations",
        "/v1/chat/completions/batch",
        "/v1/embeddings",
        "/v1/messages",
        "/v1/responses",
    }
)
"""Routes of `vllm serve` that are answered with 501 instead of a 404 that would mislead."""


class App:
    """The application: an Exchange in, an answer now or when the engine has finished."""

    def __init__(self, config: EngineConfig, engine: Engine, registry: CollectorRegistry) -> None:
        self._config = config
        self._engine = engine
        self._registry = registry
        self._keys = [hashlib.sha256(key.encode()).digest() for key in config.api_keys]
        self._created = int(time.time())
        self._routes: dict[str, tuple[str, Callable[[Exchange], None]]] = {
            "/health": ("GET", self._health),
            "/ping": ("GET", self._health),
            "/version": ("GET", self._version),
            "/load": ("GET", self._load),
            "/metrics": ("GET", self._metrics),
            "/v1/models": ("GET", self._models),
            "/tokenize": ("POST", self._tokenize),
            "/v1/chat/completions": ("POST", self._chat),
            "/v1/completions": ("POST", self._completion),
        }

    def __call__(self, exchange: Exchange) -> None:
        """Route one request; every failure becomes an answer in vLLM's shape."""
        try:
            self._dispatch(exchange)
        except ApiError as error:
            exchange.respond(error.response())
        except QueueFullError as error:
            full = ApiError(str(error), status=503, kind="Service Unavailable")
            exchange.respond(full.response())

    def handler_label(self, path: str) -> str:
        """The `handler` label of the HTTP metrics: known routes only, so that clients can't make new series."""
        return path if path in self._routes else "none"

    def _dispatch(self, exchange: Exchange) -> None:
        request = exchange.request
        if self._keys and request.path.startswith(_GUARDED) and not self._authorised(request):
            exchange.respond(Response.json({"error": "Unauthorized"}, 401))
            return
        route = self._routes.get(request.path)
        if route is None:
            if request.path in _NOT_SIMULATED:
                raise not_simulated(request.path, "path")
            raise http_error(404)
        method, handler = route
        if request.method != method and (request.path, request.method) != ("/ping", "POST"):
            raise http_error(405)
        handler(exchange)

    def _authorised(self, request: Request) -> bool:
        if request.method == "OPTIONS":
            return True
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return False
        digest = hashlib.sha256(given.encode()).digest()
        # Every key is compared, so that the time says nothing about which one matched.
        matches = [secrets.compare_digest(digest, key) for key in self._keys]
        return any(matches)

    # answers that need no engine step

    def _health(self, exchange: Exchange) -> None:
        if not self._engine.healthy:
            status = 503
        elif self._engine.state is State.RUNNING:
            status = 200
        else:
            status = self._config.sim.drain_health
        exchange.respond(Response(status))

    def _version(self, exchange: Exchange) -> None:
        exchange.respond(Response.json({"version": VLLM_VERSION, "simulation": True, "engine": SIMULATION}))

    def _load(self, exchange: Exchange) -> None:
        exchange.respond(Response.json({"server_load": self._engine.unfinished}))

    def _metrics(self, exchange: Exchange) -> None:
        exchange.respond(Response(200, generate_latest(self._registry), CONTENT_TYPE_PLAIN_0_0_4))

    def _models(self, exchange: Exchange) -> None:
        config = self._config
        cards = [
            model_card(name, created=self._created, root=config.model_path, max_model_len=config.max_model_len)
            for name in config.served_names
        ]
        exchange.respond(Response.json({"object": "list", "data": cards}))

    def _tokenize(self, exchange: Exchange) -> None:
        body = json_body(exchange.request)
        self._check_model(body.get("model"))
        if isinstance(body.get("prompt"), str):
            ids = tokens.encode_prompt(body["prompt"], add_bos=bool(body.get("add_special_tokens", True)))
        else:
            chat = parse(requests.ChatRequest, body)
            ids = tokens.encode_chat([(message.role, message.text()) for message in chat.messages])
        exchange.respond(
            Response.json(
                {
                    "count": len(ids),
                    "max_model_len": self._config.max_model_len,
                    "tokens": ids,
                    "token_strs": None,
                }
            )
        )

    # generation

    def _chat(self, exchange: Exchange) -> None:
        body = json_body(exchange.request)
        request = parse(requests.ChatRequest, body)
        self._check_model(request.model)
        requests.check_chat(request, self._config.bounds)
        prompt = tokens.encode_chat(
            [(message.role, message.text()) for message in request.messages],
            add_generation_prompt=request.add_generation_prompt,
        )
        if request.max_completion_tokens is not None:
            limit, param = request.max_completion_tokens, "max_completion_tokens"
        else:
            limit, param = request.max_tokens, "max_tokens"
        self._generate(exchange, request, [prompt], limit, param, chat=True)

    def _completion(self, exchange: Exchange) -> None:
        body = json_body(exchange.request)
        if body.get("max_tokens") is None:
            body["max_tokens"] = 16  # an explicit null means the default here, as in vLLM
        request = parse(requests.CompletionRequest, body)
        self._check_model(request.model)
        requests.check_completion(request, self._config.bounds)
        prompts = [
            tokens.encode_prompt(part, add_bos=request.add_special_tokens) if isinstance(part, str) else list(part)
            for part in prompts_of(request.prompt)
        ]
        requests.check_ids(request, self._config.shape.vocabulary)
        self._generate(exchange, request, prompts, request.max_tokens, "max_tokens", chat=False)

    def _generate(
        self,
        exchange: Exchange,
        request: requests.ChatRequest | requests.CompletionRequest,
        prompts: list[list[int]],
        limit: int | None,
        param: str,
        *,
        chat: bool,
    ) -> None:
        config = self._config
        choices = request.n or 1
        if choices * len(prompts) > config.bounds.sequences:
            # The original takes both at their bounds; here each sequence is an object of this process.
            raise not_simulated(f"`n` times prompts above {config.bounds.sequences:,}", "n")
        if self._engine.state is not State.RUNNING:
            raise shutting_down()
        self._engine.admit(choices * len(prompts))
        budgets = [
            requests.output_budget(config.max_model_len, len(prompt), limit, param, request.min_tokens)
            for prompt in prompts
        ]
        stops = request.stops()
        given = exchange.request.headers.get("x-request-id") or uuid.uuid4().hex
        frames = Frames(
            chat=chat,
            id=f"{'chatcmpl' if chat else 'cmpl'}-{given}",
            created=int(time.time()),
            model=config.served_names[0],
            fingerprint=config.fingerprint,
            token_ids=bool(request.return_token_ids),
            role=config.response_role,
        )
        answer = self._answer(exchange, request, frames)
        submitted: list[Sequence] = []
        now = self._engine.clock.now()
        for number, (prompt, budget) in enumerate(zip(prompts, budgets, strict=True)):
            group = Group(choices, choices)
            for choice in range(choices):
                seed = tokens.answer_seed(prompt, request.seed, choice)
                natural = tokens.natural_length(seed, config.sim.answer_tokens)
                script = tokens.Answer(
                    seed,
                    max_tokens=budget,
                    natural_length=budget + 1 if request.ignore_eos else natural,
                    stop_strings=stops,
                    min_tokens=request.min_tokens,
                    leading_space=not chat,
                    include_stop=request.include_stop_str_in_output,
                )
                sink = self._sink(answer, number * choices + choice)
                sequence = Sequence(prompt, script, sink, budget, now, group)
                sink.sequence = sequence
                submitted.append(sequence)
        exchange.on_gone(lambda: self._gone(submitted))
        for sequence in submitted:
            self._engine.submit(sequence)

    def _answer(
        self,
        exchange: Exchange,
        request: requests.ChatRequest | requests.CompletionRequest,
        frames: Frames,
    ) -> StreamAnswer | WholeAnswer:
        config = self._config
        if not request.stream:
            return WholeAnswer(exchange, frames, details=config.prompt_details)
        options = request.stream_options or requests.StreamOptions()
        include = config.force_usage or bool(options.include_usage)
        style = Style(
            interval=config.stream_interval,
            usage=include,
            running_usage=config.force_usage or (include and bool(options.continuous_usage_stats)),
            details=config.prompt_details,
        )
        return StreamAnswer(exchange, frames, style)

    @staticmethod
    def _sink(answer: StreamAnswer | WholeAnswer, index: int) -> StreamChoice | WholeChoice:
        if isinstance(answer, StreamAnswer):
            stream_choice = StreamChoice(answer, index)
            answer.add(stream_choice)
            return stream_choice
        whole_choice = WholeChoice(answer, index)
        answer.add(whole_choice)
        return whole_choice

    def _gone(self, sequences: list[Sequence]) -> None:
        for sequence in sequences:
            self._engine.cancel(sequence)

    def _check_model(self, asked: str | None) -> None:
        if asked and asked not in self._config.served_names:
            raise model_not_found(asked, self._config.served_names)
