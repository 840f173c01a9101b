"""The first results of the search: the site's script, run on the index of the published results."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from browsed_site import browsed
from searched import PUBLISHED, searcher

from reports.store.results import load

FIRST = 3
DEVICES = (
    "ValueError: Received incompatible devices for jitted computation. Got argument x of my_step "
    "with shape float32[16,4] and device ids [0, 1] on platform GPU"
)

# What somebody types, and the page that must be among the first three.
QUERIES = [
    ("x[0]", "causes/index-replicates-the-row.html"),
    ("x[0] cost", "cost.html"),
    ("out[0]", "causes/index-replicates-the-row.html"),
    ("jax.tree.map(lambda x: x[0], params)", "causes/index-replicates-the-row.html"),
    ("jax.pmap(f, devices=jax.devices()[:6])", "causes/(fewer-rows|unequal-devices|argument-else)"),
    ("devices[:6]", "causes/(fewer-rows|unequal-devices|argument-elsewhere)"),
    ("flax.jax_utils.replicate", "causes/device-put-stackers-gone|docs/upgrade.html#upgrade-flax"),
    ("flax.jax_utils.unreplicate", "causes/(replicated-array|unreplicated)"),
    ("unreplicate", "causes/(replicated-array|unreplicated)"),
    ("check_rep", "causes/.*check-vma"),
    ("check_vma", "causes/"),
    ("jax.lax.pvary", "causes/(loops-and-branches|check-vma|cast-under)"),
    ("plugin", "unknown.html"),
    ("TPU", "unknown.html"),
    ("gpu", "unknown.html"),
    ("segfault", "errors/killed-by-sigsegv.html"),
    ("segfault shard_map", "errors/killed-by-sigsegv.html"),
    ("SIGABRT", "errors/killed-by-sigabrt.html"),
    ("deadlock", "hazards.html"),
    ("hangs", "hazards.html"),
    (DEVICES, "errors/received-incompatible-devices"),
    ("incompatible devices", "errors/received-incompatible-devices"),
    ("CopyArrays", "copy-?arrays"),
    ("AttributeError: Unrecognized config option: jax_pmap_shmap_merge", "merge"),
    ("JAX_PMAP_SHMAP_MERGE=0", "causes/merge-variable-ignored.html"),
    ("device_put_replicated", "causes/device-put-stackers-gone.html"),
    ("jax.device_put_sharded is deprecated", "device-put-sharded|device-put-stackers"),
    ("donate_argnums", "subjects/donation.html"),
    ("donate", "subjects/donation.html"),
    ("Array has been deleted", "errors/array-has-been-deleted"),
    ("make_mesh", "causes/make-mesh"),
    ("jax.make_mesh", "causes/make-mesh"),
    ("nested pmap", "causes/nested-pmap-refused.html"),
    ("0.9.0", "versions/0.9.0.html"),
    ("hangs 0.9.0", "versions/0.9.0.html"),
    ("gradients through pmap", "causes/gradient-stays-in-the-process.html"),
    ("StoreException", "store|StoreException"),
    ("PmapSharding", "causes/pmap-sharding-gone.html"),
    ("which version is safest", "versions.html"),
    ("default pmap", "index.html"),
    ("slow", "cost.html"),
    ("wrong documentation", "errata.html"),
    ("process_allgather", "causes/(global-array|process-allgather)"),
    ("out_axes=None", "causes/unmapped-output-communicates-nothing.html"),
    ("in_axes=-1", "causes/negative-axis-taken-literally.html"),
    ("download", "targets.html"),
    ("AttributeError: module 'jax.lax' has no attribute 'pvary'", "removed/jax.lax.pvary.html"),
    (
        "cannot import name 'pvary' from 'jax.lax' (/opt/jax/lax/__init__.py)",
        "removed/jax.lax.pvary",
    ),
    ("cannot import name 'xla_pmap_p' from 'jax.extend.core.primitives'", "removed/.*xla_pmap_p"),
    ("module 'jax.interpreters.pxla' has no attribute 'MapTracer'", "removed/.*maptracer"),
    ("ModuleNotFoundError: No module named 'jax.util'", "removed/jax.util"),
    ("ImportError: cannot import name 'safe_map' from 'jax.util'", "removed/jax.util"),
    ("make_mesh() got an unexpected keyword argument 'axis_shapes'", "removed/.*axis-shapes"),
    ("Unrecognized config option: jax_dynamic_shapes", "removed/jax_dynamic_shapes.html"),
    ("my import fails", "removed.html"),
]
# What the first result must answer: Enter opens it.
ANSWERED = [
    ("pmap under jit one process", "inside.html"),
    ("vmap single process", "inside.html"),
    ("pmap under jit", "inside.html"),
    ("pmap inside vmap", "inside.html"),
    ("pmap in scan", "inside.html"),
    ("nested pmap", "causes/nested-pmap-refused.html"),
    ("TPU", "docs/run-it-yourself.html"),
    ("gpu", "docs/run-it-yourself.html"),
    ("plug-in", "docs/run-it-yourself.html"),
    ("plugin", "docs/run-it-yourself.html"),
    ("migrate_pmap wrong", "errata.html"),
    ("wrong", "hazards.html"),
    ("gradients", "gradients.html"),
]
NOWHERE = ["brainpy", "pyspark", "zzzz"]


@pytest.fixture(scope="module")
def published() -> Callable[[str], dict[str, Any]]:
    return searcher(load([PUBLISHED]))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Any]]:
    return searcher(browsed(tmp_path_factory.mktemp("search")))


@pytest.mark.long
@pytest.mark.parametrize(("query", "page"), QUERIES)
def test_the_right_page_is_among_the_first(
    published: Callable[[str], dict[str, Any]], query: str, page: str
) -> None:
    found = published(query)["found"][:FIRST]
    assert any(re.search(page, one) for one in found), found


@pytest.mark.long
@pytest.mark.parametrize(("query", "page"), ANSWERED)
def test_the_first_result_answers(
    published: Callable[[str], dict[str, Any]], query: str, page: str
) -> None:
    assert published(query)["found"][0] == page


@pytest.mark.long
@pytest.mark.parametrize("query", [query for query, _ in QUERIES])
def test_another_word_loses_no_page(published: Callable[[str], dict[str, Any]], query: str) -> None:
    before, after = published(query)["found"], published(f"{query} shard_map")["found"]
    assert set(before[:FIRST]) <= set(after)


@pytest.mark.parametrize("word", NOWHERE)
def test_a_word_that_no_page_has_is_said_to_be_on_none(
    small: Callable[[str], dict[str, Any]], word: str
) -> None:
    assert small(word) == {"found": [], "missing": [word], "complete": 0}
    both = small(f"{word} donate")
    assert both["missing"] == [word]
    assert both["found"] == small("donate")["found"]


@pytest.mark.parametrize("query", ["x[0]", "donate", "unreplicate", "make_mesh"])
def test_a_common_word_does_not_change_what_is_first(
    small: Callable[[str], dict[str, Any]], query: str
) -> None:
    assert small(query)["found"][0] in small(f"{query} shard_map")["found"][:FIRST]
