"""Densities of scalar chains, from their definition."""

import math

import numpy as np

from pgmult.topics.compiled.chains import Counts


def log_normalizer(chains):
    """Log of the integral of the prior times the potential, ``(num_rows,)``: without counts."""
    none = np.zeros(chains.shape)
    return chains.log_place(none, Counts(none, none), np.ones(len(none), dtype=bool))


def log_density(chains, x):
    """Normalised log density of each row at x."""
    deviation = x - chains.centre
    innovation = deviation[:, 1:] - chains.persistence * deviation[:, :-1]
    total = _log_normal(deviation[:, :1], chains.initial_var)
    total += _log_normal(innovation, chains.innovation_var)
    if chains.potential is not None:
        value = x * (chains.potential.h - 0.5 * chains.potential.J * x)
        total += value.sum(axis=(1, 2)) - log_normalizer(chains)
    return total


def _log_normal(x, var):
    squares = np.sum(x * x, axis=(1, 2))
    return -0.5 * (squares / var + math.prod(x.shape[1:]) * np.log(2.0 * math.pi * var))
