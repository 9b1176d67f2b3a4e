"""Fields beside simple shares: each count told from all the others."""

import numpy as np
import pytest

import pgmult
from pgmult.core.scores import leave_one_out
from pgmult.fields.covariances import GreatCircle, Matern
from pgmult.fields.models.multinomial_gp import MultinomialGP
from pgmult.fields.rivals import compare
from pgmult.fields.tables import field_of
from pgmult.sampling import Origin

YEARS, PLACES, NAMES = range(2000, 2008), ("east", "west"), ("A", "B", "C")


def table(counts):
    """A tidy table of counts, ``(year, place, name)``."""
    cells = [(y, p, n) for y in YEARS for p in PLACES for n in NAMES]
    return {
        "year": [y for y, _, _ in cells],
        "place": [p for _, p, _ in cells],
        "name": [n for _, _, n in cells],
        "n": np.asarray(counts).ravel().tolist(),
    }


def field(counts):
    return field_of(
        table(counts), inputs=["year", "place"], category="name", count="n",
        places={"place": {"east": 0.0, "west": 1.0}},
    )  # fmt: skip


def run_of(data, pi):
    """A posterior with draws of probabilities, ``(chain, draw, row, category)``."""
    model = MultinomialGP(Matern(1.5, 3.0))
    return pgmult.Posterior(
        {"pi": pi}, dims={"pi": model.dims["pi"]}, origin=Origin.of(model, data)
    )


def drawn(data, concentration, seed=0):
    """Rows independent of each other, each with its Dirichlet posterior."""
    rng = np.random.default_rng(seed)
    pi = np.stack([rng.dirichlet(n + concentration, size=(2, 2000)) for n in data.counts], axis=2)
    return run_of(data, pi)


def test_a_row_left_out_is_told_by_its_prior_where_rows_are_independent():
    """Draws that have seen the row, weighted: all that is left of it is the Dirichlet prior."""
    counts = np.random.default_rng(1).multinomial(3, [0.5, 0.3, 0.2], size=(8, 2))
    found = compare(drawn(field(counts), 4.0), max_draws=4000)
    assert found.levels[0] == pytest.approx(-np.log(3.0), abs=0.01)


def test_rivals_are_shares_without_the_row_that_is_told():
    counts = np.random.default_rng(2).multinomial(40, [0.6, 0.3, 0.1], size=(8, 2))
    data = field(counts)
    found = compare(drawn(data, 1.0))
    others = data.counts.sum(axis=0) - data.counts + 0.5
    p = others / others.sum(axis=1, keepdims=True)
    at = found.names.index("pooled shares")
    expected = float((data.counts * np.log(p)).sum() / data.counts.sum())
    assert found.levels[at] == pytest.approx(expected, abs=1e-9)
    assert found.best != "the model", "rows that learn nothing from each other lose here"


def test_last_shares_win_where_a_place_keeps_its_own_and_drifts():
    rng = np.random.default_rng(3)
    up = np.linspace(0.1, 0.8, 8)
    truth = np.stack([np.stack([up, 0.5 - up / 2, 0.5 - up / 2], 1), np.full((8, 3), 1 / 3)], 1)
    counts = np.array([[rng.multinomial(300, p) for p in year] for year in truth])
    data = field(counts)
    wrong = np.tile(np.array([1 / 3] * 3), (2, 50, data.num_rows, 1))
    found = compare(run_of(data, wrong))
    order = sorted(found.names, key=lambda name: -found.levels[found.names.index(name)])
    assert order.index("the rows before and after") < order.index("shares of its place")
    assert order.index("last shares") < order.index("shares of its year")
    assert "predicts a count worse than" in found.sentences[0]


def test_counts_that_were_held_out_are_told_from_what_was_shown():
    counts = np.random.default_rng(4).multinomial(50, [0.5, 0.3, 0.2], size=(8, 2))
    whole = field(counts)
    hidden = np.where((np.arange(whole.num_rows) % 5 == 0)[:, None], whole.counts, 0)
    data = whole.with_counts(whole.counts - hidden)
    run = drawn(data, 1.0)
    found = run.compare(held_out=hidden)
    assert "its row alone" not in found.names, "there is nothing in it"
    mean = np.asarray(run["pi"]).reshape(-1, *hidden.shape)[::10].mean(axis=0)
    assert found.levels[0] == pytest.approx((hidden * np.log(mean)).sum() / hidden.sum(), abs=0.03)


def test_the_report_says_it_first_and_can_leave_it_out():
    counts = np.random.default_rng(5).multinomial(40, [0.5, 0.3, 0.2], size=(8, 2))
    data = field(counts)
    run = drawn(data, 1.0)
    said = run.report(data=data)
    assert said.verdict[0].startswith("The model predicts a count better")
    assert "Does it predict better than simple models?" in [
        section.title for section in said.sections
    ]
    assert "simple models" not in run.report(data=data, comparison=False).text(100)


def test_chains_that_differ_make_the_error_larger():
    """The same pooled draws, dealt to chains that agree and to chains that do not."""
    counts = np.random.default_rng(6).multinomial(30, [0.5, 0.3, 0.2], size=(8, 2))
    data = field(counts)
    rng = np.random.default_rng(7)
    high = rng.dirichlet([50, 30, 20], size=(200, data.num_rows))
    low = rng.dirichlet([20, 30, 50], size=(200, data.num_rows))
    apart = compare(run_of(data, np.stack([high, low])), max_draws=400)
    both = np.stack(
        [np.concatenate([high[:100], low[:100]]), np.concatenate([high[100:], low[100:]])]
    )
    together = compare(run_of(data, both), max_draws=400)
    assert apart.levels[0] == pytest.approx(together.levels[0], abs=1e-6)
    assert apart.gains[1].error > 3.0 * together.gains[1].error
    assert leave_one_out(np.zeros((2, 30, 1))).log_p[0] == 0.0


def test_nearest_places_are_nearest_on_the_sphere():
    """Islands on both sides of 180 degrees go one way, those far from there the other."""
    longitude = [176.0, 177.0, 178.0, 179.0, -179.0, -178.0, -177.0]
    longitude += [10.0, 20.0, 30.0, 40.0, -10.0, -20.0, -30.0]
    inputs = [[year, -17.0, x] for year in range(2000, 2010) for x in longitude]
    dateline = np.tile(np.abs(longitude) > 90.0, 10)
    high = np.repeat(np.arange(10) % 2 == 0, 14) ^ dateline
    counts = np.where(high[:, None], [80, 20], [20, 80])
    data = pgmult.fields.as_field(inputs, counts)
    pi = np.full((2, 20, data.num_rows, 2), 0.5)
    levels = {}
    for name, covariance in [
        ("sphere", GreatCircle(1000.0, latitude=1, longitude=2)),
        ("plane", Matern(0.5, 10.0, active=[1, 2])),
    ]:
        model = MultinomialGP(2.0 * Matern(1.5, 3.0, active=[0]) * covariance)
        run = pgmult.Posterior(
            {"pi": pi}, dims={"pi": model.dims["pi"]}, origin=Origin.of(model, data)
        )
        found = compare(run)
        levels[name] = found.levels[found.names.index("its nearest places")]
    entropy = 0.8 * np.log(0.8) + 0.2 * np.log(0.2)
    assert levels["sphere"] == pytest.approx(entropy, abs=0.002)
    assert levels["plane"] < entropy - 0.02


SAME = {
    "rows from the last to the first": lambda t: {n: v[::-1] for n, v in t.items()},
    "columns from the last to the first": lambda t: dict(reversed(t.items())),
    "other years": lambda t: t | {"year": [12 * year for year in t["year"]]},
    "two rows for each count": lambda t: {
        n: [k for v in values for k in ((v // 2, v - v // 2) if n == "n" else (v, v))]
        for n, values in t.items()
    },
    "a column besides": lambda t: t | {"note": ["x"] * len(t["n"])},
    "a year without counts": lambda t: {
        n: [*v, {"year": 2013, "place": "east", "name": "A", "n": 0}[n]] for n, v in t.items()
    },
}


@pytest.mark.filterwarnings("ignore:.* like another in every")
@pytest.mark.parametrize("change", SAME)
def test_rivals_are_the_same_for_the_same_table(change):
    """And the model, whose draws belong to years and places."""
    rng = np.random.default_rng(3)
    counts = rng.multinomial(40, [0.5, 0.3, 0.2], size=(8, 2))
    draws = rng.dirichlet([20.0, 12.0, 8.0], size=(8, 2, 2, 50))

    def compared(columns, years=1):
        data = field_of(
            columns, inputs=[name for name in columns if name in ("year", "place")],
            category="name", count="n", places={"place": {"east": 0.0, "west": 1.0}},
        )  # fmt: skip
        rows = zip(data.columns["year"] // years - 2000, data.columns["place"], strict=True)
        pi = [draws[min(int(year), 7), PLACES.index(place)] for year, place in rows]
        return compare(run_of(data, np.stack(pi, axis=2)))

    expected = compared(table(counts))
    found = compared(SAME[change](table(counts)), 12 if change == "other years" else 1)
    assert found.names == expected.names
    np.testing.assert_allclose(found.levels, expected.levels, rtol=1e-6)
