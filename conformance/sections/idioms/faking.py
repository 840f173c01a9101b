"""chex's fake_pmap: code that maps over eight devices, tested on one.

It runs in a new Python with one device, for which it is made: inside, more rows than devices must
work; afterwards pmap itself must be restored.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from conformance.sections.idioms import AXIS, ENDS_WELL
from conformance.spec.clause import clause
from conformance.spec.columns import of_jax
from conformance.spec.expectation import every, in_steps, noted
from conformance.worker import child
from conformance.worker.protocols import Cluster, Implementation

PROGRAM = "program"
ROWS, WIDTH = 8, 2
FAKED, BACK, REFUSED = "inside", "pmap is back", "the map outside"
DEADLINE_S = 90.0


def rows() -> Any:
    """Eight rows of two: 0, 1, ... (float32)."""
    return np.arange(ROWS * WIDTH, dtype=np.float32).reshape(ROWS, WIDTH)


def summed(x: Any) -> Any:
    """Twice the sum over the mapped axis, and the row's own number."""
    return 2 * jax.lax.psum(x, AXIS) + jax.lax.axis_index(AXIS)


def modelled() -> list[list[float]]:
    """Return NumPy's result of `summed` for `rows`."""
    found: list[list[float]] = (2 * rows().sum(0) + np.arange(ROWS)[:, None]).tolist()
    return found


def faked() -> dict[str, Any]:
    """The map inside fake_pmap, whether pmap is itself after it, and the same map there."""
    import chex

    real = jax.pmap
    with chex.fake_pmap():
        inside = np.asarray(jax.pmap(summed, axis_name=AXIS)(rows())).tolist()
    back = jax.pmap is real
    try:
        outside = str(jax.pmap(summed, axis_name=AXIS)(rows()).shape)
    except ValueError as error:
        outside = type(error).__name__
    return {FAKED: inside, BACK: back, REFUSED: outside}


@clause(
    "idioms.faking.fake-pmap",
    claim="pmap-silence.wrappers-of-libraries",
    left_out="the test starts its own process, with one device",
    requires=("chex",),
    expect=of_jax(
        in_steps(
            every(
                ENDS_WELL,
                noted(FAKED, "NumPy's numbers inside", lambda _, seen: seen == modelled()),
                noted(BACK, "jax.pmap is itself again after it", lambda _, seen: seen is True),
                noted(
                    REFUSED,
                    "the map is refused outside: more rows than devices",
                    lambda _, seen: seen == "ValueError",
                ),
            ),
            PROGRAM,
        )
    ),
    deadline_s=DEADLINE_S,
)
def fake_pmap(impl: Implementation, cluster: Cluster) -> None:
    """Within chex.fake_pmap, eight rows are mapped on one device; afterwards pmap works as
    before.
    """
    answers: list[dict[str, Any]] = []

    def wait() -> None:
        answers.append(child.run(__name__, "faked").result())

    cluster.step(PROGRAM, wait)
    for answer in answers:
        for key, value in answer.items():
            cluster.note(key, value)


if __name__ == "__main__":
    child.serve({"faked": faked})
