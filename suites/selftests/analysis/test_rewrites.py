"""The edits as code: each names causes of the catalogue, and its lines run as they stand."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from conformance.catalogue.causes import load_causes
from reports.analysis.effects.effect import Effect
from reports.analysis.effects.rewrites import Rewrite, Usage, rewrites, weight

DEVICES = "--xla_force_host_platform_device_count=8"
EDITS = rewrites().edits
LIMIT_S = 300


def test_every_cause_of_the_table_is_of_the_catalogue() -> None:
    named = {*rewrites().usages, *rewrites().output_only}
    assert named <= set(load_causes())


def test_no_cause_has_two_edits() -> None:
    causes = [cause for one in EDITS for cause in one.causes]
    assert len(causes) == len(set(causes))


@pytest.mark.parametrize("one", EDITS, ids=lambda one: one.title)
def test_the_lines_are_python_and_differ(one: Rewrite) -> None:
    compile(f"{rewrites().prelude}\n{one.before}", "before", "exec")
    compile(f"{rewrites().prelude}\n{one.after}", "after", "exec")
    assert one.before != one.after


def test_what_is_likely_and_severe_weighs_more() -> None:
    assert weight(Effect.RAISES, Usage.ORDINARY) > weight(Effect.CRASHES, Usage.UNUSUAL)
    assert weight(Effect.CRASHES, Usage.COMMON) > weight(Effect.RAISES, Usage.COMMON)
    assert weight(Effect.SAME, Usage.ORDINARY) == 0


@pytest.mark.long
def test_the_lines_after_run_as_they_stand() -> None:
    pytest.importorskip("flax")
    programs = [f"{rewrites().prelude}\n{one.after}" for one in EDITS]
    run = "".join(
        f"exec(compile({text!r}, 'edit {n}', 'exec'), {{}})\n" for n, text in enumerate(programs)
    )
    done = run_alone(run)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.long
def test_the_second_call_fails_as_its_edit_says() -> None:
    """Not the first: the lines before must show the issue that their page is about."""
    rewrite = rewrites().by_cause["second-call-on-other-devices"]
    first, last = rewrite.before.rsplit("\n", 1)
    done = run_alone(f"{rewrites().prelude}\n{first}\nprint('returned')\n{last}")
    assert done.stdout == "returned\n"
    assert done.returncode != 0


def run_alone(text: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a new process with the devices of these tests."""
    return subprocess.run(
        [sys.executable, "-c", text],
        env=os.environ | {"XLA_FLAGS": DEVICES, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
