"""A program that `scan --fix` rewrote runs, on the JAX of this environment, and prints the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.commandline.command import DONE
from harness.commandline.main import main

pytestmark = pytest.mark.long

HANGS_S = 300
DEVICES = 4
SIDES = ("--from", "new_pmap@0.8.3", "--to", "new_pmap@0.12.0.1")
PROGRAM = """
import functools
import jax
import jax.numpy as jnp

jax.config.update("jax_pmap_shmap_merge", True)


@functools.partial(jax.pmap, axis_name="i")
def step(w, x):
    return w + 1, {"loss": jax.lax.pmean((w * x).sum(), "i"), "rows": x * 2}


def main():
    devices = jax.local_devices()
    w = jax.device_put_replicated({"w": jnp.ones(3)}, devices)["w"]
    x = jax.device_put_sharded([jnp.ones(3) * k for k in range(len(devices))], devices)
    w, metrics = step(w, x)
    print(float(metrics["loss"][0]))
    print(jax.tree.map(lambda a: a[0].tolist(), {"w": w, "rows": metrics["rows"]}))
    mesh = jax.make_mesh((2, 2), ("a", "b"))
    print([one.name for one in mesh.axis_types])


main()
"""
PRINTS = "4.5\n{'rows': [0.0, 0.0, 0.0], 'w': [2.0, 2.0, 2.0]}\n['Auto', 'Auto']\n"


def run(file: Path) -> subprocess.CompletedProcess[str]:
    own = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_", "PYTHON"))}
    return subprocess.run(
        [sys.executable, str(file)],
        env=own | {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": str(DEVICES)},
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )


def test_a_program_that_failed_runs_when_it_is_fixed(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    assert main(["scan", str(file), *SIDES, "--fix"]) == DONE
    done = run(file)
    assert done.stdout == PRINTS, done.stderr
    (tmp_path / "as_it_was.py").write_text(PROGRAM)
    assert run(tmp_path / "as_it_was.py").stdout != PRINTS
