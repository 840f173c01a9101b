"""`jax.distributed.initialize`: when and how often it can be called, and by which processes.

Each program is a job of its own, because it needs new processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.sections.multi_controller.fates import (
    ALONE,
    ARRAYS,
    BEGIN,
    COMPUTE,
    DEADLINE_S,
    OF_A_JOB,
    THREE,
    TWO,
    ends,
    prints_lines,
    run,
)
from conformance.spec.columns import of_jax
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import every
from conformance.spec.expected import Expectation
from conformance.spec.family import table
from conformance.spec.topology import Topology
from conformance.worker.protocols import Cluster, Implementation

ONCE = "RuntimeError distributed.initialize should only be called once."
TOUCHED = (
    "RuntimeError jax.distributed.initialize() must be called before any JAX calls that might "
    "initialise the XLA backend. This includes any computation, but also calls to jax.devices, "
    "jax.device_put, and others."
)

DEFAULTS = Defaults(on_cpu=True, left_out=OF_A_JOB, deadline_s=DEADLINE_S)


@DEFAULTS.clause(
    "multi_controller.initialize.one-process",
    claim="multi-process.initialize-one-process-harmless",
    expect=of_jax(prints_lines(0, "sum 3.0", "devices 2 2", "processes 1", "rows [1. 2.]")),
)
def one_process(impl: Implementation, cluster: Cluster) -> None:
    """A single process calls initialize, and works as it would without it."""
    run(
        cluster,
        BEGIN
        + COMPUTE
        + """
print("devices", jax.device_count(), jax.local_device_count())
print("processes", jax.process_count())
print("rows", np.asarray(x))
""",
        ALONE,
    )


# --- Calls before initialize ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Before:
    """The code that a program runs before it initializes: `code`."""

    key: str
    code: str


DEVICES: Mapping[str, Before] = table(
    Before("devices", "jax.devices()"),
    Before("local-devices", "jax.local_devices()"),
    Before("device-count", "jax.device_count()"),
    Before("process-index", "jax.process_index()"),
    Before("computation", "jax.numpy.ones(2) + 1"),
    Before("device-put", "jax.device_put(np.ones(2))"),
)
OTHERS: Mapping[str, Before] = table(
    Before("config-read", "jax.config.jax_enable_x64"),
    Before("config-update", 'jax.config.update("jax_numpy_dtype_promotion", "strict")'),
    Before("jit", "jax.jit(lambda x: x + 1)"),
    Before("abstract-value", "jax.ShapeDtypeStruct((2,), np.float32)"),
)


def initialized_after(cluster: Cluster, before: Before, job: Topology) -> None:
    """Run a program that does something first."""
    program = f"""
{before.code}
attempt("initialized", initialize)
print("devices", jax.device_count())
"""
    run(cluster, BEGIN + program, job)


@DEFAULTS.family(
    "multi_controller.initialize.after-{before}",
    before=DEVICES,
    claim="multi-process.initialize-after-devices",
    fact="multi_controller.initialize.after-devices",
    title="`jax.distributed.initialize` raises after `{before.code}`.",
    expect=of_jax(prints_lines(0, f"initialized {TOUCHED}", "devices 2")),
)
def after_devices(impl: Implementation, cluster: Cluster, before: Before) -> None:
    """A device is touched before initialize is called."""
    initialized_after(cluster, before, ALONE)


@DEFAULTS.family(
    "multi_controller.initialize.after-{before}",
    before=OTHERS,
    claim="multi-process.initialize-after-config",
    fact="multi_controller.initialize.after-config",
    title=(
        "`jax.distributed.initialize` works after `{before.code}`: each process sees both devices."
    ),
    expect=of_jax(
        every(*(prints_lines(number, "initialized None", "devices 2") for number in range(2)))
    ),
)
def after_others(impl: Implementation, cluster: Cluster, before: Before) -> None:
    """Run code that uses no device, then call initialize."""
    initialized_after(cluster, before, TWO)


# --- How often, by whom, with which numbers -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Called:
    """The calls of initialize in the processes of a job: `program`, after a common start."""

    key: str
    title: str
    program: str
    expected: Expectation
    job: Topology = TWO


def both(*lines: str) -> Expectation:
    """Both processes of a job say the same."""
    return every(*(prints_lines(number, *lines) for number in range(2)))


CALLED: Mapping[str, Called] = table(
    Called(
        "twice",
        "A second call of initialize is refused, and the process works as before.",
        "initialize()\nattempt('again', initialize)\n" + ARRAYS,
        both(f"again {ONCE}", "sum 3.0"),
    ),
    Called(
        "after-shutdown",
        "After jax.distributed.shutdown, all processes can initialize again if no device "
        "was used, process 0 first.",
        # At one address, a process that is quicker than the first finds what is about to end.
        """
initialize()
jax.distributed.shutdown()
say(f"down {number}")
wait_for("down 0")
"""
        + COMPUTE,
        both("sum 3.0"),
    ),
    Called(
        "late-process",
        "The others wait for a process that calls initialize late.",
        "time.sleep(3 * number)\n" + COMPUTE,
        both("sum 3.0"),
    ),
    Called(
        "one-process-too-many",
        "A process with an index beyond num_processes is refused; the others work without it.",
        """
if number < 2:
    initialize(2)
else:
    attempt("initialized", lambda: initialize(2))
print("devices", jax.device_count())
""",
        every(
            both("devices 2"),
            prints_lines(
                2,
                "initialized ValueError process_id and num_processes must be nonnegative, with "
                "process_id < num_processes. Got process_id=2, num_processes=2.",
                "devices 1",
            ),
        ),
        THREE,
    ),
)


@DEFAULTS.family(
    "multi_controller.initialize.{called}",
    called=CALLED,
    claim="multi-process.initialize-on-all-processes",
    title="{called.title}",
    expect=lambda called: of_jax(called.expected),
)
def called(impl: Implementation, cluster: Cluster, called: Called) -> None:
    """Processes call initialize more than once, late, or beyond their count."""
    run(cluster, BEGIN + called.program, called.job)


REFUSED = r"exit 0 \| initialized \w+Error .*"


@DEFAULTS.clause(
    "multi_controller.initialize.counts-differ",
    claim="pmap-silence.initialize-wrong-numbers",
    expect=of_jax(every(*(ends(n, REFUSED, "is told that the counts differ") for n in range(2)))),
)
def counts_differ(impl: Implementation, cluster: Cluster) -> None:
    """Process 0 passes num_processes=2, process 1 passes 3."""
    run(
        cluster,
        BEGIN
        + """
attempt("initialized", lambda: initialize(2 + number, initialization_timeout=4))
attempt("devices", jax.device_count)
""",
    )


@DEFAULTS.clause(
    "multi_controller.initialize.number-taken",
    claim="pmap-silence.initialize-wrong-numbers",
    expect=of_jax(
        every(
            prints_lines(0, "initialized None", "devices 2", "done"),
            prints_lines(1, "initialized None", "devices 2", "done"),
            ends(2, REFUSED, "is told that its number is taken"),
        )
    ),
)
def number_taken(impl: Implementation, cluster: Cluster) -> None:
    """A third process starts later with the process_id of the second."""
    run(
        cluster,
        BEGIN
        + """
if number == 2:
    wait_for("joined 0", "joined 1")
    attempt("initialized", lambda: initialize(2, 1, initialization_timeout=4))
    say("told")
else:
    attempt("initialized", lambda: initialize(2))
    attempt("devices", jax.device_count)
    say(f"joined {number}")
    wait_for("told")
    print("done")
""",
        THREE,
    )


WAITS_S = 3  # that the one that came is to wait


@dataclass(frozen=True, slots=True)
class Missing:
    """The process that never comes."""

    key: str
    absent: int


MISSING: Mapping[str, Missing] = table(Missing("other", 1), Missing("first", 0))


@DEFAULTS.family(
    "multi_controller.initialize.{missing}-process-missing",
    missing=MISSING,
    claim="pmap-silence.initialize-missing-process",
    fact="multi_controller.initialize.process-missing",
    title="Process {missing.absent} never calls initialize: the other one gets an error.",
    expect=lambda missing: of_jax(
        every(
            prints_lines(missing.absent),
            ends(
                1 - missing.absent,
                r"exit 0 \| initialized \w+ DEADLINE_EXCEEDED.*",
                "catches an error that says the deadline is over",
            ),
        )
    ),
)
def missing(impl: Implementation, cluster: Cluster, missing: Missing) -> None:
    """A process of the job never calls initialize."""
    run(
        cluster,
        BEGIN
        + f"""
if number != {missing.absent}:
    attempt("initialized", lambda: initialize(initialization_timeout={WAITS_S}))
os._exit(0)
""",
    )
