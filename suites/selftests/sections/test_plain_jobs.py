"""What a job of plain programs answered, beside what libraries print."""

from __future__ import annotations

import pytest

from conformance.sections.multi_controller.plain_jobs import JobError, answers
from conformance.worker.jobs import Ended


@pytest.mark.parametrize("before", ["", "1\n", "[Gloo] Rank 0 is connected to 1 peer ranks\n"])
def test_the_answer_is_the_last_line(before: str) -> None:
    [answer] = answers([Ended(0, f"{before}[0, 2, 4]\n", "")])
    assert answer.tolist() == [0, 2, 4]


@pytest.mark.parametrize("out", ["", "\n", "ready\n"])
def test_without_an_answer_the_output_is_shown(out: str) -> None:
    with pytest.raises(JobError) as raised:
        answers([Ended(0, "[1]\n", ""), Ended(0, out, "")])
    assert str(raised.value) == f"process 1 printed no answer: {out!r}"


def test_a_failed_process_is_told_by_its_error() -> None:
    err = "Traceback (most recent call last):\n  File\nValueError: no devices\n"
    with pytest.raises(JobError, match=r"^process 0: exit 1: ValueError: no devices$"):
        answers([Ended(1, "[1]\n", err)])
