"""Conjugate models whose sweeps take microseconds, for tests of what runs and stores chains."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    x: np.ndarray
    names: np.ndarray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class NormalState:
    mean: float
    var: float
    steps: int
    latent: np.ndarray


@dataclass(frozen=True)
class Normal:
    """x ~ Normal(mean, var), flat prior on mean, 1 / var on var: two Gibbs blocks."""

    scale: float = 1.0

    dims: ClassVar = {
        "mean": (),
        "var": (),
        "latent": ("item",),
        "moments": ("moment",),
        "steps": (),
    }
    default_keep: ClassVar = ("mean", "var", "moments")
    label_dims: ClassVar = frozenset()

    def coords(self, data):
        labels = {"moment": ["first", "second"]}
        return labels if data.names is None else labels | {"item": data.names}

    def init(self, rng, data):
        return NormalState(float(rng.normal()), 1.0, 0, np.zeros(len(data.x)))

    def step(self, rng, state, data):
        n = len(data.x)
        var = float(np.sum((data.x - state.mean) ** 2) / rng.chisquare(n))
        mean = float(rng.normal(data.x.mean(), np.sqrt(var / n)))
        return NormalState(mean, var, state.steps + 1, rng.normal(size=n))

    def moments(self, state, data):
        return np.array([state.mean, state.var + state.mean**2])

    def log_likelihood(self, state, data):
        n = len(data.x)
        return float(
            -0.5 * (n * np.log(state.var) + np.sum((data.x - state.mean) ** 2) / state.var)
        )


@dataclass(frozen=True, slots=True, eq=False)
class WalkState:
    position: np.ndarray


@dataclass(frozen=True)
class Walk:
    """An autoregression around `centre`, told apart by chain only through its generator."""

    rate: float = 0.0
    centre: tuple[float, ...] = (0.0, 0.0, 0.0)

    dims: ClassVar = {"position": ("place",)}
    default_keep: ClassVar = ("position",)
    label_dims: ClassVar = frozenset()

    def coords(self, data):
        return {}

    def init(self, rng, data):
        return WalkState(np.array(self.centre))

    def step(self, rng, state, data):
        noise = np.sqrt(1 - self.rate**2) * rng.normal(size=len(self.centre))
        centre = np.array(self.centre)
        return WalkState(centre + self.rate * (state.position - centre) + noise)

    def log_likelihood(self, state, data):
        return float(-0.5 * np.sum((state.position - np.array(self.centre)) ** 2))


@dataclass(frozen=True)
class Permuted(Walk):
    """Well-mixed chains whose labels are in another order in each."""

    centre: tuple[float, ...] = (-50.0, 0.0, 50.0)

    dims: ClassVar = {"position": ("label",), "overall": ()}
    default_keep: ClassVar = ("position", "overall")
    label_dims: ClassVar = frozenset({"label"})

    def init(self, rng, data):
        return WalkState(rng.permutation(self.centre))

    def step(self, rng, state, data):
        centre = np.round(state.position / 50.0) * 50.0
        return WalkState(centre + rng.normal(size=len(centre)))

    def overall(self, state, data):
        return state.position.sum()

    def log_likelihood(self, state, data):
        return float(-0.5 * np.sum((np.sort(state.position) - np.array(self.centre)) ** 2))


@dataclass(frozen=True)
class Faulty(Normal):
    """Fails in a certain sweep."""

    sweep: int = 0

    def step(self, rng, state, data):
        if state.steps == self.sweep:
            raise ArithmeticError("covariance is not positive definite")
        return Normal.step(self, rng, state, data)


def values(n=20, seed=0):
    x = np.random.default_rng(seed).normal(3.0, 2.0, size=n)
    return Values(x, np.array([f"item {i}" for i in range(n)]))


def same(first, second):
    """Are two posteriors equal in every bit?"""
    pairs = [(first[name], second[name]) for name in first]
    pairs += [(first.sample_stats[n], second.sample_stats[n]) for n in first.sample_stats]
    return list(first) == list(second) and all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs
    )


__all__ = [
    "Faulty",
    "Normal",
    "NormalState",
    "Permuted",
    "Values",
    "Walk",
    "replace",
    "same",
    "values",
]
