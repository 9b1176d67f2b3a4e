"""Sweeps of `MultinomialLDS`: time by parts, and one-step-ahead prediction by start and sweep.

Run from the repository's root, with ``PGMULT_DATA`` naming the folder of data sets::

    OPENBLAS_NUM_THREADS=1 python -m tests.benchmarks.sequences_sweep parts
    python -m tests.benchmarks.sequences_sweep predict {alice,dna} [--starts spectral random]
        [--state-dim 10] [--sweeps 300] [--seed 0]

`parts` times every part of a sweep on Alice (4,000 words of a vocabulary of 1,000), beside the same
part over all sticks, in turns, one thread; each gets its best time. `predict` trains on 3,900 words
and scores the next 1,000, or trains on 30 regions of chromosome 22 in amino acids and scores 20
others: the gain over the add-one unigram, nats a symbol, by particle filter, of equal-weighted
draws of the second half of the sweeps.
"""

import argparse
import gzip
import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from pgmult.links import StickBreaking
from pgmult.sequences.active_sticks import ActiveSticks
from pgmult.sequences.data.sequences import as_sequences
from pgmult.sequences.models.lds import MultinomialLDS
from pgmult.sequences.priors.dynamics import project
from pgmult.sequences.priors.state_space import StateSpaceDraw
from pgmult.sequences.scores.particle_filter import particle_log_predictive
from pgmult.sequences.updates.dynamics import first_sums, transition_sums

_CODONS = "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG"
_SCORED_DRAWS = 30


def _folder(name):
    return Path(os.environ.get("PGMULT_DATA", "../shared/data")) / name


def _alice():
    return np.loadtxt(_folder("alice") / "alice_tokens.txt.gz", dtype=int)


def _regions(count):
    """Regions of chromosome 22 translated codon by codon in the standard code."""
    with gzip.open(_folder("dna") / "chr22_hg38_regions.fa.gz", "rt") as file:
        text = file.read()
    sequences = []
    for record in text.split(">")[1 : count + 1]:
        digits = ["TCAG".index(base) for base in "".join(record.split("\n")[1:]).upper()]
        codons = zip(digits[::3], digits[1::3], digits[2::3], strict=False)
        sequences.append("".join(_CODONS[16 * a + 4 * b + c] for a, b, c in codons))
    return sequences


def _best(functions, repeats=7):
    """The best time of each function in milliseconds, taking turns."""
    times = np.full(len(functions), np.inf)
    for _ in range(repeats):
        for i, function in enumerate(functions):
            start = time.perf_counter()
            function()
            times[i] = min(times[i], time.perf_counter() - start)
    return 1e3 * times


def parts():
    """Print the table of parts."""
    data = as_sequences([_alice()[:4000]], num_symbols=1000)
    model, rng = MultinomialLDS(10), np.random.default_rng(0)
    state = model.init(rng, data)
    for _ in range(20):
        state = model.step(rng, state, data)
    active, D = ActiveSticks.of(data), model.state_dim
    design, weights = model._design(state.states, data), model._weights(state)
    omega = active.augment(rng, design, weights)
    link, counts = StickBreaking(order=data.order), data.to_csr().toarray()
    dense = link.augment(rng, design @ weights.T, counts)
    seen, law = active.potential(omega, design, weights, D), model._law(state, data)
    dynamics = (state.transition, state.input_weights, state.noise_cov)
    sums = active.statistics(omega, design)

    def moments():
        return (
            transition_sums(state.states, data.offsets, None, state.transition),
            first_sums(state.states, data.offsets, state.initial_mean),
        )

    seen_moments = moments()
    pairs = data.num_steps * (data.num_symbols - 1)
    print(f"{data}: {active.num_pairs:,} of {pairs:,} (step, stick) pairs are active")
    print(f"{'milliseconds':>32}  active  all sticks")
    for name, sparse, full in (
        ("sort the steps", lambda: ActiveSticks.of(data), None),
        (
            "Pólya-gamma draws",
            lambda: active.augment(rng, design, weights),
            lambda: link.augment(rng, design @ weights.T, counts),
        ),
        (
            "potentials of the states",
            lambda: active.potential(omega, design, weights, D),
            lambda: project(dense, state.loadings, state.offset),
        ),
        ("filter, sample backwards", lambda: law.condition(seen).sample(rng), None),
        (
            "statistics of the loadings",
            lambda: active.statistics(omega, design),
            lambda: (dense.J.T @ (design[:, :, None] * design[:, None]).reshape(len(design), -1)),
        ),
        (
            "draw of the loadings",
            lambda: model._sample_weights(
                rng, *sums, state.loading_var, state.hyperparameters, data
            ),
            None,
        ),
        ("moments of the states", moments, None),
        (
            "level of the states",
            lambda: model._translated(rng, weights, state, *seen_moments, data),
            None,
        ),
        (
            "dynamics",
            lambda: model._state(
                rng, state.states, *seen_moments, weights, state.loading_var, dynamics, data
            ),
            None,
        ),
        (
            "log likelihood",
            lambda: active.log_likelihood(design, weights),
            lambda: link.log_likelihood(design @ weights.T, counts),
        ),
        ("whole sweep", lambda: model.step(rng, state, data), None),
    ):  # fmt: skip
        times = _best([sparse] if full is None else [sparse, full])
        print(f"{name:>32}  " + "  ".join(f"{t:6.2f}" for t in times))


def _random_start(model, rng, data):
    """White-noise states, and loadings drawn apart from them."""
    state, D = model.init(rng, data), model.state_dim
    return replace(
        state, states=rng.standard_normal(state.states.shape), transition=0.5 * np.eye(D),
        noise_cov=0.75 * np.eye(D), loadings=0.3 * rng.standard_normal(state.loadings.shape),
        loading_var=np.full(D, 0.1),
    )  # fmt: skip


def _parameters(model, state, data, continues):
    draw = StateSpaceDraw(
        state.transition, state.noise_cov, state.initial_mean, state.initial_cov,
        state.loadings, state.offset, model.link(data),
    )  # fmt: skip
    return draw.continued(model.last_states(state, data)) if continues else draw


def predict(data, starts, state_dim, sweeps, seed):
    """Print gains over the unigram after 10, 30, 100, ... sweeps of each start."""
    continues = data == "alice"
    if continues:
        tokens = _alice()[:4900]
        train = as_sequences([tokens[:3900]], num_symbols=1000)
        test = as_sequences([tokens[3900:]], num_symbols=1000)
    else:
        regions = _regions(50)
        train = as_sequences(regions[:30])
        test = as_sequences(regions[30:], alphabet=train.alphabet)
    smoothed = np.bincount(train.symbols, minlength=train.num_symbols) + 1.0
    unigram = np.log(smoothed / smoothed.sum())
    print(f"train: {train}\ntest: {test}")
    marks = {mark for mark in (10, 30, 100, 300, 1000, 3000) if mark < sweeps} | {sweeps}
    model = MultinomialLDS(state_dim)
    for start in starts:
        rng = np.random.default_rng(seed)
        begun = time.perf_counter()
        first = {"spectral": model.init, "random": lambda *a: _random_start(model, *a)}[start]
        state, draws, seconds = first(rng, train), [], 0.0
        for sweep in range(1, sweeps + 1):
            state = model.step(rng, state, train)
            draws.append(_parameters(model, state, train, continues))
            if sweep not in marks:
                continue
            seconds += time.perf_counter() - begun
            kept = draws[len(draws) // 2 :]
            kept = [
                kept[i] for i in np.unique(np.linspace(0, len(kept) - 1, _SCORED_DRAWS, dtype=int))
            ]
            log_p = particle_log_predictive(np.random.default_rng(1), kept, test)
            gain = np.logaddexp.reduce(log_p) - np.log(len(kept)) - unigram[test.symbols]
            given = model.log_likelihood(state, train) / len(train.symbols)
            print(
                f"{start:>9} start, sweep {sweep:5}: gain {gain.mean():+.4f}"
                f" (s.e. {gain.std() / np.sqrt(len(gain)):.4f}), log likelihood given the states"
                f" {given:.4f}, {seconds:.1f} s", flush=True,
            )  # fmt: skip
            begun = time.perf_counter()


def main():
    """Run the part asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    choices = parser.add_subparsers(dest="part", required=True)
    choices.add_parser("parts")
    predicting = choices.add_parser("predict")
    predicting.add_argument("data", choices=["alice", "dna"])
    predicting.add_argument("--starts", nargs="+", default=["spectral", "random"])
    predicting.add_argument("--state-dim", type=int, default=10)
    predicting.add_argument("--sweeps", type=int, default=300)
    predicting.add_argument("--seed", type=int, default=0)
    arguments = vars(parser.parse_args())
    {"parts": parts, "predict": predict}[arguments.pop("part")](**arguments)


if __name__ == "__main__":
    main()
