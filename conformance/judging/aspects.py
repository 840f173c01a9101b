"""What of a step an expectation speaks of, so that it can be asked whether it would notice.

An expectation claims aspects; `strength` perturbs what was recorded in each of them and judges it
again. What is not claimed is not asked for, so a set that is too small hides a weak clause: an
expectation that says nothing of itself is taken to claim all of `OUTCOME`.
"""

from __future__ import annotations

VALUES, SHAPE, DTYPE, WEAK_TYPE = "values", "shape", "dtype", "weak type"
CONTAINER = "container"
SHARDING_TYPE, SPEC, DEVICES = "sharding's type", "sharding's spec", "order of devices"
COMMITTED, MEMORY_KIND = "committed", "memory kind"
EXCEPTION, PHASE = "exception", "phase"
WARNINGS, LOGS = "warnings", "log records"

RESULT = frozenset({VALUES, SHAPE, DTYPE})
OUTCOME = RESULT | {EXCEPTION}
COMPARED = RESULT | {CONTAINER}  # of what is compared with a model
SHARDING = frozenset({SHARDING_TYPE, SPEC})

# What is read off compiled programs: what a compiler alone can be asked, where nothing runs.
COMPILED = "compiled programs"

# Of every step that any expectation speaks of; and that it occurs, unless it is optional.
ENDING, OCCURRENCE = "how a step ends", "that a step occurs"


def figure(key: str, part: str = "") -> str:
    """The aspect of what a probe noted as `key`; of a record, of its entry `part`."""
    return f"figure {key}.{part}" if part else f"figure {key}"


def is_figure(aspect: str) -> bool:
    """Whether it is one of something that a probe noted."""
    return aspect.startswith(figure(""))


def from_below(key: str) -> str:
    """The aspect that what a probe noted as `key` is no less than it should be."""
    return f"figure {key} from below"
