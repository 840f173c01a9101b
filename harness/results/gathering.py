"""The cells of results files, the newest record of each, kept in a scratch file, not in memory.

A chooser decides for each record whether it is kept, and in which form; the records of a hundred
thousand cells are read once, line by line.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import conformance.model.records as model
from conformance.commandline.counting import counted
from conformance.model.codec import decode_record, encode_record
from conformance.model.verdicts import Verdict
from conformance.store.errors import ResultsError
from conformance.store.reading import no_record, records
from conformance.store.recorded import target_of
from harness.running.cells import CellId

CELLS_BETWEEN_PROGRESS = 10_000

# What judging may raise of a record whose observations are of no form that is ever recorded.
CANNOT_BE_USED = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    MemoryError,
)


OF_ANOTHER_PROGRAM = "of another program"  # why a cell is left out whose program changed


class LeftOut(Exception):
    """A recorded cell that is not kept; the message gives the reason in a few words, which are
    counted.
    """


class Chooser(Protocol):
    """Decides which recorded cells are kept."""

    def wants(self, id: CellId) -> bool:
        """Return whether a cell can be kept at all."""

    def kept(self, cell: model.Cell, target: model.Target) -> model.Cell:
        """Return the record in the form to keep; LeftOut says why it is not kept."""


class Key(NamedTuple):
    """A cell of one JAX: "current" may name another JAX in each file."""

    id: CellId
    jax: str | None
    platform: str | None


Beside = tuple[model.Target | None, model.Record]  # what is no cell, with its target if any
Header = tuple[str, str, str]  # what tells a target's record from all others

# What files hold beside cells, by kind, and what tells one such record from the others.
BESIDE: Mapping[type[model.Record], tuple[str, ...]] = {
    model.Timing: ("timing", "contender", "implementation", "target", "topology"),
    model.Strength: ("clause",),
    model.Growth: ("clause", "text", "implementation", "jax", "chip"),
}


@dataclass(slots=True)
class _Known:
    """The newest record of a cell: the position of its line in the scratch file, or why it is left
    out.
    """

    started: str
    ran: bool
    header: Header
    place: tuple[int, int] | None = None
    why: str = ""


@dataclass
class Gathered:
    """The records that were kept, and in `why` how many were left out for each reason."""

    _scratch: IO[bytes]
    _headers: dict[Header, model.Target] = field(default_factory=dict)
    _known: dict[Key, _Known] = field(default_factory=dict)
    _beside: dict[tuple[Any, ...], Beside] = field(default_factory=dict)

    @property
    def beside(self) -> list[Beside]:
        """Return the last record of everything that is not a cell, with its target's if it
        has one.
        """
        return list(self._beside.values())

    @property
    def kept(self) -> list[Key]:
        """Return the cells of which a record was kept."""
        return [key for key, one in self._known.items() if one.place is not None]

    @property
    def why(self) -> Counter[str]:
        """Return why wanted cells were left out, and how many for each reason."""
        return Counter(one.why for one in self._known.values() if one.place is None)

    def left_out(self, why: str) -> list[Key]:
        """Return the wanted cells that were left out for a reason."""
        return [key for key, one in self._known.items() if one.place is None and one.why == why]

    def records(self, keys: Iterable[Key]) -> Iterator[tuple[model.Target, model.Cell]]:
        """Yield the target's record and the cell's record, by clause, so that similar records are
        adjacent.
        """
        for key in sorted(keys, key=_order):
            known = self._known[key]
            assert known.place is not None
            cell = decode_record(self._text(known.place))
            assert isinstance(cell, model.Cell)
            yield self._headers[known.header], cell

    def lines(self, keys: Iterable[Key]) -> Iterator[tuple[model.Target, str, bytes]]:
        """Yield the target's record, the clause, and the cell's record as a line of JSON, as
        `records` does.
        """
        for key in sorted(keys, key=_order):
            known = self._known[key]
            assert known.place is not None
            yield self._headers[known.header], key.id.clause, self._text(known.place)

    def _text(self, place: tuple[int, int]) -> bytes:
        self._scratch.seek(place[0])
        return self._scratch.read(place[1])

    def decides(self, key: Key, target: model.Target, *, ran: bool) -> bool:
        """Return whether a record replaces a cell's earlier one; `not run` never replaces a
        verdict.
        """
        before = self._known.get(key)
        if before is None or before.ran != ran:
            return before is None or ran
        return bool(target.started >= before.started)

    def note(self, target: model.Target | None, record: model.Record) -> None:
        """Keep a record that is not a cell."""
        kind = type(record)
        self._beside[kind, *(getattr(record, name) for name in BESIDE[kind])] = target, record

    def add(self, key: Key, target: model.Target, cell: model.Cell, chooser: Chooser) -> None:
        """Add a cell's newest record, if the chooser keeps it."""
        header = (target.target, target.started, target.run)
        self._headers[header] = target
        known = _Known(target.started, cell.verdict != Verdict.NOT_RUN, header)
        try:
            line = encode_record(chooser.kept(cell, target))
        except LeftOut as error:
            known.why = str(error)
        else:
            known.place = (self._scratch.seek(0, 2), len(line))
            self._scratch.write(line)
        self._known[key] = known


def gather(files: Sequence[Path], chooser: Chooser, progress: Callable[[str], None]) -> Gathered:
    """Return the newest records of the cells of `files`; ResultsError names an invalid line."""
    found = Gathered(tempfile.TemporaryFile())  # noqa: SIM115 (it lives as long as what it keeps)
    for file in files:
        _read(file, chooser, found, progress)
    return found


def _read(file: Path, chooser: Chooser, found: Gathered, progress: Callable[[str], None]) -> None:
    targets: dict[str, model.Target] = {}
    seen = 0
    for number, record in records(file):
        try:
            match record:
                case model.Target():
                    targets[record.target] = record
                case model.Cell():
                    seen += 1
                    if seen % CELLS_BETWEEN_PROGRESS == 0:
                        progress(f"{file}: {seen} cells read")
                    target = target_of(record, targets, file, number)
                    _cell(record, target, chooser, found)
                case model.Timing() | model.Growth():
                    found.note(targets.get(record.target), record)
                case model.Strength():
                    found.note(None, record)
        except ResultsError:
            raise
        except CANNOT_BE_USED as error:
            raise no_record(file, number, error) from error
    progress(f"{file}: {counted(seen, 'cell')} read")


def _cell(cell: model.Cell, target: model.Target, chooser: Chooser, found: Gathered) -> None:
    id = CellId(cell.clause, cell.implementation, cell.topology, cell.target)
    key = Key(id, target.jax, target.platform)
    if chooser.wants(id) and found.decides(key, target, ran=cell.verdict != Verdict.NOT_RUN):
        found.add(key, target, cell, chooser)


def _order(key: Key) -> tuple[Any, ...]:
    id = key.id
    return id.clause, id.implementation, id.topology, id.target, key.jax or "", key.platform or ""
