"""Lines that lists of many pages share: each is stored once, in scripts of the site.

A page names the list of its lines by a key, and `site.js` writes the lines into it. Of 120,000
lines on upgrade pages 1,800 are different, and of 12,000 lists 3,000. Without scripts, a page says
where to find the same.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from reports.render.text.summary import printable

PARTS = 4  # files: each is small, and a page loads all of them
_KEY_LENGTH = 6  # characters of 64 different ones

FILES = tuple(f"lines-{number}.js" for number in range(PARTS))


class Lines:
    """The lines that this process has rendered; each different item is rendered once."""

    def __init__(self) -> None:
        self._new: dict[str, str] = {}
        self._stored_keys: set[str] = set()
        self._rendered: dict[Hashable, str] = {}
        self._keys: dict[Hashable, str] = {}

    def rendered(self, macro: Callable[..., Any], item: Hashable, *more: Hashable) -> str:
        """Return what a template's macro renders of an item, which depends on nothing else."""
        asked = macro.name, item, more  # type: ignore[attr-defined]
        if asked not in self._rendered:
            self._rendered[asked] = macro(item, *more)
        return self._rendered[asked]

    def keys(self, macro: Callable[..., Any], items: Iterable[Hashable], *more: Hashable) -> str:
        """Return the key of the list of the lines of items, for an attribute `data-lines`.

        The list, its lines' keys in order, is stored like a line: many pages have the same.
        """
        return self._stored(" ".join(self._key(macro, item, more) for item in items))

    def taken(self) -> dict[str, str]:
        """Return the lines that are new since this was last called, by key."""
        new, self._new = self._new, {}
        return new

    def _key(self, macro: Callable[..., Any], item: Hashable, more: tuple[Hashable, ...]) -> str:
        asked = macro.name, item, more  # type: ignore[attr-defined]
        if asked not in self._keys:
            text = printable(str(macro(item, *more))).strip()
            self._keys[asked] = self._stored(text)
        return self._keys[asked]

    def _stored(self, text: str) -> str:
        key = key_of(text)
        if key not in self._stored_keys:
            self._stored_keys.add(key)
            self._new[key] = text
        return key


def key_of(text: str) -> str:
    """Return the key of a line: equal lines have equal keys in every process."""
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=_KEY_LENGTH).digest()
    return base64.urlsafe_b64encode(digest).decode()[:_KEY_LENGTH]


def add(lines: dict[str, str], more: dict[str, str]) -> None:
    """Add the lines of another process; ValueError if two lines have one key."""
    for key, text in more.items():
        if lines.setdefault(key, text) != text:
            raise ValueError(f"two lines have the key {key}: lengthen the keys")


def files(lines: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of the scripts that contain the lines."""
    parts: list[dict[str, str]] = [{} for _ in FILES]
    for key in sorted(lines):
        parts[int.from_bytes(key.encode()) % PARTS][key] = lines[key]
    for path, part in zip(FILES, parts, strict=True):
        rows = "".join(f"{json.dumps([key, text])},\n" for key, text in part.items())
        yield path, f'"use strict";\n(self.pmapLines ??= []).push(\n{rows});\n'
