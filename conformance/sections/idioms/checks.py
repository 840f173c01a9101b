"""What a program in a loop is tested for: its values, and four further checks of the same run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from conformance.sections.idioms import AGAIN, ENDS_WELL, GIVEN_UP, LIES, MOVED, STEPS, Idiom
from conformance.spec.clause import check, devices
from conformance.spec.columns import Columns, everywhere, of_jax, unless_legacy
from conformance.spec.comparing import Model
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import every, in_steps, not_applicable, noted, returns, steps
from conformance.spec.expected import Expectation
from conformance.spec.names import NEW_PMAP, SHARD_MAP
from conformance.spec.topology import Place

LATER = STEPS[2:]  # once arguments are what the steps before them returned
MANY = 20  # traces of a body in one step: more than any program here has reason for

TITLES = {
    "values": "{idiom.text} in a loop: the values equal the NumPy model's.",
    "no-retrace": "{idiom.text} in a loop: nothing is traced or compiled after the second step.",
    "same-devices": "{idiom.text} in a loop: outputs stay on the same devices, in order.",
    "no-new-collective": (
        "{idiom.text} in a loop: a step communicates no more than its collectives need."
    ),
    "donated": "{idiom.text} in a loop: donated arguments are deleted.",
}
# Of the tables of helpers and recipes.
OTHER_TITLES = TITLES | {
    "values": "{idiom.text} in a loop: the model's numbers.",
    "same-devices": "{idiom.text} in a loop: results stay on their devices, in order.",
    "no-new-collective": ("{idiom.text} in a loop: a step communicates what its collectives need."),
    "donated": "{idiom.text} in a loop: each step deletes the state passed to it.",
}


def in_a_loop(
    *,
    titles: Mapping[str, str] = TITLES,
    not_by_shard_map: Mapping[str, str] | None = None,
    maps_nothing: Collection[str] = (),
) -> Defaults:
    """Return what the tables of patterns have in common, with the further checks of a run.

    `not_by_shard_map` says, by the keys of rows, why shard_map is not tested; rows whose keys are
    in `maps_nothing` are tested for JAX itself.
    """

    def columns(idiom: Idiom, expected: Columns) -> Columns:
        if idiom.key in maps_nothing:
            return of_jax(expected[NEW_PMAP])
        why = (not_by_shard_map or {}).get(idiom.key)
        return expected if why is None else expected | {SHARD_MAP: not_applicable(why)}

    return Defaults(
        needs=devices(2),
        title=titles["values"],
        expect=lambda idiom: columns(idiom, everywhere(numbers(idiom))),
        also=(
            check(
                "no-retrace",
                claim="pmap-silence.no-retrace-in-a-loop",
                title=titles["no-retrace"],
                only=lambda idiom: not idiom.compiles and not idiom.refused,
                expect=lambda idiom: columns(idiom, everywhere(steady())),
            ),
            check(
                "same-devices",
                claim="pmap-silence.same-devices-in-a-loop",
                title=titles["same-devices"],
                only=lambda idiom: idiom.order is not None and not idiom.refused,
                expect=lambda idiom: columns(idiom, everywhere(in_place(idiom))),
            ),
            check(
                "no-new-collective",
                claim="pmap-silence.no-new-collective",
                title=titles["no-new-collective"],
                only=lambda idiom: not idiom.refused,
                expect=lambda idiom: columns(idiom, communicates(idiom)),
            ),
            check(
                "donated",
                claim="pmap-silence.donated-state",
                title=titles["donated"],
                only=lambda idiom: idiom.gives,
                expect=everywhere(gave_up()),
            ),
        ),
    )


def in_a_jit() -> Defaults:
    """Return what the tables of patterns without a mapped function have in common."""
    start = "{idiom.text} in a loop of a plain jit"
    return Defaults(
        claim="pmap-silence.jit-with-shardings",
        needs=devices(2),
        title=f"{start} over sharded arrays: the values equal the NumPy model's.",
        expect=lambda idiom: of_jax(numbers(idiom)),
        also=(
            check(
                "no-retrace",
                title=f"{start}: nothing is compiled after the second step.",
                expect=of_jax(steady()),
            ),
            check(
                "no-new-collective",
                title=f"{start}: a step communicates no more than the mapped function's.",
                expect=lambda idiom: of_jax(communicates(idiom)[NEW_PMAP]),
            ),
            check(
                "donated",
                title=f"{start}: donated arguments are deleted.",
                only=lambda idiom: idiom.gives,
                expect=of_jax(gave_up()),
            ),
            check(
                "same-devices",
                title=f"{start}: results stay on their devices, in order.",
                only=lambda idiom: idiom.order is not None,
                expect=lambda idiom: of_jax(in_place(idiom)),
            ),
        ),
    )


def of_the_mapped(idiom: Idiom) -> str:
    """Why a pattern without a mapped function is not run in several processes."""
    return "the same pattern under pmap runs in one process only" if idiom.left_out else ""


NO_ERROR = in_steps(ENDS_WELL, *STEPS)


def numbers(idiom: Idiom) -> Expectation:
    """The model's numbers in each step."""

    def after(model: Callable[[Place, int], Any], n: int) -> Model:
        return lambda place: model(place, n)

    def right(n: int) -> Expectation:
        mistakes = {name: after(model, n) for name, model in idiom.mistakes.items()}
        text = f"what the model holds after step {n}"
        return returns(after(idiom.model, n), text=text, mistakes=mistakes)

    named = [in_steps(right(n), name) for n, name in enumerate(STEPS, 1)]
    return every(*named)


def steady() -> Expectation:
    """The first step traces the body; from the third on nothing is traced or compiled."""

    def nothing(place: Place, seen: Any) -> bool:
        return bool(seen == {"traced": 0, "compiled": 0})

    return every(
        NO_ERROR,
        steps(step_1=noted(AGAIN, "the body is traced", lambda _, seen: 0 < seen["traced"] < MANY)),
        in_steps(noted(AGAIN, "nothing is traced or compiled again", nothing), *LATER),
    )


def in_place(idiom: Idiom) -> Expectation:
    """The rows of the results lie on the same devices in the same order after each step."""
    order = idiom.order

    def holds(place: Place, seen: Any) -> bool:
        return bool(seen == ([] if order is None else [order(place)]))

    lies = noted(LIES, "the rows lie on the map's devices, in their order", holds)
    return every(NO_ERROR, in_steps(lies, *STEPS))


def communicates(idiom: Idiom) -> Columns:
    """A step communicates what its program says, and no more."""

    def only(moves: Callable[[Place], Mapping[str, int]]) -> Expectation:
        def all_of_it(place: Place, seen: Any) -> bool:
            return bool(seen == {"collectives": dict(moves(place))})

        def no_more(place: Place, seen: Any) -> bool:
            own = moves(place)
            return all(size <= own.get(kind, 0) for kind, size in seen["collectives"].items())

        need = "what the program's own collectives need"
        first = noted(MOVED, need, all_of_it, compiled=True)
        more = "no more in what is compiled later"
        later = noted(MOVED, more, no_more, at_most=True, compiled=True)
        return every(NO_ERROR, in_steps(first, STEPS[0]), in_steps(later, *STEPS[1:]))

    return unless_legacy(only(idiom.of_legacy or idiom.moves), only(idiom.moves))


def gave_up() -> Expectation:
    """Every array that a step donated is deleted, from the second step on."""

    def holds(place: Place, seen: Any) -> bool:
        return bool(seen) and all(seen)

    return every(
        NO_ERROR, in_steps(noted(GIVEN_UP, "each donated array is deleted", holds), *STEPS[1:])
    )
