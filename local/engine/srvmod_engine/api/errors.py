"""Errors in vLLM's JSON shape (vllm/entrypoints/serve/exception_handling)."""

from http import HTTPStatus
from typing import Any

from pydantic import ValidationError

from srvmod_engine.http.messages import Response

_SHOWN_ERRORS = 10
_SHOWN_INPUT = 200
_SHOWN_ERROR = 1000


class ApiError(Exception):
    """An answer that isn't 200. `kind` is the `type` field, `param` the offending request field."""

    def __init__(
        self, message: str, *, status: int = 400, kind: str = "BadRequestError", param: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.kind = kind
        self.param = param

    def body(self) -> dict[str, Any]:
        """The JSON object that the client gets, also as an event within a stream."""
        return {"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.status}}

    def response(self) -> Response:
        """The complete answer."""
        return Response.json(self.body(), self.status)


def http_error(status: int) -> ApiError:
    """What the web framework itself answers: the phrase is both message and type."""
    phrase = HTTPStatus(status).phrase
    return ApiError(phrase, status=status, kind=phrase)


def model_not_found(asked: str, served: tuple[str, ...]) -> ApiError:
    """404 for a model that isn't served here."""
    return ApiError(
        f"The model `{asked}` does not exist. Valid aliases: {', '.join(served)}.",
        status=404,
        kind="NotFoundError",
        param="model",
    )


def not_simulated(what: str, param: str) -> ApiError:
    """501 for what vLLM does and the simulation doesn't: refused, never quietly left out."""
    return ApiError(
        f"{what} is not implemented by the simulated engine",
        status=501,
        kind="NotImplementedError",
        param=param,
    )


def shutting_down() -> ApiError:
    """What a new request gets while the engine drains."""
    return ApiError("The engine is shutting down", status=500, kind="InternalServerError")


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _SHOWN_INPUT else value[:_SHOWN_INPUT] + "...[truncated]"
    if isinstance(value, list | tuple | dict):
        return f"<{type(value).__name__} of {len(value)} items>"
    text = str(value)
    return text if len(text) <= _SHOWN_INPUT else text[:_SHOWN_INPUT] + "...[truncated]"


def invalid_body(error: ValidationError) -> ApiError:
    """400 with the validation errors listed as vLLM lists them, bounded in number and size."""
    # pydantic adds type names of a union's branches to the place; only field names and indices mean something here.
    found = error.errors(include_url=False, include_context=False)
    lines: list[str] = []
    first = "body"
    for index, entry in enumerate(found[:_SHOWN_ERRORS]):
        place = ".".join(["body", *(str(part) for part in entry["loc"] if _is_field(part))])
        first = place if index == 0 else first
        shown = {"type": entry["type"], "loc": place, "msg": entry["msg"], "input": _short(entry["input"])}
        lines.append(f"  {str(shown)[:_SHOWN_ERROR]}")
    label = "error" if len(found) == 1 else "errors"
    if len(found) > _SHOWN_ERRORS:
        lines.append(f"  ...and {len(found) - _SHOWN_ERRORS} more {label}")
    message = f"{len(found)} validation {label}:\n" + "\n".join(lines)
    return ApiError(message, kind=HTTPStatus.BAD_REQUEST.phrase, param=first)


def _is_field(part: int | str) -> bool:
    return isinstance(part, int) or (part not in {"str", "int", "float", "bool", "list"} and "[" not in part)
