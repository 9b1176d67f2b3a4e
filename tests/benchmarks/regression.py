"""Bayesian logistic regression of one label of Yeast: approximations, Gibbs, and peers.

    python tests/benchmarks/regression.py              # everything that is installed
    python tests/benchmarks/regression.py --skip numpyro

Needs ``yeast/yeast.npz`` in the folder that PGMULT_DATA names. 1,500 rows, 103 covariates and a
column of ones, prior N(0, I), label 1. Run with OPENBLAS_NUM_THREADS=1 (and OMP_NUM_THREADS=1) for
times of one thread. nutpie, numpyro and statsmodels are timed beside where they are installed:

* approximations: milliseconds of the best of many fits, and log evidence;
* samplers: one chain after warm-up; the smallest effective sample size of a mean, a second.
"""

import argparse
import os
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import pgmult
from pgmult.sampling.diagnostics import ess_mean
from pgmult.variational.sites import LOGISTIC_METHODS


def yeast():
    file = np.load(Path(os.environ.get("PGMULT_DATA", "shared/data")) / "yeast" / "yeast.npz")
    x = np.column_stack([file["X_train"], np.ones(len(file["X_train"]))])
    return x, file["Y_train"][:, 0].astype(np.int64)


def best(function, repeats=15):
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def report(name, draws, seconds, warm_up=0.0):
    """`draws` of one chain, ``(draws, weights)``."""
    size = ess_mean(draws[None]).min()
    print(
        f"{name:24s} {size / seconds:8.0f} a second ({len(draws)} draws, smallest effective size"
        f" {size:.0f}, {seconds:.2f} s; {warm_up:.1f} s before)",
        flush=True,
    )


def approximations(x, y):
    model, data = pgmult.regression.LogisticRegression(), pgmult.regression.as_labelled_rows(x, y)
    for method in LOGISTIC_METHODS:
        seconds, fit = best(
            lambda m=method: pgmult.regression.fit_logistic_regression(model, data, method=m)
        )
        print(
            f"{method:24s} {1e3 * seconds:8.2f} ms, {fit.num_iterations} iterations,"
            f" log evidence {fit.objective:.3f}",
            flush=True,
        )


def gibbs(x, y, sweeps):
    model, data = pgmult.regression.LogisticRegression(), pgmult.regression.as_labelled_rows(x, y)
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    state = model.init(rng, data)
    for _ in range(200):
        state = model.step(rng, state, data)
    warm_up = time.perf_counter() - start
    draws = np.empty((sweeps, x.shape[1]))
    start = time.perf_counter()
    for draw in draws:
        state = model.step(rng, state, data)
        draw[:] = state.weights[0]
    report("Pólya-gamma Gibbs", draws, time.perf_counter() - start, warm_up)


def statsmodels(x, y):
    import statsmodels.api as sm

    seconds, _ = best(lambda: sm.Logit(y, x).fit(disp=0, maxiter=100), repeats=3)
    print(f"{'statsmodels Logit':24s} {1e3 * seconds:8.2f} ms, maximum likelihood without a prior")


def nutpie(x, y, draws):
    import nutpie
    from nutpie.compiled_pyfunc import from_pyfunc

    def make_log_density():
        def log_density(w):
            psi = x @ w
            tail = np.exp(-np.abs(psi))
            share = np.where(psi > 0.0, 1.0, tail) / (1.0 + tail)
            value = y @ psi - (np.maximum(psi, 0.0) + np.log1p(tail)).sum() - 0.5 * w @ w
            return float(value), x.T @ (y - share) - w

        return log_density

    model = from_pyfunc(
        x.shape[1], make_log_density, lambda *seeds: lambda w: {"w": np.array(w)},
        [np.dtype("float64")], [(x.shape[1],)], ["w"],
    )  # fmt: skip
    seconds, found = [], None
    for count in (1, draws):  # the difference is the time of the draws themselves
        start = time.perf_counter()
        found = nutpie.sample(
            model, draws=count, tune=400, chains=1, cores=1, seed=1, progress_bar=False
        )
        seconds.append(time.perf_counter() - start)
    samples = np.asarray(found.posterior["w"])[0]
    report("nutpie", samples, seconds[1] - seconds[0], seconds[0])
    report("nutpie, with its tuning", samples, seconds[1])


def numpyro(x, y, draws):
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    jax.config.update("jax_enable_x64", True)

    def model():
        w = numpyro.sample("w", dist.Normal(jnp.zeros(x.shape[1]), 1.0).to_event(1))
        numpyro.sample("y", dist.Bernoulli(logits=jnp.asarray(x) @ w), obs=jnp.asarray(y))

    mcmc = MCMC(NUTS(model), num_warmup=400, num_samples=draws, progress_bar=False)
    start = time.perf_counter()
    mcmc.warmup(jax.random.PRNGKey(0))
    warm_up = time.perf_counter() - start
    mcmc.run(jax.random.PRNGKey(1))  # compiles the sampling loop
    start = time.perf_counter()
    mcmc.run(jax.random.PRNGKey(2))
    samples = np.asarray(mcmc.get_samples()["w"])
    report("numpyro NUTS", samples, time.perf_counter() - start, warm_up)


def main(options):
    x, y = yeast()
    approximations(x, y)
    gibbs(x, y, options.sweeps)
    peers = {
        "statsmodels": lambda: statsmodels(x, y),
        "nutpie": lambda: nutpie(x, y, options.draws),
        "numpyro": lambda: numpyro(x, y, options.draws),
    }
    for name, run in peers.items():
        if name in options.skip:
            continue
        if find_spec(name) is None:
            print(f"{name} is not installed: left out")
            continue
        run()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sweeps", type=int, default=3000)
    parser.add_argument("--draws", type=int, default=1000, help="of the peers")
    parser.add_argument("--skip", nargs="*", default=[], help="names of peers to leave out")
    main(parser.parse_args())
