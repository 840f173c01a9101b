"""The `cluster` argument of a probe, which records what happens as an observation.

A probe works in named steps; an exception ends a step, not the probe, because what the next call
does after an error is often the question.
"""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.spec.observation import OUTSIDE
from conformance.spec.topology import Topology
from conformance.worker import phases
from conformance.worker.compiling import compilations
from conformance.worker.describing import describe
from conformance.worker.elsewhere import elsewhere
from conformance.worker.implementations import WitnessedImplementation
from conformance.worker.plain import FIRST_CALL as FIRST_CALL
from conformance.worker.plain import SECOND_CALL as SECOND_CALL
from conformance.worker.plain import PlainCluster
from conformance.worker.protocols import R

MOST_TEXT = 20_000  # characters of one message
MOST_RECORDS = 100  # warnings, and log records, of one step

_THIS_FILE = __file__.replace("\\", "/").rsplit("/", 1)[-1]


@dataclass(frozen=True)
class RecordingCluster(PlainCluster):
    """The cluster of a case, which records every step.

    `told` receives each step's name as it begins and, with True, as it ends: that is all that
    remains if the process dies.
    """

    told: Callable[[str, bool], None] = lambda name, ended: None

    def step(self, name: str, function: Callable[..., R], *args: Any, **kwargs: Any) -> R | None:
        """Call `function`, wait for its result and record it; return None if it raised.

        Recorded are the value or the exception, warnings, log records, seconds, and how many
        programs were compiled: none, in a repeated call.
        """
        record: dict[str, Any] = {"name": name, "extra": {}}
        self.steps.append(record)
        self.told(name, False)
        result = None
        with _warned(record), _logged(record):
            began, before = time.perf_counter(), len(compilations())
            try:
                result = jax.block_until_ready(function(*args, **kwargs))
                record["outcome"] = "returned"
            except Exception as error:
                record["outcome"] = "raised"
                record["exception"] = exception_record(error)
            record["seconds"] = time.perf_counter() - began
            record["compiled"] = len(compilations()) - before
        if "exception" not in record:
            record["value"] = describe(result)
        self.told(name, True)
        return result


def observe(
    probe: Callable[..., Any],
    parameters: dict[str, Any],
    implementation: str,
    topology: Topology,
    process: int,
    mapped: Callable[[str], None] = lambda _: None,
    meet: Callable[[], None] = lambda: None,
    told: Callable[[str, bool], None] = lambda name, ended: None,
) -> dict[str, Any]:
    """Run a probe as this process's part of a case; return the JSON that `observation.parse` reads.

    Warnings and log records outside its steps are recorded as `between`. `mapped` receives the kind
    of each map as it is made: the only proof that remains of a case that hangs. `meet` and `told`
    are the cluster's.
    """
    _let_names_warn_again()
    there = elsewhere()
    if there is not None:
        there.begin()
    impl = WitnessedImplementation(implementation, mapped)
    cluster = RecordingCluster(topology, process, meet=meet, told=told)
    began = time.perf_counter()
    between: dict[str, Any] = {}
    with _warned(between), _logged(between):
        try:
            probe(impl, cluster, **parameters)
        except Exception as error:
            cluster.steps.append(
                {
                    "name": OUTSIDE,
                    "outcome": "raised",
                    "exception": exception_record(error),
                    "seconds": 0.0,
                }
            )
    compiled = {} if there is None else {"compiled": there.record()}
    return compiled | {
        "process": process,
        "processes": jax.process_count(),
        "jax": jax.__version__,
        "implementation": implementation,
        "witness": impl.witness,
        "steps": cluster.steps,
        "between": between,
        "seconds": time.perf_counter() - began,
    }


def exception_record(error: BaseException) -> dict[str, Any]:
    """Return an exception as a record: type, bases, phase, message, frames below the step."""
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


def _let_names_warn_again() -> None:
    """Make JAX's deprecated names warn as in a new process.

    A module of JAX caches what its `__getattr__` returns, so that a name warns at its first use in
    a process only, which another case may have made.
    """
    for name, module in [*sys.modules.items()]:
        if name.partition(".")[0] == jax.__name__:
            cached = getattr(module, "__dict__", {}).get("__getattr__")
            getattr(cached, "cache_clear", lambda: None)()


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
    """Collect log records; a record that is logged in a step is kept by the step only."""
    record["logs"] = []
    handler = _Keep(record["logs"])
    root = logging.getLogger()
    outer = [one for one in root.handlers if isinstance(one, _Keep)]
    for one in outer:
        root.removeHandler(one)
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        for one in outer:
            root.addHandler(one)


def local_rows(array: Any) -> Any:
    """Return this process's rows of a map's output, `(local devices, ...)`, as NumPy.

    For any implementation: the shards are put together in the order of their rows.
    """
    shards = sorted(array.addressable_shards, key=lambda s: s.index[0].start or 0)
    return np.concatenate([np.asarray(s.data) for s in shards])
