"""Comments in a scanned program that suppress findings."""

from __future__ import annotations

import re
from collections.abc import Sequence

from conformance.scanning.findings import Finding

MARK = re.compile(r"#\s*pmap-conformance:\s*ignore(-file)?(?:\[([^\]]*)\])?")
ALL = "*"


def is_ignored(finding: Finding, lines: Sequence[str]) -> bool:
    """Return whether a comment on the finding's lines, or alone on the line above,
    suppresses it.
    """
    at = finding.place
    here = range(at.line - 1, min(at.end_line, len(lines)))
    if any(_names(lines[number], finding.issue.slug) for number in here):
        return True
    above = at.line - 2
    if above >= 0 and lines[above].lstrip().startswith("#"):
        return _names(lines[above], finding.issue.slug)
    return False


def ignored_in_file(lines: Sequence[str]) -> frozenset[str]:
    """Return the slugs that `ignore-file` comments suppress; ALL of them without brackets."""
    found: set[str] = set()
    for line in lines:
        match = MARK.search(line) if "ignore-file" in line else None
        if match is not None and match[1]:
            found |= _slugs(match[2])
    return frozenset(found)


def _names(line: str, slug: str) -> bool:
    match = MARK.search(line)
    if match is None or match[1]:
        return False
    return not _slugs(match[2]).isdisjoint((slug, ALL))


def _slugs(text: str | None) -> set[str]:
    if text is None:
        return {ALL}
    return {part.strip() for part in text.split(",") if part.strip()}
