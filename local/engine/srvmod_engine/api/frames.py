"""The JSON of answers, chunk by chunk, with vLLM's fields in vLLM's order (its models' `exclude_unset` output)."""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

DONE: Final = b"data: [DONE]\n\n"
_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def dump(value: Any) -> str:
    """JSON as pydantic writes it: no spaces, unicode kept."""
    return _encode(value)


def event(value: Any) -> bytes:
    """One server-sent event."""
    return f"data: {dump(value)}\n\n".encode()


def usage(prompt: int, completion: int, cached: int | None = None) -> dict[str, Any]:
    """Token counts; `cached` only with --enable-prompt-tokens-details."""
    counts: dict[str, Any] = {
        "prompt_tokens": prompt,
        "total_tokens": prompt + completion,
        "completion_tokens": completion,
    }
    if cached is not None:
        counts["prompt_tokens_details"] = {"cached_tokens": cached}
    return counts


@dataclass(frozen=True)
class Frames:
    """The constant part of one request's answer."""

    chat: bool
    id: str
    created: int
    model: str
    fingerprint: str | None
    token_ids: bool
    role: str = "assistant"

    def _head(self) -> dict[str, Any]:
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}

    def opening(self, index: int, prompt: list[int], with_usage: dict[str, Any] | None) -> bytes:
        """Chat's first event: the role with empty content."""
        choice = {
            "index": index,
            "delta": {"role": self.role, "content": ""},
            "logprobs": None,
            "finish_reason": None,
        }
        chunk = {**self._head(), "choices": [choice]}
        if with_usage is not None:
            chunk["usage"] = with_usage
        chunk["prompt_token_ids"] = prompt if self.token_ids else None
        chunk["prompt_text"] = None
        return event(chunk)

    def tokens(
        self,
        index: int,
        text: str,
        ids: list[int],
        *,
        finish_reason: str | None = None,
        stop_reason: str | None = None,
        prompt: list[int] | None = None,
        with_usage: dict[str, Any] | None = None,
        stamp: bool = False,
    ) -> bytes:
        """An event with new text. `stamp` adds the fingerprint (last event when no usage event follows)."""
        shown = ids if self.token_ids else None
        choice: dict[str, Any] = {"index": index}
        if self.chat:
            choice |= {"delta": {"content": text}, "logprobs": None, "finish_reason": finish_reason}
            if finish_reason is not None:
                choice["stop_reason"] = stop_reason
            choice["token_ids"] = shown
        else:
            choice |= {
                "text": text,
                "logprobs": None,
                "finish_reason": finish_reason,
                "stop_reason": stop_reason,
                "prompt_token_ids": prompt if self.token_ids else None,
                "token_ids": shown,
            }
        if finish_reason is not None or not self.chat:
            choice["weight_versions"] = None
        chunk = {**self._head(), "choices": [choice]}
        if with_usage is not None:
            chunk["usage"] = with_usage
        if stamp and self.fingerprint is not None:
            chunk["system_fingerprint"] = self.fingerprint
        chunk["kv_transfer_params"] = None
        return event(chunk)

    def plain_template(self, index: int) -> tuple[bytes, bytes]:
        """What stands before and after the text of an ordinary event: the hot path only joins bytes."""
        before, after = _ordinary(self.chat, index)
        return self._begin() + before, after

    def plain_opening(self, index: int) -> bytes:
        """Chat's first event when it carries neither ids nor counts."""
        return self._begin() + _opening(self.role, index)

    def _begin(self) -> bytes:
        """The start of an event, up to its choices."""
        return event(self._head())[:-_END]

    def usage_event(self, counts: dict[str, Any]) -> bytes:
        """The last event before [DONE] when `stream_options.include_usage` is set."""
        chunk = {**self._head(), "choices": [], "usage": counts}
        if self.fingerprint is not None:
            chunk["system_fingerprint"] = self.fingerprint
        return event(chunk)

    def complete(self, choices: list[dict[str, Any]], counts: dict[str, Any], prompt: list[int]) -> dict[str, Any]:
        """The whole answer of a request that doesn't stream."""
        out = {
            "id": self.id,
            "object": "chat.completion" if self.chat else "text_completion",
            "created": self.created,
            "model": self.model,
            "choices": choices,
            "service_tier": None,
            "system_fingerprint": self.fingerprint,
            "usage": counts | {"prompt_tokens_details": counts.get("prompt_tokens_details")},
        }
        if self.chat:
            out |= {
                "prompt_logprobs": None,
                "prompt_token_ids": prompt if self.token_ids else None,
                "prompt_text": None,
            }
        return out | {"kv_transfer_params": None, "ec_transfer_params": None, "metrics": None}

    def choice(
        self,
        index: int,
        text: str,
        ids: list[int],
        *,
        finish_reason: str,
        stop_reason: str | None,
        prompt: list[int],
    ) -> dict[str, Any]:
        """One finished choice of a complete answer."""
        shown = ids if self.token_ids else None
        if self.chat:
            return {
                "index": index,
                "message": {
                    "role": self.role,
                    "content": text,
                    "refusal": None,
                    "annotations": None,
                    "audio": None,
                    "function_call": None,
                    "reasoning": None,
                },
                "logprobs": None,
                "finish_reason": finish_reason,
                "stop_reason": stop_reason,
                "token_ids": shown,
                "routed_experts": None,
                "weight_versions": None,
            }
        return {
            "index": index,
            "text": text,
            "logprobs": None,
            "finish_reason": finish_reason,
            "stop_reason": stop_reason,
            "token_ids": shown,
            "prompt_logprobs": None,
            "prompt_token_ids": prompt if self.token_ids else None,
            "routed_experts": None,
            "weight_versions": None,
        }


_END: Final = len(b"}\n\n")


def _after_head(frames: Frames, whole: bytes) -> bytes:
    return whole[len(event(frames._head())) - _END :]


def _any(*, chat: bool, role: str = "assistant") -> Frames:
    """Frames of no request in particular: what follows an event's head is the same for all."""
    return Frames(chat=chat, id="", created=0, model="", fingerprint=None, token_ids=False, role=role)


@cache
def _ordinary(chat: bool, index: int) -> tuple[bytes, bytes]:
    frames = _any(chat=chat)
    before, after = _after_head(frames, frames.tokens(index, "\x00", [])).split(b"\\u0000")
    return before, after


@cache
def _opening(role: str, index: int) -> bytes:
    frames = _any(chat=True, role=role)
    return _after_head(frames, frames.opening(index, [], None))
