"""The text of a document below each of its headings, whatever the format of the copy.

One revision is available as the Markdown of a repository, another as the text of a saved page. Both
are normalised to the words that a reader sees: emphasis, links, roles, bullets and fences are
removed.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MARKDOWN, TEXT = "markdown", "text"

#: Headings that a document repeats under several parents, so that alone they name nothing.
REPEATED_HEADINGS = frozenset({"Example", "How this can happen", "How to fix"})
NESTING = " > "

#: A line of a saved page that ends in a permalink and is longer than this is a figure's caption.
MAX_HEADING_CHARACTERS = 100

HASH_DIGITS = 16

_FENCE = re.compile(r"\s*(?P<fence>`{3,}|~{3,})(?P<rest>.*)")
_MARKDOWN_HEADING = re.compile(r"(?P<hashes>#{1,6})\s+(?P<heading>.*?)\s*#*\s*")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_QUOTED = re.compile(r"^\s*(?:>\s?)+")
# A label, a break of cells, the target of a link, the rule under a table's head.
_UNSEEN = re.compile(r"\s*(?:\([\w-]+\)=|\+{3}.*|\[[^\]]+\]:\s.*|\|[\s|:-]+\|)\s*")
_BULLET = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")
_NUMBER = re.compile(r"^\s*\d+\.\s+")  # the other bullets of a saved page are no ASCII
_DIRECTIVE = re.compile(r"\{(?P<name>[\w-]+)\}")
_OPTION = re.compile(r"\s*:(?P<name>[\w-]+):(?P<value>.*)")
_CODE = re.compile(r"(?:\{(?P<role>\w+)\})?(?P<ticks>`+)(?P<code>.+?)(?P=ticks)", re.DOTALL)
_TITLED = re.compile(r"(?P<title>.+?)\s*<[^<>]+>", re.DOTALL)
_LINK = re.compile(r"\[(?P<text>[^\[\]]*)\](?:\([^()\s]*\)|\[[^\[\]]*\])")
_EMPHASIS = re.compile(
    r"(?<!\w)(?P<mark>\*{1,3}|_{1,3})(?=\S)(?P<text>.+?)(?<=\S)(?P=mark)(?!\w)", re.DOTALL
)
_CALLED = ("func", "meth")  # roles whose targets a page shows as calls
_TITLED_BOXES = ("warning", "note", "tip", "important")
_CELLS = ("code-cell", "raw-cell")
_QUOTES = frozenset("\"'`")


def format_of(text: str) -> str:
    """Return the format of a copy: in a saved page the first heading ends in '#', in Markdown it
    begins with it.
    """
    for line in text.splitlines():
        if _is_text_heading(line):
            return TEXT
        if _MARKDOWN_HEADING.fullmatch(line):
            return MARKDOWN
    return MARKDOWN


def heading_texts(text: str, format: str) -> dict[str, str]:
    """Split a document into the text below each heading, up to the next heading of any level.

    A repeated heading is keyed as "Parent > Heading". Text before the first heading is left out.
    ValueError if `format` is none that can be split.
    """
    if format == MARKDOWN:
        sections = list(_markdown_sections(text))
    elif format == TEXT:
        sections = list(_text_sections(text))
    else:
        raise ValueError(
            f"a document of format {format!r} has no headings to read; "
            "give the text of a document whose format is 'markdown' or 'text'"
        )
    texts: dict[str, str] = {}
    for key, body in _keyed(sections):
        # The same heading twice under one parent: what stands below either is what was reviewed.
        texts[key] = _normalised(f"{texts.get(key, '')} {body}")
    return texts


@functools.lru_cache(maxsize=1024)  # the same few headings are asked for once per claim
def words_of(heading: str) -> str:
    """Return a heading's words, which are equal in copies of different formats."""
    nested = heading.lower().split(NESTING)
    return NESTING.join(" ".join(re.findall(r"[a-z0-9_]+", _ascii(part))) for part in nested)


def hash_of(text: str) -> str:
    """Return the hash of a heading's text, equal for copies that differ in form only.

    Saved pages differ in white space, quotation marks and box drawings, and some were decoded
    wrongly: so only visible ASCII characters count, without quotation marks.
    """
    seen = "".join(c for c in _ascii(text) if c > " " and c not in _QUOTES)
    return "sha256:" + hashlib.sha256(seen.encode("ascii")).hexdigest()[:HASH_DIGITS]


def _ascii(text: str) -> str:
    return "".join(c for c in text if " " <= c <= "~" and c not in _QUOTES)


@dataclass(frozen=True, slots=True)
class _Section:
    """A heading and its level; deeper headings have higher levels."""

    level: int
    heading: str
    body: str


def _markdown_sections(text: str) -> Iterator[_Section]:
    """Yield headings: '#' lines outside code fences; underlined headings are not recognised."""
    fence = directive = ""
    found: list[tuple[int, str]] = []
    bodies: list[list[str]] = []
    prose: list[str] = []

    def end_prose() -> None:
        if bodies:
            bodies[-1].append(_seen_of_prose("\n".join(prose)))
        prose.clear()

    for line in _COMMENT.sub("", text).splitlines():
        mark = _FENCE.fullmatch(line)
        if mark and not fence:
            fence = mark["fence"]
            named = _DIRECTIVE.match(mark["rest"])
            directive = named["name"] if named else ""
            if directive in _TITLED_BOXES:
                prose.append(directive.capitalize())
        elif mark and mark["fence"].startswith(fence) and not mark["rest"].strip():
            fence = directive = ""
        elif fence and directive in ("", *_CELLS):
            end_prose()
            if bodies:
                bodies[-1].append(line)
        elif not fence and (heading := _MARKDOWN_HEADING.fullmatch(line)):
            end_prose()
            found.append((len(heading["hashes"]), _normalised(heading["heading"].replace("`", ""))))
            bodies.append([])
        elif directive and (option := _OPTION.fullmatch(line)):
            if option["name"] == "alt":  # a page's text has it beside the figure's caption
                prose.append(option["value"])
        else:
            prose.append(line)
    end_prose()
    for (level, name), body in zip(found, bodies, strict=True):
        yield _Section(level, name, "\n".join(body))


def _seen_of_prose(text: str) -> str:
    """Return Markdown outside of code as its reader sees it."""
    lines = (_QUOTED.sub("", line) for line in text.splitlines())
    kept = "\n".join(_BULLET.sub("", line) for line in lines if not _UNSEEN.fullmatch(line))
    parts: list[str] = []
    end = 0
    for code in _CODE.finditer(kept):
        parts += [kept[end : code.start()], f"\0{len(parts)}\0"]
        end = code.end()
    codes = [_seen_of_code(one["role"] or "", one["code"]) for one in _CODE.finditer(kept)]
    prose = "".join(parts) + kept[end:]
    for pattern in (_LINK, _EMPHASIS, _EMPHASIS, _EMPHASIS):
        prose = pattern.sub(lambda found: found["text"], prose)
    shown = iter(codes)
    return re.sub(r"\0\d+\0", lambda _: next(shown), prose)


def _seen_of_code(role: str, code: str) -> str:
    titled = _TITLED.fullmatch(code) if role else None
    seen = titled["title"] if titled else code
    return f"{seen}()" if role in _CALLED and not seen.endswith(")") else seen


def _text_sections(text: str) -> Iterator[_Section]:
    """Yield headings: the lines of a saved page that end in the permalink '#'.

    Captions of figures end in it too and are longer; a comment of a code sample begins with it. The
    page has lost its levels: only a repeated heading counts as deeper than the others.
    """
    found: list[str] = []
    bodies: list[list[str]] = []
    for line in text.splitlines():
        if _is_text_heading(line):
            found.append(_normalised(line.rstrip().removesuffix("#")))
            bodies.append([])
        elif bodies:
            caption = line.strip().endswith("#") and not line.strip().startswith("#")
            bodies[-1].append(_NUMBER.sub("", line.rstrip().rstrip("#") if caption else line))
    repeated = _repeated(found)
    for name, body in zip(found, bodies, strict=True):
        yield _Section(2 if name in repeated else 1, name, "\n".join(body))


def _is_text_heading(line: str) -> bool:
    line = line.strip()
    return line.endswith("#") and not line.startswith("#") and len(line) <= MAX_HEADING_CHARACTERS


def _keyed(sections: list[_Section]) -> Iterator[tuple[str, str]]:
    repeated = _repeated(section.heading for section in sections)
    parents: list[tuple[int, str]] = []
    for section in sections:
        while parents and parents[-1][0] >= section.level:
            parents.pop()
        key = section.heading
        if section.heading in repeated and parents:
            key = parents[-1][1] + NESTING + key
        parents.append((section.level, key))
        yield key, section.body


def _repeated(headings: Iterable[str]) -> frozenset[str]:
    # The well-known names count even where a revision has one of them left, so that its key stays.
    counts = Counter(headings)
    return REPEATED_HEADINGS | {heading for heading, count in counts.items() if count > 1}


def _normalised(text: str) -> str:
    return " ".join(text.split())
