"""Models that mix slowly, beside NUTS, and what a sweep of tiny data costs.

    python -m tests.benchmarks.mixing                           # all of it
    python -m tests.benchmarks.mixing regressions [--only iris wine] [--sweeps 3000] [--draws 500]
    python -m tests.benchmarks.mixing tiny

`regressions`: as a model moves its weights, and NUTS. For each posterior the
effective sample sizes of the weights' means a CPU second, smallest and median, of one chain after
warm-up; the search for the Gaussian is counted, the compilation of anything is not.

`tiny`: milliseconds of a processor a sweep of next to no data, for every model.

NUTS is numpyro's, in float64, where it is installed. Run with OPENBLAS_NUM_THREADS=1 and
XLA_FLAGS=--xla_cpu_multi_thread_eigen=false.
"""

import argparse
import time
from functools import partial
from importlib.util import find_spec

import numpy as np
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import pgmult
from pgmult import fields, sequences, topics
from pgmult.fields.covariances import Matern
from pgmult.priors import Normal
from pgmult.regression import AdditiveRegression
from pgmult.sampling.diagnostics import mcse_mean
from tests.benchmarks import beside, sequences_mixing


def standardised(load):
    x, y = load(return_X_y=True)
    return np.column_stack([np.ones(len(x)), (x - x.mean(axis=0)) / x.std(axis=0)]), y


def rare(intercept):
    def load():
        rng = np.random.default_rng(1)
        x = np.column_stack([np.ones(10_000), rng.standard_normal((10_000, 4))])
        weights = np.array([intercept, 0.17, 0.41, 0.17, -0.65])
        return x, (rng.random(10_000) < expit(x @ weights)).astype(np.int64)

    return load


POSTERIORS = {  # rows and labels, variance of the prior
    "balanced": (rare(0.0), 100.0),
    "rare": (rare(-5.1), 100.0),
    "rarer": (rare(-8.0), 100.0),
    "cancer": (lambda: standardised(load_breast_cancer), 100.0),
    "iris": (lambda: standardised(load_iris), 1.0),
    "wine": (lambda: standardised(load_wine), 1.0),
}


def rows_of_matrix(x, y):
    columns = {f"x{j}": column for j, column in enumerate(x.T)}
    table = {"y": np.array([f"class {k}" for k in y]), **columns}
    return pgmult.read(table).rows(f"y ~ {' + '.join(columns)}")


def ours(model, make_data, sweeps):
    rng = np.random.default_rng(0)
    model.init(rng, make_data())  # compiles
    data = make_data()
    start = time.process_time()
    state = model.init(rng, data)
    for _ in range(100):
        state = model.step(rng, state, data)
    draws = np.empty((sweeps, state.weights.size))
    for draw in draws:
        state = model.step(rng, state, data)
        draw[:] = state.weights.ravel()
    return draws, time.process_time() - start


def nuts(x, y, var, num_draws):
    _, jnp, numpyro, dist = beside.numpyro_parts()
    x, y, classes = jnp.asarray(x), jnp.asarray(y), int(y.max()) + 1

    def model():
        shape = (classes, x.shape[1]) if classes > 2 else (x.shape[1],)
        normal = dist.Normal(jnp.zeros(shape), var**0.5)
        w = numpyro.sample("w", normal.to_event(len(shape)))
        psi = x @ w.T
        law = dist.Categorical(logits=psi) if classes > 2 else dist.Bernoulli(logits=psi)
        numpyro.sample("y", law, obs=y)

    found, seconds = beside.nuts(model, 300, num_draws, warmed=True)
    return found["w"].reshape(num_draws, -1), seconds


def report(name, draws, seconds):
    sizes = draws.var(axis=0) / mcse_mean(draws[None]) ** 2
    print(
        f"  {name:7s} min {sizes.min() / seconds:8.1f}  median {np.median(sizes) / seconds:8.1f}"
        f"  ({len(draws)} draws, smallest effective size {sizes.min():.0f}, {seconds:.2f} s)",
        flush=True,
    )


def regressions(options):
    for name in options.only or POSTERIORS:
        load, var = POSTERIORS[name]
        x, y = load()
        size, classes = x.shape[1], len(np.unique(y))
        print(f"{name}: {len(x)} rows, {size} columns, counts {np.bincount(y).tolist()}")
        effects = "softmax" if classes > 2 else "sticks"
        prior = Normal(0.0, var**0.5)
        model = AdditiveRegression(effects, {"Intercept": prior, "fixed": prior})
        make_data = partial(rows_of_matrix, x[:, 1:], y)
        draws, seconds = ours(model, make_data, options.sweeps)
        report("pgmult", draws, seconds)
        if find_spec("numpyro") is not None:
            others, seconds = nuts(x, y, var, options.draws)
            report("NUTS", others, seconds)


def tiny_models():
    """Names, models and data: 20 documents, 80 steps, 20 rows, 6 places."""
    rng = np.random.default_rng(0)
    words, x = rng.poisson(2.0, size=(20, 30)), rng.standard_normal((20, 2))
    yield "CorrelatedTopics", topics.CorrelatedTopics(5), topics.as_corpus(words)
    yield "LogisticNormalTopics", topics.LogisticNormalTopics(5), topics.as_corpus(words)
    yield "LDA", topics.LDA(5), topics.as_corpus(words)
    covered = topics.with_covariates(words, {"x": x[:, 0]})
    yield "StructuralTopics", topics.StructuralTopics(5), covered
    timed = topics.as_timed_corpus(words, np.arange(20) // 5)
    yield "DynamicTopics", topics.DynamicTopics(5), timed
    steps = sequences_mixing.simulated(1, 3)
    yield "MultinomialLDS", sequences.MultinomialLDS(1), steps
    yield "MultinomialHMM", sequences.MultinomialHMM(2), steps
    for structure, size in (("dense", 6), ("state_space", 80)):
        field = fields.as_field(np.arange(float(size)), rng.poisson(2.0, size=(size, 3)))
        yield (
            f"MultinomialGP, {structure}", fields.MultinomialGP(Matern(1.5), structure=structure),
            field,
        )  # fmt: skip
    for labels in (2, 3):
        data = rows_of_matrix(x, np.arange(20) % labels)
        yield f"AdditiveRegression, {labels} categories", AdditiveRegression(), data


def tiny(options):
    for name, model, given in tiny_models():
        rng = np.random.default_rng(0)
        data = model.as_data(given) if hasattr(model, "as_data") else given
        state, best = model.step(rng, model.init(rng, data), data), np.inf
        for _ in range(7):
            begun = time.process_time()
            for _ in range(options.repeats):
                state = model.step(rng, state, data)
            best = min(best, (time.process_time() - begun) / options.repeats)
        print(f"{name:28s} {1e3 * best:7.3f} ms a sweep", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=["regressions", "tiny"])
    parser.add_argument("--only", nargs="*", default=[], choices=POSTERIORS)
    parser.add_argument("--sweeps", type=int, default=3000)
    parser.add_argument("--draws", type=int, default=500, help="of NUTS, for a regression")
    parser.add_argument("--repeats", type=int, default=100, help="sweeps of a timing")
    options = parser.parse_args()
    parts = {"regressions": regressions, "tiny": tiny}
    for name, part in parts.items():
        if options.part in (None, name):
            part(options)


if __name__ == "__main__":
    main()
