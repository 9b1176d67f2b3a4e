r"""Sticks on a table of inputs: a sweep in the bases where their covariance is diagonal.

In every cell of a table (`pgmult.fields.priors.separable`) and for every stick,

    psi = u + e,    u = features' beta + f,    f ~ N(0, v K_rows (x) K_columns),  e ~ N(0, effect)

and the counts x are binomial given psi. A sweep:

1. theta of f | psi         the rest integrated out: `sample_hyperparameters`, around a fixed law
2. beta, f | theta, psi     exact draws
3. effect | u, x            psi integrated out, a step of a random walk
4. f | theta, beta, x       psi integrated out, a swing: see below
5. psi | theta, u, x        exact draws, cell by cell (`pgmult.fields.compiled.cells`)

Without psi a cell's log likelihood L(u) has a curvature from 0, where its counts say nothing, to
1 / effect, where they say all: so neither small effects nor zeros of thousands slow step 4 down,
where steps 2 and 5 by themselves move by the smaller one of two standard deviations. It is a
Hamiltonian path that turns exactly about a Gaussian (`pgmult.latent.moves.swing`), here that of
curvatures 1 / (a_t b_s): along the eigenvectors of K_rows / sqrt(a a') and of
K_columns / sqrt(b b') it is diagonal. Its forces are those of psi's law expanded around its mode;
whether it is accepted is by L itself.

The law of step 1 and the levels that curvatures are taken at are those of a pilot run, `Near`: they
depend on the data alone.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from pgmult.compiled.rows import over_rows
from pgmult.core.potentials import DiagonalPotential
from pgmult.core.typing import BoolArray, FloatArray, IntArray
from pgmult.core.validate import new_key
from pgmult.fields.compiled.cells import draw_rows, log_likelihood_rows, slope_rows
from pgmult.fields.covariances import Covariance
from pgmult.fields.priors.field import Trend
from pgmult.fields.priors.separable import Factors, Table, TableLaw
from pgmult.latent.hyperparameters import Leaning, laplace, sample_hyperparameters
from pgmult.sampling.moves import slice_sample

_KICKS = 4  # of a swing
_LEAST = 0.1  # of a curvature, as a share of the prior precision
_REMEMBERED = 8  # laws, of a few chains
_WIDTH = 0.3  # of the first interval of slices
_WALK = 2.0  # standard deviations of the effects' law
_ROUNDS = 1, 1, 2, 4, 4  # sweeps of a pilot, hyperparameters at their mode before each
_LAST_ROUND = 40
_GRAIN = 16  # rows of a table


class Draw(NamedTuple):
    """Where a chain is.

    Attributes
    ----------
    x : array, ``(num_hyperparameters,)``
        Logarithms.
    beta : array, ``(num_features, num_sticks)``
    psi : array, ``(num_sticks, num_rows, num_columns)``
    """

    x: FloatArray
    beta: FloatArray
    psi: FloatArray


class Near(NamedTuple):
    """What moves go around; any will do.

    Attributes
    ----------
    guess : Leaning
        The law that hyperparameters roughly have.
    level : array, ``(num_sticks, num_rows, num_columns)``
        Where u roughly is.
    """

    guess: Leaning
    level: FloatArray


class _Given(NamedTuple):
    """What psi says at hyperparameters, in the eigenvectors' bases.

    The coefficients' precision, and their mean less their centre; psi less its mean where they are
    at their centre; and the log density of psi and the hyperparameters, all else integrated out.
    """

    law: TableLaw
    psi: FloatArray
    features: FloatArray
    precision: FloatArray
    shift: FloatArray
    log_density: float


class TableSticks:
    """Sticks that share hyperparameters, on a table.

    Parameters
    ----------
    covariance : Covariance
        Of psi around its mean.
    start : array, ``(num_hyperparameters,)``
        Log hyperparameters; none where they are fixed.
    table : Table
    trend : Trend
        Its features at the sites of the table.
    level : array, ``(num_sticks,)``
        Of the mean, where it is not learned.
    taken, reaching : array, ``(num_sites, num_sticks)``
        Counts.
    """

    def __init__(
        self,
        covariance: Covariance,
        start: FloatArray,
        table: Table,
        trend: Trend,
        level: FloatArray,
        taken: FloatArray,
        reaching: FloatArray,
    ):
        self.start, self.table, self.trend = start, table, trend
        self._covariance = covariance
        self._features = table.arranged(trend.features)
        self._level = level[:, None, None]
        self.taken, self.reaching = table.arranged(taken), table.arranged(reaching)
        self._at = lru_cache(maxsize=_REMEMBERED)(self._find)
        self._bases = lru_cache(maxsize=_REMEMBERED)(self._find_bases)
        self.of_effects = np.array([self._is_of_effects(i) for i in range(len(start))], dtype=bool)

    def law(self, x: FloatArray) -> TableLaw:
        """Of psi around its mean."""
        return self._at(x.tobytes())[0]

    def log_prior(self, x: FloatArray) -> float:
        """Log density of log hyperparameters."""
        return self._at(x.tobytes())[1]

    def effect(self, x: FloatArray) -> float:
        """The variance of the effects of cells."""
        return Factors.of(self._moved(x), self.table.sites.shape[1]).effect

    def mean(self, beta: FloatArray) -> FloatArray:
        """Of psi, ``(num_sticks, num_rows, num_columns)``."""
        return np.asarray(self._level + np.einsum("fk,fij->kij", beta, self._features))

    def prior(self, rng: np.random.Generator, x: FloatArray, beta: FloatArray) -> FloatArray:
        """A draw of psi given hyperparameters and coefficients."""
        return self.mean(beta) + self.law(x).draw(rng.standard_normal(self.taken.shape))

    def given(self, x: FloatArray, psi: FloatArray) -> _Given:
        """What psi says at hyperparameters."""
        law = self.law(x)
        rotated = law.rotate(psi - self.mean(self.trend.centre))
        features = law.rotate(self._features)
        weighed = features / law.vars
        precision = np.einsum("fij,gij->fg", weighed, features)
        precision = precision + np.eye(len(features)) / self.trend.var
        pull = np.einsum("fij,kij->fk", weighed, rotated)
        shift = np.linalg.solve(precision, pull)
        log_det = np.linalg.slogdet(self.trend.var * precision)[1]
        density = law.log_density(rotated).sum() + 0.5 * np.sum(pull * shift)
        density += self.log_prior(x) - 0.5 * len(rotated) * log_det
        return _Given(law, rotated, features, precision, shift, float(density))

    def draw_level(
        self, rng: np.random.Generator, x: FloatArray, psi: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Coefficients and u given psi."""
        given = self.given(x, psi)
        law, root = given.law, np.linalg.cholesky(given.precision)
        shift = given.shift + np.linalg.solve(root.T, rng.standard_normal(given.shift.shape))
        left = given.psi - np.einsum("fk,fij->kij", shift, given.features)
        share = law.smooth / law.vars
        sd = np.sqrt(share * law.factors.effect)
        field = share * left + sd * rng.standard_normal(left.shape)
        beta = self.trend.centre + shift
        return beta, self.mean(beta) + law.back(field)

    def draw_cells(self, rng: np.random.Generator, level: FloatArray, var: float) -> FloatArray:
        """Psi given u and the counts."""
        out = np.empty_like(level)
        self._over_rows(draw_rows, level, var, _by_rows(out), key=(new_key(rng),))
        return out

    def draw_at(
        self, rng: np.random.Generator, draw: Draw, new: FloatArray, mean: FloatArray
    ) -> FloatArray:
        """Psi at new inputs given psi, jointly, ``(num_new, num_sticks)``; `mean` is there."""
        law = self.law(draw.x)
        rotated = law.rotate(draw.psi - self.mean(draw.beta))
        return mean + law.draw_elsewhere(rng, new, rotated)

    def law_at(
        self, draw: Draw, new: FloatArray, mean: FloatArray, seen: DiagonalPotential
    ) -> tuple[FloatArray, FloatArray]:
        """Means and variances at new inputs given psi, ``(num_new, num_sticks)``.

        In cells of the table, given psi in the others and a potential at the sites.
        """
        law, centre = self.law(draw.x), self.mean(draw.beta)
        rotated = law.rotate(draw.psi - centre)
        away, var = law.elsewhere(new, rotated)
        means, variances = mean + away, np.repeat(var[:, None], mean.shape[1], axis=1)
        rows, columns, known = self._places(new)
        away, var = law.others(rotated)
        cells = rows[known], columns[known]
        site = self.table.cells.reshape(self.table.shape)[cells]
        J, h = np.zeros((2, len(site), mean.shape[1]))
        has_counts = site < len(seen.J)
        J[has_counts], h[has_counts] = seen.J[site[has_counts]], seen.h[site[has_counts]]
        precision = 1.0 / var[cells][:, None] + J
        prior = (centre + away)[:, cells[0], cells[1]].T
        means[known] = (prior / var[cells][:, None] + h) / precision
        variances[known] = 1.0 / precision
        return means, variances

    def _places(self, new: FloatArray) -> tuple[IntArray, IntArray, BoolArray]:
        """The row and column of new inputs, and whether they are in the table."""
        _, rows, columns = self.table.found(new)
        num_rows, num_columns = self.table.shape
        return rows, columns, (rows < num_rows) & (columns < num_columns)

    def slopes(self, level: FloatArray, var: float) -> tuple[FloatArray, FloatArray]:
        """Of L, and negative curvatures."""
        slopes, curvatures = np.empty((2, *level.shape))
        self._over_rows(slope_rows, level, var, _by_rows(slopes), _by_rows(curvatures))
        return slopes, curvatures

    def log_likelihood(self, level: FloatArray, var: float) -> FloatArray:
        """L of each stick."""
        out = np.empty(level.shape[:2])
        self._over_rows(log_likelihood_rows, level, var, out.reshape(-1))
        return np.asarray(out.sum(axis=1))

    def _over_rows(
        self,
        kernel: Any,
        level: FloatArray,
        var: float,
        *out: FloatArray,
        key: tuple[Any, ...] = (),
    ) -> None:
        cells = _by_rows(self.taken), _by_rows(self.reaching), _by_rows(level)
        over_rows(kernel, len(cells[0]), *key, *cells, var, *out, grain=_GRAIN)

    def _moved(self, x: FloatArray) -> Covariance:
        return self._covariance.with_log_params(x) if len(x) else self._covariance

    def _find(self, x: bytes) -> tuple[TableLaw, float]:
        covariance = self._moved(np.frombuffer(x))
        known = np.where(self.of_effects, self.start, np.frombuffer(x)).tobytes()
        factors = Factors.of(covariance, self.table.sites.shape[1])
        law = replace(self._bases(known), factors=factors)
        return law, covariance.log_prior() if x else 0.0

    def _find_bases(self, x: bytes) -> TableLaw:
        return TableLaw.of(self.table, self._moved(np.frombuffer(x)))

    def _is_of_effects(self, i: int) -> bool:
        """Whether the effects' variance is all that a hyperparameter changes."""
        moved = self.start.copy()
        moved[i] += 1.0
        return self.effect(moved) > 1.5 * self.effect(self.start)


def _by_rows(cells: FloatArray) -> FloatArray:
    return cells.reshape(-1, cells.shape[2])


def init(rng: np.random.Generator, sticks: TableSticks, near: Near) -> Draw:
    """A draw near the posterior."""
    x = near.guess.at(rng.standard_normal(len(sticks.start)))
    psi = sticks.draw_cells(rng, near.level, sticks.effect(x))
    return Draw(x, sticks.draw_level(rng, x, psi)[0], psi)


def sweep(rng: np.random.Generator, sticks: TableSticks, draw: Draw, near: Near) -> Draw:
    """All steps."""
    return _swept(rng, sticks, draw, near)[0]


def pilot(sticks: TableSticks) -> Near:
    """From a run of its own, whose random numbers are the same each time."""
    taken, reaching, x = sticks.taken, sticks.reaching, sticks.start
    pooled = (taken.sum(axis=(1, 2)) + 0.5) / (reaching.sum(axis=(1, 2)) + 1.0)
    shares = (taken + pooled[:, None, None]) / (reaching + 1.0)
    psi = np.log(shares / (1.0 - shares))
    near = Near(Leaning(x, np.eye(len(x)), np.zeros(len(x))), psi)
    rng, draw = np.random.default_rng(0), Draw(x, sticks.trend.centre, psi)
    for sweeps in _ROUNDS:
        if len(x):
            near = near._replace(guess=_mode(sticks, draw))
            draw = draw._replace(x=near.guess.mean)
        for _ in range(sweeps):
            draw, level = _swept(rng, sticks, draw, near)
        near = near._replace(level=level)
        x = _likely_effects(sticks, draw.x, level)
        draw = draw._replace(x=x, psi=sticks.draw_cells(rng, level, sticks.effect(x)))
    points, levels = [], np.zeros_like(level)
    for _ in range(_LAST_ROUND):
        draw, level = _swept(rng, sticks, draw, near)
        points.append(draw.x)
        levels += level
    near = near._replace(level=levels / _LAST_ROUND)
    if not len(x):
        return near
    root = _mode(sticks, draw).root
    cov = root @ root.T + np.cov(np.array(points).T, ddof=1).reshape(root.shape)
    root = np.asarray(np.linalg.cholesky(cov), dtype=np.float64)
    return near._replace(guess=Leaning(np.mean(points, axis=0), root, np.zeros(len(x))))


def _mode(sticks: TableSticks, draw: Draw) -> Leaning:
    """Of hyperparameters given psi, and the curvature there."""
    return laplace(lambda x: sticks.given(x, draw.psi).log_density, draw.x)


def _likely_effects(sticks: TableSticks, x: FloatArray, level: FloatArray) -> FloatArray:
    """Hyperparameters whose effects are likeliest given u: psi itself tells of its own scatter."""
    if not sticks.of_effects.any():
        return x

    def loss(shift: float) -> float:
        new = x + shift * sticks.of_effects
        fit = sticks.log_likelihood(level, sticks.effect(new)).sum()
        return -float(fit) - sticks.log_prior(new)

    found = minimize_scalar(loss, bounds=(-4.0, 4.0), method="bounded", options={"xatol": 0.1})
    return np.asarray(x + found.x * sticks.of_effects)


def _swept(
    rng: np.random.Generator, sticks: TableSticks, draw: Draw, near: Near
) -> tuple[Draw, FloatArray]:
    """A sweep, and the u that psi was drawn around."""
    psi = draw.psi
    x = scatter(rng, sticks, move_smooth(rng, sticks, draw, near), psi)
    beta, level = sticks.draw_level(rng, x, psi)
    x, fit = move_effects(rng, sticks, x, level, near)
    level = swing(rng, sticks, x, sticks.mean(beta), level, fit, near)
    return Draw(x, beta, sticks.draw_cells(rng, level, sticks.effect(x))), level


def move_smooth(
    rng: np.random.Generator, sticks: TableSticks, draw: Draw, near: Near
) -> FloatArray:
    """Hyperparameters of which those of f have moved given psi."""
    x, free = draw.x, ~sticks.of_effects
    if not free.any():
        return x

    def with_part(part: FloatArray) -> FloatArray:
        out = x.copy()
        out[free] = part
        return out

    part = sample_hyperparameters(
        rng,
        lambda part: sticks.given(with_part(part), draw.psi).log_density,
        x[free],
        _given_others(near.guess, free, x),
    )
    return with_part(part)


def scatter(
    rng: np.random.Generator, sticks: TableSticks, x: FloatArray, psi: FloatArray
) -> FloatArray:
    """Hyperparameters of which those of effects have moved given psi, one after the other."""
    x = x.copy()
    for i in map(int, np.flatnonzero(sticks.of_effects)):

        def log_density(value: FloatArray, active: BoolArray, i: int = i) -> FloatArray:
            new = x.copy()
            new[i] = value[0]
            return np.array([sticks.given(new, psi).log_density])

        x[i] = slice_sample(rng, log_density, x[i : i + 1], _WIDTH)[0]
    return x


def _given_others(guess: Leaning, free: BoolArray, x: FloatArray) -> Leaning:
    """Roughly the law of some coordinates given the others: as if it were a normal one."""
    cov = guess.root @ guess.root.T
    slopes = np.linalg.solve(cov[~free][:, ~free], cov[~free][:, free])
    mean = guess.mean[free] + (x - guess.mean)[~free] @ slopes
    left = cov[free][:, free] - cov[free][:, ~free] @ slopes
    root = np.asarray(np.linalg.cholesky(left), dtype=np.float64)
    return Leaning(mean, root, np.zeros(len(mean)))


def move_effects(
    rng: np.random.Generator, sticks: TableSticks, x: FloatArray, level: FloatArray, near: Near
) -> tuple[FloatArray, FloatArray]:
    """Hyperparameters whose effects have moved given u, and L of each stick."""
    fit = sticks.log_likelihood(level, sticks.effect(x))
    if not sticks.of_effects.any():
        return x, fit
    spread = np.linalg.norm(near.guess.root, axis=1)
    step = _WALK * spread * rng.standard_normal(len(x))
    new = x + np.where(sticks.of_effects, step, 0.0)
    new_fit = sticks.log_likelihood(level, sticks.effect(new))
    gain = new_fit.sum() - fit.sum() + sticks.log_prior(new) - sticks.log_prior(x)
    return (new, new_fit) if gain > -rng.exponential() else (x, fit)


def swing(
    rng: np.random.Generator,
    sticks: TableSticks,
    x: FloatArray,
    mean: FloatArray,
    level: FloatArray,
    fit: FloatArray,
    near: Near,
) -> FloatArray:
    """U along a Hamiltonian path, or the old one of sticks where it is refused.

    `fit` is L at the old level.
    """
    law, var = sticks.law(x), sticks.effect(x)
    around = _Around.of(sticks, law, mean, near.level)

    def pull(level: FloatArray) -> FloatArray:
        return around.rotate(around.root * (sticks.slopes(level, var)[0] - around.slope(level)))

    z = around.rotate((level - mean) / around.root) - around.centre
    v = np.sqrt(around.vars) * rng.standard_normal(z.shape)
    step = 0.5 * np.pi / _KICKS * rng.uniform(0.8, 1.2)
    cos, sin = np.cos(step), np.sin(step)
    new, gain = level, around.potential(level) - fit
    for i in range(_KICKS + 1):
        length = step * (0.5 if i in (0, _KICKS) else 1.0)
        g = pull(new)
        kicked = around.vars * g
        gain = gain - length * np.sum(g * (v + 0.5 * length * kicked), axis=(1, 2))
        v = v + length * kicked
        if i < _KICKS:
            z, v = z * cos + v * sin, v * cos - z * sin
            new = mean + around.root * around.back(around.centre + z)
    gain = gain + sticks.log_likelihood(new, var) - around.potential(new)
    accepted = gain > -rng.exponential(size=len(gain))
    return np.where(accepted[:, None, None], new, level)


class _Around(NamedTuple):
    """A Gaussian near the law of f given counts: of curvatures that are a product.

    Arrays are ``(num_sticks, num_rows, num_columns)``. f / root has the variances `vars` and the
    mean `centre` along the eigenvectors; `tilt` is h of the potential that makes it of the prior.
    """

    mean: FloatArray
    root: FloatArray
    tilt: FloatArray
    row_vectors: FloatArray
    column_vectors: FloatArray
    vars: FloatArray
    centre: FloatArray

    @classmethod
    def of(
        cls, sticks: TableSticks, law: TableLaw, mean: FloatArray, near: FloatArray
    ) -> "_Around":
        slopes, curvatures = sticks.slopes(near, law.factors.effect)
        logs = 0.5 * np.log(np.maximum(curvatures, _LEAST / law.factors.variance))
        of_rows = logs.mean(axis=2, keepdims=True)
        of_columns = logs.mean(axis=1, keepdims=True) - of_rows.mean(axis=1, keepdims=True)
        a, b = np.exp(of_rows[:, :, 0]), np.exp(of_columns[:, 0])
        row_values, row_vectors = np.linalg.eigh(a[:, :, None] * law.row_cov * a[:, None])
        values, vectors = np.linalg.eigh(b[:, :, None] * law.column_cov * b[:, None])
        prior = law.factors.variance * row_values[:, :, None] * values[:, None]
        prior = np.maximum(prior, 0.0)
        root = np.exp(-of_rows - of_columns)
        tilt = slopes + (near - mean) / root**2
        empty = cls(mean, root, tilt, row_vectors, vectors, prior / (1.0 + prior), tilt)
        return empty._replace(centre=empty.vars * empty.rotate(root * tilt))

    def rotate(self, values: FloatArray) -> FloatArray:
        return np.asarray(self.row_vectors.transpose(0, 2, 1) @ values @ self.column_vectors)

    def back(self, rotated: FloatArray) -> FloatArray:
        return np.asarray(self.row_vectors @ rotated @ self.column_vectors.transpose(0, 2, 1))

    def potential(self, level: FloatArray) -> FloatArray:
        """What stands in for L, of each stick."""
        away = level - self.mean
        return np.asarray(np.sum(away * (self.tilt - 0.5 * away / self.root**2), axis=(1, 2)))

    def slope(self, level: FloatArray) -> FloatArray:
        """Its slopes."""
        return np.asarray(self.tilt - (level - self.mean) / self.root**2)
