r"""Multinomial Gaussian processes under the softmax link (LNM-GP), by elliptical slice sampling.

The baseline of Linderman, Johnson and Adams (2015), section 4: K latent functions for K categories,
with one covariance::

    f_k   ~ GP(0, covariance),                     k = 1..K
    psi_k = mean_k + f_k
    x_i   ~ Multinomial(N_i, softmax(psi(s_i)))    i = 1..n

No augmentation makes all of psi Gaussian, so every function is moved along an ellipse (Murray,
Adams and MacKay 2010, "Elliptical slice sampling"). The functions at the sites are f = root z with
z standard normal and root root' = covariance(sites, sites), to whose diagonal 1e-8 of the largest
variance is added: smooth covariances are singular to rounding. A sweep:

1. hyperparameters | z, x      slice updates, z fixed and f moving along (Murray and Adams 2010)
2. f_k + g for all k           the direction in which probabilities are constant, an exact draw
3. f_k | the other f, x        elliptical slices, `restarts` of them for each k
4. f at new inputs | f         Gaussian

Two things make step 3 quick. The sums of exponentials are kept, so that a proposal for one function
costs O(n), not O(n K). And the K draws of the prior that define the ellipses, O(n^2 K), are used
more than once: a function and the draw that it is paired with are rotated *together*, which leaves
their joint law invariant, and each restart pairs the functions with the draws anew.

*Identification.* Adding one function to all K changes no probability; the prior alone identifies
it. Look at `pi`, not at `psi`.

>>> import numpy as np, pgmult
>>> from pgmult.fields.covariances import SquaredExponential
>>> times = np.arange(8.0)
>>> counts = np.random.default_rng(0).multinomial(20, [0.5, 0.3, 0.2], size=8)
>>> posterior = pgmult.sample(
...     LogisticNormalGP(SquaredExponential(3.0)),
...     pgmult.fields.as_field(times, counts, new_inputs=[8.0, 9.0]),
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> posterior["pi_new"].shape
(1, 10, 2, 3)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from examples.papers.linderman2015.softmax_fields import rotate_functions, smooth_columns
from pgmult.compiled.rows import over_rows
from pgmult.core.parameters import axes_of
from pgmult.core.typing import ArrayLike, BoolArray, FloatArray
from pgmult.core.validate import new_key
from pgmult.fields.compiled.dense_fields import lower_root, multiply_lower
from pgmult.fields.covariances import Covariance
from pgmult.fields.covariances.base import as_covariance
from pgmult.fields.data import CountField, smoothed_shares
from pgmult.fields.models.multinomial_gp import START_COUNT, FieldModel, check_mean, level_of
from pgmult.links import LogisticNormal
from pgmult.sampling.moves import slice_sample

_NUGGET = 1e-8  # of the largest variance; smooth covariances are singular to rounding without
_START_NOISE_VAR = 1.0  # of the logarithms of shares that a chain starts from
_SLICE_WIDTH = 0.5  # of log hyperparameters


@dataclass(frozen=True, slots=True, eq=False)
class LogisticNormalGPState:
    """One point of the chain.

    Attributes
    ----------
    psi : array, ``(num_sites, num_categories)``
        At the distinct inputs, then at the new ones among the new inputs: `CountField.sites`.
    whitened : array, ``(num_sites, num_categories)``
        Standard normal before the counts are seen: psi is the mean plus a root of the covariance
        times it.
    hyperparameters : array, ``(num_hyperparameters,)``
        The covariance's free parameters.
    """

    psi: Annotated[FloatArray, "site", "category"]
    whitened: Annotated[FloatArray, "site", "category"]
    hyperparameters: Annotated[FloatArray, "hyperparameter"]


@dataclass(frozen=True, slots=True, eq=False)
class LogisticNormalGP(FieldModel):
    """Multinomial counts whose log probabilities are Gaussian processes, by elliptical slices.

    Parameters
    ----------
    covariance : Covariance
        Of each function. To learn the level of each category add a `Constant` to it.
    mean : float, array ``(num_categories,)`` or "empirical"
        Of the functions. "empirical" takes the logarithms of the shares of the categories in all
        counts, a point estimate.
    hyperparameters : {"fixed", "sampled"}
        Whether the covariance's free parameters are fixed at the values given.
    restarts : int, optional
        Ellipses for each function in a sweep; by default 4 to 10, more of them the more inputs
        there are, because then the draws of the prior cost more.

    Notes
    -----
    With n distinct inputs a sweep costs O(n^2 K) for the draws of the prior, which does not depend
    on the counts, and about ten times n K exponentials a restart. O(n^3) once, or at every try of a
    hyperparameter where they are sampled.
    """

    covariance: Annotated[Covariance, as_covariance]
    mean: ArrayLike | Literal["empirical"] = 0.0
    hyperparameters: Literal["fixed", "sampled"] = "fixed"
    restarts: int | None = None

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = axes_of(LogisticNormalGPState) | {
        "pi": ("row", "category"),
        "pi_new": ("new_row", "category"),
        "psi_new_mean": ("new_row", "category"),
    }
    default_keep: ClassVar[tuple[str, ...]] = ("psi", "hyperparameters", "pi_new")

    def _complete(self) -> None:
        check_mean(self.mean, "category", "empirical")

    def _labels(self, data: CountField) -> dict[str, Sequence[Any] | NDArray[Any]]:
        return {"hyperparameter": list(self.covariance.param_names)}

    def link(self, data: CountField) -> LogisticNormal:
        """The link from psi to probabilities."""
        return LogisticNormal()

    def _check(self, data: CountField) -> None:
        if data.counted is not None:
            raise ValueError(
                "data must have all categories counted in every row, some were not (MultinomialGP"
                " takes them)"
            )
        self._mean(data)

    def prior(self, rng: np.random.Generator, data: CountField) -> LogisticNormalGPState:
        """Hyperparameters and functions from the prior."""
        hyperparameters = self._given_hyperparameters
        if self.hyperparameters == "sampled":
            hyperparameters = np.exp(self.covariance.sample_log_params(rng))
        whitened = rng.standard_normal((data.num_sites, data.num_categories))
        return self._state(whitened, hyperparameters, data)

    def init(self, rng: np.random.Generator, data: CountField) -> LogisticNormalGPState:
        """A start from a regression on the logarithms of the shares, at the covariance given."""
        seen = _SeenCounts.of(data)
        hyperparameters = self._given_hyperparameters
        whitened = np.zeros((data.num_sites, data.num_categories))
        rows = np.flatnonzero(seen.totals)
        if len(rows):
            design = _root_at(self.covariance, tuple(hyperparameters.tolist()), data)[rows]
            noisy = self.covariance.cov(data.sites[rows])
            noisy[np.diag_indices_from(noisy)] += _START_NOISE_VAR
            level = self.link(data).inverse(
                smoothed_shares(seen.by_category[:, rows].T, START_COUNT)
            ) - self._mean(data)
            level -= level.mean(axis=1, keepdims=True)
            start = np.empty((data.num_categories, data.num_sites))
            over_rows(
                smooth_columns, len(start), design, lower_root(noisy)[0],
                np.ascontiguousarray(level.T), start, grain=1,
            )  # fmt: skip
            whitened = np.ascontiguousarray(start.T)
        return self._state(whitened, hyperparameters, data)

    def step(
        self, rng: np.random.Generator, state: LogisticNormalGPState, data: CountField
    ) -> LogisticNormalGPState:
        """One sweep over all blocks."""
        hyperparameters = state.hyperparameters
        if self.hyperparameters == "sampled":
            hyperparameters = self._sample_hyperparameters(rng, state, data)
        whitened = self._sample_common(rng, state.whitened)
        whitened = self._sample_functions(rng, whitened, hyperparameters, data)
        whitened = self._sample_unseen(rng, whitened, data)
        return self._state(whitened, hyperparameters, data)

    def psi_new_mean(self, state: LogisticNormalGPState, data: CountField) -> FloatArray:
        """Mean of psi at the new inputs given psi at the inputs, ``(num_new, num_categories)``."""
        root = _root_at(self.covariance, tuple(state.hyperparameters.tolist()), data)
        whitened = state.whitened.copy()
        whitened[_SeenCounts.of(data).num_sites :] = 0.0
        psi = self._mean(data) + _times(root, whitened)
        return np.asarray(psi[data.new_sites])

    @property
    def _given_hyperparameters(self) -> FloatArray:
        return np.exp(self.covariance.log_params)

    def _state(
        self, whitened: FloatArray, hyperparameters: FloatArray, data: CountField
    ) -> LogisticNormalGPState:
        root = _root_at(self.covariance, tuple(hyperparameters.tolist()), data)
        psi = self._mean(data) + _times(root, whitened)
        return LogisticNormalGPState(psi, whitened, hyperparameters)

    def _mean(self, data: CountField) -> FloatArray:
        """Of each function, ``(num_categories,)``."""
        return level_of(self.mean, data.num_categories, "categories", self.link(data), data)

    def _sample_hyperparameters(
        self, rng: np.random.Generator, state: LogisticNormalGPState, data: CountField
    ) -> FloatArray:
        """One slice update of each log hyperparameter, the whitened functions fixed."""
        mean, seen = self._mean(data), _SeenCounts.of(data)
        sites, whitened = data.sites[: seen.num_sites], state.whitened[: seen.num_sites]
        log_params = np.log(state.hyperparameters)
        for i in range(len(log_params)):

            def log_density(value: FloatArray, active: BoolArray, i: int = i) -> FloatArray:
                trial = log_params.copy()
                trial[i] = value[0]
                covariance = self.covariance.with_log_params(trial)
                psi = mean + _times(_nugget_root(covariance, sites), whitened)
                fit = self.link(data).log_likelihood(psi[data.row_sites], data.counts).sum()
                return np.array([covariance.log_prior() + fit])

            log_params[i] = slice_sample(rng, log_density, log_params[i : i + 1], _SLICE_WIDTH)[0]
        return np.exp(log_params)

    def _sample_common(self, rng: np.random.Generator, whitened: FloatArray) -> FloatArray:
        """The mean of the functions, of which the counts say nothing."""
        size, count = whitened.shape
        common = rng.standard_normal((size, 1)) / np.sqrt(count)
        return np.asarray(whitened - whitened.mean(axis=1, keepdims=True) + common)

    def _sample_functions(
        self,
        rng: np.random.Generator,
        whitened: FloatArray,
        hyperparameters: FloatArray,
        data: CountField,
    ) -> FloatArray:
        """Every function along its ellipses, at the sites of counts."""
        seen = _SeenCounts.of(data)
        n = seen.num_sites
        root = _root_at(self.covariance, tuple(hyperparameters.tolist()), data)
        partners = rng.standard_normal((n, data.num_categories))
        functions, across = (
            np.ascontiguousarray(np.concatenate([_times(root, z), z]).T)
            for z in (whitened[:n], partners)
        )
        restarts = self.restarts or min(4 + n // 500, 10)
        status = rotate_functions(
            new_key(rng), seen.by_category, seen.totals, np.array(self._mean(data)), restarts,
            functions, across,
        )  # fmt: skip
        if status:
            raise FloatingPointError(
                f"the log likelihood of category {status - 1} is not finite: psi has run away"
                " (is the covariance's variance too large?)"
            )
        return np.concatenate([functions[:, n:].T, whitened[n:]])

    def _sample_unseen(
        self, rng: np.random.Generator, whitened: FloatArray, data: CountField
    ) -> FloatArray:
        """New sites given those of counts."""
        whitened = whitened.copy()
        n = _SeenCounts.of(data).num_sites
        whitened[n:] = rng.standard_normal(whitened[n:].shape)
        return whitened


@dataclass(frozen=True, slots=True, eq=False)
class _SeenCounts:
    """Counts of the sites that have a row of counts, a category a row.

    Attributes
    ----------
    by_category : array, ``(num_categories, num_sites)``
    totals : array, ``(num_sites,)``
    """

    by_category: FloatArray
    totals: FloatArray

    @property
    def num_sites(self) -> int:
        return len(self.totals)

    @staticmethod
    @lru_cache(maxsize=4)
    def of(data: CountField) -> "_SeenCounts":
        # inputs come before new inputs among the sites
        counts = data.site_counts()[: int(data.row_sites.max()) + 1].astype(np.float64)
        return _SeenCounts(np.ascontiguousarray(counts.T), counts.sum(axis=1))


@lru_cache(maxsize=2)  # a chain asks for the same one many times, and one takes n^2 numbers
def _root_at(
    covariance: Covariance, hyperparameters: tuple[float, ...], data: CountField
) -> FloatArray:
    """Lower triangular root of the covariance at all sites."""
    return _nugget_root(covariance.with_log_params(np.log(hyperparameters)), data.sites)


def _nugget_root(covariance: Covariance, sites: FloatArray) -> FloatArray:
    """Lower triangular root of the covariance at the sites, nugget included."""
    cov = covariance.cov(sites)
    diagonal = np.diag_indices_from(cov)
    cov[diagonal] += _NUGGET * cov[diagonal].max()
    return lower_root(cov)[0]


def _times(root: FloatArray, whitened: FloatArray) -> FloatArray:
    """The root's first rows and columns, as many as `whitened` has rows, times it."""
    out = np.empty(whitened.shape)
    units = -(-len(whitened) // 4)
    over_rows(multiply_lower, units, root, np.ascontiguousarray(whitened), out, grain=8)
    return out
