"""Derive what each known issue does in each version from the cells that show it.

The effect of a cell is dangerous by itself, or a change from the newest legacy pmap; of a program
that maps nothing, and of what follows a library's version, a change from the newest version in
which it does not show the issue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

from packaging.specifiers import SpecifierSet

from conformance.model.records import JAX, Cause, Cell
from conformance.model.verdicts import Verdict
from reports.analysis.effects.derive import job_failure, unlike_expected
from reports.analysis.effects.digest import RAISED, Digest
from reports.analysis.effects.effect import Effect, ShownEffect
from reports.analysis.effects.explained import By
from reports.analysis.effects.pairs import Effects
from reports.analysis.effects.rewrites import Usage, rewrites
from reports.analysis.issues.issue import Issue, Row
from reports.analysis.issues.places import KINDS, Where, baseline, jax_versions, kind_of, removed
from reports.analysis.issues.shown import shown_by
from reports.analysis.issues.states import NOT_TESTED, REMOVED, Found, Seen, State, timeline
from reports.store.codes import COLLECTIVE, WARNING, WITHOUT_THE_FIX
from reports.store.order import LEGACY, SHARD_MAP, version_order
from reports.store.outcomes import RAN, CellKey, Outcome
from reports.store.results import Results

_NO_CHANGE = (Effect.SAME, Effect.REPAIRED, Effect.NOT_MEASURED)
_REAL = "idioms"  # the section of programs as users write them
_UNKNOWN = (Verdict.NOT_RUN, Verdict.LEFT_OUT)

# What a replacement needs more than what it replaces, in one cell: its steps, and a note of each.
_PEAK, _REPLACEMENT, _BEFORE = "peak in stacked arrays", "replacement", ("original", "known")
_MORE = 0.5  # of a stacked array


@lru_cache(maxsize=1)  # several kinds of page ask the same of one site
def issues(effects: Effects) -> tuple[Issue, ...]:
    """Return every known issue that any cell shows, in the catalogue's order."""
    tests = _Tests(effects)
    causes = effects.results.causes
    found = ((causes.get(slug), cells) for slug, cells in shown_by(effects.results).items())
    return tuple(_issue(tests, cause, cells) for cause, cells in found if cause is not None)


@lru_cache(maxsize=1)
def issue_of(effects: Effects) -> Mapping[str, Issue]:
    """Return the issues by slug."""
    return {one.cause.cause: one for one in issues(effects)}


def found_at(
    effects: Effects, where: Where
) -> tuple[frozenset[str], Mapping[str, tuple[str, ...]]]:
    """Return the issues that have an effect in a place, and those whose tests meet other issues
    there, with these.
    """
    known = effects.kept(found_at)
    if where not in known:
        states = [(one.cause.cause, one.found(where)) for one in issues(effects)]
        known[where] = (
            frozenset(slug for slug, found in states if found.effect is not None),
            {slug: found.by for slug, found in states if found.state is State.OTHERWISE},
        )
    found: tuple[frozenset[str], Mapping[str, tuple[str, ...]]] = known[where]
    return found


def usage_of(results: Results, cause: Cause, clauses: Iterable[str]) -> Usage:
    """Return how common an issue is: by the table, or by the subject of its clauses."""
    known = rewrites().usages.get(cause.cause)
    if known is not None:
        return known
    for id in clauses:
        clause = results.clauses[id]
        claim = results.claims.get(clause.claim)
        if clause.section == _REAL or (claim is not None and not claim.silent):
            return Usage.COMMON
    return Usage.UNUSUAL


@dataclass
class _Tests:
    """All cells by test, for looking up those of an issue."""

    effects: Effects
    cells: dict[str, list[tuple[CellKey, Outcome]]] = field(default_factory=dict)  # by clause

    def __post_init__(self) -> None:
        for key, outcome in self.effects.results.outcomes.items():
            self.cells.setdefault(key.clause, []).append((key, outcome))

    def of_parts(self, cause: Cause, clauses: Sequence[str]) -> Iterator[CellKey]:
        """Yield the cells of clauses that show a part of a defect, which is no other issue."""
        causes = self.effects.results.causes
        for slug, cells in shown_by(self.effects.results).items():
            part = causes.get(slug)
            if part is not None and part.part_of == cause.cause:
                yield from (key for key in cells if key.clause in clauses)

    def rows(self, clauses: Iterable[str]) -> dict[Row, list[tuple[CellKey, Outcome]]]:
        """Return the cells of clauses by implementation and number of processes."""
        found: dict[Row, list[tuple[CellKey, Outcome]]] = {}
        for clause in clauses:
            for key, outcome in self.cells.get(clause, ()):
                found.setdefault((key.implementation, kind_of(self.effects, key)), []).append(
                    (key, outcome)
                )
        return found


def _issue(tests: _Tests, cause: Cause, cells: Sequence[CellKey]) -> Issue:
    effects = tests.effects
    clauses = tuple(dict.fromkeys(key.clause for key in cells))
    shown = frozenset((*cells, *tests.of_parts(cause, clauses)))
    effect_of = _Effects(effects, cause, shown)
    rows, others = dict[Row, Mapping[str, Found]](), dict[Row, Mapping[str, Found]]()
    for row, some in tests.rows(clauses).items():
        states = _row(effects, cause, row, some, shown, effect_of)
        if any(key in shown for key, _ in some):
            rows[row] = states
        else:
            others[row] = _where_seen(states, some, shown)
    if any(one.effect for row in rows.values() for one in row.values()):
        rows = {row: _without_comparison(row, some) for row, some in rows.items()}
    edit = rewrites().by_cause.get(cause.cause)
    return Issue(
        cause,
        usage_of(effects.results, cause, clauses),
        edit.library if edit is not None else "",
        rows,
        others,
        removed(effects.results),
    )


def _where_seen(
    states: Mapping[str, Found],
    some: Sequence[tuple[CellKey, Outcome]],
    shown: frozenset[CellKey],
) -> Mapping[str, Found]:
    """Return the states of a row that never shows an issue; not tested where others show it in
    a version, but by no program that ran for the row.
    """
    showing: dict[str, set[str]] = {}
    for key in shown:
        showing.setdefault(key.target.jax or "", set()).add(key.clause)
    ran: dict[str, set[str]] = {}
    for key, outcome in some:
        if outcome.verdict in RAN:
            ran.setdefault(key.target.jax or "", set()).add(key.clause)
    return {
        jax: found
        if found.state is not State.FREE
        or not showing.get(jax)
        or showing[jax] & ran.get(jax, set())
        else NOT_TESTED
        for jax, found in states.items()
    }


def _without_comparison(row: Row, some: Mapping[str, Found]) -> Mapping[str, Found]:
    """Return a row's states; not tested where plain programs were compared with nothing.

    They show the issue in every version, so that they do not tell what it changes.
    """
    compared = {State.AFFECTED, State.FREE, State.OTHERWISE}
    if row[0] != JAX or any(one.state in compared for one in some.values()):
        return some
    return dict.fromkeys(some, NOT_TESTED)


def _row(
    effects: Effects,
    cause: Cause,
    row: Row,
    some: Sequence[tuple[CellKey, Outcome]],
    shown: frozenset[CellKey],
    effect_of: _Effects,
) -> Mapping[str, Found]:
    """Return the state in each version, of one implementation and number of processes."""
    implementation, kind = row
    of_it = {_test(key) for key, _ in some if key in shown}
    if not of_it:  # of the tests that show it under another implementation, then of its clauses
        there = {_test(key) for key in shown if kind_of(effects, key) == kind}
        of_it = {_test(key) for key, _ in some} & there or {_test(key) for key, _ in some}
    seen: dict[str, dict[str, Seen]] = {}
    judged: dict[str, set[str]] = {}
    for key, outcome in some:
        test, jax = _test(key), key.target.jax or ""
        if test not in of_it or outcome.verdict in _UNKNOWN:
            continue
        judged.setdefault(jax, set()).add(test)
        if outcome.verdict in RAN:
            seen.setdefault(jax, {})[test] = _seen(effects, key, outcome, shown, effect_of)
    gone = {w.jax for w in removed(effects.results) if w.implementation == implementation}
    versions = jax_versions(effects.results)
    present = [jax for jax in versions if jax not in gone or jax in seen]
    # Where an implementation is removed, only programs that ask for it show an issue.
    asking = {jax: _asking(seen.get(jax, {})) for jax in present if jax in gone}
    found = timeline(
        [jax for jax in present if jax not in gone],
        seen,
        {jax: frozenset(names) for jax, names in judged.items()},
        frozenset(of_it),
        partial(_bounded, cause, implementation, kind, versions),
    )
    return {jax: found.get(jax, asking.get(jax, REMOVED)) for jax in versions}


def _asking(tests: Mapping[str, Seen]) -> Found:
    some = [one.effect for one in tests.values() if one.effect is not None]
    if not some:
        return REMOVED
    return Found(State.AFFECTED, min(some, key=lambda effect: effect.rank))


def _test(key: CellKey) -> str:
    return f"{key.clause} {key.topology}"


def _seen(
    effects: Effects,
    key: CellKey,
    outcome: Outcome,
    shown: frozenset[CellKey],
    effect_of: _Effects,
) -> Seen:
    shows = key in shown
    holds = outcome.verdict is Verdict.CONFORMS
    by = "" if shows or holds else effects.cause_of(key.clause, outcome)
    raises = not shows and _raises(effects, key)
    return Seen(shows, effect_of(key) if shows else None, holds, by, raises)


def _raises(effects: Effects, key: CellKey) -> bool:
    digest = effects.digest_of(key)
    return digest is not None and any(
        step.outcome == RAISED and step.name != WITHOUT_THE_FIX for _, step in digest.steps()
    )


def _bounded(
    cause: Cause,
    implementation: str,
    kind: str,
    versions: Sequence[str],
    jax: str,
    before: str,
    after: str,
) -> bool:
    """Return whether the issue's program was run in a version, and does there as on both sides.

    It was run in the first and the last version of a range that ends between two releases.
    """
    for one in cause.shows:
        several = any(not topology.startswith("1x") for topology in one.topology)
        if implementation not in one.implementation or (kind == KINDS[1]) != several:
            continue
        if not one.jax:
            continue
        inside = [version for version in versions if SpecifierSet(one.jax).contains(version)]
        if jax in inside and before in inside and after in inside:
            ends = {inside[0], inside[-1]} - {versions[0], versions[-1]}
            if jax in ends:
                return True
    return False


class _Effects:
    """What the cells that show one issue do to a program; None if that is nothing new."""

    def __init__(self, effects: Effects, cause: Cause, shown: frozenset[CellKey]) -> None:
        self._effects = effects
        self._cause = cause
        self._shown = shown
        self._baseline = baseline(effects.results)

    def __call__(self, key: CellKey) -> Effect | None:
        effect = self._effect_at(key)
        if effect is Effect.SAME and self._prints_otherwise(key):
            return Effect.OTHER_OUTPUT
        if effect is None or effect in _NO_CHANGE:
            return None
        if effect is Effect.WRONG_NUMBERS and self._cause.cause in rewrites().output_only:
            return Effect.OTHER_OUTPUT
        return effect

    def _effect_at(self, key: CellKey) -> Effect | None:
        effects = self._effects
        hazards = effects.alone(key)
        if hazards:
            return min((one.effect for one in hazards), key=lambda some: some.rank)
        if key.implementation == JAX or rewrites().library_of(self._cause.cause):
            return self._of_plain(key)
        shown = effects.from_baseline(key, self._baseline, failing=True)
        if shown is not None and self._of_another(shown, key):
            own = effects.beside(Effect.WARNS, key, self._baseline)
            return self._said_otherwise(key) if own is Effect.SAME else own
        if shown is not None:
            # An array of all processes' rows, as documented.
            wrong = shown.effect is Effect.WRONG_NUMBERS
            all_rows = wrong and key.implementation == SHARD_MAP
            if shown.effect is Effect.SAME:
                return self._said_otherwise(key)
            if not all_rows:
                return shown.effect
            beside = effects.beside(Effect.WRONG_NUMBERS, key, self._baseline)
            return min(beside, Effect.LIES_ELSEWHERE, key=lambda effect: effect.rank)
        digest = effects.digest_of(key)
        effect = Effect.SAME if digest is None else unlike_expected(digest)
        if effect is Effect.SAME and _raises(effects, key):
            return Effect.RAISES
        costs = digest is not None and key.implementation != LEGACY and _moves(digest)
        return Effect.MOVES_MORE if effect is Effect.SAME and costs else effect

    def _of_another(self, shown: ShownEffect, key: CellKey) -> bool:
        """Return whether it is a warning of another known issue, which the program meets too."""
        if shown.effect is not Effect.WARNS or self._baseline is None:
            return False
        legacy, target = self._baseline.place
        why = self._effects.why(shown, key._replace(implementation=legacy, target=target), key)
        known = self._effects.results.causes.get(why.slug)
        if why.by is not By.CAUSE or known is None:
            return False
        own = self._cause.cause
        return own not in (known.cause, known.part_of) and known.cause != self._cause.part_of

    def _said_otherwise(self, key: CellKey) -> Effect:
        """Return whether the same result comes with another text: an error of the same type that
        says something else than the baseline's, or without the baseline's warning.
        """
        assert self._baseline is not None  # of which there is an effect
        legacy, target = self._baseline.place
        before = self._effects.digest_of(key._replace(implementation=legacy, target=target))
        after = self._effects.digest_of(key)
        if before is None or after is None:
            return Effect.SAME
        right = {(process, step.name): step for process, step in before.steps() if not step.failed}
        for process, step in after.steps():
            was = right.get((process, step.name))
            if was is None or not step.failed:
                continue
            if was.outcome == step.outcome == RAISED:
                return Effect.OTHER_ERROR
            if was.warnings and any(one.code == WARNING for one in step.failed):
                return Effect.WARNS
        return Effect.SAME

    def _prints_otherwise(self, key: CellKey) -> bool:
        """Return whether the issue's program prints something else under the newest legacy pmap,
        and an error under neither: a test need not notice what a user can print.
        """
        if self._baseline is None or key.implementation in (JAX, LEGACY):
            return False
        before = self._printed(LEGACY, self._baseline.jax)
        after = self._printed(key.implementation, key.target.jax or "")
        if not before or not after or not before.isdisjoint(after):
            return False
        return not any(map(_names_an_error, before | after))

    def _printed(self, implementation: str, jax: str) -> frozenset[str]:
        """Return what the program prints where it ends as it should; its processes differ."""
        return frozenset(
            one.prints
            for one in self._cause.shows
            if implementation in one.implementation
            if not one.raises and not one.ends
            if not one.jax or SpecifierSet(one.jax).contains(jax)
        )

    def _of_plain(self, key: CellKey) -> Effect | None:
        """Return what changed from the newest version in which the program does not show it."""
        after = self._effects.digest_of(key)
        if after is None:
            return None
        found = None
        for before in self._free(key):
            digest = self._effects.digest_of(before)
            if digest is not None:
                found = self._effects.derive(digest, after).effect
                break
        if found is not None and found not in _NO_CHANGE:
            return found
        outcome = self._effects.results.outcomes[key]
        if _needs_more(outcome.runs[-1].cell):
            return Effect.NEEDS_MORE_MEMORY
        return job_failure(after) if found is None else None

    def _free(self, key: CellKey) -> Iterator[CellKey]:
        targets = self._effects.results.targets
        for target in sorted(targets, key=lambda one: version_order(one.jax or ""), reverse=True):
            other = key._replace(target=target.key)
            if other not in self._shown:
                yield other


def _moves(digest: Digest) -> bool:
    """Return whether a step communicates otherwise than its test expects."""
    return any(one.code == COLLECTIVE for _, step in digest.steps() for one in step.failed)


def _names_an_error(prints: str) -> bool:
    return "Error" in prints or "Exception" in prints


def _needs_more(cell: Cell) -> bool:
    """Return whether a replacement's peak is above that of what it replaces, in one cell."""
    for observation in cell.observations:
        peaks = {
            step.get("name"): _peak(step)
            for step in observation.get("steps", ())
            if isinstance(step, dict)
        }
        before = next((peaks[name] for name in _BEFORE if peaks.get(name) is not None), None)
        after = peaks.get(_REPLACEMENT)
        if before is not None and after is not None and after - before >= _MORE:
            return True
    return False


def _peak(step: Mapping[str, Any]) -> float | None:
    extra = step.get("extra")
    found = extra.get(_PEAK) if isinstance(extra, dict) else None
    return float(found) if isinstance(found, int | float) else None
