"""The upstream issues and pull requests of known issues, and what had become of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from pathlib import Path

from conformance.model.tables import load_toml
from reports.render.site.user_reports import reports

FILE = "upstream.toml"


@dataclass(frozen=True, slots=True)
class Thread:
    """An issue or pull request; `read` is the date of its newest message that was read."""

    address: str
    state: str
    read: date
    causes: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def threads() -> tuple[Thread, ...]:
    """Return the table beside this module, in its order."""
    return tuple(
        Thread(**{**raw, "causes": tuple(raw.get("causes", ()))})
        for raw in load_toml(Path(__file__).with_name(FILE))["thread"]
    )


def threads_of(slug: str, links: Iterable[str]) -> tuple[Thread, ...]:
    """Return the threads that a known issue links, or that a user report of it is."""
    reported = {one.address for one in reports() if slug in one.causes}
    named = reported.union(links)
    return tuple(one for one in threads() if one.address in named or slug in one.causes)
