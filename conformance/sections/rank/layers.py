"""Layers of Flax and Equinox, moved from a pmap body to a shard_map body as they are.

Most of Flax's treat all leading dimensions as a batch; Equinox's want the rank of one example. The
parameters are small whole numbers, set by hand, so that a NumPy model can say what must come out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.catalogue.clause import clause, devices
from conformance.sections.rank.bodies import GRID, LINE, SQUARE, Body, mixed, run, sensitive

SHIFT = np.float32(16)  # a norm's bias: far enough from zero that no result is lost in rounding

BATCH = (2, 4, 4)  # two examples of four positions with four features
FLAX = "flax"
EQUINOX = "equinox"


def whole(*shape: int) -> Any:
    """Parameters: small whole numbers, no two rows alike."""
    return (np.arange(1, 1 + np.prod(shape)) * 3 % 7 - 2).reshape(shape).astype(np.float32)


# --- models ---------------------------------------------------------------------------------------


def normal(x: Any, axes: Any, epsilon: float) -> Any:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def dense(x: Any) -> Any:
    return x @ whole(4, 3) + whole(3)


def dense_of_flat(x: Any) -> Any:
    return x.reshape((x.shape[0], -1)) @ whole(4, 3) + whole(3)


def flax_layer_norm(x: Any) -> Any:
    return normal(x, -1, 1e-6) * whole(4) + SHIFT


def flax_batch_norm(x: Any) -> Any:
    return normal(x, tuple(range(x.ndim - 1)), 1e-5) * whole(4) + SHIFT


def flax_group_norm(x: Any) -> Any:
    groups = x.reshape(*x.shape[:-1], 2, 2)
    axes = (*range(1, x.ndim - 1), groups.ndim - 1)
    return normal(groups, axes, 1e-6).reshape(x.shape) * whole(4) + SHIFT


def flax_instance_norm(x: Any) -> Any:
    return normal(x, tuple(range(1, x.ndim - 1)), 1e-6) * whole(4) + SHIFT


def flax_conv(x: Any) -> Any:
    kernel, length = whole(3, 4, 2), x.shape[-2]
    padded = np.pad(x, [*[(0, 0)] * (x.ndim - 2), (1, 1), (0, 0)])
    return sum(padded[..., k : k + length, :] @ kernel[k] for k in range(3)) + whole(2)


def attention(x: Any) -> Any:
    query, key, value = (np.einsum("...ld,dhk->...lhk", x, whole(4, 2, 2) / 64) for _ in range(3))
    logits = np.einsum("...qhk,...shk->...hqs", query, key) / np.sqrt(2)
    weights = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    mixed_values = np.einsum("...hqs,...shk->...qhk", weights, value)
    return np.einsum("...qhk,hkd->...qd", mixed_values, whole(2, 2, 4))


def equinox_linear(x: Any, outputs: int = 3) -> Any:
    return whole(outputs, 4) @ x + whole(outputs)


def equinox_linear_of_each(x: Any) -> Any:
    return np.stack([equinox_linear(row) for row in x])


def equinox_square_of_each(x: Any) -> Any:
    return np.stack([equinox_linear(row, 4) for row in x])


def equinox_layer_norm(x: Any) -> Any:
    if x.shape != (4,):
        raise ValueError("one example is wanted")
    return normal(x, None, 1e-5) * whole(4) + SHIFT


def equinox_group_norm(x: Any) -> Any:
    groups = x.reshape(2, x.shape[0] // 2, *x.shape[1:])
    return normal(groups, (1, 2), 1e-5).reshape(x.shape) * whole(4)[:, None] + SHIFT


def equinox_conv1d(x: Any) -> Any:
    if x.ndim != 2:
        raise ValueError("channels and positions are wanted")
    weight, padded = whole(2, 4, 3), np.pad(x, [(0, 0), (1, 1)])
    return sum(weight[..., k] @ padded[:, k : k + 4] for k in range(3)) + whole(2)[:, None]


def equinox_conv2d(x: Any) -> Any:
    if x.ndim != 3:
        raise ValueError("channels, rows and columns are wanted")
    weight, padded = whole(3, 2, 3, 3), np.pad(x, [(0, 0), (1, 1), (1, 1)])
    result = np.zeros((3, 4, 4)) + whole(3)[:, None, None]
    for a, b in np.ndindex(3, 3):
        part = padded[:, a : a + 4, b : b + 4]
        result += np.einsum("oi,iyx->oyx", weight[:, :, a, b], part)
    return result


def equinox_mlp(x: Any) -> Any:
    hidden = np.maximum(whole(5, 4) @ x + whole(5), 0)
    return whole(3, 5) @ hidden + whole(3)


# --- layers ---------------------------------------------------------------------------------------


def _linen(name: str, parameters: dict[str, Any], **options: Any) -> Body:
    from flax import linen

    layer = getattr(linen, name)(**options)
    return lambda x: layer.apply({"params": parameters}, x)


def _scaled(size: int = 4) -> dict[str, Any]:
    return {"scale": whole(size), "bias": np.full(size, SHIFT)}


def linen_dense() -> Body:
    return _linen("Dense", {"kernel": whole(4, 3), "bias": whole(3)}, features=3)


def linen_dense_of_flat() -> Body:
    layer = linen_dense()
    return lambda x: layer(x.reshape((x.shape[0], -1)))


def linen_batch_norm() -> Body:
    from flax import linen

    layer = linen.BatchNorm(use_running_average=False)
    statistics = {"mean": np.zeros(4, np.float32), "var": np.ones(4, np.float32)}
    variables = {"params": _scaled(), "batch_stats": statistics}
    return lambda x: layer.apply(variables, x, mutable=["batch_stats"])[0]


def linen_conv() -> Body:
    return _linen(
        "Conv", {"kernel": whole(3, 4, 2), "bias": whole(2)}, features=2, kernel_size=(3,)
    )


def linen_attention() -> Body:
    inner = {"kernel": whole(4, 2, 2) / 64}
    parameters = {"query": inner, "key": inner, "value": inner, "out": {"kernel": whole(2, 2, 4)}}
    return _linen("MultiHeadDotProductAttention", parameters, num_heads=2, use_bias=False)


def nnx_linear() -> Body:
    from flax import nnx

    layer = nnx.Linear(4, 3, rngs=nnx.Rngs(0))
    layer.kernel, layer.bias = nnx.Param(jnp.asarray(whole(4, 3))), nnx.Param(jnp.asarray(whole(3)))
    return lambda x: layer(x)


def nnx_group_norm() -> Body:
    from flax import nnx

    layer = nnx.GroupNorm(4, num_groups=2, use_fast_variance=False, rngs=nnx.Rngs(0))
    layer.scale, layer.bias = nnx.Param(jnp.asarray(whole(4))), nnx.Param(jnp.full(4, SHIFT))
    return lambda x: layer(x)


def _equinox(name: str, *sizes: Any, weight: Any, bias: Any, **options: Any) -> Any:
    import equinox

    layer = getattr(equinox.nn, name)(*sizes, **options)
    values = jnp.asarray(weight), jnp.asarray(bias)
    return equinox.tree_at(lambda one: (one.weight, one.bias), layer, values)


def _key() -> Any:
    return jax.random.key(0)


def eqx_linear(outputs: int = 3) -> Body:
    weight, bias = whole(outputs, 4), whole(outputs)
    layer: Body = _equinox("Linear", 4, outputs, weight=weight, bias=bias, key=_key())
    return layer


def eqx_layer_norm() -> Body:
    layer: Body = _equinox("LayerNorm", 4, weight=whole(4), bias=np.full(4, SHIFT))
    return layer


def eqx_group_norm() -> Body:
    layer: Body = _equinox("GroupNorm", 2, 4, weight=whole(4), bias=np.full(4, SHIFT))
    return layer


def eqx_conv1d() -> Body:
    weight, bias = whole(2, 4, 3), whole(2)[:, None]
    layer: Body = _equinox("Conv1d", 4, 2, 3, padding=1, weight=weight, bias=bias, key=_key())
    return layer


def eqx_conv2d() -> Body:
    weight, bias = whole(3, 2, 3, 3), whole(3)[:, None, None]
    layer: Body = _equinox("Conv2d", 2, 3, 3, padding=1, weight=weight, bias=bias, key=_key())
    return layer


def eqx_mlp() -> Body:
    import equinox

    layer = equinox.nn.MLP(4, 3, 5, 1, key=_key())
    values = [jnp.asarray(v) for v in (whole(5, 4), whole(5), whole(3, 5), whole(3))]
    mlp: Body = equinox.tree_at(
        lambda one: [p for part in one.layers for p in (part.weight, part.bias)], layer, values
    )
    return mlp


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer: its library, name, as a user writes it, how to build it, its model, its input."""

    library: str
    name: str
    said: str
    build: Callable[[], Body]
    model: Body
    shape: tuple[int, ...] = LINE


LAYERS = {
    f"{layer.library}.{layer.name}": layer
    for layer in (
        Layer(FLAX, "dense-1d", "linen.Dense(3)", linen_dense, dense),
        Layer(FLAX, "dense-2d", "linen.Dense(3)", linen_dense, dense, GRID),
        Layer(
            FLAX,
            "dense-flattened",
            "linen.Dense(3) after x.reshape((x.shape[0], -1))",
            linen_dense_of_flat,
            dense_of_flat,
            (2, 2, 2),
        ),
        Layer(
            FLAX,
            "layer-norm",
            "linen.LayerNorm()",
            lambda: _linen("LayerNorm", _scaled(), use_fast_variance=False),
            flax_layer_norm,
            GRID,
        ),
        Layer(
            FLAX,
            "batch-norm",
            "linen.BatchNorm(use_running_average=False)",
            linen_batch_norm,
            flax_batch_norm,
            GRID,
        ),
        Layer(
            FLAX,
            "group-norm",
            "linen.GroupNorm(2)",
            lambda: _linen("GroupNorm", _scaled(), num_groups=2, use_fast_variance=False),
            flax_group_norm,
            GRID,
        ),
        Layer(
            FLAX,
            "instance-norm",
            "linen.InstanceNorm()",
            lambda: _linen("InstanceNorm", _scaled(), use_fast_variance=False),
            flax_instance_norm,
            BATCH,
        ),
        Layer(FLAX, "conv", "linen.Conv(2, (3,))", linen_conv, flax_conv, SQUARE),
        Layer(FLAX, "conv-batch", "linen.Conv(2, (3,))", linen_conv, flax_conv, BATCH),
        Layer(
            FLAX,
            "attention",
            "linen.MultiHeadDotProductAttention(2)",
            linen_attention,
            attention,
            SQUARE,
        ),
        Layer(FLAX, "nnx-linear", "nnx.Linear(4, 3)", nnx_linear, dense),
        Layer(FLAX, "nnx-group-norm", "nnx.GroupNorm(4, 2)", nnx_group_norm, flax_group_norm, GRID),
        Layer(EQUINOX, "linear", "nn.Linear(4, 3)", eqx_linear, equinox_linear),
        Layer(
            EQUINOX,
            "linear-of-each",
            "jax.vmap(nn.Linear(4, 3))",
            lambda: jax.vmap(eqx_linear()),
            equinox_linear_of_each,
            GRID,
        ),
        Layer(
            EQUINOX,
            "linear-of-each-square",
            "jax.vmap(nn.Linear(4, 4))",
            lambda: jax.vmap(eqx_linear(4)),
            equinox_square_of_each,
            SQUARE,
        ),
        Layer(EQUINOX, "layer-norm", "nn.LayerNorm(4)", eqx_layer_norm, equinox_layer_norm),
        Layer(
            EQUINOX, "group-norm", "nn.GroupNorm(2, 4)", eqx_group_norm, equinox_group_norm, SQUARE
        ),
        Layer(EQUINOX, "conv1d", "nn.Conv1d(4, 2, 3)", eqx_conv1d, equinox_conv1d, SQUARE),
        Layer(EQUINOX, "conv2d", "nn.Conv2d(2, 3, 3)", eqx_conv2d, equinox_conv2d, BATCH),
        Layer(EQUINOX, "mlp", "nn.MLP(4, 3, 5, 1)", eqx_mlp, equinox_mlp),
    )
}


def of_layer(impl: Any, cluster: Any, key: str) -> None:
    """A layer of one row, as a pmap body and, unchanged, as a shard_map body."""
    layer = LAYERS[key]
    run(impl, cluster, layer.build(), layer.model, mixed(*layer.shape))


for _key_of_layer, _layer in LAYERS.items():
    clause(
        f"rank.{_key_of_layer}",
        claim=f"migrate-pmap.rank-{_layer.library}-layers",
        needs=devices(2),
        expect=sensitive(_layer.model, mixed(*_layer.shape)),
        parameters={"key": _key_of_layer},
        title=f"`{_layer.said}` of {_layer.shape} per device, unchanged in shard_map",
        requires=(_layer.library,),
    )(of_layer)
