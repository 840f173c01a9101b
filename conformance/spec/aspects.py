"""The aspects of a step that an expectation makes a claim about, for measuring its strength.

`strength` perturbs what was recorded in each claimed aspect and judges it again. An aspect that is
not claimed is not tried, so a set that is too small hides a weak clause: an expectation without a
declaration is taken to claim all of `OUTCOME`.
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

# Of every step that any expectation speaks of; and that it occurs.
ENDING, OCCURRENCE = "how a step ends", "that a step occurs"


_FROM_BELOW = " from below"


def figure(key: str, part: str = "") -> str:
    """Return the aspect of what a probe noted as `key`, or of the entry `part` of a noted
    record.
    """
    return f"figure {key}.{part}" if part else f"figure {key}"


def is_figure(aspect: str) -> bool:
    """Return whether an aspect is one of a probe's notes."""
    return aspect.startswith(figure(""))


def key_of(aspect: str) -> str:
    """Return the key of the note that an aspect is about; empty if it is about none."""
    if not is_figure(aspect):
        return ""
    return aspect.removeprefix(figure("")).removesuffix(_FROM_BELOW).partition(".")[0]


def from_below(key: str) -> str:
    """Return the aspect that a note `key` has a lower bound."""
    return f"{figure(key)}{_FROM_BELOW}"
