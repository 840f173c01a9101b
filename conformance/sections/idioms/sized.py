"""Idioms at size: how much memory a later step of a loop needs at its peak.

The figure is what a user plans with, in multiples of the loop's state: its bytes, which are there
before the step, and whatever the step adds to them at one time. A step that only reads the state
makes it 1, one that returns a new state beside the old one 2. What the steps before have left is
made anew for each measurement, and an array of a known size shows how exact the measure is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.idioms import AXIS, FLOAT_BYTES, IN_ONE_PROCESS, mapped_argument
from conformance.spec.expectation import every, returns, steps
from conformance.spec.expected import Expectation
from conformance.spec.peaks import figured, known_within
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_TWO, ONE_PROCESS, Place
from conformance.worker.bodies import Body
from conformance.worker.memory import known_peak, meter_of, peak_with
from conformance.worker.protocols import Cluster, Implementation
from conformance.worker.recording import local_rows

MIB = 2**20
STATE_BYTES = 64 * MIB  # of a loop's state on this process's devices
RESOLUTION = 0.08  # of the state: a copy of what one of eight devices has of it is more
MULTIPLE = "memory"  # the key that the report reads

WIDTH, BATCH = 64, 2  # elements of a row of a table, and examples on each device
LEAVES = 2  # of a state that is trained: a table of users and one of items
RATE = 2.0**-6  # of the gradient, of which each device's part is the mean over all of them

AHEAD = 2  # batches that are on the devices before they are used
ALIGNED = 64  # bytes
FED = 0.25  # of a state's bytes: a batch that is fed

ENDS = [0, 1, -2, -1]  # the elements of a copy that are compared one by one


@dataclass(frozen=True, slots=True)
class Loop:
    """A program at one of its later steps.

    `before()` makes what the steps before it left, `step` goes on with that, and `shown` is what of
    its result is compared. What a program holds on to until a step ends is in what it was left or
    in its result: a call comes back before it has computed.
    """

    before: Callable[[], Any]
    step: Callable[[Any], Any]
    shown: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Sized:
    """A `program`: of an implementation and a cluster it makes a loop.

    `needs(place)` is the multiple of the state that a step needs at its peak, in words what is
    `there`; `model(place)` is what must be shown of the result.
    """

    key: str
    text: str
    program: Callable[[Implementation, Cluster], Loop]
    there: str
    needs: Callable[[Place], float]
    model: Callable[[Place], Any]
    topologies: tuple[str, ...] = ONE_AND_TWO

    @property
    def left_out(self) -> str:
        """Return why it is not run in several processes."""
        return IN_ONE_PROCESS if self.topologies == ONE_PROCESS else ""


def weigh(impl: Implementation, cluster: Cluster, idiom: Sized) -> None:
    """A known allocation and a step are measured; then what the step returns is compared."""
    control(cluster)
    loop = idiom.program(impl, cluster)
    meter = meter_of(cluster.local_devices)

    def before() -> Any:
        return jax.block_until_ready(loop.before())

    def step(left: Any) -> Any:
        return jax.block_until_ready(loop.step(left))

    peaks: list[int] = []
    cluster.step("peak", lambda: peaks.append(peak_with(before, step, meter=meter)))
    for most in peaks:
        multiple = round(most / STATE_BYTES, 2)
        cluster.note(MULTIPLE, {"what": idiom.text, "multiple": multiple})
    cluster.step("values", lambda: loop.shown(loop.step(loop.before())))


def control(cluster: Cluster) -> None:
    """A known allocation, as the measure of the measure."""
    known: list[int] = []
    cluster.step("known", lambda: known.append(known_peak(STATE_BYTES)))
    for most in known:
        cluster.note("known", round(most / STATE_BYTES, 2))


# --- Expectations ---------------------------------------------------------------------------------


def needed(idiom: Sized) -> Expectation:
    """The multiple and the right numbers, after the measure was shown to be exact."""

    def holds(place: Place, seen: Any) -> bool:
        return bool(abs(seen["multiple"] - idiom.needs(place)) <= RESOLUTION)

    return every(
        known_within(RESOLUTION),
        steps(
            peak=figured(MULTIPLE, f"the peak is {idiom.there}", holds),
            values=returns(idiom.model, text="what the model holds of it"),
        ),
    )


# --- Data and state -------------------------------------------------------------------------------
#
# A step changes few rows of large tables. So it needs no memory beside them: how long a device has
# its gradients depends on when the others have theirs.


def rows_of(place: Place, leaves: int = LEAVES) -> int:
    """The rows of a table on each device, where a state has so many of them."""
    elements = STATE_BYTES // FLOAT_BYTES // leaves // place.topology.devices_per_process
    return elements // WIDTH


def initial(rows: int, numbers: Any = jnp) -> Any:
    """A table to begin with: ones and twos, in turn by rows and columns."""
    both = numbers.arange(rows)[:, None] + numbers.arange(WIDTH)
    return (both % 2 + 1).astype(np.float32)


def examples(place: Place, n: int) -> tuple[Any, Any]:
    """The rows of both tables that step `n` is about, and the targets, of all devices.

    Each row is one example's own, and the first and the last are among them.
    """
    number = np.arange(place.topology.devices * BATCH)
    users = (number * (rows_of(place) - 1) // number[-1]).astype(np.int32)
    which = np.stack([users, users[::-1]], 1).reshape(-1, BATCH, LEAVES)
    return which, ((number + n) % 4).astype(np.float32).reshape(-1, BATCH)


def features(place: Place) -> Any:
    """Return the inputs of all devices: small integers."""
    number = np.arange(place.topology.devices * BATCH).reshape(-1, BATCH, 1)
    return ((number + np.arange(WIDTH) ** 2) % 3).astype(np.float32)


def batch(impl: Implementation, cluster: Cluster, n: int) -> tuple[Any, Any]:
    """Return this process's part of the examples of step `n`, as a mapped argument."""
    which, targets = examples(cluster, n)
    return mapped_argument(impl, cluster.mine(which)), mapped_argument(impl, cluster.mine(targets))


def large_batch(place: Place, n: int) -> tuple[Any, Any]:
    """This process's part of the examples of step `n`, each with its target many times over."""
    which, targets = (place.mine(one) for one in examples(place, n))
    elements = int(STATE_BYTES * FED) // FLOAT_BYTES
    return which, unaligned(np.repeat(targets[..., None], elements // targets.size, -1))


def unaligned(array: Any) -> Any:
    """Return a copy at an unaligned address, because a CPU device uses aligned host memory without
    a copy.
    """
    room = np.empty(array.size + ALIGNED // FLOAT_BYTES, np.float32)
    start = -room.ctypes.data % ALIGNED // FLOAT_BYTES + 1
    there = room[start : start + array.size].reshape(array.shape)
    there[...] = array
    return there


def factorise() -> Body:
    """A step of data-parallel descent: users times items are to be the targets.

    Each device changes the rows of all devices' examples. What is largest in the new state is
    found last, by all devices together: until then all of them hold all that they need.
    """

    def update(state: Any, which: Any, targets: Any) -> Any:
        rows = {"items": which[:, 1], "users": which[:, 0]}

        def loss(chosen: Any) -> Any:
            return (((chosen["users"] * chosen["items"]).sum(-1) - targets) ** 2).sum() / 2

        gradient = jax.grad(loss)({name: state[name][rows[name]] for name in state})
        rows, gradient = jax.lax.all_gather((rows, gradient), AXIS, tiled=True)
        rate = RATE / jax.lax.psum(1, AXIS)
        new = {name: state[name].at[rows[name]].add(-rate * gradient[name]) for name in state}
        largest = jnp.maximum(new["users"].max(), new["items"].max())
        return new, jax.lax.pmax(largest, AXIS)

    return update


def trained(
    impl: Implementation, cluster: Cluster, **options: Any
) -> tuple[Callable[[], Any], Any]:
    """Return a maker of a state that was trained for one step, and the mapped function that trains
    it.
    """
    rows = rows_of(cluster)
    ones = mapped_argument(impl, np.ones(len(cluster.local_devices), np.float32))
    start = impl.map(lambda one: {"items": initial(rows) * one, "users": initial(rows) * one}, AXIS)
    step = impl.map(factorise(), AXIS, **options)
    first = batch(impl, cluster, 1)
    return lambda: step(start(ones), *first)[0], step


def scores() -> Body:
    """The sums over all devices of what a table makes of their features.

    The rows are summed first: a large product would use all of the host's threads, for which the
    devices that wait in the sum would have to wait in turn.
    """
    return lambda table, x: jax.lax.psum(x @ table.sum(0), AXIS)


# --- Parts of results that are compared, and models -----------------------------------------------


def ends_and_sum(copies: Any) -> Any:
    """Return the first and last elements of each copy of a table, and the sum of all."""
    flat = np.asarray(copies).reshape(len(copies), -1)
    return [flat[:, ENDS], flat.sum(-1, dtype=np.float64)]


def of_rows(tree: Any) -> Any:
    """`ends_and_sum` of this process's copies of each leaf, as they are if they are but numbers."""
    local = [local_rows(leaf) for leaf in jax.tree.leaves(tree)]
    return [ends_and_sum(one) if one.ndim > 1 else one for one in local]


def descent(place: Place, n: int) -> Mapping[str, Any]:
    """NumPy's rows of both tables that the examples are about, by example, after `n` steps."""
    which, _ = examples(place, n)
    tables = initial(rows_of(place), np).astype(np.float64)
    users, items = (tables[which[..., at].ravel()] for at in range(LEAVES))
    for k in range(1, n + 1):
        rest = (users * items).sum(-1) - examples(place, k)[1].ravel()
        rate = RATE / place.topology.devices * rest[:, None]
        users, items = users - rate * items, items - rate * users
    return {"items": items, "users": users}


def table_sum(rows: int) -> float:
    """The sum of a table to begin with."""
    return 1.5 * rows * WIDTH


def tables_after(n: int, copies: int | None = None) -> Callable[[Place], Any]:
    """The model of `of_rows` of a state after `n` steps: a copy on each device, or so many."""

    def model(place: Place) -> Any:
        count = copies or place.topology.devices_per_process
        before, now = descent(place, 0), descent(place, n)
        shown = []
        for name, first, last in (("items", -1, 0), ("users", 0, -1)):
            ends = np.concatenate([now[name][first][:2], now[name][last][-2:]])
            total = table_sum(rows_of(place)) + (now[name] - before[name]).sum()
            shown.append([np.tile(ends.astype(np.float32), (count, 1)), np.full(count, total)])
        return shown

    return model


def trained_for(n: int) -> Callable[[Place], Any]:
    """Return the model of `of_rows` of the output in step `n`."""

    def model(place: Place) -> Any:
        largest = max(2.0, *(rows.max() for rows in descent(place, n).values()))
        each = np.full(place.topology.devices_per_process, largest, np.float32)
        return [*tables_after(n)(place), each]

    return model


def scored(place: Place, rows: int, n: int = 0) -> Any:
    """NumPy's `scores` of the items after `n` steps, or of any table to begin with."""
    change = (descent(place, n)["items"] - descent(place, 0)["items"]).sum(0) if n else 0
    total = ((table_sum(rows) / WIDTH + change) * features(place)).sum((0, 2))
    return np.tile(total.astype(np.float32), (place.topology.devices_per_process, 1))


def of_one(state: Any) -> Any:
    """`ends_and_sum` of each leaf of a single copy."""
    return [ends_and_sum(np.asarray(leaf)[None]) for leaf in jax.tree.leaves(state)]


@described("the scores of a state that was trained for a step")
def scored_when_trained(place: Place) -> Any:
    return scored(place, rows_of(place), 1)


def of_the_state(multiple: float) -> Callable[[Place], float]:
    """So many times the state, wherever."""
    return lambda _: multiple


@described("the scores of a table to begin with")
def scored_whole(place: Place) -> Any:
    return scored(place, rows_of(place, 1))


def and_a_copy(multiple: float) -> Callable[[Place], float]:
    """So many times the state, and one device's part of it once more."""
    return lambda place: multiple + 1 / place.topology.devices_per_process
