"""Loops and branches of a body that mix what varies by device with what is equal on all.

pmap's types know no difference. shard_map's do, and a loop's carry, as the results of two branches,
must be of one type: it refuses what changes on the way, and names the remedy. So the program is
asked as it is written for pmap, with the remedy, and under check_vma=False.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from conformance.sections.silences.checking import CHECKED, CHECKS, Check, asked, varying
from conformance.spec.clause import devices
from conformance.spec.columns import Columns, everywhere
from conformance.spec.expectation import raises, returns, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.names import SHARD_MAP
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

lax = jax.lax
Rows = NDArray[Any]
Cast = Callable[[Any], Any]

CLAIM = "pmap-silence.varying-and-equal-values"
COUNT = 8  # devices
LEFT_OUT = "the result does not depend on the number of processes"
ZERO = np.float32(0)


def of_carry(where: str) -> str:
    """The text that names the types, and the cast that the value called so needs."""
    return (
        r"^scan body function carry input and carry output must have equal types, but they "
        r"differ:.*"
        rf"{NO_MATCH}.*{CAST} to the {where}"
    )


def of_branches(kind: str, which: str) -> str:
    """The text that names the types, and the cast that this branch's result needs."""
    return (
        rf"^{kind} branches must have equal output types but they differ\..*"
        rf"{NO_MATCH}.*{CAST} to the output of {which}\b"
    )


NO_MATCH = "so the (varying manual axes|manual axis types) do not match"
CAST = (
    r"This might be fixed by applying `jax\.lax\."
    r"(pvary\(\.\.\., \('i',\)\)|pcast\(\.\.\., \('i',\), to='varying'\))`,?"
)
INITIAL = "initial carry value"


@dataclass(frozen=True, slots=True)
class Mix:
    """A body of a number; `model` makes of all devices' numbers what each has.

    `body` is given what casts a value to varying, or leaves it be.
    """

    key: str
    text: str
    body: Callable[[Any, Cast], Any]
    model: Callable[[Rows], Any]
    refused: str = ""

    def right(self) -> Expectation:
        """Expect what each device computes by itself."""

        def model(place: Place) -> Any:
            return self.model(place.all_rows())

        return twice(returns(model, text=f"what NumPy gives for {self.text}"))

    def as_written(self, check: Check) -> Columns:
        """The right values, but where shard_map's types refuse it."""
        columns = everywhere(self.right())
        if self.refused and check.on:
            columns[SHARD_MAP] = twice(raises(TypeError, self.refused, phase="trace"))
        return asked(columns, check)


def while_below(a: Rows, limit: Callable[[Rows], Rows], step: Callable[[Rows], Rows]) -> Rows:
    """Each number, stepped while it is below its limit."""
    value = np.zeros_like(a)
    while (value < limit(a)).any():
        value = np.where(value < limit(a), value + step(a), value)
    return value


def total(a: Rows) -> Rows:
    """The sum, on each device."""
    return np.full_like(a, a.sum())


# Refused by shard_map's types, and accepted with a cast to varying.
REFUSED: Mapping[str, Mix] = table(
    Mix(
        "scan-from-equal",
        "a scan that adds the device's number to a zero",
        lambda x, cast: lax.scan(lambda a, _: (a + x, None), cast(jnp.float32(0)), length=3)[0],
        lambda a: a * 3,
        of_carry(INITIAL),
    ),
    Mix(
        "scan-to-equal",
        "a scan that replaces the device's number by a psum",
        lambda x, cast: lax.scan(lambda a, _: (cast(lax.psum(a, "i")), None), x, length=2)[0],
        lambda a: total(a) * COUNT,
        of_carry("output carry"),
    ),
    Mix(
        "scan-tree",
        "a scan with a carry whose one leaf becomes varying",
        lambda x, cast: lax.scan(
            lambda a, _: ({"sum": a["sum"] + x, "steps": a["steps"] + 1}, None),
            {"sum": cast(jnp.float32(0)), "steps": jnp.int32(0)},
            length=3,
        )[0],
        lambda a: {"steps": np.full(COUNT, 3, np.int32), "sum": a * 3},
        of_carry(INITIAL),
    ),
    Mix(
        "fori",
        "a fori_loop that adds the device's number to a zero",
        lambda x, cast: lax.fori_loop(0, 3, lambda _, a: a + x, cast(jnp.float32(0))),
        lambda a: a * 3,
        of_carry(INITIAL),
    ),
    Mix(
        "while-from-equal",
        "a while_loop that adds the device's number to a zero up to ten",
        lambda x, cast: lax.while_loop(lambda a: a < 10, lambda a: a + x, cast(jnp.float32(0))),
        lambda a: while_below(a, lambda a: np.full_like(a, 10), lambda a: a),
        of_carry(INITIAL).replace("scan body", "while_loop body"),
    ),
    Mix(
        "cond-branch",
        "a cond with a constant in one branch",
        lambda x, cast: lax.cond(x > 3, lambda y: y, lambda y: cast(jnp.float32(0)), x),
        lambda a: np.where(a > 3, a, ZERO),
        of_branches("cond", "false_fun"),
    ),
    Mix(
        "cond-psum",
        "a cond with the same condition on all devices and a psum in one branch",
        lambda x, cast: lax.cond(
            lax.psum(x, "i") > 3, lambda y: cast(lax.psum(y, "i")), lambda y: y, x
        ),
        total,
        of_branches("cond", "true_fun"),
    ),
    Mix(
        "switch",
        "a switch with a constant in the last branch",
        lambda x, cast: lax.switch(
            lax.axis_index("i") % 3,
            [lambda y: y, lambda y: y * 10, lambda y: cast(jnp.float32(-1))],
            x,
        ),
        lambda a: np.choose(np.arange(COUNT) % 3, [a, a * 10, np.full_like(a, -1)]),
        of_branches("switch", "branch2"),
    ),
)

# Mixtures that are accepted unchanged.
TAKEN: Mapping[str, Mix] = table(
    Mix(
        "scan-outputs",
        "a scan whose outputs vary but not its carry",
        lambda x, _: lax.scan(lambda a, y: (a + 1, y * x), jnp.float32(0), jnp.arange(3.0)),
        lambda a: (np.full_like(a, 3), a[:, None] * np.arange(3, dtype=np.float32)),
    ),
    Mix(
        "while-condition",
        "a while_loop whose condition varies but not its carry",
        lambda x, _: lax.while_loop(lambda a: a < x, lambda a: a + 1, jnp.float32(0)),
        lambda a: a,
    ),
    Mix(
        "while-psum-condition",
        "a while_loop on all devices until their psum is large",
        lambda x, _: lax.while_loop(lambda a: lax.psum(a, "i") < 90, lambda a: a + x, x),
        lambda a: a * 3,
    ),
    Mix(
        "cond-equal-branches",
        "a cond whose condition varies but not its branches",
        lambda x, _: lax.cond(x > 3, lambda: jnp.float32(1), lambda: jnp.float32(0)),
        lambda a: (a > 3).astype(np.float32),
    ),
    Mix(
        "where",
        "a where of the device's number and a constant",
        lambda x, _: jnp.where(x > 3, x, 0.0),
        lambda a: np.where(a > 3, a, ZERO),
    ),
    Mix(
        "scan-psum-inside",
        "a scan that adds a psum of the carry",
        lambda x, _: lax.scan(lambda a, _: (a + lax.psum(a, "i"), None), x, length=2)[0],
        lambda a: a + total(a) + total(a + total(a)),
    ),
    Mix(
        "map",
        "a lax.map over equal numbers, times the device's",
        lambda x, _: lax.map(lambda y: y * x, jnp.arange(3.0)),
        lambda a: a[:, None] * np.arange(3, dtype=np.float32),
    ),
)


def as_it_is(x: Any) -> Any:
    """No cast, as in a program written for pmap."""
    return x


@family(
    "silences.varying.{mix}.{check}",
    mix={**REFUSED, **TAKEN},
    check=CHECKS,
    claim=CLAIM,
    title=lambda mix, check: (
        f"{mix.text[0].upper()}{mix.text[1:]}{check.text}"
        + (
            " is refused by shard_map, whose error names the fix."
            if mix.refused and check.on
            else "."
        )
    ),
    fact=lambda mix: f"silences.varying.{'refused' if mix.refused else 'taken'}",
    cause=lambda mix, check: "loops-and-branches-of-one-type" if mix.refused and check.on else "",
    needs=devices(COUNT),
    left_out=LEFT_OUT,
    expect=lambda mix, check: mix.as_written(check),
)
def mixed(impl: Implementation, cluster: Cluster, mix: Mix, check: Check) -> None:
    """A loop or a branch as it is written for pmap."""
    function = impl.map(lambda x: mix.body(x, as_it_is), check_vma=check.on)
    cluster.twice(function, impl.given(cluster.rows()))


@family(
    "silences.varying.{mix}.cast",
    mix=REFUSED,
    claim=CLAIM,
    title="With the equal value cast to varying, {mix.text} works under all implementations.",
    fact="silences.varying.remedy",
    fixes="silences.varying.{mix}.checked",
    needs=devices(COUNT),
    left_out=LEFT_OUT,
    expect=lambda mix: everywhere(mix.right()),
)
def cast(impl: Implementation, cluster: Cluster, mix: Mix) -> None:
    """The same with JAX's remedy."""
    function = impl.map(lambda x: mix.body(x, varying), check_vma=CHECKED.on)
    cluster.twice(function, impl.given(cluster.rows()))
