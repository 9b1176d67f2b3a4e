r"""Three mixtures whose parameters integrate out: problems for `collapsed.natural_cg`.

With N_k the expected number of observations of component k and Dirichlet(alpha) weights, the
weights contribute log B(alpha + N) - log B(alpha) to the bound and digamma(alpha_k + N_k) - const
to the logits of component k. To these are added

* `GaussianMixtureProblem`: the evidence of each component's normal-inverse-Wishart prior given
  weighted data (Bishop 2006, Pattern Recognition and Machine Learning, sections 10.2 and 4.6);
* `TopicProblem`: a Dirichlet evidence for every document and for every topic, latent Dirichlet
  allocation with (document, word) entries as rows (Hensman et al. 2012, section 5.2);
* `ExpressionProblem`: log p(read | transcript) of each alignment, the model of BitSeq (Glaus,
  Honkela and Rattray 2012; Hensman et al. 2012, section 5.3).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from scipy.special import digamma, multigammaln

from examples.papers.hensman2012.collapsed import (
    CollapsedFit,
    dirichlet_log_evidence,
    dirichlet_moments,
)
from examples.papers.hensman2012.compiled.gaussian_mixture import (
    Laws,
    add_distances,
    weigh_components,
)
from examples.papers.hensman2012.expression import Alignments, require_alignments
from pgmult.compiled.rows import over_rows
from pgmult.core.parameters import Checked, real
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_finite, as_positive_int
from pgmult.priors.gaussian import NormalInverseWishart


@dataclass(eq=False)
class GaussianMixtureProblem(Checked):
    """Rows of data from a mixture of Gaussians.

    Parameters
    ----------
    x : array, ``(num_rows, num_columns)``
    num_components : int
        K, at most the number of rows. Components that the data do not need become empty.
    prior : NormalInverseWishart, optional
        Of each component; by default centred on the data, with their variances as expected
        covariance, and worth little: 0.01 observations for the mean and D + 2 degrees of freedom.
    concentration : float
        Of the symmetric Dirichlet prior of weights.
    """

    x: Annotated[FloatArray, as_finite]
    num_components: Annotated[int, as_positive_int]
    prior: NormalInverseWishart | None = None
    concentration: Annotated[float, real(above=0.0)] = 1.0

    def _complete(self) -> None:
        if self.x.ndim != 2 or self.x.shape[1] == 0:
            raise ValueError(f"x must have shape (rows, columns), got {self.x.shape}")
        if self.num_components > len(self.x):
            raise ValueError(
                f"num_components must be at most the {len(self.x)} rows of x,"
                f" got {self.num_components}"
            )
        D = self.x.shape[1]
        if self.prior is None:
            constant = self.x.min(axis=0) == self.x.max(axis=0)
            if constant.any():
                raise ValueError(
                    f"x must vary in every column, column {constant.argmax()} does not"
                    " (drop it, or give a prior)"
                )
            scale = np.diag(self.x.var(axis=0))
            self.prior = NormalInverseWishart(self.x.mean(axis=0), 0.01, D + 2.0, scale)
        elif len(self.prior.mean) != D:
            raise ValueError(f"prior must have {D} dimensions, got {len(self.prior.mean)}")

    @cached_property
    def indptr(self) -> IntArray:
        """K candidates per row."""
        return np.arange(len(self.x) + 1) * self.num_components

    @cached_property
    def weights(self) -> FloatArray:
        """One observation per row."""
        return np.ones(len(self.x))

    def marginal(self, probs: FloatArray) -> tuple[float, FloatArray]:
        """As `examples.papers.hensman2012.collapsed.CollapsedProblem` says."""
        prior, D = self._prior, self.x.shape[1]
        shares = probs.reshape(len(self.x), self.num_components)
        counts = shares.sum(axis=0)
        mean, strength, dof, scale = self._posterior(shares)
        root = np.linalg.cholesky(scale)
        log_det = 2.0 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        evidence = (
            0.5 * D * (np.log(prior.strength / strength) - counts * np.log(np.pi))
            + 0.5 * (prior.dof * np.linalg.slogdet(prior.scale)[1] - dof * log_det)
            + multigammaln(0.5 * dof, D)
            - multigammaln(0.5 * prior.dof, D)
        )
        expected_log_det = digamma(0.5 * (dof[:, None] - np.arange(D))).sum(axis=1) - log_det
        constant = (
            digamma(self.concentration + counts)
            - digamma(self.num_components * self.concentration + len(self.x))
            + 0.5 * (expected_log_det - D * np.log(np.pi) - D / strength)
        )
        logits = np.tile(constant, (len(self.x), 1))
        over_rows(add_distances, len(self.x), self.x, mean, root, -0.5 * dof, logits)
        return dirichlet_log_evidence(counts, self.concentration) + float(
            evidence.sum()
        ), logits.ravel()

    @property
    def _prior(self) -> NormalInverseWishart:
        assert self.prior is not None  # set by _complete
        return self.prior

    def _posterior(self, shares: FloatArray) -> tuple[FloatArray, ...]:
        """Mean, strength, dof and scale of each component, given that it has `shares` of rows."""
        prior, K, D = self._prior, self.num_components, self.x.shape[1]
        before = Laws(prior.mean, float(prior.strength), prior.scale)
        after = Laws(np.empty((K, D)), np.empty(K), np.empty((K, D, D)))
        over_rows(weigh_components, K, self.x, shares, before, after, grain=1)
        return (
            after.mean,
            after.strength,
            prior.dof + (after.strength - prior.strength),
            after.scale,
        )

    def weights_posterior(self, fit: CollapsedFit) -> tuple[FloatArray, FloatArray]:
        """Means and variances of the weights, ``(num_components,)`` each."""
        shares = fit.probs.reshape(len(self.x), -1)
        return dirichlet_moments(shares.sum(axis=0), self.concentration)

    def components(self, fit: CollapsedFit) -> list[NormalInverseWishart]:
        """The law of each component's mean and covariance."""
        laws = self._posterior(fit.probs.reshape(len(self.x), -1))
        return [NormalInverseWishart(*law) for law in zip(*laws, strict=True)]


@dataclass(eq=False)
class ExpressionProblem(Checked):
    """Shares of transcripts among reads, each of which fits several.

    Parameters
    ----------
    data : Alignments
    concentration : float
        Of the symmetric Dirichlet prior of shares.
    """

    data: Annotated[Alignments, require_alignments]
    concentration: Annotated[float, real(above=0.0)] = 1.0

    @property
    def indptr(self) -> IntArray:
        """The alignments of each read."""
        return self.data.indptr

    @cached_property
    def weights(self) -> FloatArray:
        """How many reads a row stands for."""
        return self.data.counts.astype(np.float64)

    def marginal(self, probs: FloatArray) -> tuple[float, FloatArray]:
        """As `examples.papers.hensman2012.collapsed.CollapsedProblem` says."""
        reads = self._reads(probs)
        counts = self._count(reads)
        value = dirichlet_log_evidence(counts, self.concentration) + np.sum(
            reads * self.data.log_likelihood
        )
        expected = digamma(self.concentration + counts)
        expected -= digamma(len(counts) * self.concentration + self.data.num_reads)
        return float(value), self.data.log_likelihood + expected[self.data.transcripts]

    def counts(self, fit: CollapsedFit) -> FloatArray:
        """Expected reads of each transcript, ``(num_transcripts,)``."""
        return self._count(self._reads(fit.probs))

    def shares_posterior(self, fit: CollapsedFit) -> tuple[FloatArray, FloatArray]:
        """Means and variances of the shares, ``(num_transcripts,)`` each.

        Mean field: the variances ignore that the assignments of reads are uncertain.
        """
        return dirichlet_moments(self.counts(fit), self.concentration)

    def _reads(self, probs: FloatArray) -> FloatArray:
        """Expected reads of each alignment."""
        return probs * np.repeat(self.weights, np.diff(self.data.indptr))

    def _count(self, reads: FloatArray) -> FloatArray:
        counts = np.bincount(self.data.transcripts, reads, self.data.num_transcripts)
        return counts.astype(np.float64)
