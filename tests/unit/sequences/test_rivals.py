"""Models of sequences beside their rivals, what comes next, and when the symbol changes."""

import numpy as np
import pytest

import pgmult
from pgmult.sequences import MarkovChain, MultinomialHMM, MultinomialLDS, as_sequences
from pgmult.sequences.answers import NextChange
from pgmult.sequences.scores.one_step import by_draw, scored
from pgmult.sequences.scores.rivals import (
    best_model,
    compare,
    held_by,
    rival_models,
    search_state_dim,
)

pytestmark = pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
T = np.array([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.3, 0.3, 0.4]])


def chain(rng, length):
    path = [0]
    for _ in range(length - 1):
        path.append(int(rng.choice(3, p=T[path[-1]])))
    return path


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    return as_sequences([chain(rng, 120) for _ in range(5)], alphabet=["a", "b", "c"])


def run_of(model, data, **more):
    return pgmult.sample(
        model, data, draws=100, tune=30, chains=2, random_seed=0, progressbar=False, **more
    )


@pytest.fixture(scope="module")
def first_order(data):
    return run_of(MarkovChain(1), data)


def test_leave_one_out_of_a_markov_chain_is_its_dirichlet_law(data):
    """With rows that learn nothing from each other it is (n - 1 + a) / (N - 1 + K a), a = 1."""
    from pgmult.sequences.models.markov import steps_of

    strong = MarkovChain(1, concentration=1e6, strength_shape=3e6, strength_rate=1e6)  # rows: a = 1
    run = pgmult.sample(
        strong, data, draws=1000, tune=5, chains=2, random_seed=1, progressbar=False
    )
    context = steps_of(data, 1).contexts
    counts = np.zeros((4, 3))
    np.add.at(counts, (context, data.symbols), 1.0)
    left = counts[context, data.symbols] - 1.0 + 1.0
    exact = np.log(left / (counts.sum(axis=1)[context] - 1.0 + 3.0)).sum()
    log_p = by_draw(run, data, None, 2000, 0, 0)
    found = scored(log_p, data, True)
    assert found.by_unit.sum() == pytest.approx(exact, abs=0.4)
    plain = scored(log_p, data, False).by_unit.sum()
    assert plain > exact + 3.0, "without leaving out, what was learned by heart counts"


def test_the_right_model_is_not_beaten(first_order):
    found = first_order.compare()
    assert found.names[0] == "the model"
    assert "a Markov chain of order 1" not in found.names, "it is the model itself"
    assert {"shares alone", "a Markov chain of order 2", "a hidden Markov model"} <= {*found.names}
    assert found.best == "the model"
    assert found.gains[found.names.index("shares alone")].sign == 1
    assert all(gain.sign >= 0 for gain in found.gains)


def test_a_wrong_model_is_told_what_to_take(data):
    shuffled = np.random.default_rng(0).permutation(data.symbols)
    loose = as_sequences([shuffled[i : i + 120] for i in range(0, 600, 120)], num_symbols=3)
    found = compare(run_of(MarkovChain(2), loose))
    assert found.best == "shares alone"
    assert found.gains[1].sign <= 0
    assert "say how frequent symbols are" in found.sentences[0].lower()


def test_what_was_held_out_is_told_as_it_is(data):
    seen, later = data.split(100)
    found = run_of(MarkovChain(1), seen).compare(held_out=later)
    assert "held out" in found.how
    assert found.gains[1].sign == 1


def test_the_best_of_several_is_the_simplest_that_is_as_good(data):
    models = {"one": MarkovChain(1), "two": MarkovChain(2)}
    runs = {}
    name, found = best_model(data, models, 0, callback=runs.__setitem__)
    assert name == "one"
    assert set(found.names) == {"one", "two"}
    assert [run.model.order for run in runs.values()] == [1, 2]
    with pytest.raises(ValueError, match="two at least"):
        best_model(data, {"one": MarkovChain(1)})


def test_models_without_inputs_are_among_those_that_are_tried():
    rng = np.random.default_rng(0)
    table = {"state": rng.choice(list("abc"), 60), "heat": rng.normal(size=60)}
    warm = pgmult.read(table).sequences("state", inputs="~ heat")
    assert held_by(MultinomialLDS(2), warm) is warm
    assert held_by(MarkovChain(1), warm).design is None
    name, found = best_model(warm, {"one": MarkovChain(1), "two": MarkovChain(2)}, 0)
    assert name == "one"
    assert len(found.names) == 2


def test_a_size_is_found_by_steps_held_out(data):
    number, found = search_state_dim(data, [2, 1], make_model=MarkovChain)
    assert number == 1
    assert set(found.names) == {"1", "2"}
    assert "last 30 steps" in found.how
    with pytest.raises(ValueError, match="two different numbers or more"):
        search_state_dim(data, [2, 2])


@pytest.mark.slow
def test_dimensions_are_told_by_their_states_after_what_was_seen():
    counts = as_sequences([np.random.default_rng(0).multinomial(20, [0.5, 0.3, 0.2], size=12)])
    number, found = search_state_dim(counts)
    assert number in (1, 2)
    assert "last 3 steps" in found.how


def test_many_symbols_have_no_markov_rival_of_order_two():
    data = as_sequences([np.arange(200) % 100], num_symbols=100)
    names = rival_models(MultinomialLDS(2), data)
    assert "a Markov chain of order 1" in names
    assert "a Markov chain of order 2" not in names
    with pytest.raises(ValueError, match="order must be lower for so many symbols"):
        MarkovChain(4).as_data(data)


@pytest.mark.slow
@pytest.mark.parametrize("model", [MarkovChain(2), MultinomialHMM(3)], ids=["chain", "hidden"])
def test_forecasts_of_models_that_know_their_probabilities(model, data):
    run = run_of(model, data)
    past, ahead = run.predict(), run.forecast(4, totals=3)
    np.testing.assert_allclose(past.mean.sum(axis=1), 1.0)
    np.testing.assert_allclose(ahead.mean.sum(axis=2), 1.0)
    assert ahead.simulated.shape == (200, 5, 4)
    assert (ahead.counts.sum(axis=3) == 3).all()
    drawn = np.stack([(ahead.simulated == k).mean(axis=0) for k in range(3)], axis=2)
    assert np.abs(drawn - ahead.mean).max() < 0.17, "5 sigma of 200 paths"
    near = run.forecast(1, totals=3, simulate_to=4)
    np.testing.assert_array_equal(near.mean, ahead.mean[:, :1])
    np.testing.assert_array_equal(near.simulated, ahead.simulated)
    np.testing.assert_array_equal(near.counts, ahead.counts)
    text = run.report(comparison=False).text(200)
    for told in ("What comes next", "The next change of symbol"):
        assert told in text
    assert run.check().statistics == ("repeats", "run of a step")


def test_probabilities_ahead_are_powers_of_the_transition(data):
    run = run_of(MarkovChain(1), data)
    ahead = run.forecast(3)
    draws = run.stack("rows")[:, 1:4]
    last = [int(data.symbols[end - 1]) for end in data.offsets[1:]]
    exact = np.mean([np.linalg.matrix_power(rows, 3)[last] for rows in draws], axis=0)
    np.testing.assert_allclose(ahead.mean[:, 2], exact, atol=1e-10)


def test_the_next_change_is_counted_in_paths():
    futures = np.array([[[0, 0, 1], [1, 1, 1]], [[2, 0, 0], [0, 1, 1]], [[0, 1, 1], [1, 1, 1]]])
    found = NextChange.of(futures, as_sequences(["ca", "cab"], alphabet="abc"))
    np.testing.assert_allclose(found.lasts[0], [1 / 3, 1 / 3, 1 / 3, 0])
    np.testing.assert_allclose(found.lasts[1], [1 / 3, 0, 0, 2 / 3])
    np.testing.assert_allclose(found.then[0], [0, 2 / 3, 1 / 3])
    np.testing.assert_allclose(found.then[1], [1, 0, 0])
    assert found.quantile(0.5).tolist() == [1, 3]
    table = found.table()
    assert table.columns["now"] == ["a", "b"]
    assert "3 or more" in str(found)
    assert table.columns["lasts"].tolist()[0] == 1
    assert np.isnan(table.columns["lasts"][1])
    assert table.columns["lasts_at_least"].tolist()[1] == 3
    assert "still continues" in found.figure(1).svg()


def test_a_sequence_without_observations_does_not_change():
    data = as_sequences([["a", "b", "b"], [None, None]] * 6, names=[str(i) for i in range(12)])
    run = run_of(MarkovChain(1), data)
    found = run.forecast(4).next_change()
    assert np.isnan(found.lasts[1]).all()
    assert len(found.table()) == 6
    page = run.report(comparison=False, steps=4)
    apart = next(s for s in page.sections if s.title == "Sequences that stand out")
    assert not any("change" in row[1] for row in apart.rows if int(row[0]) % 2)


def test_steps_of_thousands_of_observations_have_scores():
    """Their probabilities are less than the least number."""
    counts = as_sequences([np.full((4, 3), 1000)])
    score = scored(np.full((2, 5, 4), -3300.0), counts, left_out=False)
    assert score.mean == pytest.approx(-1.1)
    assert score.chain_error == 0.0
