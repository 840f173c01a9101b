"""`conformance.plain`: a clause's program run by hand, in a Python without harness and pytest."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from processes import HANGS_S

import conformance
from conformance.worker.ports import ReservedPort

ROOT = Path(conformance.__file__).parents[1]


def started(code: str, **variables: str) -> subprocess.Popen[str]:
    """A Python that runs `code`, with nothing said to JAX in its environment."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_", "PYTHON"))}
    return subprocess.Popen(
        [sys.executable, "-c", f"from conformance import plain\n{code}"],
        env=kept | {"PYTHONPATH": str(ROOT)} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def printed(processes: Sequence[subprocess.Popen[str]]) -> list[str]:
    """Return the output of each process; all must end with status 0."""
    ended = [one.communicate(timeout=HANGS_S) for one in processes]
    assert [one.returncode for one in processes] == [0] * len(processes), ended
    return [out for out, _ in ended]


def test_a_program_prints_what_its_steps_returned() -> None:
    [text] = printed([started("plain.run('errors.lowered.one-process-map')")])
    steps = ["the map itself", "first call", "second call"]
    assert [line.split(":")[0] for line in text.splitlines() if "Array(" in line] == steps
    assert text.count("[ 2.,  4.,  6.],") == text.count("[44., 46., 48.]]") == len(steps)
    assert "raised" not in text


def test_a_program_prints_what_its_steps_raised() -> None:
    [text] = printed([started("plain.run('rank.sum.no-axis.1d', 'shard_map')")])
    assert "\nunchanged again: raised ValueError: " in text
    assert text.count("\n  rank outcome: error\n") == 2
    assert "\nindexed again: returned Array([29.75 , 31.5  ," in text


def test_what_a_probe_is_given_is_there_to_play_with() -> None:
    code = """
impl, cluster = plain.start("new_pmap", "1x2")
print(impl.map(lambda x: 2 * x)(cluster.rows(3)).shape)
try:
    plain.start("new_pmap", "1x4")
except RuntimeError as error:
    print(error)
"""
    [text] = printed([started(code)])
    first, refused = text.splitlines()
    assert first == "(2, 3)"
    assert {"1x2", "1x4"} <= set(re.findall(r"\dx\d", refused))


def test_several_processes_are_as_many_scripts() -> None:
    port = ReservedPort()
    code = f"""
impl, cluster = plain.start("new_pmap", "2x1", coordinator="{port.address}")
print(impl.map(lambda x: plain.jax.lax.psum(x, "i"))(cluster.rows(1)))
"""
    try:
        texts = printed([started(code, PROCESS=str(number)) for number in range(2)])
    finally:
        port.close()
    assert texts[0].splitlines()[-1] == texts[1].splitlines()[-1]
    assert texts[0].splitlines()[-1].startswith("[[")


def test_devices_that_jax_has_already_are_said() -> None:
    code = """
import jax
jax.devices()
try:
    plain.run("errors.lowered.one-process-map")
except RuntimeError as error:
    print(error)
"""
    [text] = printed([started(code)])
    for part in ("1x8", "conformance.plain"):
        assert part in text


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("plain.run('errors.lowered.one-process-mpa')", "did you mean errors.lowered.one-process"),
        ("plain.start('new-pmap')", "no implementation is called new-pmap; did you mean new_pmap"),
        ("plain.start('new_pmap', 'two')", "topology 'two' is not PROCESSESxDEVICES"),
        ("plain.start('new_pmap', '2x1', process=2)", "process 2 is none of 2x1: give 0 to 1"),
    ],
)
def test_what_there_is_not_is_refused(call: str, message: str) -> None:
    process = started(call)
    _, err = process.communicate(timeout=HANGS_S)
    assert process.returncode == 1
    assert message in err.splitlines()[-1]
