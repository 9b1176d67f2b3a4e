"""Regressions whose weights have learned scales, beside NUTS: effective draws a CPU second.

    python tests/benchmarks/scales.py                        # horseshoe and half-t, three outcomes
    python tests/benchmarks/scales.py --priors horseshoe --outcomes softmax --skip-peers

300 rows, 20 columns of which three matter, an intercept with N(0, 2.5^2). NUTS is numpyro's, not
centred, in double precision, without compilation but with its warm-up. A line tells the least and
the median a second of weights (less their mean over categories, of a softmax), of the logarithm of
the common scale and of those of the columns' own. Run with OPENBLAS_NUM_THREADS=1 and
XLA_FLAGS=--xla_cpu_multi_thread_eigen=false.
"""

import argparse
import time
import warnings

import numpy as np
from beside import numpyro_parts, nuts, tell

OUTCOMES, PRIORS = ("softmax", "logistic", "poisson"), ("horseshoe", "half-t")


def rows(outcome, num_rows=300, columns=20, seed=0):
    """Columns with an intercept, and outcomes."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(num_rows), rng.standard_normal((num_rows, columns))])
    if outcome == "softmax":
        weights = np.zeros((4, columns + 1))
        weights[:, 1:4] = [[1.5, 0, -0.8], [-1, 0, 0], [0, 1.2, 0], [0, -1.2, 0.8]]
        return x, (x @ weights.T + rng.gumbel(size=(num_rows, 4))).argmax(axis=1)
    psi = x[:, 1:4] @ [1.5, -1.0, 0.6]
    if outcome == "logistic":
        return x, (rng.random(num_rows) < 1.0 / (1.0 + np.exp(-psi))).astype(np.int64)
    return x, rng.poisson(np.exp(0.5 * psi))


def pgmult_draws(outcome, prior, draws):
    """Draws of weights and logarithms of scales, and seconds."""
    from pgmult import regression
    from pgmult.priors import MvNormal

    x, y = rows(outcome)
    size = x.shape[1]
    normal = MvNormal(np.zeros(size), np.diag([6.25] + [1.0] * (size - 1)))
    kind, as_rows = {
        "softmax": (regression.SoftmaxRegression, regression.as_counted_rows),
        "logistic": (regression.LogisticRegression, regression.as_labelled_rows),
        "poisson": (regression.PoissonRegression, regression.as_event_rows),
    }[outcome]
    scales = regression.Horseshoe() if prior == "horseshoe" else regression.HalfT()
    model = regression.ScaledRegression(kind(normal), scales, np.arange(size) > 0)
    data, rng, kept = as_rows(x, y), np.random.default_rng(0), []
    model.step(rng, model.init(rng, data), data)  # compiles
    start = time.process_time()
    state = model.init(rng, data)
    for i in range(draws + draws // 5):
        state = model.step(rng, state, data)
        if i >= draws // 5:
            kept.append((state.weights, state.common_var, state.local_vars[1:]))
    seconds = time.process_time() - start
    weights, common, local = (np.array(parts) for parts in zip(*kept, strict=True))
    return weights, 0.5 * np.log(common), 0.5 * np.log(local), seconds


def numpyro_draws(outcome, prior, draws):
    """The same of NUTS."""
    jax, jnp, numpyro, dist = numpyro_parts()
    x, y = rows(outcome)
    size, num = x.shape[1] - 1, 4 if outcome == "softmax" else 1
    half_t = dist.FoldedDistribution(dist.StudentT(3.0, 0.0, 1.0))

    def model(times):
        common = numpyro.sample("common", half_t if prior == "half-t" else dist.HalfCauchy(1.0))
        local = jnp.ones(size)
        if prior == "horseshoe":
            local = numpyro.sample("local", dist.HalfCauchy(local).to_event(1))
        first = numpyro.sample("first", dist.Normal(0, 2.5).expand([num, 1]).to_event(2))
        z = numpyro.sample("z", dist.Normal(0, 1).expand([num, size]).to_event(2))
        weights = jnp.concatenate([first, z * local * common], axis=1)
        psi = jnp.asarray(x) @ numpyro.deterministic("weights", weights).T
        if outcome == "softmax":
            value = psi[jnp.arange(len(y)), y] - jax.nn.logsumexp(psi, axis=1)
        else:
            rest = jnp.logaddexp(0.0, psi) if outcome == "logistic" else jnp.exp(psi)
            value = (y[:, None] * psi - rest)[:, 0]
        numpyro.factor("y", times * jnp.sum(value))

    found, seconds = nuts(model, draws, draws, 1.0, first=(0.0,))
    local = np.log(found.get("local", np.ones((draws, size))))
    return found["weights"], np.log(found["common"]), local, seconds


def told(name, weights, common, local, seconds):
    """A line."""
    if weights.shape[1] > 1:
        weights = weights - weights.mean(axis=1, keepdims=True)
    parts = {"weights": weights[None], "common": common[None]}
    if local.std() > 0.0:
        parts["columns"] = local[None]
    tell(name, seconds, **parts)
    print(f"    log of the common scale {common.mean():.2f} +- {common.std():.2f}", flush=True)


def main(options):
    """Every outcome and prior."""
    warnings.simplefilter("ignore")
    for prior in options.priors:
        for outcome in options.outcomes:
            found = pgmult_draws(outcome, prior, options.draws)
            told(f"{prior}, {outcome}: pgmult", *found)
            if not options.skip_peers:
                found = numpyro_draws(outcome, prior, options.peer_draws)
                told(f"{prior}, {outcome}: NUTS", *found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--priors", nargs="*", default=PRIORS, choices=PRIORS)
    parser.add_argument("--outcomes", nargs="*", default=OUTCOMES, choices=OUTCOMES)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--peer-draws", type=int, default=500, help="and as many of warm-up")
    parser.add_argument("--skip-peers", action="store_true")
    main(parser.parse_args())
