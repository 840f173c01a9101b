"""The lines of results files as records, the torn end of a run left out.

A file that is no results file is one clear error that names the file, the line and what is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from sys import intern
from typing import Any

from conformance.commandline import results
from conformance.commandline.results import Line, NoValue, known_kind, parsed
from reports.reading.alike import of_findings, of_observations
from reports.reading.lazily import Lazily, ResultsError, Scratch, Store, split
from reports.reading.records import Finding, RecordError, decode

_REPEATED = ("clause", "implementation", "target", "topology", "reason", "run_of", "program")


def records(path: Path, scratch: Scratch, note: Callable[[str], None]) -> Iterator[tuple[int, Any]]:
    """Every line's record with its number; `note` is told of a torn last line."""
    store = Store(path, scratch)
    for line in _lines(path):
        try:
            record = _record(line, store)
        except NoValue as error:
            if not line.whole:
                note(f"line {line.number} is torn (interrupted run) and was dropped")
                return
            raise ResultsError(f"{path}:{line.number}: {error}") from None
        except RecordError as error:
            raise ResultsError(f"{path}:{line.number}: {error}") from None
        try:
            known_kind(record)
        except NoValue as error:
            raise ResultsError(f"{path}:{line.number}: {error}") from None
        yield line.number, record


def _lines(path: Path) -> Iterator[Line]:
    try:
        yield from results.lines(path)
    except results.ResultsError as error:
        raise ResultsError(str(error)) from None


def _record(line: Line, store: Store) -> Any:
    """A line's value, the long parts of a cell as what reads them later."""
    parts = split(line.text) if line.whole else None
    if parts is not None:
        try:
            record = parsed(parts.short)
        except NoValue:
            pass  # in another order than the recorder's: read whole
        else:
            at = line.offset
            record["findings"], record["observations"] = _lazily(
                store,
                line.number,
                (parts.findings, at + parts.places[0]),
                (parts.observations, at + parts.places[1]),
            )
            return _interned(record)
    record = parsed(line.text)
    if isinstance(record, dict) and record.get("kind") == "cell":
        _keep(record, store, line.number)
    return record


def _keep(record: dict[str, Any], store: Store, number: int) -> None:
    """Leave the long parts of a cell that was read whole in the store as well, once checked."""
    findings, observations = record.get("findings"), record.get("observations")
    if isinstance(findings, list) and isinstance(observations, list):
        for convert, some in ((_finding, findings), (_observation, observations)):
            for at, one in enumerate(some):
                convert(one, f"[{at}]")
        record["findings"], record["observations"] = _lazily(
            store, number, *((json.dumps(one).encode(), None) for one in (findings, observations))
        )
        _interned(record)


def _interned(record: dict[str, Any]) -> dict[str, Any]:
    for key in _REPEATED:
        if type(value := record.get(key)) is str:
            record[key] = intern(value)
    return record


def _lazily(
    store: Store, number: int, findings: tuple[bytes, int | None], seen: tuple[bytes, int | None]
) -> tuple[Lazily[Finding], Lazily[Mapping[str, Any]]]:
    return (
        Lazily(store, *findings, _finding, number, of_findings),
        Lazily(store, *seen, _observation, number, of_observations),
    )


def _finding(value: Any, at: str) -> Finding:
    return decode(Finding, value, f"the cell record: 'findings'{at}")


def _observation(value: Any, at: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise RecordError(f"the cell record: 'observations'{at} is no object")
    return value
