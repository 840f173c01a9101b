"""A cache of commands' output for the same files, in the user's cache folder.

The output of `summary` and `upgrade` depends only on their options, the contents of the files and
this program; reading a hundred thousand cells takes seconds. An answer is stored under a digest of
these three, so that any change leads to another answer. A damaged answer is not used.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import reports
from conformance import model, store

MOST_KEPT = 100  # answers; the oldest are removed

_BLOCK = 1 << 20  # bytes that are read at once


@dataclass(frozen=True, slots=True)
class Answer:
    """The output of a command, and its counts for each policy of --fail-on."""

    text: str
    counted: Mapping[str, int]


def folder() -> Path:
    """Return the folder of the answers, beside the harness's targets (`harness.targets`)."""
    if named := os.environ.get("PMAP_CONFORMANCE_CACHE"):
        return Path(named).expanduser().absolute() / "answers"
    shared = os.environ.get("XDG_CACHE_HOME")
    cache = Path(shared).absolute() if shared else Path.home() / ".cache"
    return cache / "pmap-conformance" / "answers"


def answered(
    options: Mapping[str, object], files: Sequence[Path], make: Callable[[], Answer]
) -> Answer:
    """Return the answer to `options` of `files`: the stored one, or what `make` returns."""
    key = _key(options, files)
    if key is None:
        return make()
    place = folder() / f"{key}.json"
    kept = _kept(place, key)
    if kept is not None:
        return kept
    answer = make()
    if _key(options, files) == key:  # no file was written to meanwhile
        with contextlib.suppress(OSError):  # a full disk or a folder of another user: not kept
            _keep(place, key, answer)
    return answer


def _key(options: Mapping[str, object], files: Sequence[Path]) -> str | None:
    """Return the digest of everything that an answer depends on; None if a file cannot be read."""
    if not all(file.is_file() for file in files):
        return None  # a pipe is read once
    try:
        contents = [(str(file), _digest(file)) for file in files]
        program = [(str(file), _digest(file)) for file in sorted(_of_this_program())]
    except OSError:
        return None
    everything = json.dumps([sys.version, options, contents, program], sort_keys=True)
    return hashlib.sha256(everything.encode()).hexdigest()


def _of_this_program() -> list[Path]:
    """Return the files of this package: its modules, and the tables that they read."""
    folders = [Path(one.__path__[0]) for one in (reports, model, store)]
    return [
        file
        for folder in folders
        for file in folder.rglob("*")
        if file.suffix in (".py", ".toml", ".json") and "published" not in file.parts
    ]


def _digest(file: Path) -> str:
    found = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK):
            found.update(block)
    return found.hexdigest()


def _kept(place: Path, key: str) -> Answer | None:
    """Return the answer in a file; None if there is none, or it is incomplete or has
    another key.
    """
    try:
        checksum, _, body = place.read_bytes().partition(b"\n")
        if checksum != hashlib.sha256(body).hexdigest().encode():
            return None
        record = json.loads(body)
        text, counted = record["text"], record["counted"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    if record.get("key") != key or not isinstance(text, str) or not isinstance(counted, dict):
        return None
    if not all(type(count) is int for count in counted.values()):
        return None
    return Answer(text, counted)


def _keep(place: Path, key: str, answer: Answer) -> None:
    """Write an answer beside its place and move it there; remove the oldest answers."""
    body = json.dumps({"key": key, "text": answer.text, "counted": dict(answer.counted)}).encode()
    place.parent.mkdir(parents=True, exist_ok=True)
    descriptor, written = tempfile.mkstemp(dir=place.parent, prefix=".")
    try:
        with open(descriptor, "wb") as stream:
            stream.write(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
        os.replace(written, place)
    except BaseException:
        os.unlink(written)
        raise
    kept = sorted(place.parent.glob("*.json"), key=lambda one: one.stat().st_mtime, reverse=True)
    for one in kept[MOST_KEPT:]:
        one.unlink(missing_ok=True)
