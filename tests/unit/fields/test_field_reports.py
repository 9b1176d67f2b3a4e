"""Reports and checks of fields: what they say is what the draws say."""

import numpy as np
import pytest

import pgmult
from pgmult.core.figures.base import panels
from pgmult.fields import MultinomialGP, check, compare, predict, report
from pgmult.fields.covariances import Matern, White
from pgmult.fields.reports import hyperparameter_names
from pgmult.fields.tables import field_of
from pgmult.sampling import Origin

YEARS = np.arange(2000, 2012)


def table(rng, scatter=0.0):
    """Two places over years; A rises. With scatter, shares vary from year to year and place."""
    rows = {"year": [], "place": [], "name": [], "n": []}
    truth = {}
    for place in ("east", "west"):
        for i, year in enumerate(YEARS):
            shares = np.array([0.2 + 0.04 * i, 0.3, 0.5 - 0.04 * i])
            truth[year, place] = shares
            noisy = rng.dirichlet(shares / scatter) if scatter else shares
            for name, n in zip("ABC", rng.multinomial(200, noisy), strict=True):
                for key, value in zip(rows, (year, place, name, n), strict=True):
                    rows[key].append(value)
    return rows, truth


def drawn(data, spread=0.05, draws=150, seed=0, overdispersion=0.0):
    """A posterior around the truth, without sampling."""
    model = MultinomialGP(
        Matern(1.5, 5.0, active=[0]) * Matern(0.5, 1.0, active=[1]), overdispersion=overdispersion
    )
    rng, link = np.random.default_rng(seed), model.link(data)
    shares = np.array([[0.2 + 0.04 * (y - 2000), 0.3, 0.5 - 0.04 * (y - 2000)]
                       for y in data.sites[:, 0]])  # fmt: skip
    psi = link.inverse(shares) + spread * rng.standard_normal((2, draws, data.num_sites, 2))
    arrays = {"psi": psi, "pi_new": link.probs(psi[:, :, data.new_sites]),
              "hyperparameters": np.exp(0.1 * rng.standard_normal((2, draws, 1, 2)))}  # fmt: skip
    return pgmult.Posterior(
        arrays, dims={k: model.dims[k] for k in arrays}, origin=Origin.of(model, data)
    )


PLACES = {"place": {"east": 1.0, "west": 0.0}}


def field(scatter=0.0, new=None):
    rows, truth = table(np.random.default_rng(3), scatter)
    data = field_of(
        rows, inputs=["year", "place"], category="name", count="n", places=PLACES, new_inputs=new
    )
    return data, truth


def test_verdict_names_what_rose_and_what_fell():
    data, truth = field(new={"year": [2012], "place": ["east"]})
    hidden = np.zeros_like(data.counts)
    hidden[-1] = data.counts[-1]
    data = data.with_counts(data.counts - hidden)
    known = np.array([truth[y, p] for y, p in zip(*data.columns.values(), strict=True)])
    known = np.vstack([known, [0.68, 0.3, 0.02]])
    found = report(drawn(data), data=data, title="t", held_out=hidden, truth=known)
    said = " ".join(found.verdict)
    where = "(mean over 2 places, weighted by their counts)"
    assert f"From year 2000 to 2011 {where} A rose most: from 0.20 to 0.64" in said
    assert "C fell most" in said
    assert "Intervals of the 200 counts at 1 inputs that were held out" in said
    assert "The data have one unit, too few to compare the model with" in said
    assert "The truth is known here: the 90 % intervals hold" in said
    assert "The chains agree on the probabilities" in said
    names = [section.title for section in found.sections]
    assert "At the new inputs" in names
    assert "no data" in found.html(), "the hidden year is marked"
    assert "2012, east" in found.text()
    rise = found.sections[0].rows[0]
    assert rise[0] == "A"
    assert rise[3].mean == pytest.approx(0.44, abs=0.02)


def test_what_was_not_seen_is_told_and_marked():
    rows, _ = table(np.random.default_rng(3))
    kept = np.array(rows["year"]) != 2005
    rows = {key: np.array(values)[kept] for key, values in rows.items()}
    rows["n"] = np.where(rows["place"] == "west", 0, rows["n"])
    data = field_of(rows, inputs=["year", "place"], category="name", count="n", places=PLACES)
    found = report(drawn(data), data=data, title="t")
    assert "No counts at west: predictions there come from other places alone." in (found.verdict)
    east, west = (figure.svg() for figure in found.sections[1].figures[:2])
    assert east.count('class="gap"') == 2, "the year that is left out, and the legend"
    assert west.count('class="gap"') == 13, "every year"


def test_an_axis_of_dates_has_dates():
    rows, _ = table(np.random.default_rng(3))
    months = (np.array(rows["year"]) - 2000).astype("timedelta64[M]")
    rows["day"] = (np.datetime64("2000-02") + months).astype("M8[D]")
    data = field_of(rows, inputs=["day", "place"], category="name", count="n", places=PLACES)
    found = report(drawn(data), data=data, title="t", comparison=False)
    assert found.verdict[0].startswith("From day 2000-02-01 to 2001-01-01 (mean over 2 places")
    figure = panels(found.sections[1].figures)
    for month in ("2000-04", "2000-07", "2000-10", "2001-01"):
        assert f">{month}</text>" in figure
    assert ">2000.5</text>" not in figure
    covariance = Matern(1.5, 5.0, active=[0])
    assert hyperparameter_names(covariance, data) == ["length scale of day, in years (Matern)"]


def test_who_leads_is_told_with_its_probability():
    data = field_of(
        {"year": [1, 1, 2, 2], "name": ["A", "B"] * 2, "n": [60, 40, 90, 10]},
        inputs="year", category="name", count="n",
    )  # fmt: skip
    model = MultinomialGP(Matern(1.5, 5.0), overdispersion=0.0)
    pi = np.tile([0.4, 0.6], (2, 100, 2, 1))
    pi[:, :, 1] = np.array([0.9, 0.1])
    psi = model.link(data).inverse(pi)
    posterior = pgmult.Posterior(
        {"psi": psi}, dims={"psi": model.dims["psi"]}, origin=Origin.of(model, data)
    )
    (said,) = (s for s in report(posterior, data=data, title="t").verdict if "probable" in s)
    assert said == (
        "Most probable at year 2: A, 0.90 [0.90, 0.90] (90 % interval); that it is the first is"
        " all but certain."
    )


def test_chains_that_differ_are_not_praised():
    data, _ = field()
    posterior = drawn(data)
    psi = np.array(posterior["psi"])
    psi[1] += 1.0
    apart = pgmult.Posterior({"psi": psi}, dims={"psi": ("site", "stick")}, origin=Origin.of(
        posterior.model, data))  # fmt: skip
    assert "Do not rely on this yet" in report(apart, data=data, title="t").verdict[0]


def test_a_map_is_drawn_where_places_are_states():
    data, _ = field()
    found = report(drawn(data), data=data, title="t", tiles={"east": "NY", "west": "CA"})
    (figure,) = (panels(s.figures) for s in found.sections if s.title == "The map at year 2011")
    assert figure.count("<svg") == 3
    assert "<title>NY:" in figure
    assert not [s for s in report(drawn(data), data=data, title="t").sections if "map" in s.title]


def test_parameters_are_named_by_their_columns():
    data, _ = field()
    covariance = 2.0 * Matern(1.5, 5.0, active=[0]) + White(0.1)
    assert hyperparameter_names(covariance, data) == [
        "variance (Constant)",
        "length scale of year (Matern)",
        "variance of year, place (White)",
    ]


def test_rows_are_predicted_by_any_number_of_draws():
    data, _ = field()
    posterior = drawn(data)
    every = predict(posterior, data=data, inputs="seen", max_draws=None)
    some = predict(posterior, data=data, inputs="seen", max_draws=7)
    chosen = np.linspace(0, 299, 7).astype(int)
    np.testing.assert_array_equal(some.draws, every.draws[chosen])
    assert every.labels["row"]["place"].tolist() == data.columns["place"].tolist()
    with pytest.raises(ValueError, match="must have kept pi"):
        predict(
            pgmult.Posterior({"x": np.zeros((1, 2))}, origin=Origin.of(posterior.model, data)),
            data=data,
        )


def test_check_passes_what_fits_and_refuses_what_does_not():
    data, _ = field()
    fits = check(drawn(data, spread=0.01), data=data)
    assert 0.05 < fits.p_values[0] < 0.95
    assert "agree with the data in" in fits.verdict
    rough, _ = field(scatter=0.05)
    found = check(drawn(rough, spread=0.01), data=rough)
    assert found.p_values[0] < 0.01
    assert "vary more than the model predicts: try overdispersion=, or a rougher" in found.verdict
    wider = drawn(rough, spread=0.01, overdispersion=0.1)
    assert "vary more than the model predicts: try a rougher" in check(wider, data=rough).verdict


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda run: check(None, data=run.data), "^run must be a Posterior"),
        (lambda run: report(3, data=run.data), "^run must be a Posterior"),
        (lambda run: report(run, 3), "^page must be a path"),
        (lambda run: compare("run", run), "^run must be a Posterior"),
        (lambda run: compare(run, run, names=("one",)), "^names must be two"),
        (lambda run: compare(run, run, held_out=3), "^held_out must have shape"),
        (lambda run: predict(run, [[2013.0, 1.0]]), "kept beta to predict at new inputs"),
    ],
)
def test_questions_refuse_what_they_cannot_use(ask, words):
    with pytest.raises((TypeError, ValueError), match=words):
        ask(drawn(field()[0]))


def test_notebooks_show_a_table():
    data, _ = field()
    page = predict(drawn(data), data=data, inputs="seen", max_draws=None)._repr_html_()
    assert "<td>east</td><td>A</td>" in page
    assert "Probabilities of the categories, 300 draws. Posterior mean" in page


def test_what_was_not_counted_is_neither_drawn_nor_the_end_of_a_change():
    rows, _ = table(np.random.default_rng(3))
    gone = [
        name == "A" and year < 2002 for name, year in zip(rows["name"], rows["year"], strict=True)
    ]
    some = {key: [v for v, out in zip(rows[key], gone, strict=True) if not out] for key in rows}
    data = field_of(
        some, inputs=["year", "place"], category="name", count="n", places=PLACES,
        absent="not counted",
    )  # fmt: skip
    found = report(drawn(data), data=data, title="t", comparison=False)
    figures = next(s for s in found.sections if s.title == "Probabilities along year").figures
    points = {line.name: line.points for line in figures[0].lines}
    assert points["A"][0].tolist() == list(range(2002, 2012)), "no share of what was not counted"
    assert len(points["B"][0]) == 12
    assert np.isfinite(points["A"][1]).all()
    said = found.text()
    assert "as far as all were counted: from 2002 to 2011" in " ".join(said.split())


def test_places_stand_by_name_in_the_table_of_leaders():
    data, _ = field()
    rows = next(
        s for s in report(drawn(data), data=data, title="t", comparison=False).sections
        if s.title.startswith("The most probable")
    ).rows  # fmt: skip
    assert [row[0] for row in rows] == ["east"] * 3 + ["west"] * 3, "as west lies first"
