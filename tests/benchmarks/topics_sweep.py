"""One sweep of the correlated topic model: milliseconds of each part, and what a sweep is worth.

Needs the corpus (PGMULT_DATA, or a download); tomotopy is timed beside where it is installed.

    python tests/benchmarks/topics_sweep.py parts --topics 20 50 100 200
    python tests/benchmarks/topics_sweep.py psi --topics 50 --sweeps 200    # paths of documents

Times are CPU milliseconds on one thread, each the least of rounds that go over all parts in turn,
so that other work on the machine meets all of them alike. A processor without AVX-512 is emulated
by the environment (with a cache of its own):

    NUMBA_CPU_NAME=haswell NUMBA_CPU_FEATURES=+avx2,+fma,+bmi,+bmi2,+lzcnt,+popcnt \
    TOMOTOPY_ISA=avx2 PGMULT_CACHE_DIR=/tmp/plain python tests/benchmarks/topics_sweep.py parts
"""

import argparse
import time
from importlib.util import find_spec

import numpy as np
from topics import ap_split, tomotopy_documents

import pgmult
import pgmult.sampling.blocks
from pgmult.sampling.diagnostics import mcse_mean
from pgmult.topics.updates.allocation import allocate_tokens, sample_topics
from pgmult.topics.updates.swing import swing_psi
from pgmult.topics.updates.word_concentration import sample_concentration


def least(blocks, rounds):
    """CPU milliseconds of each block: the least over rounds that call all of them in turn."""
    seconds = {name: [] for name in blocks}
    for block in blocks.values():
        block()  # compile
    for _ in range(rounds):
        for name, block in blocks.items():
            begin = time.process_time()
            block()
            seconds[name].append(time.process_time() - begin)
    return {name: 1e3 * min(times) for name, times in seconds.items()}


def settled(model, data, rng, sweeps=60):
    """A state after some sweeps."""
    state = model.init(rng, data)
    for _ in range(sweeps):
        state = model.step(rng, state, data)
    return state


def sweep_parts(model, data, state, rng):
    """The blocks of a sweep by name, each on the same state."""
    link = model.link(data)

    def allocate():
        theta = model.theta(state, data)
        return allocate_tokens(rng, data, theta, state.topics)

    counts, word_counts = allocate()

    def words():
        eta = sample_concentration(
            rng, model.word_concentration, state.word_concentration, word_counts
        )
        return sample_topics(rng, eta, word_counts)

    return {
        "z": allocate,
        "topics": words,
        "psi": lambda: swing_psi(rng, link, state.psi, counts, state.mu, state.Sigma),
        "mu, Sigma": lambda: model.gaussian_prior.condition(state.psi).sample(rng),
    }


def peers(num_topics, data):
    if not find_spec("tomotopy"):
        return {}
    import tomotopy

    found = {}
    for name, kind, iterations in (
        ("tomotopy LDA", tomotopy.LDAModel, 5),
        ("tomotopy CT", tomotopy.CTModel, 1),
    ):
        peer = tomotopy_documents(kind(k=num_topics, eta=0.05, seed=1), data)
        peer.train(30 if name == "tomotopy LDA" else 1, workers=1)
        found[name] = iterations, lambda peer=peer, n=iterations: peer.train(n, workers=1)
    return found


def parts(options):
    data, _ = ap_split(options.observed)
    for num_topics in options.topics:
        rng = np.random.default_rng(options.seed)
        model = pgmult.topics.CorrelatedTopics(num_topics)
        state = settled(model, data, rng)
        blocks = sweep_parts(model, data, state, rng)
        others = {} if options.alone else peers(num_topics, data)
        found = least(blocks, options.rounds)
        found["sweep"] = sum(found.values())
        slow = {name: block for name, (_, block) in others.items()}
        for name, value in least(slow, max(1, options.rounds // 8)).items():
            found[name] = value / others[name][0]
        line = ", ".join(f"{name} {value:.2f}" for name, value in found.items())
        print(f"K = {num_topics}, ms: {line}", flush=True)
        if "tomotopy LDA" in found:
            ratio = found["sweep"] / found["tomotopy LDA"]
            other = found["tomotopy CT"] / found["sweep"]
            print(f"    {ratio:.2f} of tomotopy LDA's, {other:.0f} times as fast as tomotopy CT")


def paths(options):
    """Documents' psi given their counts, under either link: time, acceptance, effective theta."""
    data, _ = ap_split(options.observed)
    for num_topics in options.topics:
        for kind in (pgmult.topics.CorrelatedTopics, pgmult.topics.LogisticNormalTopics):
            rng, model = np.random.default_rng(options.seed), kind(num_topics)
            state, link = settled(model, data, rng), model.link(data)
            psi, counts = state.psi, state.topic_counts.astype(np.int64)
            theta, moved = [], []

            def move(psi, rng=rng, link=link, counts=counts, state=state):
                return swing_psi(rng, link, psi, counts, state.mu, state.Sigma)

            for _ in range(options.sweeps):
                before, psi = psi, move(psi)
                moved.append(psi[counts.any(axis=1), 0] != before[counts.any(axis=1), 0])
                theta.append(link.probs(psi[:600]))
            cost = least({"psi": lambda psi=psi, move=move: move(psi)}, options.rounds)["psi"]
            cost /= len(psi)
            kept = np.array(theta)
            found = kept.var(axis=0) / mcse_mean(kept[None]) ** 2 / options.sweeps
            low, middle = np.quantile(found, [0.05, 0.5]) / cost
            print(
                f"{kind.__name__}, K = {num_topics}:"
                f" {1e3 * cost:.2f} us a document, {np.mean(moved):.2f} accepted, effective draws"
                f" of theta a ms: 5 % {low:.0f}, median {middle:.0f}",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["parts", "psi"])
    parser.add_argument("--topics", type=int, nargs="+", default=[50])
    parser.add_argument("--observed", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--sweeps", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--alone", action="store_true", help="no peers")
    chosen = parser.parse_args()
    {"parts": parts, "psi": paths}[chosen.what](chosen)
