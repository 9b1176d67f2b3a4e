"""Measure after how many sweeps a chain has forgotten where it began, on eight corpora.

    python -m tests.benchmarks.transients [--only TEXT] [--sweeps N]

One chain begins as every chain does by default. The other one begins on the opposite side: at the
truth where documents are simulated, else with documents as nearly pure as the search for a start
has them. What a report prints (shares of topics and, with covariates, expected shares as these
vary), the spread of documents (the trace of Sigma) and the log likelihood are averaged over windows
of sweeps, each half as long again as the one before. A number has settled after the last window in
which the means of the two chains are further apart than two posterior standard deviations of it, or
than four standard errors of the difference; the posterior is that of both chains' last halves.
"""

import argparse
import time
from dataclasses import replace

import numpy as np

from pgmult.core.typing import variable
from pgmult.datasets.messages import state_of_the_union
from pgmult.links import LogisticNormal
from pgmult.sampling.diagnostics import mcse_mean
from pgmult.sampling.labels import MATCH_LIMIT
from pgmult.topics import (
    CorrelatedTopics,
    DynamicTopics,
    LogisticNormalTopics,
    StructuralTopics,
    as_timed_corpus,
    with_covariates,
)
from pgmult.topics.data.corpus import as_corpus
from pgmult.topics.starts.searches import Searched, leaf
from pgmult.topics.updates.collapsed import Allocation

FIRST, GROWTH = 25, 1.5  # sweeps of the first window, and how much longer the next one is
FAR, ERRORS = 2.0, 4.0  # standard deviations, and errors, of a difference that counts


def simulated(num_texts, length, num_topics, num_words, slope=0.0, spread=1.0, seed=0):
    """Counts from a softmax truth, tokens by topic, psi and a covariate."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(num_words, 0.1), num_topics)
    x = rng.integers(2, size=num_texts)
    slopes = slope * np.linspace(1.0, -1.0, num_topics)
    psi = rng.normal(0.0, spread, (num_texts, num_topics)) + np.outer(x - 0.5, slopes)
    by_topic = [rng.multinomial(length, theta) for theta in LogisticNormal().probs(psi)]
    words = np.array(
        [[rng.multinomial(n, p) for n, p in zip(ns, topics, strict=True)] for ns in by_topic]
    )
    return words, np.array(by_topic), psi, x


def at_truth(model, rng, data, words, by_topic, psi):
    """The state of a chain at the truth, topics in the order of the truth."""
    none = np.empty(0, dtype=np.int64)
    allocation = Allocation(none, by_topic, np.ascontiguousarray(words.sum(axis=0).T))
    at = Searched(allocation, np.full(len(words[0]), 0.1), model.start_concentration())
    centred = psi - psi.mean(axis=1, keepdims=True)
    link = model.link(data)
    true = (
        centred if isinstance(link, LogisticNormal) else link.inverse(LogisticNormal().probs(psi))
    )
    return with_psi(model, rng, data, model.from_allocation(rng, at, data), true)


def with_psi(model, rng, data, state, psi):
    """The same state with another psi, and what is drawn given it."""
    return replace(state, psi=psi, **model.psi_mean.start(rng, psi, data))


def traces(model, data, state, rng, sweeps):
    """Numbers that are printed, sweep by sweep, ``(sweep, number)``, topics in one order."""
    names = [n for n in model.reported_names if n not in model.absent(data)]
    rows, scores = [], []
    for _ in range(sweeps):
        state = model.step(rng, state, data)
        printed = model.reported({name: variable(model, state, data, name) for name in names})
        printed = printed.reshape(-1, model.num_topics)
        rows.append(np.append(printed, np.log(np.trace(state.Sigma))))
        scores.append(model.log_likelihood(state, data))
    topics = model.mean_topics(state, data)
    return np.array(rows), np.array(scores), topics


def in_order_of(rows, order):
    """Traces with topics in another order, the last number as it was."""
    size = len(order)
    shares = rows[:, :-1].reshape(len(rows), -1, size)[:, :, order]
    return np.column_stack([shares.reshape(len(rows), -1), rows[:, -1]])


def settled_after(one, two):
    """Sweeps before the first window from which on two chains agree, for each number."""
    sweeps = len(one)
    late = np.stack([one[sweeps // 2 :], two[sweeps // 2 :]])
    sd = late.std(axis=(0, 1))
    error = 2.0 * np.sqrt(sweeps // 2) * mcse_mean(late)  # of a difference after one sweep
    after, begin, size = np.zeros(one.shape[1]), 0, FIRST
    while begin + size <= sweeps:
        window = slice(begin, begin + size)
        apart = np.abs(one[window].mean(axis=0) - two[window].mean(axis=0))
        after[apart > np.maximum(FAR * sd, ERRORS * error / np.sqrt(size))] = begin + size
        begin, size = begin + size, round(GROWTH * size)
    return after


def matched(first, second):
    """Match each topic of the first chain to the nearest one of the second, one to one."""
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    apart = cdist(first, second, "cityblock") / (
        first.sum(axis=1).mean() + second.sum(axis=1).mean()
    )
    rows, columns = linear_sum_assignment(apart)
    return columns, apart[rows, columns]


def messages(num_topics, every):
    """Every fourth piece of the messages, and a model of them."""
    corpus = state_of_the_union()
    return LogisticNormalTopics(num_topics), corpus[np.arange(0, corpus.num_documents, every)]


def cases():
    """Name, model, data and the truth, or None, of each corpus."""

    def structural(words, by_topic, psi, x, **options):
        data = with_covariates(words.sum(axis=1), {"x": ["ab"[i] for i in x]}, "~ x", **options)
        return StructuralTopics(words.shape[1]), data, (words, by_topic, psi)

    def plain(kind, words, by_topic, psi, x):
        return kind(words.shape[1]), as_corpus(words.sum(axis=1)), (words, by_topic, psi)

    yield (
        "600 x 40 words, 2 topics, effect of x",
        lambda: structural(*simulated(600, 40, 2, 100, 1.5)),
    )
    yield (
        "300 x 20 words, 4 topics, effect of x",
        lambda: structural(*simulated(300, 20, 4, 100, 1.0)),
    )
    yield (
        "400 x 60 words, 6 topics, words by x",
        lambda: structural(*simulated(400, 60, 6, 200, 1.0), content="~ x"),
    )
    yield (
        "1,000 x 100 words, 20 topics, sticks",
        lambda: plain(CorrelatedTopics, *simulated(1000, 100, 20, 500, spread=2.0)),
    )
    yield (
        "60 x 5,000 words, 10 topics, softmax",
        lambda: plain(LogisticNormalTopics, *simulated(60, 5000, 10, 500, spread=1.5)),
    )
    yield (
        "1,000 x 60 words, 50 topics, sticks",
        lambda: plain(CorrelatedTopics, *simulated(1000, 60, 50, 800, spread=2.5)),
    )

    def timed():
        words, by_topic, psi, _ = simulated(300, 50, 4, 100)
        data = as_timed_corpus(words.sum(axis=1), times=np.arange(300) % 5)
        return DynamicTopics(4), data, (words, by_topic, psi)

    yield "300 x 50 words, 4 topics over 5 years", timed
    yield "State of the Union, 779 x 100 words, 12 topics", lambda: (*messages(12, 4), None)


def transient(name, make, sweeps, seed):
    began = time.process_time()
    model, data, truth = make()
    rng = np.random.default_rng(seed)
    other = np.random.default_rng(seed + 1)
    if truth is None:
        at = model.in_order(leaf(rng, data, model.num_topics, model.start_concentration()), data)
        begun = model.from_allocation(other, at, data)
        one = traces(model, data, begun, rng, sweeps)  # from the same allocation
        state = with_psi(model, other, data, begun, at.psi(model.link(data)))
    else:
        one = traces(model, data, model.init(rng, data), rng, sweeps)
        state = at_truth(model, other, data, *truth)
    two = traces(model, data, state, other, sweeps)
    order, apart = matched(one[2], two[2])
    same = np.flatnonzero(apart < MATCH_LIMIT)
    second = in_order_of(two[0], order)
    numbers = [*settled_after(one[0], second)]
    size = model.num_topics
    by_topic = np.array(numbers[:-1]).reshape(-1, size)
    score = settled_after(one[1][:, None], two[1][:, None])[0]

    def said(value):
        return f"{value:.0f}" if value < sweeps * 0.6 else f"> {value:.0f}"

    shares, effects = by_topic[:1, same], by_topic[1:, same]
    cells = [
        said(score), said(np.max(shares, initial=0.0)), said(np.median(shares)),
        said(np.max(effects)) if effects.size else "", said(numbers[-1]),
    ]  # fmt: skip
    print(
        f"| {name} | {len(same)} of {size} | {' | '.join(cells)} |"
        f" {time.process_time() - began:.0f} s |",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--sweeps", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print("| corpus | topics in both | log likelihood | shares, last | shares, median |"
          " effects, last | spread | CPU |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    for name, make in cases():
        if options.only in name:
            transient(name, make, options.sweeps, options.seed)
