"""The output of a foreign call, of which shard_map's types say whether it varies by device.

A foreign call is LAPACK's Cholesky factor of a diagonal matrix, so that what it gives of positive
numbers is these numbers. Its result is described by a shape and a dtype, which name no axis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.silences.checking import CHECKS, OPTION, Check, asked, varying
from conformance.spec.clause import devices
from conformance.spec.columns import Columns, everywhere, of_shard_map
from conformance.spec.expectation import returns, twice
from conformance.spec.family import family, table
from conformance.spec.names import SHARD_MAP
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

lax = jax.lax

CLAIM = "pmap-silence.foreign-code"
COUNT = 8  # devices
WIDTH = 3  # of a row
LEFT_OUT = "the body uses its own device's row only"
WEIGHTS = np.ones(WIDTH, np.float32)


def registered() -> None:
    """Let jaxlib register the target, which it does when it lowers a factorisation."""
    jax.jit(jnp.linalg.cholesky).lower(np.eye(WIDTH, dtype=np.float32))


def foreign(x: Any) -> Any:
    """The same positive numbers, by a foreign call."""
    matrix = jnp.diag(x**2)
    types = jax.ShapeDtypeStruct(matrix.shape, matrix.dtype), jax.ShapeDtypeStruct((), np.int32)
    call = jax.ffi.ffi_call("lapack_spotrf_ffi", types, input_output_aliases={0: 0})
    return jnp.diag(call(matrix, uplo=np.uint8(ord("L")))[0])


def varies(x: Any) -> bool:
    """Return whether a value is typed as one that varies by device."""
    kind = jax.typeof(x)
    named = kind.manual_axis_type.varying if hasattr(kind, "manual_axis_type") else kind.vma
    return "i" in named


def cast(x: Any) -> Any:
    """The same, typed as what varies by device."""
    result = foreign(x)
    return result if varies(result) else varying(result)


def scanned(call: Callable[[Any], Any], x: Any) -> Any:
    """Two calls in a scan, whose carry must keep its type."""
    return lax.scan(lambda carry, _: (call(carry), None), x, None, length=2)[0]


@dataclass(frozen=True, slots=True)
class Scan:
    """A scan of a foreign call, or the `remedy` that shard_map alone needs."""

    key: str
    text: str
    call: Callable[[Any], Any]
    remedy: bool = False


FORMS: Mapping[str, Scan] = table(
    Scan("scanned", "a scan of a foreign call", foreign),
    Scan("scanned-cast", "a scan of a foreign call whose output is cast to varying", cast, True),
)


def asked_unless_remedy(columns: Columns, check: Check, *, remedy: bool) -> Columns:
    """Of each implementation, a remedy of shard_map's check alone."""
    if remedy:
        return of_shard_map(columns[SHARD_MAP], OPTION)
    return asked(columns, check)


@described("the rows")
def rows(place: Place) -> Any:
    return place.all_rows(WIDTH)


@family(
    "silences.foreign-output.{form}.{check}",
    form=FORMS,
    check=CHECKS,
    only=lambda form, check: check.on or not form.remedy,
    claim=CLAIM,
    title=lambda form, check: f"A body with {form.text}{check.text}.",
    fact="silences.foreign-output.scanned",
    fixes=lambda form: "silences.foreign-output.scanned.checked" if form.remedy else None,
    needs=devices(COUNT),
    left_out=LEFT_OUT,
    expect=lambda form, check: asked_unless_remedy(
        everywhere(twice(returns(rows))), check, remedy=form.remedy
    ),
)
def scan(impl: Implementation, cluster: Cluster, form: Scan, check: Check) -> None:
    """A body that scans a foreign call."""
    registered()
    function = impl.map(lambda x: scanned(form.call, x), check_vma=check.on)
    cluster.twice(function, impl.given(cluster.rows(WIDTH)))


# --- Derivatives ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rule:
    """A product by a foreign `call`, and its derivative of the cotangent times the row."""

    key: str
    text: str
    call: Callable[[Any], Any]
    derivative: Callable[[Any], Any]
    remedy: bool = False


RULES: Mapping[str, Rule] = table(
    Rule("gradient", "foreign calls", foreign, foreign),
    Rule(
        "gradient-summed",
        "foreign calls, cast to varying, the derivative summed over the devices",
        cast,
        lambda x: lax.psum(cast(x), "i"),
        True,
    ),
)


@described("the sum of all rows")
def summed(place: Place) -> Any:
    return place.all_rows(WIDTH).sum(0)


@family(
    "silences.foreign-output.{rule}.{check}",
    rule=RULES,
    check=CHECKS,
    only=lambda rule, check: check.on or not rule.remedy,
    claim=CLAIM,
    title=lambda rule, check: (
        f"The gradient by unmapped weights through a map{check.text},"
        f" of a custom_vjp of {rule.text}."
    ),
    fact="silences.foreign-output.gradient",
    fixes=lambda rule: "silences.foreign-output.gradient.checked" if rule.remedy else None,
    needs=devices(COUNT),
    left_out="rewriting.gradients tests several processes",
    expect=lambda rule, check: asked_unless_remedy(
        everywhere(twice(returns(summed))), check, remedy=rule.remedy
    ),
)
def gradient(impl: Implementation, cluster: Cluster, rule: Rule, check: Check) -> None:
    """A gradient through a map, of a body whose function and derivative are foreign."""
    registered()
    product: Any = jax.custom_vjp(lambda w, x: rule.call(w * x))
    product.defvjp(
        lambda w, x: (rule.call(w * x), (w, x)),
        lambda kept, g: (rule.derivative(g * kept[1]), None),
    )
    function = impl.map(lambda w, x: product(w, x), in_axes=(None, 0), check_vma=check.on)
    mapped = impl.given(cluster.rows(WIDTH))
    cluster.twice(jax.grad(lambda w: function(w, mapped).sum()), WEIGHTS)
