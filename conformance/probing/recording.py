"""The `cluster` that a probe is given, and how what happens in it becomes an observation.

A probe does its work in named steps; an exception ends a step, not the probe, because what the
next call does after an error is often the question.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from conformance.catalogue.topology import Place, Topology
from conformance.probing import phases
from conformance.probing.describing import describe
from conformance.probing.implementations import Implementation
from conformance.probing.programs import Compiled, compiled_by

MOST_TEXT = 20_000  # characters of one message
MOST_RECORDS = 100  # warnings, and log records, of one step

FIRST_CALL, SECOND_CALL = "first call", "second call"

_THIS_FILE = __file__.replace("\\", "/").rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Cluster(Place):
    """One process's view of the cluster that a probe runs on.

    `meet` waits until every process of the cluster has called it as often.
    """

    steps: list[dict[str, Any]] = field(default_factory=list)
    meet: Callable[[], None] = lambda: None

    @property
    def local_devices(self) -> list[Any]:
        """This process's devices."""
        return list(jax.local_devices())

    @property
    def devices(self) -> list[Any]:
        """All devices of the cluster."""
        return list(jax.devices())

    def step(self, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call `function`, wait for its result and record it; None where it raised.

        Recorded: the value or the exception, warnings, log records, seconds.
        """
        record: dict[str, Any] = {"name": name, "extra": {}}
        self.steps.append(record)
        result = None
        with _warned(record), _logged(record):
            began = time.perf_counter()
            try:
                result = jax.block_until_ready(function(*args, **kwargs))
                record["outcome"] = "returned"
            except Exception as error:
                record["outcome"] = "raised"
                record["exception"] = exception_record(error)
            record["seconds"] = time.perf_counter() - began
        if "exception" not in record:
            record["value"] = describe(result)
        return result

    def twice(self, function: Callable[..., Any], *args: Any) -> Any:
        """Two calls with the same arguments: caches differ between a first and a second call."""
        self.step(FIRST_CALL, function, *args)
        return self.step(SECOND_CALL, function, *args)

    def compiled(
        self, name: str, function: Callable[..., Any], *args: Any, watched: str | None = None
    ) -> Compiled | None:
        """A step with empty caches that also notes, as `programs`, what JAX compiled for it.

        See `programs.compiled_by`, whose answer is returned; None where the step raised.
        """
        told: list[Compiled] = []

        def compiling() -> Any:
            told.append(compiled_by(lambda: function(*args), watched=watched))
            return told[0].result

        self.step(name, compiling)
        if not told:
            return None
        self.note("programs", told[0].programs)
        return told[0]

    def note(self, key: str, value: Any) -> None:
        """Add a fact (a JSON value) to the step that was last recorded."""
        self.steps[-1]["extra"][key] = value


def observe(
    probe: Callable[..., Any],
    parameters: dict[str, Any],
    implementation: str,
    topology: Topology,
    process: int,
    mapped: Callable[[str], None] = lambda _: None,
    meet: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Run a probe as this process's part of a case; the JSON that `observation.parse` reads.

    `mapped` is told the kind of each map as it is made: the only proof left of a case that hangs.
    `meet` is the cluster's.
    """
    impl, cluster = Implementation(implementation, mapped), Cluster(topology, process, meet=meet)
    began = time.perf_counter()
    try:
        probe(impl, cluster, **parameters)
    except Exception as error:
        cluster.steps.append(
            {
                "name": "outside any step",
                "outcome": "raised",
                "exception": exception_record(error),
                "seconds": 0.0,
            }
        )
    return {
        "process": process,
        "processes": jax.process_count(),
        "jax": jax.__version__,
        "implementation": implementation,
        "witness": impl.witness,
        "steps": cluster.steps,
        "seconds": time.perf_counter() - began,
    }


def exception_record(error: BaseException) -> dict[str, Any]:
    """An exception as a record: type, bases, phase, message, frames below the step."""
    frames = phases.frames_of(error, after=_THIS_FILE)
    kind = type(error)
    return {
        "type": kind.__name__,
        "module": kind.__module__,
        "bases": [base.__name__ for base in kind.__mro__[1:-1]],
        "phase": phases.phase_of(frames),
        "message": str(error)[:MOST_TEXT],
        "frames": frames,
    }


@contextmanager
def _warned(record: dict[str, Any]) -> Iterator[None]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    counts: dict[tuple[str, str], int] = {}
    for one in caught[: MOST_RECORDS * 10]:
        key = (one.category.__name__, str(one.message)[:MOST_TEXT])
        counts[key] = counts.get(key, 0) + 1
    record["warnings"] = [
        {"category": category, "message": message, "count": count}
        for (category, message), count in list(counts.items())[:MOST_RECORDS]
    ]


class _Keep(logging.Handler):
    def __init__(self, kept: list[dict[str, Any]]) -> None:
        super().__init__()
        self._kept = kept

    def emit(self, record: logging.LogRecord) -> None:
        if len(self._kept) < MOST_RECORDS:
            self._kept.append(
                {
                    "logger": record.name,
                    "level": record.levelname,
                    "message": record.getMessage()[:MOST_TEXT],
                }
            )


@contextmanager
def _logged(record: dict[str, Any]) -> Iterator[None]:
    record["logs"] = []
    handler = _Keep(record["logs"])
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


def local_rows(array: Any) -> Any:
    """This process's rows of a map's output as NumPy, whichever implementation returned it."""
    shards = sorted(array.addressable_shards, key=lambda s: s.index[0].start or 0)
    return np.concatenate([np.asarray(s.data) for s in shards])
