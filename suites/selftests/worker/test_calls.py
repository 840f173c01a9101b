"""Recording the Python functions that a call runs, and all compiled programs."""

from __future__ import annotations

import pytest
from recording_process import run

from conformance.worker.calls import calls_of


def inner(x: int) -> int:
    return x + 1


def middle(x: int) -> int:
    return inner(x)


def test_every_function_below_the_call_is_counted_and_the_call_is_not() -> None:
    result, calls = calls_of(lambda: middle(1) + inner(2))
    assert result == 5
    assert calls.counts["test_calls.py:inner"] == 2
    assert calls.counts["test_calls.py:middle"] == 1
    assert "test_calls.py:<lambda>" not in calls.counts


def test_the_stack_of_the_watched_function_is_that_of_its_first_call() -> None:
    _, calls = calls_of(lambda: middle(1) + inner(2), watched="test_calls.py:inner")
    assert calls.stack == ["test_calls.py:middle", "test_calls.py:inner"]


def test_a_function_that_never_runs_has_no_stack() -> None:
    _, calls = calls_of(lambda: inner(1), watched="test_calls.py:middle")
    assert calls.stack == []


def test_what_raises_is_raised_and_nothing_is_watched_afterwards() -> None:
    import sys

    before = sys.getprofile()
    with pytest.raises(ZeroDivisionError):
        calls_of(lambda: 1 // 0)
    assert sys.getprofile() is before


def test_a_dispatch_in_cpp_runs_no_python_function_and_the_new_pmap_some() -> None:
    told = run(
        """
        from conformance.worker.calls import calls_of
        rows = cluster.rows(4)
        told = []
        for name in ("shard_map", "new_pmap"):
            mapped = WitnessedImplementation(name).map(lambda x: x * 2).function
            x = mapped(mapped(mapped(rows)))
            told.append(calls_of(lambda: mapped(x))[1].total)
        """
    )
    assert told[0] == 0
    assert told[1] > 0


def test_an_array_that_goes_through_the_host_shows() -> None:
    told = run(
        """
        from conformance.worker.calls import THROUGH_THE_HOST, calls_of
        x = impl.map(lambda x: x * 2)(cluster.rows(4))
        told = [calls_of(f)[1].counts[THROUGH_THE_HOST] for f in (
            lambda: np.asarray(x), lambda: x.addressable_shards[0].data)]
        """
    )
    assert told == [1, 0]


def test_a_jax_that_compiles_elsewhere_is_an_error_as_a_lost_program_would_not_be_missed() -> None:
    told = run(
        """
        from conformance.worker import programs
        programs.COMPILES = "compiler.py:no_such_function"
        x = jax.device_put(cluster.rows(3, 4), impl.sharding())
        cluster.compiled("index", lambda x: x[0], x)
        told = cluster.steps[0]["exception"]
        """
    )
    assert told["type"] == "LostProgramError"
    assert "name the function" in told["message"]


def test_a_program_whose_function_is_gone_is_an_error_and_not_an_empty_answer() -> None:
    told = run(
        """
        x = jax.device_put(cluster.rows(3, 4), impl.sharding())
        cluster.compiled("lost", lambda x: jax.jit(lambda y: y[0])(x), x)
        kept = jax.jit(lambda y: y[0])
        cluster.compiled("kept", kept, x)
        told = cluster.steps
        """
    )
    assert told[0]["exception"]["type"] == "LostProgramError"
    assert "keep it" in told[0]["exception"]["message"]
    assert [p["collectives"][0]["operation"] for p in told[1]["extra"]["programs"]] == [
        "all-reduce"
    ]
