r"""Additive regression of categories: fixed effects, groups that pool, smooths, areas.

Rows have counts y_n of K categories and a predictor for each stick that is a sum over terms
(`pgmult.latent.terms`)::

    w_k | x_k  ~ N(0, Q(x_k)^-1)                   terms' weights, k = 1..K - 1 sticks
    x_k        ~ half-t standard deviations, LKJ(2) correlations, normal log length scales
    psi_nk     = (A w_k)_n + offset_n
    y_n        ~ Multinomial(N_n, stick-breaking(psi_n))

Given the data the sticks are independent, and each is a binomial regression with a latent Gaussian.
`pgmult.latent` finds an approximation of its posterior before the chain starts, and moves weights
and hyperparameters around it, exactly. A coefficient of a stick depends on the sticks before it, so
read probabilities.

>>> import numpy as np, pgmult
>>> rng = np.random.default_rng(0)
>>> table = {
...     "vote": rng.choice(["left", "right", "none"], p=[0.5, 0.3, 0.2], size=90),
...     "age": rng.integers(18, 80, size=90),
...     "region": [f"region {i % 10}" for i in range(90)],
... }
>>> data = pgmult.read(table).rows("vote ~ age + (1 | region)")
>>> posterior = pgmult.sample(
...     AdditiveRegression(), data, draws=400, chains=1, random_seed=0, progressbar=False
... )
>>> posterior["sds"].shape, posterior["weights"].shape
((1, 400, 2, 1), (1, 400, 2, 12))
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pgmult.core.blas import one_blas_thread
from pgmult.core.family import Family
from pgmult.core.memory import once_a_data_set
from pgmult.core.parameters import Checked, axes_of, whole
from pgmult.core.typing import FloatArray, IntArray
from pgmult.formulas.design import Design
from pgmult.formulas.terms import GroupTerm, ProcessTerm, SplineTerm
from pgmult.formulas.terms import Term as FormulaTerm
from pgmult.latent.additive import Additive
from pgmult.latent.approximation import Approximation, approximate, hyperparameters_near
from pgmult.latent.moves import Point, carry, interweave, leap, swing
from pgmult.latent.sparse import SparseMatrix
from pgmult.latent.terms import Areas, Basis, Fixed, Levels, Scaled, Term, log_sd
from pgmult.links import StickBreaking
from pgmult.regression.family import REGRESSION
from pgmult.variational.sites import LogisticSite

__all__ = [
    "AdditiveRegression",
    "AdditiveRegressionState",
    "AdditiveRows",
    "latent_of",
]

_NEAR = 0.5  # spread up to which leaps alone nearly do, and they are cheap
_FAR = 2.0  # spread from which on leaps are hardly ever taken
_WOVEN, _WOVEN_NEAR = 0.5, 0.15  # of the sweeps
_SWUNG_NEAR, _KICKS_NEAR = 0.5, 2
_MORE_KICKS = 2
_FIXED_SCALE = 2.5  # prior sd of coefficients of standardised columns


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class AdditiveRows:
    """Counts of categories in cells of equal covariates: ``pgmult.read(table).rows(formula)``.

    Attributes
    ----------
    counts : int64 array, ``(num_rows, num_categories)``
    design : Design
        Fixed effects, random terms and the offset of each cell.
    order : int64 array, ``(num_categories,)``
        Stick j breaks for category ``order[j]``, and the last category takes the rest.
    categories : str array, ``(num_categories,)``
    """

    counts: IntArray
    design: Design
    order: IntArray
    categories: NDArray[np.str_]

    @property
    def num_rows(self) -> int:
        """Cells, those without counts included."""
        return len(self.counts)

    @property
    def num_categories(self) -> int:
        """K."""
        return int(self.counts.shape[1])


@dataclass(frozen=True, slots=True, eq=False)
class AdditiveRegressionState:
    """One point of the chain.

    Attributes
    ----------
    weights : array
        Of the sticks, in their order.
    hyperparameters : array
        Coordinates of all terms' hyperparameters: see `pgmult.latent.terms`.
    """

    weights: Annotated[FloatArray, "stick", "weight"]
    hyperparameters: Annotated[FloatArray, "stick", "hyperparameter"]


@dataclass(frozen=True, slots=True, eq=False)
class AdditiveRegression(Checked):
    """Counts of categories whose sticks are sums of terms, sampled around an approximation.

    Parameters
    ----------
    kicks : int
        Of each Hamiltonian path of the weights; twice as many where the approximation is far from
        the posterior, two where it is near.

    Notes
    -----
    A sweep costs some ten solves with the factor of a stick's precision, and two factorisations,
    for each stick: O(G d**3 + G d r**2 + r**3) with G levels of the largest grouping, d effects of
    each and r other weights, or that of a sparse factor where r is above 1,500.
    """

    kicks: Annotated[int, whole()] = 3

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = axes_of(AdditiveRegressionState) | {
        "sds": ("stick", "sd"),
        "probs": ("row", "category"),
    }
    default_keep: ClassVar[tuple[str, ...]] = ("weights", "hyperparameters", "sds")
    family: ClassVar[Family] = REGRESSION

    def coords(self, data: AdditiveRows) -> Mapping[str, NDArray[Any]]:
        """Labels of categories, sticks, weights and standard deviations."""
        return {
            "category": data.categories,
            "stick": data.categories[data.order[:-1]],
            "weight": np.concatenate([data.design.names, data.design.effect_names]),
            "sd": np.array([term.name for term in data.design.terms], dtype=np.str_),
        }

    def link(self, data: AdditiveRows) -> StickBreaking:
        """The link from psi to probabilities, its sticks in the order of the data."""
        return StickBreaking(data.order)

    def approximations(self, data: AdditiveRows) -> tuple[Approximation, ...]:
        """The Gaussian near the posterior of each stick, and how near."""
        return tuple(found for _, _, found in _sticks(data))

    def prior(self, rng: np.random.Generator, data: AdditiveRows) -> AdditiveRegressionState:
        """Hyperparameters and weights from the prior."""
        family = _everywhere(data)
        drawn = [family.sample(rng) for _ in range(data.num_categories - 1)]
        x, w = (np.array(parts) for parts in zip(*drawn, strict=True))
        return AdditiveRegressionState(w, x)

    def simulate(
        self, rng: np.random.Generator, state: AdditiveRegressionState, data: AdditiveRows
    ) -> AdditiveRows:
        """New counts of the same totals, with the sticks in the same order."""
        psi = self.predictors(state, data)
        counts = self.link(data).simulate(rng, psi, data.counts.sum(axis=1))
        return replace(data, counts=counts)

    def init(self, rng: np.random.Generator, data: AdditiveRows) -> AdditiveRegressionState:
        """A draw from the approximation."""
        points = []
        for family, _, found in _sticks(data):
            x = hyperparameters_near(rng, family, found.guess)
            points.append((x, family.at(x, found.seen).sample(rng)))
        return _state_of(points)

    def step(
        self, rng: np.random.Generator, state: AdditiveRegressionState, data: AdditiveRows
    ) -> AdditiveRegressionState:
        """One sweep over all sticks."""
        points = []
        with one_blas_thread():
            pairs = zip(state.hyperparameters, state.weights, _sticks(data), strict=True)
            for x, w, (family, rows, found) in pairs:
                point = Point.of(x, w, family, found)
                points.append(self._moved(rng, point, family, rows, found)[:2])
        return _state_of(points)

    def _moved(
        self,
        rng: np.random.Generator,
        point: Point,
        family: Additive,
        rows: LogisticSite,
        found: Approximation,
    ) -> Point:
        """Leaps where the approximation is near, paths and slices the more the farther it is."""
        near, far = found.spread < _NEAR, found.spread > _FAR
        if far or rng.random() < (_WOVEN_NEAR if near else _WOVEN):
            point = interweave(rng, point, family, rows, found)
        point = (carry if far else leap)(rng, point, family, rows, found)
        if near and rng.random() > _SWUNG_NEAR:
            return point
        kicks = _KICKS_NEAR if near else self.kicks * (_MORE_KICKS if far else 1)
        return swing(rng, point, family, rows, found, kicks)

    def state_of(self, weights: FloatArray, hyperparameters: FloatArray) -> AdditiveRegressionState:
        """The state with these numbers, as a draw keeps them."""
        return AdditiveRegressionState(weights, hyperparameters)

    def log_likelihood(self, state: AdditiveRegressionState, data: AdditiveRows) -> float:
        """Log probability of the counts, without multinomial coefficients."""
        psi = self.predictors(state, data)
        return float(self.link(data).log_likelihood(psi, data.counts).sum())

    def predictors(self, state: AdditiveRegressionState, data: AdditiveRows) -> FloatArray:
        """Of all rows and sticks, ``(num_rows, num_categories - 1)``."""
        return np.column_stack([_everywhere(data).predictor(w) for w in state.weights])

    def probs(self, state: AdditiveRegressionState, data: AdditiveRows) -> FloatArray:
        """Of all rows and categories."""
        return self.link(data).probs(self.predictors(state, data))

    def sds(self, state: AdditiveRegressionState, data: AdditiveRows) -> FloatArray:
        """Standard deviations of all terms that have one."""
        return np.exp(log_sd(state.hyperparameters[:, _everywhere(data).is_sd()]))


def _state_of(points: Sequence[tuple[FloatArray, FloatArray]]) -> AdditiveRegressionState:
    x, w = (np.array(parts) for parts in zip(*points, strict=True))
    return AdditiveRegressionState(w, x)


def latent_of(design: Design) -> Additive:
    """The latent Gaussian of a design: its terms side by side."""
    terms: list[Term] = [Fixed(design.matrix.shape[1], _FIXED_SCALE)]
    parts: list[Any] = [design.matrix]
    for term in design.terms:
        prior, part = _part(term)
        terms.append(prior)
        parts.append(part)
    offset = 0.0 if design.offset is None else design.offset
    return Additive(terms, sparse.hstack([sparse.csr_array(part) for part in parts]), offset)


def _part(term: FormulaTerm) -> tuple[Term, Any]:
    """The prior of a term's weights and their design."""
    if isinstance(term, SplineTerm):
        return Scaled(SparseMatrix.of(sparse.eye_array(term.size))), term.basis
    if isinstance(term, ProcessTerm):
        return Basis(term.frequencies, len(term.expressions)), term.basis
    if term.times is not None:
        # the value at the middle time, which has no weight, is 0
        kept = np.delete(np.arange(term.size), term.size // 2)
        return Scaled.walk(term.times), _at_times(term)[:, kept]
    values = np.ones((len(term.codes), 1)) if term.slopes is None else term.slopes.values
    each = _by_level(term.codes, values, len(term.known))
    if term.neighbours is not None:
        return Areas.of(term.neighbours, term.size), each
    return Levels(len(term.known), term.width), each


def _by_level(codes: IntArray, values: FloatArray, num_levels: int) -> Any:
    """Design of effects of levels, those of a level side by side; codes below 0 have none."""
    rows, width = np.flatnonzero(codes >= 0), values.shape[1]
    columns = codes[rows, None] * width + np.arange(width)
    places = (values[rows].ravel(), (np.repeat(rows, width), columns.ravel()))
    return sparse.csr_array(places, shape=(len(codes), num_levels * width))


def _at_times(term: GroupTerm) -> Any:
    """Design of a walk's values; at times between two it is on the straight line, on average."""
    assert term.times is not None
    design = _by_level(term.codes, np.ones((len(term.codes), 1)), term.size)
    if not len(term.new):
        return design
    at = np.clip(term.new_times(), term.times[0], term.times[-1])
    after = np.clip(np.searchsorted(term.times, at), 1, term.size - 1)
    share = (at - term.times[after - 1]) / (term.times[after] - term.times[after - 1])
    new = np.arange(len(at))
    line = sparse.csr_array(
        (np.append(1.0 - share, share), (np.append(new, new), np.append(after - 1, after))),
        shape=(len(at), term.size),
    )
    return design + _by_level(-1 - term.codes, np.ones((len(term.codes), 1)), len(at)) @ line


@once_a_data_set
def _everywhere(data: AdditiveRows) -> Additive:
    """Terms and design of all rows."""
    return latent_of(data.design)


@once_a_data_set
def _sticks(data: AdditiveRows) -> list[tuple[Additive, LogisticSite, Approximation]]:
    """Of each stick the rows that reach it, and the approximation of its posterior."""
    taken = data.counts[:, data.order].astype(np.float64)
    reaching = np.cumsum(taken[:, ::-1], axis=1)[:, ::-1]
    found = []
    with one_blas_thread():
        for k in range(data.num_categories - 1):
            rows = np.flatnonzero(reaching[:, k])
            family = latent_of(data.design.take(rows))
            site = LogisticSite(taken[rows, k], reaching[rows, k])
            found.append((family, site, approximate(family, site)))
    return found
