"""Nonconjugate targets that several tests approximate, and an approximation in no time."""

import math

import numpy as np

from pgmult.latent.approximation import Sites
from pgmult.latent.hyperparameters import Leaning


class PoissonLogNormal:
    """Rows of counts ~ Poisson(exp theta), theta ~ N(mean, cov): concave, correlated."""

    def __init__(self, counts, mean, cov):
        self.counts, self.mean = np.asarray(counts, dtype=float), np.asarray(mean, dtype=float)
        self.precision = np.linalg.inv(cov)

    def value(self, theta, rows):
        deviation = theta - self.mean
        quadratic = np.einsum("ri,ij,rj->r", deviation, self.precision, deviation)
        return (self.counts[rows] * theta - np.exp(theta)).sum(axis=1) - 0.5 * quadratic

    def gradient(self, theta, rows):
        return self.counts[rows] - np.exp(theta) - (theta - self.mean) @ self.precision

    def hessian(self, theta, rows):
        return -np.exp(theta)[:, :, None] * np.eye(theta.shape[1]) - self.precision


class TwoHumps:
    """Log of a mixture of two normal densities, a row each: two modes and a saddle between them."""

    def __init__(self, centre=2.0):
        self.centre = centre

    def value(self, theta, rows):
        x = theta[:, 0]
        return np.logaddexp(-0.5 * (x - self.centre) ** 2, -0.5 * (x + self.centre) ** 2)

    def gradient(self, theta, rows):
        return self.centre * np.tanh(self.centre * theta) - theta

    def hessian(self, theta, rows):
        return (self.centre**2 / np.cosh(self.centre * theta) ** 2 - 1.0)[:, :, None]


def derivative(function, point, step=1e-5):
    """Central differences, the derivative's axis last."""
    columns = []
    for axis in range(point.shape[1]):
        shift = np.zeros_like(point)
        shift[:, axis] = step
        columns.append((function(point + shift) - function(point - shift)) / (2.0 * step))
    return np.stack(columns, axis=-1)


def rough(family, rows, sites=None, points=0):
    """Sites at smoothed predictors, and a wide guess around the start."""
    x = family.start()
    sites = sites or Sites(rows)
    J, h = sites.first(family)
    guess = Leaning(x, 0.7 * np.eye(len(x)), np.zeros(len(x)))
    return sites.kind(J, h, family.absorb(J, h), guess, math.nan)
