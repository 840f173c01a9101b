"""Effects of donation on an argument: deletion, reuse of buffers, and warnings.

Every kind of argument is donated twice to one mapped function, because a first call compiles and a
second is dispatched from a cache. The addresses of buffers are recorded before the call, and
compared with the output's.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.donation.arrays import Given
from conformance.sections.donation.kinds import INCOMPATIBLE, UNMAPPED, WIDTH, Call, Kind, kinds
from conformance.spec.clause import devices
from conformance.spec.codes import Code, Problem
from conformance.spec.columns import Columns, everywhere, of_new_pmap, of_pmaps, unless_legacy
from conformance.spec.combining import of_result
from conformance.spec.defaults import Defaults
from conformance.spec.emissions import log_record, warning
from conformance.spec.expectation import every, noted, returns, steps, twice
from conformance.spec.expected import Expectation
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.observation import Step
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_SEVERAL, Place
from conformance.worker.protocols import Cluster, Implementation

ZERO_COPY = "migrate-pmap.donation-zero-copy"
COPIES = "migrate-pmap.donation-mismatch-copies-and-deletes"

WEIGHTS = np.arange(WIDTH, dtype=np.float32)
DELETED = "donated deleted"  # of each donated array, whether it is
KEPT = "kept deleted"
UNHARMED = "unharmed"  # of each array that is not deleted, whether its values are unchanged
REUSED = "buffers reused"  # [of the donated buffers here, those that are an output's; all of them]
ALIASED = "bytes aliased"  # [by the compiled program, of the donated arrays]; on one device

DEFAULTS = Defaults(claim="migrate-pmap.donation-supported", needs=devices(2))


# --- Notes


def pointers(arrays: Iterable[Any]) -> set[int]:
    """The addresses of these arrays' buffers on this process's devices."""
    return {
        shard.data.unsafe_buffer_pointer() for array in arrays for shard in array.addressable_shards
    }


def is_deleted(array: Any) -> bool:
    """Return whether JAX reports the array as deleted; always False for NumPy's."""
    return isinstance(array, jax.Array) and array.is_deleted()


def holds_its_values(one: Given) -> bool:
    """Return whether each local shard equals its part of the source; True if the array is
    deleted.
    """
    if is_deleted(one.array):
        return True
    source = one.source()
    if not isinstance(one.array, jax.Array):
        return bool(np.array_equal(one.array, source))
    shards = one.array.addressable_shards
    return all(np.array_equal(np.asarray(s.data), source[s.index]) for s in shards)


def note_donation(cluster: Cluster, call: Call, before: set[int], result: Any) -> None:
    """Note what happened to a call's arrays; nothing if the call raised."""
    if "value" not in cluster.steps[-1]:
        return
    cluster.note(DELETED, [is_deleted(one.array) for one in call.donated])
    cluster.note(KEPT, [is_deleted(one.array) for one in call.kept])
    cluster.note(UNHARMED, [holds_its_values(one) for one in (*call.donated, *call.kept)])
    cluster.note(REUSED, [len(before & pointers(jax.tree.leaves(result))), len(before)])


# --- Expectations


def _deleted(wanted: bool) -> Expectation:
    text = "every donated array is deleted" if wanted else "no donated array is deleted"
    return noted(DELETED, text, lambda _, seen: all(one is wanted for one in seen))


def _reused(wanted: bool) -> Expectation:
    text = "every donated buffer is an output's" if wanted else "no donated buffer is an output's"
    return noted(REUSED, text, lambda _, seen: seen[0] == (seen[1] if wanted else 0))


INTACT = every(
    noted(KEPT, "what was not donated is not deleted", lambda _, seen: not any(seen)),
    noted(UNHARMED, "what is not deleted holds what it held", lambda _, seen: all(seen)),
)
IN_THE_PROGRAM = steps(
    first_call=noted(
        ALIASED,
        "the compiled program aliases all donated bytes",
        lambda _, seen: seen[0] == seen[1],
        compiled=True,
    )
)
NOT_IN_THE_PROGRAM = steps(
    first_call=noted(
        ALIASED,
        "the compiled program aliases nothing",
        lambda _, seen: seen[0] == 0,
        compiled=True,
    )
)


def mentions(word: str, wanted: Mapping[str, int], text: str) -> Expectation:
    """Expect, in each step, this number of warnings and log records that contain `word`."""

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        given = [one for one in step.warnings if word in one["message"]]
        logged = [one for one in step.logs if word in one["message"]]
        count = sum(one["count"] for one in given) + len(logged)
        said = [f"{one['category']} x {one['count']}: {one['message']}" for one in given]
        said += [f"{one['level']} of {one['logger']}: {one['message']}" for one in logged]
        seen = "; ".join(said) or "nothing said"
        return count == wanted.get(step.name, 0), Problem(seen, Code.WARNING)

    every_such = (warning(".*", re.escape(word)), log_record(".*", ".*", re.escape(word)))
    return of_result(text, check_step, emits=every_such)


SILENT = mentions("onated", {}, "nothing is said of donation")
SAID_ONCE = mentions(
    "not usable", {"first call": 1}, "a warning says once that donated buffers were not usable"
)
SAID_EACH_TIME = mentions(
    "resharding", {"first call": 1, "second call": 1}, "each call says once that it reshards"
)


# Arrays that are sharded as required are reused; unusable ones are not deleted.
TAKEN = (_deleted(True), _reused(True), INTACT, IN_THE_PROGRAM, SILENT)
LEFT = (_deleted(False), _reused(False), INTACT)

# Arrays with another sharding are copied, and the originals deleted: of a pytree, one leaf only.
COPIED = (_deleted(True), _reused(False), INTACT)
TAKEN_OR_COPIED = (_deleted(True), INTACT)
HALF_REUSED = noted(
    REUSED, "half of the buffers are an output's", lambda _, s: s[0] and s[0] * 2 == s[1]
)
BOTH_DELETED = (_deleted(True), HALF_REUSED, INTACT)
FIRST_ALONE = (
    noted(DELETED, "the first leaf is deleted, the other not", lambda _, s: s == [True, False]),
    HALF_REUSED,
    INTACT,
)

# What the other two do, on which the document is silent.
OTHERWISE: Mapping[str, str] = {
    "other-spec": "legacy pmap does not donate it, shard_map reuses its buffers",
    "replicated": "legacy pmap and shard_map do not donate it",
    "one-device": "legacy pmap does not donate it, shard_map refuses it",
    "other-devices": "legacy pmap does not donate it, shard_map refuses it",
    "uncommitted": "legacy pmap and shard_map do not donate it",
    "unmapped-one-device": "shard_map refuses it",
    "unmapped-second-device": "shard_map refuses it",
    "unmapped-uncommitted": "so does shard_map",
}

# Under jit another sharding is resharded within the program that also gets the buffers, where they
# are large enough for an output; other devices are refused, and an uncommitted array is copied as
# by legacy.
UNDER_JIT: Mapping[str, tuple[Expectation, ...] | None] = {
    "other-spec": (_deleted(True), _reused(True), INTACT),
    "replicated": LEFT,
    "one-device": None,
    "other-devices": None,
    "uncommitted": LEFT,
    "unmapped-one-device": None,
    "unmapped-second-device": None,
    "unmapped-uncommitted": TAKEN_OR_COPIED,
}


def under_jit(kind: Kind) -> Expectation:
    """Return what shard_map is expected to do with an array that has another sharding."""
    parts = UNDER_JIT[kind.key]
    return INCOMPATIBLE if parts is None else every(kind.right, *parts)


def both_pmaps_delete(kind: Kind) -> str:
    """Return the title for an unmapped argument that is not on all devices."""
    return (
        "Legacy and new pmap copy a donated argument and delete the original; "
        f"{OTHERWISE[kind.key]}: {kind.said}."
    )


def taken_or_copied(kind: Kind) -> Expectation:
    """Expect the right values, and the original deleted: its buffer is one of the copies."""
    return every(kind.right, *TAKEN_OR_COPIED)


OF_UNMAPPED = {LEGACY_PMAP: taken_or_copied, NEW_PMAP: taken_or_copied, SHARD_MAP: under_jit}


def of_all(kind: Kind, *parts: Expectation) -> Columns:
    """The right values and `parts`, of every implementation that can make the call."""
    expected = every(kind.right, *parts)
    return of_pmaps(expected, kind.pmap_only) if kind.pmap_only else everywhere(expected)


def sentence(text: str) -> str:
    """The text with a capital."""
    return text[0].upper() + text[1:]


# --- The probe


@DEFAULTS.family(
    "donation.reused.{kind}",
    kind=kinds("own-output", "placed"),
    claim=ZERO_COPY,
    title="A donated argument is deleted and its buffers are reused: {kind.said}.",
    fact="donation.reused",
    expect=lambda kind: of_all(kind, *TAKEN),
)
@DEFAULTS.family(
    "donation.reused.{kind}",
    kind=kinds(
        "two-arguments",
        "second-argument",
        "tree",
        "static-first",
        "static-last",
        "unmapped",
        "beside-keyword",
    ),
    title="A donated argument is deleted and its buffers are reused: {kind.said}.",
    fact="donation.reused.arguments",
    expect=lambda kind: of_all(kind, *TAKEN),
)
@DEFAULTS.family(
    "donation.reused.{kind}",
    kind=kinds("jit-donating"),
    title="A donated argument is deleted and its buffers are reused: {kind.said}.",
    # Legacy pmap all-gathers the array, for its own jit.
    expect=lambda kind: unless_legacy(every(kind.right, *LEFT), every(kind.right, *TAKEN)),
)
@DEFAULTS.family(
    "donation.copied.{kind}",
    kind=kinds("other-spec", "replicated", "one-device", "other-devices", "uncommitted"),
    claim=COPIES,
    title=lambda kind: (
        "New pmap copies a donated argument and deletes the original; "
        f"{OTHERWISE[kind.key]}: {kind.said}."
    ),
    expect={
        # Legacy pmap reshards silently and donates its copy.
        LEGACY_PMAP: lambda kind: every(kind.right, *LEFT),
        NEW_PMAP: lambda kind: every(kind.right, *COPIED),
        SHARD_MAP: under_jit,
    },
)
@DEFAULTS.family(
    "donation.copied.{kind}",
    kind={key: UNMAPPED[key] for key in ("unmapped-one-device", "unmapped-uncommitted")},
    claim=COPIES,
    title=both_pmaps_delete,
    expect=OF_UNMAPPED,
)
@DEFAULTS.family(
    "donation.copied.{kind}",
    kind=kinds("tree-partly"),
    claim=COPIES,
    title=(
        "New pmap copies one leaf of a donated argument and deletes all; legacy pmap and "
        "shard_map do not delete that leaf: {kind.said}."
    ),
    fact="donation.copied.replicated",
    expect={
        LEGACY_PMAP: lambda kind: every(kind.right, *FIRST_ALONE),
        NEW_PMAP: lambda kind: every(kind.right, *BOTH_DELETED),
        SHARD_MAP: lambda kind: every(kind.right, *FIRST_ALONE),
    },
)
@DEFAULTS.family(
    "donation.warning.{kind}",
    kind=kinds(
        "other-spec", "replicated", "one-device", "other-devices", "uncommitted", "tree-partly"
    ),
    claim="migrate-pmap.donation-warning",
    title="New pmap warns about a donated argument in each call: {kind.said}.",
    fact="donation.warning",
    cause="donated-copy-original-deleted",
    expect=lambda kind: of_new_pmap(
        every(kind.right, SAID_EACH_TIME), "the warning is the new pmap's"
    ),
)
@DEFAULTS.family(
    "donation.left.{kind}",
    kind=kinds("numpy"),
    title="An argument is not deleted: {kind.said}.",
    expect=lambda kind: of_all(kind, INTACT, SILENT),
)
@DEFAULTS.family(
    "donation.left.{kind}",
    kind=kinds("not-donated", "under-jit", "by-keyword"),
    title="An argument is not deleted: {kind.said}.",
    expect=lambda kind: of_all(kind, INTACT, NOT_IN_THE_PROGRAM, SILENT),
)
@DEFAULTS.family(
    "donation.unusable.{kind}",
    kind=kinds("smaller-output"),
    title="A donated argument is not deleted, and a warning says so: {kind.said}.",
    fact="donation.unusable",
    expect=lambda kind: of_all(kind, *LEFT, NOT_IN_THE_PROGRAM, SAID_ONCE),
)
@DEFAULTS.family(
    "donation.unusable.{kind}",
    kind=kinds("other-dtype"),
    title="A donated argument is not deleted: {kind.said}.",
    fact="donation.unusable",
    expect=lambda kind: of_all(kind, *LEFT, NOT_IN_THE_PROGRAM),
)
def donated(impl: Implementation, cluster: Cluster, kind: Kind) -> None:
    """Call a donating mapped function twice, each time with new arguments."""
    function = kind.map(impl)
    for name, step in (("first call", cluster.compiled), ("second call", cluster.step)):
        call = kind.call(impl, cluster, WIDTH)
        before = pointers(one.array for one in call.donated)
        on_a_device = sum(one.array.addressable_shards[0].data.nbytes for one in call.donated)
        results: list[Any] = []
        step(name, lambda c=call, r=results: r.append(c.made(function)) or r[0])
        note_donation(cluster, call, before, results)
        if "value" in cluster.steps[-1] and before:
            # Under the key that the report reads, beside the multiples of `donation_peak`.
            reused = cluster.steps[-1]["extra"][REUSED]
            cluster.note("memory", {"what": kind.said, "reused": reused})
        programs = cluster.steps[-1]["extra"].get("programs", [])
        if programs:
            aliased = max(one["memory"]["alias"] for one in programs)
            cluster.note(ALIASED, [aliased, on_a_device])


@DEFAULTS.family(
    "donation.copied.{kind}",
    kind={"unmapped-second-device": UNMAPPED["unmapped-second-device"]},
    claim=COPIES,
    title=both_pmaps_delete,
    fresh=True,  # a process may not survive it
    deadline_s=6.0,
    expect=OF_UNMAPPED,
)
def donated_to_two_calls(impl: Implementation, cluster: Cluster, kind: Kind) -> None:
    """Call a donating mapped function twice, with arguments that were made before."""
    function = kind.map(impl)
    calls = [kind.call(impl, cluster, WIDTH) for _ in range(2)]
    for name, call in zip(("first call", "second call"), calls, strict=True):
        before = pointers(one.array for one in call.donated)
        results: list[Any] = []
        cluster.step(name, lambda c=call, r=results: r.append(c.made(function)) or r[0])
        note_donation(cluster, call, before, results)


@described("the rows and the weights, doubled")
def both_doubled(place: Place) -> Any:
    return place.rows(WIDTH) * 2, WEIGHTS * 2


@DEFAULTS.clause(
    "donation.copied.unmapped-after-a-call",
    claim=COPIES,
    title="A donated unmapped argument that is on one device, after a call with a NumPy array.",
    topologies=("2x1", *ONE_AND_SEVERAL),  # with one device each, nothing is copied
    fresh=True,  # a process may not survive it
    deadline_s=6.0,
    needs=devices(1),
    expect=of_pmaps(
        twice(returns(both_doubled)),
        "shard_map takes global arrays",
    ),
)
def unmapped_after_a_call(impl: Implementation, cluster: Cluster) -> None:
    """Call a mapped function that donates its weights, with NumPy's and with an array."""
    function = impl.map(
        lambda x, w: (x * 2, w * 2), in_axes=(0, None), out_axes=(0, None), donate_argnums=(1,)
    )
    given = jnp.asarray(WEIGHTS)

    def call(weights: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # other tests are about them
            return function(cluster.rows(WIDTH), weights)

    cluster.step("first call", call, WEIGHTS)
    cluster.step("second call", call, given)
