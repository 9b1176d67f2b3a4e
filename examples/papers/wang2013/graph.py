r"""A directed graph of several nonconjugate nodes, as in appendix A: who answers what right.

    python -m examples.papers.wang2013.graph lsat simulated

Item response theory with two parameters a question (Birnbaum 1968). Nothing here is conjugate::

    (mu, tau)     ~ N(0, diag(1, 1/4))              population: mean and log sd of difficulties
    b_j | mu, tau ~ N(mu, exp(2 tau)),  d_j ~ N(0, 1/4)          items: difficulty, log slope
    a_i           ~ N(0, 1)                                      persons: ability
    y_ij          ~ Bernoulli(sigma(exp(d_j) (a_i - b_j)))

    population --> items --> answers <-- persons

`fit_nonconjugate` takes the three nodes in turn. What the others leave of the
log joint for one is f in `ItemResponses.objectives`, expectations under their Gaussians by Gauss
and Hermite's rule, or closed: the objective is then a lower bound of the log evidence, whatever the
method. `ItemSampler` is the same model for `pgmult.sample`, to see what the Gaussians are worth:
abilities are summed out on a grid, items move by slices around the Gaussians found, the population
by elliptical ones.

``lsat`` are the answers of 1,000 persons to the five questions of section 6 of the law school
admission test (Bock and Lieberman 1970); ``simulated`` are 100 persons and 12 questions.
"""

import argparse
import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, log_expit, logsumexp

import pgmult
from examples.papers.wang2013.around import slice_around
from examples.papers.wang2013.nonconjugate import fit_nonconjugate
from pgmult.sampling.diagnostics import ess_bulk, r_hat
from pgmult.sampling.moves import elliptical_slice
from pgmult.variational import GaussianRows

PRIOR_SD = np.array([1.0, 0.5])  # of mu and tau
SLOPE_SD = 0.5  # of d_j
METHODS = ("delta", "laplace", "diagonal_delta", "previous_mean")
# persons who answered 00000, 00001, ..., 11111: question 1 first, 1 for right
LSAT = (
    3, 6, 2, 11, 1, 1, 3, 4, 1, 8, 0, 16, 0, 3, 2, 15,
    10, 29, 14, 81, 3, 28, 15, 80, 16, 56, 21, 173, 11, 61, 28, 298,
)  # fmt: skip


# ---------------------------------------------------------------- the model, node by node


def quadrature(q, order):
    """Gauss and Hermite's points for Gaussian rows, ``(rows, order**n, n)``, and their weights."""
    x, w = np.polynomial.hermite_e.hermegauss(order)
    n = q.mean.shape[1]
    grid = np.stack(np.meshgrid(*[x] * n, indexing="ij"), axis=-1).reshape(-1, n)
    weights = np.prod(np.stack(np.meshgrid(*[w] * n, indexing="ij")), axis=0).ravel()
    values, vectors = np.linalg.eigh(q.cov)  # a start has no spread yet
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None]
    return q.mean[:, None] + grid @ roots.transpose(0, 2, 1), weights / weights.sum()


def spread_of(population):
    """E exp(-2 tau), and the mean of mu under q times exp(-2 tau)."""
    mean, cov = population.mean[0], population.cov[0]
    return np.exp(-2.0 * mean[1] + 2.0 * cov[1, 1]), mean[0] - 2.0 * cov[0, 1]


@dataclass
class Persons:
    """f of a_i, ``(1,)`` each: answers, over the items' q, and N(0, 1)."""

    answers: np.ndarray
    items: np.ndarray  # (num_items, points, 2)
    weights: np.ndarray

    def _terms(self, theta, rows):
        slope = np.exp(self.items[..., 1])
        eta = slope * (theta[:, :, None] - self.items[..., 0])  # (num, num_items, points)
        return eta, slope, self.answers[rows][:, :, None]

    def value(self, theta, rows):
        eta, _, y = self._terms(theta, rows)
        log_prob = log_expit(np.where(y, eta, -eta)) @ self.weights
        return log_prob.sum(axis=1) - 0.5 * theta[:, 0] ** 2

    def gradient(self, theta, rows):
        eta, slope, y = self._terms(theta, rows)
        return ((y - expit(eta)) * slope @ self.weights).sum(axis=1)[:, None] - theta

    def hessian(self, theta, rows):
        eta, slope, _ = self._terms(theta, rows)
        p = expit(eta)
        return -(1.0 + (p * (1.0 - p) * slope**2 @ self.weights).sum(axis=1))[:, None, None]


@dataclass
class Items:
    """f of (b_j, d_j): answers, over the persons' q, and what the population's says of b_j."""

    answers: np.ndarray
    persons: np.ndarray  # (num_persons, points, 1)
    weights: np.ndarray
    precision: float  # E exp(-2 tau)
    centre: float  # of mu, under q times exp(-2 tau)
    constant: float  # E log p(b, d) at its largest

    def _terms(self, theta, rows):
        slope = np.exp(theta[:, 1])[:, None, None]
        eta = slope * (self.persons[..., 0] - theta[:, 0, None, None])  # (num, num_persons, points)
        return eta, slope[:, 0, 0], self.answers.T[rows][:, :, None]

    def _average(self, values):
        return (values @ self.weights).sum(axis=1)

    def value(self, theta, rows):
        eta, _, y = self._terms(theta, rows)
        gap = self.precision * (theta[:, 0] - self.centre) ** 2 + (theta[:, 1] / SLOPE_SD) ** 2
        return self._average(log_expit(np.where(y, eta, -eta))) - 0.5 * gap + self.constant

    def gradient(self, theta, rows):
        eta, slope, y = self._terms(theta, rows)
        lift = y - expit(eta)
        of_b = -slope * self._average(lift) - self.precision * (theta[:, 0] - self.centre)
        return np.stack([of_b, self._average(lift * eta) - theta[:, 1] / SLOPE_SD**2], axis=1)

    def hessian(self, theta, rows):
        eta, slope, y = self._terms(theta, rows)
        p = expit(eta)
        lift, bend = y - p, p * (1.0 - p)
        hessian = np.empty((len(theta), 2, 2))
        hessian[:, 0, 0] = -(slope**2) * self._average(bend) - self.precision
        hessian[:, 1, 1] = self._average(lift * eta - bend * eta**2) - SLOPE_SD**-2
        hessian[:, 0, 1] = hessian[:, 1, 0] = slope * self._average(bend * eta - lift)
        return hessian


@dataclass
class Population:
    """f of (mu, tau): the difficulties, over the items' q, and the prior."""

    mean: np.ndarray  # of each b_j
    var: np.ndarray

    def _terms(self, theta):
        precision = np.exp(-2.0 * theta[:, 1])
        gap = self.mean - theta[:, :1]
        return precision, gap.sum(axis=1), (gap**2 + self.var).sum(axis=1)

    def value(self, theta, rows):
        precision, _, square = self._terms(theta)
        prior = 0.5 * (theta**2 / PRIOR_SD**2).sum(axis=1)
        return -len(self.mean) * theta[:, 1] - 0.5 * precision * square - prior

    def gradient(self, theta, rows):
        precision, gap, square = self._terms(theta)
        slope = np.stack([precision * gap, precision * square - len(self.mean)], axis=1)
        return slope - theta / PRIOR_SD**2

    def hessian(self, theta, rows):
        precision, gap, square = self._terms(theta)
        cross = -2.0 * precision * gap
        hessian = np.array(
            [[-len(self.mean) * precision, cross], [cross, -2.0 * precision * square]]
        )
        return hessian.transpose(2, 0, 1) - np.diag(PRIOR_SD**-2.0)


@dataclass
class ItemResponses:
    """The graph, for `fit_nonconjugate`; it has no conjugate rest.

    Parameters
    ----------
    answers : bool array, ``(num_persons, num_items)``
    """

    answers: np.ndarray

    def start(self):
        """Persons and items by the shares of their right answers."""
        of_persons, of_items = (
            (self.answers.sum(axis=axis) + 0.5) / (self.answers.shape[axis] + 1.0)
            for axis in (1, 0)
        )
        items = np.stack([-np.log(of_items / (1.0 - of_items)), np.zeros(len(of_items))], axis=1)
        persons = np.log(of_persons / (1.0 - of_persons))[:, None]
        return {"population": np.zeros((1, 2)), "items": items, "persons": persons}

    def objectives(self, node, gaussians, rest):
        items, population = gaussians["items"], gaussians["population"]
        if node == "population":
            return Population(items.mean[:, 0], items.cov[:, 0, 0])
        if node == "persons":
            return Persons(self.answers, *quadrature(items, 5))
        precision, centre = spread_of(population)
        constant = -population.mean[0, 1] - 0.5 * precision * population.cov[0, 0, 0]
        return Items(
            self.answers, *quadrature(gaussians["persons"], 9), precision, centre, constant
        )

    def update_rest(self, gaussians, rest):
        return None

    def log_joint(self, gaussians, rest):
        """E log p(answers, persons, items, population)."""
        items, population = gaussians["items"], gaussians["population"]
        points, weights = quadrature(items, 5)
        every = np.arange(len(points))
        of_items = self.objectives("items", gaussians, rest)
        values = [of_items.value(points[:, at], every) for at in range(len(weights))]
        n_persons, n_items = self.answers.shape
        rest_of = gaussians["persons"].mean ** 2 + gaussians["persons"].cov[:, 0]
        prior = (population.mean[0] ** 2 + np.diag(population.cov[0])) / PRIOR_SD**2
        logs = n_items * np.log(SLOPE_SD) + np.log(PRIOR_SD).sum()
        logs += 0.5 * (n_persons + 2 * n_items + 2) * np.log(2.0 * np.pi)
        return float(weights @ np.sum(values, axis=1) - 0.5 * (rest_of.sum() + prior.sum()) - logs)


# ---------------------------------------------------------------- the same model, sampled

GRID = np.arange(-6.0, 6.01, 0.2)  # of abilities; the rule's error is below 1e-8
LOG_WEIGHTS = -0.5 * GRID**2 - logsumexp(-0.5 * GRID**2)


@dataclass(frozen=True)
class ItemState:
    """One point of the chain: (b_j, d_j), a row an item, and (mu, tau)."""

    items: np.ndarray
    population: np.ndarray


@dataclass(frozen=True)
class Answers:
    """Right or wrong, ``(num_patterns, num_items)``, and how many persons answered so."""

    right: np.ndarray
    persons: np.ndarray


@dataclass(frozen=True)
class Around:
    """One item's Gaussian, twice as wide in variance, as a base of slices."""

    place: np.ndarray
    cov: np.ndarray

    def mean(self):
        return self.place[None]

    def sample(self, rng):
        return rng.multivariate_normal(self.place, self.cov, 1)

    def inner(self, a, b):
        return np.einsum("ri,ri->r", a, np.linalg.solve(self.cov, b.T).T)


@dataclass(frozen=True)
class ItemSampler:
    """The graph for `pgmult.sample`, persons summed out: an item given the others, and (mu, tau).

    Parameters
    ----------
    bases : GaussianRows
        Near the posterior of the items, and of nothing but the data.
    """

    bases: GaussianRows

    dims: ClassVar = {
        "items": ("item", "parameter"), "population": ("one", "moment"),
        "persons": ("pattern", "power"),
    }  # fmt: skip

    def prior(self, rng, data):
        population = PRIOR_SD * rng.standard_normal((1, 2))
        return ItemState(items_given(rng, population, data.right.shape[1]), population)

    def init(self, rng, data):
        return self.prior(rng, data)

    def simulate(self, rng, state, data):
        abilities = rng.standard_normal((data.persons.sum(), 1))
        eta = np.exp(state.items[:, 1]) * (abilities - state.items[:, 0])
        return Answers(rng.random(eta.shape) < expit(eta), np.ones(len(eta), dtype=int))

    def log_likelihood(self, state, data):
        return float(data.persons @ logsumexp(self._log_joint(state.items, data.right), axis=1))

    def persons(self, state, data):
        """E a and E a**2 of persons with each pattern of answers, ``(num_patterns, 2)``."""
        log_joint = self._log_joint(state.items, data.right)
        share = np.exp(log_joint - logsumexp(log_joint, axis=1, keepdims=True))
        return share @ np.stack([GRID, GRID**2], axis=1)

    def step(self, rng, state, data):
        items, (mu, tau) = state.items.copy(), state.population[0]
        for j in range(len(items)):
            column = data.right[:, j : j + 1]
            others = self._log_joint(np.delete(items, j, 0), np.delete(data.right, j, 1))

            base = Around(self.bases.mean[j], 2.0 * self.bases.cov[j])

            def beyond(new, active, column=column, others=others, base=base):
                value = others + self._log_prob(new, column)
                gap = (new - [mu, 0.0]) / [np.exp(tau), SLOPE_SD]
                away = new - base.place
                prior = 0.5 * (base.inner(away, away) - (gap**2).sum(axis=1))
                return data.persons @ logsumexp(value, axis=1, keepdims=True) + prior

            items[j : j + 1] = slice_around(rng, items[j : j + 1], base, beyond)
        known, only = Population(items[:, 0], np.zeros(len(items))), np.zeros(1, dtype=int)
        population = elliptical_slice(
            rng, lambda new, _: known.value(new, only) + 0.5 * ((new / PRIOR_SD) ** 2).sum(axis=1),
            state.population, PRIOR_SD * rng.standard_normal((1, 2)),
        )  # fmt: skip
        return ItemState(items, population)

    def _log_joint(self, items, right):
        """Log probability of abilities on the grid and of answers, ``(num_patterns, grid)``."""
        return LOG_WEIGHTS + self._log_prob(items, right)

    def _log_prob(self, items, right):
        eta = np.exp(items[:, 1:]) * (GRID - items[:, :1])
        return right @ log_expit(eta) + ~right @ log_expit(-eta)


def items_given(rng, population, size):
    """Items from their prior."""
    (mu, tau), noise = population[0], rng.standard_normal((size, 2))
    return np.array([mu, 0.0]) + np.array([np.exp(tau), SLOPE_SD]) * noise


def as_answers(right):
    patterns, persons = np.unique(right, axis=0, return_counts=True)
    return Answers(patterns, persons)


# ---------------------------------------------------------------- the comparison


def lsat():
    patterns = (np.arange(32)[:, None] >> np.arange(4, -1, -1)) & 1
    return np.repeat(patterns, LSAT, axis=0).astype(bool)


def simulated(num_persons=100, num_items=12):
    rng = np.random.default_rng(0)
    population = np.array([[0.0, 0.0]])
    items, abilities = items_given(rng, population, num_items), rng.standard_normal(num_persons)
    eta = np.exp(items[:, 1]) * (abilities[:, None] - items[:, 0])
    return rng.random(eta.shape) < expit(eta)


def sampled(answers, bases, draws, tune):
    """Means and standard deviations of every node, and how well the chains mix."""
    began = time.process_time()
    posterior = pgmult.sample(
        ItemSampler(bases), as_answers(answers), draws=draws, tune=tune, chains=4, random_seed=0,
        progressbar=False,
    )  # fmt: skip
    passed = time.process_time() - began
    for node in ("items", "population"):
        print(
            f"{node}: R-hat at most {r_hat(posterior[node]).max():.3f}, effective draws at least"
            f" {ess_bulk(posterior[node]).min():,.0f}; {passed:.0f} s of sampling"
        )
    exact = {
        node: (posterior[node].mean(axis=(0, 1)), posterior[node].std(axis=(0, 1)))
        for node in ("population", "items")
    }
    _, pattern = np.unique(answers, axis=0, return_inverse=True)
    first, second = posterior["persons"].mean(axis=(0, 1))[pattern.ravel()].T
    exact["persons"] = first[:, None], np.sqrt(second - first**2)[:, None]
    return exact


def compare(answers, draws, tune, methods=METHODS):
    """Errors of means in posterior standard deviations, and ratios of these, node by node."""
    fits, seconds, rows = {}, {}, {}
    for method in methods:
        model = ItemResponses(answers)
        began = time.process_time()
        fits[method] = fit_nonconjugate(model, model.start(), None, method=method)
        seconds[method] = time.process_time() - began
    exact = sampled(answers, fits[methods[0]].gaussians["items"], draws, tune)
    names = {"population": ("mu", "tau"), "items": ("b", "d"), "persons": ("a",)}
    for method, fit in fits.items():
        cells = []
        for node, (mean, sd) in exact.items():
            q = fit.gaussians[node]
            error = np.abs(q.mean - mean) / sd
            ratio = np.sqrt(np.diagonal(q.cov, axis1=1, axis2=2)) / sd
            for name, e, r in zip(names[node], error.T, ratio.T, strict=True):
                rows[method, name] = float(e.mean()), float(r.mean())
                cells.append(f"{name} {e.mean():.2f} {r.mean():.2f}")
        print(
            f"{method:15} bound {fit.objective:10.2f}, {fit.num_iterations:3d} rounds,"
            f" {seconds[method]:5.2f} s; error / sd and sd ratio: {', '.join(cells)}",
            flush=True,
        )
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+", choices=["lsat", "simulated"])
    parser.add_argument("--draws", type=int, default=3000, help="of each of four chains")
    parser.add_argument("--tune", type=int, default=300)
    options = parser.parse_args()
    for name in options.data:
        answers = {"lsat": lsat, "simulated": simulated}[name]()
        print(f"\n{name}: {answers.shape[0]} persons, {answers.shape[1]} questions")
        compare(answers, options.draws, options.tune)
