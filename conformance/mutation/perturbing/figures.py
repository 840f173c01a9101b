"""Perturbations of a probe's notes and emissions: figures, flags, warnings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from conformance.mutation.perturbing.case import (
    Case,
    Perturbation,
    Seen,
    in_one_process,
    of_observation,
)
from conformance.spec import aspects
from conformance.spec.observation import BETWEEN, Observation, Step

TIMES = 1000
ANOTHER = "something else"

COLLECTIVES = "collectives"
# Of a record that a probe noted, what costs; of one without any of these, all numbers count.
MULTIPLE = "multiple"
COSTS = (COLLECTIVES, "bytes", MULTIPLE, "temp")

ADDED_WARNING = {
    "category": "DeprecationWarning",
    "message": "jax.pmap and device_put_sharded: donated buffers were not usable",
    "count": 1,
}


# That no expectation and no entry names.
NEW_WARNING = {
    "category": "FutureWarning",
    "message": "jax.pmap will return arrays of another sharding",
    "count": 1,
}
NEW_LOG_RECORD = {"logger": "jax._src.pmap", "level": "WARNING", "message": "pmap falls back"}


def _noted(
    name: str, change: Callable[[Any], Any], *, aspect: Callable[[str], str] = aspects.figure
) -> Perturbation:
    """Perturb each claimed figure in one process; None and unchanged values are skipped."""

    def perturb(case: Case) -> Iterator[Seen]:
        if case.seen.fault is not None:
            return
        for step in case.steps:
            claims = case.claims(step)
            keys = {key for o in case.seen.observations for s in o.steps for key in s.extra}
            for key in sorted(key for key in keys if aspect(key) in claims):
                yield from _one(step, key).of(case)

    def _one(step: str, key: str) -> Perturbation:
        def changed(case: Case, one: Step, beside: Step | None) -> Step | None:
            if one.name != step or key not in one.extra:
                return None
            old, claims = one.extra[key], case.claims(step)
            parts = (
                [part for part in old if aspects.figure(key, part) in claims]
                if isinstance(old, dict)
                else []
            )
            new = change({part: old[part] for part in parts} if parts else old)
            if parts and new is not None:
                new = {**old, **new}
            if new is None or new == old:
                return None
            return replace(one, extra={**one.extra, key: new})

        return in_one_process(name, aspects.figure(key), changed)

    return Perturbation(name, perturb)


def _costs(value: Any, number: Callable[[float], float], more: bool) -> Any:
    """Return a cost record with other numbers, and with collectives added or removed."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, list):  # the first: of several, the others say what it is a part of
        return [_costs(value[0], number, more), *value[1:]] if value else value
    if isinstance(value, dict):
        costly = [key for key in COSTS if key in value] or list(value)
        return {
            key: _collectives(one, more)
            if key == COLLECTIVES
            else _costs(one, number, more)
            if key in costly
            else one
            for key, one in value.items()
        }
    return value


def _collectives(seen: Any, more: bool) -> Any:
    if isinstance(seen, dict):
        return {**seen, "all-gather": seen.get("all-gather", 0) + TIMES} if more else {}
    one = {"operation": "all-gather", "shape": "f32[1000]", "bytes": 4 * TIMES}
    return [*seen, one] if more else []


def _times(value: Any) -> Any:
    return _costs(value, lambda number: number * TIMES or TIMES, more=True)


def _nothing(value: Any) -> Any:
    return _costs(value, lambda _: 0, more=False)


def _flipped(value: Any) -> Any:
    """Return the record with its last flag inverted."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, list):
        for at in reversed(range(len(value))):
            new = _flipped(value[at])
            if new is not None:
                return [*value[:at], new, *value[at + 1 :]]
    if isinstance(value, dict):
        for key in reversed(value):
            new = _flipped(value[key]) if key not in ("gather", "loops") else None
            if new is not None:
                return {**value, key: new}
    return None


def _reworded(value: Any) -> Any:
    """Return the record with its last text changed."""
    if isinstance(value, str):
        return ANOTHER
    if isinstance(value, list) and value:
        new = _reworded(value[-1])
        return None if new is None else [*value[:-1], new]
    return None


def _fewer(value: Any) -> Any:
    return value[:-1] if isinstance(value, list) and _counted(value) else None


def _more(value: Any) -> Any:
    if value == []:
        return [False, ANOTHER]  # whatever its entries would be
    return [*value, value[-1]] if isinstance(value, list) and _counted(value) else None


def _counted(value: list[Any]) -> bool:
    """Return whether JAX decides how many entries there are; flags and numbers are the
    probe's own.
    """
    return bool(value) and not isinstance(value[-1], bool | int | float)


def _absent(name: str) -> Perturbation:
    def perturb(case: Case) -> Iterator[Seen]:
        for key in sorted({k for o in case.seen.observations for s in o.steps for k in s.extra}):

            def gone(_: Case, step: Step, beside: Step | None, key: str = key) -> Step | None:
                kept = {k: value for k, value in step.extra.items() if k != key}
                return replace(step, extra=kept) if key in step.extra else None

            yield from in_one_process(name, aspects.figure(key), gone).of(case)

    return Perturbation(name, perturb)


def _silent(case: Case, step: Step, beside: Step | None) -> Step | None:
    return replace(step, warnings=(), logs=()) if step.warnings or step.logs else None


def _louder(case: Case, step: Step, beside: Step | None) -> Step | None:
    again = step.warnings or (ADDED_WARNING,)
    return replace(step, warnings=(*step.warnings, *again))


def _logged(case: Case, step: Step, beside: Step | None) -> Step | None:
    return replace(step, logs=(*step.logs, *step.logs)) if step.logs else None


def _with_warning(case: Case, step: Step, beside: Step | None) -> Step:
    return replace(step, warnings=(*step.warnings, NEW_WARNING))


def _with_log_record(case: Case, step: Step, beside: Step | None) -> Step:
    return replace(step, logs=(*step.logs, NEW_LOG_RECORD))


def _between(
    change: Callable[[Case, Step, Step | None], Step],
) -> Callable[[Case, Observation], Observation]:
    """Apply a change to what was emitted outside the probe's steps."""

    def changed(case: Case, seen: Observation) -> Observation:
        return replace(seen, between=change(case, seen.between or Step(BETWEEN), None))

    return changed


PERTURBATIONS = (
    _noted("figure: times 1000", _times),
    _noted("figure: zero", _nothing, aspect=aspects.from_below),
    _noted("figure: a flag flipped", _flipped),
    _noted("figure: another text", _reworded),
    _noted("figure: an entry fewer", _fewer),
    _noted("figure: an entry more", _more),
    _absent("figure: not noted"),
    in_one_process("warnings: none", aspects.WARNINGS, _silent),
    in_one_process("warnings: more", aspects.WARNINGS, _louder),
    in_one_process("log records: none", aspects.LOGS, _silent),
    in_one_process("log records: twice", aspects.LOGS, _logged),
    in_one_process("warnings: a new one", aspects.ENDING, _with_warning),
    in_one_process("log records: a new one", aspects.ENDING, _with_log_record),
    of_observation("warnings: one between the steps", _between(_with_warning)),
    of_observation("log records: one between the steps", _between(_with_log_record)),
)
