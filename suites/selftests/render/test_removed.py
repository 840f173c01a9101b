"""The page of a removed name: the code that replaces it, where a known issue has some."""

from __future__ import annotations

from pathlib import Path

import pytest
from records import cause, claim, target
from site_pages import Tags, links_in, loaded, tree
from two_sides import FINE, program, ran

from reports.analysis.effects.rewrites import rewrites
from reports.render.site.build import render

GONE = "device-put-stackers-gone"
NAMES = ("jax.device_put_replicated", "jax.device_put_sharded")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    records = [
        target("0.9.0"),
        target("0.10.0"),
        claim("migrate-pmap.errors"),
        cause(GONE, tags=[*NAMES, "jax.sharding.PmapSharding"]),
        cause("replacement-obeys-wrong-calls", tags=[NAMES[0]]),
        program("errors.a"),
        *(ran("errors.a", f"new_pmap@{jax}", FINE) for jax in ("0.9.0", "0.10.0")),
    ]
    folder: Path = tmp_path_factory.mktemp("removed")
    return render(loaded(folder, records))


@pytest.mark.parametrize("name", NAMES)
def test_a_removed_name_shows_the_code_before_and_after(site: dict[str, str], name: str) -> None:
    page = site[f"removed/{name}.html"]
    edit = rewrites().by_cause[GONE]
    text = Tags(page).text
    assert text.index(edit.before) < text.index(edit.after) < text.index("Since when")
    assert text.count(edit.after) == 1
    assert rewrites().prelude.strip() in text
    assert f"../causes/{GONE}.html" in links_in(tree(page))


def test_code_without_the_name_is_not_what_replaces_it(site: dict[str, str]) -> None:
    page = next(path for path in site if path.startswith("removed/") and "pmapsharding" in path)
    assert rewrites().by_cause[GONE].after not in Tags(site[page]).text
