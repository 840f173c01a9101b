"""What a donated input becomes: deleted or not, its buffers the output's or not, and said by whom.

Every kind of input is donated twice to one map, as a first call compiles and a second is dispatched
from a cache. The addresses of buffers are taken before the call, and compared with the output's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import Place
from conformance.judging.expectation import (
    Expectation,
    OfEachStep,
    every,
    not_applicable,
    noted,
    raises,
    returns,
    steps,
)
from conformance.judging.observation import Step
from conformance.sections.donation.arrays import Given
from conformance.sections.donation.kinds import KINDS, WIDTH, Call

SUPPORTED = "migrate-pmap.donation-supported"
ZERO_COPY = "migrate-pmap.donation-zero-copy"
COPIES = "migrate-pmap.donation-mismatch-copies-and-deletes"
WARNS = "migrate-pmap.donation-warning"

DELETED = "donated deleted"  # of each donated array, whether it is
KEPT = "kept deleted"
UNHARMED = "unharmed"  # of each array that is left, whether it holds what it held
REUSED = "buffers reused"  # [of the donated buffers here, those that are an output's; all of them]
ALIASED = "bytes aliased"  # [by the compiled program, of the donated arrays]; on one device

INCOMPATIBLE = raises(ValueError, "Received incompatible devices")


# --- The probe


def pointers(arrays: Iterable[Any]) -> set[int]:
    """The addresses of these arrays' buffers on this process's devices."""
    return {
        shard.data.unsafe_buffer_pointer() for array in arrays for shard in array.addressable_shards
    }


def is_deleted(array: Any) -> bool:
    """Whether JAX says so; never of NumPy's."""
    return isinstance(array, jax.Array) and array.is_deleted()


def holds_its_values(one: Given) -> bool:
    """Whether each shard here is that part of the source; True of what is deleted."""
    if is_deleted(one.array):
        return True
    source = one.source()
    if not isinstance(one.array, jax.Array):
        return bool(np.array_equal(one.array, source))
    shards = one.array.addressable_shards
    return all(np.array_equal(np.asarray(s.data), source[s.index]) for s in shards)


def note_donation(cluster: Any, call: Call, before: set[int], result: Any) -> None:
    """What became of a call's arrays; nothing where the call raised."""
    if "value" not in cluster.steps[-1]:
        return
    cluster.note(DELETED, [is_deleted(one.array) for one in call.donated])
    cluster.note(KEPT, [is_deleted(one.array) for one in call.kept])
    cluster.note(UNHARMED, [holds_its_values(one) for one in (*call.donated, *call.kept)])
    cluster.note(REUSED, [len(before & pointers(jax.tree.leaves(result))), len(before)])


def donated(impl: Any, cluster: Any, kind: str) -> None:
    """Two calls of a donating map, each with arguments of its own."""
    function = KINDS[kind].map(impl)
    for name, step in (("first call", cluster.compiled), ("second call", cluster.step)):
        call = KINDS[kind].call(impl, cluster, WIDTH)
        before = pointers(one.array for one in call.donated)
        on_a_device = sum(one.array.addressable_shards[0].data.nbytes for one in call.donated)
        results: list[Any] = []
        step(name, lambda c=call, r=results: r.append(c.made(function)) or r[0])
        note_donation(cluster, call, before, results)
        if "value" in cluster.steps[-1] and before:
            # Under the key that the report reads, beside the multiples of `donation_peak`.
            reused = cluster.steps[-1]["extra"][REUSED]
            cluster.note("memory", {"what": KINDS[kind].said, "reused": reused})
        programs = cluster.steps[-1]["extra"].get("programs", [])
        if programs:
            aliased = max(one["memory"]["alias"] for one in programs)
            cluster.note(ALIASED, [aliased, on_a_device])


# --- What is expected of it


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
    )
)
NOT_IN_THE_PROGRAM = steps(
    first_call=noted(ALIASED, "the compiled program aliases nothing", lambda _, seen: seen[0] == 0)
)


def told(word: str, wanted: Mapping[str, int], text: str) -> Expectation:
    """How many warnings and log records of a step have `word` in their text."""

    def of(place: Place, step: Step) -> tuple[bool, str]:
        if step.raised is not None:
            return False, str(step)
        given = [one for one in step.warnings if word in one["message"]]
        logged = [one for one in step.logs if word in one["message"]]
        count = sum(one["count"] for one in given) + len(logged)
        said = [f"{one['category']} x {one['count']}: {one['message']}" for one in given]
        said += [f"{one['level']} of {one['logger']}: {one['message']}" for one in logged]
        return count == wanted.get(step.name, 0), "; ".join(said) or "nothing said"

    return OfEachStep(text, of)


SILENT = told("onated", {}, "nothing is said of donation")
SAID_ONCE = told(
    "not usable", {"first call": 1}, "a warning says once that donated buffers were not usable"
)
SAID_EACH_TIME = told(
    "resharding", {"first call": 1, "second call": 1}, "each call says once that it reshards"
)


def _model(kind: str) -> Expectation:
    model = KINDS[kind].model
    text = (model.__doc__ or "the right values").split("\n", 1)[0]
    return returns(lambda place: model(place, WIDTH), text=text)


def _everywhere(kind: str, *parts: Expectation) -> dict[str, Expectation]:
    expected: dict[str, Expectation] = dict.fromkeys(IMPLEMENTATIONS, every(_model(kind), *parts))
    if KINDS[kind].pmap_only:
        expected[SHARD_MAP] = not_applicable(KINDS[kind].pmap_only)
    return expected


def _declare(id: str, claim: str, kind: str, title: str, expect: Mapping[str, Expectation]) -> None:
    said = title.format(KINDS[kind].said)
    clause(
        f"donation.{id}.{kind}",
        claim=claim,
        needs=devices(2),
        topologies=KINDS[kind].topologies,
        parameters={"kind": kind},
        title=said[0].upper() + said[1:],
        expect=expect,
    )(donated)


# --- What lies as the map expects it is reused

TAKEN = (_deleted(True), _reused(True), INTACT, IN_THE_PROGRAM, SILENT)
LEFT = (_deleted(False), _reused(False), INTACT)

for _name, _claim in (
    ("own-output", ZERO_COPY),
    ("placed", ZERO_COPY),
    ("two-arguments", SUPPORTED),
    ("second-argument", SUPPORTED),
    ("tree", SUPPORTED),
    ("static-first", SUPPORTED),
    ("static-last", SUPPORTED),
    ("unmapped", SUPPORTED),
    ("beside-keyword", SUPPORTED),
    ("jit-donating", SUPPORTED),
):
    _expected = _everywhere(_name, *TAKEN)
    if _name == "jit-donating":  # legacy takes the whole array to every device, for its own jit
        _expected[LEGACY_PMAP] = every(_model(_name), *LEFT)
    _declare("reused", _claim, _name, "Donated, {} is deleted and its buffers reused.", _expected)


# --- What lies otherwise is copied, and its original deleted

COPIED = (_deleted(True), _reused(False), INTACT)
FIRST_ALONE = (
    noted(DELETED, "the first leaf is deleted, the other not", lambda _, s: s == [True, False]),
    noted(REUSED, "half of the buffers are an output's", lambda _, s: s[0] and s[0] * 2 == s[1]),
    INTACT,
)
BOTH_DELETED = (_deleted(True), FIRST_ALONE[1], INTACT)

# Legacy reshards in silence and donates its copy. Under jit another sharding is resharded within
# the program that also gets the buffers, where they are large enough for an output; other devices
# are refused, and an uncommitted array is copied as by legacy.
_PARTLY = "tree-partly"
for _name, _shard_map in (
    ("other-spec", (_deleted(True), _reused(True), INTACT)),
    ("replicated", LEFT),
    ("one-device", None),
    ("other-devices", None),
    ("uncommitted", LEFT),
    (_PARTLY, FIRST_ALONE),
):
    _partly = _name == _PARTLY
    _declare(
        "copied",
        COPIES,
        _name,
        "Donated, {} is copied and its original deleted.",
        {
            LEGACY_PMAP: every(_model(_name), *(FIRST_ALONE if _partly else LEFT)),
            NEW_PMAP: every(_model(_name), *(BOTH_DELETED if _partly else COPIED)),
            SHARD_MAP: every(_model(_name), *_shard_map) if _shard_map else INCOMPATIBLE,
        },
    )
    _declare(
        "warning",
        WARNS,
        _name,
        "Donated, {} is warned about.",
        {
            LEGACY_PMAP: not_applicable("the warning is the new pmap's"),
            NEW_PMAP: every(_model(_name), SAID_EACH_TIME),
            SHARD_MAP: not_applicable("the warning is the new pmap's"),
        },
    )


# --- Nothing is reused, and nothing deleted

for _name in ("numpy", "not-donated", "under-jit", "by-keyword"):
    _declare(
        "left",
        SUPPORTED,
        _name,
        "{} is left as it is.",
        _everywhere(_name, INTACT, NOT_IN_THE_PROGRAM, SILENT)
        if _name != "numpy"
        else _everywhere(_name, INTACT, SILENT),
    )

_declare(
    "unusable",
    SUPPORTED,
    "smaller-output",
    "Donated, {} is left as it is, and a warning says so.",
    _everywhere("smaller-output", *LEFT, NOT_IN_THE_PROGRAM, SAID_ONCE),
)
_declare(
    "unusable",
    SUPPORTED,
    "other-dtype",
    "Donated, {} is left as it is.",
    _everywhere("other-dtype", *LEFT, NOT_IN_THE_PROGRAM),
)
