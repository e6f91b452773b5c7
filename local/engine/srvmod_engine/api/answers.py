"""Sinks: they turn the engine's tokens into an open stream of events or into one complete answer."""

from dataclasses import dataclass, field

from srvmod_engine import tokens
from srvmod_engine.api.frames import DONE, Frames, usage
from srvmod_engine.http.messages import Exchange, Response, Stream, chunk
from srvmod_engine.sequence import Sequence, Writer, nowhere


@dataclass(frozen=True)
class Style:
    """How a streaming answer is cut."""

    interval: int
    """Tokens per event after the first (--stream-interval)."""
    usage: bool
    """Whether a last event carries the token counts."""
    running_usage: bool
    """Whether every event does."""
    details: bool
    """Whether the counts say how many prompt tokens were cached."""


class StreamAnswer:
    """All choices of one streaming request."""

    def __init__(self, exchange: Exchange, frames: Frames, style: Style) -> None:
        self._exchange = exchange
        self.frames = frames
        self.style = style
        self.choices: list[StreamChoice] = []
        self._stream: Stream | None = None
        self._open = 0
        exchange.on_ready(self._ready)

    def add(self, choice: "StreamChoice") -> None:
        """Register a choice before the engine gets its sequence."""
        self.choices.append(choice)
        self._open += 1

    @property
    def stream(self) -> Stream:
        """The HTTP answer; its head goes out with the first token, so that earlier failures keep their status."""
        if self._stream is None:
            self._stream = self._exchange.stream("text/event-stream; charset=utf-8")
            if self.frames.chat:
                self._stream.send(b"".join(choice.opening() for choice in self.choices))
        return self._stream

    def finished(self) -> None:
        """One choice has ended; after the last one come usage and [DONE]."""
        self._open -= 1
        if self._open:
            return
        if self.style.usage:
            prompts = {id(choice.sequence.prompt): choice.sequence for choice in self.choices}.values()
            prompt = sum(len(seq.prompt) for seq in prompts)
            cached = self.choices[0].sequence.cached_prompt if self.style.details else None
            completion = sum(choice.sequence.generated for choice in self.choices)
            self.stream.send(self.frames.usage_event(usage(prompt, completion, cached)))
        self.stream.send(DONE)
        self.stream.end()
        _let_go(self.choices)

    def _ready(self) -> None:
        for choice in self.choices:
            choice.flush()


class StreamChoice:
    """One choice of a streaming request; the Sink of its sequence."""

    __slots__ = (
        "_after",
        "_answer",
        "_before",
        "_first",
        "_head",
        "_ids",
        "_pending",
        "_plain",
        "_tail",
        "index",
        "sequence",
    )

    def __init__(self, answer: StreamAnswer, index: int) -> None:
        self._answer = answer
        self.index = index
        self.sequence: Sequence  # set by the caller before the sequence is submitted
        self._pending: list[str] = []
        self._ids: list[int] = []
        self._first = True
        frames = answer.frames
        style = answer.style
        # Events that carry neither ids nor counts, one per token, are constant around their text.
        self._plain = not frames.token_ids and not style.running_usage and style.interval == 1
        self._before, self._after = before, after = frames.plain_template(index)
        word = b"\n" * tokens.WORD_BYTES
        framed = chunk(before + word + after)
        self._head, self._tail = framed[: framed.index(word)], after + b"\r\n"

    def opening(self) -> bytes:
        """Chat's first event."""
        frames, sequence = self._answer.frames, self.sequence
        if not frames.token_ids and not self._answer.style.running_usage:
            return frames.plain_opening(self.index)
        running = usage(len(sequence.prompt), 0) if self._answer.style.running_usage else None
        return frames.opening(self.index, sequence.prompt, running)

    def events(self, start: int, end: int) -> list[bytes]:
        # Answers are plain ASCII words of one length, so the text needs no escaping and the chunks are of one length.
        script = self.sequence.answer
        if not self._plain or self._pending or self._answer.stream.blocked:
            return []
        head, tail = self._head, self._tail
        return [head + word + tail for word in script.encoded(start, min(end, script.uncut))]

    def writer(self) -> Writer:
        return self._answer.stream.write

    def token(self, token: int, text: str, finish_reason: str | None) -> None:
        answer = self._answer
        if finish_reason is None and self._plain and not self._pending and not answer.stream.blocked:
            self._first = False
            answer.stream.send(self._before + text.encode() + self._after)
            return
        self._pending.append(text)
        self._ids.append(token)
        if finish_reason is None and (answer.stream.blocked or self._hold(answer.style.interval)):
            return
        self._send(finish_reason)

    def _hold(self, interval: int) -> bool:
        # The first token always goes out at once, as in vLLM.
        return not self._first and len(self._pending) < interval

    def flush(self) -> None:
        """Send what was held back while the client didn't read."""
        if self._pending:
            self._send(None)

    def aborted(self) -> None:
        self._send("abort")

    def _send(self, finish_reason: str | None) -> None:
        answer = self._answer
        sequence = self.sequence
        stop_reason = sequence.answer.stop.reason if finish_reason == "stop" else None
        running = usage(len(sequence.prompt), sequence.generated) if answer.style.running_usage else None
        answer.stream.send(
            answer.frames.tokens(
                self.index,
                "".join(self._pending),
                self._ids,
                finish_reason=finish_reason,
                stop_reason=stop_reason,
                prompt=sequence.prompt if self._first else None,
                with_usage=running,
                stamp=finish_reason is not None and not answer.style.usage,
            )
        )
        self._first = False
        self._pending = []
        self._ids = []
        if finish_reason is not None:
            answer.finished()


def _let_go(choices: "list[StreamChoice] | list[WholeChoice]") -> None:
    """An answer, its choices and their sequences know each other: no cycles, since the collector seldom runs."""
    for choice in choices:
        del choice.sequence
    choices.clear()


@dataclass(slots=True)
class _Collected:
    texts: list[str] = field(default_factory=list)
    finish_reason: str = ""


class WholeAnswer:
    """All choices of a request that doesn't stream."""

    def __init__(self, exchange: Exchange, frames: Frames, *, details: bool) -> None:
        self._exchange = exchange
        self._frames = frames
        self._details = details
        self.choices: list[WholeChoice] = []
        self._open = 0

    def add(self, choice: "WholeChoice") -> None:
        """Register a choice before the engine gets its sequence."""
        self.choices.append(choice)
        self._open += 1

    def finished(self) -> None:
        """One choice has ended; the last one sends the answer."""
        self._open -= 1
        if self._open:
            return
        first = self.choices[0].sequence
        prompts = {id(choice.sequence.prompt): len(choice.sequence.prompt) for choice in self.choices}
        counts = usage(
            sum(prompts.values()),
            sum(choice.sequence.generated for choice in self.choices),
            first.cached_prompt if self._details else None,
        )
        choices = [
            self._frames.choice(
                choice.index,
                "".join(choice.collected.texts),
                choice.sequence.output(),
                finish_reason=choice.collected.finish_reason,
                stop_reason=(choice.sequence.answer.stop.reason if choice.collected.finish_reason == "stop" else None),
                prompt=choice.sequence.prompt,
            )
            for choice in self.choices
        ]
        self._exchange.respond(Response.json(self._frames.complete(choices, counts, first.prompt)))
        _let_go(self.choices)


class WholeChoice:
    """One choice of a request that doesn't stream; the Sink of its sequence."""

    __slots__ = ("_answer", "collected", "index", "sequence")

    def __init__(self, answer: WholeAnswer, index: int) -> None:
        self._answer = answer
        self.index = index
        self.sequence: Sequence  # set by the caller before the sequence is submitted
        self.collected = _Collected()

    def events(self, start: int, end: int) -> list[bytes]:
        return []

    def writer(self) -> Writer:
        return nowhere

    def token(self, token: int, text: str, finish_reason: str | None) -> None:
        self.collected.texts.append(text)
        if finish_reason is not None:
            self.collected.finish_reason = finish_reason
            self._answer.finished()

    def aborted(self) -> None:
        self.collected.finish_reason = "abort"
        self._answer.finished()
