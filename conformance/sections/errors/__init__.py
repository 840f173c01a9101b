"""Parts that several documented errors share: the placements of an argument, and grids for nested
pmaps.

One table of placements serves the modules on `Received incompatible devices` and on the state after
an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.spec.clause import Need, processes
from conformance.spec.columns import Columns
from conformance.spec.comparing import Model, against
from conformance.spec.expectation import OfEachStep, noted, raises, returned_instead, returns, steps
from conformance.spec.expected import Expectation
from conformance.spec.family import table
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.observation import Raised, Step
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_FOUR, ONE_PROCESS, Place
from conformance.worker.bodies import addend
from conformance.worker.protocols import Implementation, Mapped

DEVICES_CLAIM = "migrate-pmap.incompatible-devices"
OWN_DEVICES_CLAIM = "migrate-pmap.incompatible-sharding"
MESSAGE_CLAIM = "migrate-pmap.incompatible-devices-message"
AS_JIT_CLAIM = "migrate-pmap.incompatible-devices-as-jit"
IN_AXES_CLAIM = "migrate-pmap.fix-redefine-in-axes"

POSITIONAL_ONLY = "a keyword argument is refused whatever it is: errors.arguments.keyword"
PART_OF_A_PROCESS = "the test needs more than two devices in a process"

_IDS = r"\[\d+(, \d+)*\]"


def incompatible(first: str = _IDS, second: str = _IDS) -> str:
    """Return the pattern of the documented message: both arguments, each with its devices.

    For a mapped argument the other party is the mapped function itself. `with` came before the ids
    in 0.10.
    """
    argument = r"argument \S+ of \S+ with shape \w+\[[\d,]*\] and"
    return (
        rf"Received incompatible devices for jitted computation\. Got {argument} "
        rf"(with )?device ids {first} on platform \w+ and "
        rf"({argument}|shard_map inside jit) (with )?device ids {second} on platform \w+"
    )


INCOMPATIBLE = incompatible()


@dataclass(frozen=True, slots=True)
class Known:
    """An error of this section as it is known: its type (in some version), what it says, where."""

    types: tuple[str, ...]
    pattern: str
    phases: tuple[str, ...]

    def is_it(self, raised: Raised) -> bool:
        """Return whether this known error was raised."""
        return (
            not {*self.types}.isdisjoint((raised.type, *raised.bases))
            and raised.phase in self.phases
            and re.search(self.pattern, raised.message, re.DOTALL) is not None
        )


_RUNTIME = ("XlaRuntimeError", "JaxRuntimeError")  # up to 0.7.2, and after

# In whichever JAX and wherever the argument lay; the last of them of a call after the first.
HALF_FILLED = Known(("StoreException",), "^Store (empty|occupied)$", ("trace", "arguments"))
COPY_ARRAYS = Known(
    _RUNTIME,
    "CopyArrays only supports destination device list of the same size",
    ("arguments", "unknown", "execute"),
)
OF_DEVICES = Known(("ValueError",), INCOMPATIBLE, ("lower",))
OF_PLACES = (
    OF_DEVICES,
    Known(
        ("ValueError",),
        "Sharding passed to jit does not match the sharding on the respective arg",
        ("lower",),
    ),
    Known(
        ("ValueError",),
        r"Buffer passed to Execute\(\) as argument \d to replica 0 is on device",
        ("execute",),
    ),
    Known(
        _RUNTIME,
        "device_put expects an array with exactly one shard, got an array with",
        ("arguments",),
    ),
    COPY_ARRAYS,
    HALF_FILLED,
)
OF_MESHES = (
    Known(
        ("ValueError",),
        "The context mesh .* should match the mesh passed to shard_map",
        ("trace",),
    ),
    HALF_FILLED,
)
OF_STAGES = (
    Known(
        ("TypeError",),
        "Argument types differ from the types for which this computation was compiled",
        ("unknown",),
    ),
    Known(
        ("ValueError",),
        "axis sizes that are not evenly divisible by the corresponding mesh axis sizes",
        ("trace",),
    ),
    HALF_FILLED,
)
OF_BARRIERS = Known(("AssertionError",), "^sync_global_devices name mismatch ", ("unknown",))
OF_FETCHES = Known(
    ("RuntimeError",),
    r"[Ff]etching value for `jax\.Array` that spans non-addressable",
    ("fetch",),
)
KNOWN = (*OF_PLACES, *OF_MESHES, *OF_STAGES, OF_BARRIERS, OF_FETCHES)

WITHOUT = "without the fix"
NOTHING_TO_FIX = "no error here: nothing to fix"

WIDTH = 8  # of a row; so that rows can be sharded along it as well
FOUR_DEVICES = processes(1, devices_per_process=4)

OUTER, INNER = 4, 2  # devices of the outer and of the inner pmap

Devices = Sequence[Any]


def on_mesh(array: Any, mesh: jax.sharding.Mesh, *spec: str | None) -> Any:
    """The array by `device_put` on the mesh, sharded by `P(*spec)`."""
    partition = jax.sharding.PartitionSpec(*spec)
    return jax.device_put(array, jax.sharding.NamedSharding(mesh, partition))


def first_half(sequence: Any) -> Any:
    """Devices, or rows."""
    return sequence[: len(sequence) // 2]


def second_half(sequence: Any) -> Any:
    """Devices, or rows."""
    return sequence[len(sequence) // 2 :]


@dataclass(frozen=True, slots=True)
class Where:
    """A placement of an argument, for a mapped function over `devices`."""

    key: str
    text: str
    devices: Callable[[Devices], Devices]
    mapped_spec: tuple[str | None, ...] | None = ("i",)
    unmapped_spec: tuple[str | None, ...] | None = ()
    topologies: tuple[str, ...] = ONE_PROCESS
    half: bool = False
    claim: str = DEVICES_CLAIM

    @property
    def needs(self) -> Need:
        """The least cluster that has such a place."""
        return FOUR_DEVICES if self.topologies == ONE_PROCESS else Need()

    @property
    def left_out(self) -> str:
        """Return why there are no several processes."""
        return PART_OF_A_PROCESS if self.topologies == ONE_PROCESS else ""

    def put(self, impl: Implementation, array: Any, *, mapped: bool = True) -> Any:
        """Return the array where the mapped function does not expect it."""
        chosen = self.devices(impl.devices)
        spec = self.mapped_spec if mapped else self.unmapped_spec
        if spec is None:
            return jax.device_put(array, chosen[0])
        return on_mesh(array, impl.mesh("i", chosen), *spec)

    def map(self, impl: Implementation, body: Callable[..., Any], **options: Any) -> Mapped:
        """The map that is given the misplaced argument."""
        if self.half:
            options["devices"] = first_half(impl.devices)
        return impl.map(body, **options)

    def rows(self, rows: Any) -> Any:
        """Return as many of the rows as the mapped function has devices."""
        return first_half(rows) if self.half else rows


WHERE: Mapping[str, Where] = table(
    Where(
        "one-device",
        "committed to one device",
        lambda devices: [d for d in devices if d in jax.local_devices()][:1],
        mapped_spec=None,
        unmapped_spec=None,
        topologies=ONE_AND_FOUR,
    ),
    Where("fewer-devices", "on half of the mapped function's devices", first_half),
    Where(
        "other-devices", "on devices that the mapped function does not use", second_half, half=True
    ),
    Where(
        "other-order",
        "on the mapped function's devices in reverse order",
        lambda devices: devices[::-1],
        topologies=ONE_AND_FOUR,
        claim=OWN_DEVICES_CLAIM,
    ),
    Where(
        "other-spec",
        "on the mapped function's devices with a different sharding",
        list,
        mapped_spec=(None, "i"),
        unmapped_spec=("i",),
        topologies=ONE_AND_FOUR,
        claim=OWN_DEVICES_CLAIM,
    ),
    Where(
        "replicated",
        "replicated over the mapped function's devices",
        list,
        mapped_spec=(),
        topologies=ONE_AND_FOUR,
        claim=OWN_DEVICES_CLAIM,
    ),
)


def plus_addend(width: int) -> Model:
    """Return the model of adding `addend` to rows of this width."""

    @described("this process's rows plus the unmapped argument")
    def model(place: Place) -> Any:
        return place.rows(width) + addend(width)

    return model


def times(factor: int, where: Where) -> Model:
    """Return the model of multiplying the rows by `factor`."""

    @described(f"this process's rows times {factor}")
    def model(place: Place) -> Any:
        return where.rows(place.rows(WIDTH)) * factor

    return model


@described("the rows of the first half of the devices, doubled")
def half_doubled(place: Place) -> Any:
    return first_half(place.rows(2)) * 2


def refused_unless_legacy(model: Model, shard_map: Model | None = None) -> Columns:
    """Expect the model under legacy pmap, which reshards silently, and the documented error
    otherwise.

    `shard_map` is the model of its own result, where its global view makes that another.
    """
    return refused_as(INCOMPATIBLE, model, shard_map)


def refused_as(message: str, model: Model, shard_map: Model | None = None) -> Columns:
    """Expect the same as `refused_unless_legacy`, with another message."""
    return {
        LEGACY_PMAP: returns(model),
        NEW_PMAP: raises(ValueError, message, phase="lower", otherwise=model),
        SHARD_MAP: raises(ValueError, message, phase="lower", otherwise=shard_map or model),
    }


def needed(model: Model, *known: Known) -> Expectation:
    """Expect one of the known errors or the right values from the form that a fix replaces.

    Which of the two it must be is judged by the error's own clause; the cell records it, so that a
    fix for an error that does not occur is visible.
    """

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        if step.raised is None:
            problem = against(model, place, step)
            if problem is None:
                return True, NOTHING_TO_FIX
            return False, returned_instead(step, problem)
        return _is_known(step.raised, known or KNOWN), f"remedied: {step}"

    return OfEachStep("one of the errors that it remedies, or the right values", check_step)


def an_error(otherwise: Model, *known: Known) -> Expectation:
    """One of these errors, whichever: which of them it is, is for its own clause to judge."""

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        if step.raised is None:
            return False, returned_instead(step, against(otherwise, place, step))
        return _is_known(step.raised, known), str(step)

    return OfEachStep("raises one of the known errors", check_step, error=True)


def _is_known(raised: Raised, known: Iterable[Known]) -> bool:
    return any(one.is_it(raised) for one in known)


def remedied(model: Model, faulty: Model | None = None) -> Expectation:
    """Both calls of the fixed form are right; `faulty` is what the other form computes."""
    fixed = returns(model)
    without = needed(faulty or model, *OF_PLACES)
    return steps(without_the_fix=without, first_call=fixed, second_call=fixed)


def _none(_: Place, programs: Any) -> bool:
    return not any(program["collectives"] for program in programs)


def _operations(programs: Any) -> str:
    moving = [one for one in programs if one["collectives"]]
    every = [one for program in moving for one in program["collectives"]]
    found = dict.fromkeys(f"{one['operation']} {one['shape']}" for one in every)
    if not found:
        return "collectives: none"
    return f"collectives: {', '.join(found)}, in {len(moving)} of {len(programs)} programs"


NO_COLLECTIVE = noted(
    "programs",
    "compiles no program with a collective",
    _none,
    show=_operations,
    compiled=True,
)


def grid(place: Place) -> Any:
    """One row per pair of an outer and an inner index, shape `(OUTER, INNER, 3)`."""
    return np.arange(1, 1 + OUTER * INNER * 3, dtype=np.float32).reshape(OUTER, INNER, 3)


def sync(name: str) -> None:
    """The documented barrier between processes."""
    from jax.experimental import multihost_utils

    multihost_utils.sync_global_devices(name)
