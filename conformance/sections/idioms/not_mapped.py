"""Models of libraries that a training step takes and returns whole, by in_axes and out_axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from conformance.sections.idioms import (
    AXIS,
    DESCENT,
    RATE,
    WIDTH,
    Idiom,
    Turn,
    Watch,
    batch,
    follow,
)
from conformance.sections.idioms.checks import OTHER_TITLES, in_a_loop
from conformance.sections.idioms.model_recipes import trained_once
from conformance.spec.family import table
from conformance.worker.protocols import Cluster, Implementation


def whole_by_equinox(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """A model of equinox is passed with in_axes=None and returned with out_axes=None.

    Under shard_map without check_vma: with it, the gradient of what is not mapped is a sum.
    """
    import equinox

    model = equinox.nn.Linear(WIDTH, "scalar", use_bias=False, key=jax.random.PRNGKey(0))
    model = equinox.tree_at(lambda one: one.weight, model, jnp.zeros((1, WIDTH)))
    arrays, rest = equinox.partition(model, equinox.is_array)

    def loss(model: Any, x: Any, y: Any) -> Any:
        return ((jax.vmap(model)(x) - y) ** 2).mean()

    def update(arrays: Any, x: Any, y: Any) -> Any:
        model = equinox.combine(arrays, rest)
        value, gradient = equinox.filter_value_and_grad(loss)(model, x, y)
        value, gradient = jax.lax.pmean((value, gradient), AXIS)
        model = equinox.apply_updates(model, jax.tree.map(lambda one: -RATE * one, gradient))
        return equinox.filter(model, equinox.is_array), value

    step = impl.map(
        watch.traced(update), AXIS, in_axes=(None, 0, 0), out_axes=None, check_vma=False
    )

    def turn(n: int) -> Any:
        nonlocal arrays
        arrays, value = step(arrays, *batch(impl, cluster, n))
        return arrays.weight, value

    return turn


NOT_MAPPED: Mapping[str, Idiom] = table(
    Idiom(
        "equinox-model-not-mapped",
        "A model of equinox with in_axes=None and out_axes=None",
        whole_by_equinox,
        trained_once,
        lambda place: DESCENT,
        requires=("equinox",),
    ),
)


@in_a_loop(titles=OTHER_TITLES).family(
    "idioms.recipes.{idiom}", idiom=NOT_MAPPED, claim="pmap-silence.wrappers-of-libraries"
)
def run(impl: Implementation, cluster: Cluster, idiom: Idiom) -> None:
    """A loop around a map, written as the library's users do."""
    follow(impl, cluster, idiom)
