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
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular
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
        return units.outside(mean, cov, b, mean + noise @ _root(cov).T)

    def simulate(
        self, rng: np.random.Generator, state: MixedLogitState, data: ChoiceRows
    ) -> ChoiceRows:
        """New choices in the same occasions, as many in each."""
        return replace(data, taken=data.drawn(rng, self.probs(state, data)))

    def init(self, rng: np.random.Generator, data: ChoiceRows) -> MixedLogitState:
        """Near the approximation of the posterior."""
        found = _found(data, self)
        d = len(found.mean)
        q = found.pack(found.mean, found.coefficients, found.root)
        q = q + solve_triangular(found.metric.T, rng.standard_normal(len(q)))
        mean, b, root = found.unpack(q)
        tastes = mean + rng.standard_normal((data.num_people, d)) @ root.T
        return found.units.outside(mean, root @ root.T, b, tastes)

    def step(
        self, rng: np.random.Generator, state: MixedLogitState, data: ChoiceRows
    ) -> MixedLogitState:
        """One sweep: tastes, the population given tastes, both together."""
        found = _found(data, self)
        with one_blas_thread():
            moved = self.sweep(rng, found, *found.units.inside(state))
        return found.units.outside(*moved)

    def sweep(
        self,
        rng: np.random.Generator,
        found: "_Found",
        mean: FloatArray,
        cov: FloatArray,
        b: FloatArray,
        tastes: FloatArray,
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """The moves of `step`, of scaled attributes."""
        if len(mean):
            tastes = self._swing(rng, found, mean, cov, b, tastes)
            mean = self._mean(rng, cov, tastes)
            cov = self._cov(rng, found.diagonal, cov, tastes - mean)
        return self._together(rng, found, mean, cov, b, tastes)

    def _swing(
        self,
        rng: np.random.Generator,
        found: "_Found",
        mean: FloatArray,
        cov: FloatArray,
        b: FloatArray,
        tastes: FloatArray,
    ) -> FloatArray:
        num, d = tastes.shape
        length = 0.5 * math.pi / self.kicks * rng.uniform(0.8, 1.2, size=num)
        noise = rng.standard_normal((num, d)), length, rng.standard_exponential(num)
        tastes = np.array(tastes, order="C")
        law = mean, np.linalg.inv(cov)
        over_rows(
            swing_rows, num, found.choices, found.base(b), law, found.sites, noise, self.kicks,
            tastes, grain=_GRAIN,
        )  # fmt: skip
        return tastes

    def _mean(self, rng: np.random.Generator, cov: FloatArray, tastes: FloatArray) -> FloatArray:
        precision = np.linalg.inv(cov)
        total = len(tastes) * precision + np.eye(len(cov)) / self.mean_scale**2
        factor = cho_factor(total, lower=True)
        noise = solve_triangular(factor[0].T, rng.standard_normal(len(cov)))
        return np.asarray(cho_solve(factor, precision @ tastes.sum(axis=0)) + noise)

    def _cov(
        self, rng: np.random.Generator, diagonal: bool, cov: FloatArray, away: FloatArray
    ) -> FloatArray:
        """Given tastes less their mean; the scales of the prior are drawn first, given `cov`."""
        num, d = away.shape
        shape = 0.5 * (_DOF + (1 if diagonal else d))
        rate = _DOF * np.diagonal(np.linalg.inv(cov)) + self.sd_scale**-2
        scales = rate / rng.standard_gamma(shape, size=d)
        if diagonal:
            squares = 0.5 * np.sum(away**2, axis=0) + _DOF / scales
            return np.diag(squares / rng.standard_gamma(0.5 * (num + _DOF), size=d))
        scale = away.T @ away + np.diag(2.0 * _DOF / scales)
        return _inverse_wishart(rng, _DOF + d - 1.0 + num, scale)

    def _together(
        self,
        rng: np.random.Generator,
        found: "_Found",
        mean: FloatArray,
        cov: FloatArray,
        b: FloatArray,
        tastes: FloatArray,
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """A Hamiltonian path of the population with standardised tastes held fixed."""
        root = _root(cov)
        fixed = solve_triangular(root, (tastes - mean).T, lower=True).T if len(mean) else tastes
        q = start = found.pack(mean, b, root)
        step = 0.5 * math.pi / _PARTS * rng.uniform(0.8, 1.2)
        momentum = rng.standard_normal(len(q))
        value, slope = self.log_density_together(found, q, fixed)
        energy = value - 0.5 * float(momentum @ momentum)
        for _ in range(_PARTS):
            momentum = momentum + 0.5 * step * slope
            q = q + step * solve_triangular(found.metric.T, momentum)
            value, slope = self.log_density_together(found, q, fixed)
            momentum = momentum + 0.5 * step * slope
            if not np.isfinite(value):
                return mean, cov, b, tastes
        gain = value - 0.5 * float(momentum @ momentum) - energy
        if not gain > -rng.standard_exponential():
            q = start
        mean, b, root = found.unpack(q)
        return mean, root @ root.T, b, mean + fixed @ root.T

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
                    found.z.T @ residual - b / self.mean_scale**2,
                    found.jacobian(root).T @ (slopes.T @ fixed)[found.where] + of_root[found.where],
                ]
            )
            squares = float(mean @ mean + b @ b) / self.mean_scale**2
            value = float(values.sum()) + prior - 0.5 * squares
        if not (np.isfinite(value) and np.isfinite(slope).all()):
            return -math.inf, np.zeros_like(q)
        return value, np.asarray(solve_triangular(found.metric, slope, lower=True))

    def log_likelihood(self, state: MixedLogitState, data: ChoiceRows) -> float:
        """Log probability of the choices."""
        found = _found(data, self)
        _, _, b, tastes = found.units.inside(state)
        return float(found.slopes(b, np.ascontiguousarray(tastes))[0].sum())

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

    def inside(
        self, state: MixedLogitState
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        return (
            self.factor * state.mean + self.shift,
            self.factor[:, None] * state.cov * self.factor,
            self.of_fixed * state.coefficients,
            self.factor * state.tastes + self.shift,
        )

    def outside(
        self, mean: FloatArray, cov: FloatArray, b: FloatArray, tastes: FloatArray
    ) -> MixedLogitState:
        return MixedLogitState(
            (mean - self.shift) / self.factor,
            cov / self.factor[:, None] / self.factor,
            b / self.of_fixed,
            (tastes - self.shift) / self.factor,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """Scaled data, and what is found before the chain starts: a function of the data alone."""

    units: _Units
    choices: Choices
    z: FloatArray  # of all rows and fixed attributes
    offset: FloatArray
    diagonal: bool
    where: tuple[IntArray, IntArray]  # entries of the root that move
    place: IntArray  # of its diagonal among them
    mean: FloatArray
    coefficients: FloatArray
    root: FloatArray
    sites: Sites
    metric: FloatArray  # lower root of the precision of (mean, b, root)

    def base(self, b: FloatArray) -> FloatArray:
        """Utilities without people's tastes."""
        return np.asarray(self.offset + self.z @ b)

    def slopes(
        self, b: FloatArray, tastes: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Log likelihoods of people, their slopes in tastes and in the utilities of rows."""
        values, slopes = np.empty(len(tastes)), np.empty(tastes.shape)
        residual = np.empty(len(self.offset))
        over_rows(
            slopes_rows, len(tastes), self.choices, self.base(b), tastes, values, slopes, residual,
            grain=_GRAIN,
        )  # fmt: skip
        return values, slopes, residual

    def pack(self, mean: FloatArray, b: FloatArray, root: FloatArray) -> FloatArray:
        """Coordinates: the root is its diagonal, which may be of either sign, and its other
        entries divided by that of their row.
        """
        return np.concatenate([mean, b, _turned(root)[self.where]])

    def unpack(self, q: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        d, f = len(self.mean), len(self.coefficients)
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
        out[np.arange(len(rows)), self.place[rows]] = unit
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
    inverse = solve_triangular(root / own[:, None], np.eye(d), lower=True)
    precision = inverse.T @ inverse
    inside = _DOF * np.diagonal(precision) + (own / sd_scale) ** 2
    slope = power * (precision * (_DOF / inside)) @ inverse.T
    np.fill_diagonal(slope, -power * own / sd_scale**2 / inside)
    return -0.5 * power * float(np.log(inside).sum()), slope


@once_a_data_set
def _found(data: ChoiceRows, model: MixedLogit) -> _Found:
    """A few rounds of people's modes, then of the population given them (EM by Laplace)."""
    with one_blas_thread():
        return _approximate(data, model)


def _approximate(data: ChoiceRows, model: MixedLogit) -> _Found:
    d, f, num = len(data.random), len(data.fixed), data.num_people
    x = data.x / data.scale
    own, z = x[:, data.random], np.ascontiguousarray(x[:, data.fixed])
    counts = np.add.reduceat(data.taken, data.occasions[:-1])[data.occasion_of_row]

    def read(columns: FloatArray, signs: FloatArray, people: IntArray) -> Choices:
        return Choices(
            np.ascontiguousarray(columns.T), signs, data.taken, counts, data.occasions, people
        )

    offset = np.zeros(data.num_rows) if data.design.offset is None else data.design.offset
    choices = read(own, data.signs, data.people)
    everybody = np.array([0, len(data.occasions) - 1])
    pooled = read(np.hstack([own, z]), np.append(data.signs, np.zeros(f)), everybody)
    at = np.zeros((1, d + f))
    prior = np.eye(d + f) / model.mean_scale**2
    _climbed(pooled, offset, np.zeros(d + f), prior, 25, at)
    mean, b = at[0, :d].copy(), at[0, d:].copy()
    cov, tastes = _FIRST_SD**2 * np.eye(d), np.tile(mean, (num, 1))
    sites = Sites(np.zeros((num, d, d)), np.zeros((num, d)))
    of_fixed = read(z, np.zeros(f), everybody)
    for _ in range(_ROUNDS if d else 0):
        precision = np.linalg.inv(cov)
        sites = _climbed(choices, offset + z @ b, mean, np.asarray(precision), 2, tastes)
        spread = np.linalg.inv(precision + sites.J)
        mean = tastes.mean(axis=0)
        away = tastes - mean
        cov = (away.T @ away + spread.sum(axis=0)) / num
        cov = (np.diag(np.diagonal(cov)) if data.diagonal else cov) + _LEAST_VAR * np.eye(d)
        if f:
            coef = data.coefficients_of(tastes)[data.person_of_row]
            base, at = offset + np.einsum("rk,rk->r", own, coef), b[None].copy()
            _climbed(of_fixed, base, np.zeros(f), np.eye(f) / model.mean_scale**2, 1, at)
            b = at[0]
    where = (np.arange(d), np.arange(d)) if data.diagonal else np.tril_indices(d)
    place = np.flatnonzero(where[0] == where[1])
    found = _Found(
        _Units.of(data), choices, z, offset, data.diagonal, where, place, mean, b, _root(cov),
        sites, np.eye(d + f + len(where[0])),
    )  # fmt: skip
    found = replace(found, metric=_metric(found, pooled, tastes, model))
    return _piloted(found, data, pooled, tastes, model) if d else found


def _piloted(
    found: "_Found", data: ChoiceRows, pooled: Choices, tastes: FloatArray, model: MixedLogit
) -> "_Found":
    """The approximation by short chains of its own, whose noise is the same for all data.

    Modes make the spread of tastes too small, and the metric of joint paths with it.
    """
    rng = np.random.default_rng(0)
    mean, cov, b = found.mean, found.root @ found.root.T, found.coefficients
    for length in _PILOTS:
        sums = [np.zeros_like(each) for each in (mean, cov, b, tastes)]
        for _ in range(length):
            mean, cov, b, tastes = model.sweep(rng, found, mean, cov, b, tastes)
            for total, each in zip(sums, (mean, cov, b, tastes), strict=True):
                total += each / length
        found = replace(found, mean=sums[0], root=_root(sums[1]), coefficients=sums[2])
        found = replace(found, metric=_metric(found, pooled, sums[3], model))
    return found


def _climbed(
    choices: Choices, base: FloatArray, mean: FloatArray, precision: FloatArray, steps: int,
    tastes: FloatArray,
) -> Sites:  # fmt: skip
    """Tastes climb to their modes; sites there."""
    num, d = tastes.shape
    sites = Sites(np.empty((num, d, d)), np.empty((num, d)))
    over_rows(
        climb_rows, num, choices, base, mean, precision, steps, tastes, sites, grain=_GRAIN
    )  # fmt: skip
    return sites


def _metric(found: _Found, pooled: Choices, tastes: FloatArray, model: MixedLogit) -> FloatArray:
    """The root of the precision of (mean, b, root) given standardised tastes, about.

    The information of a person is T' H T, with H of tastes and b, and T the derivative of these in
    (mean, b, root), averaged over what is known of the standardised tastes.
    """
    num, d = tastes.shape
    f = len(found.coefficients)
    step = max(1, num // _MOST_MEASURED)
    some = np.arange(0, num, step)
    all_people = pooled._replace(people=found.choices.people)
    at = np.hstack([tastes, np.tile(found.coefficients, (num, 1))])
    sites = Sites(np.empty((num, d + f, d + f)), np.empty((num, d + f)))
    over_rows(sites_rows, num, all_people, found.offset, at, sites, grain=_GRAIN)
    H, inverse = sites.J[some], np.linalg.inv(found.root) if d else found.root
    first = (tastes[some] - found.mean) @ inverse.T
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
    turn = np.eye(size)
    turn[d + f :, d + f :] = found.jacobian(found.root)
    out = turn.T @ out @ turn
    prior = np.full(size, model.mean_scale**-2)
    prior[d + f :] = np.where(rows == columns, model.sd_scale**-2, 1.0)
    return np.linalg.cholesky(out * (num / len(some)) + np.diag(prior))
