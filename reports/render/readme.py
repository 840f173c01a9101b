"""The part of the README that is generated from published results.

It stands between two marks and is written by `pmap-conformance dev readme`; a self-test fails if
the results have changed since.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.model.tables import load_toml
from reports.analysis.effects.changed import Entry
from reports.analysis.effects.pairs import Effects, Side, sides
from reports.analysis.effects.upgrade import upgrade
from reports.render.site.guide import anchor
from reports.store.input_error import InputError
from reports.store.order import LEGACY, NEW, default_implementation, version_order
from reports.store.outcomes import RAN
from reports.store.results import Results
from reports.store.shown import SEVERAL

BEGIN = "<!-- made by `pmap-conformance dev readme`: -->"
END = "<!-- until here -->"
FILE = Path(__file__).with_suffix(".toml")
GUIDE = "docs/upgrade.md"


class ReadmeError(InputError, ValueError):
    """A README lacks the marks, or the results lack what it names."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change that the README names: a heading of the guide, and its known issues."""

    title: str
    causes: tuple[str, ...]


def load_changes(file: Path = FILE) -> tuple[Change, ...]:
    """Return the changes in the order of the README."""
    tables = load_toml(file)["change"]
    return tuple(Change(one["title"], tuple(one["causes"])) for one in tables)


def replaced(readme: str, results: Results, changes: Sequence[Change]) -> str:
    """Return `readme` with the content from `results`; ReadmeError if its marks are missing."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ReadmeError(f"the README has no place for the summary: {BEGIN} … {END}")
    return "\n".join([f"{before}{BEGIN}", "", *lines(results, changes), "", f"{END}{after}"])


def lines(results: Results, changes: Sequence[Change]) -> Iterator[str]:
    """Yield a line for each change, and what was measured; ReadmeError if a change is no longer
    seen.
    """
    seen = _seen(results)
    for number, one in enumerate(changes, start=1):
        here = {
            jax: [entry for entry in entries if entry.cause and entry.cause.cause in one.causes]
            for jax, entries in seen.items()
        }
        versions = [jax for jax, entries in here.items() if entries]
        if not versions:
            raise ReadmeError(
                f"no version of these results shows {', '.join(one.causes)}: remove "
                f"“{one.title}” from {FILE.name}"
            )
        parts = [_effect(here), *_places(here), _versions(versions, list(seen))]
        yield f"{number}. [{one.title}]({GUIDE}#{anchor(one.title)}): {'; '.join(parts)}."
    yield ""
    yield f"Measured: {_measured(results)}."


def _seen(results: Results) -> dict[str, tuple[Entry, ...]]:
    """Return what changes from the oldest legacy pmap to each new pmap that is the default, by
    version.
    """
    there = sides(results)
    legacy = [one for one in there if one.implementation == LEGACY]
    if not legacy:
        raise ReadmeError(
            "these results have no cell of legacy pmap, from which an upgrade starts: add "
            "results of JAX before 0.10"
        )
    old = legacy[0]
    effects = Effects(results)
    later = [one for one in there if _is_default(one) and _is_later(one, old)]
    return {new.jax: upgrade(effects, old, new).entries for new in later}


def _is_default(side: Side) -> bool:
    """Return whether a side is what an ordinary program gets: new pmap where it is the default."""
    return side.implementation == NEW == default_implementation(side.jax)


def _is_later(side: Side, old: Side) -> bool:
    return version_order(side.jax) > version_order(old.jax)


def _effect(here: Mapping[str, Sequence[Entry]]) -> str:
    """Return the most serious effect in the last version, and earlier versions with a worse one."""
    worst = {
        jax: min((entry.effect for entry in entries), key=lambda effect: effect.rank)
        for jax, entries in here.items()
        if entries
    }
    now = list(worst.values())[-1]
    most_severe = min(worst.values(), key=lambda effect: effect.rank)
    if most_severe is now:
        return now.words
    before = [jax for jax, effect in worst.items() if effect is most_severe]
    return f"{now.words} ({_versions(before, list(here))}: {most_severe.words})"


def _places(here: Mapping[str, Sequence[Entry]]) -> Iterator[str]:
    """Yield that it shows in several processes only, if so."""
    places = {place for entries in here.values() for entry in entries for place in entry.places}
    if places == {SEVERAL}:
        yield f"{SEVERAL} only"


def _versions(some: Sequence[str], all_versions: Sequence[str]) -> str:
    """Return the versions of a change among those compared; both are in order."""
    if some[-1] == all_versions[-1]:
        return f"JAX {some[0]} and later"
    return f"JAX {some[0]} to {some[-1]}" if some[1:] else f"JAX {some[0]}"


def _measured(results: Results) -> str:
    jax = list(dict.fromkeys(t.jax for t in results.targets if t.jax and not t.unavailable))
    runs = [run for one in results.outcomes.values() for run in one.runs]
    days = sorted({run.started[:10] for run in runs if run.started})
    machines = sorted({t.machine for t in results.targets if t.machine})
    main, *others = (one.upper() for one in results.platforms)
    machine, also = ", ".join(machines), " and ".join(others)
    where = f"{main} ({machine}), some also on {also}" if also else f"{main} only ({machine})"
    options = any(t.compiling for t in results.targets)
    cells = sum(one.verdict in RAN for one in results.outcomes.values())
    parts = [
        f"{cells:,} cells of {len(results.ran()):,} tests",
        where,
        f"{len(jax)} versions, JAX {' to '.join(dict.fromkeys([jax[0], jax[-1]]))}",
        *(["most compiler optimisations off"] if options else []),
        " to ".join(dict.fromkeys([days[0], days[-1]])),
    ]
    return "; ".join(parts)
