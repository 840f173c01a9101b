"""Jobs whose processes compute different things at the same time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.sections.multi_controller.fates import (
    BEGIN,
    COMPUTE,
    DEADLINE_S,
    OF_A_JOB,
    SHORT_S,
    hung,
    prints_lines,
    run,
)
from conformance.spec.columns import of_jax
from conformance.spec.expectation import every
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.worker.protocols import Cluster, Implementation


@dataclass(frozen=True, slots=True)
class Apart:
    """Two computations, one for each process: `program` after a common start."""

    key: str
    title: str
    claim: str
    program: str
    expected: Expectation


APART: Mapping[str, Apart] = table(
    Apart(
        "other-operation",
        "One process sums where the other takes the maximum: both hang.",
        "multi-process.different-order-hangs",
        """
function = total if number == 0 else jax.jit(lambda x: x.max())
attempt("got", lambda: function(x))
attempt("sum", lambda: total(x))
""",
        every(hung(0, "sum 3.0"), hung(1, "sum 3.0")),
    ),
    Apart(
        "other-size",
        "One process sums one number where the other sums sixty-four: both hang.",
        "multi-process.different-order-hangs",
        """
many = made(np.ones((2, 64), np.float32), "a")
columns = jax.jit(lambda x: x.sum(0))
attempt("got", lambda: columns(x) if number else columns(many).sum())
""",
        every(hung(0, "sum 3.0"), hung(1, "sum 3.0")),
    ),
    Apart(
        "other-kind",
        "One process reduces where the other gathers: both hang.",
        "multi-process.different-order-hangs",
        """
function = total if number == 0 else jax.jit(lambda x: x, out_shardings=spread())
attempt("got", lambda: function(x))
""",
        every(hung(0, "sum 3.0"), hung(1, "sum 3.0")),
    ),
    Apart(
        "other-product",
        "One process multiplies x @ y where the other multiplies y @ x: both hang.",
        "multi-process.different-order-hangs",
        """
square = jax.sharding.Mesh(np.array(jax.devices()).reshape(1, 2), ("a", "b"))
spec = jax.sharding.PartitionSpec
numbers = np.arange(16, dtype=np.float32).reshape(4, 4)
first = jax.device_put(numbers, jax.sharding.NamedSharding(square, spec("a", "b")))
second = jax.device_put(numbers, jax.sharding.NamedSharding(square, spec("b", None)))
pair = (second, first) if number else (first, second)
attempt("got", lambda: (pair[0] @ pair[1]).addressable_data(0))
attempt("sum", lambda: total(x))
""",
        every(hung(0, "sum 3.0"), hung(1, "sum 3.0")),
    ),
    Apart(
        "other-length",
        "Process 0 sends a row by ppermute under pmap to a longer row of process 1: both hang.",
        "multi-process.different-order-hangs",
        """
send = jax.pmap(lambda x: jax.lax.ppermute(x, "i", [(0, 1)]), "i")
row = np.arange(1, 5 + 4 * number, dtype=np.float32)
got = lambda: np.asarray(send(row[None]).addressable_data(0)).ravel()
attempt("got", lambda: (lambda row: (row[:4].tolist(), "of", row.size))(got()))
""",
        every(hung(0, "sum 3.0"), hung(1, "sum 3.0")),
    ),
    Apart(
        "unchecked",
        "One process doubles where the other adds one: no error, and the sum mixes both.",
        "multi-process.order-unchecked",
        """
y = jax.jit((lambda x: x + 1) if number else (lambda x: x * 2))(x)
attempt("own", lambda: y.addressable_data(0))
attempt("mixed", lambda: total(y))
""",
        every(
            prints_lines(0, "sum 3.0", "own [2.]", "mixed 5.0"),
            prints_lines(1, "sum 3.0", "own [3.]", "mixed 5.0"),
        ),
    ),
    Apart(
        "device-put",
        "Process 0 alone replicates an array with device_put: it hangs.",
        "multi-process.device-put-in-one-process",
        """
if number == 0:
    attempt("put", lambda: jax.device_put(x, spread()))
print("passed by")
""",
        every(hung(0, "sum 3.0"), hung(1, "sum 3.0", "passed by")),
    ),
)


@family(
    "multi_controller.apart.{apart}",
    apart=APART,
    title="{apart.title}",
    left_out=OF_A_JOB,
    on_cpu=True,
    expect=lambda apart: of_jax(apart.expected),
    deadline_s=DEADLINE_S,
)
def apart(impl: Implementation, cluster: Cluster, apart: Apart) -> None:
    """The processes of a job compute something else at the same time."""
    run(cluster, BEGIN + COMPUTE + apart.program, quiet_s=SHORT_S)
