"""Normalise messages, so that two wordings of one message can be recognised.

JAX's messages name the user's functions, shapes and devices. A template leaves those out, so that
one page answers for all of them; the template's words make the page's address, which is the same in
every report.
"""

from __future__ import annotations

import re

from reports.analysis.comparing.changes import masked

SLOT = "…"

_READ = 2000  # characters of a message that are looked at: some are a megabyte long
_TITLE_LENGTH = 160
_SLUG_LENGTH = 80
_WORDS_THAT_TELL = 2  # a template with fewer is told apart by the error's type

_LINK = re.compile(r"https?://\S+")
_PATH = re.compile(r"(?<![\w/~.])[~.]{0,2}/[\w.+~-]+(?:/[\w.+~-]+)+(?::\d+)*")
_PLACE = re.compile(r":\d+$")
_ANGLED = re.compile(r"<[^<>\n]{1,120}>")
# What Python says of a name that it does not know is told by the name.
_QUOTED = re.compile(
    r"(?<!argument )(?<!attribute )(?<!option )(?<!flag )(?<![\w'])(['\"])(?!\1)[^\n]*?\1(?!\w)"
)
_AXIS = re.compile(r"\b([Aa]xis:?) \w+(?= of\b)")
_SHAPE = re.compile(rf"(?:{SLOT}|\[{SLOT}\])(?:\[(?:{SLOT})?\]|\{{(?:{SLOT})?\}})*|\[{SLOT}\]")
_NAMES_ONLY = re.compile(r"[\w.{}#<>…*'\"=:-]*(?:,\s*[\w.{}#<>…*'\"=:-]*)*")
_SENTENCE_END = re.compile(r"[.?!](?=\s+[A-Z`(]|\s*$)|;(?=\s)")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def template(message: str) -> str:
    """Return the first sentence of a message, with a slot for each value, name, shape and path."""
    text = _LINK.sub(SLOT, message[:_READ])
    text = _ANGLED.sub(SLOT, _PATH.sub(SLOT, text))
    text = _AXIS.sub(rf"\1 {SLOT}", _QUOTED.sub(SLOT, _emptied(text)))
    text = masked(_first_sentence(text)).replace("#", SLOT)
    return _cut(_joined(_SHAPE.sub(SLOT, text)), _TITLE_LENGTH)


def first_sentence(message: str) -> str:
    """Return the first sentence of a message as it was written, but for the folders of files."""
    text = _PATH.sub(_without_folders, _first_sentence(message[:_READ]))
    return _cut(" ".join(text.split()), _TITLE_LENGTH)


def _without_folders(path: re.Match[str]) -> str:
    name = path[0].rpartition("/")[2]
    return SLOT if _PLACE.search(name) else f"{SLOT}/{name}"  # a line is of the program that ran


def address(kind: str, text: str) -> str:
    """Return the address of a template: its words, after the error's type if they are few."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    if len(words) < _WORDS_THAT_TELL:
        words = [*re.findall(r"[a-z0-9]+", kind.lower()), *words]
    found = "-".join(words)
    return found[:_SLUG_LENGTH].rsplit("-", 1)[0] if len(found) > _SLUG_LENGTH else found


def _first_sentence(text: str) -> str:
    """Return the text up to the first full stop, or the first line that does not end in a colon."""
    taken: list[str] = []
    for line in text.strip().split("\n"):
        line = line.strip()
        if end := _SENTENCE_END.search(line):
            taken.append(line[: end.start()])
            break
        taken.append(line)
        if line and not line.endswith((":", ",")):
            break
    return " ".join(taken)


def _emptied(text: str) -> str:
    """Return text with the contents of lists, dictionaries, arguments and tuples removed."""
    found: list[str] = []
    start = 0
    while start < len(text):
        character = text[start]
        end = _end_of_bracket(text, start) if character in _CLOSING else 0
        if not end:
            found.append(character)
            start += 1
            continue
        inner = text[start + 1 : end]
        called = start > 0 and (text[start - 1].isalnum() or text[start - 1] in "_…")
        if not inner or not (character != "(" or called or _NAMES_ONLY.fullmatch(inner)):
            found.append(f"{character}{_emptied(inner)}{text[end]}")
        else:
            found.append(f"{character}{SLOT}{text[end]}")
        start = end + 1
    return "".join(found)


def _end_of_bracket(text: str, start: int) -> int:
    """Return where the bracket that opens at `start` closes; 0 if it does not."""
    opening, closing, depth = text[start], _CLOSING[text[start]], 0
    for place in range(start, len(text)):
        if text[place] == opening:
            depth += 1
        elif text[place] == closing:
            depth -= 1
            if depth == 0:
                return place
    return 0


def _joined(text: str) -> str:
    """Return text with neighbouring slots joined."""
    return re.sub(rf"{SLOT}(?:[\s,]*{SLOT})+", SLOT, text).strip()


def _cut(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    return text[: length - 1].rsplit(" ", 1)[0].rstrip(f" ,:({SLOT}") + SLOT
