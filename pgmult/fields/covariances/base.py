"""Covariance functions: what all have in common, and their sums and products."""

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property, reduce
from typing import Any, ClassVar, Self

import numpy as np

from pgmult.core.arguments import as_kind, as_list, as_mapping, as_strings
from pgmult.core.parameters import Checked, Positive
from pgmult.core.typing import ArrayLike, FloatArray, Generator
from pgmult.core.validate import as_finite, as_positive_int
from pgmult.fields.inputs import as_inputs
from pgmult.priors.distributions import LogNormal

_FAR = 300.0  # log parameters of proposals further from 0 are taken as this, with density 0


class Covariance(Checked, ABC):
    """A positive semi-definite function of two inputs, with positive parameters.

    It is a family, or a sum or product of others; its parameters are those of its `leaves`.
    """

    __slots__ = ()

    # ---------------------------------------------------------------- as a function of inputs

    def cov(self, X: ArrayLike, Y: ArrayLike | None = None) -> FloatArray:
        """Covariances of the rows of X with those of Y (by default X), ``(n, m)``."""
        X = as_inputs(X)
        return self._cov(X, X if Y is None else as_inputs(Y))

    def diagonal(self, X: ArrayLike) -> FloatArray:
        """Variances at the rows of X, ``(n,)``."""
        return self._diagonal(as_inputs(X))

    @abstractmethod
    def _cov(self, X: FloatArray, Y: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _diagonal(self, X: FloatArray) -> FloatArray: ...

    # ---------------------------------------------------------------- as a function of parameters

    @abstractmethod
    def leaves(self) -> "list[CovarianceFamily]":
        """Return the families that it combines, from left to right."""

    @property
    def log_params(self) -> FloatArray:
        """Logarithms of the free parameters, ``(num_params,)``."""
        return np.log([getattr(leaf, name) for leaf in self.leaves() for name in leaf._free])

    @property
    def param_names(self) -> tuple[str, ...]:
        """Names such as ``Matern.length_scale``; a second Matern is ``Matern_2``."""
        names: list[str] = []
        uses: Counter[str] = Counter()
        for leaf in self.leaves():
            kind = type(leaf).__name__
            uses[kind] += 1
            label = kind if uses[kind] == 1 else f"{kind}_{uses[kind]}"
            names += [f"{label}.{name}" for name in leaf.param_names]
        return tuple(names)

    @cached_property
    def num_params(self) -> int:
        """Number of free parameters."""
        return len(self.log_params)

    def with_log_params(self, log_params: ArrayLike) -> Self:
        """The same function with other values of the free parameters, ``(num_params,)``."""
        theta = as_finite(log_params, "log_params")
        if theta.shape != (self.num_params,):
            expected = f"shape ({self.num_params},), for {', '.join(self.param_names) or 'nothing'}"
            raise ValueError(f"log_params must have {expected}, got {theta.shape}")
        return self._moved_to(theta)

    @abstractmethod
    def _moved_to(self, log_params: FloatArray) -> Self:
        """`with_log_params` of an array that is one of them."""

    def _with(self, **values: Any) -> Self:
        """A copy with other fields, all of them checked already."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, **values)
        return other

    def log_prior(self) -> float:
        """Log prior density of the free log parameters."""
        return sum(leaf.log_prior() for leaf in self.leaves())

    def sample_log_params(self, rng: Generator) -> FloatArray:
        """Free log parameters drawn from their priors, ``(num_params,)``."""
        priors = [prior for leaf in self.leaves() for prior in leaf._free.values()]
        return np.array([prior.sample(rng, ()) for prior in priors])

    # ---------------------------------------------------------------- combinations

    def __add__(self, other: "Covariance") -> "Covariance":
        if not isinstance(other, Covariance):
            return NotImplemented
        return Sum(_parts(self, Sum) + _parts(other, Sum))

    def __mul__(self, other: "Covariance | float") -> "Covariance":
        if isinstance(other, bool) or not isinstance(other, Covariance | float | int):
            return NotImplemented
        if not isinstance(other, Covariance):
            return Product((Constant(other), *_parts(self, Product)))
        return Product(_parts(self, Product) + _parts(other, Product))

    def __rmul__(self, other: float) -> "Covariance":
        return self * other


def _parts(covariance: Covariance, kind: "type[_Combination]") -> tuple[Covariance, ...]:
    return covariance.parts if isinstance(covariance, kind) else (covariance,)


@dataclass(frozen=True, eq=False, kw_only=True)
class CovarianceFamily(Covariance):
    """A covariance that is no combination: a frozen dataclass with fields for its parameters.

    Its parameters are the fields that are `Positive`.
    """

    priors: Mapping[str, LogNormal] | None = field(default=None, repr=False)
    fixed: Collection[str] = field(default=(), repr=False)

    @property
    def _parameters(self) -> list[str]:
        return [parameter.name for parameter in fields(self) if parameter.type == Positive]

    def _complete(self) -> None:
        priors = {
            name: as_kind(prior, f"priors[{name!r}]", LogNormal)
            for name, prior in as_mapping(self.priors, "priors").items()
        }
        fixed = [self.fixed] if isinstance(self.fixed, str) else as_strings(self.fixed, "fixed")
        for argument, names in (("priors", priors), ("fixed", fixed)):
            for name in names:
                if name not in self._parameters:
                    known = f"{type(self).__name__} has, {', '.join(self._parameters)}"
                    raise ValueError(f"{argument} must be of parameters that {known}, got {name!r}")
        limits = f"from {math.exp(-_FAR):.0e} to {math.exp(_FAR):.0e}"
        for name in self._parameters:
            if abs(math.log(getattr(self, name))) > _FAR:
                raise ValueError(f"{name} must be {limits}, got {getattr(self, name)}")
        usual = {name: LogNormal(getattr(self, name)) for name in self._parameters}
        self._set(priors=usual | priors, fixed=fixed)

    @property
    @abstractmethod
    def active(self) -> tuple[int, ...] | None:
        """The columns it looks at; None for all."""

    def _select(self, X: FloatArray) -> FloatArray:
        """The active columns of X."""
        if self.active is None:
            return X
        if max(self.active) >= X.shape[1]:
            width, name = X.shape[1], f"{type(self).__name__} acts on column {max(self.active)}"
            raise ValueError(f"{name}, but the inputs have {width} columns (numbered from 0)")
        return X[:, list(self.active)]

    def _diagonal(self, X: FloatArray) -> FloatArray:
        return np.ones(len(self._select(X)))

    def leaves(self) -> "list[CovarianceFamily]":
        """Itself."""
        return [self]

    @cached_property
    def _free(self) -> dict[str, LogNormal]:
        """The parameters that are free, with their priors."""
        return {name: p for name, p in (self.priors or {}).items() if name not in self.fixed}

    @property
    def param_names(self) -> tuple[str, ...]:
        """Names of the free parameters."""
        return tuple(self._free)

    def _moved_to(self, log_params: FloatArray) -> Self:
        values = np.exp(np.clip(log_params, -_FAR, _FAR))
        return self._with(**dict(zip(self._free, values.tolist(), strict=True)))

    def log_prior(self) -> float:
        """Log prior density of the free log parameters."""
        if (np.abs(self.log_params) >= _FAR * (1.0 - 1e-12)).any():
            return -math.inf
        values = zip(self._free.values(), self.log_params, strict=True)
        return float(sum(prior.log_density(value) for prior, value in values))


@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnFamily(CovarianceFamily):
    """A family that acts on the columns named by ``active``, distinct numbers from 0, or on all."""

    active: Collection[int] | None = None  # type: ignore[assignment]

    def _complete(self) -> None:
        if self.active is not None:
            listed = as_list(self.active, "active", "columns")
            columns = tuple(as_positive_int(column, "active", minimum=0) for column in listed)
            if not columns or len(set(columns)) < len(columns):
                raise ValueError(f"active must list distinct columns from 0, got {self.active!r}")
            self._set(active=columns)

    def _apart(self, X: FloatArray, Y: FloatArray) -> Iterator[FloatArray]:
        """Differences of the rows of X and Y in each active column, ``(n, m)``."""
        for x, y in zip(self._select(X).T, self._select(Y).T, strict=True):
            yield x[:, None] - y


@dataclass(frozen=True, eq=False)
class _Combination(Covariance):
    """A combination of two covariances or more."""

    parts: tuple[Covariance, ...]
    _joined: ClassVar[np.ufunc]

    def _complete(self) -> None:
        parts = tuple(as_covariance(term, "a part") for term in self.parts)
        if len(parts) < 2:
            raise ValueError(f"{type(self).__name__} needs two parts or more, got {len(parts)}")
        self._set(parts=parts)

    def _cov(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        return np.asarray(reduce(self._joined, (term._cov(X, Y) for term in self.parts)))

    def _diagonal(self, X: FloatArray) -> FloatArray:
        return np.asarray(reduce(self._joined, (term._diagonal(X) for term in self.parts)))

    def leaves(self) -> list[CovarianceFamily]:
        """Return the families that it combines, from left to right."""
        return [leaf for term in self.parts for leaf in term.leaves()]

    def _moved_to(self, log_params: FloatArray) -> Self:
        ends = np.cumsum([term.num_params for term in self.parts])
        pieces = zip(self.parts, np.split(log_params, ends[:-1]), strict=True)
        return self._with(parts=tuple(term._moved_to(values) for term, values in pieces))


class Sum(_Combination):
    """The covariance of a sum of independent functions: ``a + b``."""

    _joined = np.add


class Product(_Combination):
    """The product of covariances: ``a * b``; a number is a variance."""

    _joined = np.multiply


@dataclass(frozen=True, eq=False)
class Constant(CovarianceFamily):
    """Covariance of constant functions, and the variance in front of another covariance."""

    var: Positive = 1.0

    @property
    def active(self) -> tuple[int, ...]:
        """None: the inputs do not matter."""
        return ()

    def _cov(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        return np.full((len(X), len(Y)), self.var)

    def _diagonal(self, X: FloatArray) -> FloatArray:
        return np.full(len(X), self.var)


# --------------------------------------------------------------------------- columns and factors


def columns_of(covariance: Covariance, num_columns: int) -> frozenset[int]:
    """The columns of inputs, of `num_columns`, that a covariance looks at."""
    active = (leaf.active for leaf in covariance.leaves())
    return frozenset().union(*(range(num_columns) if a is None else a for a in active))


def as_covariance(value: object, name: str = "covariance") -> Covariance:
    """A covariance as it is; anything else is refused."""
    return as_kind(value, name, Covariance, "combine those of pgmult.fields.covariances")
