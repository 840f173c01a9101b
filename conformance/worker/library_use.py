"""What one library does beside one JAX: its import, and its functions that have to do with pmap.

Run in a target's Python, once for each library: an import may change JAX for what comes after it.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

MODULES: Mapping[str, str] = {
    "chex": "chex",
    "dm-haiku": "haiku",
    "equinox": "equinox",
    "flax": "flax.jax_utils",
    "optax": "optax",
    "orbax-checkpoint": "orbax.checkpoint",
}
MERGE = "jax_pmap_shmap_merge"
_MOST = 300  # characters of a message
Use = Callable[[Any], Any]


def _rows() -> Any:
    return np.arange(2.0 * jax.local_device_count(), dtype=np.float32).reshape(-1, 2)


def _output() -> Any:
    return jax.pmap(lambda x: x + 1)(_rows())


def _equal(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted))


def _replicate(flax: Any) -> None:
    _equal(flax.replicate(_rows()[0]), [_rows()[0]] * jax.local_device_count())


def _unreplicate(flax: Any) -> str:
    found = flax.unreplicate(_output())
    _equal(found, _rows()[0] + 1)
    return f"the result is on {len(found.devices())} of {jax.device_count()} devices"


def _prefetch(flax: Any) -> None:
    (found,) = flax.prefetch_to_device(iter([_rows()]), 1)
    _equal(found, _rows())


def _pad(flax: Any) -> None:
    double = flax.pad_shard_unpad(jax.pmap(lambda p, x: 2 * x, in_axes=(None, 0)))
    _equal(double(np.ones(1, np.float32), np.ones((3, 2), np.float32)), np.full((3, 2), 2.0))


def _fake_pmap(chex: Any) -> None:
    with chex.fake_pmap():
        _equal(jax.pmap(lambda x: x + 1)(_rows()), _rows() + 1)


def _step(optax: Any) -> None:
    optimizer = optax.sgd(0.5)
    state = optimizer.init(_rows())
    changes, _ = jax.pmap(optimizer.update, in_axes=(0, None))(_rows(), state)
    _equal(changes, -0.5 * _rows())


def _filter_pmap(equinox: Any) -> None:
    _equal(equinox.filter_pmap(lambda x: x + 1)(_rows()), _rows() + 1)


def _transformed(haiku: Any) -> None:
    function = haiku.without_apply_rng(haiku.transform(lambda x: haiku.Linear(3)(x)))
    params = function.init(jax.random.key(0), _rows()[:1])
    found = jax.pmap(function.apply, in_axes=(None, 0))(params, _rows())
    _equal(found, function.apply(params, _rows()))


def _saved(orbax: Any) -> None:
    with tempfile.TemporaryDirectory() as folder, orbax.StandardCheckpointer() as checkpointer:
        state = {"rows": _output()}
        checkpointer.save(Path(folder) / "state", state)
        checkpointer.wait_until_finished()
        _equal(checkpointer.restore(Path(folder) / "state", state)["rows"], _rows() + 1)


USES: Mapping[str, Mapping[str, Use]] = {
    "chex": {"chex.fake_pmap": _fake_pmap},
    "dm-haiku": {"haiku.transform under pmap": _transformed},
    "equinox": {"equinox.filter_pmap": _filter_pmap},
    "flax": {
        "flax.jax_utils.replicate": _replicate,
        "flax.jax_utils.unreplicate": _unreplicate,
        "flax.jax_utils.prefetch_to_device": _prefetch,
        "flax.jax_utils.pad_shard_unpad": _pad,
    },
    "optax": {"optax.sgd under pmap": _step},
    "orbax-checkpoint": {"StandardCheckpointer of a pmap's output": _saved},
}


def run(action: Callable[[], Any]) -> tuple[dict[str, str], Any]:
    """Return what an action says, warns of or raises, and its result."""
    found: dict[str, str] = {}
    result = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = action()
        except Exception as error:  # of a library: whatever it is, it is the answer
            found["error"] = _short(type(error).__name__, str(error))
    for one in caught:
        if issubclass(one.category, (DeprecationWarning, FutureWarning, UserWarning)):
            found.setdefault("warning", _short(one.category.__name__, str(one.message)))
    if isinstance(result, str):
        found["note"] = result
    return found, result


def _short(kind: str, text: str) -> str:
    return f"{kind}: {' '.join(text.split())}"[:_MOST]


def examine(library: str) -> dict[str, Any]:
    """Return the record of one library, which is imported before any other."""
    before = jax.config.values.get(MERGE)
    imported, module = run(lambda: importlib.import_module(MODULES[library]))
    found: dict[str, Any] = {**imported}
    after = jax.config.values.get(MERGE)
    if before != after:
        found["switches"] = f"{MERGE} from {before} to {after}"
    if module is not None:
        found["uses"] = {name: run(partial(use, module))[0] for name, use in USES[library].items()}
    return found


if __name__ == "__main__":
    library = json.loads(Path(sys.argv[2]).read_text("utf-8"))
    Path(sys.argv[1]).write_text(json.dumps(examine(library)), "utf-8")
