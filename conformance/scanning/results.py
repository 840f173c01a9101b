"""What functions of JAX, NumPy and flax return, as tags of a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.scanning.names import (
    COLLECTIVES,
    KEEPS_TAGS,
    LEAVES,
    LEAVES_OF_JAX,
    MAKE_CONSTANTS,
    NOT_LEAVES,
    RETURNS,
    SHAPES,
)
from conformance.scanning.values import (
    ON_ONE_DEVICE,
    Argument,
    Constant,
    Items,
    Reference,
    Value,
)

COMPUTED = "computed"  # of a number: it is a count no more
ROWS_FOR_ALL = "rows for all devices"


def maps_around(under: Sequence[str]) -> list[str]:
    """Return the kinds of the maps in whose bodies code runs, the innermost last."""
    return [word.removeprefix("in ") for word in under if word in ("in pmap", "in shard_map")]


def counts_all_devices(value: Value) -> bool:
    """Return whether a shape, or the first item of it, is the number of all devices."""
    if isinstance(value, Items):
        return bool(value.items) and counts_all_devices(value.items[0])
    return bool(value.tags & {"device count", "all devices"}) and COMPUTED not in value.tags


def has_rows_by_count(name: str, options: Mapping[str, Argument]) -> bool:
    """Return whether a function makes an array with as many rows as there are devices."""
    at = SHAPES.get(name)
    some = [options.get(key) for key in ("shape", "size", f"#{at}")]
    return any(counts_all_devices(one.value) for one in some if one is not None)


def tags_of_items(value: Items) -> set[str]:
    """Return the tags of any item of a display; "literals" if each is one."""
    found = {tag for one in value.items for tag in one.tags}
    if value.items and all(
        isinstance(one, Constant) or "constant array" in one.tags for one in value.items
    ):
        found.add("literals")
    return found


def result_tags(name: str, options: dict[str, Argument], values: Sequence[Value]) -> frozenset[str]:
    """Return the tags of what a function outside of the program returns."""
    found: set[str] = set()
    if name in RETURNS:
        found.add(RETURNS[name])
    if name in KEEPS_TAGS and values:
        found |= values[0].tags
    if name.startswith(LEAVES) and name not in NOT_LEAVES:
        found.add("leaf")
    if name in COLLECTIVES:
        found |= {"leaf", "collective alone"}
    if name == "len" and values:
        counts = {"all devices": "device count", "local devices": "local device count"}
        found |= {count for tag, count in counts.items() if tag in values[0].tags}
    if name in MAKE_CONSTANTS:
        found.add("constant array")
    if name == "jax.numpy.stack":
        found.add("stacked by jax.numpy")
    if name.startswith("numpy."):
        found.add("host")
    if name == "flax.training.common_utils.shard":
        found.add("rows of this process")
    if name == "range":
        found.add("range")
    if name == "jax.numpy.arange":
        found.add("arange")
    if name == "jax.numpy.reshape" and len(values) > 1:
        shape = values[1]
        if counts_all_devices(shape):
            found.add(ROWS_FOR_ALL)
    if has_rows_by_count(name, options):
        found.add(ROWS_FOR_ALL)
    if name.startswith(LEAVES_OF_JAX):
        found |= {ON_ONE_DEVICE for one in values if ON_ONE_DEVICE in one.tags}
    return frozenset(found | _placement(name, options, values))


def _has_explicit(value: Value) -> bool:
    """Return whether axis types contain an Explicit one."""
    if isinstance(value, Items):
        return any(map(_has_explicit, value.items))
    return isinstance(value, Reference) and value.name.endswith(".AxisType.Explicit")


def _is_none(value: Value) -> bool:
    return isinstance(value, Constant) and value.value is None


def _placement(name: str, options: dict[str, Argument], values: Sequence[Value]) -> set[str]:
    """Return the tags of meshes, shardings, and where `device_put` places an array."""
    if name in ("jax.make_mesh", "jax.sharding.Mesh") and "axis_types" in options:
        explicit = _has_explicit(options["axis_types"].value)
        return {"Explicit mesh" if explicit else "Auto mesh"}
    if name == "jax.make_mesh":
        return {"Explicit mesh"}
    if name in ("jax.set_mesh", "jax.sharding.use_mesh", "jax.sharding.set_mesh"):
        return {"set mesh"}
    if name == "jax.sharding.Mesh":
        return {"Auto mesh"}
    if name == "jax.sharding.PartitionSpec":
        first = options.get("#0")
        rows = first is not None and not _is_none(first.value)
        found = set() if rows else {"not by rows"}
        return found | ({"unreduced"} if "unreduced" in options else set())
    if name == "jax.sharding.NamedSharding" and values:
        kept = {tag for one in values for tag in one.tags}
        return {"sharding", *(kept & {"Explicit mesh", "not by rows", "unreduced"})}
    if name == "jax.sharding.SingleDeviceSharding":
        return {"device"}
    if name == "jax.device_put":
        device = options.get("device")
        tags = device.value.tags if device is not None else frozenset[str]()
        words = {"device": ON_ONE_DEVICE, "not by rows": "placed otherwise", "sharding": "placed"}
        if "Explicit mesh" in tags:
            return {"on an explicit mesh"}
        return {word for tag, word in words.items() if tag in tags}
    return set()
