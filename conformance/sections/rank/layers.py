"""Layers of Flax and Equinox, moved from a pmap body to a shard_map body as they are.

Most of Flax's treat all leading dimensions as a batch; Equinox's want the rank of one example. The
parameters are small whole numbers, set by hand, so that a NumPy model can say what must come out:
it stands below the function that makes the layer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.catalogue.clause import devices
from conformance.catalogue.family import family, table
from conformance.probing.bodies import Body
from conformance.sections.rank.bodies import (
    GRID,
    LINE,
    ONE_BLOCK,
    SQUARE,
    Refusal,
    contracting,
    mixed,
    move,
    outcomes,
)

SHIFT = np.float32(16)  # a norm's bias: far enough from zero that no result is lost in rounding

EXAMPLE, EXAMPLES, IMAGE = LINE.sizes, GRID.sizes, SQUARE.sizes
BATCH = (2, 4, 4)  # two examples of four positions with four features


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer: as a user writes it, how to make it, its NumPy model, and its input's sizes."""

    key: str
    text: str
    make: Callable[[], Body]
    model: Body
    sizes: tuple[int, ...] = EXAMPLE
    refused: Refusal | None = None  # how it refuses the block, where its model does
    fact: str = ""  # the finding that it varies, where that has another name

    @property
    def finding(self) -> str:
        """The last word of the clause's fact."""
        return self.fact or self.key


def parameters(*shape: int) -> Any:
    """Small whole numbers, no two rows alike."""
    return (np.arange(1, 1 + np.prod(shape)) * 3 % 7 - 2).reshape(shape).astype(np.float32)


def normal(x: Any, axes: Any, epsilon: float) -> Any:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


# --- Flax -----------------------------------------------------------------------------------------


def _linen(name: str, params: dict[str, Any], **options: Any) -> Body:
    from flax import linen

    layer = getattr(linen, name)(**options)
    return lambda x: layer.apply({"params": params}, x)


def _scaled() -> dict[str, Any]:
    return {"scale": parameters(4), "bias": np.full(4, SHIFT)}


def linen_dense() -> Body:
    return _linen("Dense", {"kernel": parameters(4, 3), "bias": parameters(3)}, features=3)


def nnx_linear() -> Body:
    from flax import nnx

    layer = nnx.Linear(4, 3, rngs=nnx.Rngs(0))
    layer.kernel = nnx.Param(jnp.asarray(parameters(4, 3)))
    layer.bias = nnx.Param(jnp.asarray(parameters(3)))
    return lambda x: layer(x)


def dense(x: Any) -> Any:
    return x @ parameters(4, 3) + parameters(3)


def linen_dense_of_flat() -> Body:
    layer = linen_dense()
    return lambda x: layer(x.reshape((x.shape[0], -1)))


def dense_of_flat(x: Any) -> Any:
    return x.reshape((x.shape[0], -1)) @ parameters(4, 3) + parameters(3)


def linen_layer_norm() -> Body:
    return _linen("LayerNorm", _scaled(), use_fast_variance=False)


def flax_layer_norm(x: Any) -> Any:
    return normal(x, -1, 1e-6) * parameters(4) + SHIFT


def linen_batch_norm() -> Body:
    from flax import linen

    layer = linen.BatchNorm(use_running_average=False)
    statistics = {"mean": np.zeros(4, np.float32), "var": np.ones(4, np.float32)}
    variables = {"params": _scaled(), "batch_stats": statistics}
    return lambda x: layer.apply(variables, x, mutable=["batch_stats"])[0]


def flax_batch_norm(x: Any) -> Any:
    return normal(x, tuple(range(x.ndim - 1)), 1e-5) * parameters(4) + SHIFT


def linen_group_norm() -> Body:
    return _linen("GroupNorm", _scaled(), num_groups=2, use_fast_variance=False)


def nnx_group_norm() -> Body:
    from flax import nnx

    layer = nnx.GroupNorm(4, num_groups=2, use_fast_variance=False, rngs=nnx.Rngs(0))
    layer.scale = nnx.Param(jnp.asarray(parameters(4)))
    layer.bias = nnx.Param(jnp.full(4, SHIFT))
    return lambda x: layer(x)


def flax_group_norm(x: Any) -> Any:
    groups = x.reshape(*x.shape[:-1], 2, 2)
    axes = (*range(1, x.ndim - 1), groups.ndim - 1)
    return normal(groups, axes, 1e-6).reshape(x.shape) * parameters(4) + SHIFT


def linen_instance_norm() -> Body:
    return _linen("InstanceNorm", _scaled(), use_fast_variance=False)


def flax_instance_norm(x: Any) -> Any:
    return normal(x, tuple(range(1, x.ndim - 1)), 1e-6) * parameters(4) + SHIFT


def linen_conv() -> Body:
    params = {"kernel": parameters(3, 4, 2), "bias": parameters(2)}
    return _linen("Conv", params, features=2, kernel_size=(3,))


def flax_conv(x: Any) -> Any:
    kernel, length = parameters(3, 4, 2), x.shape[-2]
    padded = np.pad(x, [*[(0, 0)] * (x.ndim - 2), (1, 1), (0, 0)])
    return sum(padded[..., k : k + length, :] @ kernel[k] for k in range(3)) + parameters(2)


def linen_attention() -> Body:
    inner, outer = {"kernel": parameters(4, 2, 2) / 64}, {"kernel": parameters(2, 2, 4)}
    params = {"query": inner, "key": inner, "value": inner, "out": outer}
    return _linen("MultiHeadDotProductAttention", params, num_heads=2, use_bias=False)


def flax_attention(x: Any) -> Any:
    inner = parameters(4, 2, 2) / 64
    query, key, value = (np.einsum("...ld,dhk->...lhk", x, inner) for _ in range(3))
    logits = np.einsum("...qhk,...shk->...hqs", query, key) / np.sqrt(2)
    weights = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    weighted = np.einsum("...hqs,...shk->...qhk", weights, value)
    return np.einsum("...qhk,hkd->...qd", weighted, parameters(2, 2, 4))


BATCH_NORM = "linen.BatchNorm(use_running_average=False)"
FLATTENED = "linen.Dense(3) after x.reshape((x.shape[0], -1))"
ATTENTION = "linen.MultiHeadDotProductAttention(2)"

FLAX = table(
    Layer("dense-1d", "linen.Dense(3)", linen_dense, dense, fact="dense"),
    Layer("dense-2d", "linen.Dense(3)", linen_dense, dense, EXAMPLES, fact="dense"),
    Layer(
        "dense-flattened",
        FLATTENED,
        linen_dense_of_flat,
        dense_of_flat,
        (2, 2, 2),
        refused=Refusal(
            "ScopeParamShapeError",
            r'"kernel" in "/", the given initializer is expected to generate shape \(8, 3\), but '
            r"the existing parameter it received has shape \(4, 3\)",
        ),
        fact="dense",
    ),
    Layer("layer-norm", "linen.LayerNorm()", linen_layer_norm, flax_layer_norm, EXAMPLES),
    Layer("batch-norm", BATCH_NORM, linen_batch_norm, flax_batch_norm, EXAMPLES),
    Layer("group-norm", "linen.GroupNorm(2)", linen_group_norm, flax_group_norm, EXAMPLES),
    Layer("instance-norm", "linen.InstanceNorm()", linen_instance_norm, flax_instance_norm, BATCH),
    Layer("conv", "linen.Conv(2, (3,))", linen_conv, flax_conv, IMAGE),
    Layer("conv-batch", "linen.Conv(2, (3,))", linen_conv, flax_conv, BATCH, fact="conv"),
    Layer("attention", ATTENTION, linen_attention, flax_attention, IMAGE),
    Layer("nnx-linear", "nnx.Linear(4, 3)", nnx_linear, dense, fact="dense"),
    Layer(
        "nnx-group-norm",
        "nnx.GroupNorm(4, 2)",
        nnx_group_norm,
        flax_group_norm,
        EXAMPLES,
        fact="group-norm",
    ),
)


@family(
    "rank.flax.{layer}",
    layer=FLAX,
    claim="migrate-pmap.rank-flax-layers",
    title="`{layer.text}` of {layer.sizes} per device, unchanged in shard_map",
    fact=lambda layer: f"rank.flax.{layer.finding}",
    needs=devices(2),
    left_out=ONE_BLOCK,
    requires=("flax",),
    expect=lambda layer: outcomes(layer.model, mixed(*layer.sizes), layer.refused),
)
def of_flax(impl: Any, cluster: Any, layer: Layer) -> None:
    """A layer of Flax of one row, as a pmap body and, unchanged, as a shard_map body."""
    move(impl, cluster, layer.make(), layer.model, mixed(*layer.sizes))


# --- Equinox --------------------------------------------------------------------------------------


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
def of_equinox(impl: Any, cluster: Any, layer: Layer) -> None:
    """A layer of Equinox of one row, as a pmap body and, unchanged, as a shard_map body."""
    move(impl, cluster, layer.make(), layer.model, mixed(*layer.sizes))
