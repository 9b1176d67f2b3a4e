"""The tables of Hensman, Rattray and Lawrence (2012) are made, here for a small part."""

import csv
from argparse import Namespace

import numpy as np
import pytest

from examples.papers.hensman2012 import accuracy
from examples.papers.hensman2012 import tables as tables_script
from examples.papers.hensman2012.topic_problem import TopicProblem
from pgmult.testing import rejects
from pgmult.topics import as_corpus

OPTIONS = {
    "tolerance": 1e-6, "iterations": 3000, "scale": 1.0, "threads": 1, "distances": [5.0],
    "components": 6, "restarts": 4, "topics": 20, "documents": [60], "starts": 1, "reads": 2000,
}  # fmt: skip
ACCURACY = {
    "reads": 400, "draws": 400, "documents": [60], "topics": [3], "starts": 2, "chains": 2,
    "sweeps": 60, "distances": [5.0], "components": 10, "restarts": 12, "mixture_chains": 16,
    "mixture_sweeps": 200,
}  # fmt: skip


@pytest.fixture
def made(tmp_path):
    """``made(tables, **options)``: the rows of the last table."""

    def make(*tables, **options):
        settings = OPTIONS | {"tables": tables, "out": tmp_path} | options
        tables_script.main(Namespace(**settings))
        return rows_of(tmp_path / f"{tables[-1]}.csv")

    return make


@pytest.fixture
def judged(tmp_path):
    """``judged(table, **options)``: the rows of a table of accuracy."""

    def judge(table, **options):
        settings = ACCURACY | {"tables": [table], "out": tmp_path} | options
        accuracy.main(Namespace(**settings))
        rows = rows_of(tmp_path / f"accuracy_{table}.csv")
        words = {"data", "transcripts", "start", "prior"}
        return [{k: v if k in words else float(v) for k, v in row.items()} for row in rows]

    return judge


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_tables_without_data(made, judged, monkeypatch, capsys):
    monkeypatch.delenv("PGMULT_DATA", raising=False)
    rows = made("mixtures")
    assert sum(int(row["successes"]) for row in rows) > 0
    for row in rows:
        spent = [float(row[f"{what}_a_success"]) for what in ("iterations", "evaluations")]
        assert spent[0] < spent[1] if int(row["successes"]) else spent == [np.inf, np.inf]
    rows = made("expression")
    assert {row["data"] for row in rows} == {"synthetic, 2,000 reads"}
    assert np.ptp([float(row["bound"]) for row in rows]) < 0.01
    assert judged("expression")[0]["data"] == "synthetic, 400 reads"
    assert "bitseq/bitseq_c0b0.npz is left out" in capsys.readouterr().out


@pytest.mark.slow
def test_iterations_on_real_reads(made, monkeypatch, shared_data):
    monkeypatch.setenv("PGMULT_DATA", str(shared_data("bitseq").parent))
    rows = {row["method"]: row for row in made("expression", reads=0)}
    for row in rows.values():
        assert float(row["bound"]) == pytest.approx(-50416.039, abs=0.001)
    iterations = {method: float(row["iterations"]) for method, row in rows.items()}
    assert 240 < iterations["vbem"] < 300
    assert iterations["polak_ribiere"] == pytest.approx(iterations["vbem"], rel=0.05)
    assert iterations["fletcher_reeves"] < 75
    assert iterations["hestenes_stiefel"] < 75
    assert float(rows["squarem"]["evaluations"]) < 90


@pytest.mark.slow
def test_accuracy_on_real_reads(judged, monkeypatch, shared_data):
    """Means agree with Gibbs sampling to half a standard deviation; deviations are too small."""
    monkeypatch.setenv("PGMULT_DATA", str(shared_data("bitseq").parent))
    everything, _ = judged("expression", reads=0, draws=2000)
    assert everything["mean_away_in_sd_median"] < 0.15
    assert everything["mean_away_in_sd_largest"] < 0.75
    assert 0.3 < everything["sd_ratio_median"] < 0.8
    assert everything["total_variation"] < 0.012


@pytest.mark.slow
def test_accuracy_on_mixtures(judged, monkeypatch):
    """Of well separated Gaussians, 20 points each, both say the same, as do half the chains."""
    every = tables_script.five_gaussians
    monkeypatch.setattr(
        accuracy, "five_gaussians", lambda *args, **options: every(*args, **options)[::5]
    )
    default, vague = judged("mixtures")
    assert (default["prior"], vague["prior"]) == ("default", "vague")
    assert default["number"] == 5
    assert abs(default["number_gibbs"] - 5.0) < 0.3
    assert abs(default["score"] - default["score_gibbs"]) < 0.05
    assert default["score_halves_apart"] < 0.05
    assert default["together_away"] < 0.05
    assert default["together_halves_apart"] < 0.05
    assert vague["score"] < default["score"] - 0.05


@pytest.mark.slow
def test_starts_of_topics(made, monkeypatch, shared_data):
    """The default start ends highest and predicts best, for no more time."""
    monkeypatch.setenv("PGMULT_DATA", str(shared_data("nips11").parent))
    *random, sampled = made("starts", topics=10, tolerance=10.0)
    assert (len(random), sampled["start"]) == (3, "sampled, the default")
    for row in random:
        assert float(sampled["bound"]) > float(row["bound"]) + 3000.0
        assert float(sampled["score"]) > float(row["score"]) + 0.02


@pytest.mark.slow
def test_topics_of_real_papers(made, monkeypatch, shared_data):
    """With momentum from the start, Fletcher-Reeves ends 9,000 nats below variational EM."""
    monkeypatch.setenv("PGMULT_DATA", str(shared_data("nips11").parent))
    rows = {row["method"]: row for row in made("topics", topics=10, tolerance=10.0, scale=0.1)}
    bounds = {method: float(row["bound"]) for method, row in rows.items()}
    for method in ("fletcher_reeves", "hestenes_stiefel", "squarem"):
        assert bounds[method] > bounds["vbem"] - 2000.0
    evaluations = {method: float(row["evaluations"]) for method, row in rows.items()}
    assert evaluations["fletcher_reeves"] < 0.75 * evaluations["vbem"]


@pytest.mark.slow
def test_accuracy_on_real_papers(judged, monkeypatch, shared_data):
    """Searches from a sampler's state end higher; deviations are too small."""
    monkeypatch.setenv("PGMULT_DATA", str(shared_data("nips11").parent))
    random, sampled = judged("topics", topics=[10], sweeps=40)
    assert sampled["bound"] > random["bound"] + 2000.0
    assert sampled["score"] > random["score"]
    assert sampled["sd_ratio_median"] < 0.8


def check_word_probabilities(found):
    """Means and variances of p(w | d) against draws of theta and the topics."""
    counts = np.array([[6, 5, 0, 1], [0, 7, 8, 0], [0, 0, 0, 9]])
    problem = TopicProblem(as_corpus(counts), 2, topic_concentration=0.7, word_concentration=0.3)
    rng, draws = np.random.default_rng(0), 200_000
    in_documents = np.array([[4.5, 7.5], [10.0, 5.0], [9.0, 0.0]])
    in_topics = in_documents.T @ (counts / counts.sum(axis=1, keepdims=True))
    theta = np.stack([rng.dirichlet(0.7 + row, draws) for row in in_documents], axis=1)
    topics = np.stack([rng.dirichlet(0.3 + row, draws) for row in in_topics], axis=1)
    simulated = (theta @ topics)[:, counts >= 5]
    means = (
        (smooth + rows) / (smooth + rows).sum(axis=1, keepdims=True)
        for smooth, rows in ((0.7, in_documents), (0.3, in_topics))
    )
    mean, sd = found(problem, *means).mean_and_sd()
    assert np.all(np.abs(mean - simulated.mean(axis=0)) < 5.0 * sd / np.sqrt(draws))
    np.testing.assert_allclose(sd, simulated.std(axis=0), rtol=0.01)


def test_moments_of_word_probabilities():
    right = accuracy.word_probabilities
    check_word_probabilities(right)

    def of_other_concentrations(problem, theta, topics):
        other = TopicProblem(problem.corpus, 2, topic_concentration=1.4, word_concentration=0.6)
        return right(other, theta, topics)

    rejects(check_word_probabilities, of_other_concentrations)
    for both in (right, lambda *given: right(*given) + right(*given)):
        check_word_probabilities(both)
