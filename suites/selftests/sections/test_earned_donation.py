"""Wrong JAX that the clauses on donation must notice: buffers that return, and other errors.

Each case is a fabricated observation, judged with the real clause and the real deviation entries.
"""

from __future__ import annotations

from typing import Any

import pytest
from fabricated import NEWEST, verdict_of
from judged import crashed, hung
from records import gave, raised, returned

from conformance.model.verdicts import Verdict
from conformance.spec.faults import Fault
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.topology import Place, Topology

ONE = Topology(1, 8)
WIDTH = 16


def verdict(id: str, implementation: str, steps: list[Any], jax: str = NEWEST) -> str:
    """Return the verdict on one process with these steps."""
    return verdict_of(id, implementation, ONE, steps, jax=jax)


def doubled(factor: int = 2) -> Any:
    return Place(ONE, 0).rows(WIDTH) * factor


def gone(name: str, **other: Any) -> Any:
    return raised(
        "RuntimeError",
        "Array has been deleted with shape=float32[8,16].",
        name=name,
        phase="arguments",
        **other,
    )


@pytest.mark.parametrize(
    ("again", "expected"),
    [
        pytest.param(doubled(), Verdict.KNOWN_DEVIATION, id="the right values, as known"),
        pytest.param(doubled() * 0 - 777, Verdict.DEVIATES, id="garbage"),
    ],
)
def test_a_buffer_that_comes_back_wrong_is_not_excused(again: Any, expected: str) -> None:
    steps = [
        returned(doubled(), name="donating call"),
        returned(again, name="again"),
    ]
    assert verdict("donation.reuse-same-wrapper.uncommitted", NEW_PMAP, steps) == expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param(
            "INVALID_ARGUMENT: Attempt to donate the same buffer twice in Execute() (flattened "
            "argument 1, replica 0, partition 0, first use: 0).",
            Verdict.CONFORMS,
            id="that it was donated twice",
        ),
        pytest.param("Some donated buffers were not usable", Verdict.DEVIATES, id="another matter"),
    ],
)
def test_a_refusal_says_what_is_refused(message: str, expected: str) -> None:
    rows = Place(ONE, 0).rows(WIDTH)
    steps = [
        gave((rows + rows, rows - rows), name="two arrays"),
        raised("ValueError", message, name="one array twice", phase="execute"),
    ]
    assert verdict("donation.twice-in-one-call.both", SHARD_MAP, steps) == expected


@pytest.mark.parametrize(
    ("again", "expected"),
    [
        pytest.param(gone("again"), Verdict.CONFORMS, id="refused"),
        pytest.param(returned(doubled(), name="again"), Verdict.DEVIATES, id="no error"),
        pytest.param(
            raised("ImportError", "no module", name="again"), Verdict.DEVIATES, id="another"
        ),
    ],
)
def test_what_works_after_an_error_says_something_where_there_was_one(
    again: Any, expected: str
) -> None:
    steps = [
        returned(doubled(), name="donating call"),
        again,
        returned(doubled(), name="same wrapper"),
        returned(doubled(), name="new wrapper"),
    ]
    assert verdict("donation.after-reuse.own-output", NEW_PMAP, steps) == expected


@pytest.mark.parametrize(
    ("kind", "implementation", "multiple", "expected"),
    [
        pytest.param("other-spec", SHARD_MAP, 3.0, Verdict.CONFORMS, id="a copy"),
        pytest.param("other-spec", SHARD_MAP, 10.0, Verdict.DEVIATES, id="ten times"),
        *(
            pytest.param("uncommitted", name, multiple, expected, id=f"{name} {multiple}")
            for name in (NEW_PMAP, SHARD_MAP)
            for multiple, expected in (
                (1.5, Verdict.DEVIATES),
                (2.24, Verdict.CONFORMS),
                (2.87, Verdict.CONFORMS),
                (3.1, Verdict.DEVIATES),
            )
        ),
    ],
)
def test_a_peak_has_a_least_and_a_most(
    kind: str, implementation: str, multiple: float, expected: str
) -> None:
    count = 2**26 // 4 // 8
    first = Place(ONE, 0).rows(count)[:, :4] * 2
    steps = [
        returned(name="known", extra={"known": 1.0}),
        returned(name="peak", extra={"memory": {"what": "an array", "multiple": multiple}}),
        returned(first, name="values"),
    ]
    assert verdict(f"donation.peak.{kind}", implementation, steps) == expected


def test_an_original_that_legacy_deletes_is_noticed() -> None:
    def step(name: str, deleted: bool) -> Any:
        extra = {
            "donated deleted": [deleted],
            "kept deleted": [],
            "unharmed": [True],
            "buffers reused": [0, 8],
        }
        return returned(doubled(), name=name, extra=extra)

    for deleted, expected in ((False, Verdict.CONFORMS), (True, Verdict.DEVIATES)):
        steps = [step("first call", deleted), step("second call", deleted)]
        assert verdict("donation.copied.replicated", LEGACY_PMAP, steps, "0.9.0") == expected


@pytest.mark.parametrize(
    ("id", "jax", "fault", "expected"),
    [
        pytest.param(
            "donation.reuse-same-wrapper.own-output",
            "0.9.2",
            crashed("again", "jit(shard_map)"),
            Verdict.KNOWN_DEVIATION,
            id="killed in the call with the deleted array",
        ),
        pytest.param(
            "donation.reuse-same-wrapper.own-output",
            "0.9.2",
            crashed("donating call", "jit(shard_map)"),
            Verdict.CRASHED,
            id="killed in the donating call",
        ),
        pytest.param(
            "donation.twice-in-one-call.both",
            "0.9.2",
            crashed("one array twice"),
            Verdict.CRASHED,
            id="killed before a map was made",
        ),
        pytest.param(
            "donation.after-reuse.placed",
            "0.9.0",
            hung("same wrapper", "jit(shard_map)"),
            Verdict.KNOWN_DEVIATION,
            id="hung in the call after",
        ),
        pytest.param(
            "donation.after-reuse.placed",
            "0.9.0",
            hung("donating call", "jit(shard_map)"),
            Verdict.HUNG,
            id="a slow compilation in the first call",
        ),
    ],
)
def test_a_fault_is_excused_in_the_step_that_was_seen(
    id: str, jax: str, fault: Fault, expected: str
) -> None:
    assert verdict_of(id, SHARD_MAP, ONE, jax=jax, fault=fault) == expected
