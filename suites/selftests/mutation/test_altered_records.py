"""A JAX that changes what it says and how it hands out results, with all numbers right, is red."""

from __future__ import annotations

from pathlib import Path

import pytest
from altered import altered_copy, cells_of_run

pytestmark = pytest.mark.long


# Where the new pmap's wrapper has its program's result; `trace_state_clean` is known there.
CALLED = "    out = jitted_f(*dyn_args_flat)\n"
CONSTRUCTED = "  if devices is not None:\n    if not devices:\n"
OF_LEAVES = "    import jax; out = jax.tree.map(lambda x: {}, out)\n"
WARNS = "import warnings; warnings.warn('jax.pmap copies its rows', {})\n"
TREE, PLAIN = "silences.collective.psum-tree.checked", "silences.collective.psum-twice.checked"
TUPLE = "silences.map-of.jvp.checked"

# What is put behind the call of the new pmap's program, and the clause that must notice.
AFTER_THE_CALL = {
    "a warning at every call": (f"    {WARNS.format('FutureWarning')}", PLAIN),
    "a deprecation at every call": (f"    {WARNS.format('DeprecationWarning')}", TUPLE),
    "a log record at every call": (
        "    import logging; logging.getLogger('jax').warning('pmap falls back')\n",
        PLAIN,
    ),
    "a tuple returned as a list": ("    out = list(out) if type(out) is tuple else out\n", TUPLE),
    "a dict returned as its leaves": (
        "    import jax; out = jax.tree.leaves(out) if type(out) is dict else out\n",
        TREE,
    ),
    "None left out of a tuple": (
        "    import jax; out = jax.tree.map(lambda x: tuple(y for y in x if y is not None)"
        " if type(x) is tuple else x, out, is_leaf=lambda x: type(x) is tuple)\n",
        TREE,
    ),
    "a named tuple returned as a tuple": (
        "    import jax; out = jax.tree.map(lambda x: tuple(x) if hasattr(x, '_fields') else x,"
        " out, is_leaf=lambda x: hasattr(x, '_fields'))\n",
        "drop_in.mapped.replicated.nested",
    ),
    "a typed key returned as its numbers": (
        OF_LEAVES.format(
            "jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x"
        ),
        "silences.keys.kept-sent",
    ),
    "a weak type where there was none": (
        "    from jax._src.lax.lax import _convert_element_type\n"
        + OF_LEAVES.format("_convert_element_type(x, weak_type=True)"),
        PLAIN,
    ),
    "results in the host's memory": (
        OF_LEAVES.format(
            "jax.device_put(x, x.sharding.with_memory_kind('pinned_host'))"
            " if trace_state_clean else x"
        ),
        PLAIN,
    ),
}


def red(folder: Path, python: Path, clause: str) -> list[str]:
    """The reasons why cells of the new pmap are red."""
    chosen = ["--clause", clause, "--implementation", "new_pmap", "--topology", "1x8"]
    cells = cells_of_run(folder, "suites/", *chosen, "--target", str(python), "--no-rerun")
    assert cells
    return [cell["reason"] for cell in cells if cell["verdict"] == "deviates"]


@pytest.mark.parametrize("name", AFTER_THE_CALL)
def test_what_a_call_does_beside_its_numbers_is_noticed(name: str, tmp_path: Path) -> None:
    more, clause = AFTER_THE_CALL[name]
    python = altered_copy(
        tmp_path / "altered", lambda text: text.replace(CALLED, CALLED + more), "pmap.py"
    )
    reasons = red(tmp_path, python, clause)
    assert reasons
    assert not [reason for reason in reasons if "raised" in reason], "the change itself fails"


def test_a_warning_where_a_map_is_made_is_noticed(tmp_path: Path) -> None:
    python = altered_copy(
        tmp_path / "altered",
        lambda text: text.replace(
            CONSTRUCTED, f"  {WARNS.format('DeprecationWarning')}{CONSTRUCTED}"
        ),
        "pmap.py",
    )
    (reason,) = red(tmp_path, python, PLAIN)
    assert reason.startswith("between the steps: warned DeprecationWarning: jax.pmap copies")
