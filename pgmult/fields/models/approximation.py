r"""A Gaussian approximation of the posterior of a multinomial Gaussian process, for exact moves.

The likelihood of each site is replaced by a Gaussian potential (J, h). The search has two stages.
First the potentials are expected curvatures (`StickBreaking.expected_sites`) at the means and
variances that they imply: the Gaussian q that minimises KL(q || posterior) (Opper and Archambeau
2009, "The variational Gaussian approximation revisited"). Then each potential is changed so that
the moments of its site are those that the exact likelihood of the site would give (Minka 2001,
"Expectation propagation"). This makes q wide enough where counts are empty for years, and the
posterior has a long tail on one side; an expansion around the mode would be far worse for small
counts. Variances are estimated from a few draws, which every structure can make. Where
hyperparameters are sampled, the potentials are found at the mode of their density, and the mean and
covariance of that density are found as well.

The *correction* of a stick is its log likelihood less the potentials, log L(psi) - sum(h psi - J
psi^2 / 2) over the sites. Its variance under the approximation, the `spread`, measures the quality:
0.1 for hundreds of sites of names at full counts, 1 for thousands of sites of few counts.

>>> import numpy as np
>>> from pgmult.fields import MultinomialGP, as_field
>>> from pgmult.fields.covariances import Matern
>>> data = as_field(np.arange(3.0), [[0, 9000], [1, 8000], [0, 9500]])
>>> found = approximation(MultinomialGP(Matern(0.5), hyperparameters="fixed"), data)
>>> bool(found.spread.max() < 0.5)
True
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from pgmult.core.potentials import DiagonalPotential
from pgmult.core.typing import FloatArray
from pgmult.fields.data import CountField
from pgmult.fields.models.sticks import StickFields
from pgmult.fields.priors.field import Field, Trend
from pgmult.latent.hyperparameters import Guess, laplace, matched

__all__ = ["Approximation", "Around", "approximation", "around", "matching_sites", "slow_sites"]

_ROUNDS = 4  # of a search for sites
_DRAWS = 6  # that tell variances in a round, and twice as many later
_STEP = 0.7  # of the way to moments that match
_NODES = np.linspace(-7.0, 7.0, 36)  # in standard deviations
_SPREAD_DRAWS = 20
_SLOW = 0.02  # of a site's augmentation rate: one effective draw in a hundred sweeps


class Approximation(NamedTuple):
    """A Gaussian approximation of the posterior, from the data and the model's covariance.

    Attributes
    ----------
    potential : DiagonalPotential, ``(num_sites, num_categories - 1)``
        Replaces the likelihood.
    guess : Guess
        Approximate law of the log hyperparameters; its variances are 0 where they are fixed.
    spread : array, ``(num_categories - 1,)``
        Variance of each stick's correction.
    mean, var : array, ``(num_sites, num_categories - 1)``
        Of psi, roughly.
    """

    potential: DiagonalPotential
    guess: Guess
    spread: FloatArray
    mean: FloatArray
    var: FloatArray

    def correction(self, psi: FloatArray, taken: FloatArray, reaching: FloatArray) -> FloatArray:
        """Log likelihood less the potential of each stick, ``(num_categories - 1,)``."""
        J, h = self.potential.J, self.potential.h
        return np.asarray(
            np.sum(psi * (taken - h + 0.5 * J * psi) - reaching * np.logaddexp(0.0, psi), axis=0)
        )


class Around(NamedTuple):
    """The approximation at given hyperparameters: the law of (psi, beta), a stick a row.

    Attributes
    ----------
    field : Field
        Conditioned on the potential; the trend comes on top.
    trend : Trend
    centre : array, ``(num_categories - 1, num_sites + num_features)``
        Means.
    """

    field: Field
    trend: Trend
    centre: FloatArray

    def mean(self) -> FloatArray:
        """Means, a stick a row: of psi at the sites and after them of beta."""
        return self.centre

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """A draw of them."""
        return joined(*self.field.sample_with_trend(rng, self.trend))


def joined(psi: FloatArray, beta: FloatArray) -> FloatArray:
    """Psi and beta as rows of sticks."""
    return np.concatenate([psi, beta]).T


@lru_cache(maxsize=32)
def around(
    model: StickFields, potential: DiagonalPotential, log_params: bytes, data: CountField
) -> Around:
    """The approximation at hyperparameters given as the bytes of their logarithms, cached."""
    theta, trend = model.start(data), model.trend(data)
    theta = np.frombuffer(log_params).reshape(theta.shape)
    field = model.field(theta, np.zeros_like(trend.centre), data).condition(potential)
    return Around(field, trend, joined(*field.mean_with_trend(trend)))


@lru_cache(maxsize=16)
def approximation(model: StickFields, data: CountField) -> Approximation:
    """The approximation for a model and its data, found once, with random numbers of its own."""
    rng = np.random.default_rng(0)
    link, counts, trend = model.link(data), data.site_counts(), model.trend(data)
    taken, reaching = model.binomials(data)
    theta, potential = model.start(data), model.first_guess(data)

    def field_at(theta: FloatArray, potential: DiagonalPotential) -> Field:
        return model.field(theta, np.zeros_like(trend.centre), data).condition(potential)

    def refined(
        theta: FloatArray,
        potential: DiagonalPotential,
        num_draws: int,
        better: Callable[[DiagonalPotential, FloatArray, FloatArray], DiagonalPotential],
    ) -> tuple[DiagonalPotential, FloatArray, FloatArray]:
        total = np.zeros_like(potential.J)
        for i in range(_ROUNDS):
            field = field_at(theta, potential)
            mean, _ = field.mean_with_trend(trend)
            draws = (field.sample_with_trend(rng, trend)[0] for _ in range(num_draws))
            var = np.mean([(draw - mean) ** 2 for draw in draws], axis=0)
            total += (i + 1.0) * var  # early rounds are far from the end
            var = 2.0 * total / ((i + 1.0) * (i + 2.0))
            potential = _proper(better(potential, mean, var))
        return potential, mean, var

    def expected(
        potential: DiagonalPotential, mean: FloatArray, var: FloatArray
    ) -> DiagonalPotential:
        return link.expected_sites(mean, var, counts)

    def matching(
        potential: DiagonalPotential, mean: FloatArray, var: FloatArray
    ) -> DiagonalPotential:
        return matching_sites(potential, mean, var, taken, reaching)

    potential, mean, var = refined(theta, potential, _DRAWS, expected)
    guess = Guess(theta, np.zeros((*theta.shape, theta.shape[1])))
    if model.samples_theta:
        guess = laplace(model.collapsed(potential, data), theta)
    potential, mean, var = refined(guess.mean, potential, 2 * _DRAWS, matching)
    if model.samples_theta:
        collapsed = model.collapsed(potential, data)
        guess = matched(collapsed, laplace(collapsed, guess.mean))
    found = Approximation(potential, guess, np.zeros(counts.shape[1] - 1), mean, var)
    field = field_at(guess.mean, potential)
    spread = np.var(
        [
            found.correction(field.sample_with_trend(rng, trend)[0], taken, reaching)
            for _ in range(_SPREAD_DRAWS)
        ],
        axis=0,
    )
    return found._replace(spread=spread)


def matching_sites(
    potential: DiagonalPotential,
    mean: FloatArray,
    var: FloatArray,
    taken: FloatArray,
    reaching: FloatArray,
) -> DiagonalPotential:
    """A damped step to potentials that give psi ~ N(mean, var) the moments of its likelihood.

    The moments are sums over an even grid. All arrays are ``(num_sites, num_sticks)``. Where a
    potential equals the likelihood already, an error in `var` does not matter.
    """
    J, h = potential.J, potential.h
    var = np.maximum(var, 1e-200)
    sd = np.sqrt(var)

    def log_density(z: float) -> FloatArray:
        psi = mean + sd * z
        gain = psi * (taken - h + 0.5 * J * psi) - reaching * np.logaddexp(0.0, psi)
        return np.asarray(gain - 0.5 * z * z)

    top = np.max([log_density(z) for z in _NODES[::3]], axis=0)
    sums = np.zeros((3, *mean.shape))
    for z in _NODES:
        sums += np.exp(log_density(z) - top) * np.array([1.0, z, z * z])[:, None, None]
    centre = sums[1] / sums[0]
    precision = 1.0 / (sums[2] / sums[0] - centre * centre)
    more_J = _STEP * (precision - 1.0) / var
    more_h = _STEP * (precision * centre / sd + (precision - 1.0) / var * mean)
    proper = np.isfinite(more_J + more_h) & (J + more_J > 0.0)
    return DiagonalPotential(np.where(proper, J + more_J, J), np.where(proper, h + more_h, h))


def _proper(potential: DiagonalPotential) -> DiagonalPotential:
    """The potential with J and h set to 0 where J underflowed: fields divide by its root."""
    kept = potential.J > 1e-12
    return DiagonalPotential(np.where(kept, potential.J, 0.0), np.where(kept, potential.h, 0.0))


def slow_sites(rates: FloatArray, data: CountField) -> str | None:
    """The slowest category and where, in words, with its neighbours that are slow as well."""
    slow = rates < _SLOW
    if not slow.any():
        return None
    site, stick = np.unravel_index(int(np.argmin(rates)), rates.shape)
    column = int(np.argmax([len(np.unique(values)) for values in data.sites.T]))
    rest = np.delete(data.sites, column, axis=1)
    same = (rest == rest[site]).all(axis=1)
    at = np.flatnonzero(same)
    at = at[np.argsort(data.sites[at, column])]
    place = int(np.flatnonzero(at == site)[0])
    still = np.flatnonzero(~slow[at, stick])
    first = int(still[still < place].max(initial=-1)) + 1
    run = at[first : int(still[still > place].min(initial=len(at)))]
    category = int(data.order[stick])
    name = category if data.categories is None else data.categories[category]
    counts = data.site_counts()[run]
    ends = " to ".join(dict.fromkeys(data.site_label(int(end)) for end in (run[0], run[-1])))
    reaching = int(counts[:, data.order[stick:]].sum())
    return (
        f"Pólya-gamma sweeps will hardly move {np.count_nonzero(slow):,} of {slow.size:,} values of"
        f" psi, the least that of category {name} at {ends}: {int(counts[:, category].sum()):,} in"
        f" {reaching:,} that reach its stick, about {rates[site, stick] / 2.0:.1g} effective draws"
        ' a sweep (take method="slice" or "auto")'
    )
