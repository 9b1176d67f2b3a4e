"""Priors of Sigma, and ways to draw z, of the correlated topic model: held-out score, paired.

    python tests/benchmarks/sigma_priors.py --corpus docstrings --topics 20 --seeds 5

Each seed is a split and a start that all variants share; each makes the same number of sweeps, of
which the last two thirds are averaged. Gains are over the default, nats a held-out token, with the
standard error over splits. Corpora as in ``starts.py``.
"""

import argparse
import time

import numpy as np
from starts import ETA, corpus_of
from topics import Sweep

import pgmult
from pgmult import NormalInverseWishart
from pgmult.core.scores import paired_difference
from pgmult.priors import CommonScale, HalfTScales
from pgmult.topics import CorrelatedTopics, split_tokens
from pgmult.topics.starts.searches import leaf


def variants(num_topics):
    plain = CorrelatedTopics(num_topics, word_concentration=ETA)
    centre = plain.gaussian_prior.mean

    def firm(var):
        return NormalInverseWishart.weak(centre, var, rows=50)

    def model(**options):
        return CorrelatedTopics(num_topics, word_concentration=ETA, **options)

    return {
        "default": plain,
        "half-t": model(scales=HalfTScales()),
        "firm, variance 3": model(gaussian=firm(3.0)),
        "firm, one scale": model(gaussian=firm(3.0), scales=CommonScale()),
        "words collapsed": model(words="collapsed"),
    }


def run(model, start, training, held_out, sweeps, seed):
    rng = np.random.default_rng(seed)
    begin = time.process_time()
    state = model.from_allocation(rng, start, training)
    completion = pgmult.topics.scores.DocumentCompletion(held_out, every=3)
    for sweep in range(1, sweeps + 1):
        state = model.step(rng, state, training)
        if sweep > sweeps // 3:
            completion(Sweep(model, training, state, sweep))
    return completion.score(), time.process_time() - begin


def main(options):
    corpus, _ = corpus_of(options)
    for observed in options.observed:
        gains, seconds = {}, {}
        for seed in range(options.seeds):
            test = min(112, corpus.num_documents // 5)
            training, held_out = split_tokens(corpus, test, observed, random_seed=seed)
            rng = np.random.default_rng(seed)
            start = leaf(rng, training, options.topics, ETA).by_size()
            default = None
            for name, model in variants(options.topics).items():
                score, passed = run(model, start, training, held_out, options.sweeps, seed)
                default = default or score
                gain, _ = paired_difference(score.by_unit, default.by_unit, held_out.totals)
                gains.setdefault(name, []).append(gain)
                seconds.setdefault(name, []).append(passed)
        print(f"{options.corpus}, K = {options.topics}, {observed:.0%} observed", flush=True)
        for name, values in gains.items():
            error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
            each = " ".join(f"{value:+.4f}" for value in values)
            print(
                f"  {name:18s} {np.mean(values):+.4f} ± {error:.4f}  ({each})"
                f" {np.mean(seconds[name]):.1f} CPU s",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", default="docstrings", choices=["ap", "docstrings", "nips"])
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--observed", type=float, nargs="+", default=[0.5, 0.1])
    parser.add_argument("--sweeps", type=int, default=250)
    parser.add_argument("--seeds", type=int, default=5)
    main(parser.parse_args())
