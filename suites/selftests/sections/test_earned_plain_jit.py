"""Wrong JAX that the clauses on plain jit must notice: wrong numbers, rows and communication."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from fabricated import Steps, judgement_of, verdict_of
from real import catalogue
from records import gave, leaf, returned

from conformance.model.verdicts import Verdict
from conformance.patterns import PATTERNS
from conformance.sections.idioms import MOVED, STEPS, Idiom, jitted_checkpoints, jitted_memory
from conformance.sections.idioms.kernel_bodies import CALLS, KERNELS, Kernel, ends_of
from conformance.sections.idioms.saving import RESUMED, SAVED, after, again
from conformance.sections.idioms.sized import MULTIPLE, Sized
from conformance.sections.timing.patterns import NOT_REPEATED
from conformance.spec.clause import Clause
from conformance.spec.containers import flattened
from conformance.spec.names import JAX, NEW_PMAP
from conformance.spec.observation import from_json
from conformance.spec.topology import Place, Topology
from reports.render.site.jitted import AT_SIZE, plain_jits

PAIRS = [pair for pairs in PATTERNS.values() for pair in pairs]
JITS = sorted({jitted for _, jitted in PAIRS})
CONSTANT = "idioms.jit.barrier"  # counts the devices, in each step
SUFFIX = ".no-new-collective"

Change = Callable[[list[Any], int], list[Any]]


def clause_of(id: str) -> Clause:
    return catalogue().clauses[id]


def idiom_of(id: str) -> Idiom:
    row: Idiom
    (row,) = clause_of(id).rows.values()
    return row


def topologies_of(id: str) -> list[Topology]:
    return [Topology(*map(int, str(one).split("x"))) for one in clause_of(id).topologies]


def steps_of(idiom: Idiom, change: Change = lambda leaves, n: leaves) -> Steps:
    """The steps of a program, in each of which `change(leaves, n)` replaces its leaves."""

    def of(place: Place) -> list[Any]:
        found = []
        for n, name in enumerate(STEPS, 1):
            value = idiom.model(place, n)
            found.append(gave(with_leaves(value, iter(change(flattened(value)[0], n))), name=name))
        return found

    return of


def with_leaves(value: Any, leaves: Iterator[Any]) -> Any:
    """Return the same containers with other leaves, in JAX's order."""
    if isinstance(value, dict):
        return {key: with_leaves(value[key], leaves) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return type(value)([with_leaves(one, leaves) for one in value])
    return next(leaves)


@pytest.mark.parametrize("id", JITS)
def test_the_models_numbers_conform(id: str) -> None:
    for topology in topologies_of(id):
        found = judgement_of(id, JAX, topology, steps_of(idiom_of(id)))
        assert found.verdict == Verdict.CONFORMS, found.reason


@pytest.mark.parametrize("id", JITS)
def test_a_wrong_number_in_any_array_deviates(id: str) -> None:
    idiom, topology = idiom_of(id), topologies_of(id)[-1]
    for at in range(len(flattened(idiom.model(Place(topology, 0), 1))[0])):
        wrong_step = at % len(STEPS) + 1

        def wrong(leaves: list[Any], n: int, at: int = at, step: int = wrong_step) -> list[Any]:
            changed = [np.array(one) for one in leaves]
            first = changed[at].flat[0]
            if n == step:
                changed[at].flat[0] = not first if changed[at].dtype == bool else first + 1
            return changed

        assert verdict_of(id, JAX, topology, steps_of(idiom, wrong)) == Verdict.DEVIATES, at


@pytest.mark.parametrize("id", [id for id in JITS if id != CONSTANT])
def test_a_program_that_stays_at_its_first_step_deviates(id: str) -> None:
    idiom = idiom_of(id)

    def stuck(place: Place) -> list[Any]:
        return [gave(idiom.model(place, 1), name=name) for name in STEPS]

    assert verdict_of(id, JAX, topologies_of(id)[-1], stuck) == Verdict.DEVIATES


def in_rows(id: str, topology: Topology) -> bool:
    """Return whether a program's results have a row for each device, not all of them equal."""
    leaves = flattened(idiom_of(id).model(Place(topology, 0), 1))[0]
    rows = [np.asarray(one) for one in leaves if np.shape(one)[:1] == (topology.devices,)]
    return any((one != one[:1]).any() for one in rows)


@pytest.mark.parametrize("id", [id for id in JITS if in_rows(id, Topology(1, 8))])
def test_rows_in_another_order_deviate(id: str) -> None:
    def reversed_rows(leaves: list[Any], n: int) -> list[Any]:
        return [one[::-1] if np.ndim(one) else one for one in map(np.asarray, leaves)]

    steps = steps_of(idiom_of(id), reversed_rows)
    assert verdict_of(id, JAX, Topology(1, 8), steps) == Verdict.DEVIATES


@pytest.mark.parametrize(("mapped", "jitted"), PAIRS)
def test_a_plain_jit_may_communicate_no_more_than_the_map(mapped: str, jitted: str) -> None:
    for topology in topologies_of(jitted):
        place = Place(topology, 0)
        own, most = idiom_of(jitted).moves(place), idiom_of(mapped).moves(place)
        assert sum(own.values()) <= sum(most.values()), (own, most)


@pytest.mark.parametrize("id", JITS)
def test_more_communication_than_its_own_deviates(id: str) -> None:
    topology = topologies_of(id)[0]
    idiom = idiom_of(id)
    own = dict(idiom.moves(Place(topology, 0)))

    def verdict(collectives: dict[str, int]) -> str:
        def of(place: Place) -> list[Any]:
            seen = [collectives, *[{}] * (len(STEPS) - 1)]
            return [
                gave(idiom.model(place, n), name=name, extra={MOVED: {"collectives": one}})
                for n, (name, one) in enumerate(zip(STEPS, seen, strict=True), 1)
            ]

        return verdict_of(f"{id}{SUFFIX}", JAX, topology, of)

    assert verdict(own | {"all-to-all": 4}) == Verdict.DEVIATES
    assert verdict({kind: size * 2 for kind, size in own.items()} or {"all-gather": 4}) == (
        Verdict.DEVIATES
    )


def test_each_plain_jit_of_a_pattern_is_in_the_catalogue() -> None:
    assert not set(plain_jits()) - set(catalogue().clauses)


# --- At size, checkpoints, memory -----------------------------------------------------------------

Correct = Callable[[Place], list[Any]]


def computed(kernel: Kernel) -> Correct:
    return lambda place: [gave(ends_of(kernel)(place), name=name) for name in CALLS]


def resumed(place: Place) -> list[Any]:
    state = jitted_checkpoints.one_copy(after(place, 2))
    return [gave(np.array(True), name=SAVED), gave(state, name=RESUMED)]


def measured(idiom: Sized) -> Correct:
    def of(place: Place) -> list[Any]:
        peak = {"what": idiom.text, "multiple": round(idiom.needs(place), 2)}
        return [
            returned(name="known", extra={"known": 1.0}),
            returned(name="peak", extra={MULTIPLE: peak}),
            gave(idiom.model(place), name="values"),
        ]

    return of


OTHERS: dict[str, Correct] = {
    **{f"idioms.jit-at-size.{key}": computed(kernel) for key, kernel in KERNELS.items()},
    **{f"idioms.jit-checkpoints.{key}": resumed for key in jitted_checkpoints.FORMS},
    **{f"idioms.jit-memory.{key}": measured(one) for key, one in jitted_memory.LOOPS.items()},
}


@pytest.mark.parametrize("id", OTHERS)
def test_what_the_others_have_to_record_conforms(id: str) -> None:
    for topology in topologies_of(id):
        found = judgement_of(id, JAX, topology, OTHERS[id])
        assert found.verdict == Verdict.CONFORMS, found.reason


@pytest.mark.parametrize("id", OTHERS)
def test_a_wrong_number_in_any_array_of_the_others_deviates(id: str) -> None:
    topology = topologies_of(id)[-1]
    last = OTHERS[id](Place(topology, 0))[-1]["value"]["leaves"]
    for at in range(len(last)):

        def wrong(place: Place, at: int = at) -> list[Any]:
            steps = OTHERS[id](place)
            leaves = steps[-1]["value"]["leaves"]
            one = leaves[at]
            array = from_json(one["values"], one["dtype"], one["shape"])
            leaves[at] = leaf(array * 2 + 1)
            return steps

        assert verdict_of(id, JAX, topology, wrong) == Verdict.DEVIATES, at


@pytest.mark.parametrize("key", jitted_memory.LOOPS)
@pytest.mark.parametrize("copy", [-0.125, 0.125])
def test_a_copy_more_or_less_deviates(key: str, copy: float) -> None:
    id = f"idioms.jit-memory.{key}"

    def wrong(place: Place) -> list[Any]:
        known, peak, values = OTHERS[id](place)
        note = peak["extra"][MULTIPLE]
        peak["extra"] = {MULTIPLE: note | {"multiple": note["multiple"] + copy}}
        return [known, peak, values]

    assert verdict_of(id, JAX, Topology(1, 8), wrong) == Verdict.DEVIATES


@pytest.mark.parametrize("key", jitted_checkpoints.FORMS)
def test_a_step_from_the_state_before_deviates(key: str) -> None:
    def wrong(place: Place) -> list[Any]:
        state = jitted_checkpoints.one_copy(again(place))
        return [resumed(place)[0], gave(state, name=RESUMED)]

    id = f"idioms.jit-checkpoints.{key}"
    assert verdict_of(id, JAX, Topology(1, 8), wrong) == Verdict.DEVIATES


def test_a_step_of_each_pattern_is_timed_beside_the_plain_jits() -> None:
    timed = {one.timing.illustrates for one in catalogue().clauses.values() if one.timing}
    assert {*PAIRS, *AT_SIZE} - timed == {pair for pair in PAIRS if pair[0] == NOT_REPEATED}


@pytest.mark.parametrize("contender", ["mapped", "plain jit"])
def test_wrong_numbers_in_either_loop_are_not_timed(contender: str) -> None:
    id = "timing.pattern.training-pmean"
    (pair,) = clause_of(id).rows.values()
    (topology,) = topologies_of(id)

    def of(place: Place, wrong: str) -> list[Any]:
        values = {
            "mapped": idiom_of(pair.mapped).model(place, 3),
            "plain jit": idiom_of(pair.jitted).model(place, 3),
        }
        return [
            gave((values[name][0] + (name == wrong), values[name][1]), name=name) for name in values
        ]

    assert verdict_of(id, NEW_PMAP, topology, lambda place: of(place, "")) == Verdict.CONFORMS
    assert verdict_of(id, NEW_PMAP, topology, lambda place: of(place, contender)) == (
        Verdict.DEVIATES
    )
