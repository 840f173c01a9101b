"""What follows the version of a library, and not of JAX: changes, and functions that raise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from conformance.model.records import JAX
from reports.analysis.effects.changed import Upgrade
from reports.analysis.effects.rewrites import Rewrite, rewrites
from reports.analysis.issues.issue import Issue
from reports.analysis.issues.places import KINDS
from reports.analysis.issues.states import NOT_TESTED, Found, State
from reports.analysis.libraries import Pair, load_libraries
from reports.analysis.public_names import Name, load_names
from reports.store.order import version_order
from reports.store.results import Results


def without_libraries(found: Upgrade) -> Upgrade:
    """Return an upgrade without the entries that follow the version of a library."""
    own = rewrites()
    return found.only(
        lambda one: one.cause is None or not own.library_of(one.cause.cause), count_others=False
    )


def library_changes(pairs: Iterable[Pair], jax: str) -> tuple[Rewrite, ...]:
    """Return the changes that a library's newest version beside a JAX may bring, the oldest first.

    Whatever version the cells ran with: which one a reader has is not known.
    """
    newest = {one.library: one.version for one in pairs if one.jax == jax and not one.pinned}
    some = (
        one
        for one in rewrites().edits
        if one.library in newest and version_order(one.since) <= version_order(newest[one.library])
    )
    return tuple(sorted(some, key=lambda one: (one.library, version_order(one.since))))


@dataclass(frozen=True, slots=True)
class Libraries:
    """What an upgrade of JAX may bring with libraries, whatever versions the cells ran with."""

    changes: tuple[Rewrite, ...] = ()
    outdated: tuple[Outdated, ...] = ()


def libraries_between(old_jax: str, new_jax: str) -> Libraries:
    """Return what may change with libraries between two releases."""
    pairs = load_libraries()
    return Libraries(
        library_changes(pairs, new_jax),
        outdated(pairs, load_names().names, old_jax, new_jax),
    )


@dataclass(frozen=True, slots=True)
class Outdated:
    """Functions of a library that raise from a JAX on: up to version `raises`.

    `works` is the oldest version with which they were run on the new JAX of the upgrade, and work.
    """

    library: str
    functions: tuple[str, ...]
    raises: str
    works: str
    jax: str
    new_jax: str
    error: str

    @property
    def sentence(self) -> str:
        """What raises where, and what works."""
        *others, last = (f"`{name}`" for name in self.functions)
        names = f"{', '.join(others)} and {last}" if others else last
        raises = "raises" if len(self.functions) == 1 else "raise"
        works = f" {self.library} {self.works} works with JAX {self.new_jax}." if self.works else ""
        return (
            f"With JAX {self.jax} or later, {names} of {self.library} up to {self.raises} "
            f"{raises} {self.error.partition(':')[0]}.{works}"
        )


def outdated(
    pairs: Sequence[Pair], names: Iterable[Name], old_jax: str, new_jax: str
) -> tuple[Outdated, ...]:
    """Return the libraries of which an older version raises on the new JAX, and not on the old.

    A function that raises because JAX removed a name raises from the release on that removed it.
    """
    gone = {one.text: one.gone for one in names if one.gone}
    found: dict[tuple[str, str], list[tuple[Pair, str, str]]] = {}
    for one in pairs:
        for function, use in one.uses.items():
            if use.error:
                since = _since(use.error, gone) or one.jax
                found.setdefault((one.library, since), []).append((one, function, use.error))
    return tuple(
        _outdated(pairs, library, since, new_jax, some)
        for (library, since), some in found.items()
        if version_order(old_jax) < version_order(since) <= version_order(new_jax)
    )


def _since(error: str, gone: Mapping[str, str]) -> str:
    return next((jax for name, jax in gone.items() if name in error), "")


def _outdated(
    pairs: Sequence[Pair],
    library: str,
    since: str,
    new_jax: str,
    some: Sequence[tuple[Pair, str, str]],
) -> Outdated:
    functions = tuple(dict.fromkeys(function for _, function, _ in some))
    newest = max((one.version for one, _, _ in some), key=version_order)
    works = [
        one.version
        for one in pairs
        if one.library == library
        and one.jax == new_jax
        and all(name in one.uses and not one.uses[name].error for name in functions)
        and version_order(one.version) > version_order(newest)
    ]
    works.sort(key=version_order)
    return Outdated(
        library, functions, newest, works[0] if works else "", since, new_jax, some[-1][2]
    )


def versions_of(results: Results, library: str) -> Mapping[str, str]:
    """Return the version of a library in the runs of each JAX, the newest if they differ."""
    found: dict[str, str] = {}
    for one in results.environments:
        if one.jax and library in one.packages:
            known = found.get(one.jax, one.packages[library])
            found[one.jax] = max(known, one.packages[library], key=version_order)
    return found


def by_library(
    results: Results, issue: Issue
) -> tuple[tuple[str, ...], Mapping[tuple[str, str], Mapping[str, Found]]]:
    """Return the versions of an issue's library, and its state in each, in the runs of any JAX."""
    had = versions_of(results, issue.library)
    versions = tuple(sorted(set(had.values()), key=version_order))
    names = [name for name in issue.implementations if name != JAX] or [JAX]
    rows: dict[tuple[str, str], Mapping[str, Found]] = {}
    for name in names:
        for kind in KINDS:
            found = issue.rows.get((name, kind), {})
            of_version = {
                version: [one for jax, one in found.items() if had.get(jax) == version]
                for version in versions
            }
            if found:
                rows[name, kind] = {version: _worst(some) for version, some in of_version.items()}
    return versions, rows


def _worst(some: Iterable[Found]) -> Found:
    ran = [one for one in some if one.state not in (State.NOT_TESTED, State.REMOVED)]
    affected = [one for one in ran if one.effect is not None] or ran
    return min(affected, key=lambda one: one.effect.rank if one.effect else 0, default=NOT_TESTED)
