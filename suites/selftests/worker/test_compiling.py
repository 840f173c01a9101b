"""Workers compile with less work, but never what a test looks at."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from fake_pool import FakePool, cell_of, runner_on
from judged import clause_of
from processes import HANGS_S
from real import catalogue
from recording_process import BARE, run
from records import doubled, observations

from conformance.catalogue import identity
from conformance.catalogue.compiled import CONTEXT, METHOD, looks_at_compiled
from conformance.catalogue.modules import Place
from conformance.spec.clause import Clause
from conformance.spec.expectation import returns
from harness.running import cells

REAL = catalogue()

UNKNOWN = "--xla_conformance_knows_no_such_flag=1"

ASKS_OF_ALL = """
import sys
from conformance.catalogue.compiled import looks_at_compiled
from conformance.catalogue.loading import load
found = [looks_at_compiled(one) for one in load().clauses.values()]
print(sum(found) > 200, "jax" in sys.modules)
"""

# A backend reads the flags too: what was read once is not read again.
DIES_IF_READ = f"""
        if compiling.takes_flag():
            os.environ["XLA_FLAGS"] = "{UNKNOWN}"
        jax.pmap(lambda x: x + 1)(np.zeros(jax.local_device_count()))
"""


def test_the_flag_is_read_once_and_no_program_sees_it() -> None:
    told = run(
        f"""
        from conformance.worker import compiling
        os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
        told = {{"text": compiling.compile_quickly(always=True), "flags": os.environ["XLA_FLAGS"]}}
        {DIES_IF_READ}
        """,
        BARE,
    )
    assert compiling_text(told["text"])
    assert told["flags"] == "--xla_force_host_platform_device_count=2"


def compiling_text(text: str) -> bool:
    known = r"jax_disable_most_optimizations(, XLA_FLAGS=--\S+=false)?; but not where .+ looked at"
    return re.fullmatch(known, text) is not None


@pytest.mark.parametrize("before", ["", "--xla_cpu_enable_fast_math=false"])
def test_the_environment_is_as_it_was(before: str) -> None:
    told = run(
        f"""
        from conformance.worker import compiling
        os.environ.pop("XLA_FLAGS", None)
        if {before!r}:
            os.environ["XLA_FLAGS"] = {before!r}
        found = dict(os.environ)
        compiling.compile_quickly(always=True)
        told = dict(os.environ) == found
        """,
        BARE,
    )
    assert told is True


def test_an_xla_that_does_not_know_the_flag_works_without_it() -> None:
    told = run(
        f"""
        from conformance.worker import compiling
        compiling.FLAG = "{UNKNOWN}"
        text = compiling.compile_quickly(always=True)
        jax.pmap(lambda x: x + 1)(np.zeros(jax.local_device_count()))
        told = [compiling.takes_flag(), text]
        """,
        BARE,
    )
    assert told[0] is False
    assert UNKNOWN not in told[1]


def test_the_flag_is_not_read_where_programs_are_looked_at() -> None:
    told = run(
        """
        from conformance.worker import compiling
        read = []
        compiling.takes_flag()
        compiling._read_flags = lambda: read.append(True)
        texts = {compiling.compile_quickly(always=always) for always in (False, True)}
        told = [len(texts), len(read)]
        """,
        BARE,
    )
    assert told == [1, 1]  # what is recorded of a target does not depend on the first test


# Which tests look at what is compiled


def reaches(clause: Clause) -> bool:
    """Return whether a clause's code, as its digest covers it, gets to the context."""
    code = identity.reached(clause)
    return Place(*CONTEXT) in code.places or METHOD in code.names


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
def test_every_test_that_gets_to_the_context_is_known(every: bool) -> None:
    probes = {one.probe: one for one in REAL.clauses.values()}
    chosen = list(REAL.clauses.values() if every else probes.values())
    reached = {one.id for one in chosen if reaches(one)}
    found = {one.id for one in chosen if looks_at_compiled(one)}
    assert len(reached) > 10
    assert reached <= found
    assert len(found - reached) < 20  # an attribute of the same name


def test_jax_is_not_imported_to_know_them() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", ASKS_OF_ALL],
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=True,
    )
    assert ran.stdout.split() == ["True", "False"]


def test_their_cells_are_a_group_of_their_own() -> None:
    nodeids = [f"suites/test_a.py::test_a[errors.{name}-new_pmap-1x8-current]" for name in "ab"]
    looking, other = (
        cells.group(one, looks_at_compiled=lambda id: id.clause == "errors.a") for one in nodeids
    )
    assert cells.cluster_of(looking) != cells.cluster_of(other)
    assert cells.cluster_of(cells.group(nodeids[0])) == cells.cluster_of(other)


def test_a_test_of_values_is_none_of_them() -> None:
    assert not looks_at_compiled(REAL.clauses["rank.take.1d"])


@pytest.mark.parametrize("looks", [True, False])
def test_such_a_test_runs_where_programs_are_compiled_as_by_default(looks: bool) -> None:
    clause = replace(clause_of(returns(doubled)), probe=looking if looks else plain)
    pool = FakePool(observations())
    runner_on(pool, clause).run(cell_of(clause))
    [(case, _)] = pool.cases
    assert case.looks_at_compiled is looks


def looking(impl: Any, cluster: Any) -> None:
    cluster.compiled(lambda: None)


def plain(impl: Any, cluster: Any) -> None:
    cluster.step("call", lambda: None)
