"""Expected prevalence of topics at given covariates, with intervals."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.typing import FloatArray, Link
from pgmult.core.validate import as_generator, as_positive_int
from pgmult.links import StickBreaking
from pgmult.priors.matrix_normal import linear_means
from pgmult.topics.data.structured import StructuredCorpus

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
        return Prevalence(self.draws[:, setting] - self.draws[:, baseline], self.probability)


def prevalence(
    rng: np.random.Generator,
    posterior: Mapping[str, NDArray[Any]],
    data: StructuredCorpus,
    covariates: Any,
    *,
    link: Link | None = None,
    chain: int = 0,
    num_simulated: int = 1000,
    max_draws: int = 200,
    probability: float = 0.9,
) -> Prevalence:
    """Expected topic proportions of documents with given covariates, E[theta | x].

    For each draw of the coefficients B and Sigma, theta = link(psi) is averaged over psi ~
    N(B' x, Sigma), one simulated psi for each of `num_simulated` documents. All draws and all
    settings share the same standard normals, in pairs of opposite sign, so that Monte Carlo error
    hardly touches intervals and contrasts.

    Parameters
    ----------
    rng : numpy.random.Generator
    posterior : Posterior, or mapping with ``coefficients`` and ``Sigma``
        ``(chain, draw, covariate, stick)`` and ``(chain, draw, stick, stick)``.
    data : StructuredCorpus
        What the model was fitted to.
    covariates : mapping, pandas DataFrame or matrix
        One setting a row, as `pgmult.topics.data.structured.Design.rows` takes them.
    link : Link, optional
        The model's; `StickBreaking` by default.
    chain : int
    num_simulated : int
        Documents, at least 2; an odd number is rounded up.
    max_draws : int
        At most so many draws are used, evenly spread over the chain.
    probability : float in (0, 1)

    Returns
    -------
    Prevalence

    Raises
    ------
    ValueError
        If `covariates` do not fit the data, the data not the posterior, or `probability` is none.
    """
    if not 0.0 < probability < 1.0:
        raise ValueError(f"probability must be in (0, 1), got {probability}")
    as_positive_int(num_simulated, "num_simulated", minimum=2)
    as_positive_int(max_draws, "max_draws")
    rows = data.design.rows(covariates)
    coefficients = np.asarray(posterior["coefficients"][chain], dtype=np.float64)
    Sigma = np.asarray(posterior["Sigma"][chain], dtype=np.float64)
    num_draws, num_covariates, sticks = coefficients.shape
    if num_covariates != rows.shape[1]:
        raise ValueError(
            f"data must be what the model was fitted to: the posterior has {num_covariates}"
            f" coefficients a stick, the data have {rows.shape[1]} covariates"
            f" ({', '.join(data.design.names)})"
        )
    link = StickBreaking() if link is None else link
    half = as_generator(rng).standard_normal(((num_simulated + 1) // 2, sticks))
    noise = np.concatenate([half, -half])
    used = np.unique(np.linspace(0, num_draws - 1, min(max_draws, num_draws)).astype(np.int64))
    expected = np.empty((len(used), len(rows), sticks + 1))
    for place, i in zip(expected, used, strict=True):
        scattered = noise @ np.linalg.cholesky(Sigma[i]).T
        for setting, mean in enumerate(linear_means(rows, coefficients[i])):
            place[setting] = link.probs(mean + scattered).mean(axis=0)
    return Prevalence(expected, float(probability))
