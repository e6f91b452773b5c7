"""Request bodies of /v1/chat/completions and /v1/completions, and vLLM's checks on them.

Unknown fields are let through, as vLLM does. Fields that would change the answer and that the simulation can't
honour are refused with 501.
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from srvmod_engine.api.errors import ApiError, not_simulated
from srvmod_engine.bounds import PROMPTS, SEQUENCES, Bounds

_INT64 = 2**63


class _Body(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)


class StreamOptions(_Body):
    """`stream_options` of a streaming request."""

    include_usage: bool | None = False
    continuous_usage_stats: bool | None = False


class _Generation(_Body):
    """What both endpoints share."""

    model: str | None = None
    n: int | None = 1
    max_tokens: int | None = None
    min_tokens: int = 0
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    seed: Annotated[int, Field(ge=-_INT64, le=_INT64 - 1)] | None = None
    stop: str | list[str] | None = None
    include_stop_str_in_output: bool = False
    ignore_eos: bool = False
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    return_token_ids: bool | None = None
    prompt_logprobs: int | None = None
    use_beam_search: bool = False
    response_format: dict[str, Any] | None = None
    structured_outputs: dict[str, Any] | None = None

    def stops(self) -> list[str]:
        """Stop strings as a list. Raises ApiError for an empty one."""
        stops = [self.stop] if isinstance(self.stop, str) else list(self.stop or [])
        if any(not stop for stop in stops):
            raise ApiError("stop cannot contain an empty string.", param="stop")
        return stops


class ContentPart(_Body):
    """One part of a message's content."""

    type: str
    text: str | None = None


class ChatMessage(_Body):
    """One message of a conversation."""

    role: str
    content: str | list[ContentPart] | None = None

    def text(self) -> str:
        """Its text. Raises ApiError for images and other media: the model is text only."""
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        for part in self.content:
            if part.type not in {"text", "input_text", "output_text"}:
                raise ApiError(f"At most 0 {part.type.removesuffix('_url')}(s) may be provided in one prompt.")
        return "\n".join(part.text or "" for part in self.content)


class ChatRequest(_Generation):
    """Body of POST /v1/chat/completions."""

    messages: list[ChatMessage]
    max_completion_tokens: int | None = None
    logprobs: bool | None = False
    top_logprobs: int | None = 0
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    echo: bool = False
    add_generation_prompt: bool = True
    continue_final_message: bool = False


class CompletionRequest(_Generation):
    """Body of POST /v1/completions."""

    prompt: (
        Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
        | list[list[Annotated[int, Field(ge=0)]]]
        | str
        | list[str]
        | None
    ) = None
    echo: bool | None = False
    logprobs: int | None = None
    suffix: str | None = None
    add_special_tokens: bool = True
    max_tokens: int | None = 16


def check_generation(request: _Generation, bounds: Bounds) -> None:
    """The checks of vLLM's SamplingParams and request validators. Raises ApiError."""
    rules: tuple[tuple[bool, str, str | None], ...] = (
        (
            request.stream_options is not None and not request.stream,
            "Stream options can only be defined when `stream=True`.",
            "stream_options",
        ),
        (request.n is not None and request.n < 1, f"n must be at least 1, got {request.n}.", None),
        (
            (request.n or 1) > bounds.sequences,
            f"n must be at most {bounds.sequences}, got {request.n}. To increase this limit, set the "
            f"{SEQUENCES} environment variable.",
            None,
        ),
        (
            (request.n or 1) > 1 and request.temperature == 0,
            f"n must be 1 when using greedy sampling, got {request.n}.",
            None,
        ),
        (
            not _within(request.temperature, 0, 2),
            f"temperature must be in [0, 2], got {request.temperature}.",
            "temperature",
        ),
        (request.top_p is not None and not 0 < request.top_p <= 1,
         f"top_p must be in (0, 1], got {request.top_p}.", "top_p"),
        (request.top_k is not None and request.top_k < -1,
         f"top_k must be 0 (disable), or at least 1, got {request.top_k}.", None),
        (not _within(request.min_p, 0, 1), f"min_p must be in [0, 1], got {request.min_p}.", None),
        (not _within(request.presence_penalty, -2, 2),
         f"presence_penalty must be in [-2, 2], got {request.presence_penalty}.", None),
        (not _within(request.frequency_penalty, -2, 2),
         f"frequency_penalty must be in [-2, 2], got {request.frequency_penalty}.", None),
        (request.min_tokens < 0,
         f"min_tokens must be greater than or equal to 0, got {request.min_tokens}.", None),
    )  # fmt: skip
    for broken, message, param in rules:
        if broken:
            raise ApiError(message, param=param)
    _refuse_common(request)


def _within(value: float | None, low: float, high: float) -> bool:
    # A NaN is in no interval, so it is refused too.
    return value is None or low <= value <= high


def _refuse_common(request: _Generation) -> None:
    kind = (request.response_format or {}).get("type", "text")
    refused: tuple[tuple[bool, str], ...] = (
        (request.use_beam_search, "use_beam_search"),
        (request.structured_outputs is not None, "structured_outputs"),
        (kind != "text", "response_format"),
        (request.prompt_logprobs is not None, "prompt_logprobs"),
    )
    for asked, name in refused:
        if asked:
            raise not_simulated(f"`{name}`", name)


def check_chat(request: ChatRequest, bounds: Bounds) -> None:
    """Checks that only chat has. Raises ApiError."""
    check_generation(request, bounds)
    if not request.messages:
        raise ApiError("list index out of range")  # vLLM's own words for an empty conversation
    if request.add_generation_prompt and request.continue_final_message:
        raise ApiError("Cannot set both `continue_final_message` and `add_generation_prompt` to True.")
    _check_tools(request)
    if request.logprobs:
        raise not_simulated("`logprobs`", "logprobs")
    if request.echo:
        raise not_simulated("`echo`", "echo")


def _check_tools(request: ChatRequest) -> None:
    """No tool parser is configured, so tools may be described but only `none` may be chosen."""
    if request.tools == []:
        raise ApiError(
            "`tools` must not be an empty array. Either provide at least one tool or omit the field entirely.",
            param="tools",
        )
    choice = request.tool_choice or ("auto" if request.tools else "none")
    if choice == "none":
        return
    if not request.tools:
        raise ApiError("When using `tool_choice`, `tools` must be set.", param="tool_choice")
    if choice == "auto":
        raise ApiError('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set')
    raise not_simulated("`tool_choice` other than `none`", "tool_choice")


def check_completion(request: CompletionRequest, bounds: Bounds) -> None:
    """Checks that only text completions have. Raises ApiError."""
    check_generation(request, bounds)
    if request.prompt is None or request.prompt in ("", []):
        raise ApiError("Either prompt or prompt_embeds must be provided and non-empty.", param="prompt")
    prompts = request.prompt if isinstance(request.prompt, list) else []
    if len(prompts) > bounds.prompts and not all(isinstance(part, int) for part in prompts):
        raise ApiError(
            f"prompt list length {len(prompts)} exceeds the maximum allowed count of {bounds.prompts}. To increase "
            f"this limit, set the {PROMPTS} environment variable.",
            param="prompt",
        )
    if request.logprobs is not None:
        raise not_simulated("`logprobs`", "logprobs")
    if request.echo:
        raise not_simulated("`echo`", "echo")
    if request.suffix is not None:
        raise not_simulated("`suffix`", "suffix")


def check_ids(request: CompletionRequest, vocabulary: int) -> None:
    """Raise ApiError for a prompt of ids with one that the model doesn't know."""
    ids = (
        number
        for part in (request.prompt if isinstance(request.prompt, list) else [])
        for number in (part if isinstance(part, list) else [part])
        if isinstance(number, int)
    )
    largest = max(ids, default=0)
    if largest >= vocabulary:
        raise ApiError(f"Token id {largest} is out of vocabulary")


def output_budget(max_model_len: int, prompt: int, asked: int | None, param: str, min_tokens: int) -> int:
    """Tokens that may be generated. Raises ApiError with vLLM's texts when the context doesn't hold it."""
    if asked is not None and asked > max_model_len:
        raise ApiError(
            f"{param}={asked} cannot be greater than max_model_len={max_model_len}. "
            "Please request fewer output tokens.",
            param=param,
        )
    if prompt > max_model_len:
        raise ApiError(
            # vLLM stops tokenizing one token above the limit, so it never knows the real number.
            f"This model's maximum context length is {max_model_len} tokens. However, your prompt contains "
            f"at least {max_model_len + 1} input tokens, which exceeds this limit even without any output tokens. "
            "Please reduce the length of the input prompt.",
            param="input_tokens",
        )
    room = max_model_len - prompt
    budget = room if asked is None else min(asked, room)
    if budget < 1:
        raise ApiError(f"max_tokens must be at least 1, got {budget}.", param="max_tokens")
    if min_tokens > budget:
        raise ApiError(f"min_tokens must be less than or equal to max_tokens={budget}, got {min_tokens}.")
    return budget
