"""Small modules of clauses, written to a folder that stands for `conformance.sections`."""

from __future__ import annotations

import importlib
import itertools
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import conformance.sections
from conformance.catalogue import modules
from conformance.spec.clause import Clause

HEAD = """\
from __future__ import annotations

from dataclasses import dataclass

from conformance.spec.clause import clause
from conformance.spec.family import family, table
from conformance.spec.columns import everywhere
from conformance.spec.expectation import not_applicable

OF = {"claim": "migrate-pmap.incompatible-devices", "expect": everywhere(not_applicable("no"))}


@dataclass(frozen=True)
class Form:
    key: str
    text: str = ""
    aside: object = ""

"""

Make = Callable[..., Clause]

_COUNT = itertools.count()


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Write a section of these modules, and return the clause that `main` declares as `id`.

    `main` binds its probe as `probe`; PACKAGE in a text stands for the section's name.
    """
    monkeypatch.setattr(conformance.sections, "__path__", [str(tmp_path)])
    before = set(sys.modules)

    def write(main: str, id: str = "errors.a", **others: str) -> Clause:
        name = f"sample{next(_COUNT)}"
        package = f"conformance.sections.{name}"
        folder = tmp_path / name
        folder.mkdir()
        main = HEAD + textwrap.dedent(main)
        for module, text in {"__init__": "", "main": main, **others}.items():
            text = textwrap.dedent(text).replace("PACKAGE", package)
            (folder / f"{module}.py").write_text(text, encoding="utf-8")
        importlib.invalidate_caches()
        modules.is_module.cache_clear()
        loaded = importlib.import_module(f"{package}.main")
        found: list[Clause] = loaded.probe.clauses
        return next(one for one in found if one.id == id)

    yield write
    for name in set(sys.modules) - before:
        if name.startswith("conformance.sections.sample"):
            del sys.modules[name]
