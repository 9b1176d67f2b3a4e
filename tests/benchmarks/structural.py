"""What random effects and words by group cost, and what they gain: structural topic models.

    python tests/benchmarks/structural.py large            CPU s a sweep beside the plain model
    python tests/benchmarks/structural.py directions       effective draws of everything, real data

Corpora are simulated from the model with a known concentration of words by group.
"""

import argparse
import resource
import time
from dataclasses import replace

import numpy as np

import pgmult
from pgmult.core.typing import variable
from pgmult.core.validate import new_key
from pgmult.sampling.blocks import Shard, blocks, num_rows
from pgmult.sampling.diagnostics import ess_bulk
from pgmult.topics import (
    DynamicTopics,
    StructuralTopics,
    as_corpus,
    as_timed_corpus,
    with_covariates,
)
from pgmult.topics.data.corpus import Corpus, simulate_words
from pgmult.topics.updates.content import ContentPrior

AUTHORS = 100


def simulated(rng, documents, words, topics, groups, length, concentration):
    """A corpus and the table of its documents: year, author, group and the groups shuffled."""
    base = pgmult.Dirichlet(0.05).sample(rng, (topics, words))
    by_group = np.concatenate(
        [
            np.stack([rng.dirichlet(np.maximum(concentration * row, 1e-9)) for row in base])
            for _ in range(groups)
        ]
    )
    codes, authors = rng.integers(groups, size=documents), rng.integers(AUTHORS, size=documents)
    year = rng.uniform(1950, 2020, size=documents)
    theta = pgmult.StickBreaking().probs(
        rng.normal(size=(AUTHORS, topics - 1))[authors] * 0.7
        + 0.03 * (year - 1985.0)[:, None] * rng.normal(size=topics - 1)
        + rng.normal(size=(documents, topics - 1))
        + pgmult.StickBreaking().inverse(np.full(topics, 1.0 / topics))
    )
    totals = rng.poisson(length, size=documents)
    counts = rng.multinomial(totals, theta)
    rows = codes[:, None] * topics + np.arange(topics)
    shape = Corpus(
        np.arange(documents + 1),
        np.zeros(documents, dtype=np.int32),
        totals.astype(np.int32),
        words,
    )
    tokens = simulate_words(rng, np.repeat(rows.ravel(), counts.ravel()), by_group, shape)
    table = {
        "year": year,
        "author": [f"a{a}" for a in authors],
        "group": [f"g{g}" for g in codes],
        "shuffled": [f"g{g}" for g in rng.permutation(codes)],
    }
    return as_corpus(tokens.to_csr()), table


def cpu_a_sweep(model, data, sweeps):
    """CPU seconds of the fastest of three batches of sweeps, after the start."""
    rng = np.random.default_rng(0)
    state = model.init(rng, data)
    state = model.step(rng, state, data)
    batches = []
    for _ in range(3):
        begin = time.process_time()
        for _ in range(sweeps):
            state = model.step(rng, state, data)
        batches.append((time.process_time() - begin) / sweeps)
    return min(batches)


FORMS = {
    "year": ("~ year", None),
    "year + (1 | author)": ("~ year + (1 | author)", None),
    "s(year) + (1 | author)": ("~ s(year) + (1 | author)", None),
    "year, content": ("~ year", "~ group"),
    "s(year) + (1 | author), content": ("~ s(year) + (1 | author)", "~ group"),
}


def large(options):
    rng = np.random.default_rng(0)
    documents, words, topics, groups, length = 10_000, 10_000, 50, 4, 150
    corpus, table = simulated(rng, documents, words, topics, groups, length, 300.0)
    print(f"{corpus}, {len(corpus.words):,} entries, K = {topics}, G = {groups}")
    model = StructuralTopics(topics, start_sweeps=20, content=ContentPrior(start_sweeps=3))
    plain = None
    for name, (formula, content) in FORMS.items():
        data = with_covariates(corpus, table, formula, content=content)
        seconds = cpu_a_sweep(model, data, 3)
        plain = plain or seconds
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
        print(
            f"{name:34s} {seconds:.4f} CPU s a sweep, {seconds / plain:.2f} x,"
            f" peak so far {peak:.2f} GiB",
            flush=True,
        )


CELLS = 300  # of topics, and of documents, that are followed


def followed(model, state, data, likely, documents):
    """Numbers of a state whose effective draws are counted."""
    numbers = {"psi": state.psi[documents], "phi": np.log(likely(state))}
    if isinstance(model, StructuralTopics):
        numbers |= {
            "coefficients": data.design.unscale(state.coefficients),
            "mu at average covariates": model.mu(state, data),
            "Sigma": state.Sigma[np.tril_indices(len(state.Sigma))],
            "log rho": np.log(state.effect_variances),
            "effects": state.effects,
            "log content concentration": np.log(state.content_concentration),
        }
    else:
        numbers |= {
            "mu of times": state.mu,
            "log prevalence drift": np.log(state.prevalence_drift),
            "log drift of words": np.log(state.drift_var),
            "log initial variance": np.log(state.initial_var),
            "level of words": state.eta.mean(axis=1)[:, :10],
            "base of words": state.base[:30],
        }
    return {name: np.ravel(value) for name, value in numbers.items()}


def directions(options):
    """Effective draws in 100 sweeps of State of the Union: the fewest, and the median.

    Then the same where the tokens' topics and psi stay: what no move of the rest can pass.
    """
    corpus = pgmult.datasets.state_of_the_union()
    decade = corpus.table.columns["year"] // 10
    formula = "~ party * s(year) + (1 | president)"
    structural = corpus.with_covariates(formula, content="~ party")
    for name, model, data in (
        ("shared effects", StructuralTopics(10), structural),
        ("dynamic, by decade", DynamicTopics(10), as_timed_corpus(corpus, decade)),
    ):
        rng = np.random.default_rng(0)
        state = model.init(rng, data)
        begin = time.process_time()
        for _ in range(options.sweeps // 2):
            state = model.step(rng, state, data)
        first = variable(model, state, data, "topics").reshape(-1, data.num_words)
        cells = rng.choice(np.flatnonzero(first.ravel() > 1e-3), CELLS, replace=False)
        documents = rng.choice(data.num_documents, CELLS // 10, replace=False)

        def likely(state, model=model, data=data, cells=cells):
            return np.ravel(variable(model, state, data, "topics"))[cells]

        rows, held = [], []
        for _ in range(options.sweeps):
            state = model.step(rng, state, data)
            rows.append(followed(model, state, data, likely, documents))
        seconds = (time.process_time() - begin) / (1.5 * options.sweeps)
        moved = Shard(model, data).steps(new_key(rng), state)
        count = len(blocks(num_rows(model, state, data), model.block_rows))
        before, sums = moved.state, moved.total.result(count)
        for _ in range(options.sweeps):
            if isinstance(model, DynamicTopics):  # sums are about this mu
                state = replace(state, mu=before.mu)
            state = model.shared_step(rng, replace(state, psi=before.psi), sums, data, None)
            held.append(followed(model, state, data, likely, documents))
        print(f"{name}: {seconds:.3f} CPU s a sweep; effective draws in 100 sweeps, min and median")
        for of in rows[0]:
            told = f"  {of:28s}"
            for kept in (rows, held):
                draws = np.array([row[of] for row in kept])[None]
                if of != "psi" or kept is rows:
                    effective = 100.0 * np.ravel(ess_bulk(draws)) / options.sweeps
                    told += f" {np.nanmin(effective):6.1f} {np.nanmedian(effective):6.1f}  "
            print(told, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["large", "directions"])
    parser.add_argument("--sweeps", type=int, default=200, help="of directions")
    chosen = parser.parse_args()
    {"large": large, "directions": directions}[chosen.what](chosen)
