"""Bodies: reading those of requests, and the model cards of /v1/models."""

import json
import uuid
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from srvmod_engine.api.errors import ApiError, invalid_body
from srvmod_engine.http.messages import Request

_Model = TypeVar("_Model", bound=BaseModel)


def model_card(name: str, *, created: int, root: str, max_model_len: int) -> dict[str, Any]:
    """One entry of /v1/models."""
    permission = {
        "id": f"modelperm-{uuid.uuid4().hex}",
        "object": "model_permission",
        "created": created,
        "allow_create_engine": False,
        "allow_sampling": True,
        "allow_logprobs": True,
        "allow_search_indices": False,
        "allow_view": True,
        "allow_fine_tuning": False,
        "organization": "*",
        "group": None,
        "is_blocking": False,
    }
    return {
        "id": name,
        "object": "model",
        "created": created,
        "owned_by": "vllm",
        "root": root,
        "parent": None,
        "max_model_len": max_model_len,
        "permission": [permission],
    }


def prompts_of(prompt: Any) -> list[Any]:
    """One or several prompts, each a string or a list of ids."""
    if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int):
        return prompt
    return [prompt]


def json_body(request: Request) -> dict[str, Any]:
    """The body as a JSON object. Raises ApiError with the web framework's words."""
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
        raise ApiError(
            "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed", kind="Bad Request"
        )
    try:
        value = json.loads(request.body)
    except (ValueError, RecursionError) as error:
        raise ApiError(
            "1 validation error:\n  "
            f"{{'type': 'json_invalid', 'loc': 'body', 'msg': 'JSON decode error', 'input': {{}}, 'ctx': "
            f"{{'error': {str(error)!r}}}}}",
            kind="Bad Request",
            param="body",
        ) from None
    if not isinstance(value, dict):
        raise ApiError(
            "1 validation error:\n  {'type': 'model_attributes_type', 'loc': 'body', 'msg': 'Input should be a "
            "valid dictionary or object to extract fields from'}",
            kind="Bad Request",
            param="body",
        )
    return value


def parse(model: type[_Model], body: dict[str, Any]) -> _Model:
    """The body as one of the models of `requests`. Raises ApiError that lists what is wrong."""
    try:
        return model.model_validate(body)
    except ValidationError as error:
        raise invalid_body(error) from None
