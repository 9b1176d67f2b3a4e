r"""Sticks on a table of inputs: a sweep in the bases where their covariance is diagonal.

In every cell of a table (`pgmult.fields.priors.separable`) and for every stick,

    psi = u + e,    u = features' beta + f,    f ~ N(0, v K_rows (x) K_columns),  e ~ N(0, effect)

and the counts x are binomial given psi. A sweep:

1. theta | psi              the rest integrated out: `sample_hyperparameters` of those of f, around
                            a fixed law; slices of the variances
2. beta, f | theta, psi     exact draws
3. effect | u, x            psi integrated out, a step of a random walk; again after step 5
4. those of f, f | beta, x  psi integrated out: `move_together`, see below
5. f | theta, beta, x       psi integrated out, a swing: see below
6. psi | theta, u, x        exact draws, cell by cell (`pgmult.fields.compiled.cells`)

Without psi a cell's log likelihood L(u) has a curvature from 0, where its counts say nothing, to
1 / effect, where they say all: so neither small effects nor zeros of thousands slow step 5 down,
where steps 2 and 6 by themselves move by the smaller one of two standard deviations. It is a
Hamiltonian path that turns exactly about a Gaussian (`pgmult.latent.moves.swing`), here that of
curvatures 1 / (a_t b_s): along the eigenvectors of K_rows / sqrt(a a') and of
K_columns / sqrt(b b') it is diagonal. Its forces are those of psi's law expanded around its mode;
whether it is accepted is by L itself.

Step 4 is non-centred about the same Gaussian: u is carried along as its standard normal noise, so
that hyperparameters move as if u were integrated out, but for what the Gaussian lacks (Murray and
Adams 2010, "Slice sampling covariance hyperparameters of latent Gaussian models"). The proposal is
that of `pgmult.latent.moves.reflect`. Step 1 moves far where cells scatter widely, step 4 where
they hardly do.

The law of steps 1 and 4 and the levels that curvatures are taken at are those of a pilot run,
`Near`: they depend on the data alone. Eigenvectors change with length scales only; these move in
fewer sweeps where eigenvalue problems would take most of the time.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from pgmult.compiled.rows import over_rows
from pgmult.core.potentials import DiagonalPotential
from pgmult.core.typing import BoolArray, FloatArray
from pgmult.core.validate import new_key
from pgmult.fields.compiled.cells import draw_rows, log_likelihood_rows, slope_rows
from pgmult.fields.covariances import Covariance
from pgmult.fields.priors.field import Trend
from pgmult.fields.priors.separable import Factors, Table, TableLaw
from pgmult.latent.hyperparameters import Leaning, laplace, sample_hyperparameters
from pgmult.sampling.moves import slice_sample

_KICKS = 4  # of a swing
_LEAST = 1e-3  # of a curvature, as a share of the prior precision
_NOTHING = 1e-10  # what is left of a variance by rounding
_LONG = 2.5  # sides of a table, of which the longer one has curvatures that all sticks share
_RAREST = 0.1  # share of sweeps in which length scales move
_REMEMBERED = 8  # laws, of a few chains
_WIDTH = 0.3  # of the first interval of slices
_WALK = 2.0  # standard deviations of the effects' law given u
_ROOM = 1.4  # of the law of the other hyperparameters, that much wider than the potential tells
_ROUNDS = 1, 1, 2, 4, 8, 16  # sweeps of a pilot
_SETTLING = 8  # sweeps of a start
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


@dataclass(frozen=True, slots=True, eq=False)
class Near:
    """What moves go around; any will do.

    Attributes
    ----------
    guess : Leaning
        The law that hyperparameters roughly have.
    potential : Potential
        What roughly stands in for the counts.
    """

    guess: Leaning
    potential: "Potential"


class _Given(NamedTuple):
    """What psi says at hyperparameters, in the eigenvectors' bases.

    Psi less its mean where coefficients are at their centre, and their features; the coefficients'
    precision, and their mean less their centre; and the log density of psi and the hyperparameters,
    all else integrated out.
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
        self.bases = lru_cache(maxsize=_REMEMBERED)(
            lambda x: TableLaw.of(table, self._moved(np.frombuffer(x)))
        )
        kinds = [self._kind(i) for i in range(len(start))]
        self.of_effects = np.array([kind == "effect" for kind in kinds], dtype=bool)
        self.of_scales = np.array([kind == "scale" for kind in kinds], dtype=bool)

    @property
    def scale_rate(self) -> float:
        """The share of sweeps that move length scales: eigenvalue problems cost as much as all."""
        rows, columns = self.table.shape
        products = len(self.taken) * rows * columns * (rows + columns)
        return min(1.0, max(_RAREST, products / (rows**3 + columns**3)))

    def law(self, x: FloatArray) -> TableLaw:
        """Of psi around its mean."""
        return self._at(x.tobytes())[0]

    def log_prior(self, x: FloatArray) -> float:
        """Log density of log hyperparameters."""
        return self._at(x.tobytes())[1]

    def effect(self, x: FloatArray) -> float:
        """The variance of the effects of cells."""
        return self.law(x).factors.effect

    def mean(self, beta: FloatArray) -> FloatArray:
        """Of psi, ``(num_sticks, num_rows, num_columns)``."""
        return np.asarray(self._level + np.einsum("fk,fij->kij", beta, self._features))

    def prior(self, rng: np.random.Generator, x: FloatArray, beta: FloatArray) -> FloatArray:
        """A draw of psi given hyperparameters and coefficients."""
        return self.mean(beta) + self.law(x).draw(rng.standard_normal(self.taken.shape))

    def given(self, x: FloatArray, psi: FloatArray) -> _Given:
        """What psi says at hyperparameters."""
        law = self.law(x)
        away = psi - self.mean(self.trend.centre)
        return self.weighed(x, law.rotate(away), law.rotate(self._features))

    def weighed(self, x: FloatArray, rotated: FloatArray, features: FloatArray) -> _Given:
        """`given` psi less its mean, and features, both along the eigenvectors."""
        law = self.law(x)
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
        _, rows, columns = self.table.found(new)
        known = (rows < self.table.shape[0]) & (columns < self.table.shape[1])
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

    def scales(self, x: FloatArray) -> bytes:
        """What eigenvectors depend on, of hyperparameters."""
        return np.where(self.of_scales, x, self.start).tobytes()

    def _find(self, x: bytes) -> tuple[TableLaw, float]:
        covariance = self._moved(np.frombuffer(x))
        factors = Factors.of(covariance, self.table.sites.shape[1])
        law = replace(self.bases(self.scales(np.frombuffer(x))), factors=factors)
        return law, covariance.log_prior() if x else 0.0

    def _kind(self, i: int) -> str:
        """Whether a hyperparameter is the variance of the product, that of effects, or neither."""
        moved = self.start.copy()
        moved[i] += 1.0
        width = self.table.sites.shape[1]
        old, new = (Factors.of(self._moved(x), width) for x in (self.start, moved))
        changed = [new.effect > 1.5 * old.effect, new.variance > 1.5 * old.variance]
        return "effect" if changed[0] else "variance" if changed[1] else "scale"


class _Bent(NamedTuple):
    """Eigenvalues and eigenvectors of a K_rows a' and b K_columns b', of each stick."""

    row_values: FloatArray
    row_vectors: FloatArray
    column_values: FloatArray
    column_vectors: FloatArray

    def rotate(self, values: FloatArray) -> FloatArray:
        """Values of each stick along its eigenvectors."""
        return np.asarray(self.row_vectors.transpose(0, 2, 1) @ values @ self.column_vectors)

    def back(self, rotated: FloatArray) -> FloatArray:
        """The inverse of `rotate`."""
        return np.asarray(self.row_vectors @ rotated @ self.column_vectors.transpose(0, 2, 1))


class Potential:
    """A Gaussian factor in u that stands in for the counts: curvatures are (a_t b_s)^2.

    On a long table the longer one of a and b is the same for all sticks.

    Parameters
    ----------
    sticks : TableSticks
    x : array, ``(num_hyperparameters,)``
        At whose effects slopes and curvatures are those of L.
    level : array, ``(num_sticks, num_rows, num_columns)``
        Where it is expanded.
    """

    def __init__(self, sticks: TableSticks, x: FloatArray, level: FloatArray):
        law = sticks.law(x)
        self._sticks, self.level = sticks, level
        self._slopes, curvatures = sticks.slopes(level, law.factors.effect)
        logs = 0.5 * np.log(np.maximum(curvatures, _LEAST / law.factors.variance))
        of_sides = {side: logs.mean(axis=3 - side, keepdims=True) for side in (1, 2)}
        small, large = sorted((1, 2), key=lambda side: level.shape[side])
        if level.shape[large] > _LONG * level.shape[small]:  # its eigenvectors are dear
            of_sides[large] = of_sides[large].mean(axis=0, keepdims=True)
        of_sides[large] = of_sides[large] - of_sides[large].mean(axis=(1, 2), keepdims=True)
        self._rows, self._columns = np.exp(of_sides[1]), np.exp(of_sides[2])
        self.roots = self._rows * self._columns
        self._bent = lru_cache(maxsize=_REMEMBERED)(self._find_bent)

    def log(self, level: FloatArray) -> FloatArray:
        """What stands in for L, of each stick."""
        away = level - self.level
        return np.asarray(np.sum(away * (self._slopes - 0.5 * self.roots**2 * away), axis=(1, 2)))

    def slope(self, level: FloatArray) -> FloatArray:
        """Its slopes."""
        return np.asarray(self._slopes - self.roots**2 * (level - self.level))

    def law(self, x: FloatArray, mean: FloatArray) -> "Around":
        """The law of u given this potential, hyperparameters and the mean of u."""
        bent = self._bent(self._sticks.scales(x))
        prior = bent.row_values[:, :, None] * bent.column_values[:, None]
        prior = self._sticks.law(x).factors.variance * np.maximum(prior, 0.0)
        return Around(self, mean, bent, prior)

    def _find_bent(self, scales: bytes) -> _Bent:
        law = self._sticks.bases(scales)
        rows = self._rows * law.row_cov * self._rows.transpose(0, 2, 1)
        columns = self._columns.transpose(0, 2, 1) * law.column_cov * self._columns
        return _Bent(*np.linalg.eigh(rows), *np.linalg.eigh(columns))


class Around:
    """A Gaussian law of u; along eigenvectors (u - mean) a b has independent parts.

    Parameters
    ----------
    potential : Potential
    mean : array, ``(num_sticks, num_rows, num_columns)``
        Of u, without the potential.
    bent : _Bent
    prior : array, ``(num_sticks, num_rows, num_columns)``
        Variances along the eigenvectors, without the potential.
    """

    def __init__(self, potential: Potential, mean: FloatArray, bent: _Bent, prior: FloatArray):
        self._potential, self._mean, self._bent = potential, mean, bent
        self.vars = prior / (1.0 + prior)
        pull = self.pull(potential.slope(mean))
        self.centre = self.vars * pull
        self.log_evidence = 0.5 * float(np.sum(self.centre * pull - np.log1p(prior)))

    def pull(self, slopes: FloatArray) -> FloatArray:
        """Slopes in u, along the eigenvectors."""
        return self._bent.rotate(slopes / self._potential.roots)

    def away(self, level: FloatArray) -> FloatArray:
        """U from the centre, along the eigenvectors."""
        return self._bent.rotate((level - self._mean) * self._potential.roots) - self.centre

    def level(self, away: FloatArray) -> FloatArray:
        """The inverse of `away`."""
        u = self._mean + self._bent.back(self.centre + away) / self._potential.roots
        return np.asarray(u)

    def white(self, rng: np.random.Generator, level: FloatArray) -> FloatArray:
        """The standard normal noise that `colour` makes u of; drawn where it makes nothing."""
        known = self.vars > _NOTHING
        noise = self.away(level) / np.sqrt(np.where(known, self.vars, 1.0))
        return self._bent.back(np.where(known, noise, rng.standard_normal(noise.shape)))

    def colour(self, noise: FloatArray) -> FloatArray:
        """U made of noise, by symmetric roots."""
        sd = np.where(self.vars > _NOTHING, np.sqrt(self.vars), 0.0)
        return self.level(sd * self._bent.rotate(noise))


def _by_rows(cells: FloatArray) -> FloatArray:
    return cells.reshape(-1, cells.shape[2])


def init(rng: np.random.Generator, sticks: TableSticks, near: Near) -> Draw:
    """A draw near the posterior.

    Levels of a pilot are means, of which hyperparameters would be those of a smoother field: at
    hyperparameters drawn first, a few sweeps make draws of them.
    """
    x = near.guess.at(rng.standard_normal(len(sticks.start)))
    var, level = sticks.effect(x), near.potential.level
    for _ in range(_SETTLING):
        beta, level = sticks.draw_level(rng, x, sticks.draw_cells(rng, level, var))
        fit = sticks.log_likelihood(level, var)
        level, _ = swing(rng, sticks, x, sticks.mean(beta), level, fit, near)
    return Draw(x, beta, sticks.draw_cells(rng, level, var))


def sweep(rng: np.random.Generator, sticks: TableSticks, draw: Draw, near: Near) -> Draw:
    """All steps."""
    return _swept(rng, sticks, draw, near)[0]


def pilot(sticks: TableSticks) -> Near:
    """From a run of its own, whose random numbers are the same each time."""
    taken, reaching, x = sticks.taken, sticks.reaching, sticks.start
    pooled = (taken.sum(axis=(1, 2)) + 0.5) / (reaching.sum(axis=(1, 2)) + 1.0)
    shares = (taken + pooled[:, None, None]) / (reaching + 1.0)
    psi = np.log(shares / (1.0 - shares))
    rng, draw = np.random.default_rng(0), Draw(x, sticks.trend.centre, psi)
    near = _near(sticks, draw, psi, psi)
    for sweeps in _ROUNDS:
        x, levels = _likely(sticks, near.guess.mean, draw.psi), np.zeros_like(psi)
        draw = draw._replace(x=x)
        for _ in range(sweeps):
            draw, level = _swept(rng, sticks, draw, near)
            levels += level
        near = _near(sticks, draw, level, levels / sweeps)
    return near


def _near(sticks: TableSticks, draw: Draw, level: FloatArray, centre: FloatArray) -> Near:
    """What goes around a level: effects as likely given u, those of f with u integrated out.

    `level` is a draw of u, as its own scatter tells of effects.
    """
    mean, free = sticks.mean(draw.beta), ~sticks.of_effects
    x, root = draw.x.copy(), np.zeros((len(draw.x), len(draw.x)))

    def search(log_density: Callable[[FloatArray], float], own: BoolArray, room: float) -> None:
        if own.any():
            found = laplace(lambda part: log_density(_with(x, own, part)), x[own])
            x[own], root[np.ix_(own, own)] = found.mean, room * found.root

    def of_effects(new: FloatArray) -> float:
        fit = sticks.log_likelihood(level, sticks.effect(new)).sum()
        return float(fit) + sticks.log_prior(new)

    search(of_effects, sticks.of_effects, _WALK)
    potential = Potential(sticks, x, centre)
    search(lambda x: potential.law(x, mean).log_evidence + sticks.log_prior(x), free, _ROOM)
    return Near(Leaning(x, root, np.zeros(len(x))), potential)


def _likely(sticks: TableSticks, x: FloatArray, psi: FloatArray) -> FloatArray:
    """Hyperparameters of which the variances are the most likely ones given psi.

    A slice through a point that is too unlikely ends anywhere, and its sides are never found.
    """
    own, given = ~sticks.of_scales, sticks.given(x, psi)

    def log_density(part: FloatArray) -> float:
        return sticks.weighed(_with(x, own, part), given.psi, given.features).log_density

    return _with(x, own, laplace(log_density, x[own]).mean) if own.any() else x


def _with(x: FloatArray, own: BoolArray, part: FloatArray) -> FloatArray:
    """Hyperparameters of which some are others."""
    out = x.copy()
    out[own] = part
    return out


def _swept(
    rng: np.random.Generator, sticks: TableSticks, draw: Draw, near: Near
) -> tuple[Draw, FloatArray]:
    """A sweep, and the u that psi was drawn around."""
    x, variances = draw.x, ~sticks.of_scales
    free = variances & ~sticks.of_effects
    if sticks.of_scales.any() and rng.random() < sticks.scale_rate:
        x, variances, free = (
            move_smooth(rng, sticks, draw, near),
            sticks.of_effects,
            ~sticks.of_effects,
        )
    x = scatter(rng, sticks, x, draw.psi, variances)
    beta, level = sticks.draw_level(rng, x, draw.psi)
    mean = sticks.mean(beta)
    fit = sticks.log_likelihood(level, sticks.effect(x))
    x, fit = move_effects(rng, sticks, x, level, fit, near)
    if free.any():
        x, level, fit = move_together(rng, sticks, x, mean, level, fit, near, free)
    level, fit = swing(rng, sticks, x, mean, level, fit, near)
    x, _ = move_effects(rng, sticks, x, level, fit, near)
    return Draw(x, beta, sticks.draw_cells(rng, level, sticks.effect(x))), level


def move_smooth(
    rng: np.random.Generator, sticks: TableSticks, draw: Draw, near: Near
) -> FloatArray:
    """Hyperparameters of which those of f have moved given psi."""
    x, free = draw.x, ~sticks.of_effects
    part = sample_hyperparameters(
        rng,
        lambda part: sticks.given(_with(x, free, part), draw.psi).log_density,
        x[free],
        _given_others(near.guess, free, x),
    )
    return _with(x, free, part)


def scatter(
    rng: np.random.Generator,
    sticks: TableSticks,
    x: FloatArray,
    psi: FloatArray,
    variances: BoolArray,
) -> FloatArray:
    """Hyperparameters of which some variances have moved given psi, one after the other."""
    x, given = x.copy(), sticks.given(x, psi)
    for i in map(int, np.flatnonzero(variances)):

        def log_density(value: FloatArray, active: BoolArray, i: int = i) -> FloatArray:
            new = x.copy()
            new[i] = value[0]
            return np.array([sticks.weighed(new, given.psi, given.features).log_density])

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
    rng: np.random.Generator,
    sticks: TableSticks,
    x: FloatArray,
    level: FloatArray,
    fit: FloatArray,
    near: Near,
) -> tuple[FloatArray, FloatArray]:
    """Hyperparameters whose effects have moved given u, and L of each stick."""
    if not sticks.of_effects.any():
        return x, fit
    spread = np.linalg.norm(near.guess.root, axis=1)
    step = np.where(sticks.of_effects, spread, 0.0)
    new = x + step * rng.standard_normal(len(x))
    new_fit = sticks.log_likelihood(level, sticks.effect(new))
    gain = new_fit.sum() - fit.sum() + sticks.log_prior(new) - sticks.log_prior(x)
    return (new, new_fit) if gain > -rng.exponential() else (x, fit)


def move_together(
    rng: np.random.Generator,
    sticks: TableSticks,
    x: FloatArray,
    mean: FloatArray,
    level: FloatArray,
    fit: FloatArray,
    near: Near,
    free: BoolArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Some hyperparameters of f and u, and L of each stick; `fit` is L at the old level."""
    guess, new = _given_others(near.guess, free, x), x.copy()
    new[free] = guess.reflected(rng, x[free])
    if not np.isfinite(sticks.log_prior(new)):
        return x, level, fit
    seen = near.potential
    old_law, law = seen.law(x, mean), seen.law(new, mean)
    there = law.colour(old_law.white(rng, level))
    new_fit = sticks.log_likelihood(there, sticks.effect(new))

    def log_weight(x: FloatArray, law: Around, level: FloatArray, fit: FloatArray) -> float:
        correction = float(np.sum(fit - seen.log(level)))
        density = sticks.log_prior(x) + law.log_evidence + correction
        return density - float(guess.log_density(x[free]))

    gain = log_weight(new, law, there, new_fit) - log_weight(x, old_law, level, fit)
    return (new, there, new_fit) if gain > -rng.exponential() else (x, level, fit)


def swing(
    rng: np.random.Generator,
    sticks: TableSticks,
    x: FloatArray,
    mean: FloatArray,
    level: FloatArray,
    fit: FloatArray,
    near: Near,
) -> tuple[FloatArray, FloatArray]:
    """U along a Hamiltonian path, or the old one of sticks where it is refused; and L of each.

    `fit` is L at the old level.
    """
    var, seen = sticks.effect(x), near.potential
    law = seen.law(x, mean)

    def pull(level: FloatArray) -> FloatArray:
        return law.pull(sticks.slopes(level, var)[0] - seen.slope(level))

    z = law.away(level)
    v = np.sqrt(law.vars) * rng.standard_normal(z.shape)
    step = 0.5 * np.pi / _KICKS * rng.uniform(0.8, 1.2)
    cos, sin = np.cos(step), np.sin(step)
    new, gain = level, seen.log(level) - fit
    for i in range(_KICKS + 1):
        length = step * (0.5 if i in (0, _KICKS) else 1.0)
        g = pull(new)
        kicked = law.vars * g
        gain = gain - length * np.sum(g * (v + 0.5 * length * kicked), axis=(1, 2))
        v = v + length * kicked
        if i < _KICKS:
            z, v = z * cos + v * sin, v * cos - z * sin
            new = law.level(z)
    new_fit = sticks.log_likelihood(new, var)
    accepted = gain + new_fit - seen.log(new) > -rng.exponential(size=len(gain))
    level = np.where(accepted[:, None, None], new, level)
    return level, np.where(accepted, new_fit, fit)
