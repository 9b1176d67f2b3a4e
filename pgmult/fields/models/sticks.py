r"""The sticks of a multinomial Gaussian process: fields around means linear in few features::

    beta_k        ~ N(centre_k, mean_var I),                     k = 1..K-1
    psi_k(s)      = features(s)' beta_k + g_k(s),    g_k ~ GP(0, covariance_theta)

Given potentials both are integrated out or drawn, all sites and coefficients at once: `Sticks`.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, Literal

import numpy as np

from pgmult.core.arguments import as_real
from pgmult.core.memory import once_a_data_set
from pgmult.core.parameters import Positive
from pgmult.core.potentials import DiagonalPotential
from pgmult.core.typing import ArrayLike, BoolArray, FloatArray
from pgmult.fields.covariances import Covariance, LogNormal, White
from pgmult.fields.covariances.base import as_covariance
from pgmult.fields.data import CountField
from pgmult.fields.models.base import FieldModel, check_mean, level_of
from pgmult.fields.priors.field import Field, FieldLaw, Trend
from pgmult.fields.priors.separable import has_effects
from pgmult.fields.priors.structures import Structure, find_table, is_large, make_field
from pgmult.fields.updates.table_sticks import TableSticks
from pgmult.links import StickBreaking

_REMEMBERED = 8  # laws: of a few chains, where each is and where it may go
_DIGITS = 12  # log(exp(x)) has the same
_LEAST_VAR = 1e-8
_MANY = 100  # counts at a site, on average
_USUAL_VAR, _VAR_SPREAD = 0.05, 1.5  # prior median of effects' variance, and sd of its logarithm


def _as_overdispersion(value: Any, name: str) -> float | Literal["auto"]:
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(f'{name} must be "auto" or a number, got {value!r}')
        return "auto"
    return as_real(value, name, minimum=0.0, maximum=1e6)


@dataclass(frozen=True, slots=True, eq=False)
class StickFields(FieldModel):
    """Sticks before counts are seen, and given potentials.

    Logarithms of hyperparameters, ``theta``, are ``(num_covariances, num_hyperparameters)``: one
    row for all sticks, or one row per stick.

    Parameters
    ----------
    covariance, structure, mean, mean_var, shared, overdispersion, hyperparameters
        As in `pgmult.fields.MultinomialGP`.
    """

    covariance: Annotated[Covariance, as_covariance]
    structure: Structure = "auto"
    mean: Literal["constant", "linear", "empirical"] | ArrayLike = "constant"
    mean_var: Positive = 4.0
    shared: bool = True
    overdispersion: Annotated[float | Literal["auto"], _as_overdispersion] = "auto"
    hyperparameters: Literal["sampled", "fixed"] = "sampled"

    def _complete(self) -> None:
        check_mean(self.mean, "stick", "constant", "linear", "empirical")

    @property
    def kernel_set(self) -> str:
        """What a sweep compiles depends on the structure: see `pgmult.compiled.ahead`."""
        structure = "dense" if self.structure == "auto" else self.structure  # of few inputs, it is
        return f"{type(self).__name__} {structure}"

    def _check(self, data: CountField) -> None:
        self._level(data)
        self.on_table(data)

    def link(self, data: CountField) -> StickBreaking:
        """The link from psi to probabilities, its sticks in the order of the data."""
        return _link(data)

    def law(self, data: CountField) -> Covariance:
        """The covariance of each stick around its mean, overdispersion included."""
        var = self.overdispersion
        if var == "auto":
            var = _USUAL_VAR if self._learns_effects(data) else 0.0
        return _overdispersed(self.covariance, float(var))

    def _learns_effects(self, data: CountField) -> bool:
        covariance = self.covariance
        if self.hyperparameters == "fixed" or not covariance.num_params:
            return False
        if has_effects(covariance, data.inputs.shape[1]):
            return False
        if self.structure == "separable":
            return True
        size, counts = _size_of(data)
        return counts >= _MANY * size or (self.structure == "auto" and is_large(size))

    def samples_theta(self, data: CountField) -> bool:
        """Whether there are hyperparameters that a chain draws."""
        return self.hyperparameters == "sampled" and self.law(data).num_params > 0

    def start(self, data: CountField) -> FloatArray:
        """The log hyperparameters that the covariance comes with."""
        rows = 1 if self.shared else data.num_categories - 1
        return np.tile(self.law(data).log_params, (rows, 1))

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
        learned = isinstance(self.mean, str) and self.mean != "empirical"
        known = 0.0 if learned else self.mean
        level = level_of(known, sticks, "sticks", self.link(data), data)
        return np.tile(level, (data.num_sites, 1))

    def columns(self, data: CountField) -> list[slice]:
        """The sticks that share hyperparameters: all, or each for itself."""
        sticks = data.num_categories - 1
        return [slice(0, sticks)] if self.shared else [slice(k, k + 1) for k in range(sticks)]

    def fields(self, theta: FloatArray, beta: FloatArray, data: CountField) -> list[Field]:
        """The priors of psi at the sites, one for each of `columns`."""
        law, mean = self.law(data), self.mean_at_sites(beta, data)
        return [
            make_field(self.structure, _at(law, tuple(row.tolist())), data.sites, mean[:, columns])
            for row, columns in zip(theta, self.columns(data), strict=True)
        ]

    def augment(
        self, rng: np.random.Generator, psi: FloatArray, data: CountField
    ) -> DiagonalPotential:
        """Pólya-gamma variables given psi at the sites, as potentials on it."""
        if data.counted is None:
            return self.link(data).augment(rng, psi, data.site_counts())
        there = data.counted[:, data.order[:-1]]
        each = self.link(data).augment(rng, psi[data.row_sites], data.counts)
        total = np.zeros((2, *psi.shape))
        for sums, rows in zip(total, (each.J, each.h), strict=True):
            np.add.at(sums, data.row_sites, rows * there)
        return DiagonalPotential(*total)

    def on_table(self, data: CountField) -> list[TableSticks] | None:
        """The sticks of each of `columns`, where the sites are cells of a table; else None."""
        return _on_table(data, self)

    def binomials(self, data: CountField) -> tuple[FloatArray, FloatArray]:
        """How much each stick takes and how much reaches it, each ``(num_sites, num_sticks)``."""
        return _binomials(data)


class Sticks:
    """Sticks that share hyperparameters, as one of the families that `pgmult.latent` moves.

    Weights w are psi at all sites, and below them the coefficients beta; a column each stick. Laws
    at hyperparameters are remembered, as moves ask for them again.

    Parameters
    ----------
    model : StickFields
    data : CountField
    columns : slice
        The sticks.
    """

    def __init__(self, model: StickFields, data: CountField, columns: slice):
        trend, reaching = model.trend(data), model.binomials(data)[1]
        self._structure, self._sites = model.structure, data.sites
        self._law, self._samples_theta = model.law(data), model.samples_theta(data)
        self._trend = trend._replace(centre=trend.centre[:, columns])
        self._level = model._level(data)[:, columns]
        self.seen = np.flatnonzero(reaching[:, columns].any(axis=1))
        self._found_law = lru_cache(maxsize=_REMEMBERED)(self._find_law)
        self._found_covariance = lru_cache(maxsize=_REMEMBERED)(self._find_covariance)

    @property
    def shape(self) -> tuple[int, int]:
        """Sites with counts, and sticks."""
        return len(self.seen), self._level.shape[1]

    def start(self) -> FloatArray:
        """Hyperparameters from which a search begins; none where they are fixed."""
        return self._law.log_params if self._samples_theta else np.empty(0)

    def slopes(self, x: FloatArray, seen: DiagonalPotential) -> None:
        """Not told."""

    def is_sd(self) -> BoolArray:
        """No hyperparameter is a coordinate that must be positive."""
        return np.zeros(len(self.start()), dtype=np.bool_)

    def log_prior(self, x: FloatArray) -> float:
        """Log density of log hyperparameters."""
        return self._found_covariance(_key(x))[1]

    def absorb(self, J: FloatArray, h: FloatArray) -> DiagonalPotential:
        """A potential on the sites with counts, as one on all sites."""
        everywhere = np.zeros((2, *self._level.shape))
        everywhere[:, self.seen] = J, h
        return DiagonalPotential(*everywhere)

    def at(self, x: FloatArray, seen: DiagonalPotential) -> FieldLaw:
        """The law at hyperparameters, told to the digits that a state keeps of them."""
        return self._found_law(_key(x), seen)

    def predictor(self, w: FloatArray) -> FloatArray:
        """Psi at the sites with counts."""
        return w[self.seen]

    def pull(self, g: FloatArray) -> FloatArray:
        """The gradient with respect to w."""
        out = np.zeros((len(self._sites) + len(self._trend.centre), g.shape[1]))
        out[self.seen] = g
        return out

    def variances(self, law: FieldLaw, rng: np.random.Generator) -> FloatArray:
        """Of the predictors."""
        return np.maximum(law.variances(rng)[self.seen], _LEAST_VAR)

    def _find_covariance(self, x: bytes) -> tuple[Covariance, float]:
        """The covariance, and the prior density of its parameters."""
        if not x:
            return self._law, 0.0
        covariance = self._law.with_log_params(np.frombuffer(x))
        return covariance, covariance.log_prior()

    def _find_law(self, x: bytes, seen: DiagonalPotential) -> FieldLaw:
        covariance, _ = self._found_covariance(x)
        field = make_field(self._structure, covariance, self._sites, self._level)
        return field._with(potential=seen).law(self._trend)


@once_a_data_set
def _on_table(data: CountField, model: StickFields) -> list[TableSticks] | None:
    law = model.law(data)
    table = find_table(model.structure, law, data.sites)
    if table is None:
        return None
    start = law.log_params if model.samples_theta(data) else np.empty(0)
    # cells that no input is in are sites without counts
    data = replace(data, sites=table.sites)
    (taken, reaching), trend = model.binomials(data), model.trend(data)
    level = model._level(data)[0]
    return [
        TableSticks(
            law, start, table, trend._replace(centre=trend.centre[:, columns]),
            level[columns], taken[:, columns], reaching[:, columns],
        )
        for columns in model.columns(data)
    ]  # fmt: skip


def _key(x: FloatArray) -> bytes:
    """Log hyperparameters to the digits that their exponentials keep."""
    return np.round(x, _DIGITS).tobytes()


@lru_cache(maxsize=32)
def _overdispersed(covariance: Covariance, var: float) -> Covariance:
    if not var:
        return covariance
    return covariance + White(var, priors={"var": LogNormal(var, _VAR_SPREAD)})


@once_a_data_set
def _size_of(data: CountField) -> tuple[int, int]:
    """How many distinct inputs have counts, and how many counts there are."""
    return len(np.unique(data.row_sites[data.totals > 0])), int(data.totals.sum())


@lru_cache(maxsize=16)
def _link(data: CountField) -> StickBreaking:
    return StickBreaking(order=data.order)


@lru_cache(maxsize=16)
def _binomials(data: CountField) -> tuple[FloatArray, FloatArray]:
    taken, reaching = data.stick_counts()
    return taken.astype(np.float64), reaching.astype(np.float64)


@lru_cache(maxsize=256)
def _at(covariance: Covariance, theta: tuple[float, ...]) -> Covariance:
    """One object for one value of the parameters: fields keep what they computed for an object."""
    return covariance.with_log_params(theta) if theta else covariance
