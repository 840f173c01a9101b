"""What a case leaves: whether its cluster may run another one, and how a process ended."""

from __future__ import annotations

import signal

import pytest
from records import observation, raised, returned

from harness.clusters.cluster import CaseResult
from harness.clusters.postmortem import (
    ENDED_BY_JAX,
    ClusterFault,
    ProcessState,
    ending,
    failed_first,
)

ABORTED = "Fatal Python error: Aborted\n\nThread 0x1 (most recent call first):\n"
THEN_SEGFAULT = f'{ABORTED}  File "jax/_src/pmap.py"Fatal Python error: Segmentation fault\n'


def result(*observations: object, unharmed: bool = True) -> CaseResult:
    return CaseResult(observations, None, 0.5, 0.25, unharmed=unharmed)  # type: ignore[arg-type]


def test_a_cluster_runs_on_after_values_and_after_harmless_errors() -> None:
    values, error = observation(returned()), observation(returned(), raised(name="second call"))
    assert result(values, values, unharmed=False).clean
    assert result(error, error).clean
    assert not result(error, error, unharmed=False).clean


def test_a_cluster_ends_after_an_error_that_not_all_processes_saw() -> None:
    values, error = observation(returned()), observation(raised())
    other = observation(raised(name="second call"))
    assert not result(error, values).clean
    assert not result(error, other).clean


def test_a_cluster_ends_after_a_fault() -> None:
    fault = ClusterFault("crashed", "process 0 was killed by SIGSEGV", ())
    assert not CaseResult((), fault, 0.5, 0.25, unharmed=True).clean


@pytest.mark.parametrize(
    ("code", "stack", "name"),
    [
        (-signal.SIGSEGV, "", "SIGSEGV"),
        (-signal.SIGSEGV, "Fatal Python error: Segmentation fault\n", "SIGSEGV"),
        (-signal.SIGSEGV, THEN_SEGFAULT, "SIGABRT"),  # its stack was being written
        (-signal.SIGABRT, ABORTED, "SIGABRT"),
        (-signal.SIGKILL, ABORTED, "SIGKILL"),
        (-64, ABORTED, "SIGRTMAX"),
    ],
)
def test_the_first_fatal_signal_is_the_cause(code: int, stack: str, name: str) -> None:
    assert ending(code, stack) == (f"was killed by {name}", name)


def test_an_exit_status_is_no_signal() -> None:
    assert ending(1, ABORTED) == ("exited with status 1", None)


@pytest.mark.parametrize(
    ("suspects", "ended", "taken_along", "first"),
    [
        ([1], [1, 0], [1], 0),  # heard of first, but ended as the other was gone
        ([1], [1, 0], [], 1),
        ([1, 0], [0, 1], [0], 1),
        ([1], [1], [1], 1),  # whom it lost is on no host that is seen
        ([2, 1], [2, 1, 0], [2, 1, 0], 2),
        ([1], [], [], 1),  # disconnected, and went on
    ],
)
def test_a_process_that_jax_ended_did_not_fail_first(
    suspects: list[int], ended: list[int], taken_along: list[int], first: int
) -> None:
    states = [
        ProcessState(p, "exited", log=f"F client.h:80] {ENDED_BY_JAX}." if p in taken_along else "")
        for p in range(3)
    ]
    assert failed_first(suspects, ended, states) == first
