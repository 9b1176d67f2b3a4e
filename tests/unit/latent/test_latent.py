"""Latent Gaussians: factors and laws against dense matrices, moves around exact laws."""

from types import SimpleNamespace

import numpy as np
import pytest
from gaussian_targets import rough
from scipy import linalg, sparse, stats

from pgmult.latent import layout
from pgmult.latent.additive import Additive
from pgmult.latent.approximation import Sites, approximate, collapsed
from pgmult.latent.categories import MultinomialRows
from pgmult.latent.compiled.stacked import solve
from pgmult.latent.factors import Analysis, ArrowFactor, SparseFactor, between_of, stacked
from pgmult.latent.hyperparameters import Leaning, lean
from pgmult.latent.moves import Point, Target, carry, interweave, leap, swing, turn
from pgmult.latent.several import BlockSites, Several
from pgmult.latent.terms import Areas, Basis, Copies, Fixed, LevelEffects, Scaled, from_sd, log_sd
from pgmult.variational.sites import CountSite, LogisticSite

NUM = 40
X = np.linspace(-1.0, 1.0, NUM)
CODES = np.arange(NUM) % 21
CHAIN = sparse.diags_array([[2.2] * 9, [-1.0] * 8, [-1.0] * 8], offsets=[0, 1, -1])
TERMS = {
    "fixed": Fixed(3, 0.7),
    "levels": LevelEffects(4),
    "slopes": LevelEffects(5, width=3),
    "scaled": Scaled(sparse.csr_array(CHAIN), float(np.linalg.slogdet(CHAIN.toarray())[1])),
    "walk": Scaled.walk(np.array([0.0, 1.0, 1.5, 4.0, 5.0])),
    "basis": Basis(np.arange(1.0, 7.0)),
    "basis of a plane": Basis(np.arange(1.0, 7.0), num_inputs=2),
    "areas": Areas.of(np.array([[0, 1], [1, 2], [0, 2], [3, 4]]), 6),
    "copies of levels": Copies(LevelEffects(3, width=2), 3),
    "copies of areas": Copies(Areas.of(np.array([[0, 1]]), 3), 2),
    "copies of fixed": Copies(Fixed(2), 3),
}


def dense_precision(term, x):
    precision = term.precision(x)
    if sparse.issparse(precision):
        return precision.toarray()
    if precision.ndim == 1:
        return np.diag(precision)
    return linalg.block_diag(*precision)


def a_family(order=(0, 1, 2)):
    """Fixed effects, 21 levels with slopes, and a grouping of five."""
    line = np.column_stack([np.ones(NUM), X])
    slopes = (CODES[:, None] == np.arange(21))[:, :, None] * line[:, None]
    parts = [
        (Fixed(2, 1.0), line),
        (LevelEffects(21, width=2), slopes.reshape(NUM, -1)),
        (LevelEffects(5), (np.arange(NUM) // 8)[:, None] == np.arange(5)),
    ]  # fmt: skip
    terms, designs = zip(*[parts[i] for i in order], strict=True)
    return Additive(terms, np.hstack(designs), offset=0.1 * X)


@pytest.fixture
def rows(rng):
    trials = rng.integers(1, 9, size=NUM).astype(np.float64)
    return LogisticSite(rng.binomial(trials.astype(int), 0.4).astype(np.float64), trials)


def sparsely(precision):
    rows = sparse.csr_array(precision)
    return SparseFactor.of(rows, Analysis.of(rows))


class TestFactors:
    @pytest.fixture
    def precision(self, rng):
        """Four blocks of two that meet in three others only, one of them not in all."""
        half = rng.standard_normal((11, 11))
        full = half @ half.T + 11.0 * np.eye(11)
        for a in range(4):
            for b in range(4):
                if a != b:
                    full[2 * a : 2 * a + 2, 2 * b : 2 * b + 2] = 0.0
        full[2:4, 9] = full[9, 2:4] = full[4, 10] = full[10, 4] = 0.0
        return full

    @pytest.mark.parametrize("kind", ["dense", "arrow", "sparse"])
    def test_all_are_the_same_matrix(self, kind, precision, rng):
        factor = {
            "dense": lambda: ArrowFactor.dense(precision),
            "arrow": lambda: ArrowFactor.of(
                np.array([precision[2 * a : 2 * a + 2, 2 * a : 2 * a + 2] for a in range(4)]),
                between_of(sparse.csr_array(precision[:8, 8:]), 2),
                precision[8:, 8:],
            ),
            "sparse": lambda: sparsely(precision),
        }[kind]()
        b, cov = rng.standard_normal(11), np.linalg.inv(precision)
        np.testing.assert_allclose(factor.log_det, np.linalg.slogdet(precision)[1], rtol=1e-12)
        np.testing.assert_allclose(factor.solve(b), cov @ b, rtol=1e-9)
        np.testing.assert_allclose(factor.white(factor.colour(b)), b, rtol=1e-9)
        root = np.column_stack([factor.colour(e) for e in np.eye(11)])
        np.testing.assert_allclose(root @ root.T, cov, rtol=1e-8, atol=1e-12)

    @pytest.mark.parametrize("kind", ["dense", "a block", "sparse"])
    def test_what_is_not_positive_is_refused(self, kind):
        bad = np.array([[1.0, 2.0], [2.0, 1.0]])
        factor = {
            "dense": lambda: ArrowFactor.dense(bad),
            "a block": lambda: ArrowFactor.of(
                -np.ones((3, 1, 1)), between_of(sparse.csr_array(np.ones((3, 2))), 1), np.eye(2)
            ),
            "sparse": lambda: sparsely(bad),
        }[kind]
        with pytest.raises(np.linalg.LinAlgError, match="not positive"):
            factor()


class TestTerms:
    @pytest.mark.parametrize("name", TERMS)
    def test_log_determinants(self, name, rng):
        term = TERMS[name]
        x = term.sample(rng)
        expected = np.linalg.slogdet(dense_precision(term, x))[1]
        assert term.log_det(x) == pytest.approx(expected, rel=1e-9)

    @pytest.mark.parametrize("name", TERMS)
    def test_weights_grow_with_their_standard_deviation(self, name, rng):
        """Multiplying a standard deviation by 2 and its weights leaves their law as it is."""
        term = TERMS[name]
        x, w = term.sample(rng), rng.standard_normal(term.size)
        for i in range(term.num_sds):
            new, moved = x.copy(), w.copy()
            new[i] = from_sd(2.0 * np.exp(log_sd(x[i])))
            moved[term.scaled_by(i)] *= 2.0
            before, after = dense_precision(term, x), dense_precision(term, new)
            assert moved @ after @ moved == pytest.approx(w @ before @ w, rel=1e-8)

    @pytest.mark.parametrize("name", ["levels", "slopes", "basis", "areas"])
    def test_densities_are_those_of_the_draws(self, name, rng):
        """Stein's identity: E f'(x) + f(x) d log p(x) / dx = 0."""
        term = TERMS[name]
        draws = np.array([term.sample(rng) for _ in range(4000)])
        here = np.array([term.log_prior(x) for x in draws])
        assert np.isfinite(here).mean() > 0.999
        for i in range(draws.shape[1]):
            step = np.zeros(draws.shape[1])
            step[i] = 1e-3
            ahead = np.array([term.log_prior(x + step) for x in draws])
            behind = np.array([term.log_prior(x - step) for x in draws])
            inside = np.isfinite(ahead + behind) & (
                draws[:, i] > 0.05 if i < term.num_sds else True
            )
            x = draws[inside, i]
            slope = (ahead - behind)[inside] / 2e-3
            # f = x^2 exp(-|x|), which vanishes at the bound of standard deviations
            stein = x * np.exp(-np.abs(x)) * (2.0 - np.abs(x) + x * slope)
            assert abs(stein.mean()) < 5.0 * stein.std() / np.sqrt(len(x)) + 5e-3


@pytest.mark.parametrize("form", ["dense", "arrow", "sparse"])
def test_the_law_given_a_potential_is_the_dense_one(form, rng, monkeypatch):
    monkeypatch.setattr(layout, "_MANY_WEIGHTS", 3 if form == "sparse" else 1500)
    monkeypatch.setattr(layout, "_MANY_LEVELS", 10**6 if form == "dense" else 20)
    for order in ((0, 1, 2), (1, 0, 2), (2, 0, 1)):
        family = a_family(order)
        x, _ = family.sample(rng)
        J, h = rng.gamma(1.0, size=NUM), rng.standard_normal(NUM)
        family.at(x, family.absorb(J * (CODES < 15), h))  # with entries in fewer places
        law = family.at(x, family.absorb(J, h))
        pairs = zip(family.terms, family.hyperparameters, strict=True)
        Q = linalg.block_diag(*(dense_precision(t, x[own]) for t, own in pairs))
        A = family.design.toarray()
        P, pull = Q + A.T @ (J[:, None] * A), A.T @ (h - J * family.offset)
        mean = np.linalg.solve(P, pull)
        np.testing.assert_allclose(law.mean, mean, rtol=1e-7, atol=1e-9)
        evidence = 0.5 * (np.linalg.slogdet(Q)[1] - np.linalg.slogdet(P)[1] + pull @ mean)
        assert law.log_evidence == pytest.approx(evidence, rel=1e-8)
        both = [law.factor, family.at(x, family.absorb(2.0 * J, h)).factor]
        factors, solved = stacked(both, family.layout.order), mean.copy()
        solve(factors, 0, pull, solved)
        np.testing.assert_allclose(solved, mean, rtol=1e-7, atol=1e-9)
        solve(factors, 1, (P + A.T @ (J[:, None] * A)) @ mean, solved)
        np.testing.assert_allclose(solved, mean, rtol=1e-7, atol=1e-9)
        if form != "sparse":
            var = np.einsum("np,pq,nq->n", A, np.linalg.inv(P), A)
            np.testing.assert_allclose(family.variances(law, rng), var, rtol=1e-7)


def test_rows_in_few_cells_have_the_same_predictors(rng):
    """Rows of curves and groupings, whose design is a product of two sparse arrays."""
    year, month = rng.integers(0, 6, size=600), rng.integers(0, 5, size=600)
    parts = [np.column_stack([np.ones(600), year]), rng.standard_normal((6, 12))[year]]
    parts += [rng.standard_normal((5, 8))[month], np.eye(30)[6 * month + year]]
    terms = [Fixed(part.shape[1]) for part in parts]
    design, num = np.hstack(parts), 52
    for family in (Additive(terms, design), Several(terms, design, 3)):
        assert family._cells is not None
        w = rng.standard_normal(family.num_weights)
        expected = design @ w.reshape(num, *family.shape[1:])
        np.testing.assert_allclose(family.times(w), expected, atol=1e-12)
        g = rng.standard_normal(family.shape)
        np.testing.assert_allclose(family.pull(g), np.ravel(design.T @ g), atol=1e-10)


def test_wide_potentials_are_as_wide_as_the_posterior():
    """Widened, the base is less than half as far from the width of log odds of what is absent."""
    family = Several([Fixed(1)], np.ones((1, 1)), 1)
    rows = MultinomialRows(np.array([[0.0, 100.0]]))
    sites = BlockSites(rows, np.zeros((1, 1)))
    base = approximate(family, rows, sites)
    gaussian = family.at(base.guess.mean, base.absorbed)
    wide = family.at(
        base.guess.mean, family.absorb(*sites.wide(family, gaussian, (base.J, base.h)))
    )
    psi = np.linspace(-60.0, 60.0, 4001)
    log_density = np.array([rows.total(np.full((1, 1), x)) for x in psi]) - psi**2 / 12.5
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    sd = np.sqrt(weights @ (psi - weights @ psi) ** 2)
    narrow, wider = (float(law.solve(np.ones(1))[0]) ** 0.5 for law in (gaussian, wide))
    assert narrow < 0.7 * sd
    assert sd > wider > np.sqrt(narrow * sd)
    assert wide.mean[0] == pytest.approx(gaussian.mean[0])


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 0, 1)])
@pytest.mark.parametrize("shape", ["arrow", "dense", "others"])
def test_slopes_of_the_density_of_hyperparameters(order, shape, rng, monkeypatch):
    monkeypatch.setattr(layout, "_MANY_LEVELS", 10**6 if shape == "dense" else 20)
    family = a_family(order)
    if shape == "others":  # an arrow whose others have sparse precisions and copies
        more = [TERMS["walk"], TERMS["copies of areas"], TERMS["copies of levels"]]
        design = rng.standard_normal((NUM, sum(term.size for term in more)))
        whole = np.hstack([design, family.design.toarray()])
        family = Additive((*more, *family.terms), whole, family.offset)
    seen = family.absorb(rng.gamma(1.0, size=NUM), rng.standard_normal(NUM))
    x = np.where(family.is_sd(), 0.1, 0.0) + np.abs(family.sample(rng)[0]) / 4.0
    steps = 1e-5 * np.eye(len(x))
    expected = [collapsed(family, seen, x + s) - collapsed(family, seen, x - s) for s in steps]
    np.testing.assert_allclose(family.slopes(x, seen), np.array(expected) / 2e-5, atol=1e-5)


class TestLeaning:
    LAW = Leaning(np.array([1.0, -2.0]), np.array([[0.7, 0.0], [0.4, 0.5]]), np.array([0.6, -0.4]))

    def test_its_density_is_that_of_its_draws(self):
        """Expectations by points on a grid, weighted by the density, and by draws."""
        rng = np.random.default_rng(0)
        draws = np.array([self.LAW.sample(rng) for _ in range(40_000)])
        a, b = np.meshgrid(np.linspace(-40.0, 42.0, 1401), np.linspace(-42.0, 38.0, 1401))
        points = np.stack([a.ravel(), b.ravel()], axis=1)
        weights = np.exp(self.LAW.log_density(points))
        weights /= weights.sum()
        for f in (
            lambda x: np.tanh(x[:, 0]),
            lambda x: np.tanh(2.0 * x[:, 1] + 4.0),
            lambda x: np.exp(-np.abs(x[:, 0] - x[:, 1])),
        ):
            values = f(draws)
            error = 5.0 * values.std() / np.sqrt(len(draws)) + 1e-3
            assert abs(weights @ f(points) - values.mean()) < error

    def test_it_finds_the_moments_of_a_density(self):
        """A gamma law and a normal one that depends on it, from a rough start."""

        def log_density(x):
            if x[0] <= 0.0:
                return -np.inf
            return 3.0 * np.log(x[0]) - 2.0 * x[0] - 2.0 * (x[1] - 0.5 * x[0]) ** 2

        law = lean(log_density, np.array([1.5, 0.7]), 0.7 * np.eye(2))
        cov = law.root @ law.root.T / 1.05**2
        np.testing.assert_allclose(law.mean, [2.0, 1.0], atol=0.1)
        np.testing.assert_allclose(cov, [[1.0, 0.5], [0.5, 0.5]], atol=0.15)
        assert 0.2 < law.lean[0] < 0.8


def test_compiled_rows_are_those_of_numpy(rng, rows):
    psi = np.concatenate([20.0 * rng.standard_normal(NUM - 2), [800.0, -800.0]])
    assert rows.total(psi) == pytest.approx(rows.value(psi).sum(), rel=1e-12)
    sites = [rows, *(CountSite(rows.successes, size, rows.trials) for size in (np.inf, 2.5))]
    psi = np.clip(psi, -30.0, 3.0)
    for site in sites:
        slopes = [(site.total(psi + e) - site.total(psi - e)) / 2e-5 for e in 1e-5 * np.eye(NUM)]
        np.testing.assert_allclose(site.slope(psi), slopes, rtol=1e-6, atol=1e-5)
        change = site.value(psi).sum() - site.value(psi - 1.0).sum()
        assert site.total(psi) - site.total(psi - 1.0) == pytest.approx(change, rel=1e-9)


def test_gradients_of_the_correction(rng, rows):
    family = a_family()
    found = rough(family, rows)
    psi = rng.standard_normal(NUM)
    slopes = [
        (found.correction(rows, psi + e) - found.correction(rows, psi - e)) / 2e-5
        for e in 1e-5 * np.eye(NUM)
    ]
    np.testing.assert_allclose(found.gradient(rows, psi), slopes, atol=1e-7)


def test_the_approximation_is_near(rows):
    family = a_family()
    found = approximate(family, rows)
    assert found.spread < 0.5
    assert np.isfinite(found.guess.root).all()
    assert approximate(family, rows).spread == found.spread


def test_columns_are_rows_of_their_own(rng):
    site = LogisticSite(
        1.0 * rng.integers(0, 9, size=(6, 3)), 1.0 * rng.integers(8, 20, size=(6, 3))
    )
    psi = rng.standard_normal((6, 3))
    alone = [LogisticSite(site.successes[:, k], site.trials[:, k]) for k in range(3)]
    for k, column in enumerate(alone):
        assert site.total(psi)[k] == pytest.approx(column.total(psi[:, k]))
        np.testing.assert_array_equal(site.slope(psi)[:, k], column.slope(psi[:, k]))


def matching(rows, J, h, mean, var):
    family = SimpleNamespace(predictor=lambda w: w, variances=lambda gaussian, rng: var)
    return Sites(rows).matching(family, SimpleNamespace(mean=mean), (J, h), None)


def test_matching_sites_match_moments(rng):
    """A Gaussian law of each predictor, with the likelihood or with the site in its place."""
    rows = LogisticSite(
        np.array([[0.0, 900.0], [1.0, 3.0]]), np.array([[900.0, 950.0], [2.0, 9.0]])
    )
    cavity, mean = 0.7 + rng.random((2, 2)), rng.standard_normal((2, 2)) - 1.0
    J, h = np.ones((2, 2)), -np.ones((2, 2))
    for _ in range(60):
        precision = cavity + J
        at = (cavity * mean + h) / precision
        J, h = matching(rows, J, h, at, 1.0 / precision)
    precision = cavity + J
    at = (cavity * mean + h) / precision
    psi = at + precision**-0.5 * np.linspace(-12.0, 12.0, 4001)[:, None, None]
    log_density = rows.value(psi) - 0.5 * cavity * (psi - mean) ** 2
    weights = np.exp(log_density - log_density.max(axis=0))
    weights /= weights.sum(axis=0)
    centre = (weights * psi).sum(axis=0)
    np.testing.assert_allclose(at, centre, atol=1e-4)
    var = (weights * (psi - centre) ** 2).sum(axis=0)
    np.testing.assert_allclose(1.0 / precision, var, rtol=1e-3)


def test_a_site_that_is_right_stays_whatever_the_variance():
    """Where the likelihood is nearly Gaussian."""
    taken, reaching = np.full(1, 4e8), np.full(1, 1e9)
    psi, J = np.log(taken / (reaching - taken)), taken * (1.0 - taken / reaching)
    for factor in (0.3, 1.0, 3.0):
        found = matching(LogisticSite(taken, reaching), J, J * psi, psi, factor / J)
        np.testing.assert_allclose(found[0], J, rtol=1e-3)
        np.testing.assert_allclose(found[1] / found[0], psi, rtol=1e-6)


class Gaussian:
    """Rows whose likelihood is a potential: nothing is left to correct."""

    def __init__(self, J, h):
        self.J, self.h = J, h

    def value(self, psi):
        return self.h * psi - 0.5 * self.J * psi * psi

    def slope(self, psi):
        return self.h - self.J * psi

    def total(self, psi):
        return self.value(psi).sum(axis=0)

    def expect(self, mean, var):
        return self.value(mean) - 0.5 * self.J * var, self.slope(mean), -0.5 * self.J


def test_around_the_posterior_itself_everything_is_accepted(rng):
    family = a_family()
    rows = Gaussian(rng.gamma(2.0, size=NUM), rng.standard_normal(NUM))
    found = rough(family, rows)
    np.testing.assert_allclose(found.J, rows.J)
    x = family.start()
    target = Target(family, rows, found)
    point = Point.of(x, family.at(x, found.absorbed).mean, target)
    draws = []
    for _ in range(400):
        new = swing(rng, point, target)
        assert (new.w != point.w).all()
        point = new
        draws.append(point.gaussian.white(rng, point.w))
    squares = np.sum(np.square(draws), axis=1)
    assert stats.kstest(squares, stats.chi2(len(point.w)).cdf).pvalue > 1e-4


def test_moves_change_no_input(rng, rows):
    family = a_family()
    found = rough(family, rows)
    x = family.start()
    target = Target(family, rows, found)
    point = Point.of(x, family.at(x, found.absorbed).sample(rng), target)
    before = [point.x.copy(), point.w.copy(), point.psi.copy()]
    for move in (interweave, leap, carry, swing, turn):
        new = move(rng, point, target)
        np.testing.assert_allclose(new.psi, family.predictor(new.w), atol=1e-12)
        mean = family.at(new.x, found.absorbed).mean
        np.testing.assert_allclose(new.gaussian.mean, mean, rtol=1e-9)
    for mine, theirs in zip(before, (point.x, point.w, point.psi), strict=True):
        np.testing.assert_array_equal(mine, theirs)
