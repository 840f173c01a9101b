"""Rules by which a scan of a program's text finds a known issue: `[[find]]` in the issue's TOML.

A rule names an event, which is something that the scanner recognises in a program, and the
attributes that the event must have. It is data: what it matches is in `conformance.scanning`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

# The words for what changes for a user, the most severe first.
SEVERITIES = (
    "crash",
    "hang",
    "wrong values",
    "error",
    "other error",
    "extra communication",
    "extra memory",
    "slower calls",
    "different sharding",
    "warning",
)

# Events, and the attributes that each of them has. An attribute is a set of words.
EVENTS: Mapping[str, frozenset[str]] = {
    # A qualified name is imported or used.
    "name": frozenset({"name", "how"}),
    # A function is called by its qualified name, with or without some of its parameters.
    "call": frozenset({"name", "passes", "omits", "value", "argument", "under"}),
    # jax.pmap or jax.shard_map makes a mapped function.
    "map": frozenset({"map", "passes", "omits", "value", "under", "mesh"}),
    # A mapped function is called.
    "called": frozenset({"map", "passes", "value", "under", "argument", "wrapper"}),
    # A mapped function's output is used.
    "output": frozenset({"of", "use", "within", "value", "under"}),
    # A function is called in the body of a mapped function.
    "body": frozenset({"map", "name", "passes", "omits", "argument", "under"}),
    # A mapped function is lowered or compiled, or the result of that is used.
    "stage": frozenset({"map", "stage", "wrapper"}),
    # A text occurs in a string of a program, a script or a configuration file.
    "text": frozenset({"text", "files"}),
    # A package is pinned in a requirements file.
    "requirement": frozenset({"package", "versions"}),
    # A name that JAX removed is used: stands for a rule on each, of the published list of names.
    "removed": frozenset({"of"}),
    # What takes code to recognise: `detector` names it.
    "detected": frozenset({"detector", "map"}),
}
TEXT, REQUIREMENT, NAME, CALL, OUTPUT = "text", "requirement", "name", "call", "output"
REMOVED = "removed"

# What may stand in braces in a rewriting, besides what the event captured.
_PLACEHOLDER = re.compile(r"\{([A-Za-z_.]+)\}")


class FindError(ValueError):
    """An invalid rule; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Find:
    """A rule: an event, the words that its attributes must have, and those that they must not.

    `says` tells a reader what was found, where the issue's title does not. `after` is the code that
    replaces what was found, with what the event captured in braces; `proved` is the clause that
    shows equal values: a rule that has it is applied by `--fix`. `effect` is the severity where
    the published cells compare nothing of the issue, `at_most` the highest where a place that was
    found seldom meets it; `asked` is the implementation that such a program asks for, whichever
    runs. `leaving` and `to` are the implementations that alone a program has to leave and to move
    to for the rule to be about a change. `needs` is a requirement: where the scanned tree has none
    but such that allow only these versions of a package, the rule does not apply. With `once`, a
    file has one finding of the rule, which counts the others; it is their noun.
    """

    event: str
    where: Mapping[str, frozenset[str]] = field(default_factory=dict)
    unless: Mapping[str, frozenset[str]] = field(default_factory=dict)
    says: str = ""
    after: str = ""
    proved: str = ""
    effect: str = ""
    at_most: str = ""
    asked: str = ""
    leaving: str = ""
    to: str = ""
    needs: str = ""
    once: str = ""

    @property
    def placeholders(self) -> tuple[str, ...]:
        """The placeholders in braces in `after`."""
        return tuple(dict.fromkeys(_PLACEHOLDER.findall(self.after)))


_TEXTS = ("says", "after", "proved", "effect", "at_most", "asked", "leaving", "to", "needs", "once")


def parse_finds(raw: Any) -> tuple[Find, ...]:
    """Parse the rules of a `[[find]]` array; FindError names the invalid rule and the error."""
    if not (isinstance(raw, list) and raw and all(isinstance(one, dict) for one in raw)):
        raise FindError("find is not an array of tables; write each rule as [[find]]")
    return tuple(_find(one) for one in raw)


def _find(raw: Mapping[str, Any]) -> Find:
    event = str(raw.get("event", ""))
    if event not in EVENTS:
        raise FindError(f"[[find]] event {event!r} is none of {', '.join(EVENTS)}")
    known = {"event", "unless", *_TEXTS, *EVENTS[event]}
    if unknown := sorted(raw.keys() - known):
        raise FindError(
            f"[[find]] of event {event} has no {', '.join(unknown)}; "
            f"it may have {', '.join(sorted(known))}"
        )
    for key in raw.keys() & {*_TEXTS}:
        if not (isinstance(raw[key], str) and raw[key].strip()):
            raise FindError(f"[[find]] {key} must be a text")
    for key in ("effect", "at_most"):
        if raw.get(key) and raw[key] not in SEVERITIES:
            raise FindError(f"[[find]] {key} is {raw[key]!r}; give one of {', '.join(SEVERITIES)}")
    if raw.get("proved") and not raw.get("after"):
        raise FindError(
            "[[find]] proved names the clause that proves the rewriting in after: add after"
        )
    where = {key: _words(raw[key], key) for key in raw.keys() & EVENTS[event]}
    if not where:
        raise FindError(f"[[find]] of event {event} would match every such event: add an attribute")
    unless = raw.get("unless", {})
    if not isinstance(unless, dict) or unless.keys() - EVENTS[event]:
        raise FindError(f"[[find]] unless is a table of {', '.join(sorted(EVENTS[event]))}")
    if raw.get("needs"):
        _requirement(raw["needs"])
    if event == TEXT:
        _patterns(where.get("text", frozenset()))
    return Find(
        event=event,
        where=where,
        unless={key: _words(value, f"unless.{key}") for key, value in unless.items()},
        **{key: raw[key] for key in raw.keys() & {*_TEXTS}},
    )


def _words(value: Any, key: str) -> frozenset[str]:
    some: Sequence[Any] = [value] if isinstance(value, str) else value
    if not (isinstance(some, list) and some and all(isinstance(w, str) and w for w in some)):
        raise FindError(f"[[find]] {key} must be a text or texts in a list")
    return frozenset(some)


def _requirement(text: str) -> None:
    try:
        Requirement(text)
    except InvalidRequirement as error:
        raise FindError(f"[[find]] needs {text!r} is not a requirement: {error}") from error


def _patterns(texts: frozenset[str]) -> None:
    for one in texts:
        try:
            re.compile(one)
        except re.error as error:
            raise FindError(
                f"[[find]] text {one!r} is not a regular expression: {error}"
            ) from error
