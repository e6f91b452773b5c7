"""For machines: JSON, SARIF 2.1.0, JUnit XML and GitHub's workflow commands."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from srvmod.policies.check import Result
from srvmod.policies.facts import Place
from srvmod.policies.report.text import one_line
from srvmod.policies.rules import Finding, Severity

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
SARIF_LEVELS = {Severity.ERROR: "error", Severity.UNKNOWN: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}
GITHUB_LEVELS = {
    Severity.ERROR: "error",
    Severity.UNKNOWN: "error",
    Severity.WARNING: "warning",
    Severity.NOTE: "notice",
}
FORMAT_VERSION = 1


def as_json(result: Result) -> str:
    """One JSON object; `version` grows when a field changes its meaning."""
    content = {
        "version": FORMAT_VERSION,
        "exitCode": result.exit_code,
        "findings": [_plain(finding) for finding in result.findings],
        "waived": [
            {**_plain(finding), "until": str(waiver.until), "reason": waiver.reason}
            for finding, waiver in result.waived
        ],
        "unread": [{**_place(one.place), "why": one.why, "fix": one.fix} for one in result.unread],
        "files": result.world.files,
        "objects": result.world.objects,
        "engines": len(result.world.engines),
    }
    return json.dumps(content, indent=2) + "\n"


def _plain(finding: Finding) -> dict[str, Any]:
    return {
        "clause": finding.clause.value,
        "rule": finding.rule,
        "severity": finding.severity.value,
        **_place(finding.place),
        "what": finding.what,
        "why": finding.why,
        "fix": finding.fix,
    }


def _place(place: Place) -> dict[str, Any]:
    return {"source": place.source, "line": place.line, "object": place.object, "path": place.path}


def as_sarif(result: Result) -> str:
    """SARIF for code scanning. Waived findings are suppressed results; unread input is an error of its own rule."""
    results = [_sarif(finding) for finding in result.findings]
    for finding, waiver in result.waived:
        justification = f"until {waiver.until}: {waiver.reason}"
        results.append({**_sarif(finding), "suppressions": [{"kind": "inSource", "justification": justification}]})
    for one in result.unread:
        message = f"can't read: {one.why}" + (f"; fix: {one.fix}" if one.fix else "")
        results.append(
            {"ruleId": "unread", "level": "error", "message": {"text": message}, "locations": [_location(one.place)]}
        )
    rules = sorted({one["ruleId"] for one in results})
    driver = {"name": "srvmod", "rules": [{"id": rule, "name": rule.replace("/", " ")} for rule in rules]}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _sarif(finding: Finding) -> dict[str, Any]:
    prefix = "can't tell: " if finding.severity is Severity.UNKNOWN else ""
    fix = f" Fix: {finding.fix}." if finding.fix else ""
    return {
        "ruleId": f"{finding.clause.value}/{finding.rule}",
        "level": SARIF_LEVELS[finding.severity],
        "message": {"text": f"{prefix}{finding.what}. {finding.why}.{fix}"},
        "locations": [_location(finding.place)],
    }


def _location(place: Place) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(place.source)}}
    if place.line is not None:
        physical["region"] = {"startLine": place.line}
    location: dict[str, Any] = {"physicalLocation": physical}
    name = " ".join(part for part in (place.object, place.path) if part)
    if name:
        location["logicalLocations"] = [{"fullyQualifiedName": name}]
    return location


def _uri(source: str) -> str:
    """A relative reference: SARIF viewers refuse absolute paths of another machine."""
    text = source.replace("\\", "/").removeprefix("./")
    return "stdin" if text == "-" else quote(text.encode("utf-8", "surrogateescape"), safe="/:~+@,;=&!$'()*")


def as_junit(result: Result) -> str:
    """One test case per finding; an input without findings is one case that passed."""
    suite = ElementTree.Element("testsuite", name="srvmod check")
    failures = errors = 0
    for finding in result.findings:
        case = _case(suite, f"{finding.clause.value}/{finding.rule}", finding.place)
        text = f"{finding.place}: {one_line(finding.what)}\nwhy: {finding.why}\nfix: {finding.fix}"
        if finding.severity is Severity.ERROR:
            failures += 1
            _child(case, "failure", finding.what, text)
        elif finding.severity is Severity.UNKNOWN:
            errors += 1
            _child(case, "error", finding.what, text)
        else:
            ElementTree.SubElement(case, "system-out").text = _xml(f"{finding.severity.value}: {text}")
    for one in result.unread:
        errors += 1
        _child(
            _case(suite, "unread", one.place),
            "error",
            f"can't read: {one.why}",
            f"{one.place}: {one_line(one.why)}\n{one.fix}",
        )
    for finding, waiver in result.waived:
        case = _case(suite, f"{finding.clause.value}/{finding.rule}", finding.place)
        ElementTree.SubElement(case, "skipped", message=_xml(f"waived until {waiver.until}: {waiver.reason}"))
    if not len(suite):
        ElementTree.SubElement(suite, "testcase", name="every clause", classname="srvmod")
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(failures))
    suite.set("errors", str(errors))
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=False) + "\n"


def _case(suite: ElementTree.Element, name: str, place: Place) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", name=f"{name} {_xml(str(place))}", classname=_xml(place.source))


def _child(case: ElementTree.Element, tag: str, message: str, text: str) -> None:
    ElementTree.SubElement(case, tag, message=_xml(message)).text = _xml(text)


def _xml(text: str) -> str:
    """Text without the characters that XML 1.0 can't hold."""
    return "".join(
        char if char in "\t\n" or " " <= char < "\ud800" or "\ue000" <= char != "\ufffe" else "?" for char in text
    )


def as_github(result: Result) -> str:
    """Workflow commands: annotations on the lines of a pull request, then the sum."""
    lines = [
        _command(
            GITHUB_LEVELS[one.severity], one.place, one.clause.value, f"{one.what}\nwhy: {one.why}\nfix: {one.fix}"
        )
        for one in result.findings
    ]
    lines += [_command("error", one.place, "can't read", f"{one.why}\n{one.fix}".strip()) for one in result.unread]
    lines += [
        _command("notice", finding.place, f"{finding.clause.value} waived", f"until {waiver.until}: {waiver.reason}")
        for finding, waiver in result.waived
    ]
    return "".join(f"{line}\n" for line in lines)


def _command(level: str, place: Place, title: str, message: str) -> str:
    line = "" if place.line is None else f",line={place.line}"
    return f"::{level} file={_property(place.source)}{line},title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
