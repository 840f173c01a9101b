"""Expectations of one step that are made of others, and of what a step returned."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from conformance.spec.aspects import OUTCOME
from conformance.spec.emissions import EmissionPattern
from conformance.spec.expectation import OfEachStep
from conformance.spec.observation import Step
from conformance.spec.topology import Place


def of_result(
    text: str,
    check: Callable[[Place, Step], tuple[bool, str]],
    *,
    claims: Iterable[str] = OUTCOME,
    emits: tuple[EmissionPattern, ...] = (),
) -> OfEachStep:
    """Expect `check(place, step)` of every step; a step that raised fails.

    `check` returns whether it holds, and what was seen.
    """

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        return check(place, step) if step.raised is None else (False, str(step))

    return OfEachStep(text, check_step, claims=frozenset(claims), emits=emits)


def on_one_device(
    text: str,
    number: Callable[[Place], int],
    *,
    committed: bool | None,
    claims: Iterable[str],
) -> OfEachStep:
    """Expect each array of a result to be on one device alone, that of `number`; and to be
    committed to it or not, unless `committed` is None.
    """

    def check(place: Place, step: Step) -> tuple[bool, str]:
        seen = [(leaf.sharding["devices"], leaf.committed) for leaf in step.leaves if leaf.sharding]
        right = bool(seen) and all(
            where == [number(place)] and (committed is None or bound == committed)
            for where, bound in seen
        )
        if committed is None:
            return right, "; ".join(f"on {where}" for where, _ in seen)
        return right, "; ".join(
            f"on {where}, {'committed' if bound else 'not committed'}" for where, bound in seen
        )

    return of_result(text, check, claims=claims)


def any_of(*parts: OfEachStep) -> OfEachStep:
    """Expect one of `parts`; a step that fails all of them is described as by the first."""

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        seen = [part.check_step(place, step) for part in parts]
        return next((one for one in seen if one[0]), seen[0])

    text = ", or ".join(part.text for part in parts)
    return OfEachStep(text, check_step, claims=frozenset().union(*(part.claims for part in parts)))


def by_process(
    where: Callable[[Place], bool], there: OfEachStep, elsewhere: OfEachStep, text: str
) -> OfEachStep:
    """Expect `there` in the processes for which `where` holds, and `elsewhere` in the others."""

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        return (there if where(place) else elsewhere).check_step(place, step)

    return OfEachStep(text, check_step, claims=there.claims | elsewhere.claims)


def then(first: OfEachStep, second: OfEachStep, text: str) -> OfEachStep:
    """Expect `first`, and where that holds `second`; the first that fails is reported."""

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        holds, saw = first.check_step(place, step)
        return second.check_step(place, step) if holds else (False, saw)

    return OfEachStep(text, check_step, claims=first.claims | second.claims)
