"""The reproduction of Linderman, Johnson and Adams (2015) runs, here on a small made-up corpus."""

import csv
from argparse import Namespace

import numpy as np
import pytest

from pgmult.topics import as_corpus


@pytest.mark.slow
def test_figure2(paper_scripts, monkeypatch, tmp_path, capsys):
    figure2 = paper_scripts("linderman2015")["figure2"]
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(30, 0.1), size=3)
    theta = rng.dirichlet(np.ones(3), size=60)
    counts = np.array([rng.multinomial(40, p) for p in theta @ topics])
    words = [f"word{v}" for v in range(30)]
    monkeypatch.setattr(figure2, "associated_press", lambda: as_corpus(counts, words))
    options = Namespace(
        corpus="ap", seconds=0.3, topics=3, observed=[0.5, 0.1], splits=[0, 1], documents=20,
        models=[name for name in figure2.models(3) if "tomotopy" not in name], out=tmp_path,
    )  # fmt: skip
    figure2.main(options)

    with open(tmp_path / "figure2.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    ends = [row for row in rows if float(row["seconds"]) == 0.3]
    assert len(ends) == 2 * 2 * 4
    for row in ends:
        assert float(row["log_predictive"]) > float(row["unigram"])
        if row["model"] == figure2.REFERENCE:
            assert float(row["gain_over_learned_alpha"]) == 0.0
    assert (tmp_path / "figure2.png").read_bytes().startswith(b"\x89PNG")
    assert "10% observed, SB-CTM, 0.3 s:" in capsys.readouterr().out


def test_models_of_tomotopy_are_scored_like_ours(paper_scripts):
    pytest.importorskip("tomotopy")
    peer = paper_scripts("linderman2015")["tomotopy_models"]
    counts = np.random.default_rng(0).poisson(0.7, size=(20, 12))
    counts[3], counts[:, 5] = 0, 0  # an empty document, a word without a token
    corpus = as_corpus(counts)
    for kind in ("LDAModel", "CTModel"):
        model, rng = peer.TomotopyModel(kind, 3), np.random.default_rng(0)
        state = model.step(rng, model.init(rng, corpus), corpus)
        theta, topics = model.theta(state, corpus), model.topics(state, corpus)
        assert (theta.shape, topics.shape) == ((20, 3), (3, 12))
        np.testing.assert_allclose(theta.sum(axis=1), 1.0, atol=1e-5)
        np.testing.assert_allclose(topics.sum(axis=1), 1.0, atol=1e-5)
        np.testing.assert_array_equal(theta[3], 1.0 / 3.0)
        np.testing.assert_allclose(topics[:, 5], topics.min(axis=1))
