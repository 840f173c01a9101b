"""Every upgrade of the published results is read in three minutes, before anything is opened."""

from __future__ import annotations

from pathlib import Path

import pytest
from reading_time import WORDS_A_MINUTE, words_in_sight

from reports.render.site.build import Frame, Renderer, asked
from reports.render.site.page import Page
from reports.render.site.parallel import in_parallel
from reports.render.site.upgrades import pages
from reports.store.results import load

PUBLISHED = Path(__file__).parents[3] / "reports" / "published" / "matrix.jsonl.xz"
MOST_MINUTES = 3

pytestmark = pytest.mark.long


def test_every_pair_of_versions_is_read_in_three_minutes() -> None:
    effects = asked(load([PUBLISHED]))
    made = [one for one in pages(effects) if isinstance(one, Page) and one.template == "upgrade"]
    render = Renderer(Frame(navigation=(), measured=""), made)
    counted = list(in_parallel(lambda number: words_in_sight(render(number)[1]), len(made)))
    longest = {one.path: words for one, words in zip(made, counted, strict=True)}
    assert min(counted) > 0
    assert {k: v for k, v in longest.items() if v > MOST_MINUTES * WORDS_A_MINUTE} == {}
