"""Waivers in comments and annotations.

`# srvmod: waive MC-KV-01 until 2027-03-31: reason` covers its own line, or the next one where it stands alone.
Annotation `srvmod.dev/waive.MC-KV-01: "until 2027-03-31: reason"` covers its object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from srvmod.policies.facts import Place, Waiver
from srvmod.policies.readers.objects import KubeObject
from srvmod.policies.readers.sources import Text

COMMENT = re.compile(r"#\s*srvmod:\s*waive\b[ \t]*(?P<clause>[A-Z][A-Z0-9-]*(?:/[a-z0-9-]+)?)?[ \t]*(?P<rest>.*)$")
TERMS = re.compile(r"\s*(?:until\s+(?P<until>[^\s:]+))?\s*:?\s*(?P<reason>.*)$", re.DOTALL)
PREFIX = "srvmod.dev/waive."


def in_comments(text: Text) -> Iterator[Waiver]:
    """Waivers in a text's comments."""
    if "srvmod:" not in text.text:
        return
    lines = text.text.splitlines()
    for index, line in enumerate(lines):
        match = COMMENT.search(line)
        if match is None:
            continue
        covered = index
        if not line[: match.start()].strip():
            covered = index + 1
            while covered < len(lines) and lines[covered].lstrip().startswith("#"):
                covered += 1
        place = Place(text.source, index + 1)
        yield _waiver(match["clause"] or "", match["rest"], place, covered + 1, "")


def in_annotations(thing: KubeObject) -> Iterator[Waiver]:
    """Waivers in an object's annotations."""
    for key, child in thing.root.at("metadata", "annotations").entries():
        if key.startswith(PREFIX):
            yield _waiver(key.removeprefix(PREFIX), child.raw(), child.place, None, child.place.object)


def _waiver(clause: str, terms: str, place: Place, line: int | None, thing: str) -> Waiver:
    match = TERMS.match(terms)
    given = match["until"] if match else None
    reason = (match["reason"] if match else "").strip()
    until: date | None = None
    problem = ""
    if not clause:
        problem = "names no clause"
    elif given is None:
        problem = "has no last day"
    else:
        try:
            until = date.fromisoformat(given.rstrip(":"))
        except ValueError:
            problem = f"has a last day that isn't a date: {given}"
    if not problem and not reason:
        problem = "has no reason"
    return Waiver(clause, until, reason, place, line, thing, problem)
