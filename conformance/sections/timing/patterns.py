"""The time of a step of each common pattern: mapped, and in a plain jit that does the same.

A step is one turn of the user's loop: it makes the inputs of that step, calls the function and
waits for the result. The patterns' arrays are of a few elements, so their time is that of Python,
of dispatch and of placing inputs; that of computing shows in the kernels.
"""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax

from conformance.patterns import PATTERNS
from conformance.sections.idioms import (
    AXIS,
    Idiom,
    Watch,
    calling,
    devices,
    ensembles,
    evaluation,
    helpers,
    jitted,
    jitted_calling,
    jitted_devices,
    jitted_ensembles,
    jitted_evaluation,
    jitted_helpers,
    jitted_libraries,
    jitted_loops,
    jitted_randomness,
    jitted_training,
    libraries,
    loops,
    mapped_argument,
    model_recipes,
    not_mapped,
    project_helpers,
    randomness,
    recipes,
    state,
    training,
)
from conformance.sections.idioms.kernel_bodies import KERNELS, Kernel, data, ends_of
from conformance.sections.idioms.sharded import sharded, split
from conformance.sections.idioms.sized import ends_and_sum
from conformance.sections.timing import BESIDE_JIT, DEADLINE_S
from conformance.spec import clause
from conformance.spec.clause import Timing
from conformance.spec.columns import Columns, everywhere, of_pmaps
from conformance.spec.comparing import Model
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import returns, steps
from conformance.spec.expected import Expectation
from conformance.spec.family import table
from conformance.spec.topology import Place
from conformance.worker.plain import PlainImplementation
from conformance.worker.protocols import Cluster, Implementation
from conformance.worker.racing import UNCOUNTED, race, witnessed
from conformance.worker.recording import local_rows

ROUNDS = 20  # of one block, per contender
ROUNDS_AT_SIZE = 8
TIMED = Defaults(
    claim="pmap-silence.jit-with-shardings",
    needs=clause.devices(2),
    topologies=("1x2",),
    deadline_s=DEADLINE_S,
)

_TABLES: Mapping[str, tuple[Mapping[str, Idiom], ...]] = {
    "idioms.calling": (calling.CALLING,),
    "idioms.devices": (devices.DEVICES,),
    "idioms.ensembles": (ensembles.ENSEMBLES,),
    "idioms.evaluation": (evaluation.EVALUATION,),
    "idioms.helpers": (helpers.HELPERS, project_helpers.PROJECT_HELPERS),
    "idioms.jit": (
        jitted.JITTED,
        jitted_calling.CALLING,
        jitted_devices.DEVICES,
        jitted_ensembles.ENSEMBLES,
        jitted_evaluation.EVALUATION,
        jitted_helpers.HELPERS,
        jitted_libraries.LIBRARIES,
        jitted_loops.LOOPS,
        jitted_randomness.RANDOMNESS,
        jitted_training.TRAINING,
    ),
    "idioms.libraries": (libraries.LIBRARIES,),
    "idioms.loops": (loops.LOOPS,),
    "idioms.randomness": (randomness.RANDOMNESS,),
    "idioms.recipes": (recipes.RECIPES, not_mapped.NOT_MAPPED, model_recipes.MODELS),
    "idioms.state": (state.STATE,),
    "idioms.training": (training.TRAINING,),
}
IDIOMS: Mapping[str, Idiom] = {
    f"{prefix}.{key}": idiom
    for prefix, tables in _TABLES.items()
    for rows in tables
    for key, idiom in rows.items()
}


@dataclass(frozen=True, slots=True)
class Pair:
    """A pattern with a mapped function, and the one in a plain jit that does the same."""

    key: str
    text: str
    mapped: str
    jitted: str
    requires: tuple[str, ...]


# One whose library makes its whole loop of inputs at once has no step to repeat.
NOT_REPEATED = "idioms.libraries.flax-prefetch"
WRAPS_PMAP = "idioms.libraries.equinox-filter-pmap"


def _pairs() -> Iterator[Pair]:
    for mapped, plain in itertools.chain(*PATTERNS.values()):
        if mapped == NOT_REPEATED:
            continue
        both = (IDIOMS[mapped], IDIOMS[plain])
        key = mapped.removeprefix("idioms.").replace(".", "-")
        needed = sorted({library for one in both for library in one.requires})
        yield Pair(key, both[0].text, mapped, plain, tuple(needed))


PAIRS: Mapping[str, Pair] = table(*_pairs())


def _right(idiom: Idiom) -> Expectation:
    """Expect the model's numbers in the step that is shown."""

    def after(model: Callable[[Place, int], Any]) -> Model:
        return lambda place: model(place, UNCOUNTED)

    text = f"what the model holds after step {UNCOUNTED}"
    mistakes = {name: after(model) for name, model in idiom.mistakes.items()}
    return returns(after(idiom.model), text=text, mistakes=mistakes)


def _expected(pair: Pair) -> Columns:
    both = steps(mapped=_right(IDIOMS[pair.mapped]), plain_jit=_right(IDIOMS[pair.jitted]))
    return of_pmaps(both, "it wraps jax.pmap") if pair.mapped == WRAPS_PMAP else everywhere(both)


def loop(impl: Implementation, cluster: Cluster, idiom: Idiom) -> Callable[[], Any]:
    """Return a function that runs the next step of the program."""
    watch, numbers = Watch(), itertools.count(1)
    turn = idiom.program(impl, cluster, watch)

    def step() -> Any:
        watch.donated.clear()
        return turn(next(numbers))

    return step


@TIMED.family(
    "timing.pattern.{pair}",
    pair=PAIRS,
    title="{pair.text}: the time of a step, mapped and in a plain jit.",
    fact="timing.pattern",
    expect=_expected,
    timing=lambda pair: Timing(BESIDE_JIT, (pair.mapped, pair.jitted), baseline="plain jit"),
)
def pattern(impl: Implementation, cluster: Cluster, pair: Pair) -> None:
    """Both loops, one step of each in turn."""
    plain = PlainImplementation(impl.name)
    with warnings.catch_warnings():  # which the pattern's own clauses are about
        warnings.simplefilter("ignore", DeprecationWarning)
        with contextlib.suppress(Exception):  # the race shows it
            loop(impl, cluster, IDIOMS[pair.mapped])()  # shows what is mapped, and is not timed
        loops = [loop(plain, cluster, IDIOMS[one]) for one in (pair.mapped, pair.jitted)]
        race(cluster, dict(zip(BESIDE_JIT, loops, strict=True)), ROUNDS, lambda result: result)


def _right_at_size(kernel: Kernel) -> Expectation:
    return returns(ends_of(kernel), text="the ends of each device's result, and its sum")


@TIMED.family(
    "timing.at-size.{kernel}",
    kernel=KERNELS,
    title="{kernel.text}: the time of a call, mapped and in a plain jit.",
    fact="timing.at-size",
    expect=lambda kernel: everywhere(
        steps(mapped=_right_at_size(kernel), plain_jit=_right_at_size(kernel))
    ),
    timing=lambda kernel: Timing(
        BESIDE_JIT,
        (f"idioms.at-size.{kernel.key}", f"idioms.jit-at-size.{kernel.key}"),
        baseline="plain jit",
    ),
)
def at_size(impl: Implementation, cluster: Cluster, kernel: Kernel) -> None:
    """The body mapped, and in a vmap under a plain jit; the arguments lie on their devices."""
    rows = [cluster.mine(one) for one in data(cluster, kernel)]
    copy = impl.map(lambda x: x + 0, AXIS)
    given = [copy(mapped_argument(impl, one)) for one in rows]
    placed = [sharded(impl, one) for one in rows]

    def body(*args: Any) -> Any:  # new in each block: JAX keeps what it compiled for a function
        return kernel.body(*args)

    mapped = witnessed(impl.map(body, AXIS), *given)
    jit = jax.jit(jax.vmap(body), out_shardings=split(impl))
    contenders = (lambda: mapped(*given), lambda: jit(*placed))
    race(
        cluster,
        dict(zip(BESIDE_JIT, contenders, strict=True)),
        ROUNDS_AT_SIZE,
        lambda result: ends_and_sum(local_rows(result)),
    )
