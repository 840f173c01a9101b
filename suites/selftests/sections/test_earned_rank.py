"""Wrong JAX that rank, rewriting and sharded_computation must notice, as fabricated observations.

Each observation is what a broken JAX would give. It must neither conform nor be excused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from fabricated import verdict_of
from judged import crashed
from records import Record, raised, returned

from conformance.model.verdicts import Verdict
from conformance.sections.rank.bodies import (
    ADJUSTED,
    OUTCOME,
    SAMPLE,
    UNCHANGED,
    Refusal,
    mixed,
    outcomes,
    reduced,
)
from conformance.sections.rank.other_functions import keys, shuffled
from conformance.sections.rewriting import WIDTH
from conformance.spec.names import JAX, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.topology import Place, Topology

ONE = Topology(1, 8)
PLACE = Place(ONE, 0)
CALLS = ("first call", "second call")


def verdict(id: str, implementation: str, jax: str, *steps: Record, **other: Any) -> str:
    return verdict_of(id, implementation, ONE, steps, jax=jax, **other)


def moved(unchanged: Sequence[Record], wanted: Any) -> list[Record]:
    """The steps of a body moved to shard_map, all right but for the unchanged ones."""
    return [*unchanged, *(returned(wanted, name=name) for name in ADJUSTED)]


def refused(*args: Any, **options: Any) -> list[Record]:
    return [
        raised(*args, name=name, **options) | {"extra": {OUTCOME: "error"}} for name in UNCHANGED
    ]


TOO_LONG = (
    "shard_map applied to the function '<lambda>' was given an out_specs entry which is too long "
    "to be compatible: out_specs is P('i',) which has length 1, but\n<lambda>(*args) has shape "
    "int32[]{V:i}, which has rank 0 (and 0 < 1)"
)
ARGMAX = reduced(np.argmax, mixed(4))(SAMPLE)


@pytest.mark.parametrize(
    ("error", "message", "phase", "expected"),
    [
        ("ValueError", TOO_LONG, "trace", Verdict.CONFORMS),
        ("ImportError", "cannot import name 'argmax'", "trace", Verdict.DEVIATES),
        ("TypeError", TOO_LONG, "trace", Verdict.DEVIATES),
        ("ValueError", TOO_LONG, "execute", Verdict.DEVIATES),
        ("ValueError", TOO_LONG.replace("int32", "float32"), "trace", Verdict.DEVIATES),
        ("ValueError", "", "trace", Verdict.DEVIATES),
    ],
)
def test_an_unchanged_body_is_refused_for_the_reason(
    error: str, message: str, phase: str, expected: str
) -> None:
    steps = moved(refused(error, message, phase=phase), ARGMAX)
    assert verdict("rank.argmax.no-axis.1d", SHARD_MAP, "0.12.0.1", *steps) == expected


def test_a_model_that_fails_is_no_prediction() -> None:
    def slip(x: Any) -> Any:
        return x.sun() if x.ndim > 1 else x

    with pytest.raises(AttributeError, match="sun"):
        outcomes(slip, mixed(4))


def test_a_refusal_that_numpy_does_not_share_is_no_declaration() -> None:
    with pytest.raises(ValueError, match="NumPy takes the block"):
        outcomes(lambda x: x * 2, mixed(4), Refusal(TypeError, "contracting dimensions"))


def test_a_shuffle_that_does_not_shuffle_is_seen() -> None:
    right = np.stack([shuffled(key) for key in keys(PLACE)])
    wrong = np.broadcast_to(np.arange(8, dtype=np.int32), (8, 8))
    for held, expected in ((right, Verdict.CONFORMS), (wrong, Verdict.DEVIATES)):
        steps = [returned(held, name=name) for name in CALLS]
        assert verdict("rank.random-key.raw", NEW_PMAP, "0.12.0.1", *steps) == expected


def test_a_call_that_was_not_made_is_missed() -> None:
    doubled = returned(PLACE.rows(128) * 2, extra={"shapes in the body": [[128]]})
    assert verdict("rank.body.pmap", NEW_PMAP, "0.12.0.1", doubled) == Verdict.DEVIATES


WRONG = np.full((8, WIDTH), -777, np.float32)
GONE = ("RuntimeError", "Array has been deleted with shape=float32[8,128].")


def donated(again: Record) -> list[Record]:
    return [
        returned(PLACE.rows(WIDTH) * 2, name="call"),
        returned(np.True_, name="was deleted"),
        again,
    ]


@pytest.mark.parametrize("jax", ["0.9.0", "0.12.0.1"])
@pytest.mark.parametrize(
    "again",
    [
        returned(WRONG, name="call again"),
        raised("RuntimeError", "out of memory", name="call again", phase="arguments"),
        raised("ImportError", "deleted or donated", name="call again", phase="arguments"),
    ],
)
def test_a_donated_array_that_is_used_again_is_refused_for_the_reason(
    jax: str, again: Record
) -> None:
    good = raised(*GONE, name="call again", phase="arguments")
    assert verdict("rewriting.donation", NEW_PMAP, "0.12.0.1", *donated(good)) == Verdict.CONFORMS
    assert verdict("rewriting.donation", NEW_PMAP, jax, *donated(again)) == Verdict.DEVIATES


@pytest.mark.parametrize(
    ("step", "mapped", "expected"),
    [
        ("call again", ("new pmap",), Verdict.KNOWN_DEVIATION),
        ("call", ("new pmap",), Verdict.CRASHED),
        ("", (), Verdict.CRASHED),
        ("call again", (), Verdict.CRASHED),
    ],
)
def test_a_crash_elsewhere_is_another_crash(
    step: str, mapped: tuple[str, ...], expected: str
) -> None:
    fault = crashed(step, *mapped)
    assert verdict("rewriting.donation", NEW_PMAP, "0.9.2", fault=fault) == expected


@pytest.mark.parametrize(
    ("id", "implementation"),
    [
        ("rewriting.gradients.pmean-of-gradient.unmapped", SHARD_MAP),
        ("rewriting.gradients.through-psum.squared.inside", SHARD_MAP),
        ("rewriting.unmapped-replicated.unchecked", SHARD_MAP),
        ("rewriting.multiple-axes.auto-axes", SHARD_MAP),
        ("rewriting.nested-pmap.as-commented", LEGACY_PMAP),
        ("rank.option-squeeze.matrix", SHARD_MAP),
    ],
)
@pytest.mark.parametrize("shape", [(8, 3), (8, 8, 2), (1, 128), (1, 1, 128), (24,)])
def test_garbage_is_not_the_known_wrong_value(
    id: str, implementation: str, shape: tuple[int, ...]
) -> None:
    garbage = np.full(shape, -777, np.float32)
    steps = [returned(garbage, name=name) for name in CALLS]
    assert verdict(id, implementation, "0.9.0", *steps) == Verdict.DEVIATES


@pytest.mark.parametrize("held", [WRONG, np.full((8, WIDTH), np.nan, np.float32)])
def test_replicas_that_hold_garbage_are_not_the_known_ones(held: Any) -> None:
    first = PLACE.rows(WIDTH)[0] + np.arange(WIDTH, dtype=np.float32)
    steps = [returned(first, name="call"), returned(held, name="replicas")]
    id = "rewriting.unmapped-replicated.replicas-agree"
    assert verdict(id, NEW_PMAP, "0.12.0.1", *steps) == Verdict.DEVIATES


@pytest.mark.parametrize(
    ("id", "implementation", "step"),
    [
        ("rewriting.mesh-required", SHARD_MAP, CALLS),
        ("rewriting.nested-pmap.as-written", NEW_PMAP, CALLS),
        ("rewriting.collectives.ppermute.replicated", SHARD_MAP, CALLS),
        ("rewriting.gradients.through-pmax.squared.inside", NEW_PMAP, CALLS),
        ("rank.rows.one-too-many", NEW_PMAP, CALLS),
        ("rank.rows.uneven.one-too-many", SHARD_MAP, CALLS),
        ("rewriting.make-mesh.as-written", JAX, ("mesh",)),
        ("sharded_computation.constraint", JAX, ("jit", "jit again")),
    ],
)
@pytest.mark.parametrize("jax", ["0.9.0", "0.12.0.1"])
@pytest.mark.parametrize(
    ("error", "message"),
    [
        ("ImportError", "no mesh, no jax"),
        ("ValueError", "the mesh does not match the devices"),
        ("TypeError", "missing 1 required positional argument"),
        ("AssertionError", ""),
    ],
)
def test_another_error_is_not_the_expected_one(
    id: str, implementation: str, step: tuple[str, ...], jax: str, error: str, message: str
) -> None:
    steps = [raised(error, message, name=name, phase="trace") for name in step]
    assert verdict(id, implementation, jax, *steps) == Verdict.DEVIATES
