"""Multinomial Gaussian processes on the names data: effective draws a second, beside NUTS.

Needs the names (PGMULT_DATA, or a download); numpyro is timed beside where it is installed.

    python tests/benchmarks/gaussian_processes.py small                   # ours, then NUTS
    python tests/benchmarks/gaussian_processes.py small --methods sbm_fixed sbm_learned
    python tests/benchmarks/gaussian_processes.py moves
    OPENBLAS_NUM_THREADS=1 python tests/benchmarks/gaussian_processes.py fresh --nuts
    python tests/benchmarks/gaussian_processes.py small --seeds 0 1 2 --methods sbm_learned
    OPENBLAS_NUM_THREADS=1 python tests/benchmarks/gaussian_processes.py scale
    OPENBLAS_NUM_THREADS=1 python tests/benchmarks/gaussian_processes.py mixing
    OPENBLAS_NUM_THREADS=1 python tests/benchmarks/gaussian_processes.py chain --times 1000

`small`: boys' names in 3 states, 50 years, the 10 most frequent names, at most 50 births a cell;
a Matérn 5/2 of the year times a squared exponential of the place. Effective draws are of log pi at
all inputs and names, their median and minimum, and of the logarithms of the hyperparameters; time
is that of sampling alone, after tuning and compilation. The peers put a softmax on as many
functions as there are names, with the same covariance, whitened; `nuts_hsgp` expands the function
of time in 20 sines (Riutort-Mayol et al. 2023).

`mixing`: effective draws a sweep and a processor second of psi where counts reach, of the empty
cells among them and of the logarithms of the hyperparameters: full counts over a century, balanced
counts, one rare category along a chain.

`chain`: the rare category along a chain, hyperparameters sampled, beside NUTS of the same model,
whitened: effective draws a processor second of psi and of the logarithms of the hyperparameters,
start, tuning and compilation included, and how many standard errors the means are apart.

`moves`: effective draws a move and a processor second of each move by itself, see
`pgmult.latent.moves`: of psi, least and median, and of the logarithms of the hyperparameters.

`fresh`: small fields, 40 uneven years with four categories, five counts of 10,000, and 5 places in
12 years; `--nuts` as well by numpyro's NUTS of the same model, whitened (500 draws to tune, not
counted).

`scale`: 200 boys' names in all states, 1960 to 2013, 50 births a cell and all of them. Processor
seconds of a whole sweep of `MultinomialGP` at fixed hyperparameters (the best of `--sweeps`), with
a learned mean and draws at all states in the next two years, and the peak memory of a process that
did nothing else. The dense structure does two sticks; its sweep is scaled to 199.
"""

import argparse
import resource
import subprocess
import sys
import time

import numpy as np

import pgmult
from pgmult.datasets.names import thin, us_names
from pgmult.fields.covariances import Matern, SquaredExponential
from pgmult.fields.models import multinomial_gp as gp_model
from pgmult.latent.moves import Point, carry, leap, swing, turn
from pgmult.sampling.diagnostics import ess_bulk

YEAR_SCALE, PLACE_SCALE, VAR = 30.0, 5.0, 1.0  # where the covariance is fixed, and prior medians


def covariance():
    years = Matern(2.5, YEAR_SCALE, active=[0])
    return VAR * years * SquaredExponential(PLACE_SCALE, active=[1, 2])


def small_field(seed=0):
    names = us_names("M", 10, years=range(1960, 2010), states=["MA", "NY", "VT"])
    counts = thin(names.counts, 50, seed)
    return pgmult.fields.as_field(names.inputs(), counts.reshape(-1, 10))


def effective(draws):
    """ESS of each entry of one chain's draws."""
    return ess_bulk(np.asarray(draws)[None]).ravel()


def report(name, seconds, log_pi, hyperparameters=None):
    ess, count = effective(log_pi), len(log_pi)
    line = (
        f"{name:<14} {count:5d} draws {1e3 * seconds / count:8.2f} ms each;"
        f" log pi ESS/s median {np.median(ess) / seconds:7.1f} min {ess.min() / seconds:7.1f}"
    )
    if hyperparameters is not None:
        each = effective(hyperparameters) / seconds
        line += f"; hyperparameters {', '.join(f'{value:.1f}' for value in each)}"
    print(line, flush=True)


def sbm(data, draws, hyperparameters, mean="constant", structure="dense", tune=200):
    model = pgmult.fields.MultinomialGP(
        covariance(), structure=structure, mean=mean, hyperparameters=hyperparameters
    )
    rng = np.random.default_rng(1)
    state = model.init(rng, data)
    for _ in range(tune):
        state = model.step(rng, state, data)
    log_pi, thetas = [], []
    start = time.perf_counter()
    for _ in range(draws):
        state = model.step(rng, state, data)
        log_pi.append(np.log(model.pi(state, data)))
        thetas.append(np.log(state.hyperparameters[0]))
    seconds = time.perf_counter() - start
    return seconds, log_pi, thetas if hyperparameters == "sampled" else None


def nuts(data, draws, kind, tune=300):
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    jax.config.update("jax_enable_x64", True)
    years, places = np.unique(data.inputs[:, 0]), data.inputs[:3, 1:]
    counts = jnp.asarray(data.counts.reshape(len(years), 3, -1))
    size = counts.shape[2]
    apart = jnp.asarray(np.abs(years[:, None] - years))
    far = jnp.asarray(((places[:, None] - places) ** 2).sum(-1))
    middle, half = years.mean(), np.ptp(years) / 2.0
    edge = 1.5 * half
    roots = np.arange(1, 21) * np.pi / (2.0 * edge)
    sines = jnp.asarray(np.sin(roots * (years[:, None] - middle + edge)) / np.sqrt(edge))

    def matern(scale):
        r = np.sqrt(5.0) * apart / scale
        return (1.0 + r + r * r / 3.0) * jnp.exp(-r)

    def spectrum(scale):
        rate = np.sqrt(5.0) / scale
        return 16.0 / 3.0 * rate**5 / (rate**2 + roots**2) ** 3

    def model():
        if kind == "nuts_fixed":
            var, year_scale, place_scale = VAR, YEAR_SCALE, PLACE_SCALE
        else:
            medians = jnp.log(jnp.array([VAR, YEAR_SCALE, PLACE_SCALE]))
            theta = numpyro.sample("theta", dist.Normal(medians, 1.0))
            var, year_scale, place_scale = jnp.exp(theta)
        level = numpyro.sample("level", dist.Normal(jnp.zeros(size), 2.0))
        place_root = jnp.linalg.cholesky(jnp.exp(-0.5 * far / place_scale**2) + 1e-8 * jnp.eye(3))
        if kind == "nuts_hsgp":
            z = numpyro.sample("z", dist.Normal(jnp.zeros((20, 3, size)), 1.0))
            year_root = sines * jnp.sqrt(spectrum(year_scale))
        else:
            z = numpyro.sample("z", dist.Normal(jnp.zeros((len(years), 3, size)), 1.0))
            year_root = jnp.linalg.cholesky(matern(year_scale) + 1e-8 * jnp.eye(len(years)))
        f = jnp.sqrt(var) * jnp.einsum("tb,ps,bsk->tpk", year_root, place_root, z)
        log_pi = numpyro.deterministic("log_pi", jax.nn.log_softmax(level + f, axis=-1))
        numpyro.factor("counts", jnp.sum(counts * log_pi))

    sampler = MCMC(NUTS(model), num_warmup=tune, num_samples=draws, progress_bar=False)
    sampler.warmup(jax.random.PRNGKey(0))
    start = time.perf_counter()
    sampler.run(jax.random.PRNGKey(1))
    samples = sampler.get_samples()
    log_pi = np.asarray(samples["log_pi"]).reshape(draws, -1, size)
    seconds = time.perf_counter() - start
    return seconds, log_pi, samples.get("theta")


SMALL = {
    "sbm_fixed": lambda data, draws: sbm(data, draws, "fixed"),
    "sbm_fixed_mean": lambda data, draws: sbm(data, draws, "fixed", mean="empirical"),
    "nuts_fixed": lambda data, draws: nuts(data, draws, "nuts_fixed"),
    "sbm_learned": lambda data, draws: sbm(data, draws, "sampled"),
    "nuts_hsgp": lambda data, draws: nuts(data, draws, "nuts_hsgp"),
    "nuts_learned": lambda data, draws: nuts(data, draws, "nuts_learned"),
}


def small(options):
    for seed in options.seeds:
        data = small_field(seed)
        print(f"seed {seed}: {data}")
        for name in options.methods:
            try:
                report(name, *SMALL[name](data, options.draws))
            except ImportError as error:
                print(f"{name:<14} not timed: {error}")


def names_field(sex, size, states, years, births=None):
    names = us_names(sex, size, years=years, states=states)
    counts = names.counts if births is None else thin(names.counts, births, 0)
    return pgmult.fields.as_field(names.inputs(), counts.reshape(-1, size))


def rare(times):
    """One of a thousand, along an autoregressive chain."""
    rng = np.random.default_rng(3)
    level = np.zeros(times)
    for t in range(1, times):
        level[t] = 0.98 * level[t - 1] + 0.2 * rng.standard_normal()
    taken = rng.binomial(1000, 1.0 / (1.0 + 999.0 * np.exp(-level)))
    counts = np.column_stack([taken, 1000 - taken])
    return pgmult.fields.as_field(np.arange(times, dtype=float), counts, order="given")


STATES = ["GA", "IL", "MT", "NY", "OH", "TX", "WA"]
MIXING = {
    "girls, a century": lambda: names_field("F", 12, ["MT", "NY", "OH"], range(1914, 2014)),
    "girls, seven states": lambda: names_field("F", 20, STATES, range(1914, 2014)),
    "boys, a century": lambda: names_field("M", 12, ["MT", "NY", "OH"], range(1914, 2014)),
    "boys, 50 years": lambda: names_field("M", 10, ["MA", "NY", "VT"], range(1960, 2010)),
    "boys, 50 a cell": lambda: names_field("M", 10, ["MA", "NY", "VT"], range(1960, 2010), 50),
    "a chain of 200": lambda: rare(200),
    "a chain of 1,000": lambda: rare(1000),
}


def mixing(options):
    for name in options.data:
        data = MIXING[name]()
        print(f"{name}: {data}", flush=True)
        for kind in options.hyperparameters:
            model = pgmult.fields.MultinomialGP(
                law_of(data), structure=options.structure, hyperparameters=kind
            )
            for seed in options.seeds:
                _mixing_of(f"  {kind}", model, data, options, seed)


def _mixing_of(name, model, data, options, seed):
    rng = np.random.default_rng(seed)
    start = time.process_time()
    state = model.init(rng, data)
    model.step(rng, state, data)
    first = time.process_time() - start
    for _ in range(options.tune):
        state = model.step(rng, state, data)
    psi, thetas = [], []
    start = time.process_time()
    for _ in range(options.draws):
        state = model.step(rng, state, data)
        psi.append(state.psi)
        thetas.append(np.log(state.hyperparameters[0]))
    seconds = time.process_time() - start
    counts = data.site_counts()
    reached = model.link(data).totals(counts) > 0
    empty = reached & (counts[:, data.order[:-1]] == 0)
    ess = ess_bulk(np.array(psi)[None]) / options.draws
    by_second = options.draws / seconds
    zeros = ess[empty] if empty.any() else np.ones(1)
    line = (
        f"{name:<24} {1e3 / by_second:6.1f} ms (first {first:.1f} s); psi a sweep min"
        f" {ess[reached].min():.4f} median {np.median(ess[reached]):.3f}, empty cells below 0.01:"
        f" {(zeros < 0.01).mean():.0%}; a second min {ess[reached].min() * by_second:.2f} median"
        f" {np.median(ess[reached]) * by_second:.1f}"
    )
    if np.ptp(thetas) > 0.0:
        values = effective(thetas) / seconds
        line += f"; hyperparameters a second {', '.join(f'{value:.2f}' for value in values)}"
    print(line, flush=True)


def chain(options):
    data = rare(options.times)
    model = pgmult.fields.MultinomialGP(
        law_of(data), structure="state_space", hyperparameters="sampled"
    )
    rng, start = np.random.default_rng(0), time.process_time()
    state = model.init(rng, data)
    psi, thetas = [], []
    for sweep in range(options.tune + options.draws):
        state = model.step(rng, state, data)
        if sweep >= options.tune:
            psi.append(state.psi[:, 0])
            thetas.append(np.log(state.hyperparameters[0]))
    runs = {"ours": (psi, thetas, time.process_time() - start)}
    start = time.process_time()
    psi, thetas = nuts_chain(data, model.mean_var, 500, options.nuts)
    runs["NUTS"] = psi, thetas, time.process_time() - start
    means = []
    for name, (psi, thetas, seconds) in runs.items():
        both = np.column_stack([psi, thetas])
        ess = effective(both)
        rates = ess / seconds
        print(
            f"{name}: {seconds:.0f} CPU s; a second psi min {rates[:-2].min():.1f}, median"
            f" {np.median(rates[:-2]):.1f}, hyperparameters {rates[-2]:.1f}, {rates[-1]:.1f}"
        )
        means.append((both.mean(axis=0), both.var(axis=0) / ess))
    (one, its), (other, theirs) = means
    apart = (one - other) / np.sqrt(its + theirs)
    print(
        f"standard errors apart: psi {np.sqrt(np.mean(apart[:-2] ** 2)):.2f} (root mean square),"
        f" hyperparameters {apart[-2]:.2f}, {apart[-1]:.2f}"
    )


def nuts_chain(data, mean_var, tune, draws):
    """Psi and the logarithms of variance and length scale by NUTS, a Markov chain in time."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    jax.config.update("jax_enable_x64", True)
    counts = data.site_counts()[:, data.order]
    taken, totals = (jnp.asarray(values, float) for values in (counts[:, 0], counts.sum(axis=1)))

    def model():
        theta = numpyro.sample("theta", dist.Normal(jnp.log(jnp.array([1.0, 50.0])), 1.0))
        level = numpyro.sample("level", dist.Normal(0.0, np.sqrt(mean_var)))
        z = numpyro.sample("z", dist.Normal(jnp.zeros(len(counts)), 1.0))
        kept = jnp.exp(-jnp.exp(-theta[1]))
        root = jnp.sqrt(1.0 - kept**2)
        _, x = jax.lax.scan(lambda x, e: (kept * x + root * e,) * 2, z[0], z[1:])
        x = jnp.concatenate([z[:1], x])
        psi = numpyro.deterministic("psi", level + jnp.exp(0.5 * theta[0]) * x)
        numpyro.factor("counts", jnp.sum(taken * psi - totals * jnp.logaddexp(0.0, psi)))

    kernel = NUTS(model, target_accept_prob=0.9)
    sampler = MCMC(kernel, num_warmup=tune, num_samples=draws, progress_bar=False)
    sampler.run(jax.random.PRNGKey(0))
    samples = sampler.get_samples()
    return np.asarray(samples["psi"]), np.asarray(samples["theta"])


def law_of(data):
    if data.inputs.shape[1] == 1:
        return 1.0 * Matern(0.5, 50.0)
    return 4.0 * Matern(1.5, 15.0, active=[0]) * SquaredExponential(8.0, active=[1, 2])


MOVES = {
    "leap": leap,
    "carry": carry,
    "turn": turn,
    "swing": swing,
    "leap and turn": lambda rng, point, *of: turn(rng, leap(rng, point, *of), *of),
    "carry and turn": lambda rng, point, *of: turn(rng, carry(rng, point, *of), *of),
}


def moves(options):
    for name in options.data:
        data = MIXING[name]()
        model = pgmult.fields.MultinomialGP(law_of(data), structure=options.structure)
        ((*of, found),) = gp_model._parts(data, model)
        print(f"{name}, {options.structure}: {data}; spread {found.spread:.2f}", flush=True)
        for move in options.moves:
            rng, psi, thetas = np.random.default_rng(0), [], []
            state = model.init(rng, data)
            w = np.concatenate([state.psi, state.beta])
            point = Point.of(np.log(state.hyperparameters[0]), w, of[0], found)
            start = time.process_time()
            for _ in range(options.draws):
                point = MOVES[move](rng, point, *of, found)
                psi.append(point.psi)
                thetas.append(point.x)
            seconds = time.process_time() - start
            line = f"  {move:15} {1e3 * seconds / options.draws:6.1f} ms"
            for what, draws in (("psi", psi), ("hyperparameters", thetas)):
                if np.ptp(draws) > 0.0:
                    ess = effective(draws)
                    each = [ess.min(), np.median(ess)] if what == "psi" else ess
                    line += f"; {what} a move {np.round(np.array(each) / options.draws, 3)}"
                    line += f", a second {np.round(np.array(each) / seconds, 1)}"
            print(line, flush=True)


def uneven_years():
    rng = np.random.default_rng(11)
    t = np.sort(rng.choice(np.arange(1900.0, 2000.0), 40, replace=False))
    waves = [1.2 * np.sin(t / 9) - 1.0, 0.8 * np.cos(t / 14) - 0.5, 0.6 * np.sin(t / 7 + 1)]
    counts = pgmult.StickBreaking().simulate(rng, np.array(waves).T, rng.integers(5, 120, 40))
    return pgmult.fields.as_field(t, counts), 1.0 * Matern(1.5, 10.0)


def five_large():
    psi = np.array([[-4.0, -3.5, -3.0, -4.0, -5.0], [0.5, 0.2, 0.0, 0.3, 0.6]]).T
    counts = pgmult.StickBreaking().simulate(np.random.default_rng(12), psi, np.full(5, 10_000))
    return pgmult.fields.as_field([0.0, 1.0, 2.0, 3.5, 5.0], counts), 1.0 * Matern(1.5, 2.0)


def few_places():
    rng = np.random.default_rng(13)
    places = rng.uniform(0.0, 10.0, (5, 2))
    inputs = np.array([[t, *place] for t in range(12) for place in places])
    law = 1.0 * Matern(1.5, 4.0, active=[0]) * SquaredExponential(5.0, active=[1, 2])
    root = np.linalg.cholesky(law.cov(inputs) + 1e-8 * np.eye(60))
    psi = root @ rng.standard_normal((60, 3)) - np.array([1.0, 0.5, 0.0])
    counts = pgmult.StickBreaking().simulate(rng, psi, rng.integers(10, 60, 60))
    return pgmult.fields.as_field(inputs, counts), law


FRESH = {"uneven years": uneven_years, "five large": five_large, "few places": few_places}


def fresh(options):
    for name, make in FRESH.items():
        data, law = make()
        model = pgmult.fields.MultinomialGP(law)
        runs = {"ours": [_chain_of(model, data, options, seed) for seed in options.seeds]}
        if options.nuts:
            runs["NUTS"] = [nuts_of(model, data, options.nuts)]
        for who, chains in runs.items():
            rates = np.mean(
                [
                    [
                        e / seconds
                        for part in (psi, thetas)
                        for ess in [effective(part)]
                        for e in (ess.min(), np.median(ess))
                    ]
                    for psi, thetas, seconds in chains
                ],
                axis=0,
            )
            print(
                f"{name}, {who}: effective draws a second of psi {rates[0]:.0f}, {rates[1]:.0f},"
                f" of hyperparameters {rates[2]:.0f}, {rates[3]:.0f}",
                flush=True,
            )


def _chain_of(model, data, options, seed):
    rng = np.random.default_rng(seed)
    state = model.init(rng, data)
    for _ in range(50):
        state = model.step(rng, state, data)
    psi, thetas, start = [], [], time.process_time()
    for _ in range(options.draws):
        state = model.step(rng, state, data)
        psi.append(state.psi)
        thetas.append(np.log(state.hyperparameters[0]))
    return psi, thetas, time.process_time() - start


def nuts_of(model, data, draws):
    """Psi and log hyperparameters of Matérn 3/2 times a squared exponential, by NUTS."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    jax.config.update("jax_enable_x64", True)
    taken, reaching = (jnp.asarray(part) for part in model.binomials(data))
    trend, n = model.trend(data), data.num_sites
    apart = jnp.asarray(np.abs(data.sites[:, [0]] - data.sites[:, 0]))
    far = ((data.sites[:, None, 1:] - data.sites[:, 1:]) ** 2).sum(-1)

    def law():
        medians = jnp.asarray(model.law.log_params)
        theta = numpyro.sample("theta", dist.Normal(medians, 1.0).to_event(1))
        centre = jnp.asarray(trend.centre[0])
        level = numpyro.sample("level", dist.Normal(centre, np.sqrt(trend.var)).to_event(1))
        z = numpyro.sample("z", dist.Normal(jnp.zeros(taken.shape), 1.0).to_event(2))
        r = jnp.sqrt(3.0) * apart / jnp.exp(theta[1])
        cov = jnp.exp(theta[0]) * (1.0 + r) * jnp.exp(-r)
        if far.any():
            cov = cov * jnp.exp(-0.5 * jnp.asarray(far) / jnp.exp(2.0 * theta[2]))
        root = jnp.linalg.cholesky(cov + 1e-8 * jnp.eye(n))
        psi = numpyro.deterministic("psi", level + root @ z)
        numpyro.factor("counts", jnp.sum(taken * psi - reaching * jnp.logaddexp(0.0, psi)))

    sampler = MCMC(NUTS(law), num_warmup=500, num_samples=draws, progress_bar=False)
    sampler.warmup(jax.random.PRNGKey(0))
    start = time.process_time()
    sampler.run(jax.random.PRNGKey(1))
    samples = {name: np.asarray(each) for name, each in sampler.get_samples().items()}
    return samples["psi"], samples["theta"], time.process_time() - start


IN_TIME = {
    "state_space 0.5": Matern(0.5, 15.0, active=[0]),
    "state_space 1.5": Matern(1.5, 15.0, active=[0]),
    "state_space 2.5": Matern(2.5, 15.0, active=[0]),
    "grid 1.5": Matern(1.5, 15.0, active=[0]),
    "grid smooth": SquaredExponential(15.0, active=[0]),
    "inducing_points smooth": SquaredExponential(15.0, active=[0]),
    "dense 1.5": Matern(1.5, 15.0, active=[0]),
}


def scale(options):
    if options.only is None:
        for births in ("50", "all"):
            print(f"births a cell: {births}", flush=True)
            for name in options.structures:
                command = [sys.executable, __file__, "scale", "--sweeps", str(options.sweeps)]
                subprocess.run([*command, "--only", name, "--births", births], check=True)
        return
    structure, of_time = options.only.split()[0], IN_TIME[options.only]
    sticks = 2 if structure == "dense" else 199
    names = us_names("M", 200, years=range(1960, 2014))
    last = names.inputs()[names.inputs()[:, 0] == 2013]
    new = np.concatenate([last + np.array([ahead, 0.0, 0.0]) for ahead in (1.0, 2.0)])
    counts = names.counts
    if options.births != "all":
        counts = thin(counts, int(options.births), 0)
    counts = counts.reshape(-1, 200)
    if sticks < 199:  # the middle ones, which are as most are
        rest = counts.sum(axis=1) - counts[:, 100 : 100 + sticks].sum(axis=1)
        counts = np.column_stack([counts[:, 100 : 100 + sticks], rest])
    data = pgmult.fields.as_field(names.inputs(), counts, new)
    covariance = 2.0 * of_time * SquaredExponential(8.0, active=[1, 2])
    model = pgmult.fields.MultinomialGP(covariance, structure=structure, hyperparameters="fixed")
    rng = np.random.default_rng(1)
    state = model.init(rng, data)
    seconds = []
    for _ in range(1 if structure == "dense" else options.sweeps):
        start = time.process_time()
        state = model.step(rng, state, data)
        seconds.append(time.process_time() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"  {options.only:<24}{min(seconds) * 199 / sticks:8.2f} s a sweep of {data.num_sites:,}"
        f" sites x 199 sticks; peak {peak:,.0f} MB",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("small")
    command.add_argument("--draws", type=int, default=1000)
    command.add_argument("--methods", nargs="+", choices=list(SMALL), default=list(SMALL))
    command.add_argument("--seeds", nargs="+", type=int, default=[0], help="of the thinned births")
    command.set_defaults(run=small)
    command = commands.add_parser("mixing")
    command.add_argument("--data", nargs="+", choices=list(MIXING), default=list(MIXING))
    command.add_argument("--hyperparameters", nargs="+", default=["fixed", "sampled"])
    command.add_argument("--draws", type=int, default=800)
    command.add_argument("--tune", type=int, default=200)
    command.add_argument("--seeds", nargs="+", type=int, default=[0])
    command.add_argument("--structure", default="state_space")
    command.set_defaults(run=mixing)
    command = commands.add_parser("chain")
    command.add_argument("--times", type=int, default=200)
    command.add_argument("--draws", type=int, default=6000)
    command.add_argument("--tune", type=int, default=300)
    command.add_argument("--nuts", type=int, default=1000, help="draws of NUTS")
    command.set_defaults(run=chain)
    command = commands.add_parser("moves")
    some = ["a chain of 200", "a chain of 1,000", "girls, a century"]
    command.add_argument("--data", nargs="+", choices=list(MIXING), default=some)
    command.add_argument("--moves", nargs="+", choices=list(MOVES), default=list(MOVES))
    command.add_argument("--draws", type=int, default=400)
    command.add_argument("--structure", default="state_space")
    command.set_defaults(run=moves)
    command = commands.add_parser("fresh")
    command.add_argument("--draws", type=int, default=1500)
    command.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    command.add_argument("--nuts", type=int, nargs="?", const=1000, default=0)
    command.set_defaults(run=fresh)
    command = commands.add_parser("scale")
    command.add_argument("--structures", nargs="+", choices=list(IN_TIME), default=list(IN_TIME))
    command.add_argument("--sweeps", type=int, default=4)
    command.add_argument("--only", help="one structure, in this process")
    command.add_argument("--births", default="50", help='a cell, with --only; or "all"')
    command.set_defaults(run=scale)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
