r"""Multinomial Gaussian processes under the stick-breaking link (SBM-GP).

Counts of K categories at inputs s in space and time (Linderman, Johnson and Adams 2015, section 4).
Their probabilities come from K - 1 sticks, each a Gaussian process around a mean that is linear in
a few features::

    theta         ~ priors of the covariance's parameters; one for all sticks, or one per stick
    beta_k        ~ N(centre_k, mean_var I),                     k = 1..K-1
    psi_k(s)      = features(s)' beta_k + g_k(s),    g_k ~ GP(0, covariance_theta)
    x_i           ~ Multinomial(N_i, stick-breaking(psi(s_i)))   i = 1..n

How chains move is in `pgmult.fields.updates.samplers`.

Sites are the distinct inputs, new inputs included. Psi at the new inputs is drawn with the rest.

>>> import numpy as np, pgmult
>>> from pgmult.fields.covariances import Matern
>>> years = np.arange(2000.0, 2008.0)
>>> counts = np.random.default_rng(0).multinomial(20, [0.5, 0.3, 0.2], size=8)
>>> posterior = pgmult.sample(
...     MultinomialGP(0.5 * Matern(1.5, length_scale=5.0)),
...     pgmult.fields.as_field(years, counts, new_inputs=[2008.0, 2009.0]),
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> posterior["pi_new"].shape
(1, 10, 2, 3)
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import as_real
from pgmult.core.family import Family
from pgmult.core.memory import once_a_data_set
from pgmult.core.parameters import Checked, Positive, axes_of, real
from pgmult.core.potentials import DiagonalPotential
from pgmult.core.sweeps import Sampled, Sampler
from pgmult.core.typing import ArrayLike, FloatArray, Generator, Link, ObservedRows
from pgmult.core.validate import as_finite
from pgmult.fields.covariances import Covariance, LogNormal, White
from pgmult.fields.covariances.base import as_covariance
from pgmult.fields.data import CountField, smoothed_shares
from pgmult.fields.family import FIELDS
from pgmult.fields.priors.field import Field, Trend
from pgmult.fields.priors.separable import has_effects
from pgmult.fields.priors.sticks import StickGroup, TableDraw, TableSticks, covariance_at
from pgmult.fields.priors.structures import DENSE, Structure, find_table, make_field
from pgmult.links import StickBreaking

START_COUNT = 0.5  # added to every count whose logarithms are taken
_MOST_LOG_ODDS = 1e4  # beyond, what the counts say is lost to rounding
_MANY = 100  # counts at a site, on average
_USUAL_VAR, _VAR_SPREAD = 0.05, 1.5  # prior median of effects' variance, and sd of its logarithm


def check_mean(mean: str | ArrayLike, unit: str, *words: str) -> None:
    """Refuse a mean of psi that is no such word, no number and none of each stick or category."""
    if isinstance(mean, str):
        if mean not in words:
            allowed = ", ".join(f'"{word}"' for word in words)
            raise ValueError(f"mean must be {allowed} or numbers, got {mean!r}")
        return
    level = as_finite(mean, "mean")
    if level.ndim > 1:
        raise ValueError(f"mean must be one number or one a {unit}, got shape {level.shape}")
    if (size := np.abs(level).max(initial=0.0)) > _MOST_LOG_ODDS:
        hint = "it is in log odds: at 10 a probability is .99995"
        raise ValueError(f"mean must lie within ±{_MOST_LOG_ODDS:g}, got size {size:g} ({hint})")


def level_of(mean: str | ArrayLike, n: int, unit: str, link: Link, data: CountField) -> FloatArray:
    """A mean of psi that is not learned, ``(n,)``; "empirical" takes that of all counts."""
    if isinstance(mean, str):
        return link.inverse(smoothed_shares(data.counts.sum(axis=0), START_COUNT))
    level = as_finite(mean, "mean")
    if level.ndim and len(level) != n:
        raise ValueError(f"mean must have one entry for each of {n} {unit}, got {len(level)}")
    return np.broadcast_to(level, n)


class FieldModel(Checked, ABC):
    """Counts given psi at the sites of a `CountField`, through the model's link."""

    __slots__ = ()
    family: ClassVar[Family] = FIELDS

    @abstractmethod
    def link(self, data: CountField) -> Link:
        """The link from psi to probabilities."""

    @abstractmethod
    def _check(self, data: CountField) -> None:
        """Refuse data that do not go with the model."""

    @abstractmethod
    def _labels(self, data: CountField) -> dict[str, Sequence[Any] | NDArray[Any]]:
        """Labels of the axes that models differ in."""

    def coords(self, data: CountField) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Labels of the axes, where there are any."""
        names = {"category": data.categories, "row": data.names, "new_row": data.new_names}
        labels = {axis: value for axis, value in names.items() if value is not None}
        return labels | self._labels(data)

    def as_data(self, data: object) -> CountField:
        """A field of counts as it is; anything else lacks the inputs."""
        if not isinstance(data, CountField):
            kind, hint = type(data).__name__, "make the data with as_field(inputs, counts)"
            raise TypeError(f"Gaussian processes need the inputs of counts, got {kind} ({hint})")
        self._check(data)
        return data

    def simulate(self, rng: Generator, state: Any, data: CountField) -> CountField:
        """Counts of the same totals at the same inputs."""
        return data.with_counts(self.link(data).simulate(rng, data.row_psi(state.psi), data.totals))

    def log_likelihood(self, state: Any, data: CountField) -> float:
        """Log probability of the counts, without the multinomial coefficients."""
        return float(self.link(data).log_likelihood(data.row_psi(state.psi), data.counts).sum())

    def observed_rows(self, data: CountField) -> ObservedRows:
        """The rows, with their totals and inputs."""
        constants = {"totals": (("row",), data.totals), "inputs": (("row", "input"), data.inputs)}
        return ObservedRows(("row", "category"), data.counts, constants)

    def row_probs(self, draw: Mapping[str, Any], data: CountField) -> FloatArray:
        """Return probabilities of the rows from ``psi`` or ``pi``."""
        if "psi" in draw:
            return self.link(data).probs(data.row_psi(draw["psi"]))
        if "pi" in draw:
            return np.asarray(draw["pi"])
        raise ValueError("the posterior must have kept psi or pi (pass it in keep=)")

    def pi(self, state: Any, data: CountField) -> FloatArray:
        """Probabilities at the inputs, ``(num_rows, num_categories)``."""
        return self.link(data).probs(data.row_psi(state.psi))

    def pi_new(self, state: Any, data: CountField) -> FloatArray:
        """Probabilities at the new inputs, a joint draw, ``(num_new, num_categories)``."""
        return self.link(data).probs(state.psi[data.new_sites])


def _as_overdispersion(value: object, name: str) -> float | Literal["auto"]:
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(f'{name} must be "auto" or a number, got {value!r}')
        return "auto"
    return as_real(value, name, minimum=0.0, maximum=1e6)


@dataclass(frozen=True, slots=True, eq=False)
class MultinomialGPState:
    """One point of the chain.

    Attributes
    ----------
    psi : array, ``(num_sites, num_categories - 1)``
        At the distinct inputs and new inputs, `CountField.sites`, and after them in the cells
        that are missing of a separable field's table; sticks in the data's order.
    beta : array, ``(num_features, num_categories - 1)``
        Coefficients of each stick's mean; no row where the mean is not learned.
    hyperparameters : array, ``(num_covariances, num_hyperparameters)``
        The covariance's free parameters: one row for all sticks, or one row per stick.
    """

    psi: Annotated[FloatArray, "site", "stick"]
    beta: Annotated[FloatArray, "feature", "stick"]
    hyperparameters: Annotated[FloatArray, "covariance", "hyperparameter"]

    @classmethod
    def of_tables(
        cls, sticks: Sequence[TableSticks], draws: Sequence[TableDraw], fixed: FloatArray | None
    ) -> "MultinomialGPState":
        """Join the draws of groups of sticks on a table."""
        psi = [group.table.at_sites(draw.psi) for group, draw in zip(sticks, draws, strict=True)]
        beta = np.concatenate([draw.beta for draw in draws], axis=1)
        theta = np.exp([draw.x for draw in draws]) if fixed is None else fixed
        return cls(np.concatenate(psi, axis=1), beta, theta)

    def on_tables(self, sticks: Sequence[TableSticks]) -> list[TableDraw]:
        """Split into the draws of groups of sticks: the inverse of `of_tables`."""
        draws = []
        for group, theta in zip(sticks, self.hyperparameters, strict=True):
            beta, psi = (values[:, group.columns] for values in (self.beta, self.psi))
            x = np.log(theta)[: len(group.start)]
            draws.append(TableDraw(x, beta, group.table.arranged(psi)))
        return draws


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MultinomialGP(FieldModel, Sampled[CountField, MultinomialGPState]):
    """Multinomial counts whose sticks are Gaussian processes, sampled in exact blocks.

    Parameters
    ----------
    covariance : Covariance
        Of each stick around its mean; the search for an approximation starts at the parameters
        it comes with.
    structure : {"dense", "state_space", "separable", "auto"}
        How the fields are computed: see `pgmult.fields.priors.structures`. "auto" logs its choice.
    mean : {"constant", "linear", "empirical"}, float or array, ``(num_categories - 1,)``
        Of each stick: a learned constant; learned coefficients of a constant and of every input
        column, standardised; the sticks of the shares of the categories in all counts, a point
        estimate; or given numbers.
    mean_var : float
        Prior variance of the learned coefficients. That of the constant is centred where all
        categories are equally probable, those of the inputs at 0.
    shared : bool
        Whether all sticks share the covariance's parameters, or each has its own.
    overdispersion : float or "auto"
        Where positive, every site has an independent effect of its own on each stick, with this
        variance (the prior median, where hyperparameters are sampled: within a factor of 20 in 95
        of 100): counts vary by more than the smooth field and multinomial noise. Short for
        ``covariance + White(overdispersion)``. New inputs have effects of their own as well.
        "auto" is .05 where hyperparameters are learned, the covariance has no such effects, and
        sites have a hundred counts on average, so that they tell of it, or the structure is a
        separable one; else 0.
    hyperparameters : {"sampled", "fixed"}
        "fixed" keeps the values given.
    hyperparameter_rate : float
        The probability that a sweep updates sampled hyperparameters. An update factors the
        covariances again, while the rest of a sweep reuses the factors: with many inputs a rate
        below 1 gives more effective draws of the probabilities per second. It plays no part on the
        table of a separable field, where the size of the table decides.

    Notes
    -----
    With "dense" and n distinct inputs a sweep costs O(n**2 K), and O(n**3 K) where it updates
    hyperparameters. A learned mean costs next to nothing. Chains start at draws from the
    approximation.
    """

    covariance: Annotated[Covariance, as_covariance]
    structure: Structure = "auto"
    mean: Literal["constant", "linear", "empirical"] | ArrayLike = "constant"
    mean_var: Positive = 4.0
    shared: bool = True
    overdispersion: Annotated[float | Literal["auto"], _as_overdispersion] = "auto"
    hyperparameters: Literal["sampled", "fixed"] = "sampled"
    hyperparameter_rate: Annotated[float, real(above=0.0, maximum=1.0)] = 0.5

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = axes_of(MultinomialGPState) | {
        "pi": ("row", "category"),
        "pi_new": ("new_row", "category"),
    }
    default_keep: ClassVar[tuple[str, ...]] = ("psi", "beta", "hyperparameters", "pi_new")
    monitored: ClassVar[tuple[str, ...]] = ("psi", "hyperparameters")
    ess_targets: ClassVar[Mapping[str, float]] = {"psi": 50.0, "hyperparameters": 25.0}
    least_draws: ClassVar[int] = 100

    def _complete(self) -> None:
        check_mean(self.mean, "stick", "constant", "linear", "empirical")

    @property
    def kernel_set(self) -> str:
        """Name of the functions that a sweep compiles: see `pgmult.compiled.ahead`."""
        # of few inputs, "auto" is dense
        return f"{type(self).__name__} {'dense' if self.structure == 'auto' else self.structure}"

    def _check(self, data: CountField) -> None:
        self.trend(data)
        self.table_sticks(data)

    def link(self, data: CountField) -> StickBreaking:
        """The link from psi to probabilities, its sticks in the order of the data."""
        return StickBreaking(order=data.order)

    def full_covariance(self, data: CountField) -> Covariance:
        """The covariance of each stick around its mean, overdispersion included."""
        var = self.overdispersion
        if var == "auto":
            var = _USUAL_VAR if self._learns_effects(data) else 0.0
        return _overdispersed(self.covariance, float(var))

    def _learns_effects(self, data: CountField) -> bool:
        has_own = has_effects(self.covariance, data.inputs.shape[1])
        if has_own or self.hyperparameters == "fixed" or not self.covariance.num_params:
            return False
        if self.structure == "separable":
            return True
        size, counts = _size_of(data)
        return counts >= _MANY * size or (self.structure == "auto" and size > DENSE)

    def fixed(self, data: CountField) -> FloatArray | None:
        """Return the hyperparameters where they are not sampled; else None."""
        if self.hyperparameters == "sampled" and self.full_covariance(data).num_params > 0:
            return None
        return np.exp(self.start(data))

    def start(self, data: CountField) -> FloatArray:
        """The log hyperparameters that the covariance comes with."""
        return np.tile(self.full_covariance(data).log_params, (len(self.columns(data)), 1))

    def trend(self, data: CountField) -> Trend:
        """The mean of the sticks at the sites; no feature where nothing is learned."""
        sticks = data.num_categories - 1
        if not isinstance(self.mean, str) or self.mean == "empirical":
            level = level_of(self.mean, sticks, "sticks", self.link(data), data)
            return Trend.known(np.tile(level, (data.num_sites, 1)))
        features = np.ones((data.num_sites, 1))
        if self.mean == "linear":
            scale = data.inputs.std(axis=0)
            scaled = (data.sites - data.inputs.mean(axis=0)) / np.where(scale > 0.0, scale, 1.0)
            features = np.concatenate([features, scaled], axis=1)
        centre = np.zeros((features.shape[1], sticks))
        centre[0] = StickBreaking().inverse(np.full(sticks + 1, 1.0 / (sticks + 1)))
        return Trend(np.zeros((data.num_sites, sticks)), features, centre, self.mean_var)

    def columns(self, data: CountField) -> list[slice]:
        """The sticks that share hyperparameters: all, or each for itself."""
        sticks = data.num_categories - 1
        return [slice(0, sticks)] if self.shared else [slice(k, k + 1) for k in range(sticks)]

    def fields(self, theta: FloatArray, data: CountField) -> list[Field]:
        """The priors of psi around its mean at the sites, one for each of `columns`."""
        covariance = self.full_covariance(data)
        laws = [covariance_at(covariance, row.tobytes())[0] for row in theta]
        return [make_field(self.structure, law, data.sites) for law in laws]

    def augment(self, rng: Generator, psi: FloatArray, data: CountField) -> DiagonalPotential:
        """Pólya-gamma variables given psi at the sites, as potentials on it."""
        if data.counted is None:
            return self.link(data).augment(rng, psi, data.site_counts())
        by_row = self.link(data).augment(rng, psi[data.row_sites], data.counts)
        counted = data.counted[:, data.order[:-1]]
        return DiagonalPotential(*(data.at_sites(x * counted) for x in (by_row.J, by_row.h)))

    def groups(self, data: CountField) -> list[StickGroup]:
        """The sticks of each of `columns` at the sites, with their counts."""
        trend, counts = self.trend(data), self.binomials(data)
        covariance, fixed = self.full_covariance(data), self.fixed(data)
        start = covariance.log_params if fixed is None else np.empty(0)
        return [
            StickGroup(columns, covariance, start, trend.of(columns), counts[..., columns])
            for columns in self.columns(data)
        ]

    def table_sticks(self, data: CountField) -> list[TableSticks] | None:
        """The sticks of each of `columns`, where the sites are cells of a table; else None."""
        return _table_sticks(data, self)

    def binomials(self, data: CountField) -> FloatArray:
        """How much each stick takes and how much reaches it, ``(2, num_sites, num_sticks)``."""
        return data.stick_counts().astype(np.float64)

    def _labels(self, data: CountField) -> dict[str, Sequence[Any] | NDArray[Any]]:
        names = np.arange(data.num_categories) if data.categories is None else data.categories
        sticks = names[data.order[:-1]]
        return {
            "stick": sticks,
            "feature": ["constant", *data.input_labels][: len(self.trend(data).centre)],
            "covariance": ["shared"] if self.shared else sticks,
            "hyperparameter": list(self.full_covariance(data).param_names),
        }

    def prior(self, rng: Generator, data: CountField) -> MultinomialGPState:
        """Draw hyperparameters, coefficients and sticks from the prior."""
        fixed, trend, theta = self.fixed(data), self.trend(data), self.start(data)
        if fixed is None:
            theta = np.array([self.full_covariance(data).sample_log_params(rng) for _ in theta])
        beta = trend.draw(rng)
        if (sticks := self.table_sticks(data)) is not None:
            draws = [
                group.sample(rng, row[: len(group.start)], beta[:, group.columns])
                for group, row in zip(sticks, theta, strict=True)
            ]
            return MultinomialGPState.of_tables(sticks, draws, fixed)
        pairs = zip(self.fields(theta, data), self.columns(data), strict=True)
        psi = [field.sample(rng, columns.stop - columns.start) for field, columns in pairs]
        return MultinomialGPState(trend.at(beta) + np.concatenate(psi, axis=1), beta, np.exp(theta))

    def sampler(self, data: CountField) -> Sampler[MultinomialGPState]:
        """Choose how chains move: see `pgmult.fields.updates.samplers`."""
        from pgmult.fields.updates.samplers import sampler

        return sampler(self, data)


@once_a_data_set
def _table_sticks(data: CountField, model: MultinomialGP) -> list[TableSticks] | None:
    table = find_table(model.structure, model.full_covariance(data), data.sites)
    if table is None:
        return None
    data = replace(data, sites=table.sites)  # cells without an input are sites without counts
    return [TableSticks(table, group) for group in model.groups(data)]


@lru_cache(maxsize=32)
def _overdispersed(covariance: Covariance, var: float) -> Covariance:
    if not var:
        return covariance
    return covariance + White(var, priors={"var": LogNormal(var, _VAR_SPREAD)})


@once_a_data_set
def _size_of(data: CountField) -> tuple[int, int]:
    """Count the distinct inputs with counts, and the counts."""
    return len(np.unique(data.row_sites[data.totals > 0])), int(data.totals.sum())
