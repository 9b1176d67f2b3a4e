"""Time of particle filters and of sweeps by particle Gibbs on Alice and DNA.

    PGMULT_DATA=shared/data python tests/benchmarks/particles.py [filter] [sweep] [--threads N]

`filter`: one step ahead on Alice's tokens 3,900 to 4,899 under 20 draws, 200 particles, beside the
same with all particles blind (a bootstrap filter): time, and the standard error of a draw's total.
`sweep`: a sweep of LogisticNormalLDS beside one of MultinomialLDS, D = 10, on the same start, part
by part, with the share of steps whose state is new.
"""

import argparse
import gzip
import os
import time
from pathlib import Path

import numpy as np

from pgmult.compiled.rows import row_threads
from pgmult.sequences import LogisticNormalLDS, MultinomialLDS, as_sequences
from pgmult.sequences.models import logistic_normal_lds
from pgmult.sequences.priors.state_space import StateSpaceDraw
from pgmult.sequences.scores import particle_filter as filters

DATA = Path(os.environ.get("PGMULT_DATA", Path(__file__).parents[3] / "shared" / "data"))


def alice_tokens():
    with gzip.open(DATA / "alice" / "alice_tokens.txt.gz", "rt") as file:
        return np.array([int(line) for line in file if line[0] != "#"])


def dna():
    return as_sequences([(DATA / "dna" / "chr22_682.txt").read_text().strip()])


def run_filter(threads):
    train = as_sequences([alice_tokens()[:3900]], num_symbols=1000)
    test = as_sequences([alice_tokens()[3900:4900]], num_symbols=1000)
    rng = np.random.default_rng(0)
    for model in (MultinomialLDS(10), LogisticNormalLDS(10)):
        state = model.init(rng, train)
        draws = []
        for _ in range(20):
            state = model.step(rng, state, train)
            draw = StateSpaceDraw(
                state.transition, state.noise_cov, state.initial_mean, state.initial_cov,
                state.loadings, state.offset, model.link(train),
            )  # fmt: skip
            draws.append(draw.continued(model.last_states(state, train)))
        for name, share in (("looking ahead", 0.1), ("blind", 1.0)):
            filters._BLIND_SHARE = share
            with row_threads(threads):
                filters.particle_filter(rng, draws[:1], test.split(5)[0])  # compiles
                start = time.perf_counter()
                filters.particle_filter(rng, draws, test)
                seconds = time.perf_counter() - start
                error = filters.particle_error(rng, draws[-1:], test.split(200)[0], repeats=12)
            print(
                f"{type(model).__name__:17} {name:14} {seconds:6.2f} s for 20 draws x 1,000 steps x"
                " 200 particles; s.e. of a draw's first 200 steps"
                f" {error.total_standard_error[0]:.2f}"
            )


def run_sweep(threads):
    parts = {}
    for name in ("sample_paths", "sample_softmax_rows"):
        setattr(logistic_normal_lds, name, timed(getattr(logistic_normal_lds, name), name, parts))
    alice = as_sequences([alice_tokens()[:3900]], num_symbols=1000)
    for name, data, sweeps in (("DNA", dna(), 50), ("Alice", alice, 5)):
        seconds = {}
        for model in (MultinomialLDS(10), LogisticNormalLDS(10)):
            rng = np.random.default_rng(0)
            with row_threads(threads):
                state = model.step(rng, model.init(rng, data), data)
                parts.clear()
                start = time.perf_counter()
                for _ in range(sweeps):
                    state = model.step(rng, state, data)
            seconds[type(model).__name__] = (time.perf_counter() - start) / sweeps
        sticks, softmax = seconds.values()
        shares = ", ".join(f"{key} {1e3 * value / sweeps:.1f}" for key, value in parts.items())
        print(
            f"{name:6} ms a sweep: MultinomialLDS {1e3 * sticks:.1f}, LogisticNormalLDS"
            f" {1e3 * softmax:.1f} ({shares}), ratio {softmax / sticks:.1f};"
            f" {state.moved.mean():.0%} of states new in the last"
        )


def timed(function, name, parts):
    def wrapped(*arguments):
        start = time.perf_counter()
        result = function(*arguments)
        parts[name] = parts.get(name, 0.0) + time.perf_counter() - start
        return result

    return wrapped


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=["filter", "sweep", []], default=[])
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    for part in options.parts or ["filter", "sweep"]:
        {"filter": run_filter, "sweep": run_sweep}[part](options.threads)
