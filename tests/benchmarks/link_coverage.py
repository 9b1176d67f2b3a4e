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

import numpy as np
from structural_coverage import WORDS_A_TOPIC, OverSticks, contrast, measure

from pgmult import LogisticNormal, StickBreaking
from pgmult.topics import StructuralTopics

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


def main(options):
    coefficients, cov = truth_of(options.truth)
    far = np.random.default_rng(1).standard_normal((200_000, len(cov)))
    total = cov * (2.0 if options.authors else 1.0)
    truth = contrast(LINKS[options.truth], coefficients[None], total[None], far)[0]
    print(f"truth by {options.truth}: effects {truth.round(3)}", flush=True)
    formula = "~ treated + (1 | author)" if options.authors else "~ treated"
    models = {"sticks": OverSticks, "softmax": StructuralTopics}
    methods = {link: (formula, kind(TOPICS, start_sweeps=40)) for link, kind in models.items()}
    measure(
        options, truth, lambda rng: simulate(rng, options, coefficients, cov), methods, "sticks"
    )


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
    main(parser.parse_args())
