"""The form of an observation that is compared with others: what is of another form is refused.

It is that of `schema.json`. Further keys are allowed, as observations grow with JAX; a key that is
known has its type. A page that shows one observation shows any form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reports.reading.lazily import Lazily, ResultsError
from reports.reading.records import Cell, RecordError

# Types of a plain value; a list of one item's form; a mapping of keys to forms, any of which may be
# left out; or a form that may be null.
Form = Any

_TEXT = (str,)
_WHOLE = (int,)
_NUMBER = (int, float)
_TEXT_OR_NULL = (str, type(None))
_TEXTS = [_TEXT]


class _Or:
    """Null, or of a form."""

    def __init__(self, form: Form) -> None:
        self.form = form


class _Every:
    """An object of any keys, whose values have one form."""

    def __init__(self, form: Form) -> None:
        self.form = form


_SHARDING = {"type": _TEXT, "devices": [(int, str)], "mesh": _Or(_Every((int, str, list)))}
_LEAF = {
    "path": _TEXT,
    "type": _TEXT,
    "shape": _Or([_WHOLE]),
    "dtype": _TEXT_OR_NULL,
    "weak_type": (bool, type(None)),
    "committed": (bool, type(None)),
    "sharding": _Or(_SHARDING),
    "values": (list, type(None)),
    "local_shape": _Or([_WHOLE]),
    "shards": (list, type(None)),
    "text": _TEXT_OR_NULL,
}
_EXTRA = {
    "moved": {
        "collectives": _Every(_WHOLE),
        "bytes": _WHOLE,
        "result": _WHOLE,
        "array": _WHOLE,
        "programs": _WHOLE,
        "runs": _WHOLE,
    },
    "memory": {"multiple": _NUMBER, "what": _TEXT},
    "programs": [
        {
            "name": _TEXT,
            "collectives": [{"operation": _TEXT, "bytes": _WHOLE, "shape": _TEXT}],
            "memory": _Or(_Every(_WHOLE)),
        }
    ],
    "again": {"compiled": _WHOLE, "traced": _WHOLE},
}
_STEP = {
    "name": _TEXT,
    "outcome": _TEXT,
    "value": _Or({"tree": _TEXT, "leaves": [_LEAF]}),
    "exception": _Or(
        {
            "type": _TEXT,
            "bases": _TEXTS,
            "module": _TEXT_OR_NULL,
            "phase": _TEXT_OR_NULL,
            "message": _TEXT,
            "frames": _TEXTS,
        }
    ),
    "seconds": (*_NUMBER, type(None)),
    "compiled": _WHOLE,
    "warnings": [{"category": _TEXT, "message": _TEXT, "count": _WHOLE}],
    "logs": [{"logger": _TEXT, "level": _TEXT, "message": _TEXT}],
    "extra": _EXTRA,
}
_OBSERVATION = {
    "process": _WHOLE,
    "jax": _TEXT,
    "implementation": _TEXT,
    "processes": _WHOLE,
    "steps": [_STEP],
    "between": {
        "warnings": [{"category": _TEXT, "message": _TEXT, "count": _WHOLE}],
        "logs": [{"logger": _TEXT, "level": _TEXT, "message": _TEXT}],
    },
    "witness": [{"wrapper": _TEXT, "outputs": _TEXTS, "traced": _TEXTS, "raised": (bool,)}],
    "compiled": (dict, type(None)),
    "seconds": _NUMBER,
}
_REQUIRED = ("process", "steps")
_OF_STEPS = ("name", "outcome")
_OF_EXCEPTIONS = ("type", "message")


def in_known_form(cell: Cell) -> Sequence[Mapping[str, Any]]:
    """The observations of a cell; ResultsError names the first key that is of another form."""
    some = cell.observations
    for at, one in enumerate(some):
        try:
            check(one, f"the cell record: 'observations'[{at}]")
        except RecordError as error:
            where = f"{some.where}: " if isinstance(some, Lazily) else ""
            raise ResultsError(f"{where}{error}") from None
    return some


def check(observation: Mapping[str, Any], where: str) -> None:
    """RecordError where an observation is of another form than pages compare."""
    _check(observation, _OBSERVATION, where)
    _need(observation, _REQUIRED, where)
    for step in observation["steps"]:
        _need(step, _OF_STEPS, f"{where}: a step")
        if exception := step.get("exception"):
            _need(exception, _OF_EXCEPTIONS, f"{where}: an exception")


def _need(value: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
    for key in keys:
        if key not in value:
            raise RecordError(f"{where} lacks {key!r}")


def _check(value: Any, form: Form, where: str) -> None:
    kind = type(form)
    if kind is tuple:
        if type(value) not in form:
            raise RecordError(f"{where} is of another type: {str(value)[:40]!r}")
    elif kind is dict:
        if type(value) is not dict:
            raise RecordError(f"{where} is no object")
        for key, inner in form.items():
            if key in value:
                one = value[key]
                if type(inner) is not tuple or type(one) not in inner:
                    _check(one, inner, f"{where}: {key!r}")
    elif kind is list:
        if type(value) is not list:
            raise RecordError(f"{where} is no list")
        for one in value:
            if type(form[0]) is not tuple or type(one) not in form[0]:
                _check(one, form[0], f"{where}[]")
    elif kind is _Every:
        if type(value) is not dict:
            raise RecordError(f"{where} is no object")
        for one in value.values():
            _check(one, form.form, f"{where}: a value")
    elif value is not None:
        _check(value, form.form, where)
