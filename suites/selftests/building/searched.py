"""The search of a site by program: the site's script, run on the index of some results."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reports.analysis.effects.pairs import Effects
from reports.analysis.errors.messages import Message, messages, recorded_messages
from reports.render.site.build import asked
from reports.render.site.searching import pages
from reports.store.results import Results

quickjs = pytest.importorskip("quickjs", reason="no JavaScript engine: pip install quickjs")

PUBLISHED = Path(__file__).parents[3] / "reports" / "published" / "matrix.jsonl.xz"


def searcher(results: Results) -> Callable[[str], dict[str, Any]]:
    """The function of find.js on the index of some results."""
    effects = asked(results)
    return search_of(effects, messages_of(effects))


def messages_of(effects: Effects) -> Sequence[Message]:
    """The error messages that have a page."""
    return messages(effects.results, effects.once.to(recorded_messages))


def search_of(effects: Effects, found: Sequence[Message]) -> Callable[[str], dict[str, Any]]:
    """The function of find.js on the index of results whose messages are known."""
    engine = quickjs.Context()
    engine.eval("var self = { pmapIndex: [] }; var document = { addEventListener() {} };")
    for one in pages(effects, found):
        engine.eval(one.text.replace('"use strict";', ""))
    engine.eval("var index = prepared(self.pmapIndex);")
    return partial(search, engine)


def search(engine: Any, query: str) -> dict[str, Any]:
    """Return the result of a query: addresses, and the words that no page has."""
    asked_for = f"""(() => {{
        const found = search(index, {json.dumps(query)});
        return JSON.stringify({{ ...found, found: found.found.map((one) => one.href) }});
    }})()"""
    return dict(json.loads(engine.eval(asked_for)))
