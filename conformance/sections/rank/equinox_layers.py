"""Layers of Equinox, moved from a pmap body to a shard_map body as they are."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.rank.bodies import (
    ONE_BLOCK,
    Refusal,
    contracting,
    mixed,
    move,
    outcomes,
)
from conformance.sections.rank.layers import (
    BATCH,
    EXAMPLES,
    IMAGE,
    SHIFT,
    Layer,
    normal,
    parameters,
)
from conformance.spec.clause import devices
from conformance.spec.family import family, table
from conformance.worker.bodies import Body
from conformance.worker.protocols import Cluster, Implementation


def _equinox(name: str, *sizes: Any, weight: Any, bias: Any, **options: Any) -> Any:
    import equinox

    layer = getattr(equinox.nn, name)(*sizes, **options)
    values = jnp.asarray(weight), jnp.asarray(bias)
    return equinox.tree_at(lambda one: (one.weight, one.bias), layer, values)


def _key() -> Any:
    return jax.random.key(0)


def eqx_linear(outputs: int = 3) -> Body:
    weight, bias = parameters(outputs, 4), parameters(outputs)
    layer: Body = _equinox("Linear", 4, outputs, weight=weight, bias=bias, key=_key())
    return layer


def equinox_linear(x: Any, outputs: int = 3) -> Any:
    return parameters(outputs, 4) @ x + parameters(outputs)


def equinox_linear_of_each(x: Any) -> Any:
    return np.stack([equinox_linear(row) for row in x])


def equinox_square_of_each(x: Any) -> Any:
    return np.stack([equinox_linear(row, 4) for row in x])


def eqx_layer_norm() -> Body:
    layer: Body = _equinox("LayerNorm", 4, weight=parameters(4), bias=np.full(4, SHIFT))
    return layer


def equinox_layer_norm(x: Any) -> Any:
    if x.shape != (4,):
        raise ValueError("one example is wanted")
    return normal(x, None, 1e-5) * parameters(4) + SHIFT


def eqx_group_norm() -> Body:
    layer: Body = _equinox("GroupNorm", 2, 4, weight=parameters(4), bias=np.full(4, SHIFT))
    return layer


def equinox_group_norm(x: Any) -> Any:
    groups = x.reshape(2, x.shape[0] // 2, *x.shape[1:])
    return normal(groups, (1, 2), 1e-5).reshape(x.shape) * parameters(4)[:, None] + SHIFT


def eqx_conv1d() -> Body:
    weight, bias = parameters(2, 4, 3), parameters(2)[:, None]
    layer: Body = _equinox("Conv1d", 4, 2, 3, padding=1, weight=weight, bias=bias, key=_key())
    return layer


def equinox_conv1d(x: Any) -> Any:
    if x.ndim != 2:
        raise ValueError("channels and positions are wanted")
    weight, padded = parameters(2, 4, 3), np.pad(x, [(0, 0), (1, 1)])
    return sum(weight[..., k] @ padded[:, k : k + 4] for k in range(3)) + parameters(2)[:, None]


def eqx_conv2d() -> Body:
    weight, bias = parameters(3, 2, 3, 3), parameters(3)[:, None, None]
    layer: Body = _equinox("Conv2d", 2, 3, 3, padding=1, weight=weight, bias=bias, key=_key())
    return layer


def equinox_conv2d(x: Any) -> Any:
    if x.ndim != 3:
        raise ValueError("channels, rows and columns are wanted")
    weight, padded = parameters(3, 2, 3, 3), np.pad(x, [(0, 0), (1, 1), (1, 1)])
    result = np.zeros((3, 4, 4)) + parameters(3)[:, None, None]
    for a, b in np.ndindex(3, 3):
        part = padded[:, a : a + 4, b : b + 4]
        result += np.einsum("oi,iyx->oyx", weight[:, :, a, b], part)
    return result


def eqx_mlp() -> Body:
    import equinox

    layer = equinox.nn.MLP(4, 3, 5, 1, key=_key())
    shapes = (5, 4), (5,), (3, 5), (3,)
    mlp: Body = equinox.tree_at(
        lambda one: [p for part in one.layers for p in (part.weight, part.bias)],
        layer,
        [jnp.asarray(parameters(*shape)) for shape in shapes],
    )
    return mlp


def equinox_mlp(x: Any) -> Any:
    hidden = np.maximum(parameters(5, 4) @ x + parameters(5), 0)
    return parameters(3, 5) @ hidden + parameters(3)


def not_of_rank(rank: int, shape: str) -> Refusal:
    """A convolution's own refusal of a block of this shape."""
    return Refusal(
        ValueError, rf"Input to `Conv` needs to have rank {rank},.*but input has shape {shape}"
    )


EQUINOX = table(
    Layer(
        "linear",
        "nn.Linear(4, 3)",
        eqx_linear,
        equinox_linear,
        refused=contracting(4, 1),
    ),
    Layer(
        "linear-of-each",
        "jax.vmap(nn.Linear(4, 3))",
        lambda: jax.vmap(eqx_linear()),
        equinox_linear_of_each,
        EXAMPLES,
        refused=contracting(4, 2),
    ),
    Layer(
        "linear-of-each-square",
        "jax.vmap(nn.Linear(4, 4))",
        lambda: jax.vmap(eqx_linear(4)),
        equinox_square_of_each,
        IMAGE,
        fact="linear-of-each",
    ),
    Layer(
        "layer-norm",
        "nn.LayerNorm(4)",
        eqx_layer_norm,
        equinox_layer_norm,
        refused=Refusal(
            ValueError,
            r"must satisfy the invariant `shape == x.shape`.*`shape=\(4,\) and `x.shape=\(1, 4\)`",
        ),
    ),
    Layer(
        "group-norm",
        "nn.GroupNorm(2, 4)",
        eqx_group_norm,
        equinox_group_norm,
        IMAGE,
        refused=Refusal(
            TypeError,
            r"cannot reshape array of shape \(1, 4, 4\) \(size 16\) into shape \(2, 0, 4, 4\)",
        ),
    ),
    Layer(
        "conv1d",
        "nn.Conv1d(4, 2, 3)",
        eqx_conv1d,
        equinox_conv1d,
        IMAGE,
        refused=not_of_rank(2, r"\(1, 4, 4\)"),
        fact="conv",
    ),
    Layer(
        "conv2d",
        "nn.Conv2d(2, 3, 3)",
        eqx_conv2d,
        equinox_conv2d,
        BATCH,
        refused=not_of_rank(3, r"\(1, 2, 4, 4\)"),
        fact="conv",
    ),
    Layer(
        "mlp",
        "nn.MLP(4, 3, 5, 1)",
        eqx_mlp,
        equinox_mlp,
        refused=contracting(4, 1),
    ),
)


@family(
    "rank.equinox.{layer}",
    layer=EQUINOX,
    claim="migrate-pmap.rank-equinox-layers",
    title="`{layer.text}` of {layer.sizes} per device, unchanged in shard_map",
    fact=lambda layer: f"rank.equinox.{layer.finding}",
    needs=devices(2),
    left_out=ONE_BLOCK,
    requires=("equinox",),
    expect=lambda layer: outcomes(layer.model, mixed(*layer.sizes), layer.refused),
)
def of_equinox(impl: Implementation, cluster: Cluster, layer: Layer) -> None:
    """A layer of Equinox of one row, as a pmap body and, unchanged, as a shard_map body."""
    move(impl, cluster, layer.make(), layer.model, mixed(*layer.sizes))
