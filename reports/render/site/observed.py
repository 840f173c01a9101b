"""Format the observations of each process in a cell for a page.

Observations are written by many JAX versions and other programs: values of an unknown form are
shown unchanged, and nothing is left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from math import prod
from typing import Any

from conformance.commandline.counting import counted

Json = Mapping[str, Any]

_SORTED = json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode
_WRITTEN = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True, slots=True)
class LeafView:
    """One array of a returned value: a line about it, and long texts."""

    path: str
    summary: str
    sharding: str
    values: str
    rest: str


@dataclass(frozen=True, slots=True)
class StepView:
    """One step of the probe."""

    name: str
    outcome: str
    headline: str
    seconds: str
    message: str
    frames: str
    tree: str
    leaves: tuple[LeafView, ...]
    programs: tuple[str, ...]
    warnings: tuple[str, ...]
    logs: tuple[str, ...]
    rest: str


@dataclass(frozen=True, slots=True)
class ObservedView:
    """The observation of one process, or of several with equal ones."""

    who: str
    ran: str
    steps: tuple[StepView, ...]
    rest: str


Leaves = Callable[[Json], LeafView]


def observed(
    observations: Iterable[Json], of_leaf: Leaves | None = None
) -> tuple[ObservedView, ...]:
    """Return equal observations once, those with the rarest end first.

    `of_leaf` replaces `leaf_view`, such as a cached one.
    """
    of_leaf = of_leaf or leaf_view
    some = list(observations)
    if len(some) == 1:
        return (_observed(some, of_leaf),)
    groups: dict[str, list[Json]] = {}
    for observation in some:
        groups.setdefault(_text(_comparable(observation)), []).append(observation)
    endings = Counter(_ending(o) for group in groups.values() for o in group)
    ordered = sorted(groups.values(), key=lambda group: endings[_ending(group[0])])
    return tuple(_observed(group, of_leaf) for group in ordered)


def _observed(group: list[Json], of_leaf: Leaves) -> ObservedView:
    rest = dict(group[0])
    processes = [str(o.get("process", "?")) for o in group]
    for key in ("process", "seconds", "cpu_seconds"):
        rest.pop(key, None)
    if between := _map(rest.get("between")):
        rest["between"] = {key: some for key, some in between.items() if some}
    ran = [str(rest.pop(k)) for k in ("implementation",) if rest.get(k)]
    ran += [f"jax {rest.pop(k)}" for k in ("jax",) if rest.get(k)]
    ran += [counted(rest.pop(k), "process", "processes") for k in ("processes",) if rest.get(k)]
    witness = rest.pop("witness", None)
    for one, calls in groupby(map(_called, _list(witness))):
        times = len(list(calls))
        ran.append(f"{one} ({times} times)" if times > 1 else one)
    steps = rest.pop("steps", None)
    return ObservedView(
        who=("process " if len(processes) == 1 else "processes ") + ", ".join(processes),
        ran=" · ".join(ran),
        steps=tuple(_step(_map(step), of_leaf) for step in _list(steps)),
        rest=_rest(rest),
    )


def _called(witness: Any) -> str:
    """Return what one call of a map was, as it proves which implementation ran."""
    outputs = ", ".join(map(str, _list(_map(witness).get("outputs"))))
    return f"{_map(witness).get('wrapper', _text(witness))} → {outputs or 'no outputs'}"


def _step(step: Json, of_leaf: Leaves) -> StepView:
    rest = dict(step)
    name, outcome = str(rest.pop("name", "?")), str(rest.pop("outcome", "?"))
    value, exception = _map(rest.get("value")), _map(rest.get("exception"))
    if value or rest.get("value") is None:
        rest.pop("value", None)
    if exception or rest.get("exception") is None:
        rest.pop("exception", None)
    leaves = tuple(of_leaf(_map(leaf)) for leaf in _list(value.get("leaves")))
    tree = value.get("tree")
    extra = _map(rest.get("extra"))
    programs = [_program(one) for one in map(_map, _list(extra.get("programs")))]
    if all(programs):
        rest["extra"] = _others(extra, ("programs",))
    if exception:
        headline = _raised(exception)
        rest |= _others(exception, ("type", "module", "bases", "phase", "message", "frames"))
    elif len(leaves) == 1:
        headline = leaves[0].summary
    else:
        headline = f"{len(leaves)} leaves" if value else ""
    rest |= _others(value, ("tree", "leaves"))
    return StepView(
        name=name,
        outcome=outcome,
        headline=headline,
        seconds=_cost(rest.pop("seconds", None), rest.pop("compiled", None)),
        message=_words(exception.get("message")),
        frames="\n".join(map(_words, _list(exception.get("frames")))),
        tree="" if tree is None or len(leaves) == 1 else _words(tree),
        leaves=leaves,
        programs=tuple(filter(None, programs)),
        warnings=tuple(_warning(w) for w in _list(rest.pop("warnings", None))),
        logs=tuple(_log(entry) for entry in _list(rest.pop("logs", None))),
        rest=_rest(rest),
    )


def _program(program: Json) -> str:
    """Return what a compiled program communicates; empty if its form is unknown."""
    each = [_map(one) for one in _list(program.get("collectives"))]
    if not all(one.get("operation") for one in each) or "name" not in program:
        return ""
    sends = [
        f"{one['operation']} of {one.get('shape', '?')}, {one.get('bytes', '?')} B" for one in each
    ]
    memory = [f"{k} {_words(v)} B" for k, v in _map(program.get("memory")).items()]
    text = f"{program['name']}: {'; '.join(sends) or 'no collective'}"
    return text + (f" (memory: {', '.join(memory)})" if memory else "")


def leaf_view(leaf: Json) -> LeafView:
    """One array of a returned value."""
    shape = leaf.get("shape")
    dimensions = ", ".join(map(str, shape)) if isinstance(shape, list) else ""
    words = [f"{leaf.get('type', 'value')} {leaf.get('dtype', '')}[{dimensions}]"]
    if leaf.get("weak_type"):
        words.append("weak type")
    if isinstance(leaf.get("committed"), bool):
        words.append("committed" if leaf["committed"] else "uncommitted")
    if isinstance(leaf.get("fully_addressable"), bool):
        words.append(("" if leaf["fully_addressable"] else "not ") + "fully addressable")
    if leaf.get("text"):
        words.append(_words(leaf["text"]))
    known = (
        *("path", "type", "shape", "dtype", "weak_type", "committed", "fully_addressable"),
        *("text", "sharding", "values", "local_shape"),
    )
    return LeafView(
        path=_words(leaf.get("path") or ""),
        summary=", ".join(words),
        sharding=_sharding(leaf.get("sharding")),
        values=_values(leaf),
        rest=_rest(_others(leaf, known)),
    )


def _sharding(sharding: Any) -> str:
    if sharding is None:
        return ""
    if not isinstance(sharding, dict):
        return _words(sharding)
    words = [str(sharding.get("type", "sharding"))]
    if "spec" in sharding:
        words[0] += f" {_words(sharding['spec'])}"
    if isinstance(sharding.get("mesh"), dict):
        words.append("mesh " + ", ".join(f"{k}={_words(v)}" for k, v in sharding["mesh"].items()))
    elif sharding.get("mesh") is not None:
        words.append(f"mesh {_words(sharding['mesh'])}")
    if "devices" in sharding:
        words.append(f"devices {_words(sharding['devices'])}")
    if sharding.get("memory_kind"):
        words.append(f"memory {_words(sharding['memory_kind'])}")
    others = _others(sharding, ("type", "spec", "mesh", "devices", "memory_kind"))
    return " · ".join(words + [f"{k} {_words(v)}" for k, v in others.items()])


def _values(leaf: Json) -> str:
    values, shape = leaf.get("values"), leaf.get("local_shape")
    if values is None:
        return ""
    if (
        isinstance(values, list)
        and isinstance(shape, list)
        and shape
        and all(type(n) is int and n > 0 for n in shape)
        and prod(shape) == len(values)
    ):
        for size in reversed(shape[1:]):
            values = [values[i : i + size] for i in range(0, len(values), size)]
        local = shape != leaf.get("shape")
        return (f"local {_text(shape)}:\n" if local else "") + _rows(values)
    return _rows(values)


def _rows(values: Any) -> str:
    if isinstance(values, list) and values and all(isinstance(v, list) for v in values):
        return "[" + ",\n ".join(_text(v) for v in values) + "]"
    return _text(values)


def _raised(exception: Json) -> str:
    module = exception.get("module")
    name = str(exception.get("type", "an exception"))
    full = f"{module}.{name}" if module and module != "builtins" and "." not in name else name
    phase = exception.get("phase")
    return f"{full} in phase {phase}" if phase else full


def _warning(warning: Any) -> str:
    if not isinstance(warning, dict):
        return _words(warning)
    count = warning.get("count", 1)
    times = f" ({count} times)" if count != 1 else ""
    others = _rest(_others(warning, ("category", "message", "count")))
    return f"{warning.get('category', 'warning')}: {_words(warning.get('message'))}{times} {others}"


def _log(entry: Any) -> str:
    if not isinstance(entry, dict):
        return _words(entry)
    others = _rest(_others(entry, ("logger", "level", "message")))
    who = f"{entry.get('level', '')} {entry.get('logger', '')}".strip()
    return f"{who}: {_words(entry.get('message'))} {others}"


def _ending(observation: Json) -> str:
    return _text(
        [
            [s.get("name"), s.get("outcome"), _map(s.get("exception")).get("type")]
            for s in map(_map, _list(observation.get("steps")))
        ]
    )


def _comparable(observation: Json) -> dict[str, Any]:
    """Return the observation without its process and durations."""
    kept = _others(observation, ("process", "seconds", "cpu_seconds"))
    steps = _list(kept.get("steps"))
    if steps:
        kept["steps"] = [_others(s, ("seconds",)) if isinstance(s, dict) else s for s in steps]
    return kept


def _others(value: Json, known: Collection[str]) -> dict[str, Any]:
    return {k: v for k, v in value.items() if k not in known}


def _rest(value: Json) -> str:
    kept = {k: v for k, v in value.items() if v not in (None, {}, [])}
    return _WRITTEN(kept) if kept else ""


def _seconds(value: Any) -> str:
    return f"{value:.3f} s" if isinstance(value, int | float) else ""


def _cost(seconds: Any, compiled: Any) -> str:
    programs = f"{compiled} compiled" if isinstance(compiled, int) and compiled else ""
    return ", ".join(filter(None, (_seconds(seconds), programs)))


def _words(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else _text(value)


def _text(value: Any) -> str:
    return _SORTED(value)


def _map(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
