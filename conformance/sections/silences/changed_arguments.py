"""NumPy arguments that the caller changes after the call has returned, as a data loader does."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import returns, twice
from conformance.spec.family import table
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

WIDTH = 16  # of a row: 64 bytes, so that each row is aligned
PAGE = 4096  # bytes: the alignment that lets the CPU backend use a NumPy array's memory
LIMIT_S = 120  # a call that has not returned by then runs the body in the caller's thread

DEFAULTS = Defaults(
    claim="pmap-silence.changed-arguments",
    needs=devices(2),
    left_out="each process reads its own arguments",
)


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of the mapped function: its axis, and whether it has one row per device."""

    key: str
    axis: int | None


ARGUMENTS: Mapping[str, Argument] = table(Argument("mapped", 0), Argument("unmapped", None))


@described("the values that the argument had when the function was called")
def at_the_call(place: Place) -> Any:
    return place.all_rows(WIDTH) * 0 + 1


@described("the values that the argument has after the call")
def after_the_call(place: Place) -> Any:
    return place.all_rows(WIDTH) * 0 - 1


AT_THE_CALL = everywhere(
    twice(returns(at_the_call, mistakes={"the values after the call": after_the_call}))
)


def page_aligned(*shape: int) -> NDArray[np.float32]:
    """Return a float32 array of zeros whose memory begins at a multiple of `PAGE` bytes."""
    size = int(np.prod(shape)) * 4
    memory = np.zeros(size + PAGE, np.uint8)
    start = -memory.ctypes.data % PAGE
    return memory[start : start + size].view(np.float32).reshape(shape)


def call_and_change(
    impl: Implementation, cluster: Cluster, argument: Argument, *, copy: bool
) -> None:
    """Call a map, change its argument to -1, and let the body read it only then."""
    changed = threading.Event()

    def wait(x: Any) -> Any:
        if not changed.wait(LIMIT_S):
            raise TimeoutError(f"the call did not return within {LIMIT_S} s")
        return np.asarray(x)

    def body(x: Any, values: Any) -> Any:
        waited = jax.pure_callback(wait, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
        return waited * 0 + values

    function = impl.map(body, in_axes=(0, argument.axis), check_vma=False)
    rows = cluster.rows(WIDTH)
    values = page_aligned(*(rows.shape if argument.axis == 0 else (WIDTH,)))

    def called() -> Any:
        values[...] = 1
        changed.clear()
        result = function(rows, values.copy() if copy else values)
        values[...] = -1
        changed.set()
        return result

    cluster.twice(called)


@DEFAULTS.family(
    "silences.changed-arguments.{argument}",
    argument=ARGUMENTS,
    title="A NumPy array is changed after it was passed as {argument} argument.",
    fact="silences.changed-arguments",
    expect=AT_THE_CALL,
)
def changed(impl: Implementation, cluster: Cluster, argument: Argument) -> None:
    """The array is changed while the body waits in a callback."""
    call_and_change(impl, cluster, argument, copy=False)


@DEFAULTS.family(
    "silences.changed-arguments.{argument}.copied",
    argument=ARGUMENTS,
    title="A copy of a NumPy array is passed as {argument} argument, and the array is changed.",
    fact="silences.changed-arguments.copied",
    fixes="silences.changed-arguments.{argument}",
    expect=AT_THE_CALL,
)
def copied(impl: Implementation, cluster: Cluster, argument: Argument) -> None:
    """The same, with a copy as the argument."""
    call_and_change(impl, cluster, argument, copy=True)
