"""The reading time of a site's page: visible words before anything is opened."""

from __future__ import annotations

from html.parser import HTMLParser

WORDS_A_MINUTE = 230


class _Words(HTMLParser):
    """Collects the text of the page's main part, without what is folded or for screen readers."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._main = False
        self._hidden = 0
        self._open: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag == "main":
            self._main = True
        if tag in ("input", "br", "meta", "link", "col", "img", "hr"):
            return
        classes = (named.get("class") or "").split()
        folded = tag == "details" and "open" not in named
        hidden = tag in ("script", "style", "option") or "hear" in classes or "hidden" in named
        hidden = hidden or "for-one" in classes or "for-several" in classes
        self._open.append((tag, folded or hidden))
        self._hidden += folded or hidden
        if tag == "summary":
            self._hidden -= 1

    def handle_endtag(self, tag: str) -> None:
        if tag == "main":
            self._main = False
        if tag == "summary":
            self._hidden += 1
        while self._open:
            name, hidden = self._open.pop()
            self._hidden -= hidden
            if name == tag:
                break

    def handle_data(self, data: str) -> None:
        if self._main and self._hidden <= 0:
            self.words += data.split()


def words_in_sight(page: str) -> int:
    """The number of words in the main part of a page that are read without opening anything."""
    parser = _Words()
    parser.feed(page)
    return len(parser.words)


def minutes_to_read(page: str) -> float:
    """Minutes at 230 words a minute."""
    return words_in_sight(page) / WORDS_A_MINUTE
