"""Determine in which phase of a call an exception was raised, from its traceback's functions.

JAX has no public name for it, and its internals move; so a table names the functions of every
supported version that mark a phase, and the frames are recorded as evidence.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable

from conformance.spec.names import PHASES

# Of the arguments' phase, what hands arrays to the runtime, in several processes to others'.
HAND_OVER = (
    "host_local_array_to_global_array",
    "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
    "shard_args",
    "_shard_arg",
    "batched_device_put",
    "_different_device_order_reshard",
    "_reorder_shards",
)

# The innermost frame that is in the table decides; a function stands under one phase only.
MARKS: dict[str, tuple[str, ...]] = {
    "construct": ("_prepare_pmap", "_shared_code_pmap", "check_callable", "_cpp_pmap"),
    "arguments": (
        "infer_params",
        "_infer_params",
        "_mapped_axis_size",
        "_mapped_axis_size_new",
        "_get_in_axes_flat",
        "_get_mesh_devices",
        "_get_devices",
        "_prepare_pmap_call",
        "_check_arg",
        "check_arraylike",
        *HAND_OVER,
        "_check_if_any_auto_or_specs_match",
    ),
    "trace": (
        "trace_to_jaxpr",
        "trace_to_jaxpr_dynamic",
        "trace_to_jaxpr_nocache",
        "_create_pjit_jaxpr",
        "_trace_for_jit",
        "stage_parallel_callable",
        "process_shard_map",
        "_shard_map_staging",
        "process_map",
    ),
    "lower": (
        "lower_sharding_computation",
        "lower_mesh_computation",
        "lower_parallel_callable",
        "lower_jaxpr_to_module",
        "_get_and_check_device_assignment",
        "_resolve_in_shardings",
        "_resolve_and_lower",
        "_pjit_lower",
    ),
    "compile": (
        "backend_compile",
        "backend_compile_and_load",
        "compile_or_get_cached",
        "_cached_compilation",
        "from_hlo",
    ),
    "execute": (
        "execute_sharded",
        "execute_replicated",
        "block_until_ready",
        "consume_with_handlers",
        "global_array_to_host_local_array",
    ),
    "fetch": (
        "_value",
        "__array__",
        "_np_array",
        "device_get",
        "_device_get",
        "tolist",
        "__float__",
        "__int__",
        "__repr__",
        "__format__",
        "__str__",
    ),
}

# Below these, the fast path of a compiled program has no Python frames of its own.
_FAST_PATH = (
    "implementations.py:__call__",
    "pmap.py:wrapped",
    "traceback_util.py:reraise_with_filtered_traceback",
)

# The first new pmap called its program from a function that is called as one of shard_map's own,
# which is never reached straight from a probe's call: `api_boundary` stands between.
_FIRST_NEW_PMAP = ["implementations.py:__call__", "shard_map.py:wrapped"]

# The exception is raised here from another one that was raised while lowering.
_RERAISED_FROM_LOWERING = ("_python_pjit_helper", "_run_python_pjit")

_PHASE = {function: phase for phase, functions in MARKS.items() for function in functions}


def frames_of(error: BaseException, *, after: str) -> list[str]:
    """Return `file.py:function` of each frame, outermost first, below the file named `after`."""
    frames = [
        (frame.filename.replace("\\", "/").rsplit("/", 1)[-1], frame.name)
        for frame in traceback.extract_tb(error.__traceback__)
    ]
    last = max((i for i, (file, _) in enumerate(frames) if file == after), default=-1)
    return [f"{file}:{name}" for file, name in frames[last + 1 :]]


def phase_of(frames: Iterable[str]) -> str:
    """Return the phase that the innermost known frame (`file.py:function`) marks, else
    `unknown`.
    """
    frames = list(frames)
    if frames and (frames[-1] in _FAST_PATH or frames[-2:] == _FIRST_NEW_PMAP):
        return "execute"
    functions = [frame.rsplit(":", 1)[-1] for frame in frames]
    if functions and functions[-1] in _RERAISED_FROM_LOWERING:
        return "lower"
    for function in reversed(functions):
        if function in _PHASE:
            return _PHASE[function]
    return "unknown"


assert set(MARKS) | {"unknown"} == set(PHASES)
