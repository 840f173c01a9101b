"""The programs of child processes: `python -m conformance.worker.child_programs NAME WORD...`.

Each is what a user would write in a main file. Nothing here imports jax before a program starts,
because the import and its warnings are part of the observation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from conformance.worker.child import serve

FLAG = "jax_pmap_shmap_merge"
ROWS = [[1.0, 2.0], [3.0, 4.0]]  # one row per device

FORMS = ("attribute", "import", "call")


def session(*words: str) -> list[dict[str, Any]]:
    """Execute `words` in turn; return a record of each call: wrapper kind, sharding type, values.

    `False` and `True` set the option, `map` constructs a map of the one function, `call` calls the
    map that was constructed last.
    """
    import jax
    import numpy as np

    from conformance.worker.implementations import wrapper_kind

    def body(x: Any) -> Any:
        return x + jax.lax.psum(x, "i")

    rows = np.array(ROWS, np.float32)
    calls, mapped = [], None
    for word in words:
        if word in ("False", "True"):
            jax.config.update(FLAG, word == "True")
        elif word == "map":
            mapped = jax.pmap(body, axis_name="i")
        elif word == "call" and mapped is not None:
            result = mapped(rows)
            calls.append(
                {
                    "wrapper": wrapper_kind(mapped),
                    "sharding": type(result.sharding).__name__,
                    "values": np.asarray(result).tolist(),
                }
            )
        else:
            raise ValueError(f"{word!r} is nothing that a session can do here")
    return calls


def absl(way: str, *_: str) -> list[dict[str, Any]]:
    """Pass the command line to absl in the named way, then map and call twice."""
    import jax
    from absl import app, flags

    calls: list[dict[str, Any]] = []

    def main(_: object = None) -> None:
        calls.extend(session("map", "call", "call"))

    if way == "parse_flags_with_absl":
        jax.config.parse_flags_with_absl()
        main()
    elif way == "flags-by-hand":
        jax.config.config_with_absl()
        flags.FLAGS(sys.argv)
        main()
    elif way in ("config_with_absl", "app-run-alone"):
        if way == "config_with_absl":
            jax.config.config_with_absl()
        try:
            app.run(main)
        except SystemExit:
            if not calls:
                raise
    else:
        raise ValueError(f"no program hands its flags to absl by {way!r}")
    return calls


def deprecated(name: str, form: str) -> Any:
    """Access a deprecated name in one of `FORMS`, twice, and return what it is called or returns.

    One form per process, because JAX warns of a name once per process.
    """
    use = USES[name][FORMS.index(form)]
    first, second = use(), use()
    if first != second:
        raise ValueError(f"{first} at first, then {second}")
    return second


def _sharded() -> str:
    import jax

    return _name(jax.device_put_sharded)


def _sharded_imported() -> str:
    from jax import device_put_sharded

    return _name(device_put_sharded)


def _sharded_called() -> Any:
    import jax
    import numpy as np

    shards = [np.array(row, np.float32) for row in ROWS]
    return _values(jax.device_put_sharded(shards, jax.local_devices()))


def _replicated() -> str:
    import jax

    return _name(jax.device_put_replicated)


def _replicated_imported() -> str:
    from jax import device_put_replicated

    return _name(device_put_replicated)


def _replicated_called() -> Any:
    import jax
    import numpy as np

    row = np.array(ROWS[0], np.float32)
    return _values(jax.device_put_replicated(row, jax.local_devices()))


def _pmap_sharding() -> str:
    import jax

    return _name(jax.sharding.PmapSharding)


def _pmap_sharding_imported() -> str:
    from jax.sharding import PmapSharding

    return _name(PmapSharding)


def _pmap_sharding_called() -> Any:
    import jax
    import numpy as np

    sharding = jax.sharding.PmapSharding.default((len(ROWS), len(ROWS[0])))
    return _values(jax.device_put(np.array(ROWS, np.float32), sharding))


def _name(what: Any) -> str:
    return str(what.__name__)


def _values(array: Any) -> Any:
    import numpy as np

    return np.asarray(array).tolist()


USES: dict[str, tuple[Callable[[], Any], ...]] = {
    "device_put_sharded": (_sharded, _sharded_imported, _sharded_called),
    "device_put_replicated": (_replicated, _replicated_imported, _replicated_called),
    "PmapSharding": (_pmap_sharding, _pmap_sharding_imported, _pmap_sharding_called),
}

PROGRAMS: dict[str, Callable[..., Any]] = {
    "session": session,
    "absl": absl,
    "deprecated": deprecated,
}


if __name__ == "__main__":
    serve(PROGRAMS)
