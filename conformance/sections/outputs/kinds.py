"""The table of what users hand to `x[0]`, to flax's `unreplicate` and to the document's remedy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax

from conformance.sections.outputs import (
    ON_ONE_DEVICE,
    WIDTH,
    doubled_rows,
    first_of_all,
    first_own,
)
from conformance.sections.outputs.handed_over import (
    all_placed,
    copies,
    first_block,
    first_elements,
    first_key,
    first_key_of_all,
    first_leaves,
    first_leaves_of_all,
    first_of_blocks,
    first_of_half,
    first_of_sum,
    first_placed,
    first_raw_key,
    first_raw_key_of_all,
    of_half,
    of_one_device,
    raw_keys,
    second_own,
    second_own_alone,
    sum_of_all,
    two_leaves,
    two_rows,
    typed_keys,
)
from conformance.spec.arrays import returns_array
from conformance.spec.codes import Code, Problem
from conformance.spec.columns import Columns, everywhere
from conformance.spec.combining import of_result
from conformance.spec.comparing import Model
from conformance.spec.expectation import OfEachStep, raises, returns, sharded
from conformance.spec.family import table
from conformance.spec.names import IMPLEMENTATIONS, JAX, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.observation import Step
from conformance.spec.topology import ONE_AND_TWO, ONE_PROCESS, Place
from conformance.worker.bodies import double, psum, summed
from conformance.worker.protocols import Cluster, Implementation

# --- Shardings of the first row -------------------------------------------------------------------


def _replicated_over(text: str, count: Callable[[Place], int]) -> OfEachStep:
    return sharded(
        f"fully replicated over {text}",
        lambda place, s: (
            s["type"] == "NamedSharding"
            and not any(s["spec"])
            and len(s["devices"]) == count(place)
        ),
    )


REPLICATED_HERE = _replicated_over(
    "this process's devices", lambda place: place.topology.devices_per_process
)
REPLICATED = _replicated_over("all devices", lambda place: place.topology.devices)
BY_COLUMNS = sharded(
    "sharded as before, along what was the second dimension",
    lambda place, s: s.get("spec") == ["i"],
)


def lying(values: OfEachStep, where: OfEachStep) -> OfEachStep:
    """Expect `values` of one step, with the sharding `where`; both are reported together."""

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        right, saw = values.check_step(place, step)
        lies, at = where.check_step(place, step)
        told = f"{'the right values' if right else saw}; on {at}"
        if right:
            return lies, Problem(told, Code.SHARDING)
        return False, saw.framed(after=f"; on {at}") if isinstance(saw, Problem) else told

    return of_result(f"{values.text}; {where.text}", check_step)


# A map over one device has it in a NamedSharding, which from 0.12 on its shards keep.
ONE_DEVICE_HOWEVER = sharded("on one device", lambda place, s: len(s["devices"]) == 1)

WHOLE_EACH = {NEW_PMAP: REPLICATED_HERE, SHARD_MAP: REPLICATED}
ONE_ROW_EACH = {LEGACY_PMAP: ON_ONE_DEVICE} | WHOLE_EACH
COLUMN_EACH = {NEW_PMAP: BY_COLUMNS, SHARD_MAP: BY_COLUMNS}


ALL_OF_IT = "all of it"
OWN_FIRST = "the first of this process's own"


@dataclass(frozen=True, slots=True)
class Kind:
    """An object that is indexed, NumPy's `x[0]` of it, and the documented sharding of the result.

    `model` is None if there is no `x[0]`. `whole` is the model of the object itself. Objects that
    are no output have JAX's own column. Kinds of one `fact` vary one finding.
    """

    key: str
    text: str
    made: Callable[[Implementation, Cluster], Any]
    model: Model | None
    fact: str
    lies: Mapping[str, OfEachStep] = field(default_factory=dict)
    shard_map_model: Model | None = None
    whole: Model | None = None
    mapped: bool = True
    topologies: tuple[str, ...] = ONE_AND_TWO

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns in which the kind is tested."""
        return IMPLEMENTATIONS if self.mapped else (JAX,)

    @property
    def left_out(self) -> str:
        """Return why the kind is tested in one process only, if it is."""
        if self.topologies == ONE_AND_TWO:
            return ""
        return "the array is on this process's devices only"

    def values(self, name: str) -> OfEachStep:
        """NumPy's `x[0]`, and by name what it might be taken for."""
        model = self.model
        if model is None:
            raise ValueError(f"there is no x[0] of {self.text}")
        mistakes = {} if self.whole is None else {ALL_OF_IT: self.whole}
        if name == SHARD_MAP and self.shard_map_model is not None:
            mistakes[OWN_FIRST] = model
            model = self.shard_map_model
        if self.key == "numpy":
            return returns(model, mistakes=mistakes)
        return returns_array(model, mistakes=mistakes)

    def expected(self) -> Columns:
        """The values, lying as they should; IndexError where there is no `x[0]`."""
        if self.model is None:
            indices = (
                "^Too many indices: (array is 0-dimensional, but 1 |0-dimensional array .* 1 )"
            )
            return everywhere(raises(IndexError, indices, otherwise=sum_of_all))
        return {
            name: lying(self.values(name), self.lies[name])
            if name in self.lies
            else self.values(name)
            for name in self.columns
        }

    def on_one_device(self) -> Columns:
        """Expect the result of the document's fix for `x[0]`: the same values, on one device."""
        if self.model is None:
            dimension = "axis 0 is out of bounds for array of dimension 0"
            return everywhere(raises(ValueError, dimension, otherwise=sum_of_all))
        return {name: lying(self.values(name), ONE_DEVICE_HOWEVER) for name in self.columns}


KINDS: Mapping[str, Kind] = table(
    Kind(
        "rows",
        "a mapped function's output",
        doubled_rows,
        first_own,
        "stack",
        lies=ONE_ROW_EACH,
        shard_map_model=first_of_all,
    ),
    Kind(
        "copies",
        "a mapped function's output with equal rows",
        copies,
        summed(WIDTH),
        "stack",
        lies=ONE_ROW_EACH,
    ),
    Kind(
        "tree",
        "a mapped function's output with two leaves",
        two_leaves,
        first_leaves,
        "stack",
        lies=ONE_ROW_EACH,
        shard_map_model=first_leaves_of_all,
    ),
    Kind(
        "subset",
        "the output of a mapped function over half of the devices",
        of_half,
        first_of_half,
        "stack",
        topologies=ONE_PROCESS,
    ),
    Kind(
        "one-device",
        "the output of a mapped function over one device",
        of_one_device,
        second_own,
        "one-device",
        whole=second_own_alone,
        topologies=ONE_PROCESS,
    ),
    Kind(
        "out-axes-1",
        "a mapped function's output with out_axes=1",
        lambda impl, cluster: impl.map(double(), out_axes=1)(impl.given(cluster.rows(WIDTH))),
        first_elements,
        "out-axes-1",
        lies=COLUMN_EACH,
    ),
    Kind(
        "out-axes-none",
        "a mapped function's output with out_axes=None",
        lambda impl, cluster: impl.map(psum(), out_axes=None)(impl.given(cluster.rows(WIDTH))),
        first_of_sum,
        "replicated",
        lies=WHOLE_EACH,
        whole=summed(WIDTH),
    ),
    Kind(
        "two-rows",
        "a mapped function's output with two rows per device",
        two_rows,
        first_block,
        "two-rows",
        shard_map_model=first_of_blocks,
    ),
    Kind(
        "replicated",
        "an array replicated by device_put",
        lambda impl, cluster: jax.device_put(cluster.rows(WIDTH), impl.sharding(axis=None)),
        first_placed,
        "replicated",
        lies={JAX: REPLICATED_HERE},
        whole=all_placed,
        mapped=False,
        topologies=ONE_PROCESS,
    ),
    Kind(
        "single-device",
        "an array on one device",
        lambda impl, cluster: jax.device_put(cluster.rows(WIDTH), cluster.local_devices[1]),
        first_placed,
        "never-mapped",
        lies={JAX: ON_ONE_DEVICE},
        whole=all_placed,
        mapped=False,
        topologies=ONE_PROCESS,
    ),
    Kind(
        "numpy",
        "a NumPy array",
        lambda impl, cluster: cluster.rows(WIDTH),
        first_placed,
        "never-mapped",
        whole=all_placed,
        mapped=False,
        topologies=ONE_PROCESS,
    ),
    Kind(
        "number",  # a loss averaged by the mapped function
        "one number, replicated",
        lambda impl, cluster: impl.map(psum(), out_axes=None)(impl.given(cluster.rows())),
        None,
        "number",
    ),
    Kind(
        "keys",
        "typed PRNG keys, one per device",
        typed_keys,
        first_key,
        "keys",
        shard_map_model=first_key_of_all,
    ),
    Kind(
        "raw-keys",
        "raw PRNG keys, one per device",
        raw_keys,
        first_raw_key,
        "keys",
        shard_map_model=first_raw_key_of_all,
    ),
)
