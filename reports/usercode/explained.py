"""Which known issue or documented change explains a difference between two runs of a function.

What is known of differences between implementations stands in `comparing/agreement.toml`; an error
or a warning is known by the parts of messages that known issues are searched by.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from reports.comparing.entries import Entry
from reports.comparing.fields import ERROR_TEXT, ERROR_TYPE, OUTCOME, WARNINGS, Difference
from reports.usercode.compared import Compared, Found, steps_named

QUOTE_LENGTH = 12  # characters of a known issue's tag that are more than a name
# What an operation on a result is known as among the differences of clauses.
KNOWN_AS: Mapping[str, str] = {"result[0]": "indexing.multi-process.first-row"}
IMPLEMENTATION_OF = {"own": "shard_map"}


@dataclass(frozen=True, slots=True)
class Issue:
    """A known issue: what a user is shown of it, and the texts by which it is known."""

    slug: str
    title: str
    edit: str
    tags: tuple[str, ...]

    def quotes(self, message: str) -> bool:
        """Whether one of its tags is a part of a message."""
        return any(len(tag) >= QUOTE_LENGTH and tag in message for tag in self.tags)


def explain(compared: Compared, entries: Iterable[Entry], issues: Mapping[str, Issue]) -> Compared:
    """Return it with the known issue or documented change of each difference that has one."""
    known = tuple(entries)
    found = tuple(_explained(one, compared, known, issues) for one in compared.found)
    return dataclasses.replace(compared, found=found)


def _explained(
    one: Found, compared: Compared, entries: Iterable[Entry], issues: Mapping[str, Issue]
) -> Found:
    quoting = _quoting(one, compared, issues)
    if quoting is not None:
        return dataclasses.replace(one, cause=quoting.slug, says=quoting.title)
    old, new = _implementation(compared.baseline), _implementation(compared.run)
    if old == new:
        return one  # the entries are about implementations that differ
    difference = Difference(one.step, one.field, one.old, one.new)
    clause = KNOWN_AS.get(one.step, "user_code")
    topology, jax = compared.run["topology"], compared.run["jax"]
    for entry in entries:
        if entry.matches(difference, (old, new), clause, topology, jax):
            return dataclasses.replace(one, cause=entry.cause, claim=entry.claim, says=entry.says)
    return one


def _implementation(run: Mapping[str, Any]) -> str:
    name = str(run["implementation"])
    return IMPLEMENTATION_OF.get(name, name)


def _quoting(one: Found, compared: Compared, issues: Mapping[str, Issue]) -> Issue | None:
    """Return the known issue that quotes the error or warning that only the new run has."""
    if one.field == WARNINGS:
        texts = _warnings(compared.run, one.step) - _warnings(compared.baseline, one.step)
    elif one.field in (OUTCOME, ERROR_TYPE, ERROR_TEXT):
        texts = _messages(compared.run, one.step) - _messages(compared.baseline, one.step)
    else:
        return None
    return next((i for i in issues.values() if any(map(i.quotes, sorted(texts)))), None)


def _messages(run: Mapping[str, Any], step: str) -> set[str]:
    raised = (s.get("exception") for s in steps_named(run, step))
    return {f"{e['type']}: {e['message']}" for e in raised if e}


def _warnings(run: Mapping[str, Any], step: str) -> set[str]:
    return {str(w["message"]) for s in steps_named(run, step) for w in s.get("warnings") or ()}
