"""Qualified names of functions of JAX, NumPy and flax that the scanner knows."""

from __future__ import annotations

import functools
from collections.abc import Mapping

# One name for what several names refer to.
_ONE_NAME: Mapping[str, str] = {
    "jax.api.pmap": "jax.pmap",
    "jax._src.api.pmap": "jax.pmap",
    "jax.experimental.shard_map.shard_map": "jax.shard_map",
    "jax.experimental.pjit.pjit": "jax.jit",
    "jax.api.jit": "jax.jit",
    "jax.experimental.maps.Mesh": "jax.sharding.Mesh",
    "jax.Mesh": "jax.sharding.Mesh",
    "jax.P": "jax.sharding.PartitionSpec",
    "jax.NamedSharding": "jax.sharding.NamedSharding",
    "jax.tree_util.tree_map": "jax.tree.map",
    "jax.remat": "jax.checkpoint",
    "jax.ad_checkpoint.checkpoint": "jax.checkpoint",
    "jax.random.PRNGKey": "jax.random.PRNGKey",
    "jax.experimental.io_callback": "jax.experimental.io_callback",
    "jax.interpreters.pxla.PmapSharding": "jax.sharding.PmapSharding",
    "jax.lib.xla_bridge.device_count": "jax.device_count",
    "jax.lib.xla_bridge.local_device_count": "jax.local_device_count",
    "jax.config.config": "jax.config",
}
_MOVED = (
    ("jax._src.sharding_impls.", "jax.sharding."),
    ("jax.experimental.sharding.", "jax.sharding."),
)

SIGNATURES: Mapping[str, tuple[str, ...]] = {
    "jax.pmap": (
        *("fun", "axis_name", "in_axes", "out_axes", "static_broadcasted_argnums", "devices"),
        *("backend", "axis_size", "donate_argnums", "global_arg_shapes"),
    ),
    "equinox.filter_pmap": ("fun",),
    "flax.nnx.pmap": ("f",),
    "jax.shard_map": ("f", "mesh", "in_specs", "out_specs", "check_vma"),
    "jax.make_mesh": ("axis_sizes", "axis_names", "axis_types"),
    "jax.sharding.Mesh": ("devices", "axis_names", "axis_types"),
    "jax.sharding.NamedSharding": ("mesh", "spec"),
    "jax.device_put_sharded": ("shards", "devices"),
    "jax.device_put_replicated": ("x", "devices"),
    "jax.device_put": ("x", "device"),
    "jax.config.update": ("name", "value"),
    "jax.jit": ("fun",),
    "jax.lax.psum": ("x", "axis_name"),
    "jax.lax.pmean": ("x", "axis_name"),
    "jax.lax.pmax": ("x", "axis_name"),
    "jax.lax.pmin": ("x", "axis_name"),
    "jax.lax.all_gather": ("x", "axis_name"),
    "jax.lax.ppermute": ("x", "axis_name", "perm"),
    "jax.lax.axis_index": ("axis_name",),
    "jax.lax.scan": ("f", "init", "xs", "length"),
    "jax.experimental.multihost_utils.process_allgather": ("in_tree", "tiled"),
    "jax.experimental.multihost_utils.sync_global_devices": ("name",),
    "jax.experimental.mesh_utils.create_device_mesh": ("mesh_shape",),
    "jax.make_array_from_process_local_data": ("sharding", "local_data", "global_shape"),
    "jax.distributed.initialize": ("coordinator_address", "num_processes", "process_id"),
    "jax.vmap": ("fun", "in_axes", "out_axes", "axis_name"),
    "flax.jax_utils.replicate": ("tree", "devices"),
    "flax.jax_utils.unreplicate": ("tree",),
}

# Transformations of a function, and by which word each is known.
TRANSFORMATIONS: Mapping[str, str] = {
    "jax.jit": "jit",
    "jax.vmap": "vmap",
    "jax.grad": "grad",
    "jax.value_and_grad": "grad",
    "jax.jacfwd": "grad",
    "jax.jacrev": "grad",
    "jax.hessian": "grad",
    "jax.checkpoint": "checkpoint",
    "flax.linen.jit": "jit",
    "equinox.filter_jit": "jit",
    "equinox.filter_vmap": "vmap",
    "equinox.filter_grad": "grad",
    "equinox.filter_value_and_grad": "grad",
    "equinox.filter_checkpoint": "checkpoint",
    "flax.nnx.jit": "jit",
    "flax.nnx.vmap": "vmap",
    "flax.nnx.grad": "grad",
    "flax.nnx.value_and_grad": "grad",
    "flax.nnx.remat": "checkpoint",
    "haiku.jit": "jit",
    "haiku.grad": "grad",
    "haiku.value_and_grad": "grad",
    "haiku.remat": "checkpoint",
    "chex.chexify": "chexify",
}
# Functions that call one of their arguments, and which.
CONTROL: Mapping[str, tuple[str, tuple[int, ...]]] = {
    "jax.lax.scan": ("scan", (0,)),
    "jax.lax.map": ("scan", (0,)),
    "jax.lax.fori_loop": ("scan", (2,)),
    "jax.lax.associative_scan": ("scan", (0,)),
    "jax.lax.while_loop": ("scan", (0, 1)),
    "jax.lax.cond": ("cond", (1, 2)),
    "jax.lax.switch": ("cond", (1,)),
    "jax.vjp": ("grad", (0,)),
    "jax.jvp": ("grad", (0,)),
    "jax.linearize": ("grad", (0,)),
    "jax.eval_shape": ("eval_shape", (0,)),
}
# By which keywords they are passed.
CALLED_BY_CONTROL = frozenset(
    {"f", "fn", "fun", "body_fun", "cond_fun", "true_fun", "false_fun", "branches"}
)
# What programs look for with hasattr, of what every JAX from 0.7 on has.
OF_EVERY_JAX = frozenset(
    {
        *("jax.shard_map", "jax.tree", "jax.tree.map", "jax.make_mesh", "jax.set_mesh"),
        *("jax.sharding.AxisType", "jax.typeof", "jax.lax.axis_size", "jax.random.key"),
        *("jax.distributed.is_initialized", "jax.make_array_from_process_local_data", "jax.Array"),
        *("jax.sharding.NamedSharding", "jax.sharding.get_abstract_mesh", "jax.debug.print"),
    }
)
FIRST_OF_EVERY_JAX = (0, 7)
TREE_MAPS = frozenset({"jax.tree.map", "jax.tree_map", "jax.tree_multimap", "optree.tree_map"})
WITH_PATHS = frozenset({"jax.tree.map_with_path", "jax.tree_util.tree_map_with_path"})
TREE_LEAVES = frozenset({"jax.tree.leaves", "jax.tree_leaves", "jax.tree_util.tree_leaves"})
TREE_FLATTENS = frozenset({"jax.tree.flatten", "jax.tree_flatten", "jax.tree_util.tree_flatten"})
COLLECTIVES = frozenset(
    f"jax.lax.{name}"
    for name in ("psum", "pmean", "pmax", "pmin", "all_gather", "ppermute", "all_to_all")
)
# Functions in which all processes take part.
OF_ALL_PROCESSES = frozenset(
    f"jax.experimental.multihost_utils.{name}"
    for name in (
        *("sync_global_devices", "process_allgather", "broadcast_one_to_all", "assert_equal"),
        *("host_local_array_to_global_array",),
    )
)
FETCHES = frozenset(
    {
        *("numpy.asarray", "numpy.array", "jax.device_get", "float", "int", "numpy.save"),
        *("numpy.savez", "numpy.stack", "numpy.concatenate", "numpy.mean", "numpy.sum"),
    }
)
# Functions that return their first argument, and those that call it with the others.
ITSELF = "returns its argument"  # what functools.wraps(function) returns
RETURN_THE_FIRST = frozenset(
    {ITSELF, "staticmethod", "functools.update_wrapper", "functools.cache", "functools.lru_cache"}
)
# What makes a dictionary, or an object with the attributes that it is given by keyword.
MAKES_DICTIONARIES = frozenset(
    {
        *("dict", "collections.OrderedDict", "types.MappingProxyType", "types.SimpleNamespace"),
        *("argparse.Namespace", "flax.core.FrozenDict", "flax.core.freeze"),
        *("flax.core.frozen_dict.FrozenDict", "ml_collections.ConfigDict"),
    }
)
FIELDS = frozenset({"dataclasses.field", "flax.struct.field", "equinox.field"})
CALLS_THE_FIRST = frozenset({"asyncio.to_thread"})
# Methods of executors and event loops that call one of their arguments, and which.
CALLING_METHODS: Mapping[str, int] = {"submit": 0, "run_in_executor": 1}
OPTIONS_OF_PMAP = frozenset({"jax_pmap_shmap_merge"})
# Decorators by which a method is looked up as a property.
PROPERTIES = frozenset({"functools.cached_property", "abc.abstractproperty"})
PRINTS = frozenset({"print", "str", "repr", "format"})
ITERATES = frozenset(
    {
        *("list", "tuple", "enumerate", "zip", "iter", "sorted", "sum", "any", "all"),
        *("max", "min", "itertools.islice", "itertools.chain", "itertools.cycle", "tqdm.tqdm"),
        *("concurrent.futures.as_completed", "asyncio.as_completed"),
    }
)
KEEPS_ITERATING = frozenset({"enumerate", "zip", "iter"})
OF_ONE_ARGUMENT = frozenset({"max", "min"})  # iterate over an only argument, compare several
# Iterables of the same items.
SAME_ITEMS = frozenset(
    {
        *("itertools.islice", "itertools.cycle", "tqdm.tqdm", "tqdm.auto.tqdm", "iter"),
        *("reversed", "sorted", "list", "tuple", "concurrent.futures.as_completed"),
        "asyncio.as_completed",
    }
)
REDUCTIONS = frozenset(
    f"jax.numpy.{name}" for name in ("sum", "mean", "max", "min", "prod", "std", "var", "median")
)
REDUCING_METHODS = frozenset({"sum", "mean", "max", "min", "prod", "std", "var"})
# Methods and attributes that an array has and a tree of arrays has not.
OF_ARRAYS = frozenset(
    {
        *("shape", "dtype", "ndim", "size", "sharding", "at", "T", "mT", "addressable_shards"),
        *("global_shards", "nbytes", "aval", "weak_type", "is_fully_addressable", "committed"),
        *("is_fully_replicated", "device_buffer", "device_buffers", "itemsize", "real", "imag"),
        *REDUCING_METHODS,
        *("reshape", "ravel", "flatten", "squeeze", "astype", "item", "tolist", "copy", "view"),
        *("block_until_ready", "devices", "device", "addressable_data", "is_deleted", "delete"),
        *("copy_to_host_async", "transpose", "swapaxes", "argmax", "argmin", "all", "any", "round"),
        *(
            "clip",
            "conj",
            "cumprod",
            "argsort",
            "dot",
            "cumsum",
            "take",
            "sort",
            "repeat",
            "on_device_size_in_bytes",
            "is_ready",
        ),
    }
)
GET_ITEM = "__getitem__"
ADDS = frozenset(
    {"append", "appendleft", "put", "add", "insert", "extend"}
)  # methods by which a list or queue grows
TAKES = frozenset({"pop", "popleft", "get", "get_nowait"})  # and those that take one of its items
# Methods that trees of arrays have: of dictionaries, named tuples, dataclasses and train states.
OF_TREES = frozenset(
    {
        *("items", "values", "keys", "get", "pop", "copy_and"),
        *("replace", "_replace", "apply_gradients", "update", "unfreeze"),
    }
)
# What a deleted array still has, and what trees of arrays have.
IDENTITY = "is"  # `array is None` asks nothing of an array, not even whether it is deleted
OF_METADATA = frozenset(
    {
        *("shape", "dtype", "ndim", "size", "sharding", "aval", "nbytes", "weak_type", "delete"),
        *("is_deleted", "keys", "committed"),
    }
)
# Methods that return an array on the same devices, with a row for each as before.
KEEPING_METHODS = frozenset(
    {
        *("block_until_ready", "astype", "copy", "clone", "clip", "round", "conj", "squeeze"),
        *("transpose", "swapaxes", "cumsum", "cumprod", "argsort", "sort"),
        "result",  # of a future
    }
)
COUNTS = frozenset({"i", "j", "idx", "index", "ind", "row", "rank"})
# Functions and methods that take rows out of an array as an index or a slice does, which of the
# two, and where their axis is among the arguments.
TAKES_ROWS: Mapping[str, tuple[str, int]] = {
    "jax.numpy.take": ("take", 2),
    "jax.lax.index_in_dim": ("take", 2),
    "jax.lax.dynamic_index_in_dim": ("take", 2),
    "jax.lax.slice_in_dim": ("slice", 4),
    "jax.lax.dynamic_slice_in_dim": ("slice", 3),
    "take": ("take", 1),
}
RESHAPES = frozenset({"jax.numpy.reshape", "jax.numpy.ravel", "jax.numpy.split"})
RESHAPING_METHODS = frozenset({"reshape", "ravel", "flatten"})

# What is known of what a call returns, by a tag.
RETURNS: Mapping[str, str] = {
    "jax.random.key": "typed key",
    "jax.random.wrap_key_data": "typed key",
    "jax.random.PRNGKey": "raw key",
    "jax.process_index": "process index",
    "jax.host_id": "process index",
    "jax.devices": "all devices",
    "jax.local_devices": "local devices",
    "jax.device_count": "device count",
    "jax.local_device_count": "local device count",
    "jax.process_count": "process count",
    "numpy.random.rand": "host",
    "int": "integer",
    "len": "integer",
    "numpy.asarray": "host",
    "numpy.array": "host",
}
TEXTS_OF_STAGES = frozenset({"as_text", "compiler_ir"})  # methods that return the program
KEEPS_TAGS = frozenset(
    {
        *("jax.random.split", "jax.random.fold_in", "jax.block_until_ready", "jax.random.clone"),
        "slice",
    }
)
# What makes an array that spans processes, and what keeps rows on their devices.
MAKES_ARRAYS: Mapping[str, str] = {
    "flax.jax_utils.replicate": "replicate",
    "jax.device_put_replicated": "replicate",
    "jax.device_put_sharded": "replicate",
    "jax.make_array_from_process_local_data": "global",
    "jax.make_array_from_single_device_arrays": "global",
    "jax.make_array_from_callback": "global",
    "jax.experimental.multihost_utils.host_local_array_to_global_array": "global",
}
# Which argument is the shape of the array that a function makes, or the number of its rows.
SHAPES: Mapping[str, int] = {
    **{
        f"{module}.{name}": 0
        for module in ("numpy", "jax.numpy")
        for name in ("zeros", "ones", "empty", "full")
    },
    **{f"numpy.random.{name}": 0 for name in ("rand", "randn", "random", "standard_normal")},
    **{f"numpy.random.{name}": 2 for name in ("normal", "uniform", "randint")},
    **{f"{module}.broadcast_to": 1 for module in ("numpy", "jax.numpy")},
    **{f"jax.random.{name}": 1 for name in ("normal", "uniform", "split", "randint", "bits")},
    # Methods of a generator.
    "standard_normal": 0,
    "random": 0,
    "normal": 2,
    "uniform": 2,
    "integers": 2,
}
MAKE_CONSTANTS = frozenset(
    f"jax.numpy.{name}" for name in ("zeros", "ones", "full", "array", "zeros_like", "ones_like")
)
LEAVES_OF_JAX = ("jax.numpy.", "jax.nn.", "jax.random.", "jax.scipy.", "optax.losses.")
LEAVES = (*LEAVES_OF_JAX, "numpy.")
NOT_LEAVES = frozenset(
    {
        *("jax.numpy.split", "jax.numpy.unstack", "numpy.split", "jax.numpy.where"),
        *(f"jax.numpy.linalg.{name}" for name in ("eig", "eigh", "svd", "qr", "slogdet", "lstsq")),
        *(f"jax.numpy.{name}" for name in ("meshgrid", "broadcast_arrays", "divmod", "modf")),
        *(f"jax.numpy.{name}" for name in ("frexp", "gradient", "histogram", "array_split")),
    }
)


def is_alias(name: str) -> bool:
    """Return whether an object has several qualified names, of which this is one."""
    return name in _ONE_NAME or _is_target(name)


def _is_target(name: str) -> bool:
    """Return whether other names are made this one."""
    return name in _ONE_NAME.values() or any(name.startswith(new) for _, new in _MOVED)


def spellings(name: str) -> tuple[tuple[str, ...], ...]:
    """Return the words that a file contains if it uses a qualified name: all words of it, or the
    first and the last of any name that is made this one.
    """
    if _is_target(name):
        names = (name, *(old for old, new in _ONE_NAME.items() if new == name))
        parts = [one.split(".") for one in names]
        return tuple(dict.fromkeys((one[0], one[-1]) for one in parts))
    others = (
        f"{old}." + name.removeprefix(f"{new}.")
        for old, new in _ONE_NAME.items()
        if name.startswith(f"{new}.")
    )
    return tuple(tuple(one.split(".")) for one in (name, *others))


@functools.cache
def canonical(name: str) -> str:
    """Return the name by which rules know what a qualified name refers to."""
    for old, new in _MOVED:
        if name.startswith(old):
            name = new + name[len(old) :]
    return _ONE_NAME.get(name, name)
