"""The part of the README that is made of published results: what upgrades change, in counts.

It stands between two marks, is written by `pmap-conformance dev readme`, and a self-test says when
the results have moved on.
"""

from __future__ import annotations

from collections.abc import Iterator

from reports.effects.changed import Group, Upgrade
from reports.effects.pairs import RAN, Effects, Side, sides
from reports.effects.upgrade import upgrade
from reports.effects.upgrade_text import counted
from reports.findings import in_markdown
from reports.input_error import InputError
from reports.reading.results import Results
from reports.site.names import implementation_words

BEGIN = "<!-- made by `pmap-conformance dev readme`: -->"
END = "<!-- until here -->"
FINDINGS = 3  # the gravest that are told

LEGACY, NEW, SHARD_MAP = "legacy_pmap", "new_pmap", "shard_map"
_COLUMNS = {
    "crashes or hangs": (Group.DIES,),
    "other numbers": (Group.WRONG_NUMBERS,),
    "raises now": (Group.RAISES, Group.OTHER_ERROR),
    "moves or needs more": (Group.MOVES_MORE, Group.MEMORY),
    "fix fails": (Group.FIX_FAILS,),
}


class ReadmeError(InputError, ValueError):
    """A README has no place for the summary, or results have nothing to say of it."""


def replaced(readme: str, results: Results) -> str:
    """`readme` with what `results` say now. ReadmeError where its marks are not there."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ReadmeError(f"the README has no place for the summary: {BEGIN} … {END}")
    return "\n".join([f"{before}{BEGIN}", "", *lines(results), "", f"{END}{after}"])


def lines(results: Results) -> Iterator[str]:
    """A table with a row for an upgrade, and the gravest findings of the longest one."""
    found = _upgrades(results)
    if not found:
        raise ReadmeError("these results have no legacy pmap to come from: nothing is an upgrade")
    yield f"Measured: {_measured(results)}."
    yield ""
    yield f"| from | to | {' | '.join(_COLUMNS)} | the same | not compared |"
    yield f"|---|---|{'---|' * (len(_COLUMNS) + 2)}"
    for one in found:
        counts = [str(sum(map(one.counted, groups))) for groups in _COLUMNS.values()]
        left = sum(count for _, count in one.missing)
        yield (
            f"| {_words(one.old)} | {_words(one.new)} | {' | '.join(counts)} | "
            f"{one.same} of {counted(one.compared, 'program')} | {counted(left, 'cell')} |"
        )
    yield ""
    old = _words(found[0].old)
    said = "Causes are counted, not programs, and those of one defect once"
    yield f"{said}. The gravest from {old} on:"
    yield ""
    for title, sentence in _gravest(found[0]):
        yield f"- **{in_markdown(title)}.** {in_markdown(sentence)}"


def _upgrades(results: Results) -> list[Upgrade]:
    """From the oldest and the newest legacy pmap to the newest of the others."""
    there = sides(results)
    legacy = [one for one in there if one.implementation == LEGACY]
    newest = {one.implementation: one for one in there}
    effects = Effects(results)
    return [
        upgrade(effects, old, newest[new])
        for new in (NEW, SHARD_MAP)
        if new in newest
        for old in [*legacy[:1], *legacy[1:][-1:]]
    ]


def _gravest(found: Upgrade) -> Iterator[tuple[str, str]]:
    """Title and sentence of what is worst, what both sides were seen to do before what only one."""
    asked = [group for group in Group if group is not Group.REPAIRED]
    grave = [one for group in asked for one, _ in found.folded(group)]
    for one in sorted(grave, key=lambda one: not one.compared)[:FINDINGS]:
        where = f"{one.group.value}, {', '.join(one.topologies)}"
        yield f"{one.title.rstrip('.')} ({where})", one.sentence or one.example.felt.sentence


def _measured(results: Results) -> str:
    jax = [t.jax for t in results.targets if t.jax and not t.unavailable]
    days = sorted(t.started[:10] for t in results.targets if t.started)
    machine = sorted({t.machine for t in results.targets if t.machine})
    platforms = sorted({t.platform for t in results.targets if t.platform})
    cells = sum(one.verdict in RAN for one in results.outcomes.values())
    versions = ", ".join(dict.fromkeys(jax))
    return (
        f"{cells} cells of {len(results.ran())} clauses on jax {versions} "
        f"({', '.join(platforms)}, {', '.join(machine)}), "
        + " to ".join(dict.fromkeys([days[0], days[-1]]))
    )


def _words(side: Side) -> str:
    return f"{implementation_words(side.implementation)} {side.jax}"
