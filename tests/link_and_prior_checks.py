"""Checks of links and Gaussian priors: do their methods agree with each other?

Louis, T. (1982). Finding the observed information matrix when using the EM algorithm. Journal of
the Royal Statistical Society B 44, 226-233. (What augmentations must have on average.)
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.stats

from pgmult.core.potentials import DensePotential, DiagonalPotential
from pgmult.core.typing import FloatArray, Link
from pgmult.testing.sampling import conditional_ratio, require

_LEVEL = 1e-5  # of all statistics together: a right part fails once in 100,000 seeds
_STEP = 1e-4  # of finite differences: errors near 1e-8


def check_link(
    link: Link, num_categories: int, *, replicates: int = 20_000, random_seed: int = 0
) -> None:
    """Check everything that samplers and fits rely on in a link.

    Checks that `probs` are probabilities and `inverse` undoes them; that `log_likelihood` is that
    of `probs` and the law of `simulate`; that `augment`, `expected` and `quadratic` are 0 where
    nothing was counted; that `quadratic` has the gradient and the Hessian of the log likelihood, by
    finite differences; that `expected` for a known psi is a bound that touches there; and that for
    what `augment` draws, with S = h - J psi, the gradient is E S and the Hessian E S S' - E J, as
    for any augmentation (Louis 1982). A link may refuse `augment`, as a softmax must, with a
    TypeError.

    Parameters
    ----------
    link : Link
    num_categories : int
    replicates : int
        Draws of `simulate` and `augment`.
    random_seed : int

    Raises
    ------
    AssertionError
        At the first thing that is wrong.
    """
    K, rng = num_categories, np.random.default_rng(random_seed)
    for name in ("probs", "inverse", "log_likelihood", "simulate", "expected", "quadratic"):
        require(callable(getattr(link, name, None)), f"link must have a method {name}")
    size = np.shape(link.inverse(np.full(K, 1.0 / K)))[-1]
    psi = rng.normal(scale=1.5, size=(12, size))
    pi = np.asarray(link.probs(psi))
    require(pi.shape == (12, K), f"probs must have shape (12, {K}), got {pi.shape}")
    require((pi > 0.0).all(), "probs must be positive")
    _close("probs must sum to 1", pi.sum(axis=1), 1.0)
    _close("inverse must undo probs", link.probs(link.inverse(pi)), pi)

    counts = rng.multinomial(rng.integers(1, 9, size=12), rng.dirichlet(np.ones(K), size=12))
    value = np.asarray(link.log_likelihood(psi, counts))
    _close("log_likelihood must be counts times log probs", value, (counts * np.log(pi)).sum(1))
    totals = np.arange(4) % 3
    drawn = link.simulate(rng, psi[:4], totals)
    require(np.array_equal(drawn.sum(axis=1), totals), "simulate must keep the totals")
    for row in range(3):
        seen = link.simulate(rng, psi[row], np.full(replicates, 2)).sum(axis=0)
        p_value = scipy.stats.chisquare(seen, 2 * replicates * pi[row]).pvalue
        require(p_value > _LEVEL / 3, f"simulate must draw from probs, got p = {p_value:.2g}")

    nothing = np.zeros_like(counts)
    for name, potential in _potentials(link, rng, psi, nothing):
        require(
            not np.any(potential.J) and not np.any(potential.h),
            f"{name} must have J = h = 0 where nothing was counted",
        )
    gradient, hessian = _derivatives(lambda x: link.log_likelihood(x, counts), psi)
    for name, potential in _potentials(link, rng, psi, counts):
        if name != "augment":
            slope = potential.h - _times(potential, psi)
            _close(f"{name} must have the slope h - J psi of log_likelihood", slope, gradient, 1e-6)
    _close(
        "quadratic must have J of minus the Hessian of log_likelihood",
        _matrices(link.quadratic(psi, counts)), -hessian, 1e-5,
    )  # fmt: skip
    bound = link.expected(psi, np.zeros_like(psi), counts)
    for _ in range(20):
        other = psi + rng.normal(scale=3.0, size=psi.shape)
        gap = link.log_likelihood(other, counts) - _value(bound, other)
        least = link.log_likelihood(psi, counts) - _value(bound, psi)
        require((gap >= least - 1e-9).all(), "expected must give a bound from below")
    for row in range(3):
        _check_augmentation(
            link, rng, psi[row], counts[row], gradient[row], hessian[row], replicates
        )


def _check_augmentation(
    link: Link,
    rng: np.random.Generator,
    psi: FloatArray,
    counts: Any,
    gradient: FloatArray,
    hessian: FloatArray,
    replicates: int,
) -> None:
    """The two identities of an augmentation, by the mean over many draws."""
    many = np.tile(psi, (replicates, 1))
    try:
        drawn = link.augment(rng, many, np.tile(counts, (replicates, 1)))
    except TypeError:
        return
    score = drawn.h - _times(drawn, many)
    outer = score[:, :, None] * score[:, None, :] - _matrices(drawn)
    outer = outer - gradient[:, None] * gradient
    for name, draws, expected in (("gradient", score, gradient), ("Hessian", outer, hessian)):
        error = draws.std(axis=0) / np.sqrt(replicates) + 1e-6
        z = np.abs(draws.mean(axis=0) - expected) / error
        p_value = 2.0 * z.size * float(scipy.stats.norm.sf(z.max()))
        require(
            p_value > _LEVEL,
            f"augment must have the {name} of log_likelihood on average, it is"
            f" {z.max():.1f} standard errors away",
        )


def check_prior(
    prior: Any,
    *,
    potential: DiagonalPotential | DensePotential | None = None,
    replicates: int = 5000,
    random_seed: int = 0,
) -> None:
    """Check everything that models rely on in a Gaussian prior.

    The Gaussian is assembled from differences of `log_density`, which are exact, so nothing is
    taken from the prior's own algebra. Checks that `condition` returns the same type and does not
    change the prior; that its density is the prior's times the potential, by `conditional_ratio`;
    and that `sample` draws what `log_density` says, before conditioning and after.

    Parameters
    ----------
    prior : Prior
        With methods ``sample(rng)``, ``condition(potential)`` and ``log_density(x)``, which is a
        number, or one for each row where a draw has rows.
    potential : DiagonalPotential or DensePotential, optional
        What to condition on: at random, and partly nothing, if left out.
    replicates : int
        Draws.
    random_seed : int

    Raises
    ------
    AssertionError
        At the first thing that is wrong.
    """
    rng = np.random.default_rng(random_seed)
    for name in ("sample", "condition", "log_density"):
        require(callable(getattr(prior, name, None)), f"prior must have a method {name}")
    x = np.asarray(prior.sample(rng))
    if potential is None:
        J = rng.gamma(1.0, size=x.shape) * (rng.random(x.shape) < 0.7)
        potential = DiagonalPotential(J, np.where(J > 0.0, rng.normal(size=x.shape), 0.0))
    before = np.asarray(prior.log_density(x))
    posterior = prior.condition(potential)
    require(
        type(posterior) is type(prior),
        f"condition must return a {type(prior).__name__}, got {type(posterior).__name__}",
    )
    require(
        np.array_equal(before, prior.log_density(x)), "condition must not change the prior itself"
    )
    points = [np.asarray(prior.sample(rng)) + rng.normal(size=x.shape) for _ in range(8)]
    conditional_ratio(
        lambda point: float(np.sum(prior.log_density(point) + _value(potential, point))),
        lambda point: float(np.sum(posterior.log_density(point))),
        points,
    )
    for name, law in (("a prior", prior), ("a conditioned prior", posterior)):
        one, other = (law.sample(np.random.default_rng(random_seed)) for _ in range(2))
        require(np.array_equal(one, other), f"sample of {name} must depend on rng alone")
        draws = np.array([law.sample(rng) for _ in range(replicates)])
        _check_draws(name, law, draws.reshape(replicates, -1, x.shape[-1]), x.shape)


def _check_draws(name: str, law: Any, draws: FloatArray, shape: tuple[int, ...]) -> None:
    """Means, covariances and shapes of draws, made white by what the density says."""
    gradient, hessian = _derivatives(law.log_density, np.zeros(shape), step=1.0)
    size = shape[-1]
    gradients, hessians = gradient.reshape(-1, size), hessian.reshape(-1, size, size)
    for row, (slope, curvature) in enumerate(zip(gradients, hessians, strict=True)):
        mean = np.linalg.solve(-curvature, slope)
        white = (draws[:, row] - mean) @ np.linalg.cholesky(-curvature)
        squares = white[:, :, None] * white[:, None, :]
        # products of two standard normal coordinates have variance 1, squares of one 2
        products = (squares.mean(axis=0) - np.eye(size)) / np.sqrt(1.0 + np.eye(size))
        scores = np.sqrt(len(draws)) * np.concatenate([white.mean(axis=0), products.ravel()])
        p_values = 2.0 * scipy.stats.norm.sf(np.abs(scores))
        p_values = np.append(p_values, [scipy.stats.kstest(u, "norm").pvalue for u in white.T])
        worst = len(p_values) * float(p_values.min())
        require(
            worst > _LEVEL,
            f"sample of {name} must draw what log_density says, got p = {worst:.2g} in row {row}",
        )


def _potentials(link: Any, rng: np.random.Generator, psi: FloatArray, counts: Any) -> Any:
    """Names of the methods that return a potential, and their potentials."""
    yield "quadratic", link.quadratic(psi, counts)
    yield "expected", link.expected(psi, np.zeros_like(psi), counts)
    try:
        yield "augment", link.augment(rng, psi, counts)
    except TypeError:
        return


def _matrices(potential: DiagonalPotential | DensePotential) -> FloatArray:
    return (potential.dense() if isinstance(potential, DiagonalPotential) else potential).J


def _times(potential: DiagonalPotential | DensePotential, x: FloatArray) -> FloatArray:
    if isinstance(potential, DiagonalPotential):
        return np.asarray(potential.J * x)
    return np.asarray(np.einsum("...ij,...j->...i", potential.J, x))


def _value(potential: DiagonalPotential | DensePotential, x: FloatArray) -> FloatArray:
    """-x' J x / 2 + h' x of every row."""
    return np.asarray((x * (potential.h - 0.5 * _times(potential, x))).sum(axis=-1))


def _derivatives(
    function: Callable[[FloatArray], Any], x: FloatArray, step: float = _STEP
) -> tuple[FloatArray, FloatArray]:
    """Gradient and Hessian of every row of a function of rows, by central differences."""
    size = x.shape[-1]
    moves = step * np.eye(size)
    up, down = (np.array([function(x + sign * move) for move in moves]) for sign in (1.0, -1.0))
    here = np.asarray(function(x))
    hessian = np.empty((*x.shape, size))
    for i in range(size):
        hessian[..., i, i] = (up[i] - 2.0 * here + down[i]) / step**2
        for j in range(i):
            both = function(x + moves[i] + moves[j]) + function(x - moves[i] - moves[j])
            mixed = both - up[i] - down[i] - up[j] - down[j] + 2.0 * here
            hessian[..., i, j] = hessian[..., j, i] = mixed / (2.0 * step**2)
    return np.moveaxis(up - down, 0, -1) / (2.0 * step), hessian


def _close(what: str, one: Any, other: Any, tol: float = 1e-9) -> None:
    gap = np.abs(np.asarray(one) - other) / (1.0 + np.abs(other))
    require(bool(np.max(gap) <= tol), f"{what}, they differ by {np.max(gap):.2g}")
