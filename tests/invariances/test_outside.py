"""Slopes of one link, fitted by another: what is printed stays near the truth."""

import csv

import numpy as np
import pytest
from invariances.frame import write

import pgmult
from pgmult.cli import main

pytestmark = pytest.mark.slow
ANSWERS = ("low", "middle", "high")
VALUES = (-1.5, 0.0, 1.5)


def by_scores(x, arm):
    """A multinomial logit."""
    scores = np.stack([0.0 * x, 0.3 + 0.5 * x - 0.4 * arm, -0.2 + 1.1 * x + 0.5 * arm], axis=1)
    return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)


def by_cuts(x, arm):
    """Proportional odds."""
    above = 1.0 / (1.0 + np.exp([-0.8, 0.9] - (1.2 * x + 0.6 * arm)[:, None]))
    return np.stack([1.0 - above[:, 0], above[:, 0] - above[:, 1], above[:, 1]], axis=1)


def by_steps(x, arm):
    """Each step, from low on, by a logistic regression."""
    first, second = (1.0 / (1.0 + np.exp(-s)) for s in (0.4 + x + 0.5 * arm, -0.3 + 0.7 * x))
    return np.stack([1.0 - first, first * (1.0 - second), first * second], axis=1)


def fitted(folder, truth, words):
    """A run of 2,000 answers; x and arm of each."""
    rng = np.random.default_rng(0)
    x, arm = rng.choice(np.linspace(-1.5, 1.5, 7), 2000), rng.integers(2, size=2000)
    answer = [str(rng.choice(ANSWERS, p=p)) for p in truth(x, arm)]
    write(folder / "t.csv", {"y": answer, "x": x.tolist(), "arm": ["ab"[a] for a in arm]})
    few = ["--draws", "100", "--quiet"]
    fit = ["regression", "fit", folder / "t.csv", "y ~ x + arm", *words, "--out", folder / "run"]
    assert main([str(word) for word in (*fit, *few)]) == 0
    return x, arm


def test_effects_that_are_not_proportional_are_named(tmp_path):
    """Scores by which an arm has more of both ends: no cuts fit them, and the check says so."""
    fitted(tmp_path, by_scores, ["--ordered", *ANSWERS])
    check = pgmult.load(tmp_path / "run").check()
    p = dict(zip(check.statistics, check.p_values, strict=True))
    assert p["proportional odds of arm[T.b]"] < 0.01
    assert "Effects of arm[T.b] differ between categories" in check.verdict


@pytest.mark.parametrize(
    ("truth", "words", "gap"),
    [
        (by_cuts, [], 0.06),
        (by_steps, [], 0.06),
        (by_steps, ["--ordered", *ANSWERS], 0.06),
        (by_scores, ["--link", "stick_breaking"], 0.09),  # sticks follow the order of frequency
    ],
    ids=["cuts, softmax", "steps, softmax", "steps, cuts", "scores, sticks"],
)
def test_probabilities_of_another_link_are_near(tmp_path, truth, words, gap):
    """Effects, comparisons, predictions and population shares."""
    (x, arm), run = fitted(tmp_path, truth, words), tmp_path / "run"
    write(tmp_path / "new.csv", {"x": [*VALUES] * 2, "arm": [*"aaabbb"], "n": [1, 2, 3, 3, 2, 1]})

    def asked(verb, *arguments):
        out = tmp_path / f"{verb}.csv"
        assert main([str(w) for w in ("regression", verb, run, *arguments, "--out", out)]) == 0
        with out.open(newline="") as file:
            rows = [(row["category"], float(row["mean"])) for row in csv.DictReader(file)]
        means = {name: [mean for category, mean in rows if category == name] for name in ANSWERS}
        return np.array([means[name] for name in ANSWERS]).T

    ones, cells = np.ones(2000), truth(np.array([*VALUES] * 2), np.repeat([0, 1], 3))
    expected = {
        ("effects", "x", "--values", *VALUES): [truth(v * ones, arm).mean(axis=0) for v in VALUES],
        ("comparisons", "arm"): [(truth(x, ones) - truth(x, 0 * ones)).mean(axis=0)],
        ("predict", tmp_path / "new.csv"): cells,
        ("poststratify", tmp_path / "new.csv", "--weight", "n"): [
            np.average(cells, axis=0, weights=[1, 2, 3, 3, 2, 1])
        ],
    }
    for question, shares in expected.items():
        np.testing.assert_allclose(asked(*question), shares, atol=gap, err_msg=question[0])
