"""Corrections of JAX's documents: the sentence, its replacement, and a patch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path

from conformance.model.tables import load_toml

PATCH = "data/corrections.patch"
FILE = Path(__file__).with_name("corrections.toml")
COMMAND = "git apply --unidiff-zero corrections.patch"


@dataclass(frozen=True, slots=True)
class Correction:
    """Lines of a document's source, and the lines that should replace them."""

    file: str
    heading: str
    claims: tuple[str, ...]
    line: int  # the first of the lines, counted from one
    short: str  # what is so instead, in a few words
    old: tuple[str, ...]
    new: tuple[str, ...]
    href: str

    @property
    def place(self) -> tuple[str, int]:
        """A sort key: the file, and the line in it."""
        return self.file, self.line

    @property
    def was(self) -> str:
        """The old lines, joined."""
        return "\n".join(self.old)

    @property
    def becomes(self) -> str:
        """The new lines, joined."""
        return "\n".join(self.new)


@dataclass(frozen=True, slots=True)
class Wording:
    """What a document should say whose source is gone, so that no patch can change it."""

    document: str
    heading: str
    claims: tuple[str, ...]
    becomes: str


def commit() -> str:
    """Return the commit of JAX whose documents the lines are of."""
    return _source()[1]


def repository() -> str:
    """Return the address of the repository that has the documents."""
    return _source()[0]


def _source() -> tuple[str, str]:
    address: str = load_toml(FILE)["source"]
    repository, _, commit = address.rstrip("/").partition("/blob/")
    return repository, commit


@lru_cache(maxsize=1)
def corrections() -> tuple[Correction, ...]:
    """Return the table beside this module, in the order of files and lines."""
    table = load_toml(FILE)
    found = (
        Correction(
            raw["file"],
            raw["heading"],
            tuple(raw["claims"]),
            raw["line"],
            raw["short"],
            tuple(raw["old"].strip("\n").splitlines()),
            tuple(raw["new"].strip("\n").splitlines()),
            f"{table['source']}{raw['file']}?plain=1#L{raw['line']}",
        )
        for raw in table["correction"]
    )
    return tuple(sorted(found, key=lambda one: one.place))


@lru_cache(maxsize=1)
def wordings() -> tuple[Wording, ...]:
    """Return the wordings for documents without a source, in the table's order."""
    return tuple(
        Wording(raw["document"], raw["heading"], tuple(raw["claims"]), raw["new"].strip("\n"))
        for raw in load_toml(FILE)["wording"]
    )


def suggested(claims: Iterable[str]) -> Iterator[str]:
    """Yield the lines of Markdown that suggest what to write for the claims; none if unknown."""
    slugs = set(claims)
    for one in corrections():
        if slugs.intersection(one.claims):
            yield from ("", f"Suggested wording, [{one.file}, line {one.line}]({one.href}):", "")
            yield from ("````diff", *_changed(one), "````")
    for gone in wordings():
        if slugs.intersection(gone.claims):
            yield from ("", f"Suggested wording: {gone.becomes}")


def _changed(one: Correction) -> list[str]:
    return [*(f"-{line}" for line in one.old), *(f"+{line}" for line in one.new)]


def patch(some: Iterable[Correction]) -> str:
    """Return a unified diff without context, for `git apply --unidiff-zero`."""
    lines = []
    in_order = sorted(some, key=lambda one: one.place)
    for file, here in groupby(in_order, key=lambda one: one.file):
        lines += [f"--- a/{file}", f"+++ b/{file}"]
        moved = 0
        for one in here:
            before, after = len(one.old), len(one.new)
            lines.append(f"@@ -{one.line},{before} +{one.line + moved},{after} @@")
            lines += _changed(one)
            moved += after - before
    return "\n".join([*lines, ""])
