"""Find the known issue or documented change behind a difference between two runs of a function.

Known differences between implementations are in `comparing/agreement.toml`; an error or a warning
is recognised by the parts of messages in known issues' tags.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from reports.analysis.comparing.entries import Entry, within
from reports.analysis.comparing.fields import (
    COLLECTIVES,
    DEVICES,
    ERROR_TEXT,
    ERROR_TYPE,
    OUTCOME,
    SHAPE,
    WARNINGS,
    Difference,
)
from reports.analysis.usercode.compared import Compared
from reports.analysis.usercode.costs import BYTES, added_collectives
from reports.analysis.usercode.runs import FIRST_CALL, KINDS, Found, noted, steps_named
from reports.store.order import LEGACY, NEW, SHARD_MAP

QUOTE_LENGTH = 12  # characters of a known issue's text that are more than a name
EXACT = 10_000  # the likeness of what ends as a known issue's own program
MOST_ISSUES = 3  # that are named for one message
# What an operation on a result is known as among the differences of clauses.
KNOWN_AS: Mapping[str, str] = {"result[0]": "indexing.multi-process.first-row"}
# The known issues of an index and of a slice that communicate, by what such a program runs.
INDEXING, SLICING = "index-replicates-the-row", "several-rows-gather-the-whole-array"
_GATHERS = "all-gather"
ANY_IMPLEMENTATION = "jax"  # of an issue that shows whatever maps
_OF_AN_INDEX = re.compile(r"jit_+(gather|dynamic_slice|multi_slice|take|rewriting_take|slice)")
_OWN = re.compile(r"\.\.\.|'[^']*'|\d+")  # of a message: what another program has otherwise
# Of a map whose in_axes or out_axes has a negative number: what the probe notes, and the issue.
NEGATIVE, OF_NEGATIVE = "negative axis", "negative-axis-taken-literally"
_OF_AXES = (OUTCOME, ERROR_TYPE, ERROR_TEXT, SHAPE)
ITERATION, ON_ALL = "iteration-goes-through-the-host", "results-stay-on-all-devices"
AFTER_TRACE, AFTER_CALL = "failed-trace-breaks-the-wrapper", "failed-call-breaks-the-wrapper"
OWN = "own"  # of a run: the function maps by itself, as JAX does by default


@dataclass(frozen=True, slots=True)
class Shown:
    """Where a known issue shows: implementations, a range of versions, topologies, and what then.

    `raises` is the last line of what ends its program, with `...` for whatever; empty for none.
    """

    implementations: tuple[str, ...]
    jax: str
    topologies: tuple[str, ...]
    raises: str = ""

    def here(self, run: Mapping[str, Any]) -> bool:
        """Return whether it shows where a run was: in one process, or in several."""
        several = {one.startswith("1x") for one in self.topologies}
        return (
            not {_implementation(run), ANY_IMPLEMENTATION}.isdisjoint(self.implementations)
            and within(self.jax, run["jax"])
            and run["topology"].startswith("1x") in several
        )

    def own_text(self) -> int:
        """Return the length of what `raises` fixes of a message."""
        return len(_OWN.sub("", self.raises))

    def ends_as(self, message: str) -> bool:
        """Return whether `raises` says more than a type, and a message is as it says.

        Names in quotes and numbers are the program's own.
        """
        _, _, says = self.raises.partition(": ")
        if len(says.replace("...", "")) < QUOTE_LENGTH:
            return False
        return re.match(_pattern(self.raises), message, re.DOTALL) is not None


@dataclass(frozen=True, slots=True)
class Issue:
    """A known issue: what a user is shown of it, and by which texts and where it is known."""

    slug: str
    title: str
    edit: str
    tags: tuple[str, ...]
    shown: tuple[Shown, ...]
    links: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return what a user is shown of it, as JSON; `links` lead to JAX's commits and issues."""
        return {"title": self.title, "edit": self.edit, "links": list(self.links)}

    def likeness(self, message: str, run: Mapping[str, Any]) -> int:
        """Return how well it explains a message of a run: 0 for not at all."""
        here = [one for one in self.shown if one.here(run)]
        if not here:
            return 0
        exact = [one.own_text() for one in here if one.ends_as(message)]
        if exact:  # of several, the one that says most
            return EXACT + max(exact)
        return max(
            (len(t) for t in self.tags if len(t) >= QUOTE_LENGTH and t in message), default=0
        )


@lru_cache
def _pattern(raises: str) -> str:
    """Return an expression for messages that differ from one in names and numbers alone."""
    parts = _OWN.split(raises.rstrip(")"))
    return ".*".join(map(re.escape, parts))


def named_issues(
    compared: Iterable[Compared], issues: Mapping[str, Issue]
) -> dict[str, dict[str, Any]]:
    """Return the known issues that explain any difference, as JSON by slug."""
    slugs = dict.fromkeys(f.cause for one in compared for f in one.found if f.cause in issues)
    return {slug: issues[slug].record() for slug in slugs}


def explain(compared: Compared, entries: Iterable[Entry], issues: Mapping[str, Issue]) -> Compared:
    """Return it with the known issue or documented change of each difference that has one."""
    known = tuple(entries)
    found = tuple(_explained(one, compared, known, issues) for one in compared.found)
    return dataclasses.replace(compared, found=found)


def _explained(
    found: Found, compared: Compared, entries: Iterable[Entry], issues: Mapping[str, Issue]
) -> Found:
    for before, after, words in (
        (compared.baseline, compared.run, ""),
        (compared.run, compared.baseline, "no longer: "),
    ):
        likely = _likely(found, before, after, issues)
        if len(likely) == 1:  # of several that a message is like, none is named
            says = f"{words}{likely[0].title}"
            return dataclasses.replace(found, cause=likely[0].slug, says=says)
    if (slug := _by_shape(found, compared)) in issues:
        return dataclasses.replace(found, cause=slug, says=issues[slug].title)
    old, new = _implementation(compared.baseline), _implementation(compared.run)
    if old == new:
        return found  # the entries are about implementations that differ
    difference = Difference(found.step, found.field, found.old, found.new)
    clause = KNOWN_AS.get(found.step, "user_code")
    topology, jax = compared.run["topology"], compared.run["jax"]
    for entry in entries:
        if entry.cause == ON_ALL and not _on_more_devices(found.step, compared):
            continue
        if entry.matches(difference, (old, new), clause, topology, jax):
            return dataclasses.replace(found, cause=entry.cause, claim=entry.claim, says=entry.says)
    return found


def _by_shape(one: Found, compared: Compared) -> str:
    """Return the known issue of which the call has the shape, and the difference the field."""
    if one.field in (COLLECTIVES, BYTES):
        return _indexing(one, compared)
    if one.field == DEVICES and _iterated(one.step, compared):
        return ITERATION
    if one.field in (ERROR_TYPE, ERROR_TEXT) and (slug := _broken_wrapper(one.step, compared.run)):
        return slug
    kinds = {_implementation(compared.baseline), _implementation(compared.run)}
    negative = any(NEGATIVE in noted(s, "axes") for s in steps_named(compared.run, FIRST_CALL))
    if negative and one.field in _OF_AXES and kinds == {LEGACY, NEW}:
        return OF_NEGATIVE
    return ""


def _broken_wrapper(step: str, run: Mapping[str, Any]) -> str:
    """Return the known issue of a call that fails because of the one before, by how that failed."""
    raised = [s["exception"] for s in steps_named(run, FIRST_CALL) if s.get("exception")]
    after = [s["exception"]["type"] for s in steps_named(run, step) if s.get("exception")]
    if (
        _implementation(run) != NEW
        or not raised
        or step == FIRST_CALL
        or set(after) != {"StoreException"}
    ):
        return ""
    return AFTER_TRACE if raised[0]["phase"] == "trace" else AFTER_CALL


def _placed(run: Mapping[str, Any], step: str) -> list[list[int]]:
    """Return the devices of each array that a step returned, in process 0."""
    leaves = [
        leaf
        for one in steps_named(run, step)[:1]
        for leaf in (one.get("value") or {}).get("leaves", ())
    ]
    return [list((leaf.get("sharding") or {}).get("devices") or ()) for leaf in leaves]


def _iterated(step: str, compared: Compared) -> bool:
    """Return whether a step returned the rows of an output: each on its own device under legacy
    pmap, all on one device under new pmap.
    """
    if (_implementation(compared.baseline), _implementation(compared.run)) != (LEGACY, NEW):
        return False
    before, after = _placed(compared.baseline, step), _placed(compared.run, step)
    alone = all(len(one) == 1 for one in (*before, *after))
    return (
        alone
        and len(before) > 1
        and len({one[0] for one in before}) == len(before)
        and len({one[0] for one in after}) == 1
    )


def _on_more_devices(step: str, compared: Compared) -> bool:
    """Return whether an array that a step returned is on more devices than in the baseline."""
    pairs = zip(_placed(compared.baseline, step), _placed(compared.run, step), strict=False)
    return any(len(after) > len(before) for before, after in pairs)


def _indexing(one: Found, compared: Compared) -> str:
    """Return the known issue of an index or a slice that added all new collectives; else empty."""
    added = added_collectives(compared.baseline, compared.run, one.step)
    if not added or not all(_OF_AN_INDEX.fullmatch(moved.program) for moved in added):
        return ""
    return SLICING if any(moved.operation == _GATHERS for moved in added) else INDEXING


def _implementation(run: Mapping[str, Any]) -> str:
    """Return the implementation of a run; of a function that maps by itself, what its maps were."""
    name = str(run["implementation"])
    if name != OWN:
        return name
    made = {kind for s in steps_named(run, FIRST_CALL) for kind in noted(s, "maps")}
    alone = [known for known, kind in KINDS.items() if made == {kind}]
    return alone[0] if alone else SHARD_MAP


def _likely(
    difference: Found,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    issues: Mapping[str, Issue],
) -> list[Issue]:
    """Return the known issues of the error or warning that `after` has and `before` has not."""
    if difference.field == WARNINGS:
        texts = _warnings(after, difference.step) - _warnings(before, difference.step)
    elif difference.field in (OUTCOME, ERROR_TYPE, ERROR_TEXT):
        texts = _messages(after, difference.step) - _messages(before, difference.step)
    else:
        return []
    found = [
        (max((i.likeness(text, after) for text in texts), default=0), i) for i in issues.values()
    ]
    best = sorted((pair for pair in found if pair[0]), key=lambda pair: -pair[0])
    return [issue for likeness, issue in best if likeness == best[0][0]][:MOST_ISSUES]


def _messages(run: Mapping[str, Any], step: str) -> set[str]:
    raised = (s.get("exception") for s in steps_named(run, step))
    return {f"{e['type']}: {e['message']}" for e in raised if e}


def _warnings(run: Mapping[str, Any], step: str) -> set[str]:
    return {str(w["message"]) for s in steps_named(run, step) for w in s.get("warnings") or ()}
