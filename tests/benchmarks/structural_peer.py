"""Beside the package `structural-topic-model`, a port of R's stm: error and CPU seconds.

    python -m venv /tmp/peer && /tmp/peer/bin/pip install structural-topic-model   # Python >= 3.12
    python tests/benchmarks/structural_peer.py --peer /tmp/peer/bin/python

Both get corpora simulated from known topics, which vary by group, and known effects of a treatment.
Topics are matched with the truth one to one. Errors are root mean squares: of the words of topics
by group, of documents' proportions, and of the treatment's effect on the expected proportions.
Estimates of ours are posterior means of one chain; of the peer its optimum, started spectrally.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time

import numpy as np

PEER = """
import json, sys, time
import numpy as np
from scipy.sparse import csr_matrix
from stm import StructuralTopicModel
given = np.load(sys.argv[1])
begin = time.process_time()
model = StructuralTopicModel(int(given["K"]), max_iter=int(given["max_iter"]))
model.fit(csr_matrix(given["counts"]), prevalence=given["x"][:, None].astype(float),
          content=given["codes"])
seconds = time.process_time() - begin
x = np.column_stack([np.ones(len(given["x"])), given["x"]])
effect = np.linalg.lstsq(x, model.theta_, rcond=None)[0][1]
np.savez(sys.argv[2], words=model.aspect_components_, theta=model.theta_, effect=effect,
         seconds=seconds, iterations=model.n_iter_)
"""


def simulate(rng, options):
    """Counts, treatment, groups and the truth."""
    K, V, G, D = options.topics, options.words, options.groups, options.documents
    base = rng.dirichlet(np.full(V, 0.05), size=K)
    words = np.array(
        [
            [rng.dirichlet(np.maximum(options.concentration * row, 1e-9)) for row in base]
            for _ in range(G)
        ]
    )
    x, codes = rng.integers(2, size=D), rng.integers(G, size=D)
    slope = rng.normal(scale=0.8, size=K)
    eta = slope * x[:, None] + rng.normal(size=(D, K))
    theta = np.exp(eta)
    theta /= theta.sum(axis=1, keepdims=True)
    many = np.exp(rng.normal(size=(200_000, K)))
    treated = many * np.exp(slope)
    effect = (treated / treated.sum(1, keepdims=True)).mean(0)
    effect = effect - (many / many.sum(1, keepdims=True)).mean(0)
    counts = np.array(
        [rng.multinomial(options.length, theta[d] @ words[codes[d]]) for d in range(D)]
    )
    return counts, x, codes, {"words": words, "theta": theta, "effect": effect}


def ours(counts, x, codes, options, seed):
    from pgmult.topics import StructuralTopics, with_covariates

    rng = np.random.default_rng(seed)
    data = with_covariates(
        counts, {"x": x, "g": [f"g{g}" for g in codes]}, "~ x", content="~ g", standardize=False
    )
    model = StructuralTopics(options.topics)
    begin = time.process_time()
    state = model.init(rng, data)
    half = rng.standard_normal((50, len(state.Sigma)))
    noise, link = np.concatenate([half, -half]), model.link()
    sums = {"words": 0.0, "theta": 0.0, "effect": 0.0}
    for sweep in range(options.tune + options.draws):
        state = model.step(rng, state, data)
        if sweep < options.tune:
            continue
        sums["words"] = sums["words"] + state.group_topics
        sums["theta"] = sums["theta"] + model.theta(state, data)
        scattered = noise @ np.linalg.cholesky(state.Sigma).T
        at = [state.coefficients[0], state.coefficients.sum(axis=0)]
        without, treated = (link.probs(mean + scattered).mean(axis=0) for mean in at)
        sums["effect"] = sums["effect"] + treated - without
    seconds = time.process_time() - begin
    return {name: total / options.draws for name, total in sums.items()}, seconds


def errors(found, truth):
    """Root mean square errors, topics matched by their words."""
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    apart = cdist(truth["words"].mean(axis=0), found["words"].mean(axis=0), "cityblock")
    order = linear_sum_assignment(apart)[1]
    pairs = {
        "words": (found["words"][:, order], truth["words"]),
        "theta": (found["theta"][:, order], truth["theta"]),
        "effect": (found["effect"][order], truth["effect"]),
    }
    return {name: float(np.sqrt(np.mean((a - b) ** 2))) for name, (a, b) in pairs.items()}


def main(options):
    rows = {}
    for seed in range(options.seeds):
        counts, x, codes, truth = simulate(np.random.default_rng(seed), options)
        found, seconds = ours(counts, x, codes, options, seed)
        rows.setdefault("pgmult", []).append({**errors(found, truth), "CPU s": seconds})
        if options.peer:
            with tempfile.TemporaryDirectory() as folder:
                given, answer = f"{folder}/given.npz", f"{folder}/answer.npz"
                np.savez(given, counts=counts, x=x, codes=codes, K=options.topics,
                         max_iter=options.max_iter)  # fmt: skip
                subprocess.run([options.peer, "-c", PEER, given, answer], check=True)
                theirs = np.load(answer)
                row = errors(theirs, truth) | {"CPU s": float(theirs["seconds"])}
                rows.setdefault("structural-topic-model", []).append(row)
        print(json.dumps({name: found[-1] for name, found in rows.items()}), flush=True)
    for name, found in rows.items():
        cells = "  ".join(f"{k} {np.mean([row[k] for row in found]):.4f}" for k in found[0])
        print(f"{name:24s} {cells}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", help="a Python that has structural-topic-model")
    parser.add_argument("--documents", type=int, default=500)
    parser.add_argument("--words", type=int, default=400)
    parser.add_argument("--topics", type=int, default=6)
    parser.add_argument("--groups", type=int, default=2)
    parser.add_argument("--length", type=int, default=100)
    parser.add_argument("--concentration", type=float, default=200.0)
    parser.add_argument("--tune", type=int, default=300)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--max-iter", dest="max_iter", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=3)
    chosen = parser.parse_args()
    sys.exit(main(chosen))
