"""Communication of an array access on growing TPU pods: compiled for TPU, not run.

`sections/indexing/pods.py` defines what is compiled; it runs in a target's Python with the libtpu
that its JAX was released with, and its records become part of a results file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from conformance.model.records import Growth
from conformance.spec.names import TPU_COMPILE
from conformance.worker.folders import Scratch
from harness.running.answering import run_module
from harness.targets.platforms import PLATFORMS
from harness.targets.target import Target, describe, provision, worker_environment

MODULE = "conformance.sections.indexing.pods"
DEADLINE_S = 1800.0
MIB = 1 << 20


def grown(spec: str, *, progress: Callable[[str], None]) -> list[Growth]:
    """Provision a target that compiles for TPU; return one record per access, with each pod
    size. AnswerError if nothing could be compiled.
    """
    target = provision(spec, extras=PLATFORMS[TPU_COMPILE].packages, progress=progress)
    known = describe(target)
    progress(f"compiling for pods with {target.spec}, which takes minutes")
    built_for = {"target": target.spec, "jax": known["jax"], "libtpu": known["libtpu"]}
    return [msgspec.convert(one | built_for, Growth) for one in _compiled(target)]


def lines(growths: Sequence[Growth]) -> Iterator[str]:
    """Yield the lines of a table: MiB received by each chip, by the number of chips."""
    for one in growths:
        points = ", ".join(f"{point.chips}: {point.bytes / MIB:g}" for point in one.points)
        yield (
            f"{one.target}, {one.chip}: {one.text} of rows of {one.row / MIB:g} MiB "
            f"moves MiB to each chip, by chips: {points}"
        )


def _compiled(target: Target) -> list[dict[str, Any]]:
    environment = worker_environment(target, os.environ, platform=PLATFORMS[TPU_COMPILE])
    with Scratch("pods") as folder:
        file = folder / "pods.jsonl"
        run_module(target, MODULE, file, environment=environment, deadline_s=DEADLINE_S)
        return [json.loads(line) for line in file.read_text("utf-8").splitlines()]
