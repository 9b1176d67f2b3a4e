"""Psi that depends on covariates and random terms: a regression as a part of a topic model.

::

    B, Sigma      ~ MNIW,                              B: covariates x coordinates of psi
    u_ja          ~ N(0, rho_j Sigma), or N(0, Omega_j)    effect of level a of random term j
    psi_d         ~ N(B' x_d + sum_j u_j' z_jd, Sigma)

Effects whose covariance is rho_j Sigma are drawn with B and Sigma, rho_j before them
(`pgmult.priors.mixed_regression`). Those with a covariance Omega_j of their own follow, one
grouping after the other: its variances along the axes that it shares with Sigma, then its effects,
B and the effects above in one draw, then Omega_j given them (`pgmult.priors.free_effects`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pgmult.core.typing import BoolArray, FloatArray
from pgmult.core.validate import made
from pgmult.formulas.terms import Term, are_free
from pgmult.priors import HalfTScales, MatrixNormalInverseWishart, MvNormal
from pgmult.priors.free_effects import (
    FreeEffects,
    OmegaPrior,
    given_scales,
    prior_covariances,
    sample_covariance,
)
from pgmult.priors.mixed_regression import (
    MixedRegression,
    log_variance_density,
    prior_effects,
    prior_variances,
)
from pgmult.sampling.blocks import Sums
from pgmult.sampling.moves import slice_sample
from pgmult.topics.data.structured import StructuredCorpus
from pgmult.topics.priors.means import Fields

_GRAM = 3  # of the sums of a regression
_WIDTH = 2.0  # of a slice's first interval, in log rho
_FURTHEST = 300.0  # of |log lambda|: no slice gets there, and squares are still numbers


@dataclass(frozen=True, slots=True, eq=False)
class RegressedMean:
    """psi_d ~ N(B' x_d + random effects, Sigma).

    Fields of the state: ``coefficients``, ``Sigma``, ``effects``, ``effect_variances`` and
    ``effect_covariances``.

    Attributes
    ----------
    regression : MatrixNormalInverseWishart or None
        Prior of B and Sigma; None: the weak one around `centre`.
    centre : array, ``(n,)``
        Mean of the intercept under the weak prior.
    random_effects : {"shared", "free"}
    effect_scale : float
        Of the half-t prior of effects' standard deviations.
    scales : HalfTScales or None
        Prior of the scales of Sigma, which `regression` fixes otherwise.
    """

    regression: MatrixNormalInverseWishart | None
    centre: FloatArray
    random_effects: str
    effect_scale: float
    scales: HalfTScales | None

    def prior_of(
        self, data: StructuredCorpus, gram: FloatArray | None = None
    ) -> MatrixNormalInverseWishart:
        """The prior of B and Sigma; `gram`, if given, is used as X'X / num_documents.

        Its mean is the same for any.
        """
        names = data.design.names
        if self.regression is None:
            n = len(self.centre)
            mean = np.zeros((len(names), n))
            mean[0] = self.centre
            if gram is None:
                return MatrixNormalInverseWishart.weak(mean, data.covariates)
            return made(
                MatrixNormalInverseWishart, mean=mean, row_precision=gram, dof=n + 2.0,
                scale=np.eye(n),
            )  # fmt: skip
        if len(self.regression.mean) != len(names):
            raise ValueError(
                f"regression must have {len(names)} rows, one a covariate ({', '.join(names)}),"
                f" got {len(self.regression.mean)}"
            )
        return self.regression

    def terms(self, data: StructuredCorpus) -> tuple[list[Term], list[Term]]:
        """Random terms whose covariance is shared with documents, and those that have their own."""
        terms = data.design.terms
        free = [term for term in terms if self.random_effects == "free" and term.kind == "group"]
        return [term for term in terms if term not in free], free

    def means(self, state: Any, data: StructuredCorpus) -> FloatArray:
        """Mean of psi, ``(num_documents, n)``."""
        return data.design.mean(state.coefficients, state.effects)

    def sums(self, state: Any, psi: FloatArray, data: StructuredCorpus) -> Sums:
        """Number of documents, and the products of their covariates, terms and psi."""
        anywhere = self.prior_of(data, np.eye(len(data.design.names)))
        own = MixedRegression.of(anywhere, psi, data.covariates, *_designs(data))
        return Sums((np.array(len(psi)),), own.sums)

    def given(self, rng: np.random.Generator, state: Any, sums: Sums, data: Any) -> Fields:
        """One update of the regression of psi."""
        count, size = int(sums.exact[0]), len(data.design.names)
        prior = self.prior_of(data, sums.rounded[_GRAM][:size, :size] / max(1, count))
        if self.scales is not None:
            prior = self.scales.given(rng, state.Sigma, prior)
        regression = MixedRegression.of_sums(prior, count, *_designs(data), sums.rounded)
        return sample_effects(rng, regression, data.design.terms, state, self.effect_scale)

    def prior(self, rng: np.random.Generator, data: Any) -> tuple[FloatArray, Fields]:
        """Psi and the regression, drawn from the prior."""
        regression = self.prior_of(data)
        if self.scales is not None:
            regression = self.scales.sample(rng, regression)
        coefficients, Sigma = regression.sample(rng)
        shared, free = self.terms(data)
        n = len(Sigma)
        variances = prior_variances(rng, len(shared), self.effect_scale)
        covariances = prior_covariances(rng, len(free), n, self.effect_scale)
        names = [term.name for term in (*shared, *free)]
        each = [*(variance * Sigma for variance in variances), *covariances]
        own = dict(zip(names, each, strict=True))
        drawn = [prior_effects(rng, term.size, own[term.name]) for term in data.design.terms]
        effects = np.concatenate([np.empty((0, n)), *drawn])
        psi = MvNormal(data.design.mean(coefficients, effects), Sigma).sample(rng)
        return psi, _fields(coefficients, Sigma, effects, variances, covariances)

    def start(self, rng: np.random.Generator, psi: FloatArray, data: Any) -> Fields:
        """The regression given psi, with variances of effects at the scale of their prior."""
        prior, terms = self.prior_of(data), data.design.terms
        n = len(prior.scale)
        if not terms:
            coefficients, Sigma = prior.condition(psi, data.covariates).sample(rng)
            none = np.empty((0, n)), np.empty(0), np.empty((0, n, n))
            return _fields(coefficients, Sigma, *none)
        regression = MixedRegression.of(prior, psi, data.covariates, *_designs(data))
        variances = np.full(len(terms), self.effect_scale**2)
        coefficients, effects, Sigma = regression.sample(rng, variances)
        shared, free = self.terms(data)
        covariances = np.repeat(variances[0] * Sigma[None], len(free), axis=0)
        return _fields(coefficients, Sigma, effects, variances[: len(shared)], covariances)


def _fields(
    coefficients: FloatArray,
    Sigma: FloatArray,
    effects: FloatArray,
    variances: FloatArray,
    covariances: FloatArray,
) -> Fields:
    """Fields of the state."""
    return {
        "coefficients": coefficients, "Sigma": Sigma, "effects": effects,
        "effect_variances": variances, "effect_covariances": covariances,
    }  # fmt: skip


def _designs(data: StructuredCorpus) -> tuple[list[Any], list[int]]:
    """Designs and sizes of random terms."""
    terms = data.design.terms
    return [term.design for term in terms], [term.size for term in terms]


def sample_effects(
    rng: np.random.Generator,
    regression: MixedRegression,
    terms: Sequence[Term],
    at: Any,
    scale: float,
) -> Fields:
    """One sweep over a regression of psi on covariates and random terms.

    `at` is the state, of which fields the result has new values. Where the state has covariances of
    effects, groupings are the terms that have them. Besides what `sample_variances` costs there are
    then some eight densities of O(A r**2 + r**3) for each of n axes of each grouping.
    """
    covariances = at.effect_covariances.copy()
    free = np.flatnonzero(are_free(terms, covariances)).tolist()
    shared = [j for j in range(len(terms)) if j not in free]
    bounds = np.cumsum([0, *(term.size for term in terms)])
    own = [at.effects[bounds[j] : bounds[j + 1]] for j in range(len(terms))]

    def keep(of: Sequence[int], effects: FloatArray) -> None:
        ends = np.cumsum([terms[j].size for j in of])
        for j, end in zip(of, ends, strict=True):
            own[j] = effects[end - terms[j].size : end]

    whole = regression.given({j: own[j] for j in free})
    variances = sample_variances(rng, whole, at.effect_variances, scale)
    coefficients, effects, Sigma = whole.sample(rng, variances)
    keep(shared, effects)
    for i, j in enumerate(free):
        omega_prior = given_scales(rng, covariances[i], scale)
        here = regression.given({k: own[k] for k in free if k != j}, j)
        along = FreeEffects.of(here, variances, Sigma, covariances[i])
        moved = _sample_axes(rng, along, omega_prior)
        coefficients, effects, _ = along.sample(rng, moved)
        keep(sorted([*shared, j]), effects)
        covariances[i] = sample_covariance(rng, omega_prior, own[j])
    together = np.concatenate(own) if own else at.effects
    return _fields(coefficients, Sigma, together, variances, covariances)


def _sample_axes(rng: np.random.Generator, along: FreeEffects, prior: OmegaPrior) -> FloatArray:
    """Move the variances along each axis by a slice of its logarithm, effects integrated out."""
    moved = along.variances.copy()
    for axis in range(len(moved)):

        def log_density(x: FloatArray, _: BoolArray, axis: int = axis) -> FloatArray:
            if not abs(x[0]) < _FURTHEST:
                return np.array([-np.inf])
            here = along.log_density(axis, float(np.exp(x[0])), moved, prior)
            return np.array([here + x[0]])

        start = np.log(moved[axis : axis + 1])
        moved[axis] = np.exp(slice_sample(rng, log_density, start, _WIDTH)[0])
    return moved


def sample_variances(
    rng: np.random.Generator, regression: MixedRegression, variances: FloatArray, scale: float
) -> FloatArray:
    """Move the variances of random terms, coefficients, effects and Sigma integrated out.

    A slice of each log rho_j in turn, given the others. Each of some eight densities costs
    O(A r**2 + r**3 + n**3): see `pgmult.priors.mixed_regression`.
    """
    moved = np.array(variances, dtype=np.float64)
    for j in range(len(moved)):

        def log_density(x: FloatArray, _: BoolArray, j: int = j) -> FloatArray:
            prior = log_variance_density(float(x[0]), scale)
            if prior == -np.inf:
                return np.array([prior])
            trial = moved.copy()
            trial[j] = np.exp(x[0])
            return np.array([prior + regression.log_evidence(trial)])

        start = np.log(moved[j : j + 1])
        moved[j] = np.exp(slice_sample(rng, log_density, start, _WIDTH)[0])
    return moved
