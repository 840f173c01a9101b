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
    "slower calls": "warning",
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


def _result(finding: Finding, issue: Issue, order: dict[str, int]) -> dict[str, Any]:
    own = issue is finding.issue
    says = finding.says if own and finding.says else title(issue)
    edit = f" {issue.edit}" if issue.edit else ""
    text = f"{issue.change.severity}{where(issue)}: {says}. {issue.sentence}{edit}"
    if finding.cell:
        text = f"Cell {finding.cell}, line {finding.place.line}: {text}"
    result: dict[str, Any] = {
        "ruleId": issue.slug,
        "ruleIndex": order[issue.slug],
        "level": _LEVELS[issue.change.severity],
        "message": {"text": escaped(text)},
        "locations": [{"physicalLocation": _location(finding)}],
    }
    if own and finding.replacement is not None and not finding.replacement.imports:
        result["fixes"] = [_fix(finding)]
    return result


def _location(finding: Finding) -> dict[str, Any]:
    file = {"artifactLocation": {"uri": quote(finding.path)}}
    if finding.cell:  # its line is not one of the file
        return file
    return {
        **file,
        "region": _region(finding) | {"snippet": {"text": escaped(finding.line_text)}},
    }


def _region(finding: Finding) -> dict[str, int]:
    return {
        "startLine": finding.place.line,
        "startColumn": finding.place.column,
        "endLine": finding.place.end_line,
        "endColumn": finding.place.end_column,
    }


def _fix(finding: Finding) -> dict[str, Any]:
    assert finding.replacement is not None
    return {
        "description": {"text": f"As shown equal by {finding.proved}"},
        "artifactChanges": [
            {
                "artifactLocation": {"uri": quote(finding.path)},
                "replacements": [
                    {
                        "deletedRegion": _region(finding),
                        "insertedContent": {"text": finding.replacement.text},
                    }
                ],
            }
        ],
    }
