"""Which files a scan evaluates: all in which a rule may match, and few of the others."""

from __future__ import annotations

import gc
from pathlib import Path

import libcst as cst
import pytest
from scanned_programs import NEW, OLD, report_of, rules_between

from conformance.scanning import scan
from conformance.scanning.relevance import EVALUATED, FOLLOWED, UNRELATED, Relevance
from conformance.scanning.rules import Rules
from conformance.scanning.sources import Source, UnreadableError

JIT = "import jax\nfrom options import OPTIONS\nf = jax.jit(len, **OPTIONS)\n"
OPTIONS = 'OPTIONS = {"abstracted_axes": 1}\n'


@pytest.fixture(scope="module")
def some_rules() -> Rules:
    return rules_between(OLD, NEW)


@pytest.mark.parametrize(
    ("text", "use"),
    [
        ("import os\n", UNRELATED),
        ("import jax\n", UNRELATED),
        ("import os  # not pmap\n", EVALUATED),
        ("import jax\nf = jax.jit(len)\n", FOLLOWED),
        ("import jax\nf = jax.jit(len, abstracted_axes=1)\n", EVALUATED),
        ("import jax\nf = jax.jit(len, abstracted_axes = 1)\n", EVALUATED),
        ("import jax\nabstracted_axes == jax.jit\n", FOLLOWED),
        ("import jax\n'''as of jax.core: a call'''\n", FOLLOWED),
        ("import jax\njax.core.call\n", EVALUATED),
        ("import jax\njax.core . \\\n  call\n", EVALUATED),
        ("from jax.core import call as c\n", EVALUATED),
        ("from jax.core import (  # (some)\n    aval,\n    # :)\n    call,\n)\n", EVALUATED),
        ("from jax.core import aval, \\\n    call\n", EVALUATED),
        ("import jax\ngetattr(jax.core, 'call')\n", EVALUATED),
        ("from jax.core import *\ncall\n", EVALUATED),
        ("from jax import ad_checkpoint as a\na.checkpoint\n", EVALUATED),
        ("import jax\njax.checkpoint\n", FOLLOWED),
        ("from jax.config import config\nconfig.update(NAME, 1)\n", UNRELATED),
        ("import jax\njax.config.update('jax_pmap_shmap_merge', 1)\n", EVALUATED),
        ("import os\nos.environ['JAX_PMAP_SHMAP_MERGE'] = '0'\n", EVALUATED),
    ],
)
def test_a_file_is_evaluated_if_a_rule_may_match(text: str, use: str, some_rules: Rules) -> None:
    assert Relevance(some_rules).verdict(text).use == use


def test_an_option_may_be_in_a_dictionary_of_another_file(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(JIT)
    (tmp_path / "options.py").write_text("OPTIONS = {}\n")
    assert report_of(tmp_path).parsed == 0
    (tmp_path / "options.py").write_text(OPTIONS)
    report = report_of(tmp_path)
    assert report.parsed == 1


def test_a_partial_of_another_file_may_hold_an_option(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("import jax\nfrom jits import jit\nf = jit(jax.nn.relu)\n")
    (tmp_path / "jits.py").write_text("import jax\njit = jax.jit\n")
    assert report_of(tmp_path).findings == ()
    text = "import functools\nimport jax\njit = functools.partial(jax.jit, abstracted_axes={})\n"
    (tmp_path / "jits.py").write_text(text)
    (one,) = report_of(tmp_path).findings
    assert (Path(one.path).name, one.place.line) == ("main.py", 3)


def test_every_rule_on_a_name_evaluates_a_file_that_uses_it(some_rules: Rules) -> None:
    relevance = Relevance(some_rules)
    names = [name for event, name in some_rules.by_name if event == "name"]
    texts = {name: _using(name) for name in names if "." in name}
    assert len(texts) > 100
    unused = [name for name, text in texts.items() if relevance.verdict(text).use != EVALUATED]
    assert unused == []


def _using(name: str) -> str:
    module, _, last = name.rpartition(".")
    return f"from {module} import (\n    other,\n    {last} as one,\n)\n"


def test_a_module_is_parsed_once_for_all_that_import_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib.py").write_text("import jax\nstep = jax.pmap(len)\n")
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text("from lib import step\ny = step(1)[0]  # pmap\n")
    parsed: list[str] = []
    parse = cst.parse_module

    def counting(text: str) -> cst.Module:
        parsed.append(text)
        return parse(text)

    monkeypatch.setattr(cst, "parse_module", counting)
    monkeypatch.setattr(scan, "CHUNK", 1)  # so that each file has an evaluation of its own
    assert len(report_of(tmp_path).findings) == 2
    assert len(parsed) == 3


def test_libcst_validates_no_node_that_it_has_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    def validate(node: cst.Name) -> None:
        raise cst.CSTValidationError("it validates")

    monkeypatch.setattr(cst.Name, "_validate", validate)
    assert Source("a.py", "a", "name = 1\n").tree.body
    with pytest.raises(cst.CSTValidationError, match="it validates"):
        cst.Name("name")  # other nodes are validated as before


def test_a_text_that_cannot_be_parsed_leaves_validation_on() -> None:
    with pytest.raises(UnreadableError):
        _ = Source("a.py", "a", "\x0c\\\n").tree
    with pytest.raises(cst.CSTValidationError):
        cst.Name("")


def test_the_garbage_collector_is_on_after_a_scan(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("import jax\nstep = jax.pmap(len)\n")
    assert report_of(tmp_path).parsed == 1
    assert gc.isenabled()
