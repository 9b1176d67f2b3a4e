"""How probably another chain finds a topic: the odds of `TopicStability.found_again`, and a check.

    python -m tests.benchmarks.stability chains ap docstrings messages descriptions nips11 --to DIR
    python -m tests.benchmarks.stability odds --to DIR    # of the topics written there
    ... odds --to DIR --figure docs/pictures/reliability.png    # and draw what was told and found

Of each corpus eight chains from starts of their own. Some of them are taken for a run, whose best
chain is described as users see it, and the others for chains still to come: how many of these have
each topic? A logistic regression on the mean distance to the counterparts, and on how many chains
it is a mean of; the reliability of what it tells of a corpus comes from fits to the others.
"""

import argparse
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit

import pgmult
from pgmult.compiled.rows import row_threads
from pgmult.core.figures.base import new_figure
from pgmult.sampling.labels import match_rows
from pgmult.topics.summaries.stability import FAR
from tests.benchmarks.topics import CORPORA, frequent_words

SIZES = (2, 4, 6)  # of a run, in chains
BINS = np.array([0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.001])


def chains(options):
    """Mean topics and log likelihood of every chain, over the second half of its sweeps."""
    for corpus in options.corpora:
        words = frequent_words(CORPORA[corpus]())
        model, means, levels = pgmult.topics.CorrelatedTopics(options.topics), [], []
        with row_threads(1):
            for chain in range(8):
                rng = np.random.default_rng([11, chain])
                state, total, level, count = model.init(rng, words), 0.0, 0.0, 0
                for sweep in range(options.sweeps):
                    state = model.step(rng, state, words)
                    if sweep >= options.sweeps // 2 and sweep % 5 == 0:
                        total += model.mean_topics(state, words)
                        level += model.log_likelihood(state, words)
                        count += 1
                means.append(total / count)
                levels.append(level / count)
        file = options.to / f"{corpus}-{options.topics}.npz"
        np.savez(file, topics=np.array(means, dtype=np.float32), ll=levels)
        print(file, np.round(levels), flush=True)


def told(file, rng, most=30):
    """Rows of a corpus: chains of the run, mean distance, and share of the others that found it."""
    with np.load(file) as kept:
        means, level = kept["topics"].astype(float), kept["ll"]
    distance = [match_rows(means, chain).distance for chain in range(len(means))]
    rows = []
    for size in SIZES:
        runs = list(combinations(range(len(means)), size))
        for run in rng.permutation(runs)[:most]:
            best = run[np.argmax(level[run])]
            new = np.setdiff1d(np.arange(len(means)), run)
            near = np.minimum(distance[best][run[run != best]], FAR).mean(axis=0)
            found = (distance[best][new] <= 0.5).mean(axis=0)
            rows.append(np.column_stack([np.full(len(near), size), near, found]))
    return np.concatenate(rows)


def design(rows):
    one, few = np.ones(len(rows)), 1.0 / (rows[:, 0] - 1.0)
    return np.column_stack([one, few, rows[:, 1], few * rows[:, 1]])


def fitted(rows):
    """Coefficients of 1, 1 / (C - 1), d and d / (C - 1)."""
    X, found = design(rows), rows[:, 2]

    def loss(weights):
        odds = X @ weights
        value = -np.mean(found * log_expit(odds) + (1.0 - found) * log_expit(-odds))
        return value, X.T @ (expit(odds) - found) / len(found)

    return minimize(loss, np.zeros(X.shape[1]), jac=True).x


def odds(options):
    """The coefficients, and reliability on corpora that a fit has not seen."""
    files = sorted(options.to.glob("*.npz"))
    rng = np.random.default_rng(0)
    rows = {file.stem: told(file, rng) for file in files}
    print("odds", np.round(fitted(np.concatenate(list(rows.values()))), 1))
    seen = {}
    for name, own in rows.items():
        others = np.concatenate([rows[other] for other in rows if other != name])
        seen[name] = expit(design(own) @ fitted(others))
    told_all, own = np.concatenate(list(seen.values())), np.concatenate(list(rows.values()))
    if options.figure is not None:
        draw(options.figure, {name: (seen[name], rows[name]) for name in rows})
    for size in SIZES:
        for low, high in pairwise(BINS):
            here = (own[:, 0] == size) & (told_all >= low) & (told_all < high)
            if not here.any():
                continue
            print(
                f"{size} chains  told {told_all[here].mean():.2f}  found {own[here, 2].mean():.2f}"
                f"  of {here.sum()}"
            )
    for name, probability in seen.items():
        sure = probability >= 0.9
        print(f"{name:16s} told {probability.mean():.2f}  found {rows[name][:, 2].mean():.2f}"
              f"  where 90 % or more was told: {rows[name][sure, 2].mean():.3f}")  # fmt: skip


def draw(place, corpora, size=4):
    """A reliability curve of runs of some chains: of all corpora together, and of each."""
    axes = new_figure(5.2, 4.2).subplots()
    axes.plot([0, 1], [0, 1], color="0.75", lw=1, zorder=0)
    whole = [np.concatenate(parts) for parts in zip(*corpora.values(), strict=True)]
    for name, (told_here, own) in {**corpora, "all": whole}.items():
        here = own[:, 0] == size
        told_here, found = told_here[here], own[here, 2]
        bins = np.digitize(told_here, BINS[1:-1])
        used = [b for b in range(len(BINS) - 1) if np.sum(bins == b) >= 30]
        x, y = ([v[bins == b].mean() for b in used] for v in (told_here, found))
        label = name.removeprefix("cal-").removesuffix("-50")
        style = (
            {"color": "k", "lw": 2, "marker": "o"} if name == "all" else {"lw": 1, "marker": "."}
        )
        axes.plot(x, y, label=label, **style)
    axes.set(xlabel="probability that was told", ylabel="share of further chains that found it",
             xlim=(0, 1), ylim=(0, 1))  # fmt: skip
    axes.legend(frameon=False, fontsize=8)
    axes.figure.savefig(place, dpi=110, facecolor="white")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["chains", "odds"])
    parser.add_argument("corpora", nargs="*", choices=[*CORPORA, []])
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--sweeps", type=int, default=120)
    parser.add_argument("--figure", type=Path)
    chosen = parser.parse_args()
    {"chains": chains, "odds": odds}[chosen.what](chosen)
