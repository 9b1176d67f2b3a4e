"""What every covariance function has, and its sums and products."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import product
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from pgmult.core.arguments import as_list, as_mapping, as_strings, brief
from pgmult.core.parameters import Checked, real
from pgmult.core.typing import ArrayLike, FloatArray
from pgmult.core.validate import as_finite, as_positive, as_positive_int
from pgmult.fields.inputs import as_inputs
from pgmult.priors.laws import LogNormal


class Covariance(Checked, ABC):
    """A positive semi-definite function of two inputs, with positive parameters."""

    __slots__ = ()

    # ---------------------------------------------------------------- as a function of inputs

    def cov(self, X: ArrayLike, Y: ArrayLike | None = None) -> FloatArray:
        """Covariances of the rows of X with those of Y (by default X), ``(n, m)``."""
        X = as_inputs(X)
        return self._cov(X, X if Y is None else as_inputs(Y))

    def diagonal(self, X: ArrayLike) -> FloatArray:
        """Variances at the rows of X, ``(n,)``."""
        return self._diagonal(as_inputs(X))

    @property
    @abstractmethod
    def active(self) -> tuple[int, ...] | None:
        """The columns it looks at; None for all."""

    @abstractmethod
    def _cov(self, X: FloatArray, Y: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _diagonal(self, X: FloatArray) -> FloatArray: ...

    # ---------------------------------------------------------------- as a function of parameters

    @property
    @abstractmethod
    def log_params(self) -> FloatArray:
        """Logarithms of the free parameters, ``(num_params,)``."""

    @property
    @abstractmethod
    def param_names(self) -> tuple[str, ...]:
        """Names of the free parameters."""

    @property
    def num_params(self) -> int:
        """Number of free parameters."""
        return len(self.log_params)

    def with_log_params(self, log_params: ArrayLike) -> Self:
        """The same function with other values of the free parameters, ``(num_params,)``."""
        theta = as_finite(log_params, "log_params")
        if theta.shape != (self.num_params,):
            raise ValueError(
                f"log_params must have shape ({self.num_params},), got {theta.shape}"
                f" (the free parameters are {', '.join(self.param_names) or 'none'})"
            )
        return self._moved_to(theta)

    @abstractmethod
    def _moved_to(self, log_params: FloatArray) -> Self:
        """`with_log_params` of an array that is one of them."""

    def _with(self, **values: Any) -> Self:
        """A copy with other fields, all of them checked already."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, **values)
        return other

    @abstractmethod
    def log_prior(self) -> float:
        """Log prior density of the free log parameters."""

    @abstractmethod
    def sample_log_params(self, rng: np.random.Generator) -> FloatArray:
        """Free log parameters drawn from their priors, ``(num_params,)``."""

    @abstractmethod
    def fix(self) -> "Covariance":
        """The same function with no free parameter."""

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
class Family(Covariance):
    """A covariance that is no combination: a frozen dataclass with fields for its parameters.

    A parameter is a float, or an array with one entry per active column. The subclass names its
    parameters in `_parameters`.
    """

    priors: Mapping[str, LogNormal] | None = field(default=None, repr=False)
    fixed: Collection[str] = field(default=(), repr=False)
    _parameters: ClassVar[tuple[str, ...]]

    def _complete(self) -> None:
        kind = type(self).__name__
        values: dict[str, Any] = {}
        priors = dict(as_mapping(self.priors, "priors"))
        for name, prior in priors.items():
            if not isinstance(prior, LogNormal):
                raise TypeError(f"priors must be LogNormal, got {brief(prior)} of {name!r}")
        fixed = [self.fixed] if isinstance(self.fixed, str) else as_strings(self.fixed, "fixed")
        for argument, names in (("priors", priors), ("fixed", fixed)):
            for name in names:
                if name not in self._parameters:
                    raise ValueError(
                        f"{argument} must be of parameters that {kind} has,"
                        f" {', '.join(self._parameters)}, got {name!r}"
                    )
        for name in self._parameters:
            value = as_positive(getattr(self, name), name)
            if value.ndim > 1 or value.size == 0:
                raise ValueError(
                    f"{name} must be a number or one number a column, got shape {value.shape}"
                )
            values[name] = float(value) if value.ndim == 0 else value
            if name not in priors:
                priors[name] = LogNormal(float(np.exp(np.log(value).mean())))
        self._set(priors=priors, fixed=fixed, **values)

    def _select(self, X: FloatArray) -> FloatArray:
        """The active columns of X."""
        if self.active is None:
            selected = X
        elif max(self.active) >= X.shape[1]:
            raise ValueError(
                f"{type(self).__name__} acts on column {max(self.active)}, but the inputs have"
                f" {X.shape[1]} columns (they are numbered from 0)"
            )
        else:
            selected = X[:, list(self.active)]
        for name in self._parameters:
            value = getattr(self, name)
            if np.ndim(value) and len(value) != selected.shape[1]:
                raise ValueError(
                    f"{name} of {type(self).__name__} has {len(value)} entries, but it acts on"
                    f" {selected.shape[1]} columns (pass one number, or name the columns: active=)"
                )
        return selected

    @cached_property
    def num_params(self) -> int:
        """Number of free parameters."""
        return sum(np.size(getattr(self, name)) for name in self._free)

    @cached_property
    def _free(self) -> list[str]:
        return [name for name in self._parameters if name not in self.fixed]

    def _prior(self, name: str) -> LogNormal:
        assert self.priors is not None  # set by _settle
        return self.priors[name]

    @property
    def log_params(self) -> FloatArray:
        """Logarithms of the free parameters, ``(num_params,)``."""
        return np.concatenate(
            [np.empty(0), *(np.log(np.atleast_1d(getattr(self, name))) for name in self._free)]
        )

    @property
    def param_names(self) -> tuple[str, ...]:
        """Names of the free parameters, with the column's number where there is one per column."""
        names: list[str] = []
        for name in self._free:
            value = getattr(self, name)
            if np.ndim(value):
                names += [f"{name}[{i}]" for i in (self.active or range(len(value)))]
            else:
                names.append(name)
        return tuple(names)

    def _moved_to(self, log_params: FloatArray) -> Self:
        values: dict[str, Any] = {}
        first = 0
        for name in self._free:
            last = first + np.size(getattr(self, name))
            part = np.exp(log_params[first:last])
            values[name] = part if np.ndim(getattr(self, name)) else float(part[0])
            first = last
        return self._with(**values)

    def log_prior(self) -> float:
        """Log prior density of the free log parameters."""
        return float(
            sum(
                np.sum(self._prior(name).log_density(np.log(getattr(self, name))))
                for name in self._free
            )
        )

    def sample_log_params(self, rng: np.random.Generator) -> FloatArray:
        """Free log parameters drawn from their priors, ``(num_params,)``."""
        parts = [
            self._prior(name).sample(rng, (np.size(getattr(self, name)),)) for name in self._free
        ]
        return np.concatenate([np.empty(0), *parts])

    def fix(self) -> Self:
        """The same function with no free parameter."""
        return replace(self, fixed=self._parameters)


@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnFamily(Family):
    """A family that acts on the columns named by ``active``, distinct numbers from 0, or on all."""

    active: Collection[int] | None = None  # type: ignore[assignment]

    def _complete(self) -> None:
        if self.active is not None:
            listed = as_list(self.active, "active", "columns")
            columns = tuple(as_positive_int(column, "active", minimum=0) for column in listed)
            if not columns or len(set(columns)) < len(columns):
                raise ValueError(
                    f"active must list distinct columns, numbered from 0, got {self.active!r}"
                )
            self._set(active=columns)


@dataclass(frozen=True, eq=False)
class _Combination(Covariance):
    """Of two covariances or more."""

    parts: tuple[Covariance, ...]
    _joined: ClassVar[np.ufunc]

    def _complete(self) -> None:
        parts = tuple(self.parts)
        for part in parts:
            if not isinstance(part, Covariance):
                raise TypeError(f"a part must be a Covariance, got {type(part).__name__}")
        if len(parts) < 2:
            raise ValueError(f"{type(self).__name__} needs two parts or more, got {len(parts)}")
        self._set(parts=parts)

    @property
    def active(self) -> tuple[int, ...] | None:
        """The columns that some part looks at; None for all. A constant looks at none."""
        columns: set[int] = set()
        for part in self.parts:
            if isinstance(part, Constant):
                continue
            if part.active is None:
                return None
            columns.update(part.active)
        return tuple(sorted(columns)) or None

    def _cov(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        return np.asarray(reduce(self._joined, (part._cov(X, Y) for part in self.parts)))

    def _diagonal(self, X: FloatArray) -> FloatArray:
        return np.asarray(reduce(self._joined, (part._diagonal(X) for part in self.parts)))

    def leaves(self) -> list[Covariance]:
        """What it combines that is no combination itself, from left to right."""
        found: list[Covariance] = []
        for part in self.parts:
            found += part.leaves() if isinstance(part, _Combination) else [part]
        return found

    @cached_property
    def num_params(self) -> int:
        """Number of free parameters."""
        return sum(part.num_params for part in self.parts)

    @property
    def log_params(self) -> FloatArray:
        """Logarithms of the free parameters, ``(num_params,)``."""
        return np.concatenate([part.log_params for part in self.parts])

    @property
    def param_names(self) -> tuple[str, ...]:
        """Names such as ``Matern.length_scale``; a second Matern is ``Matern_2``."""
        seen: dict[str, int] = {}
        names: list[str] = []
        for leaf in self.leaves():
            kind = type(leaf).__name__
            seen[kind] = seen.get(kind, 0) + 1
            label = kind if seen[kind] == 1 else f"{kind}_{seen[kind]}"
            names += [f"{label}.{name}" for name in leaf.param_names]
        return tuple(names)

    def _moved_to(self, log_params: FloatArray) -> Self:
        moved, first = [], 0
        for part in self.parts:
            last = first + part.num_params
            moved.append(part._moved_to(log_params[first:last]))
            first = last
        return self._with(parts=tuple(moved))

    def log_prior(self) -> float:
        """Log prior density of the free log parameters."""
        return sum(part.log_prior() for part in self.parts)

    def sample_log_params(self, rng: np.random.Generator) -> FloatArray:
        """Free log parameters drawn from their priors, ``(num_params,)``."""
        return np.concatenate([part.sample_log_params(rng) for part in self.parts])

    def fix(self) -> Self:
        """The same function with no free parameter."""
        return replace(self, parts=tuple(part.fix() for part in self.parts))


class Sum(_Combination):
    """The covariance of a sum of independent functions: ``a + b``."""

    _joined = np.add


class Product(_Combination):
    """The product of covariances: ``a * b``; a number is a variance."""

    _joined = np.multiply


@dataclass(frozen=True, eq=False)
class Constant(Family):
    """Of constant functions, and the variance in front of another covariance."""

    var: Annotated[float, real(above=0.0)] = 1.0
    _parameters = ("var",)

    @property
    def active(self) -> tuple[int, ...] | None:
        """None: the inputs do not matter."""
        return None

    def _cov(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        return np.full((len(X), len(Y)), self.var)

    def _diagonal(self, X: FloatArray) -> FloatArray:
        return np.full(len(X), self.var)


# --------------------------------------------------------------------------- columns and factors


def columns_of(covariance: Covariance, num_columns: int) -> frozenset[int]:
    """The columns of inputs, of `num_columns`, that a covariance looks at."""
    if isinstance(covariance, Sum | Product):
        return frozenset().union(*(columns_of(part, num_columns) for part in covariance.parts))
    if isinstance(covariance, Constant):
        return frozenset()
    return frozenset(range(num_columns) if covariance.active is None else covariance.active)


def product_terms(
    covariance: Covariance, column: int, num_columns: int
) -> list[tuple[Covariance, ...]]:
    """The covariance as a sum of products, multiplied out as far as `column` is concerned.

    Every factor of a product looks at `column` and is no sum or product itself, or does not look
    at it at all.
    """
    if column not in columns_of(covariance, num_columns):
        return [(covariance,)]
    if isinstance(covariance, Sum):
        return [
            term for part in covariance.parts for term in product_terms(part, column, num_columns)
        ]
    if isinstance(covariance, Product):
        terms = (product_terms(part, column, num_columns) for part in covariance.parts)
        return [sum(factors, ()) for factors in product(*terms)]
    return [(covariance,)]


def as_covariance(value: Any, name: str = "covariance") -> Covariance:
    """A covariance as it is; anything else is refused."""
    if not isinstance(value, Covariance):
        raise TypeError(
            f"{name} must be a Covariance, got {type(value).__name__}"
            " (combine those of pgmult.fields.covariances)"
        )
    return value
