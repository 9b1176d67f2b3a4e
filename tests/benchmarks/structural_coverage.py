"""Do intervals of effects cover? Clustered documents, with and without random effects.

    python tests/benchmarks/structural_coverage.py --replicates 200

Authors write ten documents each, and half of the authors are treated. The question is by how much
treatment changes what is expected of each topic, E[theta | 1] - E[theta | 0], over documents of new
authors. Each replicate is a corpus of its own, fitted by `StructuralTopics` with ``(1 | author)``
and without; the third method regresses draws of theta on the treatment by least squares and draws
from the coefficients' normal law: the method of composition of stm's estimateEffect. All three are
scored on the same corpora. A replicate's topics are averaged: they are dependent.
"""

import argparse
import time

import numpy as np

from pgmult import StickBreaking
from pgmult.topics import StructuralTopics, with_covariates

LINK = StickBreaking()


class OverSticks(StructuralTopics):
    """The model with K - 1 sticks in place of K coordinates of a softmax."""

    def link(self, data=None):
        return LINK


COEFFICIENTS = np.array([[-0.6, 0.1], [0.5, -0.4]])
SIGMA = np.array([[0.8, 0.2], [0.2, 0.5]])
LEVELS = (0.5, 0.8, 0.9)
WORDS_A_TOPIC = 8


def contrast(link, coefficients, covs, noise):
    """E[theta | treated] - E[theta | not] of each draw, ``(draws, topics)``."""
    scattered = np.einsum("sj,dij->dsi", noise, np.linalg.cholesky(covs))
    ends = (coefficients[:, 0], coefficients[:, 0] + coefficients[:, 1])
    untreated, treated = (link.probs(end[:, None] + scattered) for end in ends)
    return (treated - untreated).mean(axis=1)


def simulate(rng, authors, documents, length, omega):
    """Counts, treatment and author of each document."""
    author = np.repeat(np.arange(authors), documents)
    treated = (np.arange(authors) % 2)[author]
    u = rng.multivariate_normal(np.zeros(2), omega, size=authors)
    mean = np.column_stack([np.ones(len(author)), treated]) @ COEFFICIENTS + u[author]
    theta = LINK.probs(mean + rng.multivariate_normal(np.zeros(2), SIGMA, size=len(author)))
    topics = np.kron(np.eye(3), np.full((1, WORDS_A_TOPIC), 1.0 / WORDS_A_TOPIC))
    return rng.multinomial(length, theta @ topics), treated, author


def fit(rng, data, model, options):
    """Draws of the effect and of theta, topics in the truth's order, and whether all were found."""
    starts = [model.init(rng, data) for _ in range(3)]  # some merge two topics
    state = max(starts, key=lambda start: model.log_likelihood(start, data))
    coefficients, covs, theta = [], [], []
    for sweep in range(options.tune + options.draws):
        state = model.step(rng, state, data)
        if sweep >= options.tune:
            coefficients.append(data.design.unscale(state.coefficients))
            covs.append(state.Sigma * (1.0 + state.effect_variances.sum()))
            theta.append(model.theta(state, data))
    shares = state.topics.reshape(model.num_topics, model.num_topics, -1).sum(axis=2)
    owner = shares.argmax(axis=0)
    found = len(set(owner)) == model.num_topics and shares.max(axis=0).min() > 0.8
    half = np.random.default_rng(2).standard_normal((100, len(state.Sigma)))
    noise = np.concatenate([half, -half])
    effect = contrast(model.link(), np.array(coefficients), np.array(covs), noise)
    return effect[:, owner], np.array(theta)[..., owner], found


def composition(rng, theta, treated):
    """Draws of the slope of theta on treatment: least squares a draw, then its normal law."""
    x = np.column_stack([np.ones(len(treated)), treated])
    inverse = np.linalg.inv(x.T @ x)
    slopes = []
    for one in theta:
        beta = inverse @ x.T @ one
        var = ((one - x @ beta) ** 2).sum(axis=0) / (len(x) - 2)
        slopes.append(beta[1] + np.sqrt(var * inverse[1, 1]) * rng.standard_normal(theta.shape[2]))
    return np.array(slopes)


def covered(draws, truth):
    """Whether central intervals hold the truth, ``(levels, topics)``; and mean widths."""
    ends = [np.quantile(draws, [0.5 - p / 2, 0.5 + p / 2], axis=0) for p in LEVELS]
    inside = [(low <= truth) & (truth <= high) for low, high in ends]
    return inside, float(np.mean(ends[-1][1] - ends[-1][0]))


def main(options):
    truth_noise = np.random.default_rng(1).standard_normal((200_000, 2))
    omega = options.rho * SIGMA
    truth = contrast(LINK, COEFFICIENTS[None], SIGMA[None] + omega, truth_noise)[0]
    model = OverSticks(3, start_sweeps=40)
    methods = {
        "(1 | author)": ("~ treated + (1 | author)", model),
        "documents independent": ("~ treated", model),
    }
    sizes = options.authors, options.documents, options.length, omega
    measure(options, truth, lambda rng: simulate(rng, *sizes), methods, "documents independent")


def measure(options, truth, simulate, methods, composed):
    """Coverage of the fits ``{name: (formula, model)}``, and of composition on one's theta."""
    inside, widths, seconds, lost = {}, {}, dict.fromkeys(methods, 0.0), 0
    for replicate in range(options.replicates):
        rng = np.random.default_rng([options.seed, replicate])
        counts, treated, author = simulate(rng)
        table = {"treated": treated, "author": [f"a{a:03d}" for a in author]}
        draws = {}
        for name, (formula, model) in methods.items():
            data = with_covariates(counts, table, formula, standardize=False)
            begin = time.process_time()
            draws[name], theta, found = fit(rng, data, model, options)
            seconds[name] += time.process_time() - begin
            if not found:
                lost += 1
                break
            if name == composed:
                draws["composition (stm)"] = composition(rng, theta, treated)
        else:
            for name, sample in draws.items():
                hit, width = covered(sample, truth)
                inside.setdefault(name, []).append(hit)
                widths.setdefault(name, []).append(width)
        if (replicate + 1) % options.every == 0:
            report(inside, widths, replicate + 1, lost, options)
    print({name: round(total / options.replicates, 2) for name, total in seconds.items()},
          "CPU s a fit")  # fmt: skip


def report(inside, widths, count, lost, options):
    print(
        f"{count} replicates of {options.authors} x {options.documents} documents of"
        f" {options.length} tokens; {lost} without all topics"
    )
    for name, hits in inside.items():
        hits = np.mean(hits, axis=2)
        error = hits.std(axis=0, ddof=1) / np.sqrt(len(hits))
        cells = "  ".join(
            f"{100 * p:.0f} %: {share:.2f} ± {e:.2f}"
            for p, share, e in zip(LEVELS, hits.mean(axis=0), error, strict=True)
        )
        print(f"  {name:24s} {cells}  90 % width {np.mean(widths[name]):.3f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--authors", type=int, default=20)
    parser.add_argument("--documents", type=int, default=10)
    parser.add_argument("--length", type=int, default=60)
    parser.add_argument("--rho", type=float, default=1.0)
    parser.add_argument("--tune", type=int, default=100)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--every", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args())
