"""Functions of JAX's libraries by family, each as a call of a row and of an unmapped array.

A row is three positive numbers; the unmapped array, equal on all devices, is of the same shape. A
function of one array is called with each of them, one of two with both orders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax.scipy.optimize import minimize
from jax.scipy.sparse.linalg import bicgstab, cg, gmres

lax, nn, random = jax.lax, jax.nn, jax.random

Function = Callable[..., Any]

WIDTH = 3


def matrix(x: Any) -> Any:
    """A positive definite matrix of a row."""
    return jnp.outer(x, x) + jnp.diag(x + 1)


def of_matrix(function: Function) -> Function:
    """The function of such a matrix."""
    return lambda x: function(matrix(x))


def grid(x: Any) -> Any:
    """A picture of a row, as convolutions take it: one example, one channel, 3 by 3."""
    return jnp.outer(x, x)[None, None]


@dataclass(frozen=True, slots=True)
class Functions:
    """A family: functions of one array, of two, and of a key."""

    key: str
    text: str
    one: Mapping[str, Function]
    two: Mapping[str, Function]
    keyed: Mapping[str, Function]
    refused: bool = False  # by shard_map's types, some of them

    def cases(self) -> dict[str, Function]:
        """Every call, of a row `x` and the unmapped `w`; a key is mapped, `k`, or not, `q`."""
        found: dict[str, Function] = {}
        for name, f in self.one.items():
            found[name] = lambda x, w, k, q, f=f: f(x)
            found[f"{name}, equal"] = lambda x, w, k, q, f=f: f(w)
        for name, f in self.two.items():
            found[name] = lambda x, w, k, q, f=f: f(x, w)
            found[f"{name}, swapped"] = lambda x, w, k, q, f=f: f(w, x)
        for name, f in self.keyed.items():
            found[name] = lambda x, w, k, q, f=f: f(k, x)
            found[f"{name}, equal key"] = lambda x, w, k, q, f=f: f(q, x)
            found[f"{name}, equal"] = lambda x, w, k, q, f=f: f(q, w)
        return found


def functions(
    key: str,
    text: str,
    one: Mapping[str, Function] | None = None,
    two: Mapping[str, Function] | None = None,
    keyed: Mapping[str, Function] | None = None,
    *,
    refused: bool = False,
) -> Functions:
    """A family of these."""
    return Functions(key, text, one or {}, two or {}, keyed or {}, refused)


def _interpolated(x: Any, y: Any) -> Any:
    return jsp.interpolate.RegularGridInterpolator((jnp.arange(3.0),), x)(y % 2)


def _minimised(x: Any, y: Any) -> Any:
    result = minimize(lambda v: ((v - x) ** 2).sum(), y, method="BFGS")
    return jnp.round(result.x, 2)


def _solved(solver: Function) -> Function:
    return lambda x, y: jnp.round(solver(matrix(x), y)[0], 2)


def _attention(x: Any, y: Any) -> Any:
    q, k = (jnp.outer(one, one)[None, :, None] for one in (x, y))
    return nn.dot_product_attention(q, k, k)


def _convolved(x: Any, y: Any) -> Any:
    return lax.conv_general_dilated(grid(x), grid(y)[:, :, :2, :2], (1, 1), "SAME")


def _pooled(x: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (2,), (1,), "VALID")


def _root(x: Any) -> Any:
    def solve(f: Function, guess: Any) -> Any:
        return lax.fori_loop(0, 20, lambda _, y: y - f(y) / (2 * y), guess)

    def tangent(g: Function, y: Any) -> Any:
        return y / g(jnp.ones_like(y))

    return lax.custom_root(lambda y: y**2 - x, x, solve, tangent)


def _masked(x: Any) -> Any:
    return jnp.sum(x < 3, where=np.arange(WIDTH) > 0) > 1


def _chosen(key: Any, x: Any) -> Any:
    chances = jnp.ones(WIDTH) / WIDTH
    return jax.vmap(lambda k: random.choice(k, WIDTH, (2,), p=chances))(random.split(key, 2))


FAMILIES: Mapping[str, Functions] = {
    one.key: one
    for one in (
        functions(
            "numpy-elementwise",
            "elementwise functions of jax.numpy",
            {
                "sin": jnp.sin,
                "clip": lambda x: jnp.clip(x, 2, 5),
                "nan_to_num": jnp.nan_to_num,
                "sinc": jnp.sinc,
                "i0": jnp.i0,
                "frexp": jnp.frexp,
            },
            {
                "add": jnp.add,
                "power": lambda x, y: jnp.power(x, y % 3),
                "where": lambda x, y: jnp.where(x > y, x, y),
                "logaddexp": jnp.logaddexp,
                "arctan2": jnp.arctan2,
                "isclose": jnp.isclose,
                "select": lambda x, y: jnp.select([x > 3, y > 3], [x, y], 0.0),
                "piecewise": lambda x, y: jnp.piecewise(x, [y > 3], [lambda v: v * 2, 1.0]),
                "vectorize": lambda x, y: jnp.vectorize(lambda a, b: a * b)(x, y),
            },
            refused=True,
        ),
        functions(
            "numpy-reductions",
            "reductions of jax.numpy",
            {
                "sum": jnp.sum,
                "mean-where": lambda x: jnp.mean(x, where=jnp.arange(WIDTH) > 0),
                "var": jnp.var,
                "median": jnp.median,
                "quantile": lambda x: jnp.quantile(x, 0.3),
                "cumsum": jnp.cumsum,
                "argmax": jnp.argmax,
                "nanmean": jnp.nanmean,
                "count_nonzero": jnp.count_nonzero,
                "diff": jnp.diff,
                "cov": jnp.cov,
            },
            {
                "average": lambda x, y: jnp.average(x, weights=y),
                "allclose": jnp.allclose,
                "array_equal": jnp.array_equal,
            },
        ),
        functions(
            "numpy-products",
            "products of jax.numpy",
            {},
            {
                "dot": jnp.dot,
                "matmul": lambda x, y: matrix(x) @ y,
                "einsum": lambda x, y: jnp.einsum("i,j->ij", x, y),
                "tensordot": lambda x, y: jnp.tensordot(matrix(x), matrix(y), 1),
                "outer": jnp.outer,
                "kron": jnp.kron,
                "cross": jnp.cross,
                "vdot": jnp.vdot,
            },
        ),
        functions(
            "numpy-linalg",
            "jax.numpy.linalg",
            {
                "inv": of_matrix(jnp.linalg.inv),
                "det": of_matrix(jnp.linalg.det),
                "slogdet": of_matrix(jnp.linalg.slogdet),
                "cholesky": of_matrix(jnp.linalg.cholesky),
                "qr": of_matrix(lambda m: jnp.abs(jnp.linalg.qr(m)[1])),
                "svd": of_matrix(lambda m: jnp.linalg.svd(m, compute_uv=False)),
                "eigh": of_matrix(jnp.linalg.eigvalsh),
                "eig": of_matrix(lambda m: jnp.sort(jnp.linalg.eigvals(m).real)),
                "pinv": of_matrix(jnp.linalg.pinv),
                "norm": jnp.linalg.norm,
                "matrix_power": of_matrix(lambda m: jnp.linalg.matrix_power(m, 3)),
                "matrix_rank": of_matrix(jnp.linalg.matrix_rank),
            },
            {
                "solve": lambda x, y: jnp.linalg.solve(matrix(x), y),
                "lstsq": lambda x, y: jnp.linalg.lstsq(matrix(x), y)[0],
            },
        ),
        functions(
            "numpy-sorting",
            "sorting and searching of jax.numpy",
            {
                "sort": jnp.sort,
                "argsort": jnp.argsort,
                "unique": lambda x: jnp.unique(x % 2, size=WIDTH),
                "partition": lambda x: jnp.partition(x, 1)[1],
                "histogram": lambda x: jnp.histogram(x, bins=4, range=(0.0, 9.0)),
                "bincount": lambda x: jnp.bincount(x.astype(int) % 4, length=4),
                "nonzero": lambda x: jnp.nonzero(x > 3, size=WIDTH),
                "lexsort": lambda x: jnp.lexsort((x, -x)),
                "flatnonzero": lambda x: jnp.flatnonzero(x > 3, size=2, fill_value=0),
            },
            {
                "searchsorted": lambda x, y: jnp.searchsorted(jnp.sort(x), y),
                "digitize": lambda x, y: jnp.digitize(x, jnp.sort(y)),
                "isin": jnp.isin,
                "setdiff1d": lambda x, y: jnp.setdiff1d(x, y, size=WIDTH),
                "intersect1d": lambda x, y: jnp.intersect1d(x, y, size=WIDTH),
            },
        ),
        functions(
            "numpy-indexing",
            "indexing and updates",
            {
                "roll": lambda x: jnp.roll(x, 1),
                "set-constant": lambda x: x.at[1].set(0.0),
                "zeros-updated": lambda x: jnp.zeros(WIDTH).at[1].set(x[0]),
                "zeros-added": lambda x: jnp.zeros(WIDTH).at[jnp.array([0, 0, 1])].add(x),
                "take": lambda x: jnp.take(x, jnp.array([2, 0])),
                "dynamic-index": lambda x: x[x.astype(int)[0] % WIDTH],
                "fill_diagonal": of_matrix(lambda m: jnp.fill_diagonal(m, 0.0, inplace=False)),
            },
            {
                "at-set": lambda x, y: x.at[0].set(y[0]),
                "at-add": lambda x, y: x.at[jnp.array([0, 0, 1])].add(y),
                "at-max": lambda x, y: x.at[1:].max(y[1:]),
                "at-traced": lambda x, y: x.at[y.astype(int) % WIDTH].mul(2.0),
                "take_along_axis": lambda x, y: jnp.take_along_axis(x, y.astype(int) % WIDTH, 0),
            },
        ),
        functions(
            "numpy-shapes",
            "shapes of jax.numpy",
            {
                "pad": lambda x: jnp.pad(x, 1),
                "pad-reflect": lambda x: jnp.pad(x, 1, mode="reflect"),
                "tile": lambda x: jnp.tile(x, 2),
                "repeat": lambda x: jnp.repeat(x, jnp.array([2, 1, 0]), total_repeat_length=3),
                "diag": jnp.diag,
                "tril": of_matrix(jnp.tril),
                "vander": jnp.vander,
            },
            {
                "concatenate": lambda x, y: jnp.concatenate([x, y]),
                "stack": lambda x, y: jnp.stack([x, y]),
                "append": jnp.append,
                "insert": lambda x, y: jnp.insert(x, 1, y[0]),
                "meshgrid": jnp.meshgrid,
                "broadcast_arrays": jnp.broadcast_arrays,
                "block": lambda x, y: jnp.block([[x], [y]]),
            },
        ),
        functions(
            "numpy-signals",
            "polynomials, interpolation and convolution of jax.numpy",
            {
                "trapezoid": jnp.trapezoid,
                "gradient": jnp.gradient,
                "roots": lambda x: jnp.sort(jnp.abs(jnp.roots(x, strip_zeros=False))),
                "unwrap": jnp.unwrap,
            },
            {
                "convolve": jnp.convolve,
                "correlate": jnp.correlate,
                "interp": lambda x, y: jnp.interp(x, jnp.sort(y), y),
                "polyval": jnp.polyval,
                "polyfit": lambda x, y: jnp.round(jnp.polyfit(jnp.arange(3.0), x + y, 1), 2),
                "polymul": jnp.polymul,
            },
            refused=True,
        ),
        functions(
            "numpy-fft",
            "jax.numpy.fft",
            {
                "fft": jnp.fft.fft,
                "rfft": jnp.fft.rfft,
                "irfft": lambda x: jnp.fft.irfft(x, 4),
                "fft2": of_matrix(jnp.fft.fft2),
                "fftshift": jnp.fft.fftshift,
            },
        ),
        functions(
            "scipy-special",
            "jax.scipy.special",
            {
                "gammaln": jsp.special.gammaln,
                "digamma": jsp.special.digamma,
                "erfinv": lambda x: jsp.special.erfinv(1 / (x + 1)),
                "i0e": jsp.special.i0e,
                "expi": jsp.special.expi,
                "exp1": jsp.special.exp1,
                "ndtri": lambda x: jsp.special.ndtri(1 / (x + 1)),
                "spence": jsp.special.spence,
                "logsumexp": jsp.special.logsumexp,
            },
            {
                "betainc": lambda x, y: jsp.special.betainc(x, y, 0.5),
                "gammainc": jsp.special.gammainc,
                "zeta": lambda x, y: jsp.special.zeta(x + 1, y),
                "xlogy": jsp.special.xlogy,
                "rel_entr": jsp.special.rel_entr,
                "hyp1f1": lambda x, y: jsp.special.hyp1f1(1.0, x, 1 / y),
            },
            refused=True,
        ),
        functions(
            "scipy-linalg",
            "jax.scipy.linalg",
            {
                "expm": of_matrix(lambda m: jsp.linalg.expm(m / 100)),
                "lu": of_matrix(jsp.linalg.lu),
                "schur": of_matrix(lambda m: jnp.sort(jnp.diag(jsp.linalg.schur(m)[0]))),
                "polar": of_matrix(lambda m: jsp.linalg.polar(m)[1]),
                "sqrtm": of_matrix(lambda m: jnp.round(jsp.linalg.sqrtm(m).real, 2)),
                "toeplitz": jsp.linalg.toeplitz,
                "eigh_tridiagonal": lambda x: jsp.linalg.eigh_tridiagonal(
                    x, x[1:], eigvals_only=True
                ),
            },
            {
                "solve_triangular": lambda x, y: jsp.linalg.solve_triangular(matrix(x), y),
                "cho_solve": lambda x, y: jsp.linalg.cho_solve(jsp.linalg.cho_factor(matrix(x)), y),
                "block_diag": lambda x, y: jsp.linalg.block_diag(matrix(x), y),
            },
            refused=True,
        ),
        functions(
            "scipy-solvers",
            "solvers of jax.scipy",
            {},
            {
                "cg": _solved(cg),
                "gmres": _solved(gmres),
                "bicgstab": _solved(bicgstab),
                "minimize": _minimised,
                "interpolator": _interpolated,
                "map_coordinates": lambda x, y: jsp.ndimage.map_coordinates(x, [y % 2], 1),
                "signal.convolve": jsp.signal.convolve,
                "fftconvolve": jsp.signal.fftconvolve,
            },
            refused=True,
        ),
        functions(
            "scipy-stats",
            "jax.scipy.stats",
            {
                "rankdata": jsp.stats.rankdata,
                "mode": lambda x: jsp.stats.mode(x)[0],
            },
            {
                "norm.logpdf": jsp.stats.norm.logpdf,
                "gamma.logpdf": jsp.stats.gamma.logpdf,
                "beta.cdf": lambda x, y: jsp.stats.beta.cdf(0.3, x, y),
                "poisson.cdf": jsp.stats.poisson.cdf,
                "t.logpdf": jsp.stats.t.logpdf,
                "multivariate_normal": lambda x, y: jsp.stats.multivariate_normal.logpdf(
                    x, y, matrix(y)
                ),
                "gaussian_kde": lambda x, y: jsp.stats.gaussian_kde(x).evaluate(y),
            },
        ),
        functions(
            "nn",
            "jax.nn",
            {
                "relu": nn.relu,
                "gelu": nn.gelu,
                "softmax": nn.softmax,
                "softmax-where": lambda x: nn.softmax(x, where=jnp.arange(WIDTH) > 0),
                "one_hot": lambda x: nn.one_hot(x.astype(int), 4),
                "standardize": nn.standardize,
                "logsumexp": nn.logsumexp,
                "log_softmax-gradient": lambda x: jax.grad(lambda v: nn.log_softmax(v)[0])(x),
                "relu-gradient": lambda x: jax.grad(lambda v: nn.relu(v - 3).sum())(x),
            },
            {
                "attention": _attention,
            },
        ),
        functions(
            "lax",
            "jax.lax",
            {
                "reduce_window": _pooled,
                "reduce_window-gradient": lambda x: jax.grad(lambda v: _pooled(v).sum())(x),
                "cummax": lax.cummax,
                "associative_scan": lambda x: lax.associative_scan(jnp.add, x),
                "top_k": lambda x: lax.top_k(x, 2),
                "approx_max_k": lambda x: lax.approx_max_k(x, 1)[0],
                "reduce": lambda x: lax.reduce(x, 0.0, lax.add, (0,)),
                "custom_root": _root,
                "map": lambda x: lax.map(lambda v: v * 2, x),
                "dynamic_slice": lambda x: lax.dynamic_slice(x, (1,), (2,)),
                "conv-gradient": lambda x: jax.grad(lambda v: _convolved(v, v).sum())(x),
                "reduce_precision": lambda x: lax.reduce_precision(x, 5, 10),
            },
            {
                "conv": _convolved,
                "dot_general": lambda x, y: lax.dot_general(x, y, (((0,), (0,)), ((), ()))),
                "dynamic_update_slice": lambda x, y: lax.dynamic_update_slice(x, y[:1], (1,)),
                "dynamic_slice-traced": lambda x, y: lax.dynamic_slice(
                    x, (y[0].astype(int) % 2,), (2,)
                ),
                "sort": lambda x, y: lax.sort((x, y), num_keys=1),
                "select": lambda x, y: lax.select(x > y, x, y),
                "clamp": lambda x, y: lax.clamp(2.0, x, y),
                "map-closure": lambda x, y: lax.map(lambda v: v * y, x),
            },
        ),
        functions(
            "random-simple",
            "samplers of jax.random without a loop",
            keyed={
                "bits": lambda k, x: random.bits(k, (WIDTH,)),
                "uniform": lambda k, x: random.uniform(k, (WIDTH,)) * x,
                "uniform-bounds": lambda k, x: random.uniform(k, (WIDTH,), minval=0, maxval=x),
                "normal": lambda k, x: random.normal(k, (WIDTH,)) * x,
                "randint": lambda k, x: random.randint(k, (WIDTH,), 0, x.astype(int) + 1),
                "bernoulli": lambda k, x: random.bernoulli(k, 1 / (x + 1)),
                "categorical": random.categorical,
                "truncated_normal": lambda k, x: random.truncated_normal(k, -x, x),
                "exponential": lambda k, x: random.exponential(k, (WIDTH,)) * x,
                "gumbel": lambda k, x: random.gumbel(k, (WIDTH,)) * x,
                "laplace": lambda k, x: random.laplace(k, (WIDTH,)) * x,
                "multivariate_normal": lambda k, x: jnp.round(
                    random.multivariate_normal(k, x, matrix(x)), 2
                ),
                "split": lambda k, x: random.key_data(random.split(k)),
                "fold_in": lambda k, x: random.key_data(random.fold_in(k, x[0].astype(int))),
            },
        ),
        functions(
            "random-permuting",
            "permutations and choices of jax.random",
            keyed={
                "permutation": random.permutation,
                "choice": lambda k, x: random.choice(k, x, (2,)),
                "choice-p": lambda k, x: random.choice(k, WIDTH, (2,), p=x / x.sum()),
                "choice-without": lambda k, x: random.choice(k, x, (2,), replace=False),
                "orthogonal": lambda k, x: jnp.abs(random.orthogonal(k, 2)),
                "ball": lambda k, x: random.ball(k, 2),
            },
        ),
        functions(
            "random-looping",
            "samplers of jax.random that loop",
            keyed={
                "gamma": random.gamma,
                "loggamma": random.loggamma,
                "beta": lambda k, x: random.beta(k, x, x),
                "dirichlet": random.dirichlet,
                "poisson": random.poisson,
                "binomial": lambda k, x: random.binomial(k, x, 0.3),
                "t": lambda k, x: random.t(k, x, (WIDTH,)),
                "chisquare": random.chisquare,
                "generalized_normal": lambda k, x: random.generalized_normal(k, 2.0, (WIDTH,)) * x,
                "geometric": lambda k, x: random.geometric(k, 1 / (x + 1)),
                "wald": random.wald,
            },
            refused=True,
        ),
        functions(
            "without-a-rule",
            "functions that an early shard_map had no rule for",
            {
                "erf": jsp.special.erf,
                "erfinv": lambda x: jsp.special.erfinv(1 / (x + 1)),
                "gelu": lambda x: nn.gelu(x, approximate=False),
                "sum-where": jax.jit(jax.vmap(_masked, axis_size=2, in_axes=None)),
            },
            {"conv": _convolved},
        ),
        functions(
            "random-choosing",
            "jax.random.choice under vmap, with constant probabilities",
            keyed={"choice-p": _chosen},
            refused=True,
        ),
    )
}


def rows(count: int) -> Any:
    """One row for each device."""
    return 1 + np.arange(count * WIDTH, dtype=np.float32).reshape(count, WIDTH) % 7


WHOLE = np.array([4, 1, 2], np.float32)

CLAIM = "pmap-silence.library-functions"
LEFT_OUT = "the body uses its own device's row only"
STEP = "all functions"
COUNT = 8  # devices
SHOWN = 60  # characters of an error
AXES = (0, None, 0, None)  # a row, an unmapped array, a mapped key, an unmapped key


def keys() -> Any:
    """A raw key for each device."""
    return np.array([(0, seed) for seed in range(COUNT)], np.uint32)


KEY = np.array((7, 9), np.uint32)


def called(
    functions: Functions, raised: dict[str, str], only: list[str] | None = None
) -> Callable[..., Any]:
    """A body that calls the functions, of which what raises is noted; `only` are those called."""

    def body(x: Any, w: Any, k: Any, q: Any) -> dict[str, Any]:
        results = {}
        wrap = jax.random.wrap_key_data
        for name, case in functions.cases().items():
            if only is not None and name not in only:
                continue
            try:
                results[name] = case(x, w, wrap(k), wrap(q))
            except Exception as error:
                text = " ".join(str(error).split())[:SHOWN]
                raised[name] = f"{type(error).__name__}: {text}"
        return results

    return body
