r"""Bayesian logistic regression, of one set of rows or of many groups with a common prior.

Rows n of group g have covariates x_n and ``successes`` y_n out of ``trials`` b_n (1 where labels
are binary)::

    y_n | w_g ~ Binomial(b_n, sigma(x_n' w_g))

`LogisticRegression` gives each group's weights the same fixed prior, N(m0, S0). In
`GroupedLogisticRegression` that prior is learned from all groups (Wang and Blei 2013, section
4.2)::

    mu         ~ N(mean_prior)
    Sigma      ~ IW(scale, dof),     that is Sigma^-1 ~ Wishart(scale^-1, dof)
    w_g        ~ N(mu, Sigma)

Given omega_n ~ PG(b_n, x_n' w_g) the weights are Gaussian (Polson, Scott and Windle 2013)::

    precision  S0^-1 + sum_n omega_n x_n x_n',
    precision times mean  S0^-1 m0 + sum_n (y_n - b_n / 2) x_n,

so a Gibbs step draws omega and moves the weights in a way that leaves this Gaussian invariant
(Adler's 1981 overrelaxation, which halves what plain draws lose to autocorrelation). Where this
mixes slowly or costs more, the weights move by slices around the Gaussian nearest to their
posterior instead, or in addition: see `updates`. mu and Sigma are conjugate.
Nothing is approximate.

>>> import numpy as np, pgmult
>>> rng = np.random.default_rng(0)
>>> x = np.column_stack([np.ones(200), rng.standard_normal(200)])
>>> y = rng.random(200) < 1.0 / (1.0 + np.exp(1.0 - 2.0 * x[:, 1]))
>>> posterior = pgmult.sample(
...     LogisticRegression(), (x, y), draws=200, tune=20, chains=2, random_seed=0,
...     progressbar=False,
... )
>>> posterior["weights"].shape
(2, 200, 1, 2)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from examples.papers.regressions.data import LabelledRows, as_labelled_rows
from examples.papers.regressions.linear import (
    FixedGroups,
    GroupMoves,
    as_weights_prior,
    bases_of,
    weights_prior,
)
from examples.papers.regressions.updates import find_potentials
from pgmult.compiled.linalg import sample_inverse_wishart
from pgmult.core.arguments import as_real
from pgmult.core.parameters import Checked, axes_of
from pgmult.core.potentials import DensePotential
from pgmult.core.typing import FloatArray, ObservedRows
from pgmult.core.validate import as_generator, as_positive_int, as_spd, new_key
from pgmult.priors.gaussian import Moments, MvNormal, lower_cholesky
from pgmult.sampling.blocks import BLOCK_ROWS, Asks, Sums, SweepsInBlocks, as_block_rows, blocks


def _predictors(weights: FloatArray, data: LabelledRows) -> FloatArray:
    """x_n' w_g, and what is known, of every row, ``(num_rows,)``; the same bits for any BLAS."""
    by_row = np.repeat(weights, np.diff(data.offsets), axis=0)
    return np.asarray(data.known + np.einsum("nd,nd->n", data.covariates, by_row))


class _BinomialRows(GroupMoves):
    """What the two models share: labels given weights, and weights given labels."""

    __slots__ = ()

    def _groups(self, data: LabelledRows) -> LabelledRows:
        return data

    def as_rows(self, data: Any) -> LabelledRows:
        """Labelled rows, or what `as_labelled_rows` takes: (covariates, successes[, groups])."""
        if isinstance(data, LabelledRows):
            return data
        if isinstance(data, tuple) and len(data) in (2, 3):
            return as_labelled_rows(*data)
        raise TypeError(
            "data must be LabelledRows or a tuple (covariates, successes[, groups]),"
            f" got {type(data).__name__}"
        )

    def as_data(self, data: Any) -> LabelledRows:
        """The same, with covariates that are not sparse."""
        return self.as_rows(data).dense()

    def coords(self, data: LabelledRows) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Names of the groups."""
        return {"group": data.group_names}

    def simulate(self, rng: np.random.Generator, state: Any, data: LabelledRows) -> LabelledRows:
        """New successes, given the weights."""
        share = expit(_predictors(state.weights, data))
        return data.with_successes(as_generator(rng).binomial(data.whole_trials(), share))

    def log_likelihood(self, state: Any, data: LabelledRows) -> float:
        """Log probability of the successes, without binomial coefficients."""
        psi = _predictors(state.weights, data)
        rest = np.maximum(psi, 0.0) + np.log1p(np.exp(-np.abs(psi)))
        return float((data.successes * psi - data.trials * rest).sum())

    def observed_rows(self, data: LabelledRows) -> ObservedRows:
        """How often each row was 0 and how often 1, the rows in the order in which they were given.

        Raises
        ------
        ValueError
            If rows have weights that are not whole.
        """
        first, trials = np.argsort(data.given), data.whole_trials()
        successes = data.successes.astype(np.int64)
        group = np.repeat(np.arange(data.num_groups), np.diff(data.offsets))
        constants = {
            "covariates": (("row", "covariate"), data.covariates[first]),
            "known": (("row",), data.known[first]),
            "row_group": (("row",), data.group_names[group][first]),
        }
        counts = np.column_stack([trials - successes, successes])[first]
        return ObservedRows(("row", "outcome"), counts, constants)

    def row_probs(self, draw: Mapping[str, Any], data: LabelledRows) -> FloatArray:
        """Of ``weights``."""
        if "weights" not in draw:
            raise ValueError("the posterior must have kept weights (keep=)")
        share = expit(_predictors(draw["weights"], data))[np.argsort(data.given)]
        return np.column_stack([1.0 - share, share])


_EM_STEPS = 4


def _inverse(Sigma: FloatArray) -> FloatArray:
    inverse = np.linalg.inv(Sigma)
    return np.asarray(0.5 * (inverse + inverse.T))


# --------------------------------------------------------------------------- a fixed prior


@dataclass(frozen=True, slots=True, eq=False)
class LogisticRegression(_BinomialRows, FixedGroups):
    """Logistic regression, or one for each group, with a fixed Gaussian prior of the weights.

    Parameters
    ----------
    weights_prior : MvNormal, optional
        N(0, I) on all weights if left out, the intercept's included.

    Notes
    -----
    How the weights of each group move says the table in `updates`. A Gibbs step
    costs O(num_rows num_covariates**2 + num_groups num_covariates**3), a slice O(num_rows
    num_covariates + num_groups num_covariates**2) and the search for its Gaussian, once, as much as
    some twenty Gibbs steps. Groups run on all the threads of the enclosing chain.
    """

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {"weights": ("group", "covariate")}


# --------------------------------------------------------------------------- a learned prior


@dataclass(frozen=True, slots=True, eq=False)
class GroupedLogisticRegressionState:
    """One point of the chain.

    Attributes
    ----------
    weights : array, ``(num_groups, num_covariates)``
    mu : array, ``(num_covariates,)``
    Sigma : array, ``(num_covariates, num_covariates)``
    """

    weights: Annotated[FloatArray, "group", "covariate"]
    mu: Annotated[FloatArray, "covariate"]
    Sigma: Annotated[FloatArray, "covariate", "other_covariate"]


@dataclass(frozen=True, slots=True, eq=False)
class GroupedLogisticRegression(SweepsInBlocks, _BinomialRows, Checked):
    """Logistic regressions of groups whose weights have a common, learned, Gaussian law.

    Parameters
    ----------
    mean_prior : MvNormal
        Of mu.
    dof : float
        Degrees of freedom of Sigma's inverse Wishart prior, > num_covariates - 1.
    scale : array, ``(num_covariates, num_covariates)``
        Its scale: E Sigma = scale / (dof - num_covariates - 1), and the mode of the precision is
        (dof - num_covariates - 1) scale^-1.
    block_rows : int
        Groups per block: see `pgmult.sampling.blocks`. It changes the draws, not their
        distribution.

    Notes
    -----
    Weights move as in `LogisticRegression`. Slices use Gaussian potentials in place of rows, found
    at the mu and Sigma of a few steps of EM and combined with each sweep's mu and Sigma.
    """

    mean_prior: Annotated[MvNormal, as_weights_prior]
    dof: float
    scale: FloatArray
    block_rows: Annotated[int, as_block_rows] = BLOCK_ROWS

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = axes_of(GroupedLogisticRegressionState)
    default_keep: ClassVar[tuple[str, ...]] = ("weights", "mu", "Sigma")
    row_dim: ClassVar[str] = "group"

    def _complete(self) -> None:
        size = self.mean_prior.size
        self._set(scale=as_spd(self.scale, "scale", size, "mean_prior"))
        as_real(self.dof, "dof", above=size - 1)  # else the prior is improper

    @classmethod
    def like_wang_blei(
        cls, num_covariates: int, *, mean_var: float = 100.0
    ) -> "GroupedLogisticRegression":
        """The prior of Wang and Blei (2013, section 5.3).

        100 degrees of freedom above the number of covariates and scale 100 I, so that Sigma is
        near I; mu has variance `mean_var`: the paper's Phi_1 = 0.01 I is read as a precision.
        """
        eye = np.eye(as_positive_int(num_covariates, "num_covariates"))
        as_real(mean_var, "mean_var", above=0.0)
        mean_prior = MvNormal(np.zeros(num_covariates), mean_var * eye)
        return cls(mean_prior, num_covariates + 100.0, 100.0 * eye)

    def prior(self, rng: np.random.Generator, data: LabelledRows) -> GroupedLogisticRegressionState:
        """A state from the prior."""
        mu = weights_prior(self.mean_prior, data.num_covariates, "mean_prior").sample(rng)
        Sigma = self._sample_Sigma(rng, self.dof, self.scale)
        weights = MvNormal(mu, Sigma).sample(rng, data.num_groups)
        return GroupedLogisticRegressionState(weights, mu, Sigma)

    def init(self, rng: np.random.Generator, data: LabelledRows) -> GroupedLogisticRegressionState:
        """One sweep from the prior mean of mu, with Sigma from the prior."""
        mu = weights_prior(self.mean_prior, data.num_covariates, "mean_prior").prior_mean
        Sigma = self._sample_Sigma(rng, self.dof, self.scale)
        parts = blocks(data.num_groups, self.block_rows)
        weights = np.concatenate([bases_of(data.rows(part), self).mean for part in parts])
        start = GroupedLogisticRegressionState(weights, mu, Sigma)
        moved: GroupedLogisticRegressionState = self.step(rng, start, data)
        return moved

    def local_step(
        self, rng: np.random.Generator, state: GroupedLogisticRegressionState, data: LabelledRows
    ) -> tuple[GroupedLogisticRegressionState, None, Sums]:
        """The weights of a block of groups; their moments about the old mu."""
        precision = _inverse(state.Sigma)
        weights = self._move_groups(rng, state.weights, state.mu, precision, data, learned=True)
        of = Moments.of(weights, state.mu)
        sums = Sums((np.array(of.count),), (of.total, of.squares))
        return replace(state, weights=weights), None, sums

    def shared_step(
        self,
        rng: np.random.Generator,
        state: GroupedLogisticRegressionState,
        sums: Sums,
        data: LabelledRows,
        ask: Asks,
    ) -> GroupedLogisticRegressionState:
        """Mu, then Sigma."""
        moments = Moments(int(sums.exact[0]), state.mu, *sums.rounded)
        mu = self.mu_given(moments, state.Sigma).sample(rng)
        Sigma = self._sample_Sigma(rng, *self.Sigma_given(moments, mu))
        return replace(state, mu=mu, Sigma=Sigma)

    def local_summary(self, state: GroupedLogisticRegressionState, data: LabelledRows) -> Sums:
        """The log likelihood of a block of groups."""
        return Sums((), (np.array(_BinomialRows.log_likelihood(self, state, data)),))

    def mu_given(self, weights: Moments, Sigma: FloatArray) -> MvNormal:
        """The Gaussian of mu given the groups' weights."""
        precision = _inverse(Sigma)
        total = weights.count * weights.about + weights.total
        return self.mean_prior.condition(
            DensePotential(weights.count * precision, precision @ total)
        )

    def Sigma_given(self, weights: Moments, mu: FloatArray) -> tuple[float, FloatArray]:
        """Degrees of freedom and scale of Sigma's inverse Wishart given weights and mu."""
        return self.dof + weights.count, self.scale + weights.around(mu)

    def _reference(self, data: LabelledRows) -> tuple[FloatArray, FloatArray]:
        """Mean and precision of the groups' weights by a few steps of EM from the prior."""
        mu, Sigma = self.mean_prior.prior_mean, self.scale / self.dof
        for _ in range(_EM_STEPS):
            precision = _inverse(Sigma)
            gram, pull = find_potentials(data, mu, precision)
            covs = np.linalg.inv(precision + gram)
            weights = np.einsum("gij,gj->gi", covs, pull + precision @ mu)
            moments = Moments.of(weights, mu)
            mu = self.mu_given(moments, Sigma).mean()
            dof, scale = self.Sigma_given(moments, mu)
            Sigma = (scale + covs.sum(axis=0)) / dof
        return mu, _inverse(Sigma)

    def _sample_Sigma(self, rng: np.random.Generator, dof: float, scale: FloatArray) -> FloatArray:
        Sigma = np.empty_like(scale)
        sample_inverse_wishart(new_key(rng), lower_cholesky(scale), float(dof), Sigma)
        return Sigma
