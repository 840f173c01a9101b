"""One answer of a program that runs in a target's Python, as JSON in a file."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conformance.worker.folders import Scratch
from harness.targets.target import Target, worker_environment

DEADLINE_S = 900.0
MOST_SAID = 600  # characters of what a program said that failed


class AnswerError(ValueError):
    """A program failed to answer; the text is its output and what to do."""


def answer(
    target: Target, module: str, asked: Any, *, variables: Mapping[str, str] | None = None
) -> Any:
    """Run `python -m module ANSWER ASKED` and return what it wrote; AnswerError if it failed."""
    environment = {**worker_environment(target, os.environ), **(variables or {})}
    with Scratch("answer") as folder:
        output, question = folder / "answer.json", folder / "asked.json"
        question.write_text(json.dumps(asked), "utf-8")
        run_module(target, module, output, question, environment=environment, deadline_s=DEADLINE_S)
        return json.loads(output.read_text("utf-8"))


def run_module(
    target: Target, module: str, *files: Path, environment: Mapping[str, str], deadline_s: float
) -> None:
    """Run `python -m module FILES` of a target; AnswerError if it fails or takes too long."""
    try:
        done = subprocess.run(
            [target.python, "-m", module, *files],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=deadline_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise AnswerError(
            f"{module} did not finish in {target.spec} within {deadline_s:.0f} s: run it "
            "again when the machine is less busy"
        ) from error
    if done.returncode:
        raise AnswerError(
            f"{module} ended with status {done.returncode} in {target.spec}. Its last output: "
            f"{done.stderr.strip()[-MOST_SAID:] or '(none)'}"
        )
