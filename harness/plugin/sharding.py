"""`--shard`: the cells of this run's share, chosen once by the controller."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from conformance.model.records import Cell
from conformance.store.reading import records
from harness.plugin.session import Session
from harness.running import shards
from harness.running.cells import CellId


def choose(config: pytest.Config, session: Session) -> None:
    """Narrow the session to its shard, if one is requested; ValueError if that is impossible."""
    text, file = config.getoption("shard"), config.getoption("durations_of")
    if text is None:
        if file is not None:
            raise ValueError("--durations-of balances the parts of --shard: name one, as in 3/12")
        return
    number, count = shards.parse(text)
    every = [id for name in session.catalogue.sections() for id in session.cells(name)]
    seconds = durations(Path(file)) if file is not None else {}
    shard = shards.cut(every, session.catalogue.runs, seconds, number, count)
    session.options = dataclasses.replace(session.options, shard=shard)


def durations(file: Path) -> dict[CellId, float]:
    """Return how long each cell of a results file took; ValueError names an invalid line."""
    return {
        CellId(cell.clause, cell.implementation, cell.topology, cell.target): float(
            cell.seconds or 0.0
        )
        for _, cell in records(file)
        if isinstance(cell, Cell)
    }


def leave_out(config: pytest.Config, items: list[pytest.Item], session: Session) -> None:
    """Deselect everything but cells in a sharded run: other tests would run in every shard."""
    if session.options.shard is None:
        return
    others = [item for item in items if "cell" not in getattr(item, "fixturenames", ())]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if "cell" in getattr(item, "fixturenames", ())]
