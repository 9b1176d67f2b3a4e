"""Models of fields: their data, and how psi at the sites becomes counts."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from pgmult.core.family import Family
from pgmult.core.parameters import Checked
from pgmult.core.typing import ArrayLike, FloatArray, Generator, Link, ObservedRows
from pgmult.core.validate import as_finite
from pgmult.fields.data import CountField, smoothed_shares
from pgmult.fields.family import FIELDS

START_COUNT = 0.5  # added to every count whose logarithms are taken
_MOST_LOG_ODDS = 1e4  # beyond, what the counts say is lost to rounding


def check_mean(mean: str | ArrayLike, unit: str, *words: str) -> None:
    """Refuse a mean of psi that is no such word, no number and none of each stick or category."""
    if isinstance(mean, str):
        if mean not in words:
            allowed = ", ".join(f'"{word}"' for word in words)
            raise ValueError(f"mean must be {allowed} or numbers, got {mean!r}")
        return
    level = as_finite(mean, "mean")
    if level.ndim > 1:
        raise ValueError(f"mean must be one number or one a {unit}, got shape {level.shape}")
    if (size := np.abs(level).max(initial=0.0)) > _MOST_LOG_ODDS:
        raise ValueError(
            f"mean must lie within -{_MOST_LOG_ODDS:g} and {_MOST_LOG_ODDS:g}, got one of size"
            f" {size:g} (it is in log odds: at 10 a probability is .99995)"
        )


def level_of(
    mean: str | ArrayLike, size: int, unit: str, link: Link, data: CountField
) -> FloatArray:
    """A mean of psi that is not learned, ``(size,)``; "empirical" takes that of all counts."""
    if isinstance(mean, str):
        return link.inverse(smoothed_shares(data.counts.sum(axis=0), START_COUNT))
    level = as_finite(mean, "mean")
    if level.ndim and len(level) != size:
        raise ValueError(f"mean must have one entry for each of {size} {unit}, got {len(level)}")
    return np.broadcast_to(level, size)


class _State(Protocol):
    @property
    def psi(self) -> FloatArray: ...


class FieldModel(Checked, ABC):
    """Counts given psi at the sites of a `CountField`, through the model's link."""

    __slots__ = ()
    family: ClassVar[Family] = FIELDS

    @abstractmethod
    def link(self, data: CountField) -> Link:
        """The link from psi to probabilities."""

    @abstractmethod
    def _check(self, data: CountField) -> None:
        """Refuse data that do not go with the model."""

    @abstractmethod
    def _labels(self, data: CountField) -> dict[str, Sequence[Any] | NDArray[Any]]:
        """Labels of the axes that models differ in."""

    def coords(self, data: CountField) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Labels of the axes, where there are any."""
        names = {"category": data.categories, "row": data.names, "new_row": data.new_names}
        labels = {axis: value for axis, value in names.items() if value is not None}
        return labels | self._labels(data)

    def as_data(self, data: object) -> CountField:
        """A field of counts as it is; anything else lacks the inputs."""
        if not isinstance(data, CountField):
            raise TypeError(
                f"Gaussian processes need the inputs of the counts, got {type(data).__name__}"
                " (make the data with as_field(inputs, counts))"
            )
        self._check(data)
        return data

    def simulate(self, rng: Generator, state: _State, data: CountField) -> CountField:
        """Counts of the same totals at the same inputs."""
        psi = data.row_psi(state.psi)
        return data.with_counts(self.link(data).simulate(rng, psi, data.totals))

    def log_likelihood(self, state: _State, data: CountField) -> float:
        """Log probability of the counts, without the multinomial coefficients."""
        psi = data.row_psi(state.psi)
        return float(self.link(data).log_likelihood(psi, data.counts).sum())

    def observed_rows(self, data: CountField) -> ObservedRows:
        """The rows, with their totals and inputs."""
        constants = {"totals": (("row",), data.totals), "inputs": (("row", "input"), data.inputs)}
        return ObservedRows(("row", "category"), data.counts, constants)

    def row_probs(self, draw: Mapping[str, Any], data: CountField) -> FloatArray:
        """Return probabilities of the rows from ``psi`` or ``pi``."""
        if "psi" in draw:
            return self.link(data).probs(data.row_psi(draw["psi"]))
        if "pi" in draw:
            return np.asarray(draw["pi"])
        raise ValueError("the posterior must have kept psi or pi (pass it in keep=)")

    def pi(self, state: _State, data: CountField) -> FloatArray:
        """Probabilities at the inputs, ``(num_rows, num_categories)``."""
        return self.link(data).probs(data.row_psi(state.psi))

    def pi_new(self, state: _State, data: CountField) -> FloatArray:
        """Probabilities at the new inputs, a joint draw, ``(num_new, num_categories)``."""
        return self.link(data).probs(state.psi[data.new_sites])
