"""A Markdown text about statements that JAX does not fulfil, to paste into an issue.

Everything in it is about one JAX: the statements and their places, in how many of their tests a
failure was seen, the others, what to write instead, and a program of plain JAX that shows it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from conformance.commandline.counting import counted
from conformance.model.records import Cause, Claim, Deviation, Target
from reports.analysis.effects.digest import of_job
from reports.analysis.effects.started import started
from reports.render.site.corrections import suggested
from reports.render.site.names import implementation_words
from reports.render.site.text import shortened, worded
from reports.store.alike import failed
from reports.store.order import topology_order
from reports.store.outcomes import CellKey, Outcome
from reports.store.results import Results
from reports.store.shown import A_JOB

Checked = Sequence[tuple[CellKey, Outcome]]

_MOST_OBSERVED = 3  # kinds of behaviour that one text lists
_OBSERVED_LENGTH = 360
_PROGRAM_LINES = 40
_TESTS_LENGTH = 400
_SENTENCE_END = re.compile(r"(?<=\.) (?=[A-Z`])")
_NUMBERS = re.compile(r"[\d.,\s…\[\]]+")


def text(
    results: Results,
    claims: Sequence[Claim],
    target: Target,
    wrong: Checked,
    ran: int,
    removed: frozenset[str],
) -> str:
    """Return the text about `claims`, whose tests `wrong` failed among `ran` in `target`.

    `wrong` has the most severe first; `removed` are the implementations that this JAX no longer
    has.
    """
    lines = list(_stated(claims))
    passed = ran - len(wrong)
    they = "this claim holds" if len(claims) == 1 else "these claims hold"
    lines += [
        f"With {_description(target)}, {they} in {passed or 'none'} of {counted(ran, 'test')}. The "
        "failures (topologies are processes x devices of each):",
        "",
        *_observed(wrong, removed),
    ]
    lines += suggested(claim.slug for claim in claims)
    found = deviations(wrong)
    for why in _told_once(deviation.why for deviation in found):
        lines += ["", why]
    links = dict.fromkeys(deviation.link for deviation in found if deviation.link)
    if links:
        lines += ["", "See " + ", ".join(links)]
    cause = results.causes.get(main_cause(results, wrong))
    if cause is not None:
        under = [name for name, _ in Counter(key.implementation for key, _ in wrong).most_common()]
        lines += ["", *_program(cause, started(cause, under, target.jax))]
    tests = ", ".join(f"`{id}`" for id in dict.fromkeys(key.clause for key, _ in wrong))
    lines += ["", f"Tests: {shortened(tests, _TESTS_LENGTH)}"]
    return "\n".join(lines) + "\n"


def _told_once(whys: Iterable[str]) -> Iterator[str]:
    """Yield texts without the sentences that an earlier one has: parts of a defect begin alike."""
    known: set[str] = set()
    for why in whys:
        new = [one for one in _SENTENCE_END.split(why) if one not in known]
        known.update(new)
        if new:
            yield " ".join(new)


def deviations(wrong: Checked) -> list[Deviation]:
    """Return the entries that explain the observations, if any."""
    entries = (run.cell.deviation for _, outcome in wrong for run in outcome.runs[-1:])
    return [one for one in entries if one is not None]


def main_cause(results: Results, wrong: Checked) -> str:
    """Return the known issue of the most harmful failure; "" if there is none.

    `wrong` has the most severe first.
    """
    causes = (one.cause for one in deviations(wrong))
    return next((one for one in causes if one in results.causes), "")


def _stated(claims: Sequence[Claim]) -> Iterator[str]:
    """Yield the statements with their places, those of one place together."""
    for where, some in groupby(claims, key=_where):
        here = list(some)
        yield from (f"**{where}**", "")
        if here[0].url:
            yield from (here[0].url, "")
        if here[0].revisions:
            yield from (f"Reviewed revision: {here[0].revisions[-1]}.", "")
        if len(here) == 1:
            yield from (f"In our words: {here[0].statement}", "")
        else:
            yield from ("In our words:", "", *(f"* {c.statement}" for c in here), "")


def _where(claim: Claim) -> str:
    return f"{claim.document_title} > {claim.heading}" if claim.heading else claim.document_title


def _observed(wrong: Checked, removed: frozenset[str]) -> list[str]:
    """Return a line per behaviour, with its places; behaviours that differ in numbers only are
    joined.

    An implementation in `removed` did not run there, although a program requested it.
    """
    seen: dict[str, tuple[str, dict[str, set[str]]]] = {}
    for key, outcome in wrong:
        words = " ".join(worded(outcome.reason).split())
        text = shortened(words, _OBSERVED_LENGTH)
        _, places = seen.setdefault(_NUMBERS.sub("#", text), (text, {}))
        name = implementation_words(key.implementation)
        asked = f"where the program asks for {name}, which this JAX no longer has, on"
        under = asked if key.implementation in removed else f"{name} on"
        places.setdefault(under, set()).add(A_JOB if _is_job(outcome) else key.topology)
    lines = [
        f"* {_places(places)}: {text}" for text, places in list(seen.values())[:_MOST_OBSERVED]
    ]
    if len(seen) > _MOST_OBSERVED:
        lines.append(f"* and {len(seen) - _MOST_OBSERVED} more kinds of failure")
    return lines


def _is_job(outcome: Outcome) -> bool:
    """Return whether a process of a plain job fails, and not one of a cluster."""
    cells = (run.cell for run in outcome.runs[-1:])
    return any(of_job(finding.step or "") for cell in cells for finding in failed(cell))


def _places(places: dict[str, set[str]]) -> str:
    return "; ".join(
        f"{under} {', '.join(sorted(topologies, key=topology_order))}"
        for under, topologies in places.items()
    )


def _program(cause: Cause, command: str) -> list[str]:
    """Return the known issue's program, between fences that its content cannot close."""
    if cause.program.count("\n") > _PROGRAM_LINES:
        return [f"A program that shows it: {cause.file}"]
    fence = "`" * max(3, *(len(ticks) + 1 for ticks in re.findall("`+", cause.program) or [""]))
    return [
        f"A program that shows it, run as `{command}`:",
        "",
        f"{fence}python",
        *cause.program.rstrip("\n").split("\n"),
        fence,
    ]


def _description(target: Target) -> str:
    parts = [f"jax {target.jax}" if target.jax else target.target]
    if target.jaxlib and target.jaxlib != target.jax:
        parts.append(f"jaxlib {target.jaxlib}")
    if target.python:
        parts.append(f"Python {target.python}")
    parts.append(target.platform or "")
    return ", ".join(filter(None, parts))
