"""Render a scan's report as SARIF 2.1.0, which code hosts show beside the lines."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from conformance.scanning.findings import UNCHANGED, Finding, Issue, Report
from conformance.scanning.rendering import escaped, title, where

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {
    "crash": "error",
    "hang": "error",
    "wrong values": "error",
    "error": "error",
    "other error": "warning",
    "extra communication": "warning",
    "extra memory": "warning",
    "different sharding": "warning",
    "warning": "note",
    UNCHANGED: "note",
}


def as_sarif(report: Report, name: str, version: str) -> dict[str, Any]:
    """Return the report as one SARIF object; its rules are the known issues."""
    issues = {issue.slug: issue for one in report.findings for issue in (one.issue, *one.also)}
    order = {slug: at for at, slug in enumerate(issues)}
    results = [
        _result(one, issue, order) for one in report.findings for issue in (one.issue, *one.also)
    ]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": name,
                        "version": version,
                        "rules": [_rule(issue) for issue in issues.values()],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "invocations": [
                    {
                        "executionSuccessful": True,
                        "toolExecutionNotifications": [
                            {
                                "level": "warning",
                                "message": {"text": escaped(f"{one.path}: {one.why}")},
                            }
                            for one in report.unread
                        ],
                    }
                ],
                "results": results,
            }
        ],
    }


def _rule(issue: Issue) -> dict[str, Any]:
    return {
        "id": issue.slug,
        "shortDescription": {"text": issue.title},
        "fullDescription": {"text": issue.sentence},
        "helpUri": issue.links[0],
        "help": {"text": issue.edit or issue.sentence},
        "defaultConfiguration": {"level": _LEVELS[issue.change.severity]},
    }


def _result(one: Finding, issue: Issue, order: dict[str, int]) -> dict[str, Any]:
    own = issue is one.issue
    says = one.says if own and one.says else title(issue)
    edit = f" {issue.edit}" if issue.edit else ""
    text = f"{issue.change.severity}{where(issue)}: {says}. {issue.sentence}{edit}"
    if one.cell:
        text = f"Cell {one.cell}, line {one.place.line}: {text}"
    result: dict[str, Any] = {
        "ruleId": issue.slug,
        "ruleIndex": order[issue.slug],
        "level": _LEVELS[issue.change.severity],
        "message": {"text": escaped(text)},
        "locations": [{"physicalLocation": _location(one)}],
    }
    if own and one.replacement is not None and not one.replacement.imports:
        result["fixes"] = [_fix(one)]
    return result


def _location(one: Finding) -> dict[str, Any]:
    file = {"artifactLocation": {"uri": quote(one.path)}}
    if one.cell:  # its line is not one of the file
        return file
    return {
        **file,
        "region": _region(one) | {"snippet": {"text": escaped(one.line_text)}},
    }


def _region(one: Finding) -> dict[str, int]:
    return {
        "startLine": one.place.line,
        "startColumn": one.place.column,
        "endLine": one.place.end_line,
        "endColumn": one.place.end_column,
    }


def _fix(one: Finding) -> dict[str, Any]:
    assert one.replacement is not None
    return {
        "description": {"text": f"As shown equal by {one.proved}"},
        "artifactChanges": [
            {
                "artifactLocation": {"uri": quote(one.path)},
                "replacements": [
                    {
                        "deletedRegion": _region(one),
                        "insertedContent": {"text": one.replacement.text},
                    }
                ],
            }
        ],
    }
