"""Processes killed at random moments of real runs; slow, so run when asked for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from killings import CONTROLLER, Run, campaign

pytestmark = pytest.mark.long

VARIABLE = "PMAP_CONFORMANCE_KILLINGS"
SEED = 7
CELL = ("faults.none", "new_pmap", "1x1")


def test_a_killed_process_costs_a_cell_and_nothing_is_left(tmp_path: Path) -> None:
    count = os.environ.get(VARIABLE, "")
    if not count.isdecimal():
        pytest.skip(f"takes minutes: set {VARIABLE} to how many processes are to be killed, as 40")
    runs = list(campaign(tmp_path, int(count), SEED))
    print(*runs, sep="\n")
    assert [fault for run in runs for fault in run.faults()] == []
    assert len(runs) > 1


@pytest.mark.parametrize(
    ("run", "says"),
    [
        (Run(), []),
        (Run([CONTROLLER], {CELL: ("crashed", "killed")}), []),
        (Run([CONTROLLER], {CELL: ("crashed", "")}), ["no reason is told"]),
        (Run([], {CELL: ("crashed", "x")}), ["1 cells affected by 0 killings"]),
        (Run(twice=2), ["2 cells have two records"]),
        (Run(left=["worker 7"]), ["worker 7"]),
    ],
    ids=["nothing", "as it should be", "no reason", "too many cells", "twice", "left"],
)
def test_what_is_wrong_with_a_run_is_told(run: Run, says: list[str]) -> None:
    assert len(run.faults()) == len(says)
    assert all(text in fault for text, fault in zip(says, run.faults(), strict=True))
