"""Comparisons of runs of a user's function, as lines of text and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from conformance.commandline.counting import counted
from conformance.commandline.ending import one_line
from reports.analysis.usercode.compared import Compared
from reports.analysis.usercode.explained import Issue
from reports.analysis.usercode.runs import FIRST_CALL, Found, failure_of, title_of
from reports.render.text.difference_words import named, words_of

Json = Mapping[str, Any]
Issues = Mapping[str, Issue]

_MESSAGE_KEPT = 200  # characters of an error's message in a headline
_LEAVES_SHOWN = 4


def lines(baseline: Json, compared: Sequence[Compared], issues: Issues) -> Iterator[str]:
    """Yield the baseline, each run with what differs from it, and what to edit."""
    yield f"baseline: {title_of(baseline)}: {headline(baseline)}"
    before: dict[tuple[str, ...], str] = {}
    for one in compared:
        yield ""
        title, body = title_of(one.run), tuple(_body(one, issues))
        yield f"{title}: {verdict(one)}"
        if not one.missing:
            yield f"  {headline(one.run)}"
        if body and body in before:
            yield f"  the same differences as {before[body]}"
        else:
            before[body] = title
            yield from body
    edits = _edits(compared, issues)
    if edits:
        yield ""
        yield "What to edit:"
        yield from (f"  {slug}: {edit}" for slug, edit in edits.items())


def _body(comparison: Compared, issues: Issues) -> Iterator[str]:
    """Yield what differs in a run, by what explains it."""
    for by, groups in explained(comparison.found):
        title = because(by, issues)
        yield f"  {title}:"
        for group in groups:
            yield from _lines_of(group, title)


def markdown(baseline: Json, compared: Sequence[Compared], issues: Issues) -> str:
    """Return the same as Markdown, a table for each run."""
    text = [f"# Compared with {title_of(baseline)}", "", f"Baseline: {_code(headline(baseline))}"]
    for one in compared:
        text += ["", f"## {title_of(one.run)}", "", f"{verdict(one).capitalize()}."]
        if one.found:
            text += [
                "",
                "| field | baseline | here | steps | explained by |",
                "|---|---|---|---|---|",
            ]
            text += [_row(group) for group in grouped(one.found)]
    edits = _edits(compared, issues)
    text += ["", "## What to edit", ""] if edits else []
    text += [f"* `{slug}`: {edit}" for slug, edit in edits.items()]
    return "\n".join(text)


def headline(run: Json) -> str:
    """Return what a run did, in one line: of process 0's first call, or the fault."""
    if run["missing"]:
        return f"not run: {run['missing']}"
    if run["fault"] is not None:
        return f"{run['fault']['kind']}: {one_line(run['fault']['detail'])}"
    if failed := failure_of(run):
        return f"could not be called: {_short(failed)}"
    steps = [s for o in run["observations"][:1] for s in o["steps"] if s["name"] == FIRST_CALL]
    if not steps:
        return "nothing was called"
    error = steps[0].get("exception")
    if error:
        return f"raised {error['type']} ({error['phase']}): {_short(str(error['message']))}"
    leaves = (steps[0].get("value") or {}).get("leaves") or []
    shown = ", ".join(map(_leaf, leaves[:_LEAVES_SHOWN])) or "nothing"
    more = len(leaves) - _LEAVES_SHOWN
    return f"returned {shown}{f' and {more} more' if more > 0 else ''}"


def grouped(found: Iterable[Found]) -> list[list[Found]]:
    """Return differences that say the same of several steps together, those that matter first."""
    groups: dict[tuple[str, ...], list[Found]] = {}
    for one in found:
        groups.setdefault((one.field, one.old, one.new, one.cause), []).append(one)
    return sorted(groups.values(), key=lambda group: not group[0].matters)


def verdict(comparison: Compared) -> str:
    """Return how many fields of a run differ from the baseline, in words."""
    if comparison.missing:
        return f"not compared: {comparison.missing}"
    many = len([g for g in grouped(comparison.found) if g[0].matters])
    if not many:
        return f"the same in {counted(comparison.same, 'field')}"
    return f"{counted(many, 'difference')}; {counted(comparison.same, 'field')} the same"


NOT_COUNTED = "not counted as a difference"
By = tuple[str, str, str]  # what explains a difference: a known issue, a claim, or a sentence


def explained(found: Iterable[Found]) -> list[tuple[By, list[list[Found]]]]:
    """Return the groups of differences by what explains them: what nothing explains first."""
    by: dict[By, list[list[Found]]] = {("", "", ""): []}
    for group in grouped(found):
        first = group[0]
        says = "" if first.cause or first.claim else first.says
        if not first.matters and not says:
            says = NOT_COUNTED
        by.setdefault((first.cause, first.claim, says), []).append(group)
    return [(key, groups) for key, groups in by.items() if groups]


def because(by: By, issues: Issues) -> str:
    """Return what explains differences, as a heading."""
    cause, claim, says = by
    if cause:
        title = issues[cause].title if cause in issues else ""
        return f"known issue {cause}: {title}" if title else f"known issue {cause}"
    if claim:
        return f"as documented ({claim})"
    return says.removesuffix(".") or "not explained by a known issue"


def _edits(compared: Iterable[Compared], issues: Issues) -> dict[str, str]:
    """Return the edit of each known issue that explains something."""
    named = dict.fromkeys(f.cause for one in compared for f in one.found if f.cause in issues)
    return {slug: issues[slug].edit for slug in named if issues[slug].edit}


def _lines_of(group: Sequence[Found], title: str) -> Iterator[str]:
    first = group[0]
    steps = [one.step for one in group if one.step]
    where = f" ({', '.join(dict.fromkeys(steps))})" if steps else ""
    words = words_of(first)
    yield f"    {one_line(f'{words.field}: {words.old} → {words.new}{where}')}"
    if words.seen:
        yield f"        {_short(words.seen)}"
    if first.says and first.says.removesuffix(".") not in title:
        yield f"        {first.says}"


def _row(group: Sequence[Found]) -> str:
    first = group[0]
    steps = ", ".join(dict.fromkeys(one.step for one in group if one.step))
    by = f"`{first.cause}`: {first.says}" if first.cause else first.says
    words = words_of(first)
    cells = (words.field, words.old, words.new, steps, by or _short(words.seen))
    return f"| {' | '.join(_cell(one) for one in cells)} |"


def _leaf(leaf: Json) -> str:
    kind = (leaf.get("sharding") or {}).get("type") or leaf["type"]
    return f"{leaf['dtype']}{list(leaf['shape'])} {kind}"


def _short(text: str) -> str:
    line = named(one_line(text))
    return line if len(line) <= _MESSAGE_KEPT else f"{line[:_MESSAGE_KEPT]}…"


def _cell(text: str) -> str:
    return one_line(text).replace("|", "\\|").replace("<", "&lt;")


def _code(text: str) -> str:
    return f"`{text.replace('`', chr(39))}`"
