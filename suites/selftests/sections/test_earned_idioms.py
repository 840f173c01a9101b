"""Wrong JAX that the clauses on the patterns' memory must notice: copies, stale states, wrong
values between.

Each case is a fabricated observation, judged with the real clause and the real deviation entries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fabricated import NEWEST, verdict_of
from records import gave, raised, returned

from conformance.model.verdicts import Verdict
from conformance.sections.idioms import memory, sized
from conformance.spec.comparing import RELATIVE_TOLERANCE
from conformance.spec.containers import flattened
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.topology import Place, Topology

LAST_WITH_LEGACY = "0.9.2"
ONE, TWO = Topology(1, 8), Topology(2, 2)
COPY = 0.125  # of a state, what one of eight devices has of it: the least that must be noticed


Json = dict[str, Any]


# What legacy pmap's way to prefetch warns of.
DEPRECATED = {
    "category": "DeprecationWarning",
    "message": "jax.device_put_sharded is deprecated; use jax.device_put instead.",
    "count": 1,
}


def right(key: str, topology: Topology = ONE) -> list[Json]:
    """The steps of a cell that needs what it has to, and returns what it has to."""
    idiom, place = memory.LOOPS[key], Place(topology, 0)
    shown = idiom.model(place)
    peak = {"what": idiom.text, "multiple": round(idiom.needs(place), 2)}
    return [
        returned(name="known", extra={"known": 1.0}),
        returned(
            name="peak",
            extra={sized.MULTIPLE: peak},
            warnings=[DEPRECATED] if key == "prefetched" else [],
        ),
        gave(shown, name="values"),
    ]


def verdict(
    key: str,
    steps: list[Json],
    implementation: str = LEGACY_PMAP,
    jax: str = LAST_WITH_LEGACY,
    topology: Topology = ONE,
) -> str:
    """Return the verdict on a cluster whose processes all recorded these steps."""
    return verdict_of(f"idioms.memory.{key}", implementation, topology, steps, jax=jax)


def with_multiple(key: str, multiple: float) -> list[Json]:
    known, peak, values = right(key)
    note = {**peak["extra"][sized.MULTIPLE], "multiple": multiple}
    return [known, {**peak, "extra": {sized.MULTIPLE: note}}, values]


EACH = list(memory.LOOPS)


@pytest.mark.parametrize("key", EACH)
def test_the_memory_of_legacy_conforms(key: str) -> None:
    assert verdict(key, right(key)) == Verdict.CONFORMS


@pytest.mark.parametrize("key", EACH)
def test_a_copy_more_or_less_deviates(key: str) -> None:
    needs = memory.LOOPS[key].needs(Place(ONE, 0))
    for wrong in (needs + COPY, needs - COPY, 0.0, 10 * needs):
        assert verdict(key, with_multiple(key, wrong)) == Verdict.DEVIATES, wrong


@pytest.mark.parametrize("key", EACH)
def test_a_measure_that_is_wrong_of_the_known_proves_nothing(key: str) -> None:
    for known in (0.0, 0.9, 1.1):
        first, *rest = right(key)
        assert verdict(key, [{**first, "extra": {"known": known}}, *rest]) == Verdict.DEVIATES


@pytest.mark.parametrize("key", EACH)
def test_a_step_that_was_not_measured_deviates(key: str) -> None:
    known, peak, values = right(key)
    failed = raised("RuntimeError", "RESOURCE_EXHAUSTED", name="peak", phase="execute")
    for one in ({**peak, "extra": {}}, failed, {**failed, "extra": peak["extra"]}):
        assert verdict(key, [known, one, values]) == Verdict.DEVIATES
    assert verdict(key, [known, values]) == Verdict.DEVIATES


@pytest.mark.parametrize("key", EACH)
def test_wrong_numbers_deviate(key: str) -> None:
    known, peak, values = right(key)
    shown = memory.LOOPS[key].model(Place(ONE, 0))
    leaves, tree = flattened(shown)
    for at in range(len(leaves)):
        wrong = [one if n != at else one * 0 - 777 for n, one in enumerate(leaves)]
        step = returned(*wrong, name="values", tree=tree)
        assert verdict(key, [known, peak, step]) == Verdict.DEVIATES
    for step in (
        returned(*leaves[1:], name="values", tree=tree),
        returned(*leaves, name="values", tree="PyTreeDef((*,))"),
    ):
        assert verdict(key, [known, peak, step]) == Verdict.DEVIATES
    assert verdict(key, [known, peak, {**values, "value": {"leaves": []}}]) == Verdict.DEVIATES


@pytest.mark.parametrize(
    ("key", "implementation", "multiple", "expected"),
    [
        (key, implementation, multiple, expected)
        for key in ("indexed", "row-fetched")
        for implementation in (NEW_PMAP, SHARD_MAP)
        for multiple, expected in (
            (2.5, Verdict.KNOWN_DEVIATION),
            (2.63, Verdict.DEVIATES),
            (2.38, Verdict.DEVIATES),
            (25.0, Verdict.DEVIATES),
        )
    ],
)
def test_a_row_on_each_device_is_known_and_more_is_not(
    key: str, implementation: str, multiple: float, expected: str
) -> None:
    assert verdict(key, with_multiple(key, multiple), implementation, NEWEST) == expected


@pytest.mark.parametrize("key", ["indexed", "row-fetched"])
def test_it_explains_no_wrong_numbers(key: str) -> None:
    known, peak, values = with_multiple(key, 2.5)
    garbage = returned(*[np.zeros((1, 4), np.float32)] * 4, name="values")
    assert verdict(key, [known, peak, values], NEW_PMAP, NEWEST) == Verdict.KNOWN_DEVIATION
    assert verdict(key, [known, peak, garbage], NEW_PMAP, NEWEST) == Verdict.DEVIATES


def test_legacy_is_excused_for_nothing() -> None:
    assert verdict("indexed", with_multiple("indexed", 2.5)) == Verdict.DEVIATES


@pytest.mark.parametrize("topology", [ONE, TWO])
def test_the_rows_of_examples_make_the_whole(topology: Topology) -> None:
    place = Place(topology, topology.processes - 1)
    shown = []
    for table in whole_tables(place, 2):
        copies = np.stack([table.astype(np.float32)] * topology.devices_per_process)
        shown += sized.ends_and_sum(copies)
    leaves, _ = flattened(sized.tables_after(2)(place))
    for one, other in zip(leaves, shown, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("topology", [ONE, TWO])
def test_scores_are_of_the_whole(topology: Topology) -> None:
    place = Place(topology, 0)
    for n in (0, 1):
        items, _users = whole_tables(place, n)
        outputs = np.einsum("rw,dbw->b", items, sized.features(place), optimize=True)
        scores = sized.scored(place, sized.rows_of(place), n)
        assert scores.shape == (topology.devices_per_process, sized.BATCH)
        np.testing.assert_allclose(scores, np.broadcast_to(outputs, scores.shape), rtol=1e-6)


@pytest.mark.parametrize("topology", [ONE, TWO])
def test_each_row_is_one_examples(topology: Topology) -> None:
    place = Place(topology, 0)
    which, targets = sized.examples(place, 1)
    last = sized.rows_of(place) - 1
    assert targets.shape == which.shape[:2]
    for at in range(sized.LEAVES):
        rows = which[..., at].ravel().tolist()
        assert len(set(rows)) == len(rows)
        assert {min(rows), max(rows)} == {0, last}


@pytest.mark.parametrize(("n", "other"), [(1, 0), (1, 2), (2, 1), (2, 3)])
def test_the_state_of_another_step_differs_in_each_leaf(n: int, other: int) -> None:
    for place in (Place(ONE, 0), Place(TWO, 1)):
        leaves = (flattened(sized.tables_after(k)(place))[0] for k in (n, other))
        for one, another in zip(*leaves, strict=True):
            assert not np.allclose(one, another, rtol=RELATIVE_TOLERANCE, atol=0)


def test_an_example_left_out_shows_in_the_sums() -> None:
    place = Place(ONE, 0)
    changes = {
        name: (rows - sized.descent(place, 0)[name]).sum(-1)
        for name, rows in sized.descent(place, 1).items()
    }
    least = RELATIVE_TOLERANCE * sized.table_sum(sized.rows_of(place))
    for name, of_each in changes.items():
        assert (np.abs(of_each) > least).all(), name


def test_what_is_not_at_the_ends_is_in_the_sum() -> None:
    copies = np.ones((3, 8, 4), np.float32)
    before = sized.ends_and_sum(copies)
    copies[1, 4, 2] = 2
    ends, sums = sized.ends_and_sum(copies)
    np.testing.assert_array_equal(ends, before[0])
    np.testing.assert_array_equal(sums - before[1], [0, 1, 0])


def test_the_loops_state_has_the_bytes_that_peaks_are_measured_in() -> None:
    for place in (Place(ONE, 0), Place(TWO, 1)):
        for leaves in (1, sized.LEAVES):
            table = sized.initial(sized.rows_of(place, leaves), np)
            copies = leaves * place.topology.devices_per_process
            assert table.nbytes * copies == sized.STATE_BYTES
            assert table.sum(dtype=np.float64) == sized.table_sum(len(table))


def whole_tables(place: Place, n: int) -> list[Any]:
    """Items and users after `n` steps, every row of them."""
    which, _ = sized.examples(place, n)
    tables = []
    for at, name in ((1, "items"), (0, "users")):
        table = sized.initial(sized.rows_of(place), np).astype(np.float64)
        table[which[..., at].ravel()] = sized.descent(place, n)[name]
        tables.append(table)
    return tables
