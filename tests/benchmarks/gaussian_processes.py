"""Multinomial Gaussian processes on the names data: effective draws a second, beside NUTS.

Needs the names (PGMULT_DATA, or a download); numpyro is timed beside where it is installed.

    python tests/benchmarks/gaussian_processes.py moves
    OPENBLAS_NUM_THREADS=1 python tests/benchmarks/gaussian_processes.py fresh --nuts
    OPENBLAS_NUM_THREADS=1 python tests/benchmarks/gaussian_processes.py mixing
    OPENBLAS_NUM_THREADS=1 python tests/benchmarks/gaussian_processes.py coverage

`mixing`: effective draws a sweep and a processor second of psi where counts reach, of the empty
cells among them and of the logarithms of the hyperparameters: full counts over a century, balanced
counts, one rare category along a chain.

`moves`: effective draws a move and a processor second of each move by itself, see
`pgmult.latent.moves`: of psi, least and median, and of the logarithms of the hyperparameters.

`fresh`: small fields, 40 uneven years with four categories, five counts of 10,000, and 5 places in
12 years; `--nuts` as well by numpyro's NUTS of the same model, whitened (500 draws to tune, not
counted).

`coverage`: cells (a tenth of the states and years), states (three of twelve) or the future (the
last three of fifty years) of twelve girls' names are hidden and predicted by a few covariances;
the verdict of `pgmult.fields.calibration`.
"""

import argparse
import time

import numpy as np
from beside import numpyro_parts, nuts

import pgmult
from examples.papers.linderman2015.newborns import thin, us_names
from pgmult.fields.covariances import Constant, Matern, SquaredExponential, White
from pgmult.fields.updates.samplers import sampler
from pgmult.latent.moves import Point, carry, leap, swing, turn
from pgmult.sampling.diagnostics import ess_bulk

YEAR_SCALE, PLACE_SCALE, VAR = 30.0, 5.0, 1.0  # where the covariance is fixed, and prior medians


def effective(draws):
    """ESS of each entry of one chain's draws."""
    return ess_bulk(np.asarray(draws)[None]).ravel()


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
                law_of(data), structure=options.structure, hyperparameters=kind, overdispersion=0.0
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


def law_of(data):
    if data.inputs.shape[1] == 1:
        return 1.0 * Matern(0.5, 50.0)
    return 4.0 * Matern(1.5, 15.0, active=[0]) * SquaredExponential(8.0, active=[1, 2])


MOVES = {
    "leap": leap,
    "carry": carry,
    "turn": turn,
    "swing": swing,
    "leap and turn": lambda rng, point, of: turn(rng, leap(rng, point, of), of),
    "carry and turn": lambda rng, point, of: turn(rng, carry(rng, point, of), of),
}


def moves(options):
    for name in options.data:
        data = MIXING[name]()
        model = pgmult.fields.MultinomialGP(
            law_of(data), structure=options.structure, overdispersion=0.0
        )
        chains = sampler(model, data)
        target = chains.targets[0]
        found = target.base
        print(f"{name}, {options.structure}: {data}; spread {found.spread:.2f}", flush=True)
        for move in options.moves:
            rng, psi, thetas = np.random.default_rng(0), [], []
            state = model.init(rng, data)
            w = np.concatenate([state.psi, state.beta])
            point = Point.of(np.log(state.hyperparameters[0]), w, target)
            start = time.process_time()
            for _ in range(options.draws):
                point = MOVES[move](rng, point, target)
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
        model = pgmult.fields.MultinomialGP(law, overdispersion=0.0)
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
    _, jnp, numpyro, dist = numpyro_parts()
    taken, reaching = (jnp.asarray(part) for part in model.binomials(data))
    trend, n = model.trend(data), data.num_sites
    apart = jnp.asarray(np.abs(data.sites[:, [0]] - data.sites[:, 0]))
    far = ((data.sites[:, None, 1:] - data.sites[:, 1:]) ** 2).sum(-1)

    def law():
        medians = jnp.asarray(model.full_covariance(data).log_params)
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

    samples, seconds = nuts(law, 500, draws, warmed=True)
    return samples["psi"], samples["theta"], seconds


COVARIANCES = {
    "smooth": Matern(2.5, 15.0, active=[0]) * SquaredExponential(5.0, active=[1, 2]),
    "rough": Matern(1.5, 15.0, active=[0]) * Matern(0.5, 20.0, active=[1, 2]),
}
LAWS = {
    "Matern 5/2 x SE": 2.0 * COVARIANCES["smooth"],
    "Matern 3/2 x 1/2": 2.0 * COVARIANCES["rough"],
    "Matern 3/2 x 1/2 + White": 2.0 * COVARIANCES["rough"] + White(0.05),
    "... + a path of a state": 2.0 * COVARIANCES["rough"]
    + Constant(0.1) * Matern(1.5, 10.0, active=[0]) * White(active=[1, 2], fixed=["var"])
    + White(0.05),
}


def coverage(options):
    states = ["CA", "CO", "FL", "GA", "IL", "MA", "MN", "NY", "OH", "PA", "TX", "WA"]
    names = us_names("F", 12, years=range(1964, 2014), states=states)
    inputs, counts = names.inputs(), names.counts.reshape(-1, 12)
    state = np.arange(len(inputs)) % len(states)
    kinds = {
        "cells": np.random.default_rng(0).random(len(inputs)) < 0.1,
        "states": np.isin(state, [1, 5, 8]),
        "future": inputs[:, 0] > 2010,
    }
    for kind in options.hidden:
        hidden = kinds[kind]
        data = pgmult.fields.as_field(inputs[~hidden], counts[~hidden], inputs[hidden])
        for name, law in LAWS.items():
            model = pgmult.fields.MultinomialGP(law, structure="auto")
            start = time.process_time()
            posterior = pgmult.sample(
                model, data, draws=options.draws, tune=options.draws // 3, chains=1, cores=1,
                random_seed=0, progressbar=False, keep=["pi_new", "hyperparameters"],
            )  # fmt: skip
            found = pgmult.fields.predict(posterior, data=data, inputs="new", max_draws=None)
            said = found.calibration(counts[hidden], random_seed=0)
            score = found.log_predictive_density(counts[hidden]).mean()
            print(
                f"{kind}, {name} ({time.process_time() - start:.0f} s): {said.in_words} of"
                f" {said.num_cells}; {score:.1f} nats a row\n    {said.verdict}",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("mixing")
    command.add_argument("--data", nargs="+", choices=list(MIXING), default=list(MIXING))
    command.add_argument("--hyperparameters", nargs="+", default=["fixed", "sampled"])
    command.add_argument("--draws", type=int, default=800)
    command.add_argument("--tune", type=int, default=200)
    command.add_argument("--seeds", nargs="+", type=int, default=[0])
    command.add_argument("--structure", default="auto")
    command.set_defaults(run=mixing)
    command = commands.add_parser("moves")
    some = ["a chain of 200", "a chain of 1,000", "girls, a century"]
    command.add_argument("--data", nargs="+", choices=list(MIXING), default=some)
    command.add_argument("--moves", nargs="+", choices=list(MOVES), default=list(MOVES))
    command.add_argument("--draws", type=int, default=400)
    command.add_argument("--structure", default="auto")
    command.set_defaults(run=moves)
    command = commands.add_parser("fresh")
    command.add_argument("--draws", type=int, default=1500)
    command.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    command.add_argument("--nuts", type=int, nargs="?", const=1000, default=0)
    command.set_defaults(run=fresh)
    command = commands.add_parser("coverage")
    command.add_argument("--draws", type=int, default=300)
    command.add_argument("--hidden", nargs="+", default=["cells", "states", "future"])
    command.set_defaults(run=coverage)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
