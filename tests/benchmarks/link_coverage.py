"""Do intervals of effects cover, under either link and where the other one is true?

    python tests/benchmarks/link_coverage.py --truth softmax --replicates 100
    python tests/benchmarks/link_coverage.py --truth sticks --authors 20 --documents 10

Half of the documents are treated, or with ``--authors`` half of the authors, who differ as much as
their documents do. The question is by how much treatment changes what is expected of each topic,
E[theta | 1] - E[theta | 0]. Every corpus comes from the link of ``--truth`` and is fitted by
`StructuralTopics` with both; the third method is the method of composition on the draws of the
sticks (see structural_coverage.py). A replicate's topics are averaged: they are dependent.
"""

import argparse
import time

import numpy as np
from structural_coverage import WORDS_A_TOPIC, composition, covered, report

from pgmult import LogisticNormal, StickBreaking
from pgmult.topics import StructuralTopics, with_covariates

TOPICS = 5
LINKS = {"sticks": StickBreaking(), "softmax": LogisticNormal()}


def truth_of(link):
    """Coefficients and covariance with effects of up to some tenths on topics' shares."""
    rng = np.random.default_rng(3)
    size = len(LINKS[link].inverse(np.full(TOPICS, 1.0 / TOPICS)))
    start = LINKS[link].inverse(np.full(TOPICS, 1.0 / TOPICS))
    root = rng.normal(size=(size, size))
    cov = np.eye(size) + 1.5 * root @ root.T / size
    return np.stack([start, rng.normal(scale=0.8, size=size)]), cov


def contrast(link, coefficients, covs, noise):
    """E[theta | treated] - E[theta | not] of each draw, ``(draws, topics)``."""
    scattered = np.einsum("sj,dij->dsi", noise, np.linalg.cholesky(covs))
    ends = (coefficients[:, 0], coefficients[:, 0] + coefficients[:, 1])
    untreated, treated = (LINKS[link].probs(end[:, None] + scattered) for end in ends)
    return (treated - untreated).mean(axis=1)


def simulate(rng, options, coefficients, cov):
    """Counts, treatment and author of each document."""
    count = options.documents * max(options.authors, 1)
    author = np.arange(count) // options.documents if options.authors else np.arange(count)
    treated = author % 2
    psi = np.column_stack([np.ones(count), treated]) @ coefficients
    psi = psi + rng.multivariate_normal(np.zeros(len(cov)), cov, size=count)
    if options.authors:
        psi += rng.multivariate_normal(np.zeros(len(cov)), cov, size=options.authors)[author]
    topics = np.kron(np.eye(TOPICS), np.full((1, WORDS_A_TOPIC), 1.0 / WORDS_A_TOPIC))
    return (
        rng.multinomial(options.length, LINKS[options.truth].probs(psi) @ topics),
        treated,
        author,
    )


def fit(rng, data, link, options):
    """Coefficients, covariance and theta of each draw, topics in the truth's order if found."""
    model = StructuralTopics(TOPICS, effects=link, start_sweeps=40)
    starts = [model.init(rng, data) for _ in range(3)]  # some merge two topics
    state = max(starts, key=lambda start: model.log_likelihood(start, data))
    coefficients, covs, theta = [], [], []
    for sweep in range(options.tune + options.draws):
        state = model.step(rng, state, data)
        if sweep >= options.tune:
            coefficients.append(data.design.unscale(state.coefficients))
            covs.append(state.Sigma * (1.0 + state.effect_variances.sum()))
            theta.append(model.theta(state, data))
    shares = state.topics.reshape(TOPICS, TOPICS, -1).sum(axis=2)
    owner = shares.argmax(axis=0)
    found = len(set(owner)) == TOPICS and shares.max(axis=0).min() > 0.8
    return np.array(coefficients), np.array(covs), np.array(theta)[..., owner], owner, found


def main(options):
    coefficients, cov = truth_of(options.truth)
    far = np.random.default_rng(1).standard_normal((200_000, len(cov)))
    total = cov * (2.0 if options.authors else 1.0)
    truth = contrast(options.truth, coefficients[None], total[None], far)[0]
    print(f"truth by {options.truth}: effects {truth.round(3)}", flush=True)
    formula = "~ treated + (1 | author)" if options.authors else "~ treated"
    inside, widths, lost, begin = {}, {}, 0, time.process_time()
    for replicate in range(options.replicates):
        rng = np.random.default_rng([options.seed, replicate])
        counts, treated, author = simulate(rng, options, coefficients, cov)
        table = {"treated": treated, "author": [f"a{a:03d}" for a in author]}
        data = with_covariates(counts, table, formula, standardize=False)
        draws = {}
        for link in LINKS:
            B, covs, theta, owner, found = fit(rng, data, link, options)
            if not found:
                lost += 1
                break
            half = np.random.default_rng(2).standard_normal((100, B.shape[2]))
            draws[link] = contrast(link, B, covs, np.concatenate([half, -half]))[:, owner]
            if link == "sticks":
                draws["composition (stm)"] = composition(rng, theta, treated)
        else:
            for name, sample in draws.items():
                hit, width = covered(sample, truth)
                inside.setdefault(name, []).append(hit)
                widths.setdefault(name, []).append(width)
        if (replicate + 1) % options.every == 0:
            report(inside, widths, replicate + 1, lost, options)
    print(f"{(time.process_time() - begin) / options.replicates:.2f} CPU s a replicate")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--truth", choices=LINKS, default="sticks")
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--authors", type=int, default=0)
    parser.add_argument("--documents", type=int, default=300, help="of each author, where any")
    parser.add_argument("--length", type=int, default=60)
    parser.add_argument("--tune", type=int, default=100)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.set_defaults(effects="shared")
    main(parser.parse_args())
