"""Psi that depends on covariates and random terms: a regression as a part of a topic model.

::

    B, Sigma      ~ MNIW,                              B: covariates x coordinates of psi
    u_ja          ~ N(0, rho_j Sigma)                  effect of level a of random term j
    psi_d         ~ N(B' x_d + sum_j u_j' z_jd, Sigma)

Effects are drawn with B and Sigma, rho_j before them (`pgmult.priors.mixed_regression`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.typing import Array, BoolArray, FloatArray, Generator, IntArray
from pgmult.core.validate import made
from pgmult.priors import MatrixNormalInverseWishart, MvNormal
from pgmult.priors import mixed_regression as mixed
from pgmult.sampling.blocks import Sums
from pgmult.sampling.moves import slice_sample
from pgmult.topics.data.corpus import StructuredCorpus
from pgmult.topics.priors.means import Fields, PsiMean, PsiState, with_two_words

_GRAM = 3  # of the sums of a regression
_WIDTH = 2.0  # of a slice's first interval, in log rho
_MOST_EFFECTS = 8  # random effects, and covariates, by which a run is judged settled


@dataclass(frozen=True, slots=True, eq=False)
class RegressedMean(PsiMean[StructuredCorpus]):
    """psi_d ~ N(B' x_d + random effects, Sigma).

    Fields of the state: ``coefficients``, ``Sigma``, ``effects`` and ``effect_variances``.

    Attributes
    ----------
    regression : MatrixNormalInverseWishart or None
        Prior of B and Sigma; None: the weak one around `centre`.
    centre : array, ``(n,)``
        Mean of the intercept under the weak prior.
    effect_scale : float
        Of the half-t prior of effects' standard deviations.
    """

    regression: MatrixNormalInverseWishart | None
    centre: FloatArray
    effect_scale: float

    def prior_of(
        self, data: StructuredCorpus, gram: FloatArray | None = None
    ) -> MatrixNormalInverseWishart:
        """The prior of B and Sigma; `gram`, if given, is used as X'X / num_documents.

        Its mean is the same for any.
        """
        names = data.design.names
        if self.regression is not None:
            if len(self.regression.mean) != len(names):
                rows, got = f"one a covariate ({', '.join(names)})", len(self.regression.mean)
                raise ValueError(f"regression must have {len(names)} rows, {rows}, got {got}")
            return self.regression
        n = len(self.centre)
        mean = np.zeros((len(names), n))
        mean[0] = self.centre
        if gram is None:
            return MatrixNormalInverseWishart.weak(mean, data.covariates)
        more = {"row_precision": gram, "dof": n + 2.0, "scale": np.eye(n)}
        return made(MatrixNormalInverseWishart, mean=mean, **more)

    def means(self, state: PsiState, data: StructuredCorpus) -> FloatArray:
        """Mean of psi, ``(num_documents, n)``."""
        return data.design.mean(state.coefficients, state.effects)

    def as_data(self, data: object) -> StructuredCorpus:
        """The data, if they are a corpus with as many covariates as the prior has."""
        if not isinstance(data, StructuredCorpus):
            got, hint = type(data).__name__, "make one with pgmult.topics.with_covariates"
            raise TypeError(f"data must be a corpus with covariates, got {got} ({hint})")
        self.prior_of(data)
        return with_two_words(data)

    def coords(self, data: StructuredCorpus) -> dict[str, NDArray[Any]]:
        """Covariates and effects by name."""
        design = data.design
        coords = {"covariate": design.names, "coding": np.array([design.coding], dtype=np.str_)}
        if design.terms:
            coords["term"] = np.array([term.name for term in design.terms], dtype=np.str_)
            coords["effect"] = design.effect_names
        return coords

    def absent(self, data: StructuredCorpus) -> set[str]:
        """Effects and their variances, where no term is random."""
        return set() if data.design.terms else {"effects", "effect_variances"}

    def summary(self, data: StructuredCorpus) -> Sums:
        """Number of documents, and the sum of their covariates."""
        return Sums((np.array(data.num_documents),), (data.covariates.sum(axis=0),))

    def summarized(
        self, name: str, state: PsiState, summary: Sums, data: StructuredCorpus
    ) -> FloatArray:
        """Mean of psi at the documents' average covariates and no random effects, ``(n,)``."""
        covariates = summary.rounded[-1] / summary.exact[-1]
        return np.asarray(np.einsum("p,pn->n", covariates, state.coefficients))

    def reported(self, draw: Mapping[str, Array]) -> FloatArray:
        """Psi as covariates and random effects vary one by one.

        Covariates are centred and scaled: each takes -1 and 1 while the others are average. Of many
        random effects some, evenly spread, are taken, and of many covariates the first.
        """
        if "coefficients" not in draw:
            return np.empty((0, 0))
        centre, *slopes = np.asarray(draw["coefficients"], dtype=np.float64)
        effects = np.asarray(draw.get("effects", centre[None, :][:0]), dtype=np.float64)
        few = np.linspace(0, len(effects) - 1, min(len(effects), _MOST_EFFECTS)).astype(int)
        moved = [sign * slope for slope in slopes[:_MOST_EFFECTS] for sign in (-1.0, 1.0)]
        return np.asarray(centre + np.array([np.zeros_like(centre), *moved, *effects[few]]))

    def sums(self, state: PsiState, psi: FloatArray, data: StructuredCorpus) -> Sums:
        """Number of documents, and the products of their covariates, terms and psi."""
        anywhere = self.prior_of(data, np.eye(len(data.design.names)))
        statistics = mixed.MixedRegression.of(anywhere, psi, data.covariates, _terms(data))
        return Sums((np.array(len(psi)),), statistics.sums)

    def given(self, rng: Generator, state: PsiState, sums: Sums, data: StructuredCorpus) -> Fields:
        """One update of the regression of psi."""
        count, size = int(sums.exact[0]), len(data.design.names)
        prior = self.prior_of(data, sums.rounded[_GRAM][:size, :size] / max(1, count))
        regression = mixed.MixedRegression.of_sums(prior, count, _terms(data), sums.rounded)
        variances = sample_variances(rng, regression, state.effect_variances, self.effect_scale)
        return _fields(*regression.sample(rng, variances), variances)

    def prior(self, rng: Generator, data: StructuredCorpus) -> tuple[FloatArray, Fields]:
        """Psi and the regression, drawn from the prior."""
        coefficients, Sigma = self.prior_of(data).sample(rng)
        terms = data.design.terms
        variances = mixed.prior_variances(rng, len(terms), self.effect_scale)
        pairs = zip(terms, variances, strict=True)
        zeros = np.zeros(len(Sigma))
        drawn = [MvNormal(zeros, rho * Sigma).sample(rng, term.size) for term, rho in pairs]
        effects = np.concatenate([np.empty((0, len(Sigma))), *drawn])
        psi = MvNormal(data.design.mean(coefficients, effects), Sigma).sample(rng)
        return psi, _fields(coefficients, effects, Sigma, variances)

    def start(self, rng: Generator, psi: FloatArray, data: StructuredCorpus) -> Fields:
        """The regression given psi, with variances of effects at the scale of their prior."""
        prior, terms = self.prior_of(data), data.design.terms
        if not terms:
            coefficients, Sigma = prior.condition(psi, data.covariates).sample(rng)
            return _fields(coefficients, np.empty((0, len(Sigma))), Sigma, np.empty(0))
        regression = mixed.MixedRegression.of(prior, psi, data.covariates, _terms(data))
        variances = np.full(len(terms), self.effect_scale**2)
        return _fields(*regression.sample(rng, variances), variances)


def _fields(*values: FloatArray) -> Fields:
    """Fields of the state: coefficients, effects, Sigma and the variances of effects."""
    names = "coefficients", "effects", "Sigma", "effect_variances"
    return dict(zip(names, values, strict=True))


def _terms(data: StructuredCorpus) -> list[tuple[FloatArray | IntArray, int]]:
    """Designs and sizes of random terms."""
    return [(term.design, term.size) for term in data.design.terms]


def sample_variances(
    rng: Generator, regression: mixed.MixedRegression, variances: FloatArray, scale: float
) -> FloatArray:
    """Move the variances of random terms, coefficients, effects and Sigma integrated out.

    A slice of each log rho_j in turn, given the others: see `MixedRegression.evidence_along`.
    """
    moved = np.array(variances, dtype=np.float64)
    for j in range(len(moved)):
        evidence = regression.evidence_along(moved, j)

        def log_density(x: FloatArray, _: BoolArray, evidence: Any = evidence) -> FloatArray:
            prior = mixed.log_variance_density(float(x[0]), scale)
            return np.array([prior if prior == -np.inf else prior + evidence(float(np.exp(x[0])))])

        start = np.log(moved[j : j + 1])
        moved[j] = np.exp(slice_sample(rng, log_density, start, _WIDTH)[0])
    return moved
