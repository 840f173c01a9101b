"""Parts that the drop-in clauses share: the replacements under test, and their references.

The replacements are built as the document prescribes. Each result is compared with a NumPy model of
the original's, and with the original itself where this JAX still has it. No function is mapped for
that: it is the same under every implementation. That mapped functions accept such arrays, which is
their purpose, is tested for each implementation by `drop_in.mapped`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from conformance.spec import aspects
from conformance.spec.arrays import returns_weak
from conformance.spec.combining import of_result
from conformance.spec.expectation import OfEachStep, every, returns, steps
from conformance.spec.expected import Expectation
from conformance.spec.family import table
from conformance.spec.observation import Step
from conformance.spec.releases import absent, by_release
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation, Mapped

AXIS = "x"  # of the replacements' mesh, as in the document
UNLIKE = "unlike the replacement"
DEVICES = "devices"
STRUCTURE = "structure"

ORIGINAL = "original"  # the step that calls the function which is replaced
ORIGINALS_LEFT_IN = "0.10.0"  # the release that has them no more
GONE = "it left JAX in 0.10.0, and up to 0.9.2 it returned and raised what is expected here"
NAMED_FROM = "0.8.2"  # the release from which on both functions return a NamedSharding

# Why most kinds of arguments are tried in one process.
OWN_DEVICES = "the array is on this process's devices only"

# JAX's dtype of each NumPy dtype that it does not keep, as 64 bits are not enabled.
NARROWED = {"float64": "float32", "int64": "int32", "complex128": "complex64"}

LEADING = "migrate-pmap-later.replacements-leading-axis"
SILENT = "pmap-silence.replacements-prng-keys-and-errors"
ON_HOST = "migrate-pmap-later.np-stack-stays-on-host"
WHOLE_STACK = "replacement-holds-the-whole-stack"  # the cause of what jnp.stack costs

# Findings shared by both replaced functions.
ZERO_SIZE = "drop_in.zero-size"
RAW_KEYS = "drop_in.raw-keys"
TYPED_KEYS = "drop_in.typed-keys"

Tree = Any
Stack = Callable[[Sequence[Any]], Any]


class Pair(NamedTuple):
    """A container of the user's own."""

    left: Any
    right: Any


@dataclass(frozen=True, slots=True)
class Stacking:
    """The `stack` function that a replacement uses: that of the module `name`."""

    key: str
    name: str
    stack: Stack


JNP = Stacking("", "jnp", jax.numpy.stack)  # as in the document's text
NP = Stacking(".np-stack", "np", np.stack)  # as in its advice, for NumPy data alone
STACKINGS: Mapping[str, Stacking] = table(JNP, NP)


def broadcast(copies: Sequence[Any]) -> Any:
    """Copies of one array as a view of it: they need no memory before they are put."""
    first = np.asarray(copies[0])
    return np.broadcast_to(first, (len(copies), *first.shape))


BROADCAST = Stacking(".np-broadcast", "np.broadcast_to", broadcast)
BY_BROADCAST = "pmap-silence.copies-by-broadcast"  # the claim about it


def split(devices: Sequence[jax.Device], axis_name: str = AXIS) -> jax.sharding.NamedSharding:
    """The sharding of both replacements: a leading axis with one entry per device."""
    mesh = jax.sharding.Mesh(np.array(devices), (axis_name,))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(axis_name))


def put_sharded(shards: Any, devices: Sequence[jax.Device], stack: Stack) -> Tree:
    """The replacement of `device_put_sharded`: stack the shards of each leaf, place the stack."""
    where = split(devices)

    def put_leaf(*leaves: Any) -> Any:
        return jax.device_put(stack(leaves), where)

    return jax.tree.map(put_leaf, *shards)


def put_replicated(value: Any, devices: Sequence[jax.Device], stack: Stack) -> Tree:
    """The replacement of `device_put_replicated`: stack copies of each leaf, place the stack."""
    where = split(devices)

    def put_leaf(leaf: Any) -> Any:
        copies = [leaf for _ in range(len(devices))]
        return jax.device_put(stack(copies), where)

    return jax.tree.map(put_leaf, value)


@dataclass(frozen=True, slots=True)
class Replaced:
    """A function that leaves JAX, and what the document has in its place."""

    name: str
    replacement: Callable[[Any, Sequence[jax.Device], Stack], Tree]

    @property
    def original(self) -> Callable[[Any, Sequence[jax.Device]], Tree] | None:
        """The function itself, where this JAX still has it."""
        return getattr(jax, self.name, None)


SHARDED = Replaced("device_put_sharded", put_sharded)
REPLICATED = Replaced("device_put_replicated", put_replicated)


# --- Parts of the tables of cases


def all_of(devices: list[Any]) -> list[Any]:
    """Every device, in order."""
    return devices


def reversed_order(devices: list[Any]) -> list[Any]:
    """Every device, the last one first."""
    return devices[::-1]


def second_half(devices: list[Any]) -> list[Any]:
    """Half of the devices, without the first."""
    return devices[len(devices) // 2 :]


def first_alone(devices: list[Any]) -> list[Any]:
    """A single device."""
    return devices[:1]


def cast(dtype: str) -> Callable[[Any], Tree]:
    """A row of numbers in this dtype, of NumPy's or of JAX's own."""
    return lambda row: row.astype(jax.numpy.dtype(dtype))


# --- The mapped body, in JAX and in NumPy


def is_key(leaf: Any) -> bool:
    """Return whether this is an array of typed PRNG keys."""
    dtype = getattr(leaf, "dtype", None)
    return dtype is not None and jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key)


def opened(tree: Tree) -> Tree:
    """Typed PRNG keys as the numbers they hold, all else as it is."""
    return jax.tree.map(lambda x: jax.random.key_data(x) if is_key(x) else x, tree)


def work(tree: Tree) -> Tree:
    """The mapped body: double every leaf, invert booleans, convert keys to their numbers."""
    return jax.tree.map(lambda x: ~x if x.dtype == bool else x + x, opened(tree))


def worked(array: Any) -> Any:
    """Return the result of `work` for a NumPy array."""
    return ~array if array.dtype == bool else array + array


def narrow(array: Any) -> Any:
    """A NumPy value in the dtype that JAX gives it."""
    return (found := np.asarray(array)).astype(NARROWED.get(str(found.dtype), found.dtype))


def weak_leaves(tree: Tree) -> list[bool]:
    """Return which leaves are weakly typed in JAX: Python numbers, but not booleans."""
    return [
        isinstance(leaf, int | float | complex) and not isinstance(leaf, bool | np.generic)
        for leaf in jax.tree.leaves(tree)
    ]


# --- Expectations of a replacement's result


PLACED = aspects.SHARDING | {aspects.DEVICES, aspects.COMMITTED, aspects.WEAK_TYPE}


def placed(text: str, weak: Callable[[Place], list[bool]]) -> Expectation:
    """A leading axis over the devices that were named, in their order, committed, weak as given.

    The probe notes the devices' ids.
    """

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        wanted = step.extra.get(DEVICES)
        if step.raised is not None or wanted is None:
            return False, str(step)
        seen = [
            (
                (leaf.sharding or {}).get("type"),
                [part for part in (leaf.sharding or {}).get("spec", []) if part is not None],
                (leaf.sharding or {}).get(DEVICES),
                leaf.committed,
                bool(leaf.weak_type),
            )
            for leaf in step.leaves
        ]
        right = [("NamedSharding", [AXIS], wanted, True, one) for one in weak(place)]
        return seen == right, f"sharding, spec, devices, committed, weak: {seen}"

    return OfEachStep(text, check_step, claims=PLACED)


def structured(model: Callable[[Place], Tree]) -> Expectation:
    """The result is a pytree like the model's."""

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        found = step.extra.get(STRUCTURE)
        return found == str(jax.tree.structure(model(place))), f"{STRUCTURE} = {found}"

    return of_result("a pytree as the argument's", check_step)


def like_the_replacement() -> OfEachStep:
    """The original's result differs in nothing but the sharding's type and axis name.

    What the probe noted, which it can only where the replacement returned.
    """

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        found = step.extra.get(UNLIKE, [])
        return not found, f"{UNLIKE}: {found}" if found else "like the replacement"

    return OfEachStep("the same shapes, dtypes, weak types and rows per device", check_step)


def of_sharding(kind: str) -> OfEachStep:
    """Every leaf of the original's result has this type of sharding."""

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        kinds = [(leaf.sharding or {}).get("type") for leaf in step.leaves]
        return kinds == [kind] * len(kinds), f"shardings: {kinds}"

    return OfEachStep(f"a {kind}", check_step)


def of_the_original(expected: Expectation) -> Expectation:
    """This of the original, which must be called in each JAX that has it."""
    return by_release(
        ORIGINALS_LEFT_IN, before=steps(original=expected), since=absent(ORIGINAL, GONE)
    )


def reproduced(
    text: str, model: Callable[[Place], Tree], weak: Callable[[Place], list[bool]]
) -> Expectation:
    """All that is expected of what the replacement and the original return.

    `text` says what the tree of the `model` is; `weak`, which of its leaves are weakly typed.
    """

    value = returns(model, text=text)
    there = placed("one row on each device, in their order, committed", weak)
    tree = structured(model)
    return every(
        steps(replacement=value, replacement_again=value),
        steps(replacement=there, replacement_again=there),
        steps(replacement=tree, replacement_again=tree),
        of_the_original(returns_weak(model, weak)),
        of_the_original(like_the_replacement()),
        by_release(
            NAMED_FROM,
            before=steps(original=of_sharding("PmapSharding")),
            since=of_the_original(of_sharding("NamedSharding")),
        ),
    )


def taken(model: Callable[[Place], Tree], weak: Callable[[Place], list[bool]]) -> Expectation:
    """Expect a mapped function's result for the replacement's result, the pytree of `model`.

    `weak` says which of its leaves are weakly typed; the same leaves of the result are then.
    """

    @described("the replacement's result, doubled by the map")
    def mapped(place: Place) -> Tree:
        return jax.tree.map(worked, model(place))

    doubled = returns_weak(mapped, weak)
    return steps(
        replacement=returns_weak(model, weak),
        first_call=doubled,
        second_call=doubled,
    )


# --- Probes


def replace(
    impl: Implementation,
    cluster: Cluster,
    function: Replaced,
    argument: Any,
    devices: Sequence[jax.Device],
    stacking: Stacking,
) -> None:
    """Call the replacement twice, and the original where there is one."""
    impl.select()  # the original's sharding goes by the switch: it is as a user finds it
    ids = [device.id for device in devices]
    kept: dict[str, Any] = {}

    def call(step: str, put: Callable[..., Tree], *more: Any) -> None:
        def run() -> Tree:
            kept[step] = put(argument, devices, *more)
            return opened(kept[step])

        cluster.step(step, run)
        if step in kept:
            cluster.note(STRUCTURE, str(jax.tree.structure(kept[step])))
            cluster.note(DEVICES, ids)

    for step in ("replacement", "replacement again"):
        call(step, function.replacement, stacking.stack)
    original = function.original
    if original is not None:
        call(ORIGINAL, original)
        if "replacement" in kept and ORIGINAL in kept:
            cluster.note(UNLIKE, differences(kept["replacement"], kept[ORIGINAL]))


def give_to_map(
    impl: Implementation,
    cluster: Cluster,
    function: Replaced,
    argument: Any,
    devices: Sequence[jax.Device],
    *,
    all_devices: bool,
) -> None:
    """Pass the replacement's result twice to a mapped function over its devices."""
    kept: list[Tree] = []

    def run() -> Tree:
        kept.append(function.replacement(argument, devices, JNP.stack))
        return opened(kept[0])

    cluster.step("replacement", run)
    cluster.twice(map_over(impl, devices, all_devices=all_devices), *kept)


def differences(ours: Tree, theirs: Tree) -> list[str]:
    """In what two results differ, but for their values and the kind of sharding."""
    if jax.tree.structure(ours) != jax.tree.structure(theirs):
        return [f"structure {jax.tree.structure(ours)} and {jax.tree.structure(theirs)}"]
    found = []
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        mine, its = _facts(one), _facts(other)
        found += [f"{k}: {mine[k]} and {its[k]}" for k in mine if mine[k] != its[k]]
    return found


def _facts(array: Any) -> dict[str, str]:
    rows = sorted(
        (s.device.id, s.index[0].indices(array.shape[0])[:2], s.data.shape)
        for s in array.addressable_shards
    )
    return {
        "shape": str(array.shape),
        "dtype": str(array.dtype),
        "weak type": str(bool(getattr(array, "weak_type", False))),
        "committed": str(getattr(array, "_committed", True)),
        "rows": str(rows),
    }


def map_over(impl: Implementation, devices: Sequence[jax.Device], *, all_devices: bool) -> Mapped:
    """The map that takes such an array: pmap's own, or shard_map over these devices."""
    chosen = None if impl.is_pmap and all_devices else list(devices)
    return impl.map(lambda tree: work(tree), devices=chosen)  # a function of its own
