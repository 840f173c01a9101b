"""Texts as pages show them.

Everything that comes from a results file is escaped here or by the templates, never trusted.
"""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape

from reports.analysis.effects.effect import Effect

_KEPT = 4096  # texts: most stand on many pages

_EFFECTS = {effect.value: effect.words for effect in Effect}
_PHASE = re.compile(r" \(phase \w+\)")
_CHILD = re.compile(r"raised ChildError: (?=(\w+(?:\.\w+)*: )?)")
_NO_VALUES = re.compile(r"\bWRONG: no local values to compare\b")
_RESULT = re.compile(r"(?:^|(?<=: ))it is (?=\w)")
_PART = re.compile(r"((?:`[^`]*`|[^`:;(])*?)(?=[:;]| \()")
_QUOTES = {"&#34;": '"', "&quot;": '"', "&#39;": "'", "&#x27;": "'"}
_SIMPLE = re.compile(r'="([\w.#/:;,%+-]+)"')  # the value of an attribute
_QUOTE = re.compile("|".join(_QUOTES))
_CODE = re.compile(r"(`+)(.+?)\1(?!`)", re.DOTALL)


@lru_cache(_KEPT)
def code_marked(text: str) -> str:
    """HTML of a sentence: escaped, and what stands between backticks as code."""
    return _CODE.sub(lambda m: f"<code>{m[2].strip()}</code>", escape(str(text)))


def parted(text: str) -> tuple[str, str]:
    """Return what to do, and how: a sentence parted at its first colon, semicolon or bracket.

    What stands between backticks is not parted.
    """
    found = _PART.match(text)
    return (text, "") if found is None else (found[1], text[found.end(1) :])


def plain(text: str) -> str:
    """The sentence without its backticks, for a browser's title."""
    return _CODE.sub(lambda m: m[2].strip(), str(text))


def effect_css(word: str) -> str:
    """The class that colours an effect and gives it its shape, from its word."""
    return "e-" + re.sub("[^a-z]+", "-", word)


def effect_words(word: str) -> str:
    """An effect as pages name it; what is no effect's value stays as it is."""
    return _EFFECTS.get(word, word)


def unphased(text: str) -> str:
    """The text without the phases in which something was raised: of use to the judge alone."""
    return _PHASE.sub("", text)


def bare_quotes(page: str) -> str:
    """Return a page without the quotes that HTML does not need.

    Those of its text are unescaped, which matter in attributes only; those around an attribute's
    value are left out where the value has none of the characters that end it.
    """
    first, *parts = page.split("<")
    for at, part in enumerate(parts):
        tag, end, text = part.partition(">")
        if '="' in tag:
            tag = _SIMPLE.sub(r"=\1", tag)
        if "&#" in text or "&quot;" in text:
            text = _QUOTE.sub(lambda m: _QUOTES[m[0]], text)
        parts[at] = tag + end + text
    return "<".join([first, *parts])


def shortened(text: str, limit: int) -> str:
    """The text, or its beginning and "…" where it is longer than `limit` characters."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


# How a process of a plain job ended, before the lines that it printed.
_OF_JOB = re.compile(r"\b(hangs|exit \d+|SIG[A-Z]+) \| ")


@lru_cache(_KEPT)
def worded(text: str) -> str:
    """Return what a judge wrote, for who does not know our classes: of a program of its own what it
    did.

    Records keep the judge's own words, by which deviations and messages are matched.
    """
    text = _CHILD.sub(lambda m: "raised " if m[1] else "ended with ", unphased(text))
    text = _NO_VALUES.sub("this process holds no values to compare", text)
    ended, printed = _OF_JOB.subn(r"\1, after printing: ", text)
    text = ended.replace(" | ", ", ") if printed else text
    return _RESULT.sub("the result is ", text)
