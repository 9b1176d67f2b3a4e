"""Effective draws a CPU second of models of sequences, beside NUTS.

Run from the repository's root, with ``PGMULT_DATA`` naming the folder of data sets::

    OPENBLAS_NUM_THREADS=1 python -m tests.benchmarks.sequences_mixing small [--state-dim 1]
        [--symbols 3] [--steps 80] [--gaps] [--draws 4000] [--nuts] [--target .99]
    OPENBLAS_NUM_THREADS=1 python -m tests.benchmarks.sequences_mixing pooled [--draws 4000]
        [--nuts]
    OPENBLAS_NUM_THREADS=1 python -m tests.benchmarks.sequences_mixing rare [--state-dim 1]
        [--symbols 3] [--steps 60] [--total 5000] [--level 9.5] [--draws 3000] [--seeds 3 4 5]
    OPENBLAS_NUM_THREADS=1 python -m tests.benchmarks.sequences_mixing {dna,alice} [--draws 1000]
    OPENBLAS_NUM_THREADS=1 python -m tests.benchmarks.sequences_mixing fits [--states 2]
        [--steps 400] [--starts 10] [--only ours hmmlearn dynamax]

`small` runs 80 steps of a known system, with ``--gaps`` a fifth of them missing, `pooled` a hidden
Markov model of six animals whose transitions depend on an input and on who it is; with ``--nuts``
(numpyro) a non-centred NUTS of the same model follows, moods summed out, and the gaps of its means
and standard deviations from ours, in Monte-Carlo standard errors and as ratios. NUTS is charged for
its compilation and warm-up, we for compilation, start and warm-up. `rare` has `total` observations
a step, nearly all of one symbol, whose logarithm of odds to each other is about `level`, with
Pólya-gamma updates alone and by default: for each stick the least effective draws, of the mean and
the standard deviation of psi over the steps and of psi at each, in `draws` sweeps of two chains
each, and the largest R-hat. `dna` is the first 682 amino acids of chromosome 22 and `alice` 3,900
words, ten dimensions each. `fits` prints the log likelihood of hidden Markov models of three
fourths of a sequence of three symbols, and the log probability of a symbol of the last fourth given
all before it: of draws, and of the best of some fits by the expectation-maximisation of hmmlearn
and dynamax.

Functionals, for each the least and the median entry: ``C Q C'`` and ``C A Q C'`` (the ten leading
sticks), moduli of A's eigenvalues, probabilities at all steps (`small`) or at the last and on
average. A script of another version of the library: name it with ``PYTHONPATH`` and give this
file's path instead of ``-m``.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np
from scipy.special import expit
from scipy.stats import rankdata

import pgmult
from pgmult.latent.terms import from_sd
from pgmult.sampling.diagnostics import ess_bulk, mcse_mean, r_hat
from pgmult.sequences import MixedHMM, MultinomialHMM, MultinomialLDS, as_sequences

LEADING = 10
_TAIL = 0.25  # of all sweeps, left out as warm-up


def simulated(state_dim, num_symbols, num_steps=80, gaps=False, seed=5):
    """Symbols of a slowly turning state, or four fifths of them."""
    rng = np.random.default_rng(seed)
    angle = 0.4
    turn = np.eye(state_dim)
    for d in range(0, state_dim - 1, 2):
        turn[d : d + 2, d : d + 2] = [
            [np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]
        ]  # fmt: skip
    x = np.zeros((num_steps, state_dim))
    for t in range(1, num_steps):
        x[t] = 0.93 * turn @ x[t - 1] + 0.37 * rng.standard_normal(state_dim)
    loadings = 1.5 * rng.standard_normal((num_symbols, state_dim))
    logits = x @ loadings.T
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    symbols = (probs.cumsum(axis=1) < rng.random((num_steps, 1))).sum(axis=1)
    if gaps:
        symbols[rng.random(num_steps) < 0.2] = -1
    return as_sequences([symbols], num_symbols=num_symbols)


def rare(state_dim, num_symbols, num_steps, total, level, seed):
    """Counts of one frequent symbol and rare ones that come and go."""
    rng = np.random.default_rng(seed)
    x = np.zeros((num_steps, state_dim))
    for t in range(1, num_steps):
        x[t] = 0.95 * x[t - 1] + 0.31 * rng.standard_normal(state_dim)
    loadings = 0.8 * rng.standard_normal((num_symbols - 1, state_dim))
    loadings[0] = 0.8
    odds = np.exp(np.column_stack([np.full(num_steps, level), x @ loadings.T]))
    probs = odds / odds.sum(axis=1, keepdims=True)
    return as_sequences([np.array([rng.multinomial(total, p) for p in probs])])


def dna():
    folder = Path(os.environ.get("PGMULT_DATA", "../shared/data")) / "dna"
    return as_sequences([(folder / "chr22_682.txt").read_text().strip()])


def alice():
    folder = Path(os.environ.get("PGMULT_DATA", "../shared/data")) / "alice"
    tokens = np.loadtxt(folder / "alice_tokens.txt.gz", dtype=int)
    return as_sequences([tokens[:3900]], num_symbols=1000)


def invariants(transition, noise_cov, loadings):
    """What no change of basis of the states alters."""
    lead = loadings[:LEADING]
    within = np.tril_indices(len(lead))
    return {
        "C Q C'": (lead @ noise_cov @ lead.T)[within],
        "C A Q C'": (lead @ transition @ noise_cov @ lead.T).ravel(),
        "moduli of A": np.sort(np.abs(np.linalg.eigvals(transition)))[::-1],
    }


def functionals(model, state, data, every_step):
    seen = invariants(state.transition, state.noise_cov, state.loadings)
    probs = model.probs(state, data)
    seen["probabilities"] = (
        probs.ravel() if every_step else np.concatenate([probs[-1], probs.mean(axis=0)])
    )
    return seen


def stacked(draws):
    return {name: np.array([draw[name] for draw in draws])[None] for name in draws[0]}


def report(name, kept, seconds, unit):
    print(f"{name}: {unit}, {seconds:.1f} CPU s")
    for key, values in kept.items():
        # entries below 1e-12 of the largest are rounding: more states than sticks
        moves = values.reshape(-1, *values.shape[2:]).std(axis=0) > 0.0
        ess = ess_bulk(values)[moves]
        print(
            f"  {key:14} min {ess.min() / seconds:8.2f}  median {np.median(ess) / seconds:8.2f}"
            f" a CPU second;  {1e3 * ess.min() / values.shape[1]:7.1f} min,"
            f" {1e3 * np.median(ess) / values.shape[1]:7.1f} median of 1,000 draws"
        )


def ours(model, data, num_draws, every_step, seed=0):
    """Draws of the functionals, and CPU seconds of the whole without those of the functionals."""
    rng = np.random.default_rng(seed)
    begun = time.process_time()
    state = model.step(rng, model.init(rng, data), data)
    first = time.process_time() - begun
    warm_up = int(_TAIL * num_draws)
    begun, outside, draws = time.process_time(), 0.0, []
    for sweep in range(warm_up + num_draws):
        state = model.step(rng, state, data)
        if sweep >= warm_up:
            aside = time.process_time()
            draws.append(functionals(model, state, data, every_step))
            outside += time.process_time() - aside
    seconds = time.process_time() - begun - outside
    unit = f"first {first:.1f} s, then {1e3 * seconds / (warm_up + num_draws):.2f} ms a sweep"
    kept = stacked(draws)
    report("MultinomialLDS", kept, first + seconds, unit)
    return kept


def of_sticks(model, data, num_draws):
    """Print how the predictor of each stick mixes in two chains."""
    begun = time.process_time()
    run = pgmult.sample(
        model, data, draws=num_draws, tune=num_draws // 3, chains=2, cores=1, random_seed=0,
        keep=("states", "noise", "loadings", "offset"), progressbar=False,
    )  # fmt: skip
    psi = np.einsum("abtd,abkd->abkt", run["states"], run["loadings"]) + run["offset"][..., None]
    print(f"{model.update}: {time.process_time() - begun:.1f} CPU s")
    for k, symbol in enumerate(data.order[:-1]):
        own = psi[:, :, k]
        kept = np.concatenate([own, own.mean(-1, keepdims=True), own.std(-1, keepdims=True)], -1)
        ess, converged = ess_bulk(kept) / len(kept), r_hat(kept)
        count = data.to_csr().toarray()[:, symbol].sum()
        print(
            f"  {count:7} occurrences: {ess.min():5.0f} effective of {num_draws} a chain (mean"
            f" {ess[-2]:.0f}, sd {ess[-1]:.0f}, median step {np.median(ess[:-2]):.0f}), R-hat"
            f" {converged.max():.3f}", flush=True,
        )  # fmt: skip


def nuts(model, data, num_draws, target, seed=0):
    """The same posterior by numpyro, states and innovations standardised."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from jax import lax

    jax.config.update("jax_enable_x64", True)
    D, T = model.state_dim, data.num_steps
    prior, seen = model.dynamics_prior(data), np.flatnonzero(data.totals)
    mean, var = (np.array(moment) for moment in model.offset_moments(data))
    n = len(mean)
    place = np.argsort(data.order)[data.symbols]
    lower = np.tril_indices(D, -1)

    def inverse_root(name, dof):
        """R with R R' ~ IW(I, dof), by Bartlett."""
        diagonal = jnp.sqrt(numpyro.sample(f"{name}_d", dist.Chi2(dof - jnp.arange(D))))
        below = numpyro.sample(f"{name}_o", dist.Normal(0.0, 1.0).expand([D * (D - 1) // 2]))
        bartlett = jnp.diag(diagonal).at[lower].set(below)
        return jnp.linalg.inv(bartlett).T

    def joint():
        def white(name, *shape):
            return numpyro.sample(name, dist.Normal(0.0, 1.0).expand(shape))

        root, start_root = inverse_root("q", D + 2.0), inverse_root("v", D + 2.0)
        spread = jnp.sqrt(jnp.diag(prior.row_precision))
        transition = prior.mean.T + root @ white("a", D, D) / spread
        start = start_root @ white("m", D)
        gamma = numpyro.sample("g", dist.Gamma(model.loading_shape, 1.0).expand([D]))
        loadings = jnp.sqrt(model.loading_scale / gamma) * white("c", n, D)
        offset = mean + jnp.sqrt(var) * white("b", n)
        noise = white("e", T, D)
        first = start + start_root @ noise[0]

        def move(x, e):
            x = transition @ x + root @ e
            return x, x

        _, later = lax.scan(move, first, noise[1:])
        states = jnp.concatenate([first[None], later])
        psi = states @ loadings.T + offset
        stay = jnp.concatenate(
            [jnp.zeros((T, 1)), -jnp.cumsum(jax.nn.softplus(psi), axis=1)], axis=1
        )
        log_probs = stay + jnp.concatenate([-jax.nn.softplus(-psi), jnp.zeros((T, 1))], axis=1)
        numpyro.factor("seen", log_probs[seen, place].sum())
        for name, value in (("A", transition), ("Q", root @ root.T), ("C", loadings),
                            ("p", jnp.exp(log_probs)[:, np.argsort(data.order)])):  # fmt: skip
            numpyro.deterministic(name, value)

    draws, seconds, told = run_nuts(joint, num_draws, seed, target)
    kept = [
        invariants(a, q, c) | {"probabilities": p.ravel()}
        for a, q, c, p in zip(draws["A"], draws["Q"], draws["C"], draws["p"], strict=True)
    ]
    kept = stacked(kept)
    report("NUTS", kept, seconds, told)
    return kept


def run_nuts(joint, num_draws, seed, target):
    """Draws, CPU seconds, and how many diverge."""
    import jax
    from numpyro.infer import MCMC, NUTS

    begun = time.process_time()
    sampler = MCMC(
        NUTS(joint, target_accept_prob=target), num_warmup=1000, num_samples=num_draws,
        progress_bar=False,
    )  # fmt: skip
    sampler.run(jax.random.key(seed), extra_fields=("diverging",))
    draws = {name: np.asarray(value) for name, value in sampler.get_samples().items()}
    seconds = time.process_time() - begun
    wrong = int(np.asarray(sampler.get_extra_fields()["diverging"]).sum())
    return draws, seconds, f"{wrong} of {num_draws} draws diverge"


def animals(num_steps=40, seed=4):
    """Six animals of two moods, in which they stay by an input and by who they are."""
    rng = np.random.default_rng(seed)
    own, x = 0.8 * rng.standard_normal((6, 2)), rng.standard_normal((6, num_steps))
    emission = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
    symbols = np.empty((6, num_steps), dtype=int)
    for animal, path in enumerate(symbols):
        mood = 0
        for t in range(num_steps):
            stays = expit(1.5 + 0.8 * x[animal, t] * (1 - 2 * mood) + own[animal, mood])
            mood = mood if rng.random() < stays else 1 - mood
            path[t] = rng.choice(3, p=emission[mood])
    table = {
        "animal": np.repeat(list("abcdef"), num_steps), "x": x.ravel(),
        "does": np.array(["rests", "feeds", "moves"])[symbols.ravel()],
    }  # fmt: skip
    return pgmult.read(table).sequences("does", sequence="animal", inputs="~ x + (1 | animal)")


def our_animals(model, data, num_draws, seed=0):
    """Draws of probabilities of all steps given all others, and of the fit."""
    rng = np.random.default_rng(seed)
    begun = time.process_time()
    state = model.step(rng, model.init(rng, data), data)
    first, draws = time.process_time() - begun, []
    begun = time.process_time()
    for sweep in range(int((1.0 + _TAIL) * num_draws)):
        state = model.step(rng, state, data)
        if sweep >= int(_TAIL * num_draws):
            draws.append({name: getattr(state, name) for name in model.predictive_variables})
    seconds = time.process_time() - begun
    kept = of_moods(model, data, draws)
    report("MixedHMM", kept, first + seconds, f"first {first:.1f} s")
    return kept


def of_moods(model, data, draws):
    """What does not depend on the moods' names."""
    return stacked(
        [
            {
                "probabilities": model.step_probs(draw, data).ravel(),
                "log likelihood": np.array([model.log_likelihood(model.state_of(draw), data)]),
                "sds": np.log(model.sds(model.state_of(draw), data).sum(axis=0)),
            }
            for draw in draws
        ]
    )


def nuts_of_animals(model, data, num_draws, seed=0):
    """The same by numpyro: moods summed out by the forward algorithm, effects standardised."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from jax import lax

    jax.config.update("jax_enable_x64", True)
    latent = model.seen(data.design).latent
    fixed, which = latent.pieces[0].prior, model.seen(data.design).which
    scale = np.zeros(fixed.size) + fixed.scale
    X = latent.family.design.toarray()[which]
    first = np.zeros(data.num_steps, dtype=bool)
    first[data.offsets[:-1]] = True
    effects = X.shape[1] - fixed.size

    def joint():
        def white(name, *shape):
            return numpyro.sample(name, dist.Normal(0.0, 1.0).expand(shape))

        sd = numpyro.sample("sd", dist.FoldedDistribution(dist.StudentT(3.0)).expand([2]))
        own = scale * white("fixed", 2, fixed.size), sd[:, None] * white("u", 2, effects)
        w = numpyro.deterministic("w", jnp.concatenate(own, axis=1))
        emission = numpyro.sample("emission", dist.Dirichlet(jnp.ones(3)).expand([2]))
        initial = numpyro.sample("initial", dist.Dirichlet(jnp.ones(2)))
        stays = jax.nn.sigmoid(X @ w.T)

        def forward(alpha, step):
            stay, begins, symbol = step
            kept = alpha * stay
            ahead = jnp.where(begins, initial, kept + (alpha - kept)[::-1]) * emission[:, symbol]
            total = ahead.sum()
            return ahead / total, jnp.log(total)

        _, fit = lax.scan(forward, initial, (stays, first, data.symbols))
        numpyro.factor("seen", fit.sum())

    found, seconds, told = run_nuts(joint, num_draws, seed, 0.9)
    draws = [
        {
            "initial": found["initial"][i], "emission": found["emission"][i],
            "weights": found["w"][i], "transition": np.zeros((2, 2)),
            "hyperparameters": from_sd(found["sd"][i])[:, None],
        }
        for i in range(num_draws)
    ]  # fmt: skip
    kept = of_moods(model, data, draws)
    report("NUTS", kept, seconds, told)
    return kept


def our_fit(past, whole, states, starts):
    """Posterior draws; the log likelihood is that of the best."""
    data, later = as_sequences([past], num_symbols=3), as_sequences([whole[len(past) :]])
    run = pgmult.sample(
        MultinomialHMM(states), data, draws=500, tune=200, chains=2, cores=1, random_seed=0,
        progressbar=False,
    )  # fmt: skip
    told = pgmult.sequences.one_step_ahead(run, later, after=data, max_draws=500)
    return run.sample_stats["log_likelihood"].max(), told.by_unit.sum()


def fit_of_hmmlearn(past, whole, states, starts):
    """The best of some starts."""
    from hmmlearn.hmm import CategoricalHMM

    fits = [
        CategoricalHMM(states, n_features=3, n_iter=500, tol=1e-4, random_state=i).fit(
            past[:, None]
        )
        for i in range(starts)
    ]
    best = max(fits, key=lambda fit: fit.score(past[:, None]))
    reached = best.score(past[:, None])
    return reached, best.score(whole[:, None]) - reached


def fit_of_dynamax(past, whole, states, starts):
    """The best of some starts, by its default priors."""
    import jax
    from dynamax.hidden_markov_model import CategoricalHMM

    jax.config.update("jax_enable_x64", True)
    model = CategoricalHMM(states, 1, 3)
    found = []
    for i in range(starts):
        start = model.initialize(jax.random.key(i), method="prior")
        params, _ = model.fit_em(*start, past[:, None], num_iters=500, verbose=False)
        reached = float(model.marginal_log_prob(params, past[:, None]))
        found.append((reached, float(model.marginal_log_prob(params, whole[:, None])) - reached))
    return max(found)


FITS = {"ours": our_fit, "hmmlearn": fit_of_hmmlearn, "dynamax": fit_of_dynamax}


def fits(states, steps, starts, only):
    """Print what each package makes of the same symbols."""
    whole = simulated(1, 3, steps).symbols.astype(np.int64)
    past = whole[: 3 * steps // 4]
    for name in only:
        begun = time.process_time()
        reached, told = FITS[name](past, whole, states, starts)
        print(
            f"{name:9} log likelihood {reached:8.2f}, log probability of a later symbol"
            f" {told / (steps - len(past)):.4f}, {time.process_time() - begun:.1f} CPU s"
        )


def compare(one, other):
    """z of the differences of mean ranks, and ratios of the ranges from 10 to 90 %.

    C Q C' has tails whose variance is infinite: its moments would compare a few draws.
    """
    for name in one:
        x, y = one[name], other[name]
        both = rankdata(np.concatenate([x, y], axis=1), axis=1)
        x_rank, y_rank = both[:, : x.shape[1]], both[:, x.shape[1] :]
        gap = x_rank.mean(axis=(0, 1)) - y_rank.mean(axis=(0, 1))
        error = np.hypot(mcse_mean(x_rank), mcse_mean(y_rank))
        wide = (np.subtract(*np.quantile(each, (0.9, 0.1), axis=(0, 1))) for each in (x, y))
        z, ratio = gap / error, np.divide(*wide)
        print(
            f"  {name:14} z rms {np.sqrt(np.mean(z**2)):.2f}, largest {np.abs(z).max():.2f};"
            f" ratio of ranges {np.median(ratio):.3f}, {ratio.min():.3f} to {ratio.max():.3f}"
        )


def main():
    """Run the part asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    choices = parser.add_subparsers(dest="part", required=True)
    small = choices.add_parser("small")
    small.add_argument("--state-dim", type=int, default=1)
    small.add_argument("--symbols", type=int, default=3)
    small.add_argument("--draws", type=int, default=4000)
    small.add_argument("--steps", type=int, default=80)
    small.add_argument("--gaps", action="store_true")
    small.add_argument("--nuts", action="store_true")
    small.add_argument("--target", type=float, default=0.99, help="acceptance that NUTS aims at")
    pooled = choices.add_parser("pooled")
    pooled.add_argument("--draws", type=int, default=4000)
    pooled.add_argument("--nuts", action="store_true")
    among = choices.add_parser("rare")
    among.add_argument("--state-dim", type=int, default=1)
    among.add_argument("--symbols", type=int, default=3)
    among.add_argument("--steps", type=int, default=60)
    among.add_argument("--total", type=int, default=5000)
    among.add_argument("--level", type=float, default=9.5)
    among.add_argument("--draws", type=int, default=3000)
    among.add_argument("--seeds", type=int, nargs="*", default=[3, 4, 5])
    among.add_argument("--updates", nargs="*", default=["gibbs", "auto"])
    of = choices.add_parser("fits")
    of.add_argument("--states", type=int, default=2)
    of.add_argument("--steps", type=int, default=400)
    of.add_argument("--starts", type=int, default=10)
    of.add_argument("--only", nargs="*", choices=FITS, default=list(FITS))
    for name in ("dna", "alice"):
        choices.add_parser(name).add_argument("--draws", type=int, default=1000)
    arguments = parser.parse_args()
    if arguments.part == "fits":
        fits(arguments.states, arguments.steps, arguments.starts, arguments.only)
    elif arguments.part == "small":
        model = MultinomialLDS(arguments.state_dim)
        data = simulated(arguments.state_dim, arguments.symbols, arguments.steps, arguments.gaps)
        kept = ours(model, data, arguments.draws, True)
        if arguments.nuts:
            compare(kept, nuts(model, data, arguments.draws, arguments.target))
    elif arguments.part == "pooled":
        model, data = MixedHMM(2, emission_concentration=1.0), animals()
        kept = our_animals(model, data, arguments.draws)
        if arguments.nuts:
            compare(kept, nuts_of_animals(model, data, arguments.draws))
    elif arguments.part == "rare":
        for seed in arguments.seeds:
            data = rare(
                arguments.state_dim, arguments.symbols, arguments.steps, arguments.total,
                arguments.level, seed,
            )  # fmt: skip
            for update in arguments.updates:
                of_sticks(MultinomialLDS(arguments.state_dim, update=update), data, arguments.draws)
    else:
        data = {"dna": dna, "alice": alice}[arguments.part]()
        ours(MultinomialLDS(10), data, arguments.draws, False)


if __name__ == "__main__":
    main()
