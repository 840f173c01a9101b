"""Clauses that break their cluster on purpose: what the harness's own tests inject.

Workers load them because the controller of a self-test names this module.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax._src.distributed import global_state
from jax._src.lib import xla_client

from conformance.spec.clause import clause
from conformance.spec.expectation import returns
from conformance.spec.expected import Expectation
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.channel import Channel
from conformance.worker.jobs import Job, run_job
from conformance.worker.protocols import Cluster, Implementation

CLAIM = "migrate-pmap.incompatible-devices"  # any claim will do
FOREVER_S = 3600.0


@described("the rows doubled")
def doubled(place: Place) -> Any:
    return place.rows() * 2


EXPECT: dict[str, Expectation] = dict.fromkeys((LEGACY_PMAP, NEW_PMAP, SHARD_MAP), returns(doubled))


@clause("faults.none", claim=CLAIM, expect=EXPECT)
def none(impl: Implementation, cluster: Cluster) -> None:
    """Nothing goes wrong."""
    cluster.twice(impl.map(lambda x: x * 2), impl.given(cluster.rows()))


def compile_options() -> str:
    """Return the options with which this process compiles, all of them."""
    options = xla_client.CompileOptions()
    options.executable_build_options.debug_options  # noqa: B018  (they are among them once read)
    return str(options.SerializeAsString().hex())


@clause("faults.options", claim=CLAIM, expect=EXPECT)
def options(impl: Implementation, cluster: Cluster) -> None:
    """A program whose compilation nobody looks at."""
    cluster.step("call", lambda: None)
    cluster.note("options", compile_options())


@clause("faults.options-looked-at", claim=CLAIM, expect=EXPECT)
def options_looked_at(impl: Implementation, cluster: Cluster) -> None:
    """A program that is compiled as a user's is."""
    cluster.compiled("call", lambda: None)
    cluster.note("options", compile_options())


@clause("faults.wrong-value", claim=CLAIM, expect=EXPECT)
def wrong_value(impl: Implementation, cluster: Cluster) -> None:
    """The program computes something else."""
    cluster.twice(impl.map(lambda x: x * 3), impl.given(cluster.rows()))


@clause("faults.nothing-observed", claim=CLAIM, expect=EXPECT)
def nothing_observed(impl: Implementation, cluster: Cluster) -> None:
    """The probe records no step."""


@clause("faults.by-hand", claim=CLAIM, expect=EXPECT)
def by_hand(impl: Implementation, cluster: Cluster) -> None:
    """The right values, but no implementation computed them."""
    cluster.step("a call", lambda: np.asarray(cluster.rows() * 2))


@clause("faults.impostor", claim=CLAIM, expect=EXPECT)
def impostor(impl: Implementation, cluster: Cluster) -> None:
    """Another implementation than the cell's computes the right values."""
    from conformance.worker.implementations import WitnessedImplementation

    assert isinstance(impl, WitnessedImplementation)
    other = WitnessedImplementation(SHARD_MAP if impl.is_pmap else NEW_PMAP)
    impl.witness = other.witness
    cluster.step("a call", other.map(lambda x: x * 2), other.given(cluster.rows()))


@clause("faults.raises", claim=CLAIM, expect=EXPECT)
def raises_(impl: Implementation, cluster: Cluster) -> None:
    """The probe raises outside its steps."""
    raise RuntimeError("raised on purpose")


@clause("faults.exits", claim=CLAIM, expect=EXPECT)
def exits(impl: Implementation, cluster: Cluster) -> None:
    """The last process exits with status 3."""
    if cluster.process == cluster.topology.processes - 1:
        os._exit(3)
    cluster.twice(impl.map(lambda x: jax.lax.psum(x, "i")), impl.given(cluster.rows()))


@clause("faults.killed", claim=CLAIM, expect=EXPECT)
def killed(
    impl: Implementation, cluster: Cluster, number: int = signal.SIGSEGV, process: int = -1
) -> None:
    """A process, else the last one, is killed (or stopped) by a signal."""
    if cluster.process == process % cluster.topology.processes:
        print("about to die", flush=True)
        os.kill(os.getpid(), number)
        time.sleep(FOREVER_S)
    cluster.twice(impl.map(lambda x: jax.lax.psum(x, "i")), impl.given(cluster.rows()))


@clause("faults.system-exit", claim=CLAIM, expect=EXPECT)
def system_exit(impl: Implementation, cluster: Cluster) -> None:
    """The program calls sys.exit, which no step catches."""
    sys.exit(5)


@clause("faults.stalls-in-python", claim=CLAIM, expect=EXPECT)
def stalls_in_python(impl: Implementation, cluster: Cluster) -> None:
    """The last process sleeps; the others finish and wait for it."""
    if cluster.process == cluster.topology.processes - 1:
        time.sleep(FOREVER_S)
    cluster.twice(impl.map(lambda x: x * 2), impl.given(cluster.rows()))


@clause("faults.stalls-in-collective", claim=CLAIM, expect=EXPECT)
def stalls_in_collective(impl: Implementation, cluster: Cluster) -> None:
    """The last process sleeps while the others are inside a collective."""
    total = impl.map(lambda x: jax.lax.psum(x, "i"))
    rows = impl.given(cluster.rows())
    cluster.step("first call", total, rows)
    if cluster.process == cluster.topology.processes - 1:
        time.sleep(FOREVER_S)
    cluster.step("second call", total, rows)


@clause("faults.floods", claim=CLAIM, expect=EXPECT)
def floods(impl: Implementation, cluster: Cluster) -> None:
    """The last process writes to its output without end, once the others wait for it."""
    others_wait(cluster)
    while cluster.process == cluster.topology.processes - 1:
        os.write(1, b"flood " * 10_000)
    cluster.twice(impl.map(lambda x: x * 2), impl.given(cluster.rows()))


def own_channel() -> Channel:
    """Return the worker's connection, which no probe is handed."""
    (found,) = (one for one in gc.get_objects() if type(one) is Channel)
    return found


def others_wait(cluster: Cluster) -> None:
    """Return in the last process once all others have sent their observations; in those, at once.

    They tell it by the key-value store of JAX's coordination service.
    """
    client, channel, last = global_state.client, own_channel(), cluster.topology.processes - 1
    send = channel.send

    def send_and_tell(message: dict[str, Any]) -> None:
        send(message)
        if "observation" in message:
            client.key_value_set(f"waits-{cluster.process}", "yes")

    if cluster.process != last:
        channel.send = send_and_tell  # type: ignore[method-assign]
        return
    for other in range(last):
        client.blocking_key_value_get(f"waits-{other}", int(FOREVER_S * 1000))


@clause("faults.invalid-message", claim=CLAIM, expect=EXPECT)
def invalid_message(impl: Implementation, cluster: Cluster, kind: str = "bytes") -> None:
    """The last process sends what is no message, once the others wait for it."""
    channel = own_channel()
    others_wait(cluster)
    if cluster.process == cluster.topology.processes - 1:
        if kind == "bytes":
            channel.connection.send_bytes(b"\x80\x04\x95 invalid")
        elif kind == "half":
            os.write(channel.connection.fileno(), b"\x00\x00\x01\x00{")
        elif kind == "cut":
            os.write(channel.connection.fileno(), b"\x00\x00\x01\x00{")
            os.kill(os.getpid(), signal.SIGKILL)
        elif kind == "deep":
            channel.connection.send_bytes(b"[" * 100_000)
        elif kind == "observation":
            # A cluster's first case is called 1.
            channel.send({"case": "1", "observation": {"process": cluster.process, "steps": [1]}})
        elif kind == "length":
            os.write(channel.connection.fileno(), b"\x7f\xff\xff\xff" + b"x" * 64)
        else:
            channel.send({"case": "0", "ready": "yes"})
        time.sleep(FOREVER_S)
    cluster.twice(impl.map(lambda x: x * 2), impl.given(cluster.rows()))


@clause("faults.leaves-a-child", claim=CLAIM, expect=EXPECT)
def leaves_a_child(impl: Implementation, cluster: Cluster) -> None:
    """A process of the program's own outlives the worker that started it, then the worker dies."""
    subprocess.Popen(["sleep", str(int(FOREVER_S))])
    os._exit(4)


JOB = """
import os, signal, sys, time
print("up", flush=True)
if sys.argv[3] == "1":
    os.kill(os.getpid(), signal.SIGSTOP)
time.sleep(3600)
"""


@clause("faults.job-that-stalls", claim=CLAIM, expect=EXPECT)
def job_that_stalls(impl: Implementation, cluster: Cluster) -> None:
    """A plain job of two processes, each in a session of its own; one sleeps, one is stopped."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        program = Path(folder, "program.py")
        program.write_text(JOB, encoding="utf-8")
        run_job(Job(str(program), 2, 1, os.environ, FOREVER_S))


@clause("faults.starves", claim=CLAIM, expect=EXPECT)
def starves(impl: Implementation, cluster: Cluster, work_s: float, rivals: int) -> None:
    """It works for so many seconds on one core, which so many other processes want as well."""
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(everywhere)})  # what is started from here on inherits it
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(rivals)]
    try:
        until = time.thread_time() + work_s
        while time.thread_time() < until:
            pass
    finally:
        for one in busy:
            one.kill()
            one.wait()
        os.sched_setaffinity(0, everywhere)
    cluster.twice(impl.map(lambda x: x * 2), impl.given(cluster.rows()))
