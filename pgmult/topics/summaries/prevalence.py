"""Expected prevalence of topics at given covariates, with intervals."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pgmult.core.arguments import as_kind, as_probability, as_repeats, as_seed
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_positive_int
from pgmult.priors.matrix_normal import linear_means
from pgmult.sampling.posterior import Posterior
from pgmult.topics.data.structured import StructuredCorpus
from pgmult.topics.draws import of_chain, spread, with_model

__all__ = ["Prevalence", "prevalence"]


@dataclass(frozen=True, slots=True, eq=False)
class Prevalence:
    """Posterior of expected topic proportions, or of a difference between two of them.

    Attributes
    ----------
    draws : array, ``(draw, setting, topic)``, or ``(draw, topic)`` for a difference
    probability : float
        Of the central interval from `lower` to `upper`.
    """

    draws: FloatArray
    probability: float

    @property
    def mean(self) -> FloatArray:
        """Posterior mean, ``(setting, topic)``."""
        return np.asarray(self.draws.mean(axis=0))

    @property
    def lower(self) -> FloatArray:
        """Lower end of the interval, ``(setting, topic)``."""
        return np.asarray(np.quantile(self.draws, 0.5 - 0.5 * self.probability, axis=0))

    @property
    def upper(self) -> FloatArray:
        """Upper end of the interval, ``(setting, topic)``."""
        return np.asarray(np.quantile(self.draws, 0.5 + 0.5 * self.probability, axis=0))

    def contrast(self, setting: int, baseline: int) -> "Prevalence":
        """How much more of each topic is expected in one setting than in another, ``(topic,)``."""
        most = self.draws.shape[1] - 1
        setting = as_positive_int(setting, "setting", minimum=0, maximum=most)
        baseline = as_positive_int(baseline, "baseline", minimum=0, maximum=most)
        return Prevalence(self.draws[:, setting] - self.draws[:, baseline], self.probability)


def prevalence(
    posterior: Posterior,
    data: StructuredCorpus,
    covariates: Any,
    *,
    chain: int = 0,
    num_simulated: int = 1000,
    max_draws: int = 200,
    probability: float = 0.9,
    random_seed: int = 0,
) -> Prevalence:
    """Expected topic proportions of documents with given covariates, E[theta | x].

    For each draw of the coefficients B and Sigma, theta = link(psi) is averaged over psi ~
    N(B' x, Sigma), one simulated psi for each of `num_simulated` documents. All draws and all
    settings share the same standard normals, in pairs of opposite sign, so that Monte Carlo error
    hardly touches intervals and contrasts.

    Parameters
    ----------
    posterior : Posterior
        Of `pgmult.topics.StructuralTopics`, with ``coefficients`` and ``Sigma``.
    data : StructuredCorpus
        What the model was fitted to: its design codes and scales the settings.
    covariates : mapping, pandas DataFrame or matrix
        One setting a row, as `pgmult.topics.data.designs.Design.rows` takes them.
    chain : int
    num_simulated : int
        Documents, at least 2; an odd number is rounded up.
    max_draws : int
        At most so many draws are used, evenly spread over the chain.
    probability : float in (0, 1)
    random_seed : int

    Returns
    -------
    Prevalence

    Raises
    ------
    ValueError
        If `covariates` do not fit the data, `data` are not the posterior's, the posterior does not
        know its model, or `probability` is none.
    """
    probability = as_probability(probability, "probability")
    num_simulated = as_repeats(num_simulated, "num_simulated", minimum=2)
    as_kind(data, "data", StructuredCorpus, "make one with with_covariates")
    link = with_model(posterior).link
    coefficients, Sigma = (
        np.asarray(draws, dtype=np.float64)
        for draws in of_chain(posterior, chain, "coefficients", "Sigma")
    )
    if not posterior.is_of(data):
        raise ValueError(
            f"data must be what the posterior was sampled with, got other data"
            f" ({data.num_documents} documents, covariates {', '.join(data.design.names)})"
        )
    rows = data.design.rows(covariates)
    sticks = coefficients.shape[2]
    rng = np.random.default_rng(as_seed(random_seed))
    half = rng.standard_normal(((num_simulated + 1) // 2, sticks))
    noise = np.concatenate([half, -half])
    used = spread(len(coefficients), max_draws)
    expected = np.empty((len(used), len(rows), sticks + 1))
    for place, i in zip(expected, used, strict=True):
        scattered = noise @ np.linalg.cholesky(Sigma[i]).T
        for setting, mean in enumerate(linear_means(rows, coefficients[i])):
            place[setting] = link.probs(mean + scattered).mean(axis=0)
    return Prevalence(expected, probability)
