"""Find the known issue or documented change behind a difference between two runs of a function.

Known differences between implementations are in `comparing/agreement.toml`; an error or a warning
is recognised by the parts of messages in known issues' tags.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from reports.analysis.comparing.entries import Entry, within
from reports.analysis.comparing.fields import (
    COLLECTIVES,
    ERROR_TEXT,
    ERROR_TYPE,
    OUTCOME,
    WARNINGS,
    Difference,
)
from reports.analysis.usercode.compared import Compared
from reports.analysis.usercode.costs import BYTES, added_collectives
from reports.analysis.usercode.runs import Found, steps_named

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
IMPLEMENTATION_OF = {"own": "shard_map"}


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

    def ends_as(self, message: str) -> bool:
        """Return whether `raises` says more than a type, and a message is as it says."""
        parts = [re.escape(one) for one in self.raises.split("...")]
        plain = self.raises.replace("...", "")
        return (
            len(plain) >= QUOTE_LENGTH
            and re.fullmatch(".*".join(parts), message, re.DOTALL) is not None
        )


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
        if any(one.ends_as(message) for one in here):
            return EXACT
        return max(
            (len(t) for t in self.tags if len(t) >= QUOTE_LENGTH and t in message), default=0
        )


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
        if likely:
            others = f" (or: {', '.join(i.slug for i in likely[1:])})" if likely[1:] else ""
            says = f"{words}{likely[0].title}{others}"
            return dataclasses.replace(found, cause=likely[0].slug, says=says)
    if found.field in (COLLECTIVES, BYTES) and (slug := _indexing(found, compared)) in issues:
        return dataclasses.replace(found, cause=slug, says=issues[slug].title)
    old, new = _implementation(compared.baseline), _implementation(compared.run)
    if old == new:
        return found  # the entries are about implementations that differ
    difference = Difference(found.step, found.field, found.old, found.new)
    clause = KNOWN_AS.get(found.step, "user_code")
    topology, jax = compared.run["topology"], compared.run["jax"]
    for entry in entries:
        if entry.matches(difference, (old, new), clause, topology, jax):
            return dataclasses.replace(found, cause=entry.cause, claim=entry.claim, says=entry.says)
    return found


def _indexing(found: Found, compared: Compared) -> str:
    """Return the known issue of an index or a slice that added all new collectives; else empty."""
    added = added_collectives(compared.baseline, compared.run, found.step)
    if not added or not all(_OF_AN_INDEX.fullmatch(moved.program) for moved in added):
        return ""
    return SLICING if any(moved.operation == _GATHERS for moved in added) else INDEXING


def _implementation(run: Mapping[str, Any]) -> str:
    name = str(run["implementation"])
    return IMPLEMENTATION_OF.get(name, name)


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
