"""The lines of results files as records: compressed by name or not, the torn end of a run left out.

A file that is no results file is one clear error that names the file, the line and what is wrong.
"""

from __future__ import annotations

import lzma
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from sys import intern
from typing import IO, Any

from reports.reading.alike import of_findings, of_observations
from reports.reading.lazily import Lazily, ResultsError, Scratch, split
from reports.reading.parsing import parsed
from reports.reading.records import Finding, RecordError, decode

XZ = ".xz"
_BLOCK = 1 << 22  # bytes that are read at once
_REPEATED = ("clause", "implementation", "target", "topology", "reason", "run_of", "program")


def records(path: Path, scratch: Scratch, note: Callable[[str], None]) -> Iterator[tuple[int, Any]]:
    """Every line's value with its number; `note` is told of a torn last line."""
    for number, line in _lines(path):
        try:
            record = _record(line, scratch, f"{path}:{number}")
        except ValueError:
            if not line.endswith(b"\n"):
                note(f"line {number} is torn (interrupted run) and was dropped")
                return
            raise ResultsError(f"{path}:{number}: not a line of JSON") from None
        yield number, record


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with lzma.open(path) if path.suffix == XZ else path.open("rb") as stream:
            yield from enumerate(lines_ahead(stream), 1)
    except (lzma.LZMAError, EOFError) as error:
        raise ResultsError(f"{path}: not a whole xz file: {error}") from None
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read: {error.strerror or error}") from None


def lines_ahead(stream: IO[bytes], size: int = _BLOCK) -> Iterator[bytes]:
    """The lines of a stream; while some are looked at, the next block is read by another thread."""
    rest = b""
    with ThreadPoolExecutor(1) as reader:
        following = reader.submit(stream.read, size)
        while block := following.result():
            following = reader.submit(stream.read, size)
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                yield line + b"\n"
    if rest:
        yield rest


def _record(line: bytes, scratch: Scratch, where: str) -> Any:
    """A line's value, the long parts of a cell as what reads them later."""
    parts = split(line) if line.endswith(b"\n") else None
    if parts is not None:
        short, findings, observations = parts
        try:
            record = parsed(short)
        except ValueError:
            pass  # in another order than the recorder's: read whole
        else:
            record |= {k: intern(v) for k in _REPEATED if type(v := record.get(k)) is str}
            record["findings"] = Lazily(scratch, findings, _finding, where, of_findings)
            record["observations"] = Lazily(
                scratch, observations, _observation, where, of_observations
            )
            return record
    return parsed(line)


def _finding(value: Any, at: str) -> Finding:
    return decode(Finding, value, f"the cell record: 'findings'{at}")


def _observation(value: Any, at: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise RecordError(f"the cell record: 'observations'{at} is no object")
    return value
