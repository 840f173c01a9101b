"""`device_put` across processes with `jax_cross_host_transfer_socket_address`, as JAX's error asks.

The address is read before the first use of a device, so each program is its own job. Its processes
have two devices each; each finds a free port, as a user on one host would.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from conformance.sections.multi_controller.fates import (
    BEGIN,
    DEADLINE_S,
    OF_A_JOB,
    SHORT_S,
    ends,
    prints_lines,
    run,
)
from conformance.spec.clause import clause
from conformance.spec.columns import of_jax
from conformance.spec.expectation import every
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.topology import Topology
from conformance.worker.protocols import Cluster, Implementation

TWO_BY_TWO = Topology(2, 2)

FREE_PORT = """
import socket

with socket.create_server(("127.0.0.1", 0)) as server:
    port = server.getsockname()[1]
"""
PORT_ZERO = "\nport = 0\n"
ADDRESS = """
jax.config.update("jax_cross_host_transfer_socket_address", f"127.0.0.1:{port}")
initialize()
devices = jax.devices()


def on(some, *spec):
    mesh = jax.sharding.Mesh(np.array(some), ("a",))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))


def shards(array):
    return [np.asarray(shard.data).tolist() for shard in array.addressable_shards]


rows = np.arange(1, 5, dtype=np.float32)
first, half = (jax.device_put(rows[:n], on(devices[:n], "a")) for n in (1, 2))
double, plus_one = jax.jit(lambda x: 2 * x), jax.jit(lambda x: x + 1)
print("made", flush=True)
"""


@dataclass(frozen=True, slots=True)
class Put:
    """The value of `code` and its destination; `held` is each process's part of the result."""

    key: str
    text: str
    claim: str
    code: str
    held: tuple[str, str]


EQUAL = "multi-process.cross-process-device-put"
PUTS: Mapping[str, Put] = table(
    Put(
        "halves",
        "an array is put from one half of the devices to the other",
        EQUAL,
        'shards(jax.device_put(half, on(devices[2:], "a")))',
        ("[]", "[[1.0], [2.0]]"),
    ),
    Put(
        "one-device",
        "an array is put from the first device to the last",
        EQUAL,
        'shards(jax.device_put(first, on(devices[3:], "a")))',
        ("[]", "[[1.0]]"),
    ),
    Put(
        "reversed",
        "an array is put on all devices in reverse order",
        EQUAL,
        'shards(jax.device_put(jax.device_put(rows, on(devices, "a")), on(devices[::-1], "a")))',
        ("[[3.0], [4.0]]", "[[1.0], [2.0]]"),
    ),
    Put(
        "two-stages",
        "the result of a stage is put on the other half of the devices, where the next stage runs",
        "multi-process.pipeline-two-stages",
        'shards(plus_one(jax.device_put(double(half), on(devices[2:], "a"))))',
        ("[]", "[[3.0], [5.0]]"),
    ),
    Put(
        "microbatches",
        "microbatches pass four stages, each on its own device",
        "multi-process.pipeline-microbatches-values",
        """[
    shards(plus_one(put(double(put(plus_one(put(double(put(batch, 0)), 1)), 2)), 3)))
    for put in [lambda x, n: jax.device_put(x, devices[n])]
    for batch in rows
]""",
        ("[[], [], [], []]", "[[7.0], [11.0], [15.0], [19.0]]"),
    ),
)


@family(
    "multi_controller.transfer-address.{put}",
    put=PUTS,
    title="With `jax_cross_host_transfer_socket_address`, {put.text}.",
    fact="multi_controller.transfer-address",
    left_out=OF_A_JOB,
    on_cpu=True,
    expect=lambda put: of_jax(
        every(*(prints_lines(n, "made", f"put {one}") for n, one in enumerate(put.held)))
    ),
    deadline_s=DEADLINE_S,
)
def put(impl: Implementation, cluster: Cluster, put: Put) -> None:
    """Set a free port in each process, and call `device_put` across processes."""
    program = BEGIN + FREE_PORT + ADDRESS + f'attempt("put", lambda: {put.code})\n'
    run(cluster, program, TWO_BY_TWO, quiet_s=SHORT_S)


# A number in place of the default, None, which jaxlib 0.7.0 refuses.
SIZE = 'jax.config.update("jax_cross_host_transfer_transfer_size", 268435456)\n'


@clause(
    "multi_controller.transfer-size.given",
    claim=EQUAL,
    title="With `jax_cross_host_transfer_transfer_size` beside the address, an array is put from "
    "one half of the devices to the other.",
    fixes="multi_controller.transfer-address.halves",
    left_out=OF_A_JOB,
    on_cpu=True,
    expect=of_jax(
        every(*(prints_lines(n, "made", f"put {one}") for n, one in enumerate(PUTS["halves"].held)))
    ),
    deadline_s=DEADLINE_S,
)
def size_given(impl: Implementation, cluster: Cluster) -> None:
    """A free port in each process and a transfer size; an array is put."""
    put_half = f'attempt("put", lambda: {PUTS["halves"].code})\n'
    run(cluster, BEGIN + FREE_PORT + SIZE + ADDRESS + put_half, TWO_BY_TWO, quiet_s=SHORT_S)


# --- Unsupported with any address -----------------------------------------------------------------

NOT_HERE = (
    "ValueError device_put's second argument must be a Device or a Sharding which represents "
    "addressable devices, but got NamedSharding"
)
OTHER_DEVICES = (
    "ValueError For a cross-host reshard in multi-controller JAX, input and target sharding should "
    "have the same set of devices."
)
NOT_ALL_HERE = "NotImplementedError Cannot reshard an input that is not fully addressable"


@dataclass(frozen=True, slots=True)
class Unequal:
    """The destination of two rows on process 0's devices, and the error of each process."""

    key: str
    text: str
    target: str
    said: tuple[str, str]


UNEQUALS: Mapping[str, Unequal] = table(
    Unequal("fewer", "one of the other devices", 'on(devices[2:3], "a")', (NOT_HERE, NOT_ALL_HERE)),
    Unequal("more", "all devices, replicated", "on(devices)", (NOT_HERE, OTHER_DEVICES)),
    Unequal(
        "other-shape",
        "the other half of the devices, replicated",
        "on(devices[2:])",
        (NOT_HERE, NOT_ALL_HERE),
    ),
)


def refused(unequal: Unequal) -> Expectation:
    """Both processes raise, each by what it sees of the two shardings, and go on."""
    return every(
        *(
            ends(n, rf"exit 0 \| made \| put {re.escape(text)}.*", f"raises {text!r}")
            for n, text in enumerate(unequal.said)
        )
    )


@family(
    "multi_controller.transfer-address-unequal.{unequal}",
    unequal=UNEQUALS,
    claim="multi-process.cross-process-device-put-unequal",
    title=(
        "With `jax_cross_host_transfer_socket_address`, an array on two devices is put on "
        "{unequal.text}."
    ),
    fact="multi_controller.transfer-address-unequal",
    left_out=OF_A_JOB,
    on_cpu=True,
    expect=lambda unequal: of_jax(refused(unequal)),
    deadline_s=DEADLINE_S,
)
def put_unequal(impl: Implementation, cluster: Cluster, unequal: Unequal) -> None:
    """`device_put` across processes between other counts or shapes, with an address."""
    code = f'attempt("put", lambda: shards(jax.device_put(half, {unequal.target})))\n'
    run(cluster, BEGIN + FREE_PORT + ADDRESS + code, TWO_BY_TWO, quiet_s=SHORT_S)


@clause(
    "multi_controller.transfer-address.port-zero",
    claim=EQUAL,
    left_out=OF_A_JOB,
    on_cpu=True,
    expect=of_jax(
        every(*(prints_lines(n, "made", f"put {one}") for n, one in enumerate(PUTS["halves"].held)))
    ),
    deadline_s=DEADLINE_S,
)
def port_zero(impl: Implementation, cluster: Cluster) -> None:
    """The address has port 0, which stands for any free port; an array is put."""
    program = BEGIN + PORT_ZERO + ADDRESS + f'attempt("put", lambda: {PUTS["halves"].code})\n'
    run(cluster, program, TWO_BY_TWO, quiet_s=SHORT_S)
