"""Run a program in a new Python, for what can only be observed in a fresh process.

A switch that is read when jax is imported cannot be tried in a worker, which has imported it. The
module serves both sides: `run` in the worker, `serve` in the child; it imports no jax.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DEADLINE_S = 75.0  # of one child: an import of jax on a loaded machine, and a few small programs
# A child with two devices of its own, whatever the cluster runs on.
ON_TWO_DEVICES = {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "2"}
MOST_LINES = 6  # of a failed child's standard error that are told

ANSWER_VARIABLE = "CONFORMANCE_ANSWER"  # names the file that the child writes its record to


class ChildError(RuntimeError):
    """The child's program raised or exited, or the child gave no answer; the text says which."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of a program: its value (JSON) or its failure, and each warning it caused.

    A warning is a record of `category`, `message`, `count` (how often it was issued) and `shown`
    (how often a user sees it with Python's default filters, if the program is the main file).
    """

    value: Any = None
    failure: str | None = None
    warnings: list[dict[str, Any]] = field(default_factory=list)

    def result(self) -> Any:
        """Return the value; ChildError if there is none."""
        if self.failure is not None:
            raise ChildError(self.failure)
        return self.value

    @classmethod
    def parse(cls, record: Mapping[str, Any], stderr: str = "") -> Answer:
        """Return the answer in a record that `recorded` made; `stderr` explains an exit."""
        failure = record.get("raised")
        if "exit" in record:
            failure = f"exit status {record['exit']}: {_tail(stderr)}"
        return cls(record.get("value"), failure, record["warnings"])


def run(
    module: str,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    deadline_s: float = DEADLINE_S,
) -> Answer:
    """Return the answer of `python -m module arguments...` under this interpreter.

    The child inherits this process's environment without variables for JAX; `environment` is added.
    ChildError if it was killed, crashed, or took too long.
    """
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_FLAGS"))}
    with tempfile.TemporaryDirectory(prefix="conformance-child-") as folder:
        file = Path(folder, "answer.json")
        try:
            ended = subprocess.run(
                [sys.executable, "-m", module, *arguments],
                env=inherited | dict(environment or {}) | {ANSWER_VARIABLE: str(file)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=deadline_s,
                text=True,
                errors="replace",
            )
        except subprocess.TimeoutExpired:
            raise ChildError(f"no answer within {deadline_s:g} s") from None
        if not file.exists():
            raise ChildError(
                f"no answer, exit status {ended.returncode}: {_tail(ended.stderr) or 'no output'}"
            )
        return Answer.parse(json.loads(file.read_text()), ended.stderr)


def serve(programs: Mapping[str, Callable[..., Any]]) -> None:
    """Run, in the child, the program that the command line names, then write its record."""
    _, name, *arguments = sys.argv
    record = recorded(programs[name], *arguments)
    Path(os.environ[ANSWER_VARIABLE]).write_text(json.dumps(record))


def recorded(function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """Call `function`; return a record of its value (JSON), exception or exit, and its warnings."""
    record: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            record["value"] = function(*arguments)
        except Exception as error:
            record["raised"] = f"{type(error).__name__}: {error}"
        except SystemExit as end:
            record["exit"] = end.code
    return record | {"warnings": _counted(caught)}


def _counted(caught: list[warnings.WarningMessage]) -> list[dict[str, Any]]:
    """Return one record per category and message, in the order of their first occurrence."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for given, shown in zip(caught, _shown(caught), strict=True):
        key = (given.category.__name__, str(given.message))
        one = found.setdefault(key, {"category": key[0], "message": key[1], "count": 0, "shown": 0})
        one["count"] += 1
        one["shown"] += shown
    return list(found.values())


def _shown(caught: list[warnings.WarningMessage]) -> list[bool]:
    """Return which of the warnings Python would have shown with its filters unchanged.

    They are issued again under those filters, each attributed to its original module and line,
    because by default a deprecation shows in the main file only.
    """
    main = getattr(sys.modules["__main__"], "__file__", None)
    registries: dict[str, dict[Any, Any]] = {}
    shown = []
    # One context for all of them: entering one forgets what was shown before.
    with warnings.catch_warnings(record=True) as seen:
        for given in caught:
            before = len(seen)
            warnings.warn_explicit(
                given.message,
                given.category,
                given.filename,
                given.lineno,
                module="__main__" if given.filename == main else Path(given.filename).stem,
                registry=registries.setdefault(given.filename, {}),
            )
            shown.append(len(seen) > before)
    return shown


def _tail(text: str) -> str:
    return " / ".join(line.strip() for line in text.strip().splitlines()[-MOST_LINES:])
