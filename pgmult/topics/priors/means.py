"""The mean and covariance of psi, as a part of a topic model.

In every topic model with Gaussian psi, psi_d ~ N(mean_d, Sigma). Models differ in what mean_d
depends on, and each possibility is a part of its own: nothing (`ConstantMean`), covariates and
random terms (`pgmult.topics.priors.regression`), or the time of the document
(`pgmult.topics.priors.walk`). A part owns some fields of the model's state. It says where psi is
expected, what a block of documents contributes, and how its fields are drawn: so a model is its
words, its link and such a part.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pgmult.core.typing import FloatArray
from pgmult.priors import MvNormal, NormalInverseWishart
from pgmult.priors.gaussian import Moments
from pgmult.sampling.blocks import Sums

Fields = dict[str, Any]
"""New values of fields of a state, by name."""


class PsiMean(Protocol):
    """A part of a topic model: the prior of the mean and covariance of psi, and its updates."""

    def means(self, state: Any, data: Any) -> FloatArray:
        """Mean of psi, ``(num_documents, n)``, or ``(n,)`` where documents share it."""

    def sums(self, state: Any, psi: FloatArray, data: Any) -> Sums:
        """Sums over a block of documents for `given`: their number first, then sums over psi."""

    def given(self, rng: np.random.Generator, state: Any, sums: Sums, data: Any) -> Fields:
        """New values of the fields of this part, given sums over all documents."""

    def prior(self, rng: np.random.Generator, data: Any) -> tuple[FloatArray, Fields]:
        """Psi and the fields of this part, drawn from the prior."""

    def start(self, rng: np.random.Generator, psi: FloatArray, data: Any) -> Fields:
        """Fields that a chain starts from, given psi."""


@dataclass(frozen=True, slots=True, eq=False)
class ConstantMean:
    """psi_d ~ N(mu, Sigma), the same for every document; mu, Sigma ~ NIW. Fields: mu, Sigma.

    Attributes
    ----------
    gaussian : NormalInverseWishart
    """

    gaussian: NormalInverseWishart

    def means(self, state: Any, data: Any) -> FloatArray:
        """Mean of psi, ``(n,)``."""
        return np.asarray(state.mu)

    def sums(self, state: Any, psi: FloatArray, data: Any) -> Sums:
        """Number of documents; first and second moments of psi about the old mu."""
        moments = Moments.of(psi, state.mu)
        return Sums((np.array(moments.count),), (moments.total, moments.squares))

    def given(self, rng: np.random.Generator, state: Any, sums: Sums, data: Any) -> Fields:
        """Draw mu and Sigma given psi."""
        moments = Moments(int(sums.exact[0]), state.mu, *sums.rounded)
        mu, Sigma = self.gaussian.condition_moments(moments).sample(rng)
        return {"mu": mu, "Sigma": Sigma}

    def prior(self, rng: np.random.Generator, data: Any) -> tuple[FloatArray, Fields]:
        """Psi, and mu and Sigma, drawn from the prior."""
        mu, Sigma = self.gaussian.sample(rng)
        psi = MvNormal(mu, Sigma).sample(rng, data.num_documents)
        return psi, {"mu": mu, "Sigma": Sigma}

    def start(self, rng: np.random.Generator, psi: FloatArray, data: Any) -> Fields:
        """Mu and Sigma given psi."""
        mu, Sigma = self.gaussian.condition(psi).sample(rng)
        return {"mu": mu, "Sigma": Sigma}
