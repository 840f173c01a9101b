"""Write a site whole or not at all.

It is made beside its place and then renamed, so that readers of the old one never see half of the
new. Only a directory that holds nothing but an earlier site is replaced.
"""

from __future__ import annotations

import lzma
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from reports.store.input_error import InputError

MARK = "pmap-conformance report"  # the first words of the list of files
COMPRESSED = ".xz"
CONTENTS = f"contents.txt{COMPRESSED}"  # every file of a site, itself left out
_EARLIER = "contents.txt"  # the same, as sites had it before
_MARK_WITHIN_BYTES = 512

Fill = Callable[[Path], Iterable[str]]  # puts the files of a site into a folder, and names them


class SiteError(InputError):
    """The site cannot be written; the message says where and why."""


def write(fill: Fill, directory: Path) -> tuple[str, ...]:
    """Make `directory` the site that `fill` writes into a new folder; return the paths of its
    files.

    SiteError names the file that cannot be written.
    """
    place = directory.resolve()
    try:
        _refuse_foreign(place, directory)
        place.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
        try:
            new = beside / "new"
            new.mkdir()
            written = tuple(fill(new))
            put(new, CONTENTS, "\n".join([MARK, *sorted(written), ""]))
            _swap(new, place, beside / "old")
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    except OSError as error:
        raise SiteError(f"{error.filename or directory}: {error.strerror}") from None
    return written


def put(folder: Path, name: str, text: str) -> str:
    """Write one file of a site with the same line ends on every system; return its name."""
    path, content = folder / name, text.encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(content) if name.endswith(COMPRESSED) else content)
    return name


def _swap(new: Path, place: Path, old: Path) -> None:
    if not place.exists():
        new.rename(place)
        return
    place.rename(old)
    try:
        new.rename(place)
    except OSError:
        old.rename(place)
        raise


def _refuse_foreign(place: Path, shown: Path) -> None:
    """Raise SiteError if `place` contains a file that is not of an earlier site."""
    if not place.exists():
        return
    if not place.is_dir():
        raise SiteError(f"{shown} is a file: choose a directory for the site")
    known = _contents(place)
    for path in sorted(place.rglob("*")):
        if path.is_symlink() or not path.is_dir():
            name = path.relative_to(place).as_posix()
            if path.is_symlink() or not (name in known or _of_old(path)):
                raise SiteError(
                    f"{shown / name} was not written by `report site`: move it away, or choose "
                    "another directory"
                )


def _of_old(path: Path) -> bool:
    """Return whether it is a file of a site from before sites had a list of their files."""
    with path.open("rb") as file:
        return MARK.encode() in file.read(_MARK_WITHIN_BYTES)


def _contents(place: Path) -> set[str]:
    for name, open_text in ((CONTENTS, lzma.open), (_EARLIER, open)):
        try:
            with open_text(place / name, "rt", encoding="utf-8") as file:
                first, *names = file.read().splitlines()
        except (OSError, lzma.LZMAError, EOFError, ValueError):
            continue
        return {name, *names} if first == MARK else set()
    return set()
