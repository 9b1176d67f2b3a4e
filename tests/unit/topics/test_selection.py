"""Choosing the number of topics by held-out score: the table, what it is paired on, its figure."""

import numpy as np
import pytest

from pgmult import sample
from pgmult.topics import LDA, StructuralTopics, as_corpus, split_tokens, with_covariates
from pgmult.topics.scores import DocumentCompletion
from pgmult.topics.scores.selection import Candidate, TopicChoice, search_num_topics

QUICK = {"draws": 20, "tune": 30, "chains": 1, "progressbar": False}
pytestmark = pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")


@pytest.fixture(scope="module")
def corpus():
    """Four topics of disjoint words, about one and a half topics a document."""
    rng = np.random.default_rng(3)
    topics = np.kron(np.eye(4), np.full((1, 8), 1 / 8))
    theta = rng.dirichlet(np.full(4, 0.2), size=60)
    return as_corpus(np.array([rng.multinomial(30, p) for p in theta @ topics]))


@pytest.fixture(scope="module")
def choice(corpus):
    return search_num_topics(
        corpus, [8, 2, 4], make_model=LDA, documents=30, random_seed=1, **QUICK
    )


def test_too_few_topics_are_told_from_enough(choice):
    two, four, eight = choice.candidates
    assert [row.num_topics for row in choice.candidates] == [2, 4, 8]
    assert two.difference < -5.0 * two.difference_error
    assert four.log_predictive > two.log_predictive
    assert abs(eight.log_predictive - four.log_predictive) < 0.5 * abs(two.difference)
    assert choice.best.difference == choice.best.difference_error == 0.0
    assert all(row.seconds > 0.0 for row in choice.candidates)


def test_the_table_is_one_of_paired_completion_scores(choice, corpus):
    """Done again by hand for one number of topics: same split, same draws, same score."""
    training, held_out = split_tokens(corpus, 30, 0.5, random_seed=1)
    completion = DocumentCompletion(held_out)
    sample(LDA(4), training, callback=completion, random_seed=1, **QUICK)
    score = completion.score()
    row = choice.candidates[1]
    assert row.log_predictive == score.log_predictive
    assert row.difference == pytest.approx(score.mean - choice.best.log_predictive, abs=1e-12)


def made_up(*rows):
    candidates = tuple(Candidate(*row, 0.1, 5.0, seconds=1.0) for row in rows)
    return TopicChoice(candidates, np.zeros((2, len(candidates))))


def test_the_smallest_that_is_not_clearly_worse():
    choice = made_up((5, -7.2, -0.2, 0.05), (10, -7.03, -0.03, 0.02), (20, -7.0, 0.0, 0.0))
    assert choice.best.num_topics == 20
    assert choice.smallest_within().num_topics == 20
    assert choice.smallest_within(2.0).num_topics == 10
    assert choice.smallest_within(4.0).num_topics == 5
    assert str(choice).splitlines()[4].split() == [
        "10", "-7.0300", "-0.0300", "±", "0.0200", "0.100", "5.00", "1.0",
    ]  # fmt: skip
    assert str(choice).startswith("20 topics predict held-out words best.")


def test_the_figure_shows_scores_and_paired_errors():
    choice = made_up((5, -7.2, -0.2, 0.05), (10, -7.0, 0.0, 0.0), (20, -7.03, -0.03, 0.02))
    axes = choice.plot()
    (line,) = axes.get_lines()
    np.testing.assert_array_equal(line.get_xdata(), [5, 10, 20])
    np.testing.assert_array_equal(line.get_ydata(), [-7.2, -7.0, -7.03])
    (band,) = choice.figure().lines[0].bands
    np.testing.assert_allclose(band[1] - band[0], [0.1, 0.0, 0.04])
    assert choice.plot(axes) is axes


@pytest.mark.parametrize(
    ("candidates", "options", "error", "message"),
    [
        ([], {}, ValueError, r"candidates must be different numbers of topics, got \[\]"),
        ([3, 3], {}, ValueError, r"got \[3, 3\]"),
        ([1, 3], {}, ValueError, "candidates must be at least 2, got 1"),
        ([3], {"documents": 1000}, ValueError, "documents must be at most 60"),
    ],
)
def test_what_cannot_be_compared_is_refused(corpus, candidates, options, error, message):
    with pytest.raises(error, match=message):
        search_num_topics(corpus, candidates, make_model=LDA, **options, **QUICK)


def test_topics_of_the_right_number_are_more_coherent(choice):
    two, four, _ = choice.candidates
    assert four.coherence > two.coherence


def test_documents_with_covariates_are_searched_with_them(corpus):
    """They used to be refused."""
    data = with_covariates(corpus, {"x": np.arange(60.0)})
    found = search_num_topics(data, [2, 3], random_seed=1, **QUICK)
    seen = search_num_topics(data, [2, 3], make_model=StructuralTopics, random_seed=1, **QUICK)
    assert [row[:6] for row in found.candidates] == [row[:6] for row in seen.candidates]
    columns = {"x": np.arange(60.0), "who": list("abc") * 20, "party": list("DR") * 30}
    data = with_covariates(corpus, columns, "~ x + (1 | who)", content="~ party")
    both = search_num_topics(data, [2, 4], random_seed=1, **QUICK)
    assert both.best.num_topics == 4
    with pytest.raises(TypeError, match="make_model must be a function"):
        search_num_topics(data, [2], make_model=3)
