"""The checkpoints in `stored`: what they hold, and that their program writes it again."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from processes import outside_pytest

from conformance.sections.idioms.checkpoints_written import (
    STORED,
    WRITTEN,
    Written,
    from_orbax,
    stored_by,
)
from conformance.sections.idioms.saving import on_all
from conformance.spec.topology import Place, Topology

MOST_BYTES = 10_000  # of one checkpoint
EVERY = pytest.mark.parametrize("written", WRITTEN.values(), ids=lambda one: one.key)


def arrays_of(folder: Path) -> dict[str, Any]:
    with np.load(folder / "state.npz") as arrays:
        return dict(arrays)


def modelled(written: Written) -> dict[str, Any]:
    """NumPy's copies for the devices of the first process."""
    return on_all(Place(Topology.parse(written.topology), 0), stored_by(written))


def assert_equal(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert found.keys() == wanted.keys()
    for name, leaf in wanted.items():
        assert found[name].dtype == leaf.dtype
        np.testing.assert_allclose(found[name], leaf, rtol=1e-6)


@EVERY
def test_arrays_and_pickle_hold_the_model_state(written: Written) -> None:
    folder = STORED / written.folder
    assert_equal(arrays_of(folder), modelled(written))
    pickled = pickle.loads((folder / "state.pickle").read_bytes())
    assert all(isinstance(leaf, jax.Array) for leaf in pickled.values())
    assert_equal(jax.tree.map(np.asarray, pickled), modelled(written))


@EVERY
def test_orbax_holds_the_same_state(written: Written) -> None:
    pytest.importorskip("orbax.checkpoint")
    found = from_orbax(STORED / written.folder, written)
    wanted = {name: leaf[0] for name, leaf in modelled(written).items()}
    assert_equal(jax.tree.map(np.asarray, found), wanted)


@EVERY
def test_a_folder_says_what_wrote_it_and_nothing_of_the_machine(written: Written) -> None:
    folder = STORED / written.folder
    said = json.loads((folder / "written.json").read_text())
    name = said["implementation"].removesuffix("_pmap")
    assert f"{name}-{said['jax']}-{said['topology']}" == written.folder
    assert said["topology"] == written.topology
    files = [one for one in folder.rglob("*") if one.is_file()]
    assert sum(one.stat().st_size for one in files) < MOST_BYTES
    assert not any(b"/home/" in one.read_bytes() for one in files)


@pytest.mark.long
def test_the_program_writes_the_same_state_again(tmp_path: Path) -> None:
    pytest.importorskip("orbax.checkpoint")
    written = WRITTEN["new-092-one-process"]
    command = [sys.executable, "-m", "harness.commandline", "launch"]
    command += [str(STORED / "write.py"), str(tmp_path / "again"), "new_pmap"]
    ended = subprocess.run(
        [*command, "--topology", written.topology, "--deadline", "240"],
        env=outside_pytest(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    again = tmp_path / "again"
    assert_equal(arrays_of(again), arrays_of(STORED / written.folder))
    assert_equal(
        jax.tree.map(np.asarray, pickle.loads((again / "state.pickle").read_bytes())),
        arrays_of(STORED / written.folder),
    )
    assert_equal(
        jax.tree.map(np.asarray, from_orbax(again, written)),
        jax.tree.map(np.asarray, from_orbax(STORED / written.folder, written)),
    )
