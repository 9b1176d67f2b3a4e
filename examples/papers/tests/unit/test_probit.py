"""The multinomial probit by variational Bayes, beside simulation and with weights and order."""

import numpy as np

from examples.papers.knowles2011.probit import (
    MultinomialProbit,
    fit_probit_regression,
    probit_probs,
)
from examples.papers.regressions.data import as_counted_rows

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 2))
TIMES = RNG.integers(1, 4, size=60)
LABELS = (X @ [[2.0, -1.0, 0.0], [0.0, 1.5, -2.0]] + RNG.normal(size=(60, 3))).argmax(axis=1)


def test_probit_beside_simulation():
    rng = np.random.default_rng(3)
    mean = np.array([[0.5, -1.0, 2.0], [0.0, 0.0, 0.0]])
    y = mean + rng.normal(size=(200_000, 2, 3))
    shares = np.stack([(y.argmax(axis=2) == k).mean(axis=0) for k in range(3)], axis=1)
    np.testing.assert_allclose(probit_probs(mean, np.zeros(2)), shares, atol=0.005)
    np.testing.assert_allclose(probit_probs(mean, np.full(2, 1e6)), 1 / 3, atol=2e-3)
    labels = y[0].argmax(axis=1)
    fit = fit_probit_regression(as_counted_rows(np.eye(2), labels, num_categories=3))
    assert fit.converged
    longer = fit_probit_regression(
        as_counted_rows(np.eye(2), labels, num_categories=3), tolerance=1e-10
    )
    assert fit.objective <= longer.objective + 1e-9


def test_counts_are_rows_repeated():
    data = as_counted_rows(X, np.eye(3, dtype=int)[LABELS] * TIMES[:, None])
    repeated = as_counted_rows(np.repeat(X, TIMES, axis=0), np.repeat(LABELS, TIMES))
    one, other = (fit_probit_regression(each, tolerance=1e-8) for each in (data, repeated))
    np.testing.assert_allclose(one.mean, other.mean, atol=1e-6)
    np.testing.assert_allclose(one.cov, other.cov, atol=1e-6)


def test_names_and_order_of_classes_do_not_matter():
    plain = MultinomialProbit().fit(X, LABELS)
    renamed = MultinomialProbit().fit(X, np.array(["zebra", "ant", "cow"])[LABELS])
    assert renamed.classes_.tolist() == ["ant", "cow", "zebra"]
    np.testing.assert_allclose(
        renamed.predict_proba(X)[:, [2, 0, 1]], plain.predict_proba(X), atol=1e-4
    )
    assert (plain.classes_[plain.predict_proba(X).argmax(axis=1)] == LABELS).mean() > 0.7
