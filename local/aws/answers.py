"""Small things about HTTP answers: the simulation's own JSON, and how to recognise what moto doesn't have."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from typing import Any

from srvmod.local.aws.wire import Answer

OK = range(200, 300)


def as_json(document: Any, status: int = 200) -> Answer:
    return Answer(status, json.dumps(document).encode(), {"Content-Type": "application/json"})


def reason(status: int) -> str:
    return "OK" if status in OK else "Error"


def length(environ: Mapping[str, Any], answer: Answer) -> str:
    """HEAD answers carry the length of the object that isn't sent."""
    given = {k.lower(): v for k, v in answer.headers.items()}.get("content-length")
    return given if given is not None and environ.get("REQUEST_METHOD") == "HEAD" else str(len(answer.body))


def is_page(answer: Answer) -> bool:
    kind = {k.lower(): v for k, v in answer.headers.items()}.get("content-type", "")
    return answer.status not in OK and kind.startswith("text/html") and answer.body[:9].lower() == b"<!doctype"


def reason_of(answer: Answer) -> str:
    text = html.unescape(re.sub(r"<[^>]*>", " ", answer.body[:4000].decode("utf-8", "replace")))
    return " ".join(text.split())[:200] or f"moto answered {answer.status}"
