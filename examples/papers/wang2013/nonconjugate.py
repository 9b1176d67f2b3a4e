r"""Coordinate ascent for models with Gaussian variables that have no conjugate priors.

A model has Gaussian *nodes*, each of many independent rows, and a *rest*: conjugate factors, such
as q of the topics of tokens, and point estimates, such as the topics of variational EM. One
iteration (Wang and Blei 2013, algorithm 1; appendix A for directed graphs of nodes)

1. takes each node in turn and fits its Gaussian to f, what the other factors leave of the log
   joint as a function of the node, by `fit_laplace`, `fit_delta` or `expand`;
2. updates the rest in closed form, given the Gaussians.

They differ in where f is expanded: at its maximum ("laplace"), at the mean of q itself
("delta", or "diagonal_delta" for covariances without correlations) or at the previous mean
("previous_mean", Ahmed and Xing 2007). Iterations end on the change of the means: the objective
(their equation 21) is approximate and may fall a little.

A model is any object with the methods of `NonconjugateModel`; it keeps its data itself.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np

from examples.papers.wang2013.derivatives import RowObjectives, check_derivatives
from examples.papers.wang2013.laplace import GaussianRows, delta_ascent, expand, newton_ascent
from pgmult.core.arguments import as_choice, as_kind, as_mapping, as_real, brief
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_finite, as_positive_int
from pgmult.variational.ascent import HasHistory

Rest = TypeVar("Rest")

_FITS: dict[str, Callable[..., GaussianRows]] = {
    "laplace": newton_ascent,
    "delta": delta_ascent,
    "diagonal_delta": partial(delta_ascent, diagonal=True),
    "previous_mean": expand,
}


@runtime_checkable
class NonconjugateModel(Protocol[Rest]):
    """What `fit_nonconjugate` requires of a model."""

    def objectives(
        self, node: str, gaussians: Mapping[str, GaussianRows], rest: Rest
    ) -> RowObjectives:
        """The objective of one node: E_q log p of everything, over all factors but the node's own.

        All terms with the node in them: its prior given its parents, and its children given it.
        """

    def update_rest(self, gaussians: Mapping[str, GaussianRows], rest: Rest) -> Rest:
        """The conjugate factors and point estimates given q of the nodes."""

    def log_joint(self, gaussians: Mapping[str, GaussianRows], rest: Rest) -> float:
        """E_q log p(data, nodes, rest) - E_q log q(rest), expectations as the method takes them.

        The driver adds the entropy of the Gaussians.
        """


@dataclass(frozen=True, slots=True, eq=False)
class NonconjugateFit(HasHistory, Generic[Rest]):
    """The result of coordinate ascent: a `pgmult.variational.Fit`.

    Attributes
    ----------
    method : {"laplace", "delta", "diagonal_delta", "previous_mean"}
    gaussians : mapping from node to GaussianRows
    rest : object
        The model's conjugate factors and point estimates.
    history : array, ``(num_iterations,)``
        The approximate bound after each iteration; not a bound, and not monotone.
    change : array, ``(num_iterations,)``
        Largest root mean square change of a node's means, in standard deviations of q.
    converged : bool
    """

    method: str
    gaussians: Mapping[str, GaussianRows]
    rest: Rest
    history: FloatArray
    change: FloatArray
    converged: bool

    is_bound: ClassVar[bool] = False


def fit_nonconjugate(
    model: NonconjugateModel[Rest],
    start: Mapping[str, FloatArray],
    rest: Rest,
    *,
    method: str = "laplace",
    tolerance: float = 1e-4,
    max_iterations: int = 200,
    callback: Callable[[NonconjugateFit[Rest]], Any] | None = None,
) -> NonconjugateFit[Rest]:
    """Coordinate ascent over the Gaussian nodes and the rest of a model.

    Parameters
    ----------
    model : NonconjugateModel
    start : mapping from node to array ``(num_rows, n)``
        Means to start from; the order of the nodes is that of their updates. Their first
        covariances are those of one expansion there, and a node whose f needs another node's
        Gaussian comes after it or takes what that expansion gives.
    rest : object
        To start from.
    method : {"laplace", "delta", "diagonal_delta", "previous_mean"}
    tolerance : float
        Ends when no node's means change by more than this (root mean square over rows and
        coordinates, in standard deviations of q).
    max_iterations : int
    callback : callable, optional
        Called with the fit so far after every iteration.

    Raises
    ------
    ValueError
        For an unknown method, where f is not finite at the start, or where a node's derivatives
        there are not what finite differences of a few rows say.
    """
    as_kind(model, "model", NonconjugateModel)
    as_choice(method, "method", _FITS)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function, got {brief(callback)}")
    as_real(tolerance, "tolerance", minimum=0.0)
    as_positive_int(max_iterations, "max_iterations")
    fit_node = _FITS[method]
    gaussians: dict[str, GaussianRows] = {}
    for node, mean in as_mapping(start, "start").items():
        start_of = as_finite(mean, f"start of {node!r}")
        if start_of.ndim != 2:
            raise ValueError(f"start of {node!r} must have shape (rows, n), got {start_of.shape}")
        gaussians[node] = _without_spread(start_of)
    for node, q in gaussians.items():
        objectives = model.objectives(node, gaussians, rest)
        here = expand(objectives, q.mean)
        check_derivatives(objectives, q.mean, f"objectives of {node!r}")
        gaussians[node] = replace(here, mean=q.mean)
    history: list[float] = []
    changes: list[float] = []
    while True:
        change = 0.0
        for node, q in gaussians.items():
            new = fit_node(model.objectives(node, gaussians, rest), q.mean)
            variances = np.diagonal(new.cov, axis1=1, axis2=2)
            moved = np.sqrt(np.mean((new.mean - q.mean) ** 2 / variances))
            change = max(change, float(moved))
            gaussians = gaussians | {node: new}
        rest = model.update_rest(gaussians, rest)
        entropy = sum(float(q.entropy().sum()) for q in gaussians.values())
        history.append(model.log_joint(gaussians, rest) + entropy)
        changes.append(change)
        converged = change <= tolerance
        fit = NonconjugateFit(
            method, gaussians, rest, np.array(history), np.array(changes), converged
        )
        if callback is not None:
            callback(fit)
        if converged or len(changes) == max_iterations:
            return fit


def _without_spread(mean: FloatArray) -> GaussianRows:
    """Means of which no spread is known yet."""
    rows, n = mean.shape
    known, nothing = np.ones(rows, dtype=bool), np.full(rows, np.nan)
    return GaussianRows("start", mean.copy(), np.zeros((rows, n, n)), nothing, known, known, 0)
