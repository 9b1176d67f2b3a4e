"""Random terms, curves and content groups of a corpus with covariates."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from pgmult.sampling.codec import decode, encode
from pgmult.topics import with_covariates

NUM_DOCUMENTS = 60
rng = np.random.default_rng(0)
COUNTS = rng.poisson(1.0, size=(NUM_DOCUMENTS, 8))
COLUMNS = {
    "year": 1946 + np.arange(NUM_DOCUMENTS) % 30,
    "party": np.array(list("DRI"))[rng.integers(0, 3, NUM_DOCUMENTS)],
    "author": [f"p{i // 5}" for i in range(NUM_DOCUMENTS)],
    "house": ["a", "b"] * 30,
}
FORMULA = "~ party * s(year, knots=6) + (1 | author) + (1|house:party)"


def data(formula=FORMULA, **options):
    return with_covariates(COUNTS, COLUMNS, formula, **options)


def some(rows):
    return {name: np.asarray(column)[rows] for name, column in COLUMNS.items()}


def test_a_formula_parts_into_covariates_and_random_terms():
    design = data().design
    assert list(design.names) == [
        "Intercept", "party[T.I]", "party[T.R]", "year", "party[T.I]:year", "party[T.R]:year",
    ]  # fmt: skip
    assert [(t.name, t.kind, t.size) for t in design.terms] == [
        ("s(year, knots=6)", "spline", 4),
        ("1 | author", "group", 12),
        ("1 | house:party", "group", 6),
        ("party:s(year, knots=6)", "spline", 12),
    ]
    assert design.terms[1].levels[design.terms[1].codes].tolist() == COLUMNS["author"]
    assert len(design.effect_names) == 34
    assert "prevalence ~ party * s(year, knots=6) + (1 | author)" in repr(data())


def test_bends_are_natural_splines_without_their_straight_line():
    """In the span of the cardinal splines, orthogonal to lines, of length 1 at the average."""
    design = data("~ s(year, knots=6)").design
    basis, x = design.terms[0].basis, COLUMNS["year"].astype(float)
    knots = design.terms[0].knots
    cardinal = CubicSpline(knots, np.eye(6), bc_type="natural")(x)
    left_over = basis - cardinal @ np.linalg.lstsq(cardinal, basis, rcond=None)[0]
    assert np.abs(left_over).max() < 1e-9
    lines = np.column_stack([np.ones(len(x)), x - 1960.0])
    assert np.abs(lines.T @ basis).max() < 1e-7
    assert np.mean(np.sum(basis**2, axis=1)) == pytest.approx(1.0)


def test_independent_effects_are_the_roughness_penalty():
    """u'u is proportional to the integral of the curve's squared second derivative."""
    term = data("~ s(year, knots=7)").design.terms[0]
    fine = np.linspace(term.knots[0], term.knots[-1], 20_001)
    curves = CubicSpline(term.knots, term.bends, bc_type="natural")(fine, 2)
    roughness = np.einsum("xa,xb->ab", curves, curves) * (fine[1] - fine[0])
    scale = roughness[0, 0]
    np.testing.assert_allclose(roughness, scale * np.eye(5), atol=2e-3 * scale)


def test_curves_go_on_straight():
    design = data("~ s(year)").design
    rows = design.like({"year": [1900.0, 1910.0, 1920.0]}).terms[0].basis
    np.testing.assert_allclose(rows[2] - rows[1], rows[1] - rows[0], rtol=1e-8)


@pytest.mark.parametrize(
    "formula", [FORMULA, "~ cr(year, df=4) + party", "~ s(log(year)) + (1 | author)"]
)
def test_other_documents_are_coded_alike(formula):
    corpus = data(formula, content="~ party:house")
    chosen = [7, 3, 3, 40]
    for origin in (corpus, corpus[[5, 50]]):  # bases do not move with the rows
        new = origin.new_documents(COUNTS[chosen], some(chosen))
        np.testing.assert_allclose(new.covariates, corpus.covariates[chosen], atol=1e-9)
        for term, whole in zip(new.design.terms, corpus.design.terms, strict=True):
            np.testing.assert_allclose(term.design, whole.design[chosen], atol=1e-9)
        np.testing.assert_array_equal(new.content.codes, corpus.content.codes[chosen])
        np.testing.assert_array_equal(new.to_csr().todense(), COUNTS[chosen])


def test_storage_keeps_terms_and_groups():
    corpus, arrays = data(content="~ party:house"), {}
    again = decode(encode(corpus, arrays), arrays)
    new = again.new_documents(COUNTS[:4], some(slice(0, 4)))
    np.testing.assert_array_equal(new.design.terms[3].basis, corpus.design.terms[3].basis[:4])
    np.testing.assert_array_equal(again.content.labels, corpus.content.labels)


def test_unseen_levels_are_allowed_when_asked_for():
    design = data("~ party + (1 | author) + (1 | house)").design
    given = {"party": "D", "author": ["p1", "new"], "house": "a"}
    with pytest.raises(
        ValueError, match=r"'author' must hold labels .*, got 'new'.*new_levels=True"
    ):
        design.like(given)
    new = design.like(given, new_levels=True)
    np.testing.assert_array_equal(new.terms[0].codes, [1, -1])
    which, covariances = new.covariances(np.eye(1), np.array([0.5, 2.0]))
    np.testing.assert_array_equal(covariances[which].ravel(), [1.0, 1.5])
    effects = np.arange(14.0)[:, None]
    np.testing.assert_array_equal(new.mean(np.zeros((3, 1)), effects)[:, 0], [1 + 12, 12])


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("~ year + (1|author", r"expected \) but found the end"),
        ("~ (year | author)", "slopes that vary by group"),
        ("~ party:(1 | author)", "a term of its own"),
        (
            "~ (1 | nope)",
            "names 'nope'; columns of covariates, the table: year, party, author, house",
        ),
        ("~ s(party)", "party holds labels, and numbers are needed"),
        ("~ s(year, k=3)", r"s\(x, knots=10\), with 4 knots"),
        ("~ s(`my year`)", "names 'my year'"),
        ("~ 0 + s(year)", "must have an intercept"),
        ("~ s(house == 'a')", "4 different values at least"),
        ("~ s(house == 'b ')", "'house' must be one of a, b, got 'b '"),
        ("~ year +", "found the end"),
        ("~ year + nope", "names 'nope'; columns of covariates, the table"),
        ("~ {raise}", "cannot read '{'"),
        ("~ year.rank()", r"no function year.rank\(\) .*make a column first"),
        ("~ np.log1p(year - year.min())", r"no function year.min\(\)"),
        ("~ lag(year)", r"no function lag\(\)"),
        ("~ __import__('os').system('ls')", "cannot read '.'"),
        ("~ year + 'a'", "is a text, not a column"),
        ("~ year % 2", r"write I\(year % 2\)"),
        ("~ log(party)", r"log\(\) takes numbers, and party holds labels"),
        ("~ bs(year, df=4, k=2)", r"bs\(\) has the options df, knots"),
        ("~ C(party, contr.helmert)", "contrasts are contr.treatment and contr.sum"),
        ("~ C(party, contr.treatment(drop='R'))", "contrasts have one base"),
        ("~ " + "(" * 50 + "year" + ")" * 50, "brackets are too deep"),
        ("~ year | party", "groups are written"),
        ("~ year ~ party", "more than one ~"),
    ],
)
def test_bad_formulas_are_refused_in_plain_text(formula, message):
    with pytest.raises(ValueError, match=message) as refusal:
        data(formula)
    assert "\x1b" not in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_one_factor_is_one_group_a_label():
    content = data(content="party").content
    assert content.labels.tolist() == ["D", "I", "R"]
    np.testing.assert_array_equal(content.labels[content.codes], COLUMNS["party"])


def test_combinations_are_groups():
    crossed = data(content="~ party:house").content
    assert crossed.labels.tolist() == ["D:a", "D:b", "I:a", "I:b", "R:a", "R:b"]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("~ year", TypeError, "must hold labels, got numbers"),
        ("~ nope", ValueError, "content must name columns, got 'nope'"),
        ("~ party * house", ValueError, "content must name a column of labels"),
        ("~ party + house", ValueError, "several for all combinations, '~ party:house', got"),
        (3, TypeError, "content must be a formula"),
    ],
)
def test_bad_content_is_refused(content, error, message):
    with pytest.raises(error, match=message):
        data(content=content)


def test_groups_of_new_documents_must_be_known():
    corpus = data("~ year", content="~ party")
    with pytest.raises(ValueError, match="'party' must be one of D, I, R, got 'X' at row 1"):
        corpus.new_documents(COUNTS[:2], {"year": 1950, "party": ["D", "X"]})
    with pytest.raises(ValueError, match="a row for each of the 2 documents"):
        corpus.new_documents(COUNTS[:2], {"year": [1950] * 3, "party": ["D"] * 3})


def test_one_group_is_no_content():
    with pytest.raises(ValueError, match="at least two groups"):
        with_covariates(
            COUNTS, {"party": ["D"] * NUM_DOCUMENTS, "x": COLUMNS["year"]}, "~ x", content="~ party"
        )


def test_columns_of_any_name_group_documents():
    columns = COLUMNS | {"my house": COLUMNS["house"], "a:b": COLUMNS["party"]}
    corpus = with_covariates(
        COUNTS, columns, "~ year + (1 | `my house`:`a:b`)", content="~ `my house`:`a:b`"
    )
    new = corpus.new_documents(COUNTS[:3], {name: column[:3] for name, column in columns.items()})
    np.testing.assert_array_equal(new.content.codes, corpus.content.codes[:3])
    np.testing.assert_array_equal(new.design.terms[0].codes, corpus.design.terms[0].codes[:3])
    assert corpus.content.known.columns == ("my house", "a:b")
