"""Load every clause from the modules of `conformance.sections`.

Workers and the controller load the same modules, and a worker runs nothing else: a case names a
clause by id, so no code is sent. A worker imports JAX first; any other process imports the modules
without JAX (`stand_ins`).
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import pkgutil
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import ModuleType
from typing import Any

from conformance.catalogue.claims import Claims
from conformance.catalogue.spelling import did_you_mean
from conformance.catalogue.stand_ins import jax_left_out
from conformance.spec.clause import Clause

PACKAGE = "conformance.sections"


class CatalogueError(ValueError):
    """Clauses that contradict each other or the claims."""


@dataclass(frozen=True, repr=False)
class Catalogue:
    """All clauses by id."""

    clauses: Mapping[str, Clause]

    def __repr__(self) -> str:  # short: a traceback that shows it must not take a second
        return f"<Catalogue of {len(self.clauses)} clauses>"

    def sections(self) -> list[str]:
        """Return the sections that have clauses, sorted, without the time lane's."""
        return sorted({c.section for c in self.clauses.values() if c.timing is None})

    @functools.cached_property
    def runs(self) -> Mapping[str, tuple[str, ...]]:
        """For each clause id, all clauses that judge the same run, itself included."""
        together: dict[tuple[Any, ...], list[str]] = {}
        for one in self.clauses.values():
            together.setdefault(one.run, []).append(one.id)
        return {id: tuple(ids) for ids in together.values() for id in ids}

    def beginning(self, words: Sequence[str]) -> Catalogue:
        """Return the clauses whose id is one of `words`, begins with it or matches it as a shell
        pattern; all if `words` is empty.

        CatalogueError if a word chooses no clause.
        """
        if not words:
            return self
        chosen: dict[str, Clause] = {}
        for one in words:
            found = {
                id: clause
                for id, clause in self.clauses.items()
                if id.startswith((f"{one}.", f"{one}-")) or fnmatchcase(id, one)
            }
            if not found:
                raise CatalogueError(
                    f"no clause has the id {one!r}, or one that begins with it or matches it"
                    + did_you_mean(one, self.clauses)
                )
            chosen |= {one: self.clauses[one]} if one in self.clauses else found
        return Catalogue(dict(sorted(chosen.items())))

    def check(self, claims: Claims) -> None:
        """Raise CatalogueError if a clause names a claim or a fixed clause that does not exist."""
        for one in self.clauses.values():
            if one.claim not in claims.claims:
                raise CatalogueError(
                    f"clause {one.id}: claims.toml has no claim {one.claim!r}; "
                    "add it, or correct the slug"
                )
            if one.fixes is not None and one.fixes not in self.clauses:
                raise CatalogueError(
                    f"clause {one.id} fixes {one.fixes!r}, which is no clause; give the id of one"
                )
            if one.fixes is not None and self.clauses[one.fixes].section != one.section:
                raise CatalogueError(
                    f"clause {one.id} fixes {one.fixes!r} of another section: leave `fixes` out, "
                    "and name the clause among the remedies of the known issue"
                )
            for shown in one.timing.illustrates if one.timing else ():
                if shown not in self.clauses:
                    raise CatalogueError(
                        f"{one.id} illustrates {shown!r}, which is no clause; give the id of one"
                    )


def load(names: Iterable[str] = (PACKAGE,)) -> Catalogue:
    """Return the clauses of the named packages (all their modules) and modules.

    CatalogueError if two clauses share an id.
    """
    with jax_left_out():
        modules = [module for name in names for module in _modules(name)]
    clauses: dict[str, Clause] = {}
    for module in modules:
        for declared in _declared(module):
            section = _section_of(module)
            if section not in (None, declared.section):
                raise CatalogueError(
                    f"clause {declared.id} stands in the section {section!r}: begin its id "
                    f"with {section}. or move it"
                )
            if declared.id in clauses:
                raise CatalogueError(f"two clauses are called {declared.id}: rename one")
            clauses[declared.id] = declared
    return Catalogue(dict(sorted(clauses.items())))


def with_section_of(id: str) -> Catalogue:
    """Return a catalogue that has a clause with all of its section; every clause if it has none.

    Clauses share runs, and remedy others, in their own section alone.
    """
    section = id.split(".")[0]
    if section.isidentifier() and importlib.util.find_spec(f"{PACKAGE}.{section}") is not None:
        some = load((f"{PACKAGE}.{section}",))
        if id in some.clauses:
            return some
    return load()


def _modules(name: str) -> list[ModuleType]:
    module = _imported(name)
    if not hasattr(module, "__path__"):
        return [module]
    found = pkgutil.walk_packages(module.__path__, f"{name}.")
    return [module, *(_imported(info.name) for info in found)]


def _imported(name: str) -> ModuleType:
    """Import a module; CatalogueError with the position if it fails, or runs JAX."""
    ran_before = _jax_has_run()
    try:
        module = importlib.import_module(name)
    except ImportError:
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        inside = [one for one in frames if one.filename == _file_of(name)]
        where = f"{inside[-1].filename}:{inside[-1].lineno}" if inside else name
        text = f": {inside[-1].line}" if inside else ""
        raise CatalogueError(
            f"{where} cannot be loaded{text}: {type(error).__name__}: {error}. A row's program and "
            "model are called with NumPy's arrays as the module is loaded: give it a model of its "
            "own where NumPy refuses what JAX takes"
        ) from error
    if not ran_before and _jax_has_run():
        raise CatalogueError(
            f"{name} computes with JAX as it is loaded, and a worker could no longer choose its "
            "devices: a model is NumPy, jnp belongs into programs alone"
        )
    return module


def _file_of(name: str) -> str:
    spec = importlib.util.find_spec(name)
    return (spec.origin or "") if spec is not None else ""


def _jax_has_run() -> bool:
    """Return whether this process has computed anything with JAX."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    asked = getattr(bridge, "backends_are_initialized", None)
    return bool(asked is not None and asked())


def _section_of(module: ModuleType) -> str | None:
    """Return the section whose folder contains a module; None for modules elsewhere."""
    package, _, rest = module.__name__.partition(f"{PACKAGE}.")
    return rest.split(".")[0] if rest and not package else None


def _declared(module: ModuleType) -> list[Clause]:
    return [
        one
        for value in vars(module).values()
        if getattr(value, "__module__", None) == module.__name__
        for one in getattr(value, "clauses", ())
    ]
