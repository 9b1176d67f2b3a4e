r"""The sticks of a multinomial Gaussian process: fields around means linear in few features::

    beta_k        ~ N(centre_k, mean_var I),                     k = 1..K-1
    psi_k(s)      = features(s)' beta_k + g_k(s),    g_k ~ GP(0, covariance_theta)

Given potentials both are integrated out (`StickFields.collapsed`) or drawn
(`StickFields.sample_sticks`), all sites and coefficients at once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal

import numpy as np

from pgmult.core.parameters import Positive, real
from pgmult.core.potentials import DiagonalPotential
from pgmult.core.typing import ArrayLike, BoolArray, FloatArray
from pgmult.core.validate import as_finite
from pgmult.fields.covariances import Covariance, White
from pgmult.fields.covariances.base import as_covariance
from pgmult.fields.data import CountField, smoothed_shares
from pgmult.fields.models.base import FieldModel
from pgmult.fields.priors.dense import IndependentFields
from pgmult.fields.priors.field import Field, Trend
from pgmult.fields.priors.structures import Structure, make_field
from pgmult.links import StickBreaking

__all__ = ["StickFields"]


@dataclass(frozen=True, slots=True, eq=False)
class StickFields(FieldModel):
    """Sticks before counts are seen, and given potentials.

    Logarithms of hyperparameters, ``theta``, are ``(num_covariances, num_hyperparameters)``: one
    row for all sticks, or a row a stick.

    Parameters
    ----------
    covariance, structure, mean, mean_var, shared, overdispersion, hyperparameters
        As in `pgmult.fields.MultinomialGP`.
    """

    covariance: Annotated[Covariance, as_covariance]
    structure: Structure = "dense"
    mean: Literal["constant", "linear", "empirical"] | ArrayLike = "constant"
    mean_var: Positive = 4.0
    shared: bool = True
    overdispersion: Annotated[float, real(minimum=0.0, maximum=1e6)] = 0.0
    hyperparameters: Literal["sampled", "empirical_bayes", "fixed"] = "sampled"

    def _complete(self) -> None:
        if isinstance(self.mean, str):
            if self.mean not in ("constant", "linear", "empirical"):
                raise ValueError(
                    f'mean must be "constant", "linear", "empirical" or numbers, got {self.mean!r}'
                )
        elif as_finite(self.mean, "mean").ndim > 1:
            raise ValueError(
                f"mean must be one number or one a stick, got shape {np.shape(self.mean)}"
            )

    @property
    def kernel_set(self) -> str:
        """What a sweep compiles depends on the structure: see `pgmult.compiled.ahead`."""
        return f"{type(self).__name__} {self.structure}"

    def _check(self, data: CountField) -> None:
        self._level(data)

    def link(self, data: CountField) -> StickBreaking:
        """The link from psi to probabilities, its sticks in the order of the data."""
        return _link(data)

    @property
    def law(self) -> Covariance:
        """The covariance of each stick around its mean, overdispersion included."""
        return _overdispersed(self.covariance, float(self.overdispersion))

    @property
    def samples_theta(self) -> bool:
        """Whether there are hyperparameters that a chain draws."""
        return self.hyperparameters == "sampled" and self.law.num_params > 0

    def start(self, data: CountField) -> FloatArray:
        """The log hyperparameters that the covariance comes with."""
        rows = 1 if self.shared else data.num_categories - 1
        return np.tile(self.law.log_params, (rows, 1))

    def trend(self, data: CountField) -> Trend:
        """The learned part of the mean at the sites; no feature where nothing is learned."""
        sticks = data.num_categories - 1
        if not isinstance(self.mean, str) or self.mean == "empirical":
            return Trend(np.empty((data.num_sites, 0)), np.empty((0, sticks)), self.mean_var)
        features = np.ones((data.num_sites, 1))
        if self.mean == "linear":
            scale = data.inputs.std(axis=0)
            scaled = (data.sites - data.inputs.mean(axis=0)) / np.where(scale > 0.0, scale, 1.0)
            features = np.concatenate([features, scaled], axis=1)
        centre = np.zeros((features.shape[1], sticks))
        centre[0] = StickBreaking().inverse(np.full(sticks + 1, 1.0 / (sticks + 1)))
        return Trend(features, centre, self.mean_var)

    def mean_at_sites(self, beta: FloatArray, data: CountField) -> FloatArray:
        """Mean of the sticks given the coefficients, ``(num_sites, num_categories - 1)``."""
        return self.trend(data).at(beta) if len(beta) else self._level(data)

    def _level(self, data: CountField) -> FloatArray:
        """The part of the mean that is not learned."""
        sticks = data.num_categories - 1
        if not isinstance(self.mean, str):
            level = as_finite(self.mean, "mean")
            if level.ndim and len(level) != sticks:
                raise ValueError(
                    f"mean must have one entry for each of {sticks} sticks, got {len(level)}"
                )
        elif self.mean == "empirical":
            level = self.link(data).inverse(smoothed_shares(data.counts.sum(axis=0), 0.5))
        else:
            level = np.zeros(sticks)
        return np.tile(np.broadcast_to(level, sticks), (data.num_sites, 1))

    def field(self, theta: FloatArray, beta: FloatArray, data: CountField) -> Field:
        """The prior of psi at the sites."""
        mean = self.mean_at_sites(beta, data)
        parts = [mean] if self.shared else [mean[:, k] for k in range(mean.shape[1])]
        fields = [
            make_field(self.structure, _at(self.law, tuple(row.tolist())), data.sites, part)
            for row, part in zip(theta, parts, strict=True)
        ]
        return fields[0] if self.shared else IndependentFields(fields)

    def collapsed(
        self, potential: DiagonalPotential, data: CountField
    ) -> Callable[[FloatArray, BoolArray], FloatArray]:
        """Log density of log hyperparameters by row, psi and beta integrated out."""
        trend, mean = self.trend(data), self._level(data)

        def log_density_of(theta: FloatArray, columns: slice) -> float:
            covariance = self.law.with_log_params(theta)
            field = make_field(self.structure, covariance, data.sites, mean[:, columns])
            seen = DiagonalPotential(potential.J[:, columns], potential.h[:, columns])
            part = trend._replace(centre=trend.centre[:, columns])
            fit = field.condition(seen).log_normalizer_with_trend(part)
            return covariance.log_prior() + float(fit.sum())

        def log_density(thetas: FloatArray, active: BoolArray) -> FloatArray:
            out = np.zeros(len(thetas))
            for row in np.flatnonzero(active):
                columns = slice(None) if self.shared else slice(row, row + 1)
                out[row] = log_density_of(thetas[row], columns)
            return out

        return log_density

    def sample_sticks(
        self,
        rng: np.random.Generator,
        theta: FloatArray,
        potential: DiagonalPotential,
        data: CountField,
    ) -> tuple[FloatArray, FloatArray]:
        """A joint draw of the coefficients of the mean and of psi given omega."""
        trend = self.trend(data)
        field = self.field(theta, np.zeros_like(trend.centre), data).condition(potential)
        psi, beta = field.sample_with_trend(rng, trend)
        return beta, psi

    def binomials(self, data: CountField) -> tuple[FloatArray, FloatArray]:
        """How much each stick takes and how much reaches it, each ``(num_sites, num_sticks)``."""
        return _binomials(data)

    def first_guess(self, data: CountField) -> DiagonalPotential:
        """The likelihood around smoothed shares."""
        link, counts = self.link(data), data.site_counts()
        overall = counts.sum(axis=0) + 0.5
        level = link.inverse(smoothed_shares(counts, 2.0 * overall / overall.sum()))
        return link.quadratic(level, counts)


@lru_cache(maxsize=32)
def _overdispersed(covariance: Covariance, var: float) -> Covariance:
    return covariance + White(var) if var else covariance


@lru_cache(maxsize=16)
def _link(data: CountField) -> StickBreaking:
    return StickBreaking(order=data.order)


@lru_cache(maxsize=16)
def _binomials(data: CountField) -> tuple[FloatArray, FloatArray]:
    counts = data.site_counts()
    taken, reaching = counts[:, data.order[:-1]], _link(data).totals(counts)
    return taken.astype(np.float64), reaching.astype(np.float64)


@lru_cache(maxsize=256)
def _at(covariance: Covariance, theta: tuple[float, ...]) -> Covariance:
    """One object for one value of the parameters: fields keep what they computed for an object."""
    return covariance.with_log_params(theta) if theta else covariance
