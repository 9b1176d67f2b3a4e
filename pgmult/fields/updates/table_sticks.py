r"""Sticks on a table of inputs: a sweep in the bases where their covariance is diagonal.

In every cell of a table (`pgmult.fields.priors.separable`) and for every stick,

    psi = u + e,    u = features' beta + f,    f ~ N(0, v K_rows (x) K_columns),  e ~ N(0, effect)

and the counts x are binomial given psi. A sweep:

1. theta | psi              the rest integrated out: `sample_hyperparameters` of those of f, around
                            a fixed distribution; slices of the variances
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
K_columns / sqrt(b b') it is diagonal. Its forces are those of psi's distribution expanded around
its mode; whether it is accepted is by L itself.

Step 4 is non-centred about the same Gaussian: u is carried along as its standard normal noise, so
that hyperparameters move as if u were integrated out, but for what the Gaussian lacks (Murray and
Adams 2010, "Slice sampling covariance hyperparameters of latent Gaussian models"). The proposal is
that of `pgmult.latent.moves.reflect`. Step 1 moves far where cells scatter widely, step 4 where
they hardly do.

The distribution of steps 1 and 4 and the levels of curvatures are those of a pilot run,
`Reference`: they depend on the data alone. Eigenvectors change with length scales only; these move
in fewer sweeps where eigenvalue problems would take most of the time.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from pgmult.compiled.rows import over_rows
from pgmult.core.typing import BoolArray, FloatArray, Generator
from pgmult.core.validate import new_key
from pgmult.fields.compiled.cells import draw_rows, log_likelihood_rows, slope_rows
from pgmult.fields.priors.separable import Eigenbases, TableGaussian
from pgmult.fields.priors.sticks import TableDraw, TableSticks
from pgmult.latent.hyperparameters import Leaning, laplace, sample_hyperparameters
from pgmult.sampling.moves import slice_sample

_KICKS = 4  # of a swing
_LEAST = 1e-3  # of a curvature, as a share of the prior precision
_NOTHING = 1e-10  # what is left of a variance by rounding
_LONG = 2.5  # sides of a table, of which the longer one has curvatures that all sticks share
_RAREST = 0.1  # share of sweeps in which length scales move
_REMEMBERED = 8  # eigenvectors, for a few chains
_WIDTH = 0.3  # of the first interval of slices
_WALK = 2.0  # standard deviations of the effects' distribution given u
_WIDER = 1.4  # standard deviations of the other hyperparameters, over those by the potential
_ROUNDS = 1, 1, 2, 4, 8, 16  # sweeps of a pilot
_SETTLING = 8  # sweeps of a start
_GRAIN = 16  # rows of a table


class Reference(NamedTuple):
    """The Gaussian that moves go around; any leaves the posterior as it is.

    Attributes
    ----------
    guess : Leaning
        An approximate posterior of the hyperparameters.
    potential : Potential
        An approximate likelihood of u.
    """

    guess: Leaning
    potential: "Potential"


class LevelDraw(NamedTuple):
    """Where a sweep stands, psi integrated out.

    Attributes
    ----------
    x : array, ``(num_hyperparameters,)``
    mean, level : arrays, ``(num_sticks, num_rows, num_columns)``
        The mean of u, and u.
    fit : array, ``(num_sticks,)``
        L of each stick at u.
    """

    x: FloatArray
    mean: FloatArray
    level: FloatArray
    fit: FloatArray


class Collapsed(NamedTuple):
    """Psi at hyperparameters, along the eigenvectors, with u and coefficients integrated out.

    Psi less its mean where coefficients are at their centre, and their features; the coefficients'
    precision, and their mean less their centre; and the log density of psi and the hyperparameters,
    all else integrated out.
    """

    gaussian: TableGaussian
    psi: FloatArray
    features: FloatArray
    precision: FloatArray
    shift: FloatArray
    log_density: float


def scale_rate(sticks: TableSticks) -> float:
    """Return the share of sweeps that move length scales: eigenvalue problems cost as much as all.

    The rest of a sweep is products of matrices.
    """
    rows, columns = sticks.table.shape
    products = len(sticks.taken) * rows * columns * (rows + columns)
    return min(1.0, max(_RAREST, products / (rows**3 + columns**3)))


def collapse(sticks: TableSticks, x: FloatArray, psi: FloatArray) -> Collapsed:
    """Rotate psi, and integrate u and the coefficients out."""
    gaussian = sticks.gaussian(x)
    away = psi - sticks.mean(sticks.trend.centre)
    return collapse_rotated(sticks, x, gaussian.rotate(away), gaussian.rotate(sticks.features))


def collapse_rotated(
    sticks: TableSticks, x: FloatArray, rotated: FloatArray, features: FloatArray
) -> Collapsed:
    """`collapse` psi less its mean, and features, both along the eigenvectors."""
    gaussian = sticks.gaussian(x)
    scaled = features / gaussian.vars
    precision = np.einsum("fij,gij->fg", scaled, features)
    precision = precision + np.eye(len(features)) / sticks.trend.var
    pull = np.einsum("fij,kij->fk", scaled, rotated)
    shift = np.linalg.solve(precision, pull)
    log_det = np.linalg.slogdet(sticks.trend.var * precision)[1]
    density = gaussian.log_density(rotated).sum() + 0.5 * np.sum(pull * shift)
    density += sticks.log_prior(x) - 0.5 * len(rotated) * log_det
    return Collapsed(gaussian, rotated, features, precision, shift, float(density))


def draw_level(
    rng: Generator, sticks: TableSticks, x: FloatArray, psi: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Draw the coefficients and u given psi."""
    collapsed = collapse(sticks, x, psi)
    gaussian, root = collapsed.gaussian, np.linalg.cholesky(collapsed.precision)
    shift = collapsed.shift + np.linalg.solve(root.T, rng.standard_normal(collapsed.shift.shape))
    residual = collapsed.psi - np.einsum("fk,fij->kij", shift, collapsed.features)
    share = gaussian.smooth / gaussian.vars
    sd = np.sqrt(share * gaussian.factors.effect)
    field = share * residual + sd * rng.standard_normal(residual.shape)
    beta = sticks.trend.centre + shift
    return beta, sticks.mean(beta) + gaussian.back(field)


def draw_cells(rng: Generator, sticks: TableSticks, level: FloatArray, var: float) -> FloatArray:
    """Draw psi given u and the counts."""
    out = np.empty_like(level)
    _over_rows(draw_rows, new_key(rng), sticks.taken, sticks.reaching, level, var, out)
    return out


def slopes(sticks: TableSticks, level: FloatArray, var: float) -> tuple[FloatArray, FloatArray]:
    """Return the slopes of L, and its negative curvatures."""
    first, second = np.empty((2, *level.shape))
    _over_rows(slope_rows, sticks.taken, sticks.reaching, level, var, first, second)
    return first, second


def log_likelihood(sticks: TableSticks, level: FloatArray, var: float) -> FloatArray:
    """Return L of each stick, ``(num_sticks,)``."""
    out = np.empty(level.shape[:2])
    _over_rows(log_likelihood_rows, sticks.taken, sticks.reaching, level, var, out.reshape(-1))
    return np.asarray(out.sum(axis=1))


def _over_rows(kernel: Callable[..., object], *arguments: Any) -> None:
    """Run a kernel over the rows of the tables of all sticks."""
    by_rows = [x.reshape(-1, x.shape[2]) if np.ndim(x) == 3 else x for x in arguments]
    over_rows(kernel, len(by_rows[-1]), *by_rows, grain=_GRAIN)


class Potential:
    """A Gaussian factor in u that stands in for the counts: curvatures are (a_t b_s)^2.

    On a long table the longer one of a and b is the same for all sticks.

    Parameters
    ----------
    sticks : TableSticks
    x : array, ``(num_hyperparameters,)``
        Slopes and curvatures are those of L at its effects.
    level : array, ``(num_sticks, num_rows, num_columns)``
        Where it is expanded.
    """

    def __init__(self, sticks: TableSticks, x: FloatArray, level: FloatArray):
        gaussian = sticks.gaussian(x)
        self._sticks, self.level = sticks, level
        self._slopes, curvatures = slopes(sticks, level, gaussian.factors.effect)
        logs = 0.5 * np.log(np.maximum(curvatures, _LEAST / gaussian.factors.variance))
        of_sides = {side: logs.mean(axis=3 - side, keepdims=True) for side in (1, 2)}
        small, large = sorted((1, 2), key=lambda side: level.shape[side])
        if level.shape[large] > _LONG * level.shape[small]:  # its eigenvectors are dear
            of_sides[large] = of_sides[large].mean(axis=0, keepdims=True)
        of_sides[large] = of_sides[large] - of_sides[large].mean(axis=(1, 2), keepdims=True)
        self._rows, self._columns = np.exp(of_sides[1]), np.exp(of_sides[2])
        self.roots = self._rows * self._columns
        self._bent = lru_cache(maxsize=_REMEMBERED)(self._find_bent)

    def log(self, level: FloatArray) -> FloatArray:
        """Return the approximation of L, up to a constant, for each stick."""
        away = level - self.level
        return np.asarray(np.sum(away * (self._slopes - 0.5 * self.roots**2 * away), axis=(1, 2)))

    def slope(self, level: FloatArray) -> FloatArray:
        """Return its slopes in u."""
        return np.asarray(self._slopes - self.roots**2 * (level - self.level))

    def gaussian(self, x: FloatArray, mean: FloatArray) -> "LevelGaussian":
        """Return the Gaussian of u given this potential, hyperparameters and the mean of u."""
        bent = self._bent(self._sticks.scales(x))
        prior = bent.row_values[:, :, None] * bent.column_values[:, None]
        prior = self._sticks.gaussian(x).factors.variance * np.maximum(prior, 0.0)
        return LevelGaussian(self, mean, bent, prior)

    def _find_bent(self, scales: bytes) -> Eigenbases:
        """Eigenbases of a K_rows a' and b K_columns b', of each stick."""
        gaussian = self._sticks.bases(scales)
        rows = self._rows * gaussian.row_cov * self._rows.transpose(0, 2, 1)
        columns = self._columns.transpose(0, 2, 1) * gaussian.column_cov * self._columns
        return Eigenbases(*np.linalg.eigh(rows), *np.linalg.eigh(columns))


class LevelGaussian:
    """A Gaussian of u; along eigenvectors (u - mean) a b has independent entries.

    Parameters
    ----------
    potential : Potential
    mean : array, ``(num_sticks, num_rows, num_columns)``
        Of u, without the potential.
    bent : Eigenbases
    prior : array, ``(num_sticks, num_rows, num_columns)``
        Variances along the eigenvectors, without the potential.
    """

    def __init__(self, potential: Potential, mean: FloatArray, bent: Eigenbases, prior: FloatArray):
        self._potential, self._mean, self._bent = potential, mean, bent
        self.vars = prior / (1.0 + prior)
        pull = self.pull(potential.slope(mean))
        self.centre = self.vars * pull
        self.log_evidence = 0.5 * float(np.sum(self.centre * pull - np.log1p(prior)))

    def pull(self, slopes: FloatArray) -> FloatArray:
        """Rotate slopes in u to the eigenvectors."""
        return self._bent.rotate(slopes / self._potential.roots)

    def away(self, level: FloatArray) -> FloatArray:
        """Return u less the centre, along the eigenvectors."""
        return self._bent.rotate((level - self._mean) * self._potential.roots) - self.centre

    def level(self, away: FloatArray) -> FloatArray:
        """Invert `away`."""
        return np.asarray(self._mean + self._bent.back(self.centre + away) / self._potential.roots)

    def white(self, rng: Generator, level: FloatArray) -> FloatArray:
        """Return the noise that `colour` turns into u; it is drawn where `colour` ignores it."""
        varies = self.vars > _NOTHING
        noise = self.away(level) / np.sqrt(np.where(varies, self.vars, 1.0))
        return self._bent.back(np.where(varies, noise, rng.standard_normal(noise.shape)))

    def colour(self, noise: FloatArray) -> FloatArray:
        """Turn standard normal noise into u, by symmetric roots."""
        sd = np.where(self.vars > _NOTHING, np.sqrt(self.vars), 0.0)
        return self.level(sd * self._bent.rotate(noise))


def init(rng: Generator, sticks: TableSticks, reference: Reference) -> TableDraw:
    """Draw a start near the posterior.

    Levels of a pilot are means, of which hyperparameters would be those of a smoother field: at
    hyperparameters drawn first, a few sweeps make draws of them.
    """
    x = reference.guess.at(rng.standard_normal(len(sticks.start)))
    var, level = sticks.effect(x), reference.potential.level
    for _ in range(_SETTLING):
        beta, level = draw_level(rng, sticks, x, draw_cells(rng, sticks, level, var))
        point = LevelDraw(x, sticks.mean(beta), level, log_likelihood(sticks, level, var))
        level = swing(rng, sticks, point, reference).level
    return TableDraw(x, beta, draw_cells(rng, sticks, level, var))


def pilot(sticks: TableSticks) -> Reference:
    """Find a reference by a short run, with the same random numbers each time."""
    taken, reaching, x = sticks.taken, sticks.reaching, sticks.start
    pooled = (taken.sum(axis=(1, 2)) + 0.5) / (reaching.sum(axis=(1, 2)) + 1.0)
    shares = (taken + pooled[:, None, None]) / (reaching + 1.0)
    psi = np.log(shares / (1.0 - shares))
    rng, draw = np.random.default_rng(0), TableDraw(x, sticks.trend.centre, psi)
    reference = _reference(sticks, draw, psi, psi)
    for sweeps in _ROUNDS:
        draw = draw._replace(x=_likely(sticks, reference.guess.mean, draw.psi))
        levels = np.zeros_like(psi)
        for _ in range(sweeps):
            draw, level = sweep(rng, sticks, draw, reference)
            levels += level
        reference = _reference(sticks, draw, level, levels / sweeps)
    return reference


def _reference(
    sticks: TableSticks, draw: TableDraw, level: FloatArray, centre: FloatArray
) -> Reference:
    """Build a reference: likely effects given u, hyperparameters of f with u integrated out.

    `level` is a draw of u: its scatter identifies the effects.
    """
    mean, x, root = sticks.mean(draw.beta), draw.x.copy(), np.zeros((len(draw.x), len(draw.x)))

    def search(log_density: Callable[[FloatArray], float], free: BoolArray, width: float) -> None:
        if free.any():
            mode = laplace(lambda values: log_density(_with(x, free, values)), x[free])
            x[free], root[np.ix_(free, free)] = mode.mean, width * mode.root

    def of_effects(new: FloatArray) -> float:
        fit = log_likelihood(sticks, level, sticks.effect(new)).sum()
        return float(fit) + sticks.log_prior(new)

    def of_smooth(new: FloatArray) -> float:
        return potential.gaussian(new, mean).log_evidence + sticks.log_prior(new)

    search(of_effects, sticks.of_effects, _WALK)
    potential = Potential(sticks, x, centre)
    search(of_smooth, ~sticks.of_effects, _WIDER)
    return Reference(Leaning(x, root, np.zeros(len(x))), potential)


def _likely(sticks: TableSticks, x: FloatArray, psi: FloatArray) -> FloatArray:
    """Set the variances to their most likely values given psi.

    A slice through a point that is too unlikely never finds its sides.
    """
    variances, collapsed = ~sticks.of_scales, collapse(sticks, x, psi)

    def log_density(values: FloatArray) -> float:
        new = _with(x, variances, values)
        return collapse_rotated(sticks, new, collapsed.psi, collapsed.features).log_density

    if not variances.any():
        return x
    return _with(x, variances, laplace(log_density, x[variances]).mean)


def _with(x: FloatArray, chosen: BoolArray | int, values: FloatArray) -> FloatArray:
    """Replace some hyperparameters in a copy."""
    out = x.copy()
    out[chosen] = values
    return out


def sweep(
    rng: Generator, sticks: TableSticks, draw: TableDraw, reference: Reference
) -> tuple[TableDraw, FloatArray]:
    """Make all steps of a sweep; return the u that psi was drawn around as well."""
    x, variances = draw.x, ~sticks.of_scales
    free = variances & ~sticks.of_effects
    if sticks.of_scales.any() and rng.random() < scale_rate(sticks):
        x = move_smooth(rng, sticks, draw, reference)
        variances, free = sticks.of_effects, ~sticks.of_effects
    x = scatter(rng, sticks, x, draw.psi, variances)
    beta, level = draw_level(rng, sticks, x, draw.psi)
    fit = log_likelihood(sticks, level, sticks.effect(x))
    point = move_effects(rng, sticks, LevelDraw(x, sticks.mean(beta), level, fit), reference)
    if free.any():
        point = move_together(rng, sticks, point, reference, free)
    point = swing(rng, sticks, point, reference)
    x, _, level, _ = move_effects(rng, sticks, point, reference)
    return TableDraw(x, beta, draw_cells(rng, sticks, level, sticks.effect(x))), level


def move_smooth(
    rng: Generator, sticks: TableSticks, draw: TableDraw, reference: Reference
) -> FloatArray:
    """Move the hyperparameters of f given psi."""
    x, free = draw.x, ~sticks.of_effects

    def log_density(values: FloatArray) -> float:
        return collapse(sticks, _with(x, free, values), draw.psi).log_density

    guess = _given_others(reference.guess, free, x)
    return _with(x, free, sample_hyperparameters(rng, log_density, x[free], guess))


def scatter(
    rng: Generator, sticks: TableSticks, x: FloatArray, psi: FloatArray, which: BoolArray
) -> FloatArray:
    """Move some variances given psi, one after the other."""
    collapsed = collapse(sticks, x, psi)
    for i in map(int, np.flatnonzero(which)):

        def log_density(
            value: FloatArray, active: BoolArray, x: FloatArray = x, i: int = i
        ) -> FloatArray:
            new = collapse_rotated(sticks, _with(x, i, value[0]), collapsed.psi, collapsed.features)
            return np.array([new.log_density])

        x = _with(x, i, slice_sample(rng, log_density, x[i : i + 1], _WIDTH)[0])
    return x


def _given_others(guess: Leaning, free: BoolArray, x: FloatArray) -> Leaning:
    """Condition some coordinates on the others, as if the guess were normal."""
    cov = guess.root @ guess.root.T
    weights = np.linalg.solve(cov[~free][:, ~free], cov[~free][:, free])
    mean = guess.mean[free] + (x - guess.mean)[~free] @ weights
    schur = cov[free][:, free] - cov[free][:, ~free] @ weights
    root = np.asarray(np.linalg.cholesky(schur), dtype=np.float64)
    return Leaning(mean, root, np.zeros(len(mean)))


def move_effects(
    rng: Generator, sticks: TableSticks, point: LevelDraw, reference: Reference
) -> LevelDraw:
    """Move the variances of effects given u."""
    if not sticks.of_effects.any():
        return point
    x, _, level, fit = point
    step = np.where(sticks.of_effects, np.linalg.norm(reference.guess.root, axis=1), 0.0)
    new = x + step * rng.standard_normal(len(x))
    new_fit = log_likelihood(sticks, level, sticks.effect(new))
    gain = new_fit.sum() - fit.sum() + sticks.log_prior(new) - sticks.log_prior(x)
    return point._replace(x=new, fit=new_fit) if gain > -rng.exponential() else point


def move_together(
    rng: Generator, sticks: TableSticks, point: LevelDraw, reference: Reference,
    free: BoolArray,
) -> LevelDraw:  # fmt: skip
    """Move some hyperparameters of f together with u."""
    x, mean, level, _ = point
    guess, potential = _given_others(reference.guess, free, x), reference.potential
    new_x = _with(x, free, guess.reflected(rng, x[free]))
    if not np.isfinite(sticks.log_prior(new_x)):
        return point
    old_gaussian, gaussian = potential.gaussian(x, mean), potential.gaussian(new_x, mean)
    new_level = gaussian.colour(old_gaussian.white(rng, level))
    new_fit = log_likelihood(sticks, new_level, sticks.effect(new_x))
    new = LevelDraw(new_x, mean, new_level, new_fit)

    def log_weight(at: LevelDraw, gaussian: LevelGaussian) -> float:
        correction = float(np.sum(at.fit - potential.log(at.level)))
        density = sticks.log_prior(at.x) + gaussian.log_evidence + correction
        return density - float(guess.log_density(at.x[free]))

    gain = log_weight(new, gaussian) - log_weight(point, old_gaussian)
    return new if gain > -rng.exponential() else point


def swing(rng: Generator, sticks: TableSticks, point: LevelDraw, reference: Reference) -> LevelDraw:
    """Move u of each stick along a Hamiltonian path."""
    x, mean, level, fit = point
    var, potential = sticks.effect(x), reference.potential
    gaussian = potential.gaussian(x, mean)
    z = gaussian.away(level)
    v = np.sqrt(gaussian.vars) * rng.standard_normal(z.shape)
    step = 0.5 * np.pi / _KICKS * rng.uniform(0.8, 1.2)
    cos, sin = np.cos(step), np.sin(step)
    new, gain = level, potential.log(level) - fit
    for i in range(_KICKS + 1):
        length = step * (0.5 if i in (0, _KICKS) else 1.0)
        g = gaussian.pull(slopes(sticks, new, var)[0] - potential.slope(new))
        kicked = gaussian.vars * g
        gain = gain - length * np.sum(g * (v + 0.5 * length * kicked), axis=(1, 2))
        v = v + length * kicked
        if i < _KICKS:
            z, v = z * cos + v * sin, v * cos - z * sin
            new = gaussian.level(z)
    new_fit = log_likelihood(sticks, new, var)
    accepted = gain + new_fit - potential.log(new) > -rng.exponential(size=len(gain))
    level = np.where(accepted[:, None, None], new, level)
    return point._replace(level=level, fit=np.where(accepted, new_fit, fit))
