"""How often checks see defects: tables that are simulated with one, fitted by a small run.

    python -m tests.benchmarks.power [ROOM ...] [--seconds 240] [--most 100]

Each table is the model's but for one defect, and "none" shows how often a check speaks without
one, in tables of two sizes. A defect is seen where a statistic of `check` has p < .025 or
p > .975. Tables are simulated in turn for all defects of a room until its seconds of processor
time are used, at most `--most` of each; the table says how many there were.
"""

import argparse
import itertools
import time
import warnings
from collections import defaultdict

import numpy as np

import pgmult
from pgmult.choice import MixedLogit
from pgmult.fields import MultinomialGP, as_field
from pgmult.fields.covariances import Matern
from pgmult.links import StickBreaking
from pgmult.regression import AdditiveRegression
from pgmult.sequences import MarkovChain, as_sequences
from pgmult.topics import CorrelatedTopics


def small(model, data, seed, tune=25, **options):
    """Run two short chains."""
    return pgmult.sample(
        model, data, draws=100, tune=tune, chains=2, cores=1, random_seed=seed, progressbar=False,
        **options,
    )  # fmt: skip


def logistic(x):
    return 1.0 / (1.0 + np.exp(-x))


def regression(rng, defect, size, seed):
    """Counts of ten by two columns of numbers and 20 groups that the formula does not have."""
    n = 60 * size
    x, z = rng.uniform(-1.0, 1.0, (2, n))
    group, eta = rng.integers(20, size=n), 0.8 * x - 0.5 * z
    if defect == "a peak":
        eta += 1.5 * np.exp(-0.5 * np.square(x / 0.2))
    if defect == "a step":
        eta += 1.0 * (x > 0.3)
    if defect == "a missing interaction":
        eta += 1.5 * x * z
    if defect == "scatter between rows":
        eta += 0.7 * rng.standard_normal(n)
    if defect == "dependence within groups":
        eta += 0.7 * rng.standard_normal(20)[group]
    if defect == "heavy tails":
        eta += 0.4 * rng.standard_t(2, n)
    p = 1.0 - np.exp(-np.exp(2.0 * eta)) if defect == "a wrong link" else logistic(eta)
    yes = rng.binomial(10, p)
    table = {"yes": yes, "no": 10 - yes, "x": x, "z": z}
    rows = pgmult.read(table).rows("c(yes, no) ~ x + z")
    return small(AdditiveRegression(), rows, seed).check(max_draws=100)


def fields(rng, defect, size, seed):
    """100 counts at each of 10 or 20 years and 4 places on a line."""
    t, s = (a.ravel() for a in np.meshgrid(np.arange(10.0 * size), np.arange(4.0), indexing="ij"))
    middle, psi = 5.0 * size, np.stack([0.3 * np.sin(t / 5.0) + 0.2 * s, -0.5 + 0.03 * t], axis=1)
    if defect == "scatter between rows":
        psi = psi + 0.7 * rng.standard_normal(psi.shape)
    if defect == "heavy tails":
        psi = psi + 0.4 * rng.standard_t(2, psi.shape)
    if defect == "a peak":
        psi[:, 0] += 2.0 * (t == middle)
    if defect == "a step":
        psi[:, 0] += 1.0 * (t >= middle)
    if defect == "a missing interaction":
        psi[:, 0] += 0.15 * (t - middle) * (s == 3)
    counts = [rng.multinomial(100, p) for p in StickBreaking().probs(psi)]
    covariance = 1.0 * Matern(1.5, 7.0, active=[0]) * Matern(0.5, 1.0, active=[1])
    data = as_field(np.stack([t, s], axis=1), counts)
    model = MultinomialGP(covariance, overdispersion=0.05)
    return small(model, data, seed).check(max_draws=100)


def sequences(rng, defect, size, seed):
    """30 sequences of 25 or 50 steps of three symbols, by a Markov chain of first order."""
    stay, data = 0.7, []
    for _ in range(30):
        symbol, line, shift = int(rng.integers(3)), [], 0.0
        if defect == "dependence within groups":
            shift = 1.5 * rng.standard_normal()
        while len(line) < 25 * size:
            if defect == "states that last other than geometrically":
                line += [symbol] * int(rng.integers(2, 5))
            elif defect == "heavy tails":
                line += [symbol] * min(1 + int(2.0 * rng.pareto(1.2)), 25)
            else:
                keep = 0.9 if defect == "a step" and len(line) > 12 * size else stay
                stays = logistic(np.log(keep / (1.0 - keep)) + shift)
                line += [symbol] * int(rng.geometric(1.0 - stays))
            symbol = (symbol + int(rng.integers(1, 3))) % 3
        data.append("".join("ABC"[k] for k in line[: 25 * size]))
    return small(MarkovChain(1), as_sequences(data), seed).check(max_draws=100)


def choice(rng, defect, size, seed):
    """150 or 300 choices of one of three by price and quality; 30 people answer."""
    n = 150 * size
    price, quality = rng.uniform(1.0, 5.0, (2, n, 3))
    utility = -0.8 * price + 0.5 * quality
    if defect == "a peak":
        utility += 2.0 * np.exp(-0.5 * np.square((price - 3.0) / 0.4))
    if defect == "a step":
        utility -= 1.5 * (price > 3.0)
    if defect == "a missing interaction":
        utility += 0.4 * (price - 3.0) * (quality - 3.0)
    if defect == "dependence within groups":
        utility += 0.8 * rng.standard_normal(30)[np.arange(n) % 30, None] * (price - 3.0)
    noise = rng.gumbel(size=(n, 3))
    if defect == "heavy tails":
        noise = rng.standard_t(2, (n, 3))
    taken = (utility + noise).argmax(axis=1)
    table = {
        "case": np.repeat(np.arange(n), 3),
        "taken": (np.arange(3) == taken[:, None]).astype(int).ravel(),
        "price": price.ravel(), "quality": quality.ravel(),
    }  # fmt: skip
    data = pgmult.read(table).choices("taken ~ price + quality", occasion="case")
    return small(MixedLogit(), data, seed).check(max_draws=100)


def topics(rng, defect, size, seed):
    """50 or 100 texts of 40 words of three topics."""
    num, phi = 50 * size, np.repeat(0.08 * np.eye(3) + 0.01, 10, axis=1)
    group = np.arange(num) % 2
    corpus = []
    for document in range(num):
        theta = rng.dirichlet([0.5] * 3)
        words = phi / phi.sum(axis=1, keepdims=True)
        if defect == "dependence within groups":
            words = np.array([rng.dirichlet(15.0 * row) for row in words])
        if defect == "a missing interaction":
            words = words * np.where(np.arange(30) % 2 == group[document], 1.5, 0.5)
        p = theta @ words
        corpus.append(rng.multinomial(40, p / p.sum()))
    run = small(CorrelatedTopics(3), np.array(corpus), seed, tune=60, keep=["topics", "theta"])
    return run.check(groups={"group": group}, max_draws=40)


COMMON = ("none", "a peak", "a step", "a missing interaction")
ROOMS = {
    regression: (*COMMON, "scatter between rows", "dependence within groups", "heavy tails",
                 "a wrong link"),
    fields: (*COMMON, "scatter between rows", "heavy tails"),
    sequences: ("none", "a step", "dependence within groups", "heavy tails",
                "states that last other than geometrically"),
    choice: (*COMMON, "dependence within groups", "heavy tails"),
    topics: ("none", "a missing interaction", "dependence within groups"),
}  # fmt: skip


def power(room, seconds, most):
    """Print how often each defect is seen, by size of the table."""
    began, seen = time.process_time(), defaultdict(list)
    for seed, defect, size in itertools.product(range(most), ROOMS[room], (1, 2)):
        if time.process_time() - began > seconds:
            break
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = room(np.random.default_rng([seed, size]), defect, size, seed)
        odd = (answer.p_values < 0.025) | (answer.p_values > 0.975)
        seen[defect, size].append(list(itertools.compress(answer.statistics, odd)))
    for defect in ROOMS[room]:
        tables = [seen[defect, size] for size in (1, 2)]
        shares = [f"{sum(map(bool, named))} of {len(named)}" for named in tables]
        names = [name.split(",")[0] for named in tables for odd in named for name in odd]
        often = sorted(set(names), key=lambda name: -names.count(name))[:2]
        cells = [room.__name__, defect, *shares, ", ".join(often)]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rooms", nargs="*", default=[room.__name__ for room in ROOMS])
    parser.add_argument("--seconds", type=float, default=240.0, help="Processor seconds a room")
    parser.add_argument("--most", type=int, default=100, help="Tables of each defect, at most")
    options = parser.parse_args()
    print("| job | defect | smaller table | larger table | statistics |\n|---|---|---|---|---|")
    for each in ROOMS:
        if each.__name__ in options.rooms:
            power(each, options.seconds, options.most)
