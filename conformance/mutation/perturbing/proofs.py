"""Perturbations of the proof: another JAX, implementation, or set of processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from conformance.judging.judge import PMAP_SHARDING, SHARD_MAP_PRIMITIVE, WRAPPERS
from conformance.mutation.perturbing.case import Case, Perturbation, Seen, of_observation
from conformance.spec import names
from conformance.spec.observation import Observation, Witness

ANOTHER_JAX = "0.0.1"
OF_NUMPY = "ndarray"
OF_NEW = "NamedSharding"


def other_than(implementation: str) -> str:
    """Return another implementation that could be mistaken for it."""
    others = {names.NEW_PMAP: names.SHARD_MAP, names.SHARD_MAP: names.NEW_PMAP}
    return others.get(implementation, names.NEW_PMAP)


def _nothing(case: Case, seen: Observation) -> Observation | None:
    return replace(seen, witness=()) if seen.witness else None


def _another(case: Case, seen: Observation) -> Observation:
    wrapper = WRAPPERS[other_than(case.implementation)][0]
    traced = (SHARD_MAP_PRIMITIVE,)
    new = tuple(replace(one, wrapper=wrapper, traced=traced) for one in seen.witness)
    return replace(seen, witness=new or (Witness(wrapper, (OF_NEW,), traced),))


def _label(case: Case, seen: Observation) -> Observation | None:
    """Return an observation whose map has the right name but another implementation's trace or
    outputs.
    """
    if all(one.raised for one in seen.witness):  # before it traced anything, as it may
        return None
    if case.implementation != names.LEGACY_PMAP:
        return replace(seen, witness=tuple(replace(one, traced=()) for one in seen.witness))
    witness = tuple(
        replace(
            one,
            traced=(SHARD_MAP_PRIMITIVE,),
            outputs=tuple(OF_NEW if kind == PMAP_SHARDING else kind for kind in one.outputs),
        )
        for one in seen.witness
    )
    return replace(seen, witness=witness)


def _numpy(case: Case, seen: Observation) -> Observation | None:
    """Return an observation whose maps returned NumPy arrays, so that no map of JAX's ran."""
    if not any(one.outputs for one in seen.witness):
        return None
    witness = tuple(replace(one, outputs=(OF_NUMPY,) * len(one.outputs)) for one in seen.witness)
    steps = tuple(
        replace(
            step,
            leaves=tuple(
                replace(leaf, type=OF_NUMPY, sharding=None, committed=None, weak_type=None)
                for leaf in step.leaves
            ),
        )
        for step in seen.steps
    )
    return replace(seen, witness=witness, steps=steps)


def _jax(case: Case, seen: Observation) -> Observation:
    return replace(seen, jax=ANOTHER_JAX)


def _processes(case: Case, seen: Observation) -> Observation:
    return replace(seen, processes=seen.processes + 1)


def _whole(
    change: Callable[[tuple[Observation, ...]], tuple[Observation, ...]],
) -> Callable[[Case], Iterator[Seen]]:
    def perturb(case: Case) -> Iterator[Seen]:
        if case.seen.fault is None and case.seen.observations:
            yield Seen(change(case.seen.observations))

    return perturb


PERTURBATIONS = (
    of_observation("proof: no map ran", _nothing, of_proof=True),
    of_observation("proof: another implementation ran", _another, of_proof=True),
    of_observation("proof: nothing but the label", _label, of_proof=True),
    of_observation("proof: the maps returned NumPy arrays", _numpy, of_proof=True),
    of_observation("proof: another JAX ran", _jax),
    of_observation("proof: a job of another size", _processes),
    Perturbation("proof: a process is missing", _whole(lambda seen: seen[:-1])),
    Perturbation("proof: a process twice", _whole(lambda seen: (*seen, seen[-1]))),
)
