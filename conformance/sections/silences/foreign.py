"""Code outside JAX in a body: kernels, FFI calls, custom rules, and host code that raises.

pmap's bodies accept all of it. shard_map types values that vary, and such code seldom declares
that; so each is tested with the check and without.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify, io_callback
from jax.experimental.custom_partitioning import custom_partitioning
from numpy.typing import NDArray

from conformance.sections.silences.checking import CHECKS, Check, asked
from conformance.spec.aspects import LOGS
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.emissions import log_record
from conformance.spec.expectation import OfEachStep, every, raises, returns, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.observation import Step
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

lax = jax.lax
Rows = NDArray[Any]
Body = Callable[[Any, Any], Any]

CLAIM = "pmap-silence.foreign-code"
COUNT = 8  # devices
WIDTH = 3  # of a row
LEFT_OUT = "the body uses its own device's row only"
HOST_ERROR = "the host refuses"
EQUINOX = ("equinox",)
WEIGHTS = np.array([2, 3, 5], np.float32)


@dataclass(frozen=True, slots=True)
class Code:
    """A body of the unmapped weights and a row; `model` is NumPy's result for all rows.

    `error` is the error of the call if the host code raises. A body that shard_map's types may
    refuse is tested without them too.
    """

    key: str
    text: str
    body: Callable[[], Body]
    model: Callable[[Rows], Any]
    error: Expectation | None = None
    requires: tuple[str, ...] = ()
    refused: bool = False

    def expected(self) -> Expectation:
        """The right values, or the host's error."""
        if self.error is not None:
            return self.error

        def model(place: Place) -> Any:
            return self.model(place.all_rows(WIDTH))

        return twice(returns(model, text=f"what NumPy gives for {self.text}"))


# --- Kernels and calls ----------------------------------------------------------------------------


def _add_itself(x: Any, out: Any) -> None:
    out[...] = x[...] + x[...]


def _typed_as(x: Any) -> Any:
    """The shape and dtype of a value, and on which axes it varies."""
    kind = jax.typeof(x)
    word = "manual_axis_type" if hasattr(kind, "manual_axis_type") else "vma"
    return jax.ShapeDtypeStruct(x.shape, x.dtype, **{word: getattr(kind, word)})


def _kernel(shape_of: Callable[[Any], Any]) -> Body:
    pallas = importlib.import_module("jax.experimental.pallas")
    return lambda _, x: pallas.pallas_call(_add_itself, out_shape=shape_of(x), interpret=True)(x)


def _untyped(x: Any) -> Any:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def _lapack() -> Body:
    """LAPACK's Cholesky factor of a diagonal matrix, by the FFI target that jaxlib registers."""
    jax.jit(jnp.linalg.cholesky).lower(np.eye(WIDTH, dtype=np.float32))  # which registers it

    def factor(_: Any, x: Any) -> Any:
        matrix = jnp.diag(x**2)
        call = jax.ffi.ffi_call(
            "lapack_spotrf_ffi",
            (_untyped(matrix), jax.ShapeDtypeStruct((), np.int32)),
            input_output_aliases={0: 0},
        )
        return jnp.diag(call(matrix, uplo=np.uint8(ord("L")))[0])

    return factor


def _partitioned() -> Body:
    """A function that says itself how it is partitioned, and doubles."""

    double: Any = custom_partitioning(lambda x: x * 2)
    double.def_partition(
        infer_sharding_from_operands=lambda mesh, operands, result: operands[0].sharding,
        partition=lambda mesh, operands, result: (
            mesh,
            lambda x: x * 2,
            operands[0].sharding,
            (operands[0].sharding,),
        ),
        sharding_rule="a -> a",
    )
    return lambda _, x: double(x)


# --- Custom derivatives ---------------------------------------------------------------------------


def _product(backward: Callable[[Any, Any], Any]) -> Any:
    """The product of weights and row, with this derivative of residuals and cotangent."""
    function: Any = jax.custom_vjp(lambda w, x: w @ x)
    function.defvjp(lambda w, x: (w @ x, (w, x)), backward)
    return function


def _own(residuals: Any, g: Any) -> Any:
    _, x = residuals
    return g * x, None


def _of_row(residuals: Any, g: Any) -> Any:
    w, _ = residuals
    return None, g * w


def _summed(residuals: Any, g: Any) -> Any:
    """The derivative by the weights summed over the devices, as shard_map's own rules do."""
    w, x = residuals
    return lax.psum(g * x, "i"), g * w


def _said(residuals: Any, g: Any) -> Any:
    """A constant in place of the row's derivative."""
    return None, jnp.full(WIDTH, 7, np.float32)


def _derived(backward: Callable[[Any, Any], Any], by: int) -> Callable[[], Body]:
    return lambda: jax.grad(_product(backward), by)


# --- Host code ------------------------------------------------------------------------------------


FAILED = log_record(r"jax\._src\.callback", "ERROR", r"^jax\.(pure|io)_callback failed")


def _failure_logged(place: Place, step: Step) -> tuple[bool, str]:
    count = sum(FAILED.agrees(one) for one in step.logs)
    return 0 < count <= COUNT, f"{count} such records"


def _raised(text: str) -> Expectation:
    """The host's error, and JAX's log record of it, in both calls."""
    error = raises("RuntimeError", f"CpuCallback error calling callback: .*{text}", phase="execute")
    logged = OfEachStep(
        "JAX logs that the callback failed, at most once of each device",
        _failure_logged,
        claims=frozenset({LOGS}),
        emits=(FAILED,),
    )
    return twice(every(error, logged))


RAISED = _raised(f"ValueError: {HOST_ERROR}")
SHAPE = jax.ShapeDtypeStruct((WIDTH,), np.float32)


def _refuse(value: Any) -> Any:
    raise ValueError(HOST_ERROR)


def _refuse_first(value: Any) -> Any:
    return _refuse(value) if value[0] == 1 else value


def _checked() -> Body:
    """A doubling with a check that holds, whose error is left aside."""

    def positive(x: Any) -> Any:
        checkify.check(x.sum() > 0, "not positive")
        return x * 2

    return lambda _, x: checkify.checkify(positive)(x)[1]


# --- Equinox --------------------------------------------------------------------------------------


def _equinox(name: str) -> Any:
    return getattr(importlib.import_module("equinox"), name)


def _error_if(condition: Callable[[Any], Any]) -> Callable[[], Body]:
    return lambda: lambda _, x: _equinox("error_if")(x, condition(x), HOST_ERROR)


CODES: Mapping[str, Code] = table(
    Code(
        "pallas",
        "a Pallas kernel, interpreted",
        lambda: _kernel(_untyped),
        lambda a: a * 2,
        refused=True,
    ),
    Code(
        "pallas-typed",
        "a Pallas kernel, interpreted, whose output has its input's type",
        lambda: _kernel(_typed_as),
        lambda a: a * 2,
    ),
    Code("ffi", "`jax.ffi.ffi_call` of LAPACK", _lapack, lambda a: a),
    Code("custom-partitioning", "custom_partitioning", _partitioned, lambda a: a * 2),
    Code(
        "custom-vjp-of-row",
        "a custom_vjp, differentiated with respect to a row",
        _derived(_of_row, 1),
        lambda a: np.broadcast_to(WEIGHTS, a.shape),
    ),
    Code(
        "custom-vjp-of-weights",
        "a custom_vjp with a varying residual, differentiated with respect to unmapped weights",
        _derived(_own, 0),
        lambda a: a,
        refused=True,
    ),
    Code(
        "custom-vjp-of-weights-summed",
        "a custom_vjp with a psum in its rule, differentiated with respect to unmapped weights",
        _derived(_summed, 0),
        lambda a: np.broadcast_to(a.sum(0), a.shape),
    ),
    Code(
        "custom-vjp-constant",
        "a custom_vjp with a constant gradient, differentiated with respect to a row",
        _derived(_said, 1),
        lambda a: np.full_like(a, 7),
        refused=True,
    ),
    Code(
        "pure-callback-raises",
        "a pure_callback that raises",
        lambda: lambda _, x: jax.pure_callback(_refuse, SHAPE, x),
        lambda a: a,
        RAISED,
    ),
    Code(
        "pure-callback-raises-once",
        "a pure_callback that raises on one device",
        lambda: lambda _, x: jax.pure_callback(_refuse_first, SHAPE, x),
        lambda a: a,
        RAISED,
    ),
    Code(
        "io-callback-raises",
        "an io_callback that raises",
        lambda: lambda _, x: io_callback(_refuse, SHAPE, x),
        lambda a: a,
        RAISED,
    ),
    Code("checkify", "`checkify.check` that holds", _checked, lambda a: a * 2),
    Code(
        "error-if",
        "`equinox.error_if` without an error",
        _error_if(lambda x: x.sum() < 0),
        lambda a: a,
        requires=EQUINOX,
        refused=True,
    ),
    Code(
        "error-if-raises",
        "`equinox.error_if` with an error",
        _error_if(lambda x: x.sum() > 0),
        lambda a: a,
        _raised(HOST_ERROR),
        requires=EQUINOX,
    ),
)


@family(
    "silences.foreign.{code}.{check}",
    code=CODES,
    check=CHECKS,
    only=lambda code, check: check.on or code.refused,
    claim=CLAIM,
    title=lambda code, check: f"A body with {code.text}{check.text}.",
    fact="silences.foreign.{code}",
    needs=devices(COUNT),
    left_out=LEFT_OUT,
    expect=lambda code, check: asked(everywhere(code.expected()), check),
)
def foreign(impl: Implementation, cluster: Cluster, code: Code, check: Check) -> None:
    """A body that calls what is not JAX's own."""
    function = impl.map(code.body(), in_axes=(None, 0), check_vma=check.on)
    cluster.twice(function, WEIGHTS, impl.given(cluster.rows(WIDTH)))
