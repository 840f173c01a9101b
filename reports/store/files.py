"""The records of results files, with the long parts of cells left on the disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from conformance.model.codec import Decode, decode_findings
from conformance.model.records import AnyRecord
from conformance.store import reading
from conformance.store.reading import Line
from reports.store.alike import of_findings, of_observations
from reports.store.lazily import Lazily, Scratch, Store


def records(
    path: Path, scratch: Scratch, note: Callable[[str], None]
) -> Iterator[tuple[int, AnyRecord]]:
    """Yield each line's record with its line number; `note` is called with messages for the
    user.
    """
    store = Store(path, scratch)

    def keep(line: Line, part: bytes, decode: Decode[Any]) -> Sequence[Any]:
        likeness = of_findings if decode is decode_findings else of_observations
        return Lazily(store, part, line, decode, likeness)

    return reading.records(path, keep, note)
