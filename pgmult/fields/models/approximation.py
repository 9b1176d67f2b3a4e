r"""The Gaussian near the posterior of a multinomial Gaussian process: what exact moves go around.

Sites (J, h) in the likelihood's place, from expected curvatures (`StickBreaking.expected_sites`) at
the means and variances that they themselves lead to: the nearest Gaussian in the sense of
KL(q || posterior) (Opper and Archambeau 2009, "The variational Gaussian approximation revisited").
Variances are those of a few draws, which every structure has; a Gaussian around the mode would be
far worse where counts are small. Where hyperparameters are sampled, the sites are those at the mode
of their density given the sites.

What is left of the likelihood is the *correction*, log L(psi) - sum(h psi - J psi^2 / 2), a sum
over the sites of a stick. Its variance under the approximation, the `spread`, tells how near that
is: 0.1 for hundreds of sites of names at full counts, 1 for thousands of sites of few counts.

>>> import numpy as np
>>> from pgmult.fields import MultinomialGP, as_field
>>> from pgmult.fields.covariances import Matern
>>> data = as_field(np.arange(3.0), [[0, 9000], [1, 8000], [0, 9500]])
>>> found = approximation(MultinomialGP(Matern(0.5), hyperparameters="fixed"), data)
>>> bool(found.spread.max() < 0.5)
True
"""

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pgmult.core.potentials import DiagonalPotential
from pgmult.core.typing import FloatArray
from pgmult.fields.data import CountField
from pgmult.fields.priors.field import Field, Trend
from pgmult.fields.updates import Guess, laplace

if TYPE_CHECKING:
    from pgmult.fields.models.multinomial_gp import MultinomialGP

__all__ = ["Approximation", "Around", "approximation", "around"]

_ROUNDS = 4  # of a search for sites
_DRAWS = 6  # that tell variances in a round
_SPREAD_DRAWS = 20


class Approximation(NamedTuple):
    """Of the posterior, found from the data and the covariance that the model comes with.

    Attributes
    ----------
    potential : DiagonalPotential, ``(num_sites, num_categories - 1)``
        In the likelihood's place.
    guess : Guess
        The law that the log hyperparameters roughly have; without spread where they are fixed.
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
    model: "MultinomialGP", potential: DiagonalPotential, log_params: bytes, data: CountField
) -> Around:
    """At hyperparameters given as the bytes of their logarithms: a sweep asks again and again."""
    theta, trend = model.start(data), model.trend(data)
    theta = np.frombuffer(log_params).reshape(theta.shape)
    field = model.field(theta, np.zeros_like(trend.centre), data).condition(potential)
    return Around(field, trend, joined(*field.mean_with_trend(trend)))


@lru_cache(maxsize=16)
def approximation(model: "MultinomialGP", data: CountField) -> Approximation:
    """Found once for a model and its data, by a stream of its own."""
    rng = np.random.default_rng(0)
    link, counts, trend = model.link(data), data.site_counts(), model.trend(data)
    theta, potential = model.start(data), model.first_guess(data)

    def field_at(theta: FloatArray, potential: DiagonalPotential) -> Field:
        return model.field(theta, np.zeros_like(trend.centre), data).condition(potential)

    def refined(
        theta: FloatArray, potential: DiagonalPotential
    ) -> tuple[DiagonalPotential, FloatArray, FloatArray]:
        total = np.zeros_like(potential.J)
        for i in range(_ROUNDS):
            field = field_at(theta, potential)
            mean, _ = field.mean_with_trend(trend)
            draws = (field.sample_with_trend(rng, trend)[0] for _ in range(_DRAWS))
            var = np.mean([(draw - mean) ** 2 for draw in draws], axis=0)
            total += (i + 1.0) * var  # early rounds are far from the end
            var = 2.0 * total / ((i + 1.0) * (i + 2.0))
            potential = _proper(link.expected_sites(mean, var, counts))
        return potential, mean, var

    potential, mean, var = refined(theta, potential)
    guess = Guess(theta, np.zeros((*theta.shape, theta.shape[1])))
    if model._samples_theta:
        guess = laplace(model.collapsed(potential, data), theta)
        potential, mean, var = refined(guess.mean, potential)
        guess = laplace(model.collapsed(potential, data), guess.mean)
    found = Approximation(potential, guess, np.zeros(counts.shape[1] - 1), mean, var)
    field, (taken, reaching) = field_at(guess.mean, potential), model.binomials(data)
    spread = np.var(
        [
            found.correction(field.sample_with_trend(rng, trend)[0], taken, reaching)
            for _ in range(_SPREAD_DRAWS)
        ],
        axis=0,
    )
    return found._replace(spread=spread)


def _proper(potential: DiagonalPotential) -> DiagonalPotential:
    """Where J underflowed, nothing: fields divide by its root."""
    kept = potential.J > 1e-12
    return DiagonalPotential(np.where(kept, potential.J, 0.0), np.where(kept, potential.h, 0.0))
