"""Texts as pages show them: `code` in sentences, and the shapes of effects.

Everything that comes from a results file is escaped here or by the templates, never trusted.
"""

from __future__ import annotations

import re
from html import escape

_CODE = re.compile(r"(`+)(.+?)\1(?!`)", re.DOTALL)

# One sign per effect on a reader's code: shape as well as colour.
_SIGNS = {
    "crashes": "✖",
    "hangs": "∞",
    "wrong numbers": "≠",
    "raises": "!",
    "other error": "¡",
    "moves more": "⇉",
    "needs more memory": "▲",
    "lies elsewhere": "↦",
    "warns": "△",
    "repaired": "+",
    "same": "=",
    "not measured": "?",
}


def code_marked(text: str) -> str:
    """HTML of a sentence: escaped, and what stands between backticks as code."""
    return _CODE.sub(lambda m: f"<code>{m[2].strip()}</code>", escape(str(text)))


def plain(text: str) -> str:
    """The sentence without its backticks, for a browser's title."""
    return _CODE.sub(lambda m: m[2].strip(), str(text))


def effect_sign(word: str) -> str:
    """The shape of an effect; nothing for one that is not known here."""
    return _SIGNS.get(word, "")


def effect_css(word: str) -> str:
    """The class that colours an effect in style.css."""
    return "e-" + word.replace(" ", "-") if word in _SIGNS else "e-not-measured"


def shortened(text: str, limit: int) -> str:
    """The text, or its beginning and "…" where it is longer than `limit` characters."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
