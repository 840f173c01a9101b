"""Layers of Flax, moved from a pmap body to a shard_map body as they are."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from conformance.sections.rank.bodies import (
    ONE_BLOCK,
    Refusal,
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
def of_flax(impl: Implementation, cluster: Cluster, layer: Layer) -> None:
    """A layer of Flax of one row, as a pmap body and, unchanged, as a shard_map body."""
    move(impl, cluster, layer.make(), layer.model, mixed(*layer.sizes))
