"""Forecasts of yearly counts of names from rolling origins: scores and coverage, beside rivals.

    python -m tests.benchmarks.forecasts [--births 0] [--origins 6] [--only "lds 2" "last shares"]

The most frequent names of boys and of girls, all states together, are forecast from origins evenly
spread over the years, one and five years ahead. `--births` thins the years that are learned from (0
leaves them whole). A score is the log probability of 1,000 thinned births of the year that is
forecast, per birth, less that of uniform shares; coverage is of the counts of each name in that
year, whole or thinned as the others, by central intervals of 50, 80 and 95 %. Needs PGMULT_DATA.

Autoregressions need statsmodels.

`last shares` are those of the last year, `discounted Dirichlet` halves what it knows every year, of
at most 200 births.
"""

import argparse
import time

import numpy as np
from scipy.special import logsumexp, softmax

import pgmult
from examples.papers.linderman2015.newborns import thin, us_names
from pgmult.fields import MultinomialGP, as_field
from pgmult.fields.covariances import Matern
from pgmult.sequences import MultinomialLDS, as_sequences

HORIZONS, LEVELS = (1, 5), (0.5, 0.8, 0.95)
SCORED, PATHS, NAMES = 1000, 2000, 8


def lds(state_dim, **options):
    def forecast(rng, counts):
        run = pgmult.sample(
            MultinomialLDS(state_dim, **options), as_sequences([counts]), draws=500, tune=500,
            chains=2, cores=1, random_seed=int(rng.integers(2**31)), progressbar=False,
        )  # fmt: skip
        draws = np.concatenate([_paths(rng, run) for _ in range(2)])
        return draws[:, [h - 1 for h in HORIZONS]]

    return forecast


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


def process(rng, counts):
    years = np.arange(float(len(counts)))
    model = MultinomialGP(2.0 * Matern(1.5, 20.0), overdispersion=0.01)
    run = pgmult.sample(
        model, as_field(years, counts), draws=500, tune=250, chains=2, cores=1, keep=None,
        random_seed=int(rng.integers(2**31)), progressbar=False,
    )  # fmt: skip
    ahead = len(counts) - 1.0 + np.array(HORIZONS)
    return run.predict(ahead[:, None], max_draws=None).draws


def last_shares(rng, counts):
    share = (counts[-1] + 0.5) / (counts[-1] + 0.5).sum()
    return np.broadcast_to(share, (PATHS, len(HORIZONS), len(share)))


def dirichlet(rng, counts):
    known = np.full(counts.shape[1], 0.5)
    for year in counts:
        known = 0.5 * known + year
        known *= min(1.0, 200.0 / known.sum())
    return rng.dirichlet(known + 0.5, (PATHS, len(HORIZONS)))


def autoregressions(rng, counts):
    """One of order 2 for each log ratio; their errors go together."""
    from statsmodels.tsa.ar_model import AutoReg

    ratios = _log_ratios(counts)
    fits = [AutoReg(y, 2).fit() for y in ratios.T]
    intercept, first, second = np.array([fit.params for fit in fits]).T
    cov = np.atleast_2d(np.cov(np.array([fit.resid for fit in fits])))
    return _simulated(rng, ratios, intercept, [np.diag(first), np.diag(second)], cov)


def vector_autoregression(rng, counts):
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
    "lds 2": lds(2),
    "lds 2, no noise": lds(2, overdispersion=False),
    "lds 4": lds(4),
    "lds 7": lds(7),
    "lds 10": lds(10),
    "lds 10, no noise": lds(10, overdispersion=False),
}


def judged(rng, draws, counts, whole):
    """Score a birth and which names are covered, ``(levels, names)``."""
    test = thin(whole[None], SCORED, 0)[0]
    log_p = (test * np.log(draws)).sum(axis=1)
    score = (logsumexp(log_p) - np.log(len(draws))) / SCORED + np.log(len(whole))
    made = rng.multinomial(int(counts.sum()), draws / draws.sum(axis=1, keepdims=True))
    ends = [np.quantile(made, (0.5 - 0.5 * p, 0.5 + 0.5 * p), axis=0) for p in LEVELS]
    return score, np.array([(low <= counts) & (counts <= high) for low, high in ends])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--births", type=int, default=0)
    parser.add_argument("--origins", type=int, default=6)
    parser.add_argument("--only", nargs="*", choices=METHODS, default=list(METHODS))
    options = parser.parse_args()
    found = {name: [] for name in options.only}
    seconds = dict.fromkeys(options.only, 0.0)
    for sex in "MF":
        whole = us_names(sex, NAMES).counts.sum(axis=1)
        counts = thin(whole, options.births, 1) if options.births else whole
        for origin in np.linspace(40, len(whole) - HORIZONS[-1], options.origins).astype(int):
            for name in options.only:
                rng, begun = np.random.default_rng(origin), time.process_time()
                draws = METHODS[name](rng, counts[:origin])
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
