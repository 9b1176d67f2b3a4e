"""Sequences of amino acids and of words, predicted one step ahead: Figure 4, and what it hides.

    python -m examples.papers.linderman2015.figure4 --out results

Writes ``figure4.csv``, a row for each data set, method and seed, and ``figure4.png`` (if matplotlib
is there). Needs the data in the folder that PGMULT_DATA names: ``alice`` (the tokens of "Alice's
Adventures in Wonderland" and where its chapters start) and ``dna`` (regions of chromosome 22).
"""

import argparse
import csv
import gzip
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import logsumexp

import pgmult
from examples.papers.linderman2015 import ngrams
from examples.papers.linderman2015.forecasters import blend, kneser_ney, online_unigram
from examples.papers.linderman2015.gaussian_lds import GaussianLDS
from examples.papers.linderman2015.legacy import clipped_log_probability, legacy_score
from examples.papers.linderman2015.logistic_normal_lds import LogisticNormalLDS
from examples.papers.linderman2015.step_scores import SequenceScore
from examples.papers.linderman2015.translation import translate
from pgmult.compiled.rows import row_threads
from pgmult.core.typing import coords_of, variable
from pgmult.datasets.fasta import read_fasta
from pgmult.sampling import Origin
from pgmult.sequences.scores.one_step import by_draw

REFERENCE = "unigram + 1"
LOWEST = -1.0  # that is drawn


@dataclass(frozen=True)
class Problem:
    """Training and test sequences, and what the paper's score takes for a test.

    `legacy` is its training and test sequences, and how many paths are simulated; its training
    sequences are `train` itself where one posterior serves both scores.
    """

    name: str
    train: pgmult.sequences.Sequences
    test: pgmult.sequences.Sequences
    continues: bool
    legacy: tuple[pgmult.sequences.Sequences, pgmult.sequences.Sequences, int]


@dataclass(frozen=True)
class Scored:
    """One method, one seed."""

    score: SequenceScore
    legacy: float
    seconds: float = 0.0
    sweeps: int = 0


# ---------------------------------------------------------------- data


def dna(folder: Path, options: argparse.Namespace) -> Problem:
    """Every other region in training, those between in the test; the paper's kind of sequence."""
    regions = read_fasta(folder / "dna" / "chr22_hg38_regions.fa.gz")
    whole = pgmult.sequences.as_sequences([translate(bases) for bases in regions.values()])
    size = options.regions
    paper = (folder / "dna" / "chr22_682.txt").read_text(encoding="ascii").strip()
    legacy = pgmult.sequences.as_sequences([list(paper)], alphabet=whole.alphabet).split(-10)
    train, test = (
        whole.take(np.arange(start, start + 2 * count, 2))
        for start, count in ((0, size), (1, max(1, 2 * size // 3)))
    )
    train = pgmult.sequences.as_sequences(train, order="frequency")
    return Problem("dna", train, test, False, (*legacy, 1000))


def alice(folder: Path, options: argparse.Namespace) -> Problem:
    """The paper's split, but 1,000 test words where it had 100."""
    words = tokens(folder)[: 3900 + options.words]
    train, test = pgmult.sequences.as_sequences([words], num_symbols=1000).split(3900)
    train = pgmult.sequences.as_sequences(train, order="frequency")
    return Problem("alice", train, test, True, (train, test.split(100)[0], 1))


def chapters(folder: Path, options: argparse.Namespace) -> Problem:
    """Twelve documents, each of which goes on."""
    starts = np.loadtxt(folder / "alice" / "chapter_starts.txt", dtype=np.int64)
    parts = np.split(tokens(folder), starts[1:])
    each = max(20, options.words // 10)
    train, test = pgmult.sequences.as_sequences(parts, num_symbols=1000).split(-each)
    train = pgmult.sequences.as_sequences(train, order="frequency")
    return Problem("chapters", train, test, True, (train, test.split(10)[0], 1))


PROBLEMS = {"dna": dna, "alice": alice, "chapters": chapters}


def tokens(folder: Path) -> np.ndarray:
    with gzip.open(folder / "alice" / "alice_tokens.txt.gz", "rt", encoding="utf-8") as file:
        return np.loadtxt(file, dtype=np.int64)


# ---------------------------------------------------------------- methods


def sampled(num_symbols: int) -> dict[str, object]:
    """Models by name; the second HMM has the emission prior of the paper's code."""
    texts = num_symbols > 100
    return {
        "SBM-LDS": pgmult.sequences.MultinomialLDS(10, loading_scale=0.2 if texts else 0.05),
        "LNM-LDS": LogisticNormalLDS(10),
        "HMM": pgmult.sequences.MultinomialHMM(10, emission_concentration=0.5 if texts else None),
        "HMM, paper's prior": pgmult.sequences.MultinomialHMM(
            10, emission_concentration=10 / num_symbols
        ),
        "Gaussian LDS": GaussianLDS(10),
    }


def counted(problem: Problem, train, test, continues: bool) -> dict[str, SequenceScore]:
    """Methods that count, and learn nothing at random."""
    lately = {"continues": continues}
    return {
        REFERENCE: ngrams.unigram(train, test),
        "unigram + 0.1": ngrams.unigram(train, test, pseudo_count=0.1),
        "bigram KN": kneser_ney(train, test, **lately),
        "online unigram": online_unigram(train, test),
        "cache": ngrams.cache(train, test, weight=0.1, **lately),
        "cache, weight fitted": ngrams.cache(train, test, **lately),
    }


def posterior_of(model, train, seed: int, options) -> tuple[pgmult.Posterior, float, int]:
    """Draws of the second half of `options.sweeps` sweeps, or of as many as the time allows.

    Time is that of one processor, compilation left out.
    """
    data = model.as_data(train)
    compiling = np.random.default_rng(0)
    model.step(compiling, model.init(compiling, data), data)
    names = [*model.predictive_variables, *(["last_states"] if "last_states" in model.dims else [])]
    rng, kept = np.random.default_rng(seed), []
    begin = time.process_time()
    state = model.init(rng, data)
    while len(kept) < options.sweeps:
        state = model.step(rng, state, data)
        kept.append([variable(model, state, data, name) for name in names])
        if time.process_time() - begin > options.seconds:
            break
    seconds = time.process_time() - begin
    half = kept[len(kept) // 2 :]
    arrays = {name: np.array([draw[i] for draw in half])[None] for i, name in enumerate(names)}
    posterior = pgmult.Posterior(
        arrays, dims=model.dims, coords=coords_of(model, data), origin=Origin.of(model, data)
    )
    return posterior, seconds, len(kept)


def run(model, problem: Problem, seed: int, options: argparse.Namespace) -> Scored:
    posterior, seconds, sweeps = posterior_of(model, problem.train, seed, options)
    after = problem.train if problem.continues else None
    log_p = by_draw(posterior, problem.test, after, options.draws, options.particles, seed)[0]
    average = logsumexp(log_p, axis=0) - np.log(len(log_p))
    score = SequenceScore.of_steps(type(model).__name__, average, problem.test)
    train, test, paths = problem.legacy
    if train is not problem.train:
        posterior, _, _ = posterior_of(model, train, seed, options)
    if isinstance(model, GaussianLDS):
        paths = 10  # as in the paper's code
    legacy = legacy_score(
        posterior, train, test, num_simulations=paths, max_draws=options.legacy_draws,
        random_seed=seed,
    )  # fmt: skip
    return Scored(score, legacy.score, seconds, sweeps)


def measure(problem: Problem, options: argparse.Namespace) -> Iterable[dict]:
    """A row for each method and seed."""
    plain = counted(problem, problem.train, problem.test, problem.continues)
    reference = plain[REFERENCE]
    recent = ngrams.cache(
        problem.train, problem.test, weight=0.999, continues=problem.continues
    )  # what came lately, and nearly nothing else: the model knows the rest
    train, test, _ = problem.legacy
    baseline = clipped_log_probability(train, test)
    for name, legacy in counted(problem, train, test, True).items():
        joint = legacy.log_predictive.sum()
        score = (joint - baseline) / legacy.totals.sum()
        yield row(problem, name, 0, Scored(plain[name], score), reference)
    for seed in options.seeds:
        for name, model in sampled(problem.train.num_symbols).items():
            if name not in options.methods:
                continue
            found = run(model, problem, seed, options)
            yield row(problem, name, seed, found, reference)
            if name == "SBM-LDS":
                both = Scored(blend(found.score, recent), np.nan, found.seconds, found.sweeps)
                yield row(problem, "SBM-LDS and cache", seed, both, reference)


def row(problem: Problem, name: str, seed: int, found: Scored, reference: SequenceScore) -> dict:
    gain = found.score.gain_over(reference)
    return {
        "data": problem.name, "method": name, "seed": seed,
        "gain": round(gain.mean, 4), "gain_error": round(gain.error, 4),
        "log_predictive": round(found.score.mean, 4), "legacy": round(found.legacy, 3),
        "seconds": round(found.seconds, 1), "sweeps": found.sweeps,
    }  # fmt: skip


# ---------------------------------------------------------------- the table and the figure


def by_method(rows: list[dict], data: str) -> dict[str, list[dict]]:
    """The seeds of each method, in the order of the methods."""
    found: dict[str, list[dict]] = {}
    for line in rows:
        if line["data"] == data:
            found.setdefault(line["method"], []).append(line)
    return found


def table(rows: list[dict]) -> None:
    """Means over seeds; the first error is over blocks of test steps, the second over seeds."""
    for data in dict.fromkeys(line["data"] for line in rows):
        print(f"\n{data}: gain over {REFERENCE}, nats a symbol, one step ahead")
        for name, lines in by_method(rows, data).items():
            gains = np.array([line["gain"] for line in lines])
            legacy = np.array([line["legacy"] for line in lines])
            error = np.mean([line["gain_error"] for line in lines])
            apart = f", seeds {gains.min():+.3f} to {gains.max():+.3f}" if len(gains) > 1 else ""
            spent = np.mean([line["seconds"] for line in lines])
            sweeps = int(np.mean([line["sweeps"] for line in lines]))
            cost = f", {sweeps} sweeps in {spent:.1f} s" if sweeps else ""
            old = "" if np.isnan(legacy).any() else (
                f"; legacy score {legacy.min():.2f}"
                + (f" to {legacy.max():.2f}" if len(legacy) > 1 else "")
            )  # fmt: skip
            print(f"{name:>22} {gains.mean():+.3f} ± {error:.3f}{apart}{old}{cost}", flush=True)


def figure(rows: list[dict], path: Path) -> None:
    """The paper's bars, and below them what a better score says."""
    names = list(dict.fromkeys(line["data"] for line in rows))
    from matplotlib.figure import Figure

    sheet = Figure(figsize=(3.6 * len(names) + 1.4, 6.0), layout="constrained")
    panels = sheet.subplots(2, len(names), squeeze=False, sharey=True)
    methods = list(dict.fromkeys(line["method"] for line in rows if line["method"] != REFERENCE))
    for column, data in zip(panels.T, names, strict=True):
        found = by_method(rows, data)
        for axes, what, color in ((column[0], "legacy", "C1"), (column[1], "gain", "C0")):
            for place, name in enumerate(methods):
                values = [line[what] for line in found.get(name, [])]
                if values and not np.isnan(values).any():
                    axes.barh(place, np.mean(values), color=color, alpha=0.6, height=0.7)
                    axes.plot(values, [place] * len(values), "|", color="0.15", markersize=8)
                    if np.mean(values) < LOWEST:
                        axes.text(LOWEST, place, f" {np.mean(values):.1f}", va="center", fontsize=8)
            axes.axvline(0.0, color="0.3", linewidth=0.8)
            axes.set_xlim(left=max(LOWEST, axes.get_xlim()[0]))
            axes.set_yticks(range(len(methods)), methods, fontsize=8)
        column[0].set_title(data)
        column[0].set_xlabel("the paper's score (legacy)")
        column[1].set_xlabel("one step ahead: nats over unigram")
    panels[0, 0].invert_yaxis()
    sheet.savefig(path, dpi=150)


def main(options: argparse.Namespace) -> None:
    folder = os.environ.get("PGMULT_DATA")
    if not folder:
        raise SystemExit("set PGMULT_DATA to the folder that holds alice/ and dna/")
    options.out.mkdir(parents=True, exist_ok=True)
    rows: list[dict] = []
    with open(options.out / "figure4.csv", "w", newline="", encoding="utf-8") as file:
        for name in options.data:
            problem = PROBLEMS[name](Path(folder), options)
            print(problem.name, problem.train, problem.test, flush=True)
            with row_threads(1):
                for line in measure(problem, options):
                    writer = csv.DictWriter(file, line)
                    if not rows:
                        writer.writeheader()
                    writer.writerow(line)
                    file.flush()
                    rows.append(line)
    table(rows)
    try:
        figure(rows, options.out / "figure4.png")
    except ImportError:
        print("no drawing without matplotlib")


METHODS = list(sampled(2))

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for the table and figure")
    parser.add_argument("--data", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--sweeps", type=int, default=400, help="of which half are kept")
    parser.add_argument("--seconds", type=float, default=45.0, help="at most, for each chain")
    parser.add_argument("--draws", type=int, default=20, help="that are scored")
    parser.add_argument("--legacy-draws", type=int, default=20, help="for the paper's score")
    parser.add_argument("--particles", type=int, default=200)
    parser.add_argument("--regions", type=int, default=30, help="of DNA, in training")
    parser.add_argument("--words", type=int, default=1000, help="of Alice, in the test")
    main(parser.parse_args())
