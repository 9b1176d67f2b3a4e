"""Regressions that mix slowly: Pólya-gamma Gibbs, slices around a Gaussian, and NUTS.

    python tests/benchmarks/mixing.py                     # everything
    python tests/benchmarks/mixing.py --only iris wine    # some of it

For each posterior the effective sample sizes of the weights' means a CPU second, smallest and
median, of one chain after warm-up; the search for the Gaussian is counted, the compilation of
anything is not. Then how far the samplers' means and standard deviations are from each other, in
Monte-Carlo standard errors. NUTS is numpyro's, in float64, where it is installed. Run with
OPENBLAS_NUM_THREADS=1 and XLA_FLAGS=--xla_cpu_multi_thread_eigen=false.
"""

import argparse
import time
from importlib.util import find_spec

import numpy as np
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from pgmult import MvNormal
from pgmult.regression import (
    LogisticRegression,
    SoftmaxRegression,
    as_counted_rows,
    as_labelled_rows,
)
from pgmult.sampling.diagnostics import ess_mean


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
    "none": (rare(-30.0), 100.0),
    "cancer": (lambda: standardised(load_breast_cancer), 100.0),
    "iris": (lambda: standardised(load_iris), 1.0),
    "wine": (lambda: standardised(load_wine), 1.0),
}


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
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    jax.config.update("jax_enable_x64", True)
    x, y, classes = jnp.asarray(x), jnp.asarray(y), int(y.max()) + 1

    def model():
        shape = (classes, x.shape[1]) if classes > 2 else (x.shape[1],)
        normal = dist.Normal(jnp.zeros(shape), var**0.5)
        w = numpyro.sample("w", normal.to_event(len(shape)))
        psi = x @ w.T
        law = dist.Categorical(logits=psi) if classes > 2 else dist.Bernoulli(logits=psi)
        numpyro.sample("y", law, obs=y)

    mcmc = MCMC(NUTS(model), num_warmup=300, num_samples=num_draws, progress_bar=False)
    mcmc.warmup(jax.random.PRNGKey(0))
    mcmc.run(jax.random.PRNGKey(1))  # compiles the sampling loop
    start = time.process_time()
    mcmc.run(jax.random.PRNGKey(2))
    draws = np.asarray(mcmc.get_samples()["w"]).reshape(num_draws, -1)
    return draws, time.process_time() - start


def report(name, draws, seconds):
    sizes = ess_mean(draws[None])
    print(
        f"  {name:7s} min {sizes.min() / seconds:8.1f}  median {np.median(sizes) / seconds:8.1f}"
        f"  ({len(draws)} draws, smallest effective size {sizes.min():.0f}, {seconds:.2f} s)",
        flush=True,
    )


def agreement(one, other):
    """Largest differences of means and of log sds, in Monte-Carlo standard errors."""
    sizes = [np.ravel(ess_mean(draws[None])) for draws in (one, other)]
    squares = [np.ravel(ess_mean(((d - d.mean(0)) ** 2)[None])) for d in (one, other)]
    sds = [draws.std(axis=0) for draws in (one, other)]
    error = np.sqrt(sds[0] ** 2 / sizes[0] + sds[1] ** 2 / sizes[1])
    means = np.abs(one.mean(axis=0) - other.mean(axis=0)) / error
    tails = [np.mean(((d - d.mean(0)) / d.std(0)) ** 4, axis=0) - 1.0 for d in (one, other)]
    error = 0.5 * np.sqrt(tails[0] / squares[0] + tails[1] / squares[1])
    spreads = np.abs(np.log(sds[0] / sds[1])) / error
    print(f"  slices and NUTS: means within {means.max():.1f} errors, sds {spreads.max():.1f}")


def main(options):
    for name in options.only:
        load, var = POSTERIORS[name]
        x, y = load()
        size, classes = x.shape[1], len(np.unique(y))
        print(f"{name}: {len(x)} rows, {size} columns, counts {np.bincount(y).tolist()}")
        prior = MvNormal(np.zeros(size), var * np.eye(size))
        if classes > 2:
            models = {"slice": (SoftmaxRegression(prior), lambda x=x, y=y: as_counted_rows(x, y))}
        else:
            models = {
                update: (LogisticRegression(prior, update), lambda x=x, y=y: as_labelled_rows(x, y))
                for update in ("gibbs", "auto")
            }
        for update, (model, make_data) in models.items():
            draws, seconds = ours(model, make_data, options.sweeps)
            report(update, draws, seconds)
        if find_spec("numpyro") is not None:
            others, seconds = nuts(x, y, var, options.draws)
            report("NUTS", others, seconds)
            agreement(draws, others)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=list(POSTERIORS), choices=list(POSTERIORS))
    parser.add_argument("--sweeps", type=int, default=3000)
    parser.add_argument("--draws", type=int, default=500, help="of NUTS")
    main(parser.parse_args())
