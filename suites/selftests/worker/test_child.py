"""A program in a Python of its own: what it answers, and how its failures are told."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from conformance.worker import child

PROGRAM = """
import os, sys, time
from conformance.worker import child

def slow():
    time.sleep(600)

def silent():
    os._exit(7)

def echo(word):
    print("noise on standard output")
    return {"word": word, "told": os.environ.get("TOLD"), "jax": "JAX_ANYTHING" in os.environ}

def refused():
    print("what went wrong", file=sys.stderr)
    sys.exit(3)

child.serve({"slow": slow, "silent": silent, "echo": echo, "refused": refused})
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module with one function per way to end, where a child can import it."""
    (tmp_path / "told_program.py").write_text(PROGRAM)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("JAX_ANYTHING", "1")
    return "told_program"


def test_a_child_answers_with_its_value_and_inherits_nothing_said_to_jax(program: str) -> None:
    answer = child.run(program, "echo", "hello", environment={"TOLD": "yes"})
    assert answer.result() == {"word": "hello", "told": "yes", "jax": False}


def test_an_exit_is_a_failure_with_the_end_of_what_was_said(program: str) -> None:
    with pytest.raises(child.ChildError, match="exit status 3: what went wrong"):
        child.run(program, "refused").result()


def test_a_child_that_dies_without_an_answer_is_told_as_that(program: str) -> None:
    with pytest.raises(child.ChildError, match="exit status 7"):
        child.run(program, "silent")


def test_a_child_that_takes_too_long_is_ended(program: str) -> None:
    with pytest.raises(child.ChildError, match=r"within 1 s"):
        child.run(program, "slow", deadline_s=1)


def test_warnings_are_counted_and_what_a_user_sees_of_them_too() -> None:
    def warn() -> int:
        for _ in range(2):
            warnings.warn("seen", UserWarning, stacklevel=1)
            warnings.warn("hidden", DeprecationWarning, stacklevel=1)
        return 5

    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.filterwarnings("default", category=UserWarning)
        record = child.recorded(warn)
    assert record["value"] == 5
    told = {w["message"]: (w["category"], w["count"], w["shown"]) for w in record["warnings"]}
    assert told["seen"] == ("UserWarning", 2, 1)
    assert told["hidden"] == ("DeprecationWarning", 2, 0)


def test_an_exception_is_a_failure_with_its_type() -> None:
    record = child.recorded(lambda: 1 / 0)
    with pytest.raises(child.ChildError, match="ZeroDivisionError: "):
        child.Answer.parse(record).result()
