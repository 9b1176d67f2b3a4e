"""Searches for starts of topic models: what they find, what it is worth, what it costs.

    python tests/benchmarks/starts.py searches --corpus ap --topics 50 --seeds 2
    python tests/benchmarks/starts.py scores --corpus ap --topics 50 --seconds 20 --seeds 3

Corpora are those of topics.py. Seconds are of the processor, on one thread. Two topics are
unmatched where the best one-to-one matching leaves them 0.5 or more apart in total variation.
"""

import argparse
import time

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from topics import CORPORA, Sweep, frequent_words

import pgmult
from pgmult.core.scores import mean_by_token
from pgmult.topics import split_tokens
from pgmult.topics.starts import searches
from pgmult.topics.starts.searches import search_leaves, unsearched

ETA = 0.05


def before(rng, corpus, num_topics):
    """How chains used to start: thirty sweeps, alpha frozen."""
    return unsearched(rng, corpus, num_topics, ETA).swept(rng, corpus, 30, held=30)


def plain(sweeps):
    def find(rng, corpus, num_topics):
        return unsearched(rng, corpus, num_topics, ETA).swept(rng, corpus, sweeps, held=30)

    return find


def searched(leaves=1, sweeps=searches.START_SWEEPS):
    def find(rng, corpus, num_topics):
        return search_leaves(rng, corpus, num_topics, ETA, leaves, sweeps)[0]

    return find


SEARCHES = {
    "before": before,
    "plain 200": plain(200),
    "plain 300": plain(300),
    "plain 1000": plain(1000),
    "merge 100": searched(),
    "merge 200": searched(sweeps=200),
    "merge, 4 x 100": searched(4),
}


def unmatched(first, second):
    apart = 0.5 * cdist(first, second, "cityblock")
    rows, columns = linear_sum_assignment(apart)
    return np.sum(apart[rows, columns] >= 0.5), apart[rows, columns].mean()


def search_table(options):
    corpus = frequent_words(CORPORA[options.corpus]())
    print(f"{options.corpus}, {corpus}, K = {options.topics}, {options.seeds} seeds")
    print(f"{'':20s}  CPU s   LOO      unmatched  distance")
    searched(2, 20)(np.random.default_rng(0), corpus, 2)  # compile
    for name, find in SEARCHES.items():
        if options.only and options.only not in name:
            continue
        seconds, found = [], []
        for seed in range(options.seeds):
            begin = time.process_time()
            found.append(find(np.random.default_rng(seed), corpus, options.topics))
            seconds.append(time.process_time() - begin)
        loo = np.mean([at.loo(corpus) for at in found])
        pairs = [
            unmatched(found[i].topics(), found[j].topics())
            for i in range(len(found))
            for j in range(i)
        ]
        apart = np.mean(pairs, axis=0) if pairs else (np.nan, np.nan)
        print(
            f"{name:20s} {np.mean(seconds):6.2f} "
            f"{loo / corpus.num_tokens:7.4f}   {apart[0]:5.1f}      {apart[1]:.3f}",
            flush=True,
        )


def held_out_scores(model, find, training, held_out, seconds, seed, burn_in=0.3):
    """Document completion at growing CPU seconds, the start's included."""
    rng = np.random.default_rng(seed)
    begin = time.process_time()
    if find is None:
        state = model.init(rng, training)
    else:
        at = find(rng, training, model.num_topics)
        at = at.ordered(np.argsort(-at.sizes, kind="stable"))
        state = model.from_allocation(rng, at, training)
    marks = [seconds / 4, seconds / 2, seconds]
    windows = {mark: pgmult.topics.scores.DocumentCompletion(held_out, every=3) for mark in marks}
    sweeps = 0
    while (passed := time.process_time() - begin) < seconds:
        state = model.step(rng, state, training)
        sweeps += 1
        for mark, completion in windows.items():
            if burn_in * mark < passed <= mark:
                completion(Sweep(model, training, state, sweeps))
    return {mark: window.score() for mark, window in windows.items() if window.num_draws}, sweeps


def score_table(options):
    corpus = frequent_words(CORPORA[options.corpus]())
    model = pgmult.topics.CorrelatedTopics(options.topics, word_concentration=ETA)
    lda = pgmult.topics.LDA(options.topics, word_concentration=ETA)
    chosen = ["before", "plain 200", "merge 100"]
    compare(options, corpus, [("LDA", lda, None)] + [(n, model, SEARCHES[n]) for n in chosen])


def compare(options, corpus, rows):
    """Held-out scores of (name, model, search), and gains over the first, paired by document."""
    gains = {}
    for seed in range(options.seeds):
        test = min(112, corpus.num_documents // 10)
        training, held_out = split_tokens(corpus, test, options.observed, random_seed=seed)
        for _, model, _ in rows:  # compile
            model.step(rng := np.random.default_rng(0), model.init(rng, training), training)
        first = None
        for name, model, find in rows:
            scores, sweeps = held_out_scores(model, find, training, held_out, options.seconds, seed)
            first = first or scores
            line = []
            for mark, score in scores.items():
                gain = np.nan
                if mark in first:
                    ahead = score.by_unit - first[mark].by_unit
                    gain, _ = mean_by_token(ahead, held_out.totals)
                gains.setdefault((name, mark), []).append(gain)
                line.append(f"{mark:5.1f} s {score.log_predictive:.4f} ({gain:+.4f})")
            print(f"seed {seed} {name:22s} {sweeps:5d} sweeps  " + "  ".join(line), flush=True)
    print(f"gain over {rows[0][0]}, mean and standard error over {options.seeds} splits")
    for (name, mark), values in gains.items():
        error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
        print(f"{name:22s} {mark:5.1f} s {np.mean(values):+.4f} ± {error:.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["searches", "scores"])
    parser.add_argument("--corpus", default="docstrings", choices=CORPORA)
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--observed", type=float, default=0.5)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="")
    chosen = parser.parse_args()
    commands = {"searches": search_table, "scores": score_table}
    commands[chosen.what](chosen)
