"""Tests what becomes of a question to a target's Python that is not answered."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.running import answering
from harness.running.answering import AnswerError, answer
from harness.targets.target import Target

CURRENT = Target("current", Path(sys.executable))


def test_a_program_that_fails_is_named_with_its_last_output() -> None:
    with pytest.raises(
        AnswerError, match=r"nothing_here ended with status 1 in current.*No module"
    ):
        answer(CURRENT, "nothing_here", {})


def test_a_program_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "DEADLINE_S", 0.0)
    with pytest.raises(AnswerError, match="did not finish in current within 0 s"):
        answer(CURRENT, "json.tool", {})
