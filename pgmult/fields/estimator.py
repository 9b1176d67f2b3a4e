"""A scikit-learn estimator of multinomial Gaussian processes.

It is fitted to counts, or labels, of categories at inputs, and predicts their probabilities at any
inputs, with intervals. Length scales of the covariance are in the units of the inputs.

>>> import numpy as np
>>> from pgmult.fields import MultinomialGPClassifier
>>> years = np.arange(1990.0, 2000.0)[:, None]
>>> counts = np.random.default_rng(0).multinomial(30, [0.5, 0.3, 0.2], size=10)
>>> estimator = MultinomialGPClassifier(draws=20, tune=20, chains=1, random_state=0)
>>> estimator.fit(years, counts).predict_proba([[2000.0], [2001.0]]).shape
(2, 3)
>>> list(estimator.hyperparameters_)
['Constant.var', 'Matern.length_scale[x0]']
"""

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from pgmult.compiled.rows import row_threads
from pgmult.core.arguments import as_flag
from pgmult.core.sklearn import as_classes, as_seed, as_threads, refuse_dates
from pgmult.core.typing import ArrayLike, FloatArray, IntArray
from pgmult.core.validate import as_counts, as_positive_int
from pgmult.fields.covariances import Covariance, Matern
from pgmult.fields.covariances.base import as_covariance, columns_of
from pgmult.fields.covariances.families import Stationary
from pgmult.fields.covariances.sphere import columns_in_degrees
from pgmult.fields.data import as_field
from pgmult.fields.inputs import check_labels, column_labels, row_labels
from pgmult.fields.models.multinomial_gp import MultinomialGP
from pgmult.fields.predictions import FieldPredictions, predict
from pgmult.fields.priors.structures import Structure
from pgmult.sampling.driver import sample


@dataclass(eq=False, repr=False, kw_only=True)
class MultinomialGPClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Probabilities of categories that vary smoothly with the inputs.

    Parameters
    ----------
    covariance : Covariance or None
        Of each stick around its mean. None is ``1.0 * Matern(1.5)`` of all columns.
    scale_inputs : bool
        Whether length scales are given in standard deviations of the columns of the training
        inputs. Latitudes and longitudes of covariances on the sphere stay in degrees. What is
        reported is in the inputs' own units either way.
    structure : {"dense", "state_space", "separable", "auto"}
        How the fields are computed: see `pgmult.fields.priors.structures`.
    mean : {"constant", "linear", "empirical"}, float or array
        Of the sticks: see `pgmult.fields.MultinomialGP`.
    hyperparameters : {"sampled", "fixed"}
        How the covariance's parameters are treated: see `pgmult.fields.MultinomialGP`.
    overdispersion : float or "auto"
        As in `pgmult.fields.MultinomialGP`.
    shared : bool
        Whether all sticks share them.
    draws, tune, chains, thin : int
        Of Gibbs sampling, as in `pgmult.sample`. Every kept draw is used in every prediction, which
        then costs as much as a sweep.
    random_state : int, numpy.random.RandomState or None
    n_jobs : int or None
        Threads; None is one, -1 all processors. Results do not depend on it.
    verbose : bool
        Whether `fit` shows its progress.

    Attributes
    ----------
    classes_ : array, ``(n_classes,)``
        The labels; with counts, the names of their columns, or their numbers.
    posterior_ : Posterior
    hyperparameters_ : dict of arrays, ``(draws,)`` or ``(draws, sticks)``
        Draws of the covariance's free parameters by name, length scales and periods in the units of
        the inputs and with the name of their column.
    scale_ : array, ``(n_features_in_,)``
        The units that length scales were given in.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Notes
    -----
    Predictions use a fixed seed, so the same inputs have the same answer.
    """

    covariance: Covariance | None = field(default=None, kw_only=False)
    scale_inputs: bool = True
    structure: Structure = "auto"
    mean: Any = "constant"
    hyperparameters: Literal["sampled", "fixed"] = "sampled"
    shared: bool = True
    overdispersion: float | Literal["auto"] = "auto"
    draws: int = 100
    tune: int = 100
    chains: int = 2
    thin: int = 1
    random_state: int | np.random.RandomState | np.random.Generator | None = None
    n_jobs: int | None = None
    verbose: bool = False

    def fit(self, X: Any, y: Any) -> "MultinomialGPClassifier":
        """Sample the posterior.

        Parameters
        ----------
        X : array or pandas DataFrame, ``(n_samples, n_features)``
            Rows may repeat.
        y : array, or pandas DataFrame or Series
            Labels ``(n_samples,)``, or counts ``(n_samples, n_classes)`` of which rows may be zero.

        Raises
        ------
        ValueError
            If there is one class only, a count is negative or fractional, or the indexes of `X`
            and `y` differ.
        """
        check_labels(row_labels(y), row_labels(X), "rows of y", "rows of X")
        self._columns, self._class_columns = column_labels(X), column_labels(y)
        names = y.columns if self._class_columns else None
        refuse_dates(X)
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True)
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        self._counts = y.ndim == 2
        if self._counts:
            self.classes_ = np.arange(y.shape[1]) if names is None else np.asarray(names)
        else:
            self.classes_, _ = as_classes(y)
            check_classification_targets(y)
        counts, size = self._as_counts(y), len(self.classes_)
        if (occurring := np.count_nonzero(counts.any(axis=0))) < 2:
            raise ValueError(f"y must have two classes or more, got {occurring} of {size} classes")
        covariance = 1.0 * Matern(1.5) if self.covariance is None else self.covariance
        scale = X.std(axis=0) if as_flag(self.scale_inputs, "scale_inputs") else np.ones(X.shape[1])
        scale[list(columns_in_degrees(as_covariance(covariance)) or ())] = 1.0
        self.scale_ = np.where(scale > 0.0, scale, 1.0)
        self._data = as_field(X / self.scale_, counts, categories=self.classes_.astype(str))
        model = MultinomialGP(
            covariance, self.structure, self.mean, hyperparameters=self.hyperparameters,
            shared=self.shared, overdispersion=self.overdispersion,
        )  # fmt: skip
        self.posterior_ = sample(
            model, self._data, draws=self.draws, tune=self.tune, chains=self.chains,
            thin=self.thin, cores=as_threads(self.n_jobs), random_seed=as_seed(self.random_state),
            progressbar=as_flag(self.verbose, "verbose"), keep=("psi", "beta", "hyperparameters"),
        )  # fmt: skip
        self.hyperparameters_ = self._in_units()
        return self

    def predictions(self, X: object) -> FieldPredictions:
        """Draws of the probabilities, with intervals, ranks, predictive counts and densities.

        Parameters
        ----------
        X : array or pandas DataFrame, ``(n_samples, n_features)``
            The labels of a data frame's rows are kept.

        Raises
        ------
        ValueError
            If a data frame has other columns than that of the fit.
        """
        check_is_fitted(self)
        names = row_labels(X)
        check_labels(column_labels(X), self._columns, "columns of X", "columns in the fit")
        new = validate_data(self, X, dtype=np.float64, reset=False)
        with row_threads(as_threads(self.n_jobs)):
            predictions = predict(
                self.posterior_, new / self.scale_, data=self._data, names=names, max_draws=None
            )
        rows = {} if names is None else {"row": names}
        columns = self._columns or map(str, range(new.shape[1]))
        rows |= zip(columns, new.T, strict=True)  # in the user's units
        return replace(predictions, labels={**predictions.labels, "row": rows})

    def predict_proba(self, X: object) -> FloatArray:
        """Posterior mean probabilities, ``(n_samples, n_classes)``; rows sum to 1.

        Parameters
        ----------
        X : array, ``(n_samples, n_features)``
        """
        return self.predictions(X).mean

    def predict(self, X: object) -> Any:
        """The most probable class of each row, ``(n_samples,)``.

        Parameters
        ----------
        X : array, ``(n_samples, n_features)``
        """
        probs = self.predict_proba(X)
        return self.classes_[probs.argmax(axis=1)]

    def sample_y(
        self, X: object, n_samples: int = 1, totals: ArrayLike = 1, random_state: object = None
    ) -> Any:
        """Draws of y from its posterior predictive distribution, joint over rows.

        Parameters
        ----------
        X : array, ``(n_rows, n_features)``
        n_samples : int
        totals : int or int array, ``(n_rows,)``
            Total of each row of counts. A row of labels has one label.
        random_state : int, numpy.random.RandomState or None

        Returns
        -------
        array, ``(n_rows, n_samples)`` or ``(n_rows, n_classes, n_samples)``
            Labels, or counts where the estimator was fitted to counts.
        """
        n_samples = as_positive_int(n_samples, "n_samples")
        predictions = self.predictions(X)
        rng = np.random.default_rng(as_seed(random_state))
        chosen = rng.integers(0, len(predictions.draws), n_samples)
        drawn = replace(predictions, draws=predictions.draws[chosen])
        counts = drawn.counts(totals if self._counts else 1, int(rng.integers(2**31)))
        if self._counts:
            return np.moveaxis(counts, 0, -1)
        return self.classes_[counts.argmax(axis=-1)].T

    def score(self, X: object, y: ArrayLike, sample_weight: object = None) -> float:
        """Mean log predictive probability of an observation, in nats; higher is better.

        Each row's counts are scored together, averaged over the posterior, without multinomial
        coefficients; the sum is divided by the number of observations. With labels it is minus
        `sklearn.metrics.log_loss`.

        Parameters
        ----------
        X : array, ``(n_samples, n_features)``
        y : array, ``(n_samples,)`` or ``(n_samples, n_classes)``
            Labels or counts, as in `fit`.
        sample_weight : array, ``(n_samples,)``, optional
        """
        check_is_fitted(self)
        check_labels(row_labels(y), row_labels(X), "rows of y", "rows of X")
        counts = self._as_counts(y)
        predictions = self.predictions(X)
        if self._counts:
            densities = predictions.log_predictive_density(counts, coefficients=False)
        else:
            densities = np.log(predictions.mean[counts > 0])
        weight = np.ones(len(counts)) if sample_weight is None else np.asarray(sample_weight)
        total = float(weight @ counts.sum(axis=1))
        if total == 0.0:
            raise ValueError("y must have an observation at least")
        return float(weight @ densities) / total

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        tags.non_deterministic = False
        return tags

    # ---------------------------------------------------------------- parts

    def _as_counts(self, y: ArrayLike) -> IntArray:
        if self._counts:
            columns = column_labels(y)
            check_labels(columns, self._class_columns, "columns of y", "columns in the fit")
            counts = as_counts(y, "y")
            shape, size = counts.shape, len(self.classes_)
            if counts.ndim != 2 or shape[1] != size:
                raise ValueError(f"y must have a column for each of {size} classes, got {shape}")
            return counts
        labels = column_or_1d(y)
        place = np.searchsorted(self.classes_, labels).clip(max=len(self.classes_) - 1)
        unknown = self.classes_[place] != labels
        if unknown.any():
            raise ValueError(f"y has a label that was not in the fit: {labels[unknown][0]!r}")
        return np.asarray(np.eye(len(self.classes_), dtype=np.int64)[place])

    def _in_units(self) -> dict[str, FloatArray]:
        """Draws of the hyperparameters, length scales in the inputs' units."""
        draws = self.posterior_.stack("hyperparameters")
        features = self._columns or [f"x{i}" for i in range(self.n_features_in_)]
        covariance = self.posterior_.model.covariance
        leaves = [leaf for leaf in covariance.leaves() for _ in leaf.param_names]
        by_name: dict[str, FloatArray] = {}
        for i, (leaf, name) in enumerate(zip(leaves, covariance.param_names, strict=True)):
            values = draws[:, 0, i] if self.shared else draws[:, :, i]
            is_length = isinstance(leaf, Stationary) and name.endswith("length_scale")
            if is_length or name.endswith("period"):
                for column in sorted(columns_of(leaf, len(features))):
                    by_name[f"{name}[{features[column]}]"] = float(self.scale_[column]) * values
            else:
                by_name[name] = values
        return by_name
