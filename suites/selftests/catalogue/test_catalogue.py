"""The catalogue: the clauses that there are, and declarations that are refused.

A clause that is declared wrongly would be a check that never runs, or one that nobody can find.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

import pytest
from judged import clause_of
from processes import HANGS_S
from real import catalogue
from records import doubled

import conformance
from conformance.catalogue import loading
from conformance.catalogue.claims import load_claims
from conformance.catalogue.loading import Catalogue, CatalogueError
from conformance.judging import applicability
from conformance.model.verdicts import Verdict
from conformance.spec.clause import Clause, Need, clause, devices, processes
from conformance.spec.expectation import NotApplicable, not_applicable, returns
from conformance.spec.expected import Expectation
from conformance.spec.names import IMPLEMENTATIONS, JAX
from conformance.spec.topology import Topology

ROOT = Path(conformance.__file__).resolve().parents[1]
REAL = catalogue()
CLAIM = "migrate-pmap.incompatible-devices"
EXPECT: dict[str, Expectation] = dict.fromkeys(IMPLEMENTATIONS, returns(doubled))


def offenders(holds: Callable[[Clause], bool]) -> list[str]:
    """The clauses for which something does not hold, all in one test: there are hundreds."""
    return [one.id for one in REAL.clauses.values() if not holds(one)]


# The clauses that there are


def test_there_are_clauses_and_they_agree_with_the_claims() -> None:
    assert REAL.clauses
    REAL.check(load_claims())


def test_every_clause_is_found_under_its_own_id() -> None:
    assert list(REAL.clauses) == sorted(one.id for one in REAL.clauses.values())
    assert all(id == one.id for id, one in REAL.clauses.items())


def test_what_breaks_clusters_on_purpose_is_not_published() -> None:
    assert "faults" not in REAL.sections()
    assert loading.load(["faulty.faults"]).sections() == ["faults"]


def test_a_clause_fixes_another_that_is_there() -> None:
    fixes = {one.id: one.fixes for one in REAL.clauses.values() if one.fixes is not None}
    assert fixes
    assert set(fixes.values()) <= set(REAL.clauses)
    assert [id for id, fixed in fixes.items() if REAL.clauses[fixed].fixes is not None] == []


def test_a_clause_says_where_it_is() -> None:
    texts: dict[str, list[str]] = {}

    def holds(one: Clause) -> bool:
        file, line = one.where
        parts = PurePosixPath(file).parts
        assert not PurePosixPath(file).is_absolute(), file
        assert parts[:2] == ("conformance", "sections"), file
        if file not in texts:
            texts[file] = (ROOT / file).read_text(encoding="utf-8").splitlines()
        return texts[file][line - 1].startswith(("@", f"def {one.probe.__name__}("))

    assert offenders(holds) == []


def test_a_clause_expects_something_of_every_implementation() -> None:
    assert offenders(lambda one: set(one.expect) in (set(IMPLEMENTATIONS), {JAX})) == []
    assert offenders(lambda one: all(e.text.strip() for e in one.expect.values())) == []
    assert offenders(lambda one: {*map(type, one.expect.values())} != {NotApplicable}) == []


def test_a_clause_can_run_on_a_topology_it_declares() -> None:
    assert offenders(lambda one: len(set(one.topologies)) == len(one.topologies)) == []
    unmet = {
        one.id: [one.needs.unmet(Topology.parse(text)) for text in one.topologies]
        for one in REAL.clauses.values()
    }
    assert {id: reasons for id, reasons in unmet.items() if None not in reasons} == {}


def test_a_clause_has_a_title_of_one_line() -> None:
    assert offenders(lambda one: one.title != "" and one.title == " ".join(one.title.split())) == []


def test_a_probe_takes_the_parameters_it_is_given() -> None:
    for one in REAL.clauses.values():
        inspect.signature(one.probe).bind(None, None, **{**one.parameters, **one.rows})


# Declarations


def declare(id: str = "errors.a", **other: Any) -> Any:
    return clause(id, **{"claim": CLAIM, "expect": EXPECT} | other)


def probe_of(**other: Any) -> Any:
    """A declared probe."""

    @declare(**other)
    def probe(impl: Any, cluster: Any) -> None:
        """Doubled.

        More is said below.
        """

    return probe


def test_a_declaration_is_kept_at_its_probe() -> None:
    probe = probe_of(id="errors.a", needs=devices(2), topologies=["1x8"])
    (one,) = probe.clauses
    assert (one.id, one.section, one.claim) == ("errors.a", "errors", CLAIM)
    assert one.title == "Doubled."
    assert one.probe is probe
    assert one.topologies == ("1x8",)
    assert one.fact == "errors.a"


def test_one_probe_may_be_declared_many_times() -> None:
    probe = probe_of(id="errors.a", title="First.")
    assert declare(id="errors.b")(probe) is probe
    assert [(c.id, c.title) for c in probe.clauses] == [
        ("errors.a", "First."),
        ("errors.b", "Doubled."),
    ]
    assert len({c.run for c in probe.clauses}) == 1


@pytest.mark.parametrize(
    "id",
    [
        "",
        "errors",
        "Errors.a",
        "errors.A",
        "errors.",
        ".a",
        "errors..a",
        "errors.a-",
        "errors.-a",
        "errors.a--b",
        "errors.a_b",
        "errors.a b",
        "errors.a/b",
        "errors.a[1]",
        "errors.a\n",
        "errors 1.a",
    ],
)
def test_an_id_that_is_not_dotted_words_is_refused(id: str) -> None:
    with pytest.raises(ValueError, match="dotted lower-case"):
        declare(id)


@pytest.mark.parametrize("id", ["errors.a", "rank_semantics.a-b.c2", "errors.other-device.1x8"])
def test_an_id_of_dotted_words_is_taken(id: str) -> None:
    (one,) = probe_of(id=id).clauses
    assert one.id == id


@pytest.mark.parametrize("missing", IMPLEMENTATIONS)
def test_every_implementation_must_be_spoken_of(missing: str) -> None:
    expect = {name: e for name, e in EXPECT.items() if name != missing}
    with pytest.raises(ValueError, match=f"errors.a has no expectation for {missing}"):
        declare(expect=expect)
    declare(expect=expect | {missing: not_applicable("no such thing")})


@pytest.mark.parametrize("doc", [None, "", "\n"])
def test_a_probe_without_a_docstring_is_refused(doc: str | None) -> None:
    def probe(impl: Any, cluster: Any) -> None: ...

    probe.__doc__ = doc
    with pytest.raises(ValueError, match=r"errors\.a has no docstring"):
        declare()(probe)
    assert declare(title="Doubled.")(probe).clauses


def test_what_a_probe_returns_can_still_be_called() -> None:
    probe = probe_of()
    assert probe(None, None) is None


@pytest.mark.parametrize(
    ("need", "topology", "unmet"),
    [
        (Need(), "1x1", None),
        (devices(8), "1x8", None),
        (devices(8), "4x2", None),
        (devices(9), "4x2", "needs at least 9 devices, 4x2 has 8"),
        (processes(2), "2x1", None),
        (processes(2), "1x8", "needs at least 2 processes, 1x8 has 1"),
        (
            processes(2, devices_per_process=4),
            "4x2",
            "needs at least 4 devices per process, 4x2 has 2",
        ),
    ],
)
def test_a_topology_that_is_too_small_is_told(need: Need, topology: str, unmet: str | None) -> None:
    assert need.unmet(Topology.parse(topology)) == unmet


SHARED = "each process does the same"


@pytest.mark.parametrize(
    ("named", "left_out", "asked", "why"),
    [
        (("1x8",), "", "1x4", None),
        (("1x8",), SHARED, "1x4", None),
        (("1x8",), "", "2x2", None),  # nobody says why not
        (("1x8",), SHARED, "2x2", f"asked of one process: {SHARED}"),
        (("1x8", "4x2"), SHARED, "2x2", None),
        (("2x2", "4x2"), "", "4x1", None),
        (("2x2", "4x2"), "", "1x8", "asked of several processes (2x2, 4x2), 1x8 has one"),
    ],
)
def test_a_topology_of_the_kind_that_a_clause_leaves_out_is_told(
    named: tuple[str, ...], left_out: str, asked: str, why: str | None
) -> None:
    one = dataclasses.replace(clause_of(dict(EXPECT)), topologies=named, left_out=left_out)
    assert one.elsewhere(Topology.parse(asked)) == why
    excused = applicability.skipped_everywhere(one, IMPLEMENTATIONS[0], Topology.parse(asked))
    assert (excused.reason if excused is not None else None) == why


def test_every_clause_is_about_the_topologies_that_it_names() -> None:
    def holds(one: Clause) -> bool:
        named = [Topology.parse(text) for text in one.topologies]
        return [one.elsewhere(topology) for topology in named] == [None] * len(named)

    assert offenders(holds) == []


def test_what_is_about_several_processes_is_not_asked_of_one() -> None:
    for id in ("indexing.whole-of-all-processes.zero", "multi_controller.gather.tiled"):
        assert REAL.clauses[id].elsewhere(Topology.parse("1x8")) is not None
    for implementation in IMPLEMENTATIONS:
        idiom = REAL.clauses["idioms.devices.actor-and-learner.no-new-collective"]
        two = Topology.parse("2x2")  # a learner of one device has nobody to average with
        excused = applicability.skipped_everywhere(idiom, implementation, two)
        assert excused is not None
        assert excused.verdict == Verdict.NOT_APPLICABLE


# Loading


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make a module of that name, with these objects declared in it."""

    def make(name: str, **objects: Any) -> ModuleType:
        made = ModuleType(name)
        for key, value in objects.items():
            value.__module__ = name
            setattr(made, key, value)
        monkeypatch.setitem(sys.modules, name, made)
        return made

    return make


def test_a_modules_clauses_are_loaded_in_order_of_their_ids(module: Any) -> None:
    module("sample_clauses", second=probe_of(id="errors.b"), first=probe_of(id="errors.a"))
    loaded = loading.load(["sample_clauses"])
    assert list(loaded.clauses) == ["errors.a", "errors.b"]
    assert loaded.sections() == ["errors"]


def test_several_modules_are_loaded_together(module: Any) -> None:
    module("sample_clauses", one=probe_of(id="errors.a"))
    module("other_clauses", one=probe_of(id="inputs.a"))
    loaded = loading.load(["sample_clauses", "other_clauses"])
    assert loaded.sections() == ["errors", "inputs"]


def test_two_clauses_of_one_id_are_refused(module: Any) -> None:
    module("sample_clauses", one=probe_of(id="errors.a"), other=probe_of(id="errors.a"))
    with pytest.raises(CatalogueError, match=r"^two clauses .*errors\.a"):
        loading.load(["sample_clauses"])


def test_two_clauses_of_one_id_in_two_modules_are_refused(module: Any) -> None:
    module("sample_clauses", one=probe_of(id="errors.a"))
    module("other_clauses", one=probe_of(id="errors.a"))
    with pytest.raises(CatalogueError, match=r"^two clauses .*errors\.a"):
        loading.load(["sample_clauses", "other_clauses"])


def test_a_probe_that_is_imported_belongs_to_its_own_module(module: Any) -> None:
    home = module("sample_clauses", one=probe_of(id="errors.a"))
    guest = module("other_clauses")
    guest.one = home.one
    assert list(loading.load(["sample_clauses", "other_clauses"]).clauses) == ["errors.a"]
    assert loading.load(["other_clauses"]).clauses == {}


def test_a_module_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_clauses"):
        loading.load(["no_such_clauses"])


# Against the claims


def test_a_clause_of_an_unknown_claim_is_refused() -> None:
    one = clause_of(returns(doubled), claim="migrate-pmap.no-such-claim")
    with pytest.raises(CatalogueError, match=r"errors\.sample: .*no-such-claim"):
        Catalogue({one.id: one}).check(load_claims())


def test_a_clause_that_fixes_no_clause_is_refused() -> None:
    one = clause_of(returns(doubled), fixes="errors.gone")
    with pytest.raises(CatalogueError, match=r"fixes 'errors\.gone'"):
        Catalogue({one.id: one}).check(load_claims())
    other = clause_of(returns(doubled), "errors.gone")
    Catalogue({one.id: one, other.id: other}).check(load_claims())


def test_a_clause_that_fixes_one_of_another_section_is_refused() -> None:
    """Whoever looks at the other one loads its section alone."""
    other = next(one for one in REAL.clauses.values() if one.section != "errors")
    one = clause_of(returns(doubled), fixes=other.id)
    assert one.section == "errors"
    with pytest.raises(CatalogueError, match=r"of another section: leave `fixes` out"):
        Catalogue({one.id: one, other.id: other}).check(load_claims())


LOADING = "from conformance.catalogue.loading import load; load(['written'])"


@pytest.mark.parametrize("first", ["", "import jax; "], ids=["without jax", "with jax"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "import numpy as np\n\nROW = np.arange(3)[3]\n",
            r"written\.py:3 cannot be loaded: ROW = np\.arange\(3\)\[3\]: IndexError: .*numpy",
        ),
        (
            "import jax.numpy as jnp\n\nMODEL = jnp.arange(3).sum()\n",
            r"written computes with JAX as it is loaded|"
            r"written\.py:3 cannot be loaded: .*jax\.numpy\.arange is used",
        ),
        ("import jax.numpy as jnp\n\nMODEL = jnp.sum\n", ""),
    ],
)
def test_a_module_that_cannot_be_loaded_says_where_and_why(
    tmp_path: Path, text: str, said: str, first: str
) -> None:
    (tmp_path / "written.py").write_text(text, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), str(Path(conformance.__file__).parents[1])])
    ended = subprocess.run(
        [sys.executable, "-c", first + LOADING],
        env={**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
    assert (ended.returncode == 0) is (said == ""), ended.stderr
    assert re.search(said, ended.stderr, re.IGNORECASE)
