"""Held-out log likelihood of topic models of the AP corpus against time: Figure 2, both baselines.

    python examples/papers/linderman2015/figure2.py --seconds 25 --out results

Writes ``figure2.csv``, a row for each model, split and time, and ``figure2.png`` into the folder
given as ``--out``. Needs the corpus (in the folder that PGMULT_DATA names, or a download) and
matplotlib.
"""

import argparse
import csv
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import pgmult
from pgmult.core.scores import paired_difference
from pgmult.datasets import associated_press
from pgmult.topics.plots import held_out_curve
from pgmult.topics.scores.completion import unigram_log_predictive

REFERENCE = "LDA, α learned"


def models(num_topics):
    """By the name in the figure; `REFERENCE` comes first."""
    return {
        REFERENCE: pgmult.topics.LDA(num_topics),
        "LDA, α = 1 (as in the paper)": pgmult.topics.LDA(num_topics, alpha=1.0),
        "LN-CTM": pgmult.topics.LogisticNormalTopics(num_topics),
        "SB-CTM": pgmult.topics.CorrelatedTopics(num_topics),
    }


def frequent_words(corpus, num_words=4000):
    totals = np.bincount(corpus.words, corpus.counts, minlength=corpus.num_words)
    chosen = np.argsort(-totals, kind="stable")[:num_words]
    return pgmult.topics.as_corpus(corpus.to_csr()[:, chosen], corpus.vocabulary[chosen])


def run(model, training, held_out, seconds, seed):
    """(seconds, sweeps, score) at growing times, each over draws of the second half of the time.

    Time is that of one processor, scoring left out, so that other programs do not count.
    """
    rng = np.random.default_rng(seed)
    model.step(rng, model.init(rng, training), training)  # compile
    clock = time.process_time
    marks = seconds * np.geomspace(1 / 64, 1.0, 13)
    windows = [pgmult.topics.DocumentCompletion(held_out, every=1) for _ in marks]
    begin = clock()
    state = model.init(rng, training)
    sweeps, passed, results = 0, clock() - begin, []
    for mark, finished in zip(marks, windows, strict=True):
        while passed < mark:
            begin = clock()
            state = model.step(rng, state, training)
            sweeps += 1
            passed += clock() - begin
            sweep = SimpleNamespace(
                chain=0, index=sweeps, tuning=False, state=state, model=model, data=training
            )
            for end, completion in zip(marks, windows, strict=True):
                if end / 2 < passed <= end:
                    completion(sweep)
        if finished.num_draws:
            results.append((mark, sweeps, finished.score()))
    return results


def measure(options):
    """One row for each model, share observed, split and time; differences from `REFERENCE`."""
    corpus = frequent_words(associated_press())
    for observed in options.observed:
        for split in options.splits:
            training, held_out = pgmult.topics.split_tokens(
                corpus, options.documents, observed, random_seed=split
            )
            unigram = unigram_log_predictive(training, held_out)
            for name, model in models(options.topics).items():
                results = run(model, training, held_out, options.seconds, split)
                if name == REFERENCE:
                    reference = results[-1][2].by_document
                for seconds, sweeps, score in results:
                    gain, error = paired_difference(score.by_document, reference, held_out.totals)
                    yield {
                        "observed": observed, "split": split, "model": name,
                        "seconds": round(seconds, 3), "sweeps": sweeps,
                        "log_predictive": score.log_predictive,
                        "unigram": unigram.log_predictive,
                        "gain_over_learned_alpha_at_end": gain, "gain_error": error,
                    }  # fmt: skip
                print(
                    f"{observed:.0%} observed, split {split}, {name}: {score} after {sweeps}"
                    f" sweeps, {gain:+.3f} ± {error:.3f} over {REFERENCE}",
                    flush=True,
                )


def figure(rows, path):
    """A panel for each share observed; curves of the first split, as the paper has one."""
    from matplotlib.figure import Figure

    shares = sorted({row["observed"] for row in rows}, reverse=True)
    sheet = Figure(figsize=(5.2 * len(shares), 3.8), layout="constrained")
    for axes, observed in zip(
        sheet.subplots(1, len(shares), squeeze=False)[0], shares, strict=True
    ):
        here = [
            row for row in rows if row["observed"] == observed and row["split"] == rows[0]["split"]
        ]
        curves = {"unigram": ([], here[0]["unigram"])}
        for name in dict.fromkeys(row["model"] for row in here):
            points = [row for row in here if row["model"] == name]
            curves[name] = tuple(
                [row[key] for row in points] for key in ("seconds", "log_predictive")
            )
        held_out_curve(curves, axes)
        axes.legend(frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1.0, 0.1))
        axes.set(xscale="log", xlabel="seconds", title=f"{observed:.0%} of each document observed")
    sheet.savefig(path, dpi=150)


def totals(rows):
    """The gain at the end, averaged over splits, with its standard error over splits."""
    end = max(row["seconds"] for row in rows)
    for observed in dict.fromkeys(row["observed"] for row in rows):
        for name in dict.fromkeys(row["model"] for row in rows):
            here = [
                row
                for row in rows
                if (row["observed"], row["model"], row["seconds"]) == (observed, name, end)
            ]
            scores = np.array([row["log_predictive"] for row in here])
            gains = np.array([row["gain_over_learned_alpha_at_end"] for row in here])
            text = f"{observed:.0%} observed, {name}: {scores.mean():.3f}, {gains.mean():+.3f}"
            if len(gains) > 1:
                text += f" ± {gains.std(ddof=1) / np.sqrt(len(gains)):.3f}"
            print(f"{text} over {len(here)} splits")


def main(options):
    options.out.mkdir(parents=True, exist_ok=True)
    rows = []
    with open(options.out / "figure2.csv", "w", newline="", encoding="utf-8") as file:
        for row in measure(options):
            writer = csv.DictWriter(file, row)
            if not rows:
                writer.writeheader()
            writer.writerow(row)
            file.flush()
            rows.append(row)
    figure(rows, options.out / "figure2.png")
    totals(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for the CSV and the PNG")
    parser.add_argument("--seconds", type=float, default=30.0, help="for each model and split")
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--observed", type=float, nargs="+", default=[0.5, 0.1])
    parser.add_argument("--splits", type=int, nargs="+", default=[0, 1, 2], help="seeds of splits")
    parser.add_argument("--documents", type=int, default=112, help="test documents")
    main(parser.parse_args())
