"""A scikit-learn estimator of linear dynamical systems of symbols and counts.

Sequences come in as lists of labels, of integers or of count matrices; scores, forecasts with
intervals and the probabilities of the next symbol come out.

>>> from pgmult.sequences import SequenceForecaster
>>> weather = [["sun", "sun", "rain", "sun", "sun", "rain", "sun", "sun", "rain"]] * 4
>>> forecaster = SequenceForecaster(2, draws=50, tune=50, chains=1, random_state=0).fit(weather)
>>> forecaster.symbols_.tolist(), forecaster.predict_proba([["sun", "sun"]]).shape
(['rain', 'sun'], (1, 2))
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from pgmult.compiled.rows import row_threads
from pgmult.core.arguments import as_flag, under_name
from pgmult.core.sklearn import as_seed, as_threads
from pgmult.core.typing import Array, FloatArray, Generator
from pgmult.sampling.diagnostics import ConvergenceWarning
from pgmult.sampling.driver import sample
from pgmult.sampling.posterior import Posterior
from pgmult.sequences.answers import Forecast
from pgmult.sequences.data.sequences import Sequences, as_sequences
from pgmult.sequences.forecasts import LEVELS, forecast
from pgmult.sequences.models.lds import MultinomialLDS, as_state_dim, usual_state_dim
from pgmult.sequences.scores.one_step import one_step_ahead


@dataclass(eq=False, repr=False, kw_only=True)
class SequenceForecaster(BaseEstimator):  # type: ignore[misc]
    """Symbols, words or counts whose probabilities follow a linear Gaussian state.

    Parameters
    ----------
    n_components : int, optional
        Dimension of the state; if left out, one less than symbols, at most 4, or 10 where steps
        have many counts.
    symbols : int, sequence of str or None
        The number of symbols, for sequences of integers, or their names, for labels: needed if new
        sequences may have symbols that the training sequences lack. None takes those of the latter.
    draws, tune, chains : int
        Of Gibbs sampling, as in `pgmult.sample`.
    max_draws : int
        Draws to use at most, evenly spread over the chains, to score and forecast.
    random_state : int, numpy.random.RandomState or None
        Of `fit`. Scores and forecasts have a fixed seed.
    n_jobs : int or None
        Threads; None is one, -1 all processors. Results do not depend on it.
    verbose : bool
        Whether `fit` shows its progress.

    Attributes
    ----------
    posterior_ : Posterior
    sequences_ : Sequences
        Those of the fit.
    symbols_ : array, ``(n_symbols,)``
        Names of the symbols, or their numbers: the columns of probabilities.

    Notes
    -----
    It takes no inputs: `pgmult.sequences.MultinomialLDS` does. Sequences are what
    `pgmult.sequences.as_sequences` takes: a list of strings is a list of sequences of characters,
    so put words in lists of lists.

    See Also
    --------
    pgmult.sequences.predict, pgmult.sequences.impute :
        of ``posterior_`` and sequences with missing steps.
    """

    n_components: int | None = field(default=None, kw_only=False)
    symbols: int | Sequence[str] | None = None
    draws: int = 200
    tune: int = 300
    chains: int = 2
    max_draws: int = 50
    random_state: int | np.random.RandomState | Generator | None = None
    n_jobs: int | None = None
    verbose: bool = False

    def fit(self, X: object, y: object = None) -> "SequenceForecaster":
        """Sample the posterior given sequences.

        Parameters
        ----------
        X : list of sequences
            Steps may be missing: -1, None or a row of zeros.
        y : ignored

        Raises
        ------
        ValueError
            If a sequence is empty, or a symbol is not among `symbols`.

        Warns
        -----
        ConvergenceWarning
            If probabilities at the ends of the sequences, or the log likelihood, have a high R-hat
            or few effective draws.
        """
        is_number = isinstance(self.symbols, int | np.integer)
        names: dict[str, Any] = {"num_symbols" if is_number else "alphabet": self.symbols}
        with under_name("symbols", of="alphabet"), under_name("X", of="data"):
            data = as_sequences(X, **names)
        size = usual_state_dim(data) if self.n_components is None else self.n_components
        model = MultinomialLDS(as_state_dim(size, "n_components"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.posterior_ = sample(
                model, data, draws=self.draws, tune=self.tune, chains=self.chains,
                cores=as_threads(self.n_jobs), random_seed=as_seed(self.random_state),
                progressbar=as_flag(self.verbose, "verbose"),
            )  # fmt: skip
        fitted = self.posterior_  # the basis of its states wanders, and nothing depends on it
        monitored = Posterior(
            {"last_probs": fitted["last_probs"]}, dims={"last_probs": ("sequence", "symbol")},
            coords={name: fitted.coords[name] for name in ("sequence", "symbol")},
            sample_stats=fitted.sample_stats,
        )  # fmt: skip
        if problems := monitored.convergence_problems():
            warnings.warn(problems, ConvergenceWarning, stacklevel=2)
        self.sequences_ = data
        self.symbols_: Array = data.labels
        return self

    def score(self, X: object, y: object = None) -> float:
        """Mean log probability of an observation given those before it, in nats.

        One step ahead, by a particle filter, averaged over draws
        (`pgmult.sequences.scores.one_step.one_step_ahead`). Higher is better; use sequences that
        were not in the fit.

        Parameters
        ----------
        X : list of sequences
        y : ignored

        Raises
        ------
        ValueError
            If symbols do not go with those of the fit.
        """
        check_is_fitted(self)
        with row_threads(as_threads(self.n_jobs)):
            return one_step_ahead(self.posterior_, self._new(X), max_draws=self.max_draws).mean

    def forecast(
        self, steps: int, X: object = None, *, levels: Sequence[float] = LEVELS
    ) -> Forecast:
        """Forecast each sequence after its last step, with intervals and simulated futures.

        Parameters
        ----------
        steps : int
            How far ahead, >= 1.
        X : list of sequences, optional
            Those of the fit if left out.
        levels : sequence of float
            Of the quantiles.

        Returns
        -------
        Forecast
            ``mean``, ``(num_sequences, steps, num_symbols)``; ``quantiles``, with a leading axis
            of `levels`; ``simulated`` futures, ``(num_draws, num_sequences, steps)``, of positions
            in ``symbols_``.

        Raises
        ------
        ValueError
            If symbols do not go with those of the fit.
        """
        check_is_fitted(self)
        data = None if X is None else self._new(X)
        with row_threads(as_threads(self.n_jobs)):
            return forecast(self.posterior_, steps, data, levels=levels, max_draws=self.max_draws)

    def predict_proba(self, X: object = None) -> FloatArray:
        """Probabilities of each sequence's next symbol, ``(num_sequences, num_symbols)``."""
        return self.forecast(1, X).mean[:, 0]

    def predict(self, X: object = None) -> Array:
        """Each sequence's most probable next symbol, ``(num_sequences,)``, one of ``symbols_``."""
        return np.asarray(self.symbols_[self.predict_proba(X).argmax(axis=1)])

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.no_validation = True
        return tags

    def _new(self, X: object) -> Sequences:
        """Sequences numbered by the symbols of the fit."""
        if isinstance(X, Sequences):  # these number their symbols themselves
            return X
        size, alphabet = self.sequences_.num_symbols, self.sequences_.alphabet
        with under_name("symbols", of="alphabet"), under_name("X", of="data"):
            return as_sequences(X, num_symbols=size, alphabet=alphabet)
