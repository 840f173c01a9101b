"""The messages that a run recorded, so that one of JAX's errors can be replaced by another."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from conformance.spec.observation import Raised

ANOTHER = 0.25  # words in common over words of either: below it, two messages say different things

_WORD = re.compile(r"[a-z_]{3,}")


@dataclass
class Messages:
    """Messages by exception type; of messages with equal words one is kept."""

    _of: dict[str, dict[frozenset[str], str]] = field(default_factory=dict)
    _found: dict[tuple[str, frozenset[str]], str | None] = field(default_factory=dict)

    @classmethod
    def from_raised(cls, all_raised: Iterable[Raised]) -> Messages:
        """Collect the messages of these exceptions."""
        found = cls()
        for one in sorted(all_raised, key=lambda one: (one.type, one.message)):
            found._of.setdefault(one.type, {}).setdefault(_words(one.message), one.message)
        return found

    def another(self, raised: Raised) -> str | None:
        """Return the most similar other message of the same type; None if there is none."""
        words = _words(raised.message)
        key = (raised.type, words)
        if key not in self._found:
            others = [
                (len(words & other) / max(1, len(words | other)), text)
                for other, text in self._of.get(raised.type, {}).items()
                if other != words  # short messages may have no words at all
            ]
            self._found[key] = max((o for o in others if o[0] < ANOTHER), default=(0, None))[1]
        return self._found[key]


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))
