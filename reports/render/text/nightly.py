"""The text of a nightly run's issue: regressions since the last run first.

The text is Markdown, limited to 65,536 characters; what does not fit is counted.
"""

from __future__ import annotations

from collections.abc import Iterator

from conformance.commandline.counting import counted
from conformance.model.verdicts import Verdict
from reports.analysis.comparing.changes import Comparison, Group, Kind
from reports.analysis.policies import RED
from reports.render.text.changes import line
from reports.render.text.findings import in_markdown
from reports.render.text.summary import printable
from reports.store.results import Results

MOST_CHARACTERS = 60_000
MOST_CELLS = 12  # of one cause, named

_HEADS = {
    Kind.REGRESSION: "Worse than the night before",
    Kind.REPAIR: "Better than the night before",
    Kind.OTHER: "Otherwise than the night before",
}


def as_issue(found: Comparison, new: Results) -> str:
    """Return the issue's text: the state, then each cause of a change, most severe first."""
    text = "\n".join(_head(found, new)) + "\n"
    left = 0
    for part in _parts(found):
        if left or len(text) + len(part) > MOST_CHARACTERS:
            left += 1
        else:
            text += part
    if left:
        text += f"\nAnd {left} more parts, which do not fit here: see the results of the run.\n"
    return printable(text)


def _head(found: Comparison, new: Results) -> Iterator[str]:
    worse = found.cells(Kind.REGRESSION)
    yield f"**{counted(worse, 'cell')} became worse**" if worse else "**Nothing became worse.**"
    yield ""
    pairs = ", ".join(one if one == other else f"{one} → {other}" for one, other in found.pairs)
    cells = counted(found.compared, "cell was", "cells were")
    yield (
        f"{cells} run in both nights ({_plain(pairs)}); "
        f"{found.new} are new, {found.vanished} were not run again."
    )
    red = sum(outcome.verdict in RED for outcome in new.outcomes.values())
    missing = sum(outcome.verdict is Verdict.NOT_RUN for outcome in new.outcomes.values())
    yield f"In this night {counted(red, 'cell is', 'cells are')} red, {missing} could not be run."
    runs = dict.fromkeys(f"{t.started} on {t.machine or '?'} (run {t.run})" for t in new.targets)
    yield _plain(f"Run: {'; '.join(runs)}")
    for note in found.notes:
        yield f"* {_plain(line(note))}"


def _parts(found: Comparison) -> Iterator[str]:
    for kind in Kind:
        groups = found.groups_of(kind)
        numbers = f"{counted(found.cells(kind), 'cell')}, {counted(len(groups), 'cause')}"
        head = f"\n## {_HEADS[kind]}: {numbers}\n"
        for group in groups:
            yield head + "\n".join(_group(group)) + "\n"
            head = ""


def _group(group: Group) -> Iterator[str]:
    named = group.cause or group.claim
    yield ""
    yield f"### {_plain(f'{named}: {line(group.title)}' if named else line(group.title))}"
    yield ""
    for one in group.changes[:MOST_CELLS]:
        where = f"{one.key.clause} {one.key.implementation} {one.key.topology}"
        jax = one.key.target.jax or one.key.target.target
        yield f"* {_plain(f'{where}, jax {jax}: {one.verdicts}')}"
    if len(group.changes) > MOST_CELLS:
        yield f"* and {len(group.changes) - MOST_CELLS} more"
    first = group.changes[0]
    for when, outcome in (("Before", first.old), ("Now", first.new)):
        yield from ("", f"{when}:", "", f"    {line(outcome.reason)}")


def _plain(text: str) -> str:
    """Return a text without markup and without mentions of users."""
    return in_markdown(text).replace("@", "@\N{WORD JOINER}")
