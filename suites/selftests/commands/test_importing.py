"""Tests where an import is added to a module, and how it is written."""

from __future__ import annotations

import pytest

from conformance.commands.importing import LINE, importing

MODULE = """\
from __future__ import annotations

import os
from typing import Any

import jax

from conformance.spec.clause import clause
"""


@pytest.mark.parametrize(
    ("source", "name", "above", "line"),
    [
        ("pathlib", "Path", "import os", "from pathlib import Path"),
        ("numpy", "ndarray", "import jax", "from numpy import ndarray"),
        ("typing", "TypeVar", "import os", "from typing import Any, TypeVar"),
        (
            "conformance.spec.family",
            "table",
            "from conformance.spec.clause import clause",
            "from conformance.spec.family import table",
        ),
    ],
)
def test_an_import_is_added_in_its_group(source: str, name: str, above: str, line: str) -> None:
    lines = importing(MODULE, source, name).splitlines()
    assert lines[lines.index(above) + 1] == line


def test_an_import_that_exceeds_a_line_has_a_name_per_line() -> None:
    names = [f"name_{'x' * 20}_{number}" for number in range(4)]
    text = ""
    for name in names:
        text = importing(text or "import jax\n", "conformance.spec.clause", name)
    assert f"    {names[-1]}," in text.splitlines()
    assert max(map(len, text.splitlines())) <= LINE
