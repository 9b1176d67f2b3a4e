"""What an input does to the shares: averages of the predictions at the observed rows."""

import numpy as np
import pytest

import pgmult
from pgmult.core.averages import average
from pgmult.fields import MultinomialGP
from pgmult.fields.covariances import Matern
from pgmult.fields.predictions import rows


@pytest.fixture(scope="module")
def run():
    rng = np.random.default_rng(0)
    rows = {"year": [], "place": [], "name": [], "n": []}
    for year in (1990, 1995, 2000):
        for place in ("NY", "TX"):
            if (year, place) == (2000, "TX"):
                continue
            for name, n in zip("AB", rng.multinomial(20, [0.4, 0.6]), strict=True):
                for key, value in zip(rows, (year, place, name, n), strict=True):
                    rows[key].append(int(value) if isinstance(value, np.integer) else value)
    data = pgmult.read(rows).field(
        ["year", "place"], "name", count="n", places={"place": pgmult.datasets.us_states()}
    )
    return pgmult.sample(
        MultinomialGP(Matern(1.5, 5.0)), data, keep="psi", draws=8, tune=4, chains=1,
        random_seed=0, progressbar=False,
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
class TestEffects:
    def test_they_average_the_rows_that_have_the_value(self, run):
        equal, found = run.effects("year", weight="equal"), run.effects("year")
        each = run.predict(inputs="seen")
        rows = {name: np.asarray(cells) for name, cells in each.columns_of("row").items()}
        counts = {place: run.data.totals[rows["place"] == place].sum() for place in rows["place"]}
        assert found.axes == ("year", "category")
        for place, year in enumerate((1990, 1995, 2000)):
            there = rows["year"] == year
            expected = each.draws[:, there].mean(axis=1)
            np.testing.assert_allclose(equal.draws[:, place], expected)
            weights = [counts[name] for name in rows["place"][there]]
            expected = np.average(each.draws[:, there], axis=1, weights=weights)
            np.testing.assert_allclose(found.draws[:, place], expected)
        same = run.effects("year", weight={str(name): float(n) for name, n in counts.items()})
        np.testing.assert_allclose(same.draws, found.draws)
        with pytest.raises(ValueError, match="weight must have a population of every place"):
            run.effects("year", weight={"TX": 1.0})
        np.testing.assert_allclose(
            found.difference("year", 2000, 1990).draws, found.draws[:, 2] - found.draws[:, 0]
        )

    def test_other_inputs_are_held_or_told_apart(self, run):
        each = run.predict(inputs="seen")
        rows = {name: np.asarray(cells) for name, cells in each.columns_of("row").items()}
        there = (rows["year"] == 1995) & (rows["place"] == "TX")
        held = run.effects("year", [1995], at={"place": "TX"})
        np.testing.assert_allclose(held.draws[:, 0], each.draws[:, there].mean(axis=1))
        both = run.effects("year", [1990, 1995], by="place")
        assert both.axes == ("year", "place", "category")
        np.testing.assert_allclose(both.draws[:, 1, 1], held.draws[:, 0])

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ({"column": "age"}, "column must be one of year, place"),
            ({"column": "year", "values": [1991]}, "values"),
            ({"column": "year", "at": {"place": "CA"}}, "at"),
            ({"column": "year", "by": "year"}, "by must be one of place"),
            ({"column": "year", "by": "place"}, "none was of year 2000, place TX"),
        ],
    )
    def test_refusals(self, run, arguments, said):
        with pytest.raises(ValueError, match=said):
            run.effects(**arguments)


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_rows_of_a_run_are_averaged_as_they_are_and_at_other_inputs():
    """Setting an input is what predicting at it and averaging would give."""
    table = {"year": [1990, 1991, 1995, 1990], "name": ["Ada", "Ben"] * 2, "n": [30, 9, 10, 30]}
    data = pgmult.read(table).field("year", "name", count="n")
    run = pgmult.sample(
        pgmult.fields.MultinomialGP(Matern(1.5, 10.0)), data,
        draws=20, tune=10, chains=1, random_seed=0, progressbar=False,
    )  # fmt: skip
    np.testing.assert_allclose(
        average(over=rows(run)).draws, run.predict(inputs="seen").draws.mean(axis=1)
    )
    later = average(over=rows(run), set={"year": 1993})
    np.testing.assert_allclose(later.draws, run.predict({"year": [1993] * 3}).draws.mean(axis=1))
