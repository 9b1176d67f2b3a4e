"""The reproduction of Wang and Blei (2013) runs, and gives the digits it is known to give."""

import pytest


@pytest.fixture
def tables(paper_scripts, monkeypatch, shared_data):
    monkeypatch.setenv("PGMULT_DATA", str(shared_data("yeast").parent))
    return paper_scripts("wang2013")["tables"]


@pytest.mark.slow
def test_yeast_in_table_1(tables):
    results = tables.multilabel("yeast", methods=("laplace", "delta"))
    assert results["laplace"] == pytest.approx((80.13, -0.4490), abs=1e-2)
    assert results["laplace"][1] == pytest.approx(-0.4490, abs=1e-4)
    assert results["delta"][0] == pytest.approx(80.17, abs=1e-2)
    assert results["delta"][1] == pytest.approx(-0.4495, abs=1e-4)


@pytest.mark.slow
def test_a_split_of_school_in_table_2(tables, shared_data):
    shared_data("school")
    x, labels, schools, training = tables.school()
    train, test = training[0], ~training[0]
    weights = tables.ways_to_pool(x[train], labels[train], schools[train], "laplace")
    psi = {way: (x[test] * w[schools[test]]).sum(axis=1) for way, w in weights.items()}
    log_predictive = {way: tables.scores(labels[test], p)[1] for way, p in psi.items()}
    assert log_predictive["separate"] == pytest.approx(-0.5636, abs=1e-4)
    assert log_predictive["pooled"] == pytest.approx(-0.5635, abs=1e-4)
    printed = log_predictive["hierarchical, Sigma as printed"]
    assert log_predictive["separate"] < log_predictive["hierarchical"] < printed
