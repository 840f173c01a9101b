"""A JAX that was altered on purpose must turn exactly the touched cells red.

This is the test of the whole: a matrix that stays green over a broken JAX proves nothing.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from altered import altered_copy, cells_of_run

pytestmark = pytest.mark.long

RED = {"deviates", "crashed", "hung"}

Verdicts = dict[tuple[str, str, str], str]


def verdicts(folder: Path, target: str, words: str) -> Verdicts:
    """The verdict of each cell of the errors suite that `-k words` selects, on `target`."""
    cells = cells_of_run(
        folder, "suites/test_errors.py", "-k", words, "--tier", "full", "--target", target
    )
    return {(r["clause"], r["implementation"], r["topology"]): r["verdict"] for r in cells}


def reddened(before: Verdicts, after: Verdicts) -> set[tuple[str, str, str]]:
    assert before.keys() == after.keys()
    assert not {cell for cell, verdict in before.items() if verdict in RED}
    return {cell for cell, verdict in after.items() if verdict in RED}


def test_an_altered_message_turns_the_cells_of_that_error_red_and_no_other(tmp_path: Path) -> None:
    words = "context-mesh and not nested-shard-map"  # those raise other errors, or none
    python = altered_copy(
        tmp_path / "altered",
        lambda text: text.replace("should match the mesh passed", "differs from the mesh passed"),
        "shard_map.py",
    )
    before, after = (verdicts(tmp_path, t, words) for t in ("current", str(python)))
    touched = {
        cell
        for cell, verdict in before.items()
        if "fix-" not in cell[0] and verdict in ("conforms", "known deviation")
    }
    assert touched
    assert reddened(before, after) == touched


def test_an_altered_value_turns_the_cells_that_return_it_red_and_no_other(tmp_path: Path) -> None:
    # Each device of a new pmap sees its row reversed: right shape, right dtype, wrong numbers.
    words = "incompatible-devices.fix-backend and 1x8"
    python = altered_copy(
        tmp_path / "altered",
        lambda text: text.replace(
            "lambda x, ax: x if ax is None else lax.squeeze(x, [ax])",
            "lambda x, ax: x if ax is None else lax.rev(lax.squeeze(x, [ax]), (0,))",
        ),
        "pmap.py",
    )
    before, after = (verdicts(tmp_path, t, words) for t in ("current", str(python)))
    touched = {cell for cell in before if cell[1] == "new_pmap" and before[cell] == "conforms"}
    assert touched
    assert reddened(before, after) == touched


def test_an_alteration_that_alters_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="nothing to alter"):
        altered_copy(tmp_path / "altered", lambda text: text, "pmap.py")
