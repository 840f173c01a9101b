"""Render a scan's report as text, Markdown and JSON; SARIF is in `sarif`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from conformance.scanning.findings import ORDER, UNCHANGED, Finding, Issue, Report

# Control characters, and what turns the direction of text or hides it.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]"
)
_PROCESSES: Mapping[tuple[str, ...], str] = {
    ("several",): "in several processes",
    ("one",): "in one process",
}
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|#])")
_LONGEST_LINE = 160  # characters of a source line in text


def escaped(text: str) -> str:
    """Return `text` with terminal control characters escaped."""
    return _UNPRINTABLE.sub(lambda m: ascii(m[0])[1:-1], text)


def as_text(report: Report) -> str:
    """Return the findings as text, grouped by file."""
    return "".join(f"{escaped(line)}\n" for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    for one in report.findings:
        also = "".join(f", {other.slug}" for other in one.also)
        yield (
            f"{one.spot}:{one.place.column}: {one.severity}{where(one.issue)}: "
            f"{one.says or title(one.issue)} [{one.issue.slug}{also}]"
        )
        yield f"    {_source_line(one)}"
        if one.after:
            yield f"    before: {_one_line(one.before)}"
            yield f"    after:  {_one_line(one.after)}"
        elif one.proved:
            yield "    after:  (removed)"
        if one.proved:
            yield f"    --fix writes this; {one.proved} shows equal values"
    for left in report.unread:
        yield f"{left.path}: not scanned: {left.why}"
    issues = {issue.slug: issue for one in report.findings for issue in (one.issue, *one.also)}
    if issues:
        yield ""
        yield f"what changes from {report.old} to {report.new}:"
    for issue in sorted(issues.values(), key=lambda i: (ORDER[i.change.severity], i.slug)):
        yield f"  {issue.slug}: {', '.join(issue.change.effects) or UNCHANGED}{where(issue)}"
        yield f"      {title(issue)}. {issue.sentence}"
        if issue.change.refused:
            yield "      Programs that show this raised an error before as well."
        if issue.edit:
            yield f"      edit: {issue.edit}"
        yield f"      see: {issue.program}, {issue.links[0]}"
    if report.findings:
        yield ""
    yield summary(report)


def title(issue: Issue) -> str:
    """Return an issue's title without its full stop, for lists."""
    return issue.title.rstrip(".")


def where(issue: Issue) -> str:
    """Return with how many processes an issue shows, in parentheses; empty if with any number."""
    found = _PROCESSES.get(issue.change.processes)
    return f" ({found})" if found else ""


def summary(report: Report) -> str:
    """Return the counts, in one line."""
    counted = Counter(one.severity for one in report.findings)
    each = ", ".join(f"{severity}: {count}" for severity, count in counted.most_common())
    found = len(report.findings)
    files = "1 file" if report.files == 1 else f"{report.files} files"
    what = "1 finding" if found == 1 else f"{found} findings"
    left = f"; {len(report.unread)} not scanned" if report.unread else ""
    ignored = f"; {report.ignored} left out by comments" if report.ignored else ""
    return (
        f"{what} from {report.old} to {report.new} in {files}"
        f"{f' ({each})' if each else ''}{left}{ignored}"
    )


def _source_line(finding: Finding) -> str:
    line = finding.line_text.strip()
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def as_markdown(report: Report) -> str:
    """Return the findings as Markdown, a section for each known issue."""
    lines = [f"# {_plain(f'{report.old} → {report.new}')}", "", _plain(summary(report)), ""]
    by_issue: dict[str, list[Finding]] = {}
    for one in report.findings:
        by_issue.setdefault(one.issue.slug, []).append(one)
    for some in by_issue.values():
        issue = some[0].issue
        lines += [
            f"## {_plain(title(issue))} ({issue.change.severity}{where(issue)})",
            "",
            _plain(issue.sentence),
            "",
        ]
        if issue.edit:
            lines += [f"Edit: {_plain(issue.edit)}", ""]
        for one in some:
            lines.append(f"- {_plain(one.spot)}: {_code(_source_line(one))}")
            if one.after:
                lines.append(f"  - after: {_code(_one_line(one.after))}")
        lines += ["", f"Issue: `{issue.slug}`, <{issue.links[0]}>", ""]
    lines += [f"- {_plain(one.path)}: not scanned: {_plain(one.why)}" for one in report.unread]
    return escaped("\n".join(lines).rstrip("\n") + "\n")


def _plain(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", escaped(text))


def _code(text: str) -> str:
    """Return a text as Markdown code, whatever backticks it contains."""
    text = escaped(text)
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * (longest + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"


def as_json(report: Report) -> dict[str, Any]:
    """Return the report as one JSON object."""
    return {
        "from": report.old,
        "to": report.new,
        "files": report.files,
        "evaluated": report.parsed,
        "left_out_by_comments": report.ignored,
        "findings": [_finding(one) for one in report.findings],
        "not_scanned": [{"path": one.path, "why": one.why} for one in report.unread],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "path": finding.path,
        "cell": finding.cell or None,
        "line": finding.place.line,
        "column": finding.place.column,
        "end_line": finding.place.end_line,
        "end_column": finding.place.end_column,
        "source": finding.line_text,
        "severity": finding.severity,
        "message": finding.says or title(finding.issue),
        **_issue(finding.issue),
        "before": finding.before,
        "after": finding.after,
        "proved_by": finding.proved,
        "also": [_issue(other) for other in finding.also],
    }


def _issue(issue: Issue) -> dict[str, Any]:
    return {
        "issue": issue.slug,
        "title": issue.title,
        "change": issue.sentence if issue.change.severity != UNCHANGED else "",
        "effects": list(issue.change.effects),
        "processes": list(issue.change.processes),
        "raised_before": issue.change.refused,
        "edit": issue.edit,
        "remedies": list(issue.remedies),
        "links": list(issue.links),
    }
