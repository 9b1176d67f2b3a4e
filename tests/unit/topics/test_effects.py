"""Effects of covariates: against quadrature and brute force, over chains whose labels differ."""

import numpy as np
import pytest
from topic_runs import repeated, run_of

from pgmult import LogisticNormal, load, sample
from pgmult.topics import CorrelatedTopics, StructuralTopics, as_corpus, effects, with_covariates
from pgmult.topics.summaries import effects as module
from pgmult.topics.summaries import variance_shares
from pgmult.topics.summaries.effects import nesting
from pgmult.topics.summaries.matching import AlignedChain

YEARS = np.array([1990.0, 1995.0, 2000.0, 2005.0, 2010.0, 2020.0])
PARTIES = np.array(["R", "D", "R", "I", "D", "I"])
AUTHORS = np.array(["a", "b", "a", "c", "b", "c"])
COLUMNS = {"year": YEARS, "party": PARTIES, "author": AUTHORS}
TOPICS = np.array([[0.8, 0.1, 0.05, 0.05], [0.1, 0.8, 0.05, 0.05], [0.05, 0.05, 0.1, 0.8]])


@pytest.fixture
def corpus(rng):
    return as_corpus(rng.poisson(2.0, size=(6, 4)), ["salt", "pan", "goal", "ball"])


def known(data, draws):
    return run_of(StructuralTopics(draws["Sigma"].shape[-1]), data, **draws)


def point_mass(data, coefficients, Sigma, *random):
    draws = {"coefficients": coefficients, "Sigma": Sigma}
    draws |= dict(zip(("effects", "effect_variances"), random, strict=False))
    return known(data, {name: x[None, None] for name, x in draws.items()})


def every(data, draws, given=None):
    """Shares at each year and party, and the rows of the design there."""
    found = effects(draws, "year", by="party", num_simulated=2, data=given)
    table = {
        "year": np.tile(found.labels["year"], 3), "party": np.repeat(found.labels["party"], 6)
    }  # fmt: skip
    return found.mean.reshape(18, -1), data.design.rows(table)


def test_without_scatter_a_share_is_the_link_of_the_mean(rng, corpus):
    data = with_covariates(corpus, COLUMNS, "~ year + party")
    coefficients = rng.normal(size=(4, 3))
    found, rows = every(data, point_mass(data, coefficients, 1e-16 * np.eye(3)))
    raw = np.exp(rows @ coefficients)
    np.testing.assert_allclose(found, raw / raw.sum(axis=1, keepdims=True), atol=1e-7)


# ------------------------------------------------------------------ what is averaged over


def brute_force(rng, data, settings, coefficients, Sigma, u, rho, *, rows, new_author, size=20_000):
    """Each setting by documents drawn one by one, with authors of their own."""
    shares = []
    for setting in settings:
        chosen = rng.integers(len(rows["year"]), size=size)
        table = {name: np.asarray(column)[chosen] for name, column in rows.items()} | setting
        x = data.design.rows({name: table[name] for name in ("year", "party")})
        author = np.array([list("abc").index(a) for a in rows["author"]])[chosen]
        level = rng.standard_normal((size, 3)) @ np.linalg.cholesky(rho * Sigma).T
        own = level if new_author else u[author]
        noise = rng.standard_normal((size, 3)) @ np.linalg.cholesky(Sigma).T
        shares.append(LogisticNormal().probs(x @ coefficients + own + noise).mean(axis=0))
    return np.array(shares)


@pytest.mark.parametrize("scope", ["population", "documents"])
def test_effects_are_those_of_documents_drawn_one_by_one(rng, corpus, scope):
    """All rows of the other columns, and a new author's level or that of the documents' own."""
    data = with_covariates(corpus, COLUMNS, "~ year * party + (1 | author)")
    coefficients, u = rng.normal(size=(6, 3)), 2.0 * rng.normal(size=(3, 3))
    Sigma, rho = np.array([[0.7, 0.3, 0.0], [0.3, 0.5, -0.2], [0.0, -0.2, 0.4]]), 3.0
    posterior = point_mass(data, coefficients, Sigma, u, np.array([rho]))
    found = effects(posterior, "party", scope=scope, num_simulated=20_000)
    exact = brute_force(
        rng, data, [{"party": np.repeat(p, 20_000)} for p in "DIR"], coefficients, Sigma, u, rho,
        rows=COLUMNS, new_author=scope == "population",
    )  # fmt: skip
    np.testing.assert_allclose(found.mean, exact, atol=5 * 0.5 / np.sqrt(20_000))
    assert ("by a new author" in found.caption) == (scope == "population")
    assert ("in documents such as these" in found.caption) == (scope == "documents")


def test_curves(rng, corpus):
    data = with_covariates(corpus, COLUMNS, "~ s(year, knots=5) + party + (1 | author)")
    posterior = point_mass(
        data, rng.normal(size=(4, 3)), np.eye(3),
        rng.normal(size=(len(data.design.effect_names), 3)), np.full(2, 0.1),
    )  # fmt: skip
    run = effects(posterior, "year", by="party")
    assert run.draws.shape == (1, 3, 6, 3)  # six different years: each of them
    assert run.axes == ("party", "year", "topic")
    np.testing.assert_array_equal(
        run.table().to_dataframe()["mean"], np.moveaxis(run.mean, -1, 0).ravel()
    )


# ------------------------------------------------------------------ chains


def two_chains(rng, corpus):
    """Chains that found the same topics under other numbers, and effects of their own size."""
    data = with_covariates(corpus, {"party": PARTIES})
    order = np.array([2, 0, 1])
    draws = {"coefficients": [], "topics": [], "Sigma": []}
    for strength, labels in ((0.5, np.arange(3)), (1.5, order)):
        theta = LogisticNormal().probs(data.design.rows({"party": ["D", "I", "R"]}) @ (
            strength * np.array([[0.3, -0.2, 0.0], [0.5, 1.0, 0.1], [-1.0, 0.4, -0.3]])
        ))  # fmt: skip
        psi = LogisticNormal().inverse(theta[:, labels])
        draws["coefficients"].append(np.stack([psi[0], psi[1] - psi[0], psi[2] - psi[0]]))
        draws["topics"].append(TOPICS[labels])
        draws["Sigma"].append(1e-16 * np.eye(3))
    draws = {name: np.repeat(np.stack(x)[:, None], 4, axis=1) for name, x in draws.items()}
    return data, known(data, draws)


def check_pooled(found, each):
    """Draws of both chains, the second's topics under the first's numbers."""
    assert len(found.draws) == 8
    np.testing.assert_allclose(found.draws[:4], each[0].draws, atol=1e-7)
    order = np.array([2, 0, 1])
    np.testing.assert_allclose(found.draws[4:, :, order], each[1].draws, atol=1e-7)
    np.testing.assert_allclose(
        found.mean[:, order], 0.5 * (each[0].mean[:, order] + each[1].mean), atol=1e-7
    )


def test_effects_pool_all_chains_with_topics_matched(rng, corpus):
    _, posterior = two_chains(rng, corpus)
    each = [effects(posterior, "party", chain=c, num_simulated=2) for c in (1, 2)]
    check_pooled(effects(posterior, "party", num_simulated=2), each)
    assert "Intervals: within chain 2." in each[1].caption


@pytest.mark.parametrize("mutant", ["one chain", "not matched"])
def test_effects_of_one_chain_or_of_unmatched_topics_are_refused(rng, corpus, mutant, monkeypatch):
    _, posterior = two_chains(rng, corpus)
    each = [effects(posterior, "party", chain=c, num_simulated=2) for c in (1, 2)]
    chains = [AlignedChain(c, slice(None), True) for c in (0, 1)]
    broken = chains[:1] if mutant == "one chain" else chains
    monkeypatch.setattr(module, "aligned_chains", lambda *_: broken)
    with pytest.raises(AssertionError):
        check_pooled(effects(posterior, "party", num_simulated=2), each)


def test_a_topic_that_a_chain_did_not_find_is_left_out_of_its_draws(rng, corpus):
    data, posterior = two_chains(rng, corpus)
    topics = posterior["topics"].copy()
    topics[1] = np.where(topics[1] == 0.8, 0.25, 0.25)  # nothing like the first chain's
    posterior = known(data, {**posterior, "topics": topics})
    found = effects(posterior, "party", num_simulated=2)
    lost = np.isnan(found.draws[4:]).all(axis=(0, 1))
    assert lost.any()
    np.testing.assert_allclose(found.mean[:, lost], found.draws[:4].mean(axis=0)[:, lost])
    assert np.isfinite(found.difference("party", "R", "D").p_above()).all()


# ------------------------------------------------------------------ data and arguments


def test_effects_are_of_the_posteriors_own_data(rng, corpus):
    """Another scaling of the same covariates would give a plausible wrong answer."""
    data = with_covariates(corpus, {"year": YEARS})
    draws = point_mass(data, rng.normal(size=(2, 3)), np.eye(3))
    same = with_covariates(corpus, {"year": YEARS})
    np.testing.assert_array_equal(
        effects(draws, "year", data=same).mean, effects(draws, "year").mean
    )
    other = with_covariates(corpus, {"year": YEARS + np.eye(6)[5]})
    with pytest.raises(ValueError, match="data must be what the posterior was sampled with"):
        effects(draws, "year", data=other)
    plain = run_of(CorrelatedTopics(3), corpus, mu=np.zeros((1, 1, 2)))
    with pytest.raises(ValueError, match="must be of data with covariates"):
        effects(plain, "year")


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_a_run_finds_its_data_and_its_link(corpus, tmp_path):
    data, run = with_covariates(corpus, COLUMNS, "~ year + party"), tmp_path / "run"
    model = StructuralTopics(3, start_sweeps=1)
    options = {"tune": 1, "chains": 2, "random_seed": 1, "progressbar": False}
    kept = sample(model, data, draws=3, **options)
    sample(model, data, draws=3, store=run, **options)
    stored = load(run)
    assert kept.data is data
    assert stored.data.num_documents == 6
    at = {"at": {"year": 2000}, "num_simulated": 2}
    found = effects(stored, "party", **at)
    np.testing.assert_array_equal(found.mean, effects(kept, "party", **at).mean)
    sharp = point_mass(data, stored["coefficients"][0, 0], 1e-16 * np.eye(3))
    sharp.save(tmp_path / "sharp")
    with pytest.raises(ValueError, match="data must be given, for these draws were saved without"):
        effects(load(tmp_path / "sharp"), "year")
    found, rows = every(data, load(tmp_path / "sharp"), given=data)
    psi = rows @ stored["coefficients"][0, 0]
    np.testing.assert_allclose(found, stored.link.probs(psi), atol=1e-7)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"variable": "partei"}, "variable must be a column .* one of year, party, got 'partei'"),
        ({"at": {"yeer": 2000}}, "at must be a column .* got 'yeer'"),
        ({"at": {"year": [1, 2]}}, "at must hold one value of 'year', got"),
        ({"by": "party"}, "by must be another column than variable"),
        ({"at": {"party": ["D", "X"]}}, "'party' must be one of D, I, R, got 'X'"),
        ({"scope": "all"}, "scope must be one of population, documents"),
        ({"probability": 1.5}, "probability must be between 0 and 1"),
        ({"variable": {"year": [1, 2]}}, "variable must be a column .* got {'year': "),
    ],
)
def test_odd_arguments_are_refused_in_one_sentence(rng, corpus, change, message):
    data = with_covariates(corpus, COLUMNS, "~ year + party")
    draws = point_mass(data, rng.normal(size=(4, 3)), np.eye(3))
    with pytest.raises(ValueError, match=message):
        effects(draws, **({"variable": "party"} | change))


def test_settings_to_compare_are_named(rng, corpus):
    data = with_covariates(corpus, COLUMNS, "~ year + party")
    draws = point_mass(data, rng.normal(size=(4, 3)), np.eye(3))
    found = effects(draws, "year", by="party", at={"year": [1990, 2020]}, num_simulated=4)
    rise = found.difference("year", 2020, 1990)
    assert rise.labels["party"] == ["D", "I", "R"]
    assert "year 2020 less year 1990." in str(rise).replace("\n", " ")
    apart = rise.difference("party", "R", "D")
    np.testing.assert_allclose(apart.draws, rise.draws[:, 2] - rise.draws[:, 0])
    with pytest.raises(ValueError, match="'party' must be one of D, I, R, got 'X'"):
        rise.difference("party", "R", "X")
    np.testing.assert_allclose(rise.take([3, 1]).mean, rise.mean[:, [2, 0]])
    assert list(rise.table().columns)[:3] == ["topic", "words", "party"]
    with pytest.raises(ValueError, match="'year' must be one of 1990, 2020, got '2000'"):
        found.difference("year", 2000, 1990)


def test_shares_of_variance_are_those_of_the_draws(rng, corpus):
    data = with_covariates(corpus, COLUMNS, "~ s(year, knots=5) + (1 | author)")
    rho = rng.gamma(1.0, size=(2, 30, 2))
    model = StructuralTopics(3)
    posterior = run_of(model, data, effect_variances=rho)
    table = variance_shares(posterior).to_dataframe()
    shares = rho / (1.0 + rho.sum(axis=2, keepdims=True))
    np.testing.assert_allclose(table["mean"], shares.mean(axis=(0, 1)))
    np.testing.assert_allclose(table["upper"], np.quantile(shares, 0.95, axis=(0, 1)))
    assert "(1 | author)" in str(variance_shares(posterior))
    plain = with_covariates(corpus, COLUMNS, "~ year")
    with pytest.raises(ValueError, match="run must be of a formula with random terms"):
        variance_shares(run_of(model, plain, x=np.zeros((1, 1))))


def test_new_authors_add_their_own_covariance(rng, corpus):
    """Against quadrature."""
    data = with_covariates(corpus, COLUMNS, "~ year + (1 | author)")
    coefficients = rng.normal(size=(2, 3))
    Sigma = np.array([[0.5, 0.1, 0.0], [0.1, 0.2, 0.1], [0.0, 0.1, 0.3]])
    u = rng.normal(size=(len(data.design.effect_names), 3))
    model = StructuralTopics(3)
    posterior = repeated(
        model, data, coefficients=coefficients, Sigma=Sigma, effects=u,
        effect_variances=np.array([4.0]),
    )  # fmt: skip
    nodes, weights = np.polynomial.hermite_e.hermegauss(24)
    grid = np.stack(np.meshgrid(nodes, nodes, nodes), axis=-1).reshape(-1, 3)
    weights = np.einsum("i,j,k->ijk", *3 * [weights]).ravel() / (2.0 * np.pi) ** 1.5
    author = str(data.design.terms[0].levels[1])
    for scope, shift, covariance in (
        ({}, 0.0, 5.0 * Sigma), ({"author": author}, u[1], Sigma),
    ):  # fmt: skip
        mean = data.design.rows({"year": 2003})[0] @ coefficients + shift
        shares = LogisticNormal().probs(mean + grid @ np.linalg.cholesky(covariance).T)
        found = effects(posterior, "year", at={"year": [2003], **scope}, num_simulated=100_000)
        np.testing.assert_allclose(found.mean[0], weights @ shares, atol=8e-3)


# ------------------------------------------------------------------ figures


def test_figures_draw_what_the_tables_say(rng, corpus):
    data = with_covariates(corpus, COLUMNS, "~ year + party")
    coefficients = rng.normal(size=(1, 20, 4, 3))
    draws = known(data, {"coefficients": coefficients, "Sigma": np.tile(np.eye(3), (1, 20, 1, 1))})
    by_year = effects(draws, "year", by="party", num_simulated=4)
    one = by_year.at(topic=1)
    axes = one.plot()
    lines = np.sort([line.get_ydata() for line in axes.get_lines()], axis=0)
    np.testing.assert_allclose(lines, np.sort(one.mean, axis=0))
    assert one.plot(axes) is axes
    all_topics = effects(draws, "year", num_simulated=4)
    names = [text.get_text() for text in all_topics.plot().get_legend().get_texts()]
    assert set(names) >= set(all_topics.names)
    gap = effects(draws, "party", num_simulated=4).difference("party", "R", "D")
    axes = gap.plot()
    ends = [part.get_segments()[0][:, 0] for part in axes.collections[::2]]
    np.testing.assert_allclose(ends, gap.interval().T)
    assert gap.plot().figure is not axes.figure
    largest = int(by_year.mean.mean(axis=(0, 1)).argmax())
    first = by_year.plot().get_lines()[0].get_ydata()
    assert first in by_year.mean[:, :, largest]


# ------------------------------------------------------------------ numbers as keys


@pytest.mark.parametrize(
    ("years", "shown"),
    [
        ([20200101, 20200102, 20200103], ["20200101", "20200102", "20200103"]),
        ([1604000000.0, 1604000001.0, 1604000002.0], ["1604000000", "1604000001", "1604000002"]),
        ([1.00000001, 1.00000002, 1.00000003], ["1.00000001", "1.00000002", "1.00000003"]),
    ],
)
def test_numbers_that_differ_in_a_late_digit_are_different_settings(rng, corpus, years, shown):
    data = with_covariates(corpus, {"day": years * 2, "party": PARTIES}, "~ day + party")
    draws = point_mass(data, rng.normal(size=(4, 3)), np.eye(3))
    found = effects(draws, "day", num_simulated=4)
    gap = found.difference("day", years[0], years[2])
    np.testing.assert_array_equal(gap.draws, found.draws[:, 0] - found.draws[:, 2])
    assert np.abs(gap.mean).max() > 0.01
    assert gap.contrast == f"{shown[0]} - {shown[2]}"
    by_day = effects(draws, "party", by="day", num_simulated=4)
    assert by_day.table().to_dataframe()["day"].tolist() == list(np.repeat(years, 3)) * 3
    gap = by_day.difference("party", "R", "D")
    apart = gap.difference("day", years[2], years[0])
    np.testing.assert_allclose(apart.draws, np.diff(gap.draws[:, ::2], axis=1)[:, 0])


# ------------------------------------------------------------------ labels on the way back

NUMBERED = COLUMNS | {"author": [1, 2, 1, 3, 2, 3]}


@pytest.fixture
def numbered(rng, corpus):
    data = with_covariates(corpus, NUMBERED, "~ year + (1 | author)")
    u = 3.0 * rng.normal(size=(3, 3))
    return point_mass(data, rng.normal(size=(2, 3)), 1e-16 * np.eye(3), u, np.array([0.5]))


@pytest.mark.parametrize("two", [2, 2.0, "2", np.int64(2), np.float32(2.0)])
def test_labels_that_are_equal_as_values_are_the_same_author(numbered, two):
    one = effects(numbered, "author", at={"year": 2000, "author": [two, 1]}, num_simulated=2)
    names = effects(numbered, "author", at={"year": 2000}, num_simulated=2)
    np.testing.assert_array_equal(one.draws[:, 0], names.draws[:, 1])
    np.testing.assert_array_equal(
        names.difference("author", two, 1).draws, names.difference("author", "2", "1").draws
    )


def test_an_author_who_is_not_known_is_refused(numbered):
    with pytest.raises(ValueError, match="'author' must be one of 1, 2, 3, got '7'") as told:
        effects(numbered, "year", at={"author": 7})
    assert "new_levels" not in str(told.value)


def test_a_column_that_each_group_has_one_value_of_is_named_with_the_formula_without():
    """Book decides testament; an author of both parties does not decide party."""
    counts = np.ones((12, 3), dtype=int)
    book = [f"b{d // 2}" for d in range(12)]
    table = {"testament": ["old"] * 6 + ["new"] * 6, "book": book, "genre": list("xyz") * 4}
    data = with_covariates(counts, table, "~ testament + genre + (1 | book)")
    said = nesting(data, "testament")
    assert "Each book has one testament" in said
    assert 'fit "~ testament + genre"' in said
    assert nesting(data, "genre") == ""
    with_covariates(counts, table, said.split('"')[1])
