"""Moves of the weights of logistic regressions, one set for each group of rows.

*Pólya-gamma Gibbs.* Given omega_n ~ PG(b_n, x_n' w_g) the weights are Gaussian (Polson, Scott and
Windle 2013), with precision P + X' diag(omega) X and precision times mean P m + X' (successes -
trials / 2). It needs no tuning and crawls where successes are rare, or failures: omega then ties
the weights to where they are.

*Slices around a Gaussian* (``wang2013/around.py``). The Gaussian nearest to each group's
posterior is found from the data once; a Student-t of its shape is the base of elliptical
slices. Rare or not is all the same to them, and a move costs less than a Gibbs step; but where
columns are many and data weak, the posterior is far from any Gaussian and moves are short.

How far is said by sd, the standard deviation, under the Gaussian, of the log posterior less the
Gaussian's log density, from draws that are always the same:

==============================  =======================
sd                              a sweep is
==============================  =======================
up to 0.2                       a reflected step
up to 0.5                       2 slices
up to 2, or 10 columns at most  4 slices
more                            a Gibbs step, 2 slices
==============================  =======================

A *reflected step* goes to a fixed angle on an ellipse of the Gaussian, and is nearly always
accepted so near to it: means are worth twice as many independent draws, variances four fifths.
Every eighth is a slice, for the tails.

Groups of so few rows that either costs next to nothing, and so balanced that omega says little more
than the likelihood (the curvature of the rows is above 0.6 of E omega), have a Gibbs step alone:
overrelaxed, its draws are better than independent.

Everything that is found beforehand depends on the data and the model alone, so every sweep leaves
the posterior as it is. Groups run on all the threads of the enclosing chain.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import expit

from examples.papers.regressions.compiled.slices import (
    REFLECTED,
    Moves,
    find_bases,
    place_bases,
    slice_weights,
)
from examples.papers.regressions.compiled.weights import Prior, sample_weights
from examples.papers.regressions.data import LabelledRows
from pgmult import polya_gamma
from pgmult.compiled.rows import over_rows
from pgmult.core.typing import BoolArray, FloatArray, IntArray
from pgmult.core.validate import new_key

_FEW = 4e5  # operations of a Gibbs step: some 20 microseconds
_DRAWS = 20


@dataclass(frozen=True, slots=True, eq=False)
class Bases:
    """What is found from data and model before the first sweep.

    Attributes
    ----------
    gram, pull : arrays, ``(num_groups, n, n)`` and ``(num_groups, n)``
        Potentials that stand in for the rows of each group, of n weights.
    mean, root : arrays, ``(num_groups, n)`` and ``(num_groups, n, n)``
        The prior times the potentials: means and lower roots of precisions.
    slices : int64 array, ``(num_groups,)``, or None
        A sweep; None where no group has any.
    gibbs : bool array, ``(num_groups,)``, or None
        Which groups have a Gibbs step; None where none has.
    """

    gram: FloatArray
    pull: FloatArray
    mean: FloatArray
    root: FloatArray
    slices: IntArray | None
    gibbs: BoolArray | None

    def place(self, mean: FloatArray, precision: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Means and roots with another prior."""
        base, root = np.empty_like(self.mean), np.zeros_like(self.root)
        _check(
            over_rows(
                place_bases, len(base), self.gram, self.pull, _prior(mean, precision), base, root,
                grain=1,
            )
        )  # fmt: skip
        return base, root


def find_potentials(
    data: LabelledRows, mean: FloatArray, precision: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """``gram`` and ``pull`` of the Gaussian nearest to each group's posterior."""
    size = data.num_covariates
    gram, pull = np.zeros((data.num_groups, size, size)), np.empty((data.num_groups, size))
    _check(
        over_rows(
            find_bases, data.num_groups, data.record(), _prior(mean, precision), gram, pull, grain=1
        )
    )
    return gram, pull


def find_bases_of(data: LabelledRows, mean: FloatArray, precision: FloatArray) -> Bases:
    """The bases of a model whose weights have about this prior.

    Anything that data and model say may be the prior: it decides how good the bases are, not what
    the sweeps leave invariant.
    """
    gram, pull = find_potentials(data, mean, precision)
    bases = Bases(gram, pull, np.empty_like(pull), np.empty_like(gram), None, None)
    base, root = bases.place(mean, precision)
    easy = _easy(data, base)
    sd = np.zeros(len(base))
    if not easy.all():
        sd = sd_of_correction(
            partial(_log_likelihoods, data), base, np.swapaxes(np.linalg.inv(root), 1, 2),
            mean, precision, _DRAWS,
        )  # fmt: skip
    gibbs = easy | ((sd > 2.0) & (data.num_covariates > 10))
    slices = np.full(len(base), 4)
    slices[gibbs | (sd <= 0.5)] = 2
    slices[~gibbs & (sd <= 0.2)] = REFLECTED
    slices[easy] = 0
    return Bases(
        gram, pull, base, root, slices if slices.any() else None,
        gibbs if gibbs.any() else None,
    )  # fmt: skip


def _log_likelihoods(data: LabelledRows, weights: FloatArray) -> FloatArray:
    """Of each group."""
    by_row = np.repeat(weights, np.diff(data.offsets), axis=0)
    psi = data.known + np.einsum("nd,nd->n", data.covariates, by_row)
    value = data.successes * psi - data.trials * np.logaddexp(0.0, psi)
    total = np.concatenate([[0.0], np.cumsum(value)])
    return np.diff(total[data.offsets])


def _easy(data: LabelledRows, base: FloatArray) -> BoolArray:
    """Groups that a Gibbs step serves best."""
    lengths = np.diff(data.offsets)
    out = lengths * (900.0 + data.num_covariates**2) < _FEW
    if out.any():
        by_row = np.repeat(base, lengths, axis=0)
        psi = data.known + np.einsum("nd,nd->n", data.covariates, by_row)
        both = expit(psi) * expit(-psi) - 0.6 * polya_gamma.mean(1, psi)
        sums = np.concatenate([[0.0], np.cumsum(data.trials * both)])
        out &= sums[data.offsets[1:]] >= sums[data.offsets[:-1]]
    return np.asarray(out)


def move_weights(
    rng: np.random.Generator,
    weights: FloatArray,
    mean: FloatArray,
    precision: FloatArray,
    data: LabelledRows,
    bases: Bases,
    *,
    learned: bool = False,
) -> FloatArray:
    """One sweep of every group's weights, on its own stream.

    Parameters
    ----------
    rng : numpy.random.Generator
    weights : array, ``(num_groups, num_covariates)``
        Where they are. Not changed.
    mean, precision : arrays, ``(num_covariates,)`` and ``(num_covariates, num_covariates)``
        Of their Gaussian prior.
    data : LabelledRows
    bases : Bases
    learned : bool
        Whether the prior is another than the one that the bases were found with.

    Raises
    ------
    ValueError
        If a group's posterior precision is not positive definite in floating point.
    """
    if bases.gibbs is not None:
        drawn = np.empty_like(weights)
        _check(
            over_rows(
                sample_weights, data.num_groups, data.record(), _prior(mean, precision),
                new_key(rng), weights, bases.gibbs, drawn, grain=1,
            )
        )  # fmt: skip
        weights = drawn
    if bases.slices is None:
        return weights
    base, root = bases.place(mean, precision) if learned else (bases.mean, bases.root)
    out = np.empty_like(weights)
    _check(
        over_rows(
            slice_weights, data.num_groups, data.record(), _prior(mean, precision),
            Moves(base, root, bases.slices), new_key(rng), weights, out, grain=1,
        )
    )  # fmt: skip
    return out


def _prior(mean: FloatArray, precision: FloatArray) -> Prior:
    return Prior(np.atleast_2d(mean), precision)


def _check(statuses: list[int]) -> None:
    failed = [status - 1 for status in statuses if status]
    if failed:
        raise ValueError(
            f"group {min(failed)} has no Gaussian posterior: its precision is not positive definite"
            " or not finite (are covariates of very different scales?)"
        )


def sd_of_correction(
    log_likelihood: Callable[[FloatArray], FloatArray],
    mean: FloatArray,
    root: FloatArray,
    prior_mean: FloatArray,
    prior_precision: FloatArray,
    num_draws: int = 100,
) -> FloatArray:
    """How far posteriors are from their Gaussian approximations: 0 where they are the same.

    The standard deviation, under the Gaussian, of the log posterior less the Gaussian's log
    density, from draws that are always the same.

    Parameters
    ----------
    log_likelihood : callable
        Of weights ``(num_vectors, num_weights)``: the sum over rows of each vector, or of all.
    mean : array, ``(num_vectors, num_weights)``
    root : array, ``(num_vectors, num_weights, num_weights)``
        Weights are mean + root z, z standard normal.
    prior_mean, prior_precision : arrays
    num_draws : int

    Returns
    -------
    array
        As `log_likelihood` returns.
    """
    noise = np.random.default_rng(0).standard_normal((*mean.shape, num_draws))
    gaps = []
    for z in np.moveaxis(noise, 2, 0):
        weights = mean + np.einsum("gij,gj->gi", root, z)
        gap = weights - prior_mean
        squares = np.einsum("gi,ij,gj->g", gap, prior_precision, gap) - (z**2).sum(axis=1)
        told = log_likelihood(weights)
        gaps.append(told - 0.5 * squares.reshape(len(told), -1).sum(axis=1))
    return np.asarray(np.std(gaps, axis=0))
