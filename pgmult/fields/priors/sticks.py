r"""Sticks that share hyperparameters: fields around means that are linear in few features::

    beta_k        ~ N(centre_k, mean_var I),                     k = 1..K-1
    psi_k(s)      = features(s)' beta_k + g_k(s),    g_k ~ GP(0, covariance_theta)

`Sticks` computes them for any field, as one of the families that `pgmult.latent` moves;
`TableSticks` on a table of inputs, in the bases where the covariance is diagonal. Hyperparameters x
are logarithms, ``(num_hyperparameters,)``, and have no entry where they are fixed.
"""

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from pgmult.core.potentials import DiagonalPotential
from pgmult.core.typing import BoolArray, FloatArray, Generator
from pgmult.fields.covariances import Covariance
from pgmult.fields.priors.field import FieldGaussian, Trend
from pgmult.fields.priors.separable import CellTable, Factors, TableGaussian
from pgmult.fields.priors.structures import Structure, make_field

_REMEMBERED = 8  # posteriors given a potential, for a few chains: where each is and may go
_DIGITS = 12  # log(exp(x)) has the same
_LEAST_VAR = 1e-8


class StickGroup(NamedTuple):
    """Sticks that share hyperparameters, at some sites.

    Attributes
    ----------
    columns : slice
        The sticks, of all in the data's order.
    covariance : Covariance
        Of psi around its mean.
    start : array, ``(num_hyperparameters,)``
    trend : Trend
    counts : array, ``(2, num_sites, num_sticks)``
        How much each stick takes and how much reaches it.
    """

    columns: slice
    covariance: Covariance
    start: FloatArray
    trend: Trend
    counts: FloatArray


@lru_cache(maxsize=256)
def covariance_at(covariance: Covariance, x: bytes) -> tuple[Covariance, float]:
    """A covariance at log hyperparameters, and their log prior density; itself if there are none.

    It is one object for one value: fields keep what they computed for an object.
    """
    if not x:
        return covariance, 0.0
    moved = covariance.with_log_params(np.frombuffer(x))
    return moved, moved.log_prior()


class Sticks:
    """Sticks at any sites, as one of the families that `pgmult.latent` moves.

    Weights w are psi at all sites, and below them the coefficients beta, ``(num_sites +
    num_features, num_sticks)``. What was computed at the latest hyperparameters is remembered, as
    moves ask for it again.

    Parameters
    ----------
    structure : str
    sites : array, ``(num_sites, num_inputs)``
    group : StickGroup

    Attributes
    ----------
    counted : int array
        Sites with counts.
    """

    def __init__(self, structure: Structure, sites: FloatArray, group: StickGroup):
        self._structure, self._sites, self._group = structure, sites, group
        self.counted = np.flatnonzero(group.counts[1].any(axis=1))
        self._gaussian_at = lru_cache(maxsize=_REMEMBERED)(self._find_gaussian)

    @property
    def shape(self) -> tuple[int, int]:
        """Sites with counts, and sticks."""
        return len(self.counted), self._group.counts.shape[2]

    def start(self) -> FloatArray:
        """Return the hyperparameters from which a search begins."""
        return self._group.start

    def slopes(self, x: FloatArray, absorbed: DiagonalPotential) -> None:
        """Return None: slopes in hyperparameters are not computed."""

    def is_sd(self) -> BoolArray:
        """Return False for each hyperparameter: they are logarithms."""
        return np.zeros(len(self._group.start), dtype=np.bool_)

    def log_prior(self, x: FloatArray) -> float:
        """Return the log density of hyperparameters."""
        return covariance_at(self._group.covariance, _key(x))[1]

    def absorb(self, J: FloatArray, h: FloatArray) -> DiagonalPotential:
        """Extend a potential on the sites with counts to all sites."""
        everywhere = np.zeros(self._group.counts.shape)
        everywhere[:, self.counted] = J, h
        return DiagonalPotential(*everywhere)

    def at(self, x: FloatArray, absorbed: DiagonalPotential) -> FieldGaussian:
        """Return the posterior of w at hyperparameters, rounded to the digits of a state."""
        return self._gaussian_at(_key(x), absorbed)

    def predictor(self, w: FloatArray) -> FloatArray:
        """Return psi at the sites with counts."""
        return w[self.counted]

    def pull(self, g: FloatArray) -> FloatArray:
        """Return the gradient with respect to w of one with respect to `predictor`."""
        out = np.zeros((len(self._sites) + len(self._group.trend.centre), g.shape[1]))
        out[self.counted] = g
        return out

    def variances(self, gaussian: FieldGaussian, rng: Generator) -> FloatArray:
        """Return variances of the predictors."""
        return np.maximum(gaussian.variances[self.counted], _LEAST_VAR)

    def _find_gaussian(self, x: bytes, absorbed: DiagonalPotential) -> FieldGaussian:
        covariance, _ = covariance_at(self._group.covariance, x)
        field = make_field(self._structure, covariance, self._sites)
        return field.condition(absorbed, self._group.trend)


def _key(x: FloatArray) -> bytes:
    """Log hyperparameters to the digits that their exponentials keep."""
    return np.round(x, _DIGITS).tobytes()


class TableDraw(NamedTuple):
    """One point of a chain, of sticks on a table.

    Attributes
    ----------
    x : array, ``(num_hyperparameters,)``
    beta : array, ``(num_features, num_sticks)``
    psi : array, ``(num_sticks, num_rows, num_columns)``
    """

    x: FloatArray
    beta: FloatArray
    psi: FloatArray


class TableSticks:
    """Sticks on a table of inputs, with their counts.

    Parameters
    ----------
    table : CellTable
    group : StickGroup
        At the sites of the table.

    Attributes
    ----------
    features, taken, reaching : arrays, ``(n, num_rows, num_columns)``
        Those of the group, by cells.
    """

    def __init__(self, table: CellTable, group: StickGroup):
        self.table = table
        self.columns, self._covariance, self.start, self.trend, counts = group
        self.features = table.arranged(self.trend.features)
        self._level = table.arranged(self.trend.level)
        self.taken, self.reaching = map(table.arranged, counts)
        self._at = lru_cache(maxsize=_REMEMBERED)(self._find)
        self.bases = lru_cache(maxsize=_REMEMBERED)(self._find_bases)
        points = self.start, *(self.start + np.eye(len(self.start)))
        old, *new = (self._factors(covariance_at(self._covariance, x.tobytes())[0]) for x in points)
        self.of_effects = np.array([each.effect > 1.5 * old.effect for each in new], dtype=bool)
        more = np.array([each.variance > 1.5 * old.variance for each in new], dtype=bool)
        self.of_scales = ~self.of_effects & ~more  # neither a variance of effects nor the product's

    def gaussian(self, x: FloatArray) -> TableGaussian:
        """Return the prior of psi around its mean."""
        return self._at(x.tobytes())[0]

    def log_prior(self, x: FloatArray) -> float:
        """Return the log density of hyperparameters."""
        return self._at(x.tobytes())[1]

    def effect(self, x: FloatArray) -> float:
        """Return the variance of the effects of cells."""
        return self.gaussian(x).factors.effect

    def mean(self, beta: FloatArray) -> FloatArray:
        """Return the mean of psi, ``(num_sticks, num_rows, num_columns)``."""
        return np.asarray(self._level + np.einsum("fk,fij->kij", beta, self.features))

    def sample(self, rng: Generator, x: FloatArray, beta: FloatArray) -> TableDraw:
        """Draw psi from its prior given hyperparameters and coefficients."""
        gaussian = self.gaussian(x)
        noise = np.sqrt(gaussian.vars) * rng.standard_normal(self.taken.shape)
        return TableDraw(x, beta, self.mean(beta) + gaussian.back(noise))

    def rotated(self, draw: TableDraw) -> FloatArray:
        """Psi less its mean, along the eigenvectors."""
        return self.gaussian(draw.x).rotate(draw.psi - self.mean(draw.beta))

    def others(self, draw: TableDraw) -> tuple[FloatArray, FloatArray]:
        """Means of psi in each cell given psi in all others, and variances that sticks share."""
        away, var = self.gaussian(draw.x).others(self.rotated(draw))
        return away + self.mean(draw.beta), var[None]

    def scales(self, x: FloatArray) -> bytes:
        """Return the key of `bases`: the hyperparameters that eigenvectors depend on."""
        return np.where(self.of_scales, x, self.start).tobytes()

    def _find(self, x: bytes) -> tuple[TableGaussian, float]:
        covariance, log_prior = covariance_at(self._covariance, x)
        bases = self.bases(self.scales(np.frombuffer(x)))
        return replace(bases, factors=self._factors(covariance)), log_prior

    def _find_bases(self, x: bytes) -> TableGaussian:
        return TableGaussian.of(self.table, covariance_at(self._covariance, x)[0])

    def _factors(self, covariance: Covariance) -> Factors:
        return Factors.of(covariance, self.table.sites.shape[1])
