"""Grouped regressions in blocks of groups."""

from dataclasses import replace

import numpy as np
import pytest
from same_draws import check_shards_do_not_matter

from examples.papers.regressions import updates
from examples.papers.regressions.data import as_labelled_rows
from examples.papers.regressions.logistic import GroupedLogisticRegression


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((120, 2))
    return as_labelled_rows(x, rng.integers(2, size=120), groups=rng.integers(30, size=120))


@pytest.mark.parametrize("easy", [True, False], ids=["gibbs", "slices"])
def test_shards_do_not_matter(data, easy, monkeypatch):
    monkeypatch.setattr(updates, "_easy", lambda data, base: np.full(len(base), easy))
    model = replace(GroupedLogisticRegression.like_wang_blei(2), block_rows=4)
    check_shards_do_not_matter(model, data)


def test_rows_are_those_of_groups_and_stay_the_same_object(data):
    assert data.rows(slice(0, data.num_groups)) is data
    here = data.rows(slice(3, 7))
    assert here is data.rows(slice(3, 7))
    assert here.num_groups == 4
    rows = slice(data.offsets[3], data.offsets[7])
    np.testing.assert_array_equal(here.covariates, data.covariates[rows])
    np.testing.assert_array_equal(here.given, data.given[rows])
    np.testing.assert_array_equal(here.group_names, data.group_names[3:7])
    assert np.shares_memory(here.covariates, data.covariates)
    assert data.rows(slice(0, 0)).num_rows == 0
