r"""Multinomial Gaussian processes under the stick-breaking link (SBM-GP).

Counts of K categories at inputs s in space and time (Linderman, Johnson and Adams 2015, section 4).
Their probabilities come from K - 1 sticks, each a Gaussian process around a mean that is linear in
a few features::

    theta         ~ priors of the covariance's parameters; one for all sticks, or one per stick
    beta_k        ~ N(centre_k, mean_var I),                     k = 1..K-1
    psi_k(s)      = features(s)' beta_k + g_k(s),    g_k ~ GP(0, covariance_theta)
    x_i           ~ Multinomial(N_i, stick-breaking(psi(s_i)))   i = 1..n

As a function of psi the likelihood is nearly Gaussian, whatever the counts. That Gaussian is found
before the chain starts (`pgmult.latent.approximation`), and the exact moves of a sweep use it
(`pgmult.latent.moves`)::

1. theta, beta, psi | x        in some of the sweeps: a leap to a point that does not depend on the
                               old one, theta from the law that it has under the approximation, psi
                               and beta given theta; or, where that is hardly ever accepted, a move
                               of theta that carries psi and beta along
2. beta, psi | theta, x        where there was no leap: each stick turns about the approximation,
                               all sites and coefficients at once; by swings where that is rough

On the table of a separable field a sweep is another: see `pgmult.fields.updates.table_sticks`.

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pgmult.core.memory import once_a_data_set
from pgmult.core.parameters import axes_of, real
from pgmult.core.potentials import DiagonalPotential
from pgmult.core.typing import ArrayLike, FloatArray
from pgmult.core.validate import new_key
from pgmult.fields.data import CountField
from pgmult.fields.models.sticks import StickFields, Sticks
from pgmult.fields.priors.field import FieldDraw
from pgmult.fields.updates import table_sticks
from pgmult.latent.approximation import Approximation, approximate, hyperparameters_near
from pgmult.latent.moves import Point, carry, leap, swing, turn
from pgmult.variational.sites import LogisticSite

_FAR = 1.0  # spread from which on leaps are taken less often than not
_SPREAD = 0.5  # that of a stick from which on turns are short


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


@dataclass(frozen=True, slots=True, eq=False)
class MultinomialGP(StickFields):
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
        of 100): counts vary by more than the smooth law and multinomial noise. Short for
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

    hyperparameter_rate: Annotated[float, real(above=0.0, maximum=1.0)] = 0.5

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = axes_of(MultinomialGPState) | {
        "pi": ("row", "category"),
        "pi_new": ("new_row", "category"),
    }
    default_keep: ClassVar[tuple[str, ...]] = ("psi", "beta", "hyperparameters", "pi_new")
    told: ClassVar[tuple[str, ...]] = ("psi", "hyperparameters")
    settled_at: ClassVar[Mapping[str, float]] = {"psi": 50.0, "hyperparameters": 25.0}
    least_draws: ClassVar[int] = 100

    def _labels(self, data: CountField) -> dict[str, Sequence[Any] | NDArray[Any]]:
        names = np.arange(data.num_categories) if data.categories is None else data.categories
        inputs = [f"input {i}" for i in range(data.inputs.shape[1])]
        if data.input_names is not None:
            inputs = data.input_names.tolist()
        sticks = names[data.order[:-1]]
        return {
            "stick": sticks,
            "feature": ["constant", *inputs][: len(self.trend(data).centre)],
            "covariance": ["shared"] if self.shared else sticks,
            "hyperparameter": list(self.law(data).param_names),
        }

    def prior(self, rng: np.random.Generator, data: CountField) -> MultinomialGPState:
        """Hyperparameters, coefficients and sticks from the prior."""
        theta, centre = self.start(data), self.trend(data).centre
        if self.samples_theta(data):
            theta = np.array([self.law(data).sample_log_params(rng) for _ in theta])
        beta = centre + np.sqrt(self.mean_var) * rng.standard_normal(centre.shape)
        if (parts := self.on_table(data)) is not None:
            draws = [
                table_sticks.Draw(x, beta[:, own], sticks.prior(rng, x, beta[:, own]))
                for sticks, x, own in zip(
                    parts, self._moving(theta, data), self.columns(data), strict=True
                )
            ]
            return self._of_draws(draws, data)
        psi = [field.sample(rng) for field in self.fields(theta, beta, data)]
        return MultinomialGPState(np.concatenate(psi, axis=1), beta, np.exp(theta))

    def init(self, rng: np.random.Generator, data: CountField) -> MultinomialGPState:
        """A draw from the approximation of the posterior."""
        if (parts := self.on_table(data)) is not None:
            pairs = zip(parts, _pilots(data, self), strict=True)
            draws = [table_sticks.init(rng, sticks, near) for sticks, near in pairs]
            return self._of_draws(draws, data)
        points = []
        for family, _, found in _parts(data, self):
            x = hyperparameters_near(rng, family, found.guess)
            points.append(Point.of(x, family.at(x, found.absorbed).sample(rng), family, found))
        return self._state_of(points, data)

    def step(
        self, rng: np.random.Generator, state: MultinomialGPState, data: CountField
    ) -> MultinomialGPState:
        """One sweep over all sticks."""
        if self.on_table(data) is not None:
            draws = [
                table_sticks.sweep(rng, sticks, draw, near)
                for (sticks, draw), near in zip(
                    self._draws(state, data), _pilots(data, self), strict=True
                )
            ]
            return self._of_draws(draws, data)
        both = np.concatenate([state.psi, state.beta])
        theta = self._moving(np.log(state.hyperparameters), data)
        moves_theta = self.samples_theta(data) and rng.random() < self.hyperparameter_rate
        points = []
        for x, columns, part in zip(theta, self.columns(data), _parts(data, self), strict=True):
            family, rows, found = part
            point = Point.of(x, both[:, columns], family, found)
            if moves_theta:
                point = _theta_moved(rng, point, family, rows, found)
            if not moves_theta or found.spread > _FAR:
                short = found.spread > _SPREAD * point.w.shape[1]
                point = (swing if short else turn)(rng, point, family, rows, found)
            points.append(point)
        return self._state_of(points, data)

    def _state_of(self, points: Sequence[Point], data: CountField) -> MultinomialGPState:
        w = np.concatenate([point.w for point in points], axis=1)
        theta = self.start(data)
        if self.samples_theta(data):
            theta = np.array([point.x for point in points])
        return MultinomialGPState(w[: data.num_sites], w[data.num_sites :], np.exp(theta))

    def _moving(self, theta: FloatArray, data: CountField) -> FloatArray:
        """The log hyperparameters that are sampled; no column where none are."""
        return theta[:, : None if self.samples_theta(data) else 0]

    def _draws(
        self, state: MultinomialGPState, data: CountField
    ) -> list[tuple[table_sticks.TableSticks, table_sticks.Draw]]:
        """Sticks on a table, and where they are."""
        theta = self._moving(np.log(state.hyperparameters), data)
        parts = zip(self.on_table(data) or [], theta, self.columns(data), strict=True)
        return [
            (
                sticks,
                table_sticks.Draw(x, state.beta[:, own], sticks.table.arranged(state.psi[:, own])),
            )
            for sticks, x, own in parts
        ]

    def _of_draws(self, draws: Sequence[table_sticks.Draw], data: CountField) -> MultinomialGPState:
        psi = np.concatenate(
            [
                sticks.table.at_sites(draw.psi)
                for sticks, draw in zip(self.on_table(data) or [], draws, strict=True)
            ],
            axis=1,
        )
        beta = np.concatenate([draw.beta for draw in draws], axis=1)
        theta = self.start(data)
        if self.samples_theta(data):
            theta = np.array([draw.x for draw in draws])
        return MultinomialGPState(psi, beta, np.exp(theta))

    def approximations(self, data: CountField) -> tuple[Approximation, ...]:
        """The Gaussian approximation of the posterior of each of `columns`, with its accuracy.

        There is none where the structure is a separable one.
        """
        return tuple(found for _, _, found in _parts(data, self))

    def predict_at(
        self,
        rng: np.random.Generator,
        state: MultinomialGPState,
        data: CountField,
        new_inputs: ArrayLike,
    ) -> FieldDraw:
        """The sticks at inputs that were not in the fit, psi at the other inputs integrated out.

        omega is drawn given the state's psi (Linderman, Johnson and Adams 2015, appendix B). Costs
        as much as a sweep.

        Parameters
        ----------
        rng : numpy.random.Generator
        state : MultinomialGPState
        data : CountField
            Of the chain.
        new_inputs : array, ``(num_new, num_inputs)``

        Returns
        -------
        FieldDraw
            A joint draw, and the law, in which sticks are independent given omega.
        """
        seen, wider = data.with_new_inputs(None), data.with_new_inputs(new_inputs)
        mean = self.mean_at_sites(state.beta, wider)[wider.new_sites]
        if self.on_table(data) is not None:
            new = wider.new_inputs
            values = [
                sticks.draw_at(rng, draw, new, mean[:, own])
                for (sticks, draw), own in zip(
                    self._draws(state, data), self.columns(data), strict=True
                )
            ]
            law = self._law_on_table(rng, state, data, new, mean)
            return FieldDraw(np.concatenate(values, axis=1), *law)
        potential = self.augment(rng, state.psi[: seen.num_sites], seen)
        fields = self.fields(np.log(state.hyperparameters), state.beta, seen)
        drawn = []
        for own, field in zip(self.columns(seen), fields, strict=True):
            told = DiagonalPotential(potential.J[:, own], potential.h[:, own])
            # from a stream of its own: the draw after this one is the same for any new inputs
            stream = np.random.default_rng(new_key(rng))
            drawn.append(field.condition(told).draw(stream, wider.new_inputs, mean[:, own]))
        return FieldDraw(*(np.concatenate(parts, axis=1) for parts in zip(*drawn, strict=True)))

    def _law_on_table(
        self,
        rng: np.random.Generator,
        state: MultinomialGPState,
        data: CountField,
        new: FloatArray,
        mean: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Means and variances of psi at new inputs given psi in the cells of a table.

        In a cell of the table, given psi in all others and, where it has counts, omega there.
        """
        seen = self.augment(rng, state.psi[: data.num_sites], data)
        laws = [
            sticks.law_at(
                draw, new, mean[:, own], DiagonalPotential(seen.J[:, own], seen.h[:, own])
            )
            for (sticks, draw), own in zip(
                self._draws(state, data), self.columns(data), strict=True
            )
        ]
        means, variances = (np.concatenate(parts, axis=1) for parts in zip(*laws, strict=True))
        return means, variances


def _theta_moved(
    rng: np.random.Generator, point: Point, family: Sticks, rows: LogisticSite, found: Approximation
) -> Point:
    """Hyperparameters, and psi and beta with them."""
    if found.spread <= _FAR:
        return leap(rng, point, family, rows, found)
    return carry(rng, point, family, rows, found)


@once_a_data_set
def _parts(
    data: CountField, model: MultinomialGP
) -> list[tuple[Sticks, LogisticSite, Approximation]]:
    """Of the sticks that share hyperparameters, what moves them needs."""
    taken, reaching = model.binomials(data)
    parts = []
    for columns in model.columns(data):
        family = Sticks(model, data, columns)
        rows = LogisticSite(taken[family.seen, columns], reaching[family.seen, columns])
        parts.append((family, rows, approximate(family, rows)))
    return parts


@once_a_data_set
def _pilots(data: CountField, model: MultinomialGP) -> list[table_sticks.Near]:
    """What the moves of sticks on a table go around."""
    return [table_sticks.pilot(sticks) for sticks in model.on_table(data) or []]
