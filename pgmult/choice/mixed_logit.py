r"""Hierarchical mixed logit: people choose among alternatives, and their tastes go together.

Person i has tastes beta_i for the attributes x of alternatives, and everybody the same coefficients
b of others, z. In an occasion the probability of alternative r among those that are there is

    p_r proportional to exp(x_r' coef(beta_i) + z_r' b),      beta_i ~ N(mean, cov),

where coef is beta itself or, for attributes whose sign is known, sign exp(beta) (log-normal).
Without people it is the conditional logit (McFadden 1974). Priors, for attributes divided by their
standard deviation within occasions: mean and b are normal; the covariance is Huang and Wand's
(2013, "Simple marginally noninformative prior distributions for covariance matrices"), whose
standard deviations are half-t with 2 degrees of freedom and whose correlations are uniform; or
standard deviations are independent half-t and the covariance is diagonal.

A sweep has three exact moves:

* tastes given the population, all people side by side: Hamiltonian paths that turn about a Gaussian
  near their law (`pgmult.latent.moves`, "swing");
* mean and covariance given tastes: their conjugate laws;
* mean, b and the root of the covariance with *standardised* tastes held fixed, all together, by a
  Hamiltonian path: tastes move along (Yu and Meng 2011). Where people have few choices, or hardly
  differ, the move before it is slow, and a chain that has it alone looks well and is wrong.

>>> import numpy as np, pgmult
>>> rng = np.random.default_rng(0)
>>> price, quality = rng.normal(size=(2, 60, 3))
>>> taken = np.argmax(quality - price + rng.gumbel(size=(60, 3)), axis=1)
>>> table = {
...     "who": np.repeat(np.arange(10), 18), "case": np.repeat(np.arange(60), 3),
...     "price": price.ravel(), "quality": quality.ravel(),
...     "taken": (np.arange(3) == taken[:, None]).ravel(),
... }
>>> data = pgmult.read(table).choices("taken ~ price + quality + (price | who)", occasion="case")
>>> posterior = pgmult.sample(
...     MixedLogit(), data, draws=200, tune=100, chains=1, random_seed=0, progressbar=False
... )
>>> posterior["mean"].shape, posterior["coefficients"].shape, posterior["tastes"].shape
((1, 200, 1), (1, 200, 1), (1, 200, 10, 1))
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import invwishart

from pgmult.choice.compiled.people import (
    Choices,
    Sites,
    climb_rows,
    sites_rows,
    slopes_rows,
    swing_rows,
)
from pgmult.choice.data import ChoiceRows
from pgmult.choice.family import CHOICE
from pgmult.compiled.rows import over_rows
from pgmult.core.blas import one_blas_thread
from pgmult.core.family import Family
from pgmult.core.memory import once_a_data_set
from pgmult.core.parameters import Checked, Positive, axes_of, whole
from pgmult.core.typing import FloatArray, IntArray

_DOF = 2.0  # of half-t laws; correlations are uniform then
_GRAIN = 16  # people
_ROUNDS = 15  # of the search for an approximation
_PILOTS = (30, 50)  # sweeps
_FIRST_SD = 0.5
_NEAR = 1e-7  # a mode
_LEAST_VAR = 1e-3  # of the approximation's population
_MOST_MEASURED = 2000  # people from whom the metric of joint paths is found
_PARTS = 4  # of a joint path


@dataclass(frozen=True, slots=True, eq=False)
class MixedLogitState:
    """One point of the chain, in the units of the attributes.

    Attributes
    ----------
    mean : array
        Of people's tastes; of the log of the coefficient for an attribute whose sign is known.
    cov : array
    coefficients : array
        Of attributes for which all people have the same taste.
    tastes : array
    """

    mean: Annotated[FloatArray, "attribute"]
    cov: Annotated[FloatArray, "attribute", "other_attribute"]
    coefficients: Annotated[FloatArray, "fixed"]
    tastes: Annotated[FloatArray, "person", "attribute"]


@dataclass(frozen=True, slots=True, eq=False)
class MixedLogit(Checked):
    """Choices among alternatives by people whose tastes differ.

    Parameters
    ----------
    mean_scale : float
        Prior standard deviation of mean tastes and coefficients, for attributes divided by their
        standard deviation within occasions.
    sd_scale : float
        Scale of the half-t law of the standard deviations of tastes, in the same units.
    kicks : int
        Of the path of each person's tastes.

    Notes
    -----
    A sweep reads all rows ten times, with O(num_attributes) operations a row, and factors a matrix
    of num_attributes squared a person. Memory is that of the data, and for each person another
    such matrix.
    """

    mean_scale: Positive = 5.0
    sd_scale: Positive = 2.5
    kicks: Annotated[int, whole()] = 3

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = axes_of(MixedLogitState) | {
        "sds": ("attribute",),
        "probs": ("row",),
    }
    default_keep: ClassVar[tuple[str, ...]] = ("mean", "cov", "coefficients", "tastes", "sds")
    family: ClassVar[Family] = CHOICE

    def coords(self, data: ChoiceRows) -> Mapping[str, NDArray[Any]]:
        """Labels of attributes and people."""
        return {
            "attribute": data.names[data.random],
            "other_attribute": data.names[data.random],
            "fixed": data.names[data.fixed],
            "person": data.person_names,
        }

    def prior(self, rng: np.random.Generator, data: ChoiceRows) -> MixedLogitState:
        """Population and tastes from the prior."""
        units, d = _Units.of(data), len(data.random)
        mean = self.mean_scale * rng.standard_normal(d)
        b = self.mean_scale * rng.standard_normal(len(data.fixed))
        if data.diagonal:
            cov = np.diag((self.sd_scale * rng.standard_t(_DOF, size=d)) ** 2)
        elif d:
            scales = self.sd_scale**-2 / rng.standard_gamma(0.5, size=d)
            cov = _inverse_wishart(rng, _DOF + d - 1.0, np.diag(2.0 * _DOF / scales))
        else:
            cov = np.zeros((0, 0))
        noise = rng.standard_normal((data.num_people, d))
        return units.outside(MixedLogitState(mean, cov, b, mean + noise @ _root(cov).T))

    def simulate(
        self, rng: np.random.Generator, state: MixedLogitState, data: ChoiceRows
    ) -> ChoiceRows:
        """New choices in the same occasions, as many in each."""
        return replace(data, taken=data.drawn(rng, self.probs(state, data)))

    def init(self, rng: np.random.Generator, data: ChoiceRows) -> MixedLogitState:
        """Near the approximation of the posterior."""
        found = _found(data, self)
        q = found.pack(found.at.mean, found.at.coefficients, _root(found.at.cov))
        mean, b, root = found.unpack(q + found.turn @ rng.standard_normal(len(q)))
        tastes = mean + rng.standard_normal(found.at.tastes.shape) @ root.T
        return found.units.outside(MixedLogitState(mean, root @ root.T, b, tastes))

    def step(
        self, rng: np.random.Generator, state: MixedLogitState, data: ChoiceRows
    ) -> MixedLogitState:
        """One sweep: tastes, the population given tastes, both together."""
        found = _found(data, self)
        with one_blas_thread():
            return found.units.outside(self.sweep(rng, found, found.units.inside(state)))

    def sweep(
        self, rng: np.random.Generator, found: "_Found", at: MixedLogitState
    ) -> MixedLogitState:
        """The moves of `step`, of scaled attributes."""
        if len(at.mean):
            at = replace(at, tastes=self._swing(rng, found, at))
            at = replace(at, mean=self._mean(rng, at))
            at = replace(at, cov=self._cov(rng, found.diagonal, at))
        return self._together(rng, found, at)

    def _swing(self, rng: np.random.Generator, found: "_Found", at: MixedLogitState) -> FloatArray:
        num, d = at.tastes.shape
        length = 0.5 * math.pi / self.kicks * rng.uniform(0.8, 1.2, size=num)
        noise = rng.standard_normal((num, d)), length, rng.standard_exponential(num)
        tastes = np.array(at.tastes, order="C")
        law = at.mean, np.linalg.inv(at.cov)
        over_rows(
            swing_rows, num, found.choices(at.coefficients), law, found.sites, noise, self.kicks,
            tastes, grain=_GRAIN,
        )  # fmt: skip
        return tastes

    def _mean(self, rng: np.random.Generator, at: MixedLogitState) -> FloatArray:
        precision = np.linalg.inv(at.cov)
        total = len(at.tastes) * precision + np.eye(len(at.cov)) / self.mean_scale**2
        inverse = np.linalg.inv(np.linalg.cholesky(total))
        whitened = inverse @ (precision @ at.tastes.sum(axis=0))
        return np.asarray(inverse.T @ (whitened + rng.standard_normal(len(at.cov))))

    def _cov(self, rng: np.random.Generator, diagonal: bool, at: MixedLogitState) -> FloatArray:
        """Given tastes less their mean; the scales of the prior are drawn first, given `cov`."""
        away = at.tastes - at.mean
        num, d = away.shape
        shape = 0.5 * (_DOF + (1 if diagonal else d))
        rate = _DOF * np.diagonal(np.linalg.inv(at.cov)) + self.sd_scale**-2
        scales = rate / rng.standard_gamma(shape, size=d)
        if diagonal:
            squares = 0.5 * np.sum(away**2, axis=0) + _DOF / scales
            return np.diag(squares / rng.standard_gamma(0.5 * (num + _DOF), size=d))
        scale = away.T @ away + np.diag(2.0 * _DOF / scales)
        return _inverse_wishart(rng, _DOF + d - 1.0 + num, scale)

    def _together(
        self, rng: np.random.Generator, found: "_Found", at: MixedLogitState
    ) -> MixedLogitState:
        """A Hamiltonian path of the population with standardised tastes held fixed."""
        root = _root(at.cov)
        fixed = at.tastes
        if len(at.mean):
            fixed = (at.tastes - at.mean) @ np.linalg.inv(root).T
        q = found.pack(at.mean, at.coefficients, root)
        step = 0.5 * math.pi / _PARTS * rng.uniform(0.8, 1.2)
        momentum = rng.standard_normal(len(q))
        value, slope = self.log_density_together(found, q, fixed)
        energy = value - 0.5 * float(momentum @ momentum)
        for _ in range(_PARTS):
            momentum = momentum + 0.5 * step * slope
            q = q + step * (found.turn @ momentum)
            value, slope = self.log_density_together(found, q, fixed)
            momentum = momentum + 0.5 * step * slope
            if not np.isfinite(value):
                return at
        gain = value - 0.5 * float(momentum @ momentum) - energy
        if not gain > -rng.standard_exponential():
            return at
        mean, b, root = found.unpack(q)
        return MixedLogitState(mean, root @ root.T, b, mean + fixed @ root.T)

    def log_density_together(
        self, found: "_Found", q: FloatArray, fixed: FloatArray
    ) -> tuple[float, FloatArray]:
        """Log density of (mean, b, root) with standardised tastes fixed, and its slope, whitened.

        Parameters
        ----------
        q : array
            Mean, coefficients and entries of the root of the covariance, of scaled attributes.
        fixed : array, ``(num_people, num_attributes)``
            Standardised tastes.
        """
        mean, b, root = found.unpack(q)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            tastes = np.ascontiguousarray(mean + fixed @ root.T)
            values, slopes, residual = found.slopes(b, tastes)
            prior, of_root = _log_prior_root(root, self.sd_scale, found.diagonal)
            slope = np.concatenate(
                [
                    slopes.sum(axis=0) - mean / self.mean_scale**2,
                    found.z @ residual - b / self.mean_scale**2,
                    found.jacobian(root).T @ (slopes.T @ fixed)[found.where] + of_root[found.where],
                ]
            )
            squares = float(mean @ mean + b @ b) / self.mean_scale**2
            value = float(values.sum()) + prior - 0.5 * squares
        if not (np.isfinite(value) and np.isfinite(slope).all()):
            return -math.inf, np.zeros_like(q)
        return value, slope @ found.turn

    def log_likelihood(self, state: MixedLogitState, data: ChoiceRows) -> float:
        """Log probability of the choices."""
        found = _found(data, self)
        at = found.units.inside(state)
        return float(found.slopes(at.coefficients, np.ascontiguousarray(at.tastes))[0].sum())

    def probs(self, state: MixedLogitState, data: ChoiceRows) -> FloatArray:
        """Of the alternatives of all occasions, ``(num_rows,)``."""
        return data.probs(state.tastes[data.person_of_row], state.coefficients)

    def sds(self, state: MixedLogitState, data: ChoiceRows) -> FloatArray:
        """Standard deviations of tastes."""
        return np.sqrt(np.diagonal(state.cov))


class _Units(NamedTuple):
    """Between the attributes' own units and those in which they are sampled."""

    factor: FloatArray  # of tastes
    shift: FloatArray
    of_fixed: FloatArray

    @classmethod
    def of(cls, data: ChoiceRows) -> "_Units":
        scale, known = data.scale[data.random], data.signs != 0.0
        return cls(
            np.where(known, 1.0, scale), np.where(known, np.log(scale), 0.0), data.scale[data.fixed]
        )

    def inside(self, state: MixedLogitState) -> MixedLogitState:
        return MixedLogitState(
            self.factor * state.mean + self.shift,
            self.factor[:, None] * state.cov * self.factor,
            self.of_fixed * state.coefficients,
            self.factor * state.tastes + self.shift,
        )

    def outside(self, at: MixedLogitState) -> MixedLogitState:
        return MixedLogitState(
            (at.mean - self.shift) / self.factor,
            at.cov / self.factor[:, None] / self.factor,
            at.coefficients / self.of_fixed,
            (at.tastes - self.shift) / self.factor,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """Scaled data, and what is found before the chain starts: a function of the data alone."""

    units: _Units
    all: Choices  # people's attributes, then fixed ones
    diagonal: bool
    where: tuple[IntArray, IntArray]  # entries of the root that move
    at: MixedLogitState  # about the mean of the posterior
    sites: Sites
    turn: FloatArray  # upper root of the covariance of (mean, b, root)

    def choices(self, b: FloatArray) -> Choices:
        """Attributes for which people differ, given the coefficients of the others."""
        d = len(self.at.mean)
        base = self.all.base + b @ self.z if len(b) else self.all.base
        return self.all._replace(x=self.all.x[:d], signs=self.all.signs[:d], base=base)

    @property
    def z(self) -> FloatArray:
        """The others."""
        return self.all.x[len(self.at.mean) :]

    def slopes(
        self, b: FloatArray, tastes: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Log likelihoods of people, their slopes in tastes and in the utilities of rows."""
        values, slopes = np.empty(len(tastes)), np.empty(tastes.shape)
        residual = np.empty(len(self.all.base))
        over_rows(
            slopes_rows, len(tastes), self.choices(b), tastes, values, slopes, residual,
            grain=_GRAIN,
        )  # fmt: skip
        return values, slopes, residual

    def pack(self, mean: FloatArray, b: FloatArray, root: FloatArray) -> FloatArray:
        """Coordinates: the root is its diagonal, which may be of either sign, and its other
        entries divided by that of their row.
        """
        return np.concatenate([mean, b, _turned(root)[self.where]])

    def unpack(self, q: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        d, f = len(self.at.mean), len(self.at.coefficients)
        root = np.zeros((d, d))
        root[self.where] = q[d + f :]
        own = np.diagonal(root).copy()
        root *= own[:, None]
        np.fill_diagonal(root, own)
        return q[:d], q[d : d + f], root

    def jacobian(self, root: FloatArray) -> FloatArray:
        """Of the entries of the root in their coordinates."""
        rows, columns = self.where
        own, unit = np.diagonal(root), root[rows, columns] / np.diagonal(root)[rows]
        out = np.diag(np.where(rows == columns, 1.0, own[rows]))
        out[np.arange(len(rows)), np.flatnonzero(rows == columns)[rows]] = unit
        return out


def _turned(root: FloatArray) -> FloatArray:
    """Rows divided by their diagonal entries, which stay."""
    own = np.diagonal(root)
    out = root / own[:, None]
    np.fill_diagonal(out, own)
    return out


def _root(cov: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.cholesky(cov), dtype=np.float64) if len(cov) else cov


def _inverse_wishart(rng: np.random.Generator, dof: float, scale: FloatArray) -> FloatArray:
    return np.asarray(invwishart.rvs(dof, scale, random_state=rng)).reshape(scale.shape)


def _log_prior_root(root: FloatArray, sd_scale: float, diagonal: bool) -> tuple[float, FloatArray]:
    """Log density of the coordinates of a root of the covariance, and its slope in them.

    With the root D U, where D is diagonal and U has ones on its diagonal, Huang and Wand's density
    (2013, property 2) times the Jacobian is prod_k (nu v_k + D_kk^2 / A^2)^-((nu + d) / 2), where v
    is the diagonal of (U U')^-1: smooth where a standard deviation is 0, of either sign.
    """
    d, own = len(root), np.diagonal(root)
    if not d:
        return 0.0, root
    power = _DOF + (1 if diagonal else d)
    inverse = np.linalg.inv(root / own[:, None])
    precision = inverse.T @ inverse
    inside = _DOF * np.diagonal(precision) + (own / sd_scale) ** 2
    slope = power * (precision * (_DOF / inside)) @ inverse.T
    np.fill_diagonal(slope, -power * own / sd_scale**2 / inside)
    return -0.5 * power * float(np.log(inside).sum()), slope


@once_a_data_set
def _found(data: ChoiceRows, model: MixedLogit) -> _Found:
    """A few rounds of people's modes, then of the population given them (EM by Laplace)."""
    with one_blas_thread():
        found = _approximate(data, model)
        return _piloted(found, model) if len(data.random) else found


def _laid_out(data: ChoiceRows) -> Choices:
    """Scaled attributes as kernels read them, people's first."""
    of_row, sizes = data.occasion_of_row, np.diff(data.occasions)
    most = np.lexsort((-data.taken, of_row))[data.occasions[:-1]]  # taken most: without a row
    person = np.repeat(np.arange(data.num_people), np.diff(data.people))
    order = np.lexsort((sizes, person))
    alike = (np.diff(person[order]) == 0) & (np.diff(sizes[order]) == 0)
    occasions = np.flatnonzero(np.concatenate([[True], ~alike, [True]]))
    starts, place = occasions[:-1], np.argsort(order)
    row = np.flatnonzero(np.arange(data.num_rows) != most[of_row])
    here = of_row[row]
    slot = row - data.occasions[here] - (row > most[here])
    block = np.searchsorted(starts, place[here], side="right")
    row = row[np.lexsort((place[here], slot, block))]
    columns = np.concatenate([data.random, data.fixed])
    x = data.x[:, columns] / data.scale[columns]
    offset = np.zeros(data.num_rows) if data.design.offset is None else data.design.offset
    other = most[of_row[row]]
    return Choices(
        np.ascontiguousarray((x[row] - x[other]).T), offset[row] - offset[other],
        np.append(data.signs, 0.0 * data.fixed), data.taken[row],
        np.add.reduceat(data.taken, data.occasions[:-1])[order],
        np.append(0, np.cumsum(np.diff(occasions) * (sizes[order[starts]] - 1))), occasions,
        np.searchsorted(person[order[starts]], np.arange(data.num_people + 1)),
    )  # fmt: skip


def _approximate(data: ChoiceRows, model: MixedLogit) -> _Found:
    d, num = len(data.random), data.num_people
    choices = _laid_out(data)
    where = (np.arange(d), np.arange(d)) if data.diagonal else np.tril_indices(d)
    both = np.zeros((num, len(data.names)))
    _climb_alike(choices, both, 0, model, 25)
    tastes, b = both[:, :d].copy(), both[0, d:].copy()
    at = MixedLogitState(tastes[0].copy(), _FIRST_SD**2 * np.eye(d), b, tastes)
    sites = Sites(np.zeros((num, d, d)), np.zeros((num, d)))
    found = _Found(_Units.of(data), choices, data.diagonal, where, at, sites, np.eye(0))
    for _ in range(_ROUNDS if d else 0):
        law = at.mean, np.linalg.inv(at.cov)
        own = found.choices(at.coefficients)
        over_rows(climb_rows, num, own, law, 2, tastes, sites, grain=_GRAIN)
        mean, spread = tastes.mean(axis=0), np.linalg.inv(law[1] + sites.J)
        away = tastes - mean
        cov = (away.T @ away + spread.sum(axis=0)) / num
        cov = (np.diag(np.diagonal(cov)) if data.diagonal else cov) + _LEAST_VAR * np.eye(d)
        both[:, :d] = tastes
        if len(b):
            _climb_alike(choices, both, d, model, 1)
        at = MixedLogitState(mean, cov, both[0, d:].copy(), tastes)
    found = replace(found, at=at)
    return replace(found, turn=_turn(found, model))


def _climb_alike(
    choices: Choices, both: FloatArray, first: int, model: MixedLogit, steps: int
) -> None:
    """Newton steps of the coefficients from the first one on, which all people share."""
    num, size = both.shape

    def value(at: FloatArray) -> float:
        values, none = np.empty(num), np.empty(0)
        slopes = np.empty_like(at)
        over_rows(slopes_rows, num, choices, at, values, slopes, none, grain=_GRAIN)
        return float(values.sum() - 0.5 * np.sum((at[0, first:] / model.mean_scale) ** 2))

    sites = Sites(np.empty((num, size, size)), np.empty((num, size)))
    for _ in range(steps):
        over_rows(sites_rows, num, choices, both, sites, grain=_GRAIN)
        slope = (sites.h - np.einsum("nij,nj->ni", sites.J, both)).sum(axis=0)[first:]
        J = sites.J.sum(axis=0)[first:, first:] + np.eye(size - first) / model.mean_scale**2
        step = np.zeros(size)
        step[first:] = np.linalg.solve(J, slope - both[0, first:] / model.mean_scale**2)
        here = value(both)
        while np.abs(step).max() > _NEAR:
            if value(both + step) >= here:
                both += step
                break
            step *= 0.5
        else:
            return


def _piloted(found: _Found, model: MixedLogit) -> _Found:
    """The approximation by short chains of its own, whose noise is the same for all data.

    Modes make the spread of tastes too small, and the metric of joint paths with it.
    """
    rng, at = np.random.default_rng(0), found.at
    names = tuple(field.name for field in fields(at))
    for length in _PILOTS:
        sums = [np.zeros_like(getattr(at, name)) for name in names]
        for _ in range(length):
            at = model.sweep(rng, found, at)
            for total, name in zip(sums, names, strict=True):
                total += getattr(at, name) / length
        found = replace(found, at=MixedLogitState(*sums))
        found = replace(found, turn=_turn(found, model))
    return found


def _turn(found: _Found, model: MixedLogit) -> FloatArray:
    """The upper root of the covariance of (mean, b, root) given standardised tastes, about.

    The information of a person is T' H T, with H of tastes and b, and T the derivative of these in
    (mean, b, root), averaged over what is known of the standardised tastes.
    """
    tastes, root = found.at.tastes, _root(found.at.cov)
    num, d = tastes.shape
    f = len(found.at.coefficients)
    some = np.arange(0, num, max(1, num // _MOST_MEASURED))
    at = np.hstack([tastes, np.tile(found.at.coefficients, (num, 1))])
    sites = Sites(np.empty((num, d + f, d + f)), np.empty((num, d + f)))
    over_rows(sites_rows, num, found.all, at, sites, grain=_GRAIN)
    H, inverse = sites.J[some], np.linalg.inv(root) if d else root
    first = (tastes[some] - found.at.mean) @ inverse.T
    spread = np.linalg.inv(inverse.T @ inverse + found.sites.J[some])
    second = np.einsum("ni,nj->nij", first, first) + inverse @ spread @ inverse.T
    rows, columns = found.where
    size = d + f + len(rows)
    out = np.empty((size, size))
    out[: d + f, : d + f] = H.sum(axis=0)
    crossed = np.einsum("nak,nk->ak", H[:, :, rows], first[:, columns])
    out[: d + f, d + f :], out[d + f :, : d + f] = crossed, crossed.T
    products = np.tensordot(H, second, axes=(0, 0))  # of tastes, tastes, columns, columns
    out[d + f :, d + f :] = products[rows[:, None], rows, columns[:, None], columns]
    T = np.eye(size)
    T[d + f :, d + f :] = found.jacobian(root)
    out = T.T @ out @ T
    prior = np.full(size, model.mean_scale**-2)
    prior[d + f :] = np.where(rows == columns, model.sd_scale**-2, 1.0)
    return np.linalg.inv(np.linalg.cholesky(out * (num / len(some)) + np.diag(prior))).T
