r"""What a multinomial Gaussian process says of the categories at its new inputs.

Draws of psi at the new inputs are averaged over, and where the posterior kept ``psi_new_mean`` and
``psi_new_var`` each draw counts with its whole law given omega (Rao and Blackwell): given omega the
sticks are independent normals, so that

    E[pi_k | omega]  =  E[sigma(psi_k)] prod_{j<k} E[sigma(-psi_j)]
    p(x* | omega)    =  coefficient  prod_k E[sigma(psi_k)^x_k sigma(-psi_k)^(N_k - x_k)]

are products of one-dimensional integrals, by Gauss-Hermite quadrature around the mode of each
(Linderman, Johnson and Adams 2015, appendix B, plug in the mean of psi instead).

>>> import numpy as np, pgmult
>>> from pgmult.fields.covariances import Matern
>>> counts = np.random.default_rng(0).multinomial(20, [0.5, 0.3, 0.2], size=8)
>>> data = pgmult.fields.as_field(
...     np.arange(8.0), counts, new_inputs=[8.0], categories=["a", "b", "c"]
... )
>>> posterior = pgmult.sample(
...     pgmult.fields.MultinomialGP(Matern(1.5, length_scale=5.0)), data,
...     keep=["pi_new", "psi_new_mean", "psi_new_var"],
...     draws=50, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> predictions = FieldPredictions.of(posterior, data)
>>> predictions.mean().shape, predictions.rank_probabilities(1).shape
((1, 3), (1, 3))
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammaln, logsumexp

from pgmult.core.arguments import as_flag, as_kind, as_probability, as_seed
from pgmult.core.notebook import columns_html
from pgmult.core.tables import as_frame
from pgmult.core.typing import ArrayLike, FloatArray, IntArray
from pgmult.core.validate import as_counts, as_positive_int
from pgmult.fields.data import CountField
from pgmult.fields.models.multinomial_gp import MultinomialGP, MultinomialGPState
from pgmult.fields.scores import Calibration, calibration
from pgmult.links import StickBreaking
from pgmult.sampling.posterior import Posterior

if TYPE_CHECKING:
    import xarray

__all__ = ["FieldPredictions", "StickLaw"]

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(48)
_LOG_WEIGHTS = np.log(_WEIGHTS) - 0.5 * np.log(2.0 * np.pi)
_NEWTON_STEPS = 30


class StickLaw(NamedTuple):
    """Independent normal laws of the sticks, one for each draw of omega.

    Attributes
    ----------
    order : int64 array, ``(num_categories,)``
        In which sticks break for categories.
    mean, var : arrays, ``(num_draws, num_new, num_categories - 1)``
    """

    order: IntArray
    mean: FloatArray
    var: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class FieldPredictions:
    """Draws of the categories' probabilities at new inputs, and what follows from them.

    Attributes
    ----------
    pi : array, ``(num_draws, num_new, num_categories)``
        Draws of the probabilities, all chains one after the other.
    sticks : StickLaw or None
        The law of the sticks given each draw's omega, if the posterior kept it.
    categories, names : str arrays, ``(num_categories,)`` and ``(num_new,)``, or None
        Labels of the categories and of the new inputs.
    inputs : mapping from name to array ``(num_new,)``
        The new inputs, by column, as the caller's table has them.
    """

    pi: FloatArray
    sticks: StickLaw | None = None
    categories: NDArray[np.str_] | None = None
    names: NDArray[np.str_] | None = None
    inputs: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, posterior: Posterior, data: CountField) -> "FieldPredictions":
        """From a posterior that kept ``pi_new``, and its data.

        Raises
        ------
        ValueError
            If it did not, the data are not those of the posterior or have no new inputs, or the
            draws do not know their model.
        """
        _check(posterior, data, ["pi_new"])
        if data.num_new == 0:
            raise ValueError("data must have new inputs (pass them to as_field)")
        link, law = posterior.link, ("psi_new_mean", "psi_new_var")
        sticks = None
        if isinstance(link, StickBreaking) and all(name in posterior for name in law):
            sticks = StickLaw(np.array(link.order), *(posterior.stack(name) for name in law))
        return cls(
            posterior.stack("pi_new"), sticks, data.categories, data.new_names, _by_column(data)
        )

    @classmethod
    def at(
        cls,
        posterior: Posterior,
        data: CountField,
        new_inputs: Any,
        *,
        names: Sequence[str] | None = None,
        max_draws: int | None = None,
        random_seed: Any = None,
    ) -> "FieldPredictions":
        """At inputs that the chains did not know; costs as much as a sweep for each draw.

        Parameters
        ----------
        posterior : Posterior
            Of a `MultinomialGP`, that kept ``psi``, ``beta`` and ``hyperparameters``.
        data : CountField
            The posterior's data.
        new_inputs : array or pandas DataFrame, ``(num_new, num_inputs)``
        names : sequence of str, ``(num_new,)``, optional
            Labels of the new inputs; by default those of the data frame.
        max_draws : int, optional
            At most so many draws, evenly spread over the chains.
        random_seed : int, optional

        Raises
        ------
        ValueError
            If the posterior did not keep what it takes, the data are not its own, or the draws do
            not know their model.
        """
        needed = ("psi", "beta", "hyperparameters")
        model = as_kind(posterior, "posterior", Posterior).model
        if not isinstance(model, MultinomialGP):
            raise TypeError(
                f"posterior must be of a MultinomialGP, got one of {type(model).__name__} (it"
                " predicts at the new inputs of its data: FieldPredictions.of)"
            )
        _check(posterior, data, needed)
        wider = data.with_new_inputs(new_inputs, names)
        rng, link = np.random.default_rng(as_seed(random_seed)), posterior.link
        draws = [
            model.predict_at(rng, MultinomialGPState(*values), data, wider.new_inputs)
            for values in zip(*(_drawn(posterior, name, max_draws) for name in needed), strict=True)
        ]
        return cls(
            np.array([link.probs(draw.new_values) for draw in draws]),
            StickLaw(
                np.array(link.order),
                np.array([draw.new_mean for draw in draws]),
                np.array([draw.new_var for draw in draws]),
            ),
            data.categories,
            wider.new_names,
            _by_column(wider),
        )

    @classmethod
    def at_rows(
        cls, posterior: Posterior, data: CountField, *, max_draws: int | None = None
    ) -> "FieldPredictions":
        """At the observed inputs: probabilities smoothed over all counts, a row each.

        Parameters
        ----------
        posterior : Posterior
            That kept ``psi`` or ``pi``.
        data : CountField
            The posterior's data.
        max_draws : int, optional
            At most so many draws, evenly spread over the chains.

        Raises
        ------
        ValueError
            If the posterior kept neither, the data are not its own, or the draws do not know their
            model.
        """
        as_kind(posterior, "posterior", Posterior)
        _check(posterior, data, [] if "psi" in posterior else ["pi"])
        found = _drawn(posterior, "psi" if "psi" in posterior else "pi", max_draws)
        pi = posterior.link.probs(found[:, data.row_sites]) if "psi" in posterior else found
        return cls(pi, None, data.categories, data.names, _by_column(data, of_rows=True))

    def mean(self) -> FloatArray:
        """Mean probabilities, ``(num_new, num_categories)``; rows sum to 1."""
        if self.sticks is None:
            return np.asarray(self.pi.mean(axis=0))
        order, *law = self.sticks
        share = np.array(
            [np.exp(log_mean_binomial(1, 1, mean, var)) for mean, var in zip(*law, strict=True)]
        )
        ones = np.ones((*share.shape[:-1], 1))
        rest = np.concatenate([ones, np.cumprod(1.0 - share, axis=-1)], axis=-1)
        on_sticks = (np.concatenate([share, ones], axis=-1) * rest).mean(axis=0)
        out = np.empty_like(on_sticks)
        out[:, order] = on_sticks
        return np.asarray(out)

    def sd(self) -> FloatArray:
        """Standard deviations of the probabilities, ``(num_new, num_categories)``."""
        return np.asarray(self.pi.std(axis=0))

    def interval(self, probability: float = 0.95) -> FloatArray:
        """Ends of the central intervals of pi, ``(2, num_new, num_categories)``."""
        tail = 0.5 * (1.0 - as_probability(probability, "probability"))
        return np.asarray(np.quantile(self.pi, [tail, 1.0 - tail], axis=0))

    def to_xarray(self, probability: float = 0.95) -> "xarray.Dataset":
        """Mean, sd and ends of central intervals, with labels, as an xarray dataset."""
        try:
            import xarray
        except ImportError:
            raise ImportError("labelled arrays need xarray: pip install xarray") from None
        dims = ("new_row", "category")
        lower, upper = self.interval(probability)
        values = {"mean": self.mean(), "sd": self.sd(), "lower": lower, "upper": upper}
        labels = zip(dims, (self.names, self.categories), strict=True)
        return xarray.Dataset(
            {name: (dims, value) for name, value in values.items()},
            {dim: label for dim, label in labels if label is not None},
            {"probability": probability},
        )

    def to_columns(self, probability: float = 0.95) -> dict[str, NDArray[Any]]:
        """A tidy table, a row for each new input and category, as a mapping from name to array.

        Its columns are those of the new inputs, ``category``, ``mean``, ``sd``, and ``lower`` and
        ``upper``, the ends of the central interval of that `probability`.
        """
        num_new, num_categories = self.pi.shape[1:]
        categories = np.arange(num_categories) if self.categories is None else self.categories
        lower, upper = self.interval(probability)
        return {
            **{key: np.repeat(value, num_categories) for key, value in self.inputs.items()},
            "category": np.tile(categories, num_new),
            "mean": self.mean().ravel(),
            "sd": self.sd().ravel(),
            "lower": lower.ravel(),
            "upper": upper.ravel(),
        }

    def _repr_html_(self) -> str:
        draws, rows, categories = self.pi.shape
        title = f"{draws} draws at {rows:,} inputs of {categories} categories; 95 % intervals"
        return columns_html(self.to_columns(), title)

    def to_dataframe(self, probability: float = 0.95) -> Any:
        """The table of `to_columns` as a pandas data frame."""
        return as_frame(self.to_columns(probability))

    def rank_probabilities(self, top: int) -> FloatArray:
        """P[category is among the `top` most probable], ``(num_new, num_categories)``."""
        size = self.pi.shape[-1]
        if as_positive_int(top, "top") >= size:
            raise ValueError(f"top must be below the number of categories, {size}, got {top}")
        first = np.argpartition(-self.pi, top - 1, axis=-1)[..., :top]
        inside = np.zeros(self.pi.shape)
        np.put_along_axis(inside, first, 1.0, axis=-1)
        return np.asarray(inside.mean(axis=0))

    def counts(self, totals: ArrayLike, random_seed: Any = None) -> IntArray:
        """New counts, one table a draw, ``(num_draws, num_new, num_categories)``.

        Parameters
        ----------
        totals : integer or integer array, ``(num_new,)``
        random_seed : int, optional
        """
        num_new = self.pi.shape[1]
        sizes = as_counts(totals, "totals")
        if sizes.shape not in ((), (num_new,)):
            raise ValueError(f"totals must be one number or {num_new}, got shape {sizes.shape}")
        shares = self.pi / self.pi.sum(axis=-1, keepdims=True)
        rng = np.random.default_rng(as_seed(random_seed))
        return rng.multinomial(np.broadcast_to(sizes, shares.shape[:-1]), shares)

    def log_predictive_density(self, counts: ArrayLike, *, coefficients: bool = True) -> FloatArray:
        """Log probability of new counts at each new input, averaged over draws, ``(num_new,)``.

        A row of zeros has 0. Rows are scored one by one, not jointly.

        Parameters
        ----------
        counts : integer array, ``(num_new, num_categories)``
        coefficients : bool
            Whether it is of the counts, or of one sequence of observations that has these counts.
        """
        table = as_counts(counts)
        if table.shape != self.pi.shape[1:]:
            raise ValueError(f"counts must have shape {self.pi.shape[1:]}, got {table.shape}")
        if self.sticks is None:
            with np.errstate(divide="ignore"):
                log_pi = np.log(self.pi)
            each = np.sum(np.where(table > 0, table * log_pi, 0.0), axis=-1)
        else:
            order, *law = self.sticks
            on_sticks = table[:, order]
            reaching = np.cumsum(on_sticks[:, ::-1], axis=1)[:, ::-1][:, :-1]
            taken = on_sticks[:, :-1]
            each = np.array(
                [
                    log_mean_binomial(taken, reaching, mean, var).sum(axis=-1)
                    for mean, var in zip(*law, strict=True)
                ]
            )
        density = logsumexp(each, axis=0) - np.log(len(each))
        if as_flag(coefficients, "coefficients"):
            density += gammaln(table.sum(axis=-1) + 1.0) - gammaln(table + 1.0).sum(axis=-1)
        return np.asarray(density)

    def calibration(self, counts: ArrayLike, **options: Any) -> Calibration:
        """Whether these predictions hold of counts that were held out, and if not, what to try.

        Parameters
        ----------
        counts : integer array, ``(num_new, num_categories)``
        **options
            As in `pgmult.fields.calibration`.
        """
        return calibration(self.pi, counts, **options)


def _by_column(data: CountField, *, of_rows: bool = False) -> dict[str, NDArray[Any]]:
    """New inputs, or those of the rows, under the names of their columns."""
    columns = data.columns if of_rows else data.new_columns
    if columns is not None:
        return dict(columns)
    values = data.inputs if of_rows else data.new_inputs
    width = values.shape[1]
    names = data.input_names
    if names is None:
        names = np.array([f"input {i + 1}" if width > 1 else "input" for i in range(width)])
    return {str(name): values[:, i] for i, name in enumerate(names)}


def _drawn(posterior: Posterior, name: str, max_draws: int | None) -> FloatArray:
    """Draws of a variable, all chains one after the other, evenly thinned."""
    total = posterior.num_chains * posterior.num_draws
    if max_draws is None or total <= as_positive_int(max_draws, "max_draws"):
        return posterior.stack(name)
    chosen = set(np.linspace(0, total - 1, max_draws).astype(np.int64).tolist())
    every = (d for chain in range(posterior.num_chains) for d in posterior.each(name, chain))
    return np.array([draw for i, draw in enumerate(every) if i in chosen])


def _check(posterior: Posterior, data: CountField, needed: Sequence[str]) -> None:
    """Refuse data that the posterior is not of, and a posterior that did not keep what it takes."""
    if not as_kind(posterior, "posterior", Posterior).is_of(data):
        raise ValueError(
            f"data must be those that the posterior was sampled from, got other ones: {data!r}"
            " (new inputs, labels and the order of sticks belong to them)"
        )
    if missing := [name for name in needed if name not in posterior]:
        raise ValueError(f"the posterior must have kept {', '.join(missing)} (pass it in keep=)")


def log_mean_binomial(
    taken: ArrayLike, reaching: ArrayLike, mean: FloatArray, var: FloatArray
) -> FloatArray:
    """Log E[sigma(psi)^taken sigma(-psi)^(reaching - taken)], psi ~ N(mean, var), elementwise.

    Gauss-Hermite quadrature around the mode, scaled by the curvature there.
    """
    x, n = np.asarray(taken, dtype=np.float64), np.asarray(reaching, dtype=np.float64)
    precision = 1.0 / np.maximum(var, 1e-300)
    psi = np.broadcast_to(mean, np.broadcast_shapes(mean.shape, x.shape)).copy()
    for _ in range(_NEWTON_STEPS):  # of a concave function; steps of one unit at most far away
        slope = x - n * expit(psi) - precision * (psi - mean)
        bend = n * expit(psi) * expit(-psi) + precision
        psi += slope / np.maximum(bend, np.abs(slope))
    scale = 1.0 / np.sqrt(n * expit(psi) * expit(-psi) + precision)
    nodes = psi[..., None] + scale[..., None] * _NODES
    log_density = x[..., None] * nodes - n[..., None] * np.logaddexp(0.0, nodes)
    log_density -= 0.5 * precision[..., None] * (nodes - mean[..., None]) ** 2
    terms = log_density + 0.5 * _NODES**2 + _LOG_WEIGHTS
    return np.asarray(logsumexp(terms, axis=-1) + np.log(scale) + 0.5 * np.log(precision))
