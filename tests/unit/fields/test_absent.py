"""Categories that were not counted somewhere: no observation on their sticks there."""

import warnings

import numpy as np
import pytest
from scipy.special import xlogy

import pgmult
from examples.papers.linderman2015.softmax_gp import LogisticNormalGP
from pgmult.cli import commands as cli
from pgmult.cli.runs import StoredRun
from pgmult.fields import MultinomialGP, as_field
from pgmult.fields.covariances import Matern
from pgmult.fields.family import FIELDS
from pgmult.fields.tables import field_of, read_field
from pgmult.links import StickBreaking

pytestmark = pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")  # short on purpose
COUNTED = np.array([[1, 1, 0, 1], [1, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]], dtype=bool)
COUNTS = np.array([[3, 9, 0, 2], [4, 5, 0, 0], [6, 7, 8, 1], [2, 8, 3, 3]])


def field(at=(0.0, 1.0, 2.0, 3.0), **more):
    return as_field(np.array(at), COUNTS, counted=COUNTED, categories=list("abcd"), **more)


def conditional(pi):
    """Probabilities given that a category is one that was counted."""
    kept = np.where(COUNTED, pi, 0.0)
    return kept / kept.sum(axis=-1, keepdims=True)


def test_what_was_not_counted_comes_first():
    assert field().order.tolist() == [2, 3, 1, 0]
    assert field(order=[2, 3, 0, 1]).order.tolist() == [2, 3, 0, 1]
    with pytest.raises(ValueError, match="order must have 'c', which was not counted everywhere"):
        field(order="given")


def test_rows_are_multinomial_among_what_was_counted():
    data, model = field(new_inputs=[4.0]), MultinomialGP(Matern(1.5, 2.0))
    state = model.prior(np.random.default_rng(0), data)
    free = StickBreaking(data.order).probs(state.psi[:4])
    expected = conditional(free)
    np.testing.assert_allclose(model.pi(state, data), expected, rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(model.row_probs({"psi": state.psi}, data), expected, atol=1e-300)
    fit = xlogy(COUNTS, np.where(COUNTED, expected, 1.0)).sum()
    assert model.log_likelihood(state, data) == pytest.approx(fit, rel=1e-12)
    drawn = model.simulate(np.random.default_rng(1), state, data)
    assert drawn.totals.tolist() == data.totals.tolist()
    assert not drawn.counts[~COUNTED].any()
    assert drawn.counted is data.counted


@pytest.mark.parametrize("at", [(0.0, 1.0, 2.0, 3.0), (0.0, 0.0, 0.0, 1.0)])
def test_their_sticks_have_no_observation(at):
    """Binomials and potentials of a site, of several rows that differ in what was counted, too."""
    data, model = field(at), MultinomialGP(Matern(1.5, 2.0))
    taken, reaching = model.binomials(data)
    expected = np.zeros((2, *taken.shape))
    for row, site in enumerate(data.row_sites):
        left = COUNTS[row].sum()
        for j, k in enumerate(data.order[:-1]):
            if COUNTED[row, k]:
                expected[:, site, j] += COUNTS[row, k], left
            left -= COUNTS[row, k]
    np.testing.assert_array_equal((taken, reaching), expected)
    psi = np.random.default_rng(0).normal(size=(data.num_sites, 3))
    found = [model.augment(np.random.default_rng(i), psi, data) for i in range(4000)]
    np.testing.assert_array_equal(found[0].h, expected[0] - 0.5 * expected[1])
    J = np.array([each.J for each in found])
    mean = expected[1] * np.tanh(psi / 2.0) / (2.0 * psi)
    assert (np.abs(J.mean(axis=0) - mean) <= 5.0 * J.std(axis=0) / np.sqrt(len(J)) + 1e-12).all()


def test_the_posterior_is_that_of_the_others_where_sticks_are_alone():
    """With all of a category's counts taken away, the other sticks are those without it."""
    rng = np.random.default_rng(3)
    counts = np.column_stack([rng.multinomial(50, [0.5, 0.3, 0.2], size=6), np.zeros(6, int)])
    counted = np.ones((6, 4), dtype=bool)
    counted[:, 3] = False
    model = MultinomialGP(Matern(1.5, 2.0))
    settings = {"draws": 400, "tune": 100, "chains": 2, "random_seed": 0, "progressbar": False}
    whole = as_field(np.arange(6.0), counts, counted=counted)
    alone = as_field(np.arange(6.0), counts[:, :3])
    one = pgmult.sample(model, whole, keep=["pi"], **settings).stack("pi")
    two = pgmult.sample(model, alone, keep=["pi"], **settings).stack("pi")
    assert (one[..., 3] < 1e-200).all()
    np.testing.assert_allclose(one[..., :3].mean(axis=0), two.mean(axis=0), atol=0.03)
    np.testing.assert_allclose(one[..., :3].std(axis=0), two.std(axis=0), atol=0.015)


@pytest.mark.parametrize(
    ("counted", "message"),
    [
        (COUNTED[:3], "counted must be True or False for each of counts, .4, 4."),
        (COUNTED.astype(int), "got int64 of shape"),
        (~COUNTED, "counts must be 0 where a category was not counted, got 3 of 'a' at row 0"),
        (COUNTED & [[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 0]] == 1, "got 3 of 'd'"),
    ],
)  # fmt: skip
def test_what_cannot_be(counted, message):
    with pytest.raises(ValueError, match=message):
        as_field(np.arange(4.0), COUNTS, counted=counted, categories=list("abcd"))


def test_sets_that_are_not_nested_are_refused():
    counts, counted = np.array([[1, 0, 4], [0, 2, 3]]), np.array([[1, 0, 1], [0, 1, 1]], dtype=bool)
    told = "got 'a' without 'b' at row x and 'b' without 'a' at row y .leave one of them out"
    with pytest.raises(ValueError, match=told):
        as_field([0.0, 1.0], counts, counted=counted, categories=list("abc"), names=["x", "y"])


def test_other_models_say_that_they_do_not_take_it():
    with pytest.raises(ValueError, match="MultinomialGP takes them"):
        LogisticNormalGP(Matern(1.5, 2.0)).as_data(field())


def test_it_stays_with_the_data(tmp_path):
    data = field()
    assert data.with_counts(COUNTS * 2).counted is data.counted
    np.testing.assert_array_equal(data.with_new_inputs([9.0]).counted, COUNTED)
    model, few = MultinomialGP(Matern(1.5, 2.0)), {"draws": 3, "tune": 1, "chains": 1}
    run = pgmult.sample(model, data, random_seed=0, store=tmp_path / "r", progressbar=False, **few)
    again = pgmult.load(tmp_path / "r")
    np.testing.assert_array_equal(again.data.counted, COUNTED)
    found = again.predict(inputs="seen")
    assert (found.mean[~COUNTED] < 1e-200).all()
    assert again.check().table() is not None
    assert run.is_of(data)
    assert not run.is_of(as_field(np.arange(4.0), COUNTS, categories=list("abcd")))


# --------------------------------------------------------------------------- tables


def cases(begin=1974, share=0.2, zeros=True):
    """Measles everywhere, Mumps from a year on."""
    rng = np.random.default_rng(0)
    rows = []
    for year in range(1970, 1978):
        for state in ("TX", "OH", "NY"):
            n = rng.multinomial(200, [0.5, 0.5 - share, share])
            rows += [(year, state, "Measles", n[0]), (year, state, "Polio", n[1])]
            if year >= begin:
                rows.append((year, state, "Mumps", n[2]))
    columns = zip(*[row for row in rows if zeros or row[3]], strict=True)
    return dict(zip(["year", "state", "disease", "n"], map(list, columns), strict=True))


READ = {"inputs": ["year", "state"], "category": "disease", "count": "n",
        "places": {"state": pgmult.datasets.us_states()}}  # fmt: skip


def test_a_category_that_begins_at_all_places_is_guessed_and_told():
    told = "'Mumps' has no row at year 1970 to 1973, anywhere: taken for not counted there"
    with pytest.warns(UserWarning, match=told):
        data = field_of(cases(), **READ)
    assert data.categories[data.order[0]] == "Mumps"
    years = data.columns["year"]
    np.testing.assert_array_equal(data.counted[:, 1], years >= 1974)
    assert data.counted[:, [0, 2]].all()


@pytest.mark.parametrize(
    ("absent", "missing"), [("zero", None), ("not counted", 12)]
)  # fmt: skip
def test_what_is_said_is_not_guessed(absent, missing):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = field_of(cases(), absent=absent, **READ)
    assert (None if data.counted is None else np.count_nonzero(~data.counted)) == missing
    assert data.categories[data.order[0]] == ("Measles" if missing is None else "Mumps")


def test_rare_ones_and_single_gaps_are_zeros():
    data, guess, zeros, _ = read_field(cases(share=0.005, zeros=False), **READ)
    assert (data.counted, guess) == (None, "")
    assert "combinations of inputs and categories have no row, as 'Mumps' at 1970" in zeros
    table = cases(1970)
    for column in table.values():
        del column[2]  # Mumps of one state in 1970
    data, guess, zeros, _ = read_field(table, **READ)
    assert (data.counted, guess) == (None, "")
    assert zeros == (
        "1 of 72 combinations of inputs and categories have no row, as 'Mumps' at 1970, TX: taken"
        " for 0"
    )


def test_of_those_that_are_not_nested_the_one_with_fewer_counts_is_zero():
    table = cases()
    rows = zip(*table.values(), strict=True)
    kept = [row for row in rows if row[2] != "Polio" or row[0] < 1972]
    kept = [(y, s, d, n // 5 if d == "Polio" else n) for y, s, d, n in kept]
    columns = map(list, zip(*kept, strict=True))
    data, guess, zeros, _ = read_field(dict(zip(table, columns, strict=True)), **READ)
    assert np.count_nonzero(~data.counted, axis=0).tolist() == [0, 12, 0]
    assert "'Polio' has no row at year 1972 to 1977, anywhere: taken for 0, as it was" in guess
    assert zeros.startswith("18 of 72")


def test_not_counted_that_is_not_nested_is_refused():
    table = cases(1970)
    for column in table.values():
        del column[2], column[-3]  # Mumps of a state in 1970, Measles of another in 1977
    with pytest.raises(ValueError, match="got 'Measles' without 'Mumps' at row 1970, TX and"):
        field_of(table, absent="not counted", **READ)
    assert field_of(table, absent="zero", **READ).counted is None
    with pytest.raises(ValueError, match="absent must be"):
        field_of(table, absent="unknown", **READ)


def test_at_the_command_line(capsys, tmp_path):
    table = cases()
    lines = [",".join(map(str, row)) for row in zip(*table.values(), strict=True)]
    path = tmp_path / "cases.csv"
    path.write_text("\n".join(["year,state,disease,n", *lines]) + "\n")
    given = ["fields", "fit", str(path), "--inputs", "year", "state", "--places", "us-states",
             "--category", "disease", "--count", "n", "--draws", "30", "--tune", "10", "--chains",
             "2", "--quiet"]  # fmt: skip
    assert cli.main([*given, "--out", str(tmp_path / "a")]) == 0
    out = capsys.readouterr().out
    assert "24 inputs, not counted Mumps at 12 of them" in out
    assert "taken for not counted there, instead of 0 (--absent zero or not-counted" in out
    run = StoredRun.open(tmp_path / "a", FIELDS)
    assert run.posterior.data.counted is not None
    page = tmp_path / "page.html"
    assert cli.main(["fields", "report", str(tmp_path / "a"), "--out", str(page)]) == 0
    capsys.readouterr()
    assert cli.main(["fields", "show", str(tmp_path / "a")]) == 0
    said = capsys.readouterr().out
    assert "Not everywhere counted: Mumps" in " ".join(said.split())
    assert "From year 1974 to 1977" in " ".join(said.split())
    assert cli.main([*given, "--absent", "zero", "--out", str(tmp_path / "b")]) == 0
    out = capsys.readouterr().out
    assert "12 of 72 combinations of inputs and categories have no row" in out
    assert StoredRun.open(tmp_path / "b", FIELDS).posterior.data.counted is None
