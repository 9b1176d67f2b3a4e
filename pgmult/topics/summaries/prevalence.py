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
from pgmult.topics.draws import as_draws, of_chain, quantile, share_of_draws, spread, with_model
from pgmult.topics.summaries.matching import aligned_chains, scope_of

__all__ = ["Prevalence", "prevalence"]


@dataclass(frozen=True, slots=True, eq=False)
class Prevalence:
    """Posterior of expected topic proportions, or of a difference between two of them.

    Attributes
    ----------
    draws : array, ``(draw, setting, topic)``, or ``(draw, topic)`` for a difference
        nan for a topic that the draw's chain did not find.
    probability : float
        Of the central interval from `lower` to `upper`.
    scope : str
        What the interval is over: draws within one chain, or over the chains that found a topic.
    """

    draws: FloatArray
    probability: float
    scope: str

    @property
    def mean(self) -> FloatArray:
        """Posterior mean, ``(setting, topic)``."""
        return np.asarray(np.nanmean(self.draws, axis=0))

    @property
    def lower(self) -> FloatArray:
        """Lower end of the interval, ``(setting, topic)``."""
        return np.asarray(quantile(self.draws, 0.5 - 0.5 * self.probability, axis=0))

    @property
    def upper(self) -> FloatArray:
        """Upper end of the interval, ``(setting, topic)``."""
        return np.asarray(quantile(self.draws, 0.5 + 0.5 * self.probability, axis=0))

    def contrast(self, setting: int, baseline: int) -> "Prevalence":
        """How much more of each topic is expected in one setting than in another, ``(topic,)``."""
        most = self.draws.shape[1] - 1
        setting = as_positive_int(setting, "setting", minimum=0, maximum=most)
        baseline = as_positive_int(baseline, "baseline", minimum=0, maximum=most)
        difference = self.draws[:, setting] - self.draws[:, baseline]
        return Prevalence(difference, self.probability, self.scope)


def prevalence(
    posterior: Posterior,
    data: StructuredCorpus,
    covariates: Any,
    *,
    chain: int | None = None,
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
    chain : int, optional
        One chain alone. If left out, chains are aligned topic by topic with the best one, and each
        topic's draws are those of the chains that found it.
    num_simulated : int
        Documents, at least 2; an odd number is rounded up.
    max_draws : int
        At most so many draws are used, evenly spread over chains.
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
    as_draws(posterior, "coefficients", "Sigma")
    if not posterior.is_of(data):
        raise ValueError(
            f"data must be what the posterior was sampled with, got other data"
            f" ({data.num_documents} documents, covariates {', '.join(data.design.names)})"
        )
    rows = data.design.rows(covariates)
    chains = aligned_chains(posterior, chain, "coefficients")
    sticks = posterior["coefficients"].shape[-1]
    rng = np.random.default_rng(as_seed(random_seed))
    half = rng.standard_normal(((num_simulated + 1) // 2, sticks))
    noise = np.concatenate([half, -half])
    expected = []
    for one in chains:
        coefficients, Sigma = (
            np.asarray(draws, dtype=np.float64)
            for draws in of_chain(posterior, one.chain, "coefficients", "Sigma")
        )
        for i in spread(len(coefficients), share_of_draws(max_draws, len(chains))):
            scattered = noise @ np.linalg.cholesky(Sigma[i]).T
            means = linear_means(rows, coefficients[i])
            shares = np.stack([link.probs(mean + scattered).mean(axis=0) for mean in means])
            expected.append(np.where(one.found, shares[:, one.order], np.nan))
    return Prevalence(np.stack(expected), probability, scope_of(chains))
