"""Layers, losses and optimizers of flax, haiku and optax in a mapped body, and two solvers of JAX.

Each begins a loop or a branch with constants of its own, which shard_map's types tell from values
that vary. What each device computes is compared with the same function of its row outside a map.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.silences.answers import ONE_PROCESS_ALONE
from conformance.sections.silences.checking import CHECKS, Check, asked
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.expectation import returns, twice
from conformance.spec.family import family, table
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

LENGTH, WIDTH = 5, 4  # of a row: a sequence of vectors
SMALL = 0.01  # by which the rows are multiplied
RATE = 0.1  # of the descent
NEAR = 1e-3  # programs round differently
OTHERS, OWN = "pmap-silence.functions-of-other-libraries", "pmap-silence.library-functions"

Body = Callable[[Any], Any]


def recurrent() -> Body:
    """A recurrent layer of flax, whose state begins with zeros."""
    linen = importlib.import_module("flax.linen")
    layer = linen.RNN(linen.LSTMCell(WIDTH))
    weights = layer.init(jax.random.PRNGKey(0), np.ones((1, LENGTH, WIDTH), np.float32))
    return lambda x: layer.apply(weights, x[None])[0]


def unrolled() -> Body:
    """A recurrent core of haiku, from its initial state."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the import, which `idioms` tests
        haiku = importlib.import_module("haiku")

    def forward(x: Any) -> Any:
        core = haiku.LSTM(WIDTH)
        return haiku.dynamic_unroll(core, x, core.initial_state(None))[0]

    network = haiku.transform(forward)
    weights = network.init(jax.random.PRNGKey(0), np.ones((LENGTH, WIDTH), np.float32))
    return lambda x: network.apply(weights, None, x)


def aligned() -> Body:
    """optax's CTC loss of a sequence and two labels."""
    optax = importlib.import_module("optax")
    full, labels = np.zeros((1, LENGTH), np.float32), np.array([[1, 2]])
    return lambda x: optax.ctc_loss(x[None] ** 2, full, labels, np.zeros((1, 2), np.float32))[0]


def searched() -> Body:
    """A step of optax's lbfgs from zero, whose length its line search finds."""
    optax = importlib.import_module("optax")

    def body(x: Any) -> Any:
        def loss(weights: Any) -> Any:
            return jnp.sum((weights - x[0]) ** 2)

        transform, weights = optax.lbfgs(), jnp.zeros(WIDTH)
        value, gradient = jax.value_and_grad(loss)(weights)
        state = transform.init(weights)
        changes, _ = transform.update(
            gradient, state, weights, value=value, grad=gradient, value_fn=loss
        )
        return optax.apply_updates(weights, changes)

    return body


def accumulated() -> Body:
    """The second of two updates of optax's MultiSteps, whose state is made in the body."""
    optax = importlib.import_module("optax")

    def body(x: Any) -> Any:
        transform, weights = optax.MultiSteps(optax.sgd(RATE), 2), jnp.zeros(WIDTH)
        _, state = transform.update(x[0], transform.init(weights), weights)
        return transform.update(x[1], state, weights)[0]

    return body


def minimized() -> Body:
    minimize = importlib.import_module("jax.scipy.optimize").minimize

    def body(x: Any) -> Any:
        return minimize(lambda y: jnp.sum((y - x[0]) ** 2), jnp.zeros(WIDTH), method="BFGS").x

    return body


def integrated() -> Body:
    """The derivative of a solution of y' = -y^2 with respect to where it begins."""
    odeint = importlib.import_module("jax.experimental.ode").odeint

    def total(start: Any) -> Any:
        return odeint(lambda y, _: -y * y, start, np.linspace(0, 1, 3, dtype=np.float32)).sum()

    return lambda x: jax.grad(total)(x[0])


@dataclass(frozen=True, slots=True)
class Use:
    """A function of a library; `make` returns a body that calls it."""

    key: str
    text: str
    make: Callable[[], Body]
    requires: tuple[str, ...] = ()

    @property
    def claim(self) -> str:
        """The claim about the library: JAX's own have another."""
        return OTHERS if self.requires else OWN


USES: Mapping[str, Use] = table(
    Use("flax-rnn", "flax's nn.RNN", recurrent, ("flax",)),
    Use("haiku-unroll", "haiku's dynamic_unroll", unrolled, ("dm-haiku",)),
    Use("optax-ctc-loss", "optax.ctc_loss", aligned, ("optax",)),
    Use("optax-lbfgs", "optax.lbfgs with its line search", searched, ("optax",)),
    Use("optax-multi-steps", "optax.MultiSteps with a new state", accumulated, ("optax",)),
    Use("bfgs", 'jax.scipy.optimize.minimize(method="BFGS")', minimized),
    Use("odeint", "the gradient of jax.experimental.ode.odeint", integrated),
)


@described("each device's result is that of the same function outside a map")
def _all_equal(place: Place) -> Any:
    return np.ones(place.rows().shape, bool)


@family(
    "silences.library-bodies.{use}.{check}",
    use=USES,
    check=CHECKS,
    claim=lambda use: use.claim,
    title="A mapped body calls {use.text}{check.text}.",
    fact="silences.library-bodies.{use}",
    fixes=lambda use, check: None if check.on else f"silences.library-bodies.{use.key}.checked",
    needs=devices(2),
    left_out=ONE_PROCESS_ALONE,
    requires=lambda use: use.requires,
    expect=lambda check: asked(everywhere(twice(returns(_all_equal))), check),
)
def called(impl: Implementation, cluster: Cluster, use: Use, check: Check) -> None:
    """A map whose body calls the function, and a jit of that body for each row."""
    body, rows = use.make(), cluster.rows(LENGTH, WIDTH) * np.float32(SMALL)
    alone = jax.jit(body)
    expected = np.stack([np.asarray(alone(row)) for row in rows])
    mapped, given = impl.map(lambda x: body(x), check_vma=check.on), impl.given(rows)

    def compare() -> Any:
        results = np.asarray(mapped(given))
        close = np.isclose(results, expected, NEAR, NEAR / 10).reshape(len(rows), -1).all(axis=1)
        return close & (results.shape == expected.shape)

    cluster.twice(compare)
