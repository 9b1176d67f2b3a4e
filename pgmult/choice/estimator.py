"""A scikit-learn estimator of choices: rows of a data frame are alternatives.

>>> import numpy as np, pandas as pd
>>> from pgmult.choice import ChoiceClassifier
>>> rng = np.random.default_rng(0)
>>> X = pd.DataFrame({"who": np.arange(360) // 12, "case": np.arange(360) // 3})
>>> X["price"] = rng.normal(size=360)
>>> y = X.groupby("case")["price"].transform("min") == X["price"]
>>> y = y.where(X["case"] % 4 > 0, X.index % 3 == 0)
>>> model = ChoiceClassifier("price + (price | who)", "case", draws=50, tune=20, random_state=0)
>>> model.fit(X, y).predict_proba(X).shape
(360, 2)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted, column_or_1d

from pgmult.choice.answers import data_of_run, predict
from pgmult.choice.data import amounts_of, choices_of, rows_like
from pgmult.choice.mixed_logit import MixedLogit
from pgmult.core.arguments import as_flag, as_kind
from pgmult.core.sklearn import as_seed
from pgmult.core.tables import exact_columns
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.sampling.driver import sample

_OUTCOME = "taken"
_TINY = 1e-300


@dataclass(eq=False, repr=False, kw_only=True)
class ChoiceClassifier(BaseEstimator):  # type: ignore[misc]
    """Which alternative of each occasion is taken, by `MixedLogit`.

    Parameters
    ----------
    formula : str
        The right-hand side, in terms of columns: ``"price + time + (price + time | who)"``.
    occasion : str or sequence of str
        Columns that tell the occasions of a person apart.
    alternative, weights : str, optional
        Columns: names of alternatives, and weights of occasions.
    base : label, optional
        The alternative whose constant is 0.
    signs : mapping from attribute to 1 or -1, optional
        Attributes for which every person's coefficient has this sign.
    mean_scale, sd_scale : float
        Of the prior: see `MixedLogit`.
    draws, tune, chains : int
        Of the sampler: see `pgmult.sample`.
    max_draws : int
        Draws that predictions average over, at most.
    random_state : int, numpy.random.RandomState or None
    verbose : bool

    Attributes
    ----------
    classes_ : array
        0 and 1: an alternative was not taken, or was.
    posterior_ : Posterior
        With all its answers: ``posterior_.worth("price")``.

    Notes
    -----
    The rows of one occasion belong together, so split data by people or occasions:
    ``cross_val_score(model, X, y, cv=GroupKFold(5), groups=X["who"])``. People who were not in the
    fit are predicted by the population.
    """

    formula: str = field(kw_only=False)
    occasion: str | Sequence[str] = field(default="occasion", kw_only=False)
    alternative: str | None = None
    base: Any = None
    weights: str | None = None
    signs: Mapping[str, int] | None = None
    mean_scale: float = 5.0
    sd_scale: float = 2.5
    draws: int = 500
    tune: int = 200
    chains: int = 2
    max_draws: int = 400
    random_state: Any = None
    verbose: bool = False

    def fit(self, X: Any, y: Any) -> "ChoiceClassifier":
        """Draw from the posterior.

        Parameters
        ----------
        X : data frame, or mapping from name to column
            A row for each alternative of each occasion.
        y : array, ``(n_rows,)``
            Whether each alternative was taken, how often, or its share.

        Raises
        ------
        ValueError
            As `choices_of` does.
        """
        as_positive_int(self.max_draws, "max_draws")
        table, y = dict(exact_columns(X, "X")), column_or_1d(y)
        check_consistent_length(*(cells.values for cells in table.values()), y)
        outcome = _OUTCOME
        while outcome in table:
            outcome += "_"
        data = choices_of(
            f"{outcome} ~ {as_kind(self.formula, 'formula', str)}",
            {name: cells.values for name, cells in table.items()} | {outcome: y},
            occasion=self.occasion, alternative=self.alternative, base=self.base,
            weights=self.weights, signs=self.signs,
        )  # fmt: skip
        self.posterior_ = sample(
            MixedLogit(self.mean_scale, self.sd_scale), data, draws=self.draws, tune=self.tune,
            chains=self.chains, random_seed=as_seed(self.random_state),
            progressbar=as_flag(self.verbose, "verbose"),
        )  # fmt: skip
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities that each alternative is not taken, and that it is, ``(n_rows, 2)``.

        Parameters
        ----------
        X : as in `fit`
        """
        taken = self._taken(X)
        return np.column_stack([1.0 - taken, taken])

    def predict(self, X: Any) -> IntArray:
        """1 for the most probable alternative of each occasion, 0 for the others.

        Parameters
        ----------
        X : as in `fit`
        """
        taken = self._taken(X)
        rows = rows_like(data_of_run(self.posterior_), X, self.occasion, True)[0]
        taken, found = taken[rows.source], np.zeros(len(taken), dtype=np.int64)
        order = np.lexsort((-taken, rows.occasion_of_row))
        found[rows.source[order[rows.occasions[:-1]]]] = 1
        return found

    def score(self, X: Any, y: Any) -> float:
        """Mean log probability of a choice, in nats; higher is better.

        Parameters
        ----------
        X, y : as in `fit`
        """
        taken, y = self._taken(X), amounts_of(np.asarray(column_or_1d(y)), "y")
        check_consistent_length(taken, y)
        return float(y @ np.log(np.maximum(taken, _TINY)) / y.sum())

    def _taken(self, X: Any) -> FloatArray:
        """The probability of each row."""
        check_is_fitted(self)
        return predict(
            self.posterior_, X, occasion=self.occasion, new_people=True, max_draws=self.max_draws
        ).mean
