"""Mistakes in a call of `jax.shard_map` that rewrites a pmap: the errors, and what is accepted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax import shard_map
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from conformance.sections.silences.answers import (
    CONTROLLED,
    ONE_PROCESS_ALONE,
    WIDTH,
    control,
    doubled,
)
from conformance.spec.clause import devices
from conformance.spec.columns import of_shard_map
from conformance.spec.comparing import Model
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import TWICE, every, in_steps, raises, returns
from conformance.spec.family import table
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.bodies import add, double
from conformance.worker.protocols import Cluster, Implementation

ROWS = P("i")
DEFAULTS = Defaults(
    claim="pmap-silence.shard-map-calls", needs=devices(2), left_out=ONE_PROCESS_ALONE
)
A_PMAP = "these are arguments of jax.shard_map"


@dataclass(frozen=True, slots=True)
class Refused:
    """A wrong call over a mesh of rows, and its error."""

    key: str
    text: str
    call: Callable[[Any, Mesh, Any], Any]  # of jax.shard_map, which takes anything here
    error: type[Exception]
    message: str
    cause: str = ""


REFUSED: Mapping[str, Refused] = table(
    Refused(
        "positional",
        "mesh and specs by position",
        lambda map, mesh, x: map(double(), mesh, ROWS, ROWS)(x),
        TypeError,
        r"^shard_map\(\) takes from 0 to 1 positional arguments but 4 were given$",
        cause="shard-map-takes-keywords-only",
    ),
    Refused(
        "check-rep",
        "check_rep=, as jax.experimental.shard_map has",
        lambda map, mesh, x: map(
            double(), mesh=mesh, in_specs=ROWS, out_specs=ROWS, check_rep=False
        )(x),
        TypeError,
        r"^shard_map\(\) got an unexpected keyword argument 'check_rep'",
        cause="shard-map-takes-keywords-only",
    ),
    Refused(
        "string-specs",
        "axis names in place of specs",
        lambda map, mesh, x: map(double(), mesh=mesh, in_specs="i", out_specs="i")(x),
        TypeError,
        r"^shard_map in_specs argument must be a pytree of `jax\.sharding\.PartitionSpec`",
    ),
    Refused(
        "axes-for-specs",
        "in_axes' numbers in place of specs",
        lambda map, mesh, x: map(double(), mesh=mesh, in_specs=0, out_specs=0)(x),
        TypeError,
        r"^shard_map in_specs argument must be a pytree of `jax\.sharding\.PartitionSpec`",
    ),
    Refused(
        "no-in-specs",
        "a mesh of Auto axes and no in_specs",
        lambda map, mesh, x: map(double(), mesh=mesh, out_specs=ROWS)(x),
        TypeError,
        r"^shard_map in_specs argument must be a pytree of `jax\.sharding\.PartitionSpec`",
    ),
    Refused(
        "list-of-specs",
        "a list of in_specs",
        lambda map, mesh, x: map(add(), mesh=mesh, in_specs=[ROWS, ROWS], out_specs=ROWS)(x, x),
        ValueError,
        r"^pytree structure error: different types at key path\s+shard_map in_specs",
    ),
    Refused(
        "tuple-of-out-specs",
        "a tuple of out_specs for one array",
        lambda map, mesh, x: map(double(), mesh=mesh, in_specs=ROWS, out_specs=(ROWS,))(x),
        ValueError,
        r"^pytree structure error: different types at key path\s+shard_map out_specs",
    ),
    Refused(
        "fewer-specs",
        "one of two in_specs",
        lambda map, mesh, x: map(add(), mesh=mesh, in_specs=(ROWS,), out_specs=ROWS)(x, x),
        ValueError,
        r"^pytree structure error: different lengths of tuple at key path\s+shard_map in_specs",
    ),
    Refused(
        "more-specs",
        "two in_specs for one argument",
        lambda map, mesh, x: map(double(), mesh=mesh, in_specs=(ROWS, P()), out_specs=ROWS)(x),
        ValueError,
        r"^pytree structure error: different lengths of tuple at key path\s+shard_map in_specs",
    ),
    Refused(
        "devices-for-mesh",
        "a list of devices as mesh",
        lambda map, mesh, x: map(double(), mesh=list(mesh.devices), in_specs=ROWS, out_specs=ROWS)(
            x
        ),
        TypeError,
        r"^shard_map requires a `jax\.sharding\.Mesh` or a `jax\.sharding\.AbstractMesh`",
    ),
    Refused(
        "axis-names-string",
        "axis_names= as a string",
        lambda map, mesh, x: map(
            double(), mesh=mesh, in_specs=ROWS, out_specs=ROWS, axis_names="i"
        )(x),
        TypeError,
        r"^`axis_names` argument of shard_map should be of type `frozenset` or `set`",
    ),
    Refused(
        "axis-names-list",
        "axis_names= as a list",
        lambda map, mesh, x: map(
            double(), mesh=mesh, in_specs=ROWS, out_specs=ROWS, axis_names=["i"]
        )(x),
        TypeError,
        r"^`axis_names` argument of shard_map should be of type `frozenset` or `set`",
    ),
    Refused(
        "scalar-mapped",
        "P('i') for a number",
        lambda map, mesh, x: map(
            lambda x, y: x * y, mesh=mesh, in_specs=(ROWS, ROWS), out_specs=ROWS
        )(x, 2.0),
        ValueError,
        r"^shard_map applied to the function '<lambda>' was given an in_specs entry which is too "
        r"long to be compatible with the corresponding input value",
    ),
    Refused(
        "scalar-returned",
        "P('i') for a number that the body returns",
        lambda map, mesh, x: map(lambda x: x.sum(), mesh=mesh, in_specs=ROWS, out_specs=ROWS)(x),
        ValueError,
        r"^shard_map applied to the function '<lambda>' was given an out_specs entry which is too "
        r"long to be compatible with the corresponding output value",
    ),
    Refused(
        "string-argument",
        "a string as argument",
        lambda map, mesh, x: map(
            lambda x, mode: x * 2, mesh=mesh, in_specs=(ROWS, P()), out_specs=ROWS
        )(x, "train"),
        TypeError,
        r"^(Argument 'train' of type <class 'str'> is not a valid JAX type|"
        r"Error interpreting argument)",
    ),
)


@DEFAULTS.family(
    "silences.shard-map-calls.{case}",
    case=REFUSED,
    title="A call of jax.shard_map with {case.text} is refused.",
    fact="silences.shard-map-calls",
    cause=lambda case: case.cause,
    expect=lambda case: of_shard_map(
        every(CONTROLLED, in_steps(raises(case.error, case.message), *TWICE)), A_PMAP
    ),
)
def refused(impl: Implementation, cluster: Cluster, case: Refused) -> None:
    """A wrong call of `jax.shard_map`."""
    control(impl, cluster)
    cluster.twice(case.call, shard_map, impl.mesh(), cluster.rows(WIDTH))


# --- accepted -------------------------------------------------------------------------------------


@described("each device's copy of all rows, doubled, one below the other")
def copies(place: Place) -> Any:
    return np.concatenate([place.rows(WIDTH) * 2] * place.topology.devices_per_process)


@dataclass(frozen=True, slots=True)
class Accepted:
    """A call that is accepted, and the NumPy model of its result."""

    key: str
    text: str
    call: Callable[[Any, Mesh, Any], Any]
    model: Model
    cause: str = ""


ACCEPTED: Mapping[str, Accepted] = table(
    Accepted(
        "keywords",
        "mesh and specs by keyword",
        lambda map, mesh, x: map(double(), mesh=mesh, in_specs=ROWS, out_specs=ROWS)(x),
        doubled,
    ),
    Accepted(
        "none-for-specs",
        "in_specs=None, which stands for P(): no row is split off",
        lambda map, mesh, x: map(double(), mesh=mesh, in_specs=None, out_specs=ROWS)(x),
        copies,
        cause="in-specs-none-is-p",
    ),
    Accepted(
        "none-for-one",
        "None in in_specs, which stands for P(), as in_axes has it",
        lambda map, mesh, x: map(
            lambda x, y: x * y, mesh=mesh, in_specs=(ROWS, None), out_specs=ROWS
        )(x, 2.0),
        doubled,
    ),
    Accepted(
        "one-spec-for-all",
        "one spec for two arguments",
        lambda map, mesh, x: map(add(), mesh=mesh, in_specs=ROWS, out_specs=ROWS)(x, x),
        doubled,
    ),
    Accepted(
        "default-argument",
        "a body whose default is not passed",
        lambda map, mesh, x: map(
            lambda x, factor=2: x * factor, mesh=mesh, in_specs=(ROWS,), out_specs=ROWS
        )(x),
        doubled,
    ),
    Accepted(
        "decorator",
        "all arguments but the function, as a decorator",
        lambda map, mesh, x: map(mesh=mesh, in_specs=ROWS, out_specs=ROWS)(double())(x),
        doubled,
    ),
)


@DEFAULTS.family(
    "silences.shard-map-calls.accepted.{case}",
    case=ACCEPTED,
    title="A call of jax.shard_map with {case.text}.",
    fact="silences.shard-map-calls.accepted.{case}",
    cause=lambda case: case.cause,
    expect=lambda case: of_shard_map(
        every(CONTROLLED, in_steps(returns(case.model), *TWICE)), A_PMAP
    ),
)
def accepted(impl: Implementation, cluster: Cluster, case: Accepted) -> None:
    """A call of `jax.shard_map` that is accepted."""
    control(impl, cluster)
    cluster.twice(case.call, shard_map, impl.mesh(), cluster.rows(WIDTH))
