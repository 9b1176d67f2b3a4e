"""Held-out log likelihood of topic models against time: Figure 2, with baselines it lacks.

    python -m examples.papers.linderman2015.figure2 --seconds 40 --out results
    python -m examples.papers.linderman2015.figure2 --corpus nips11 --documents 60 --out nips

Writes ``figure2.csv``, a row for each model, split and time, and ``figure2.png`` into the folder
given as ``--out``. Needs matplotlib and the corpus, in the folder that PGMULT_DATA names: articles
of the Associated Press (otherwise a download) or of NIPS 2011 (``nips11/nips11_v2000.npz``). Models
of tomotopy run beside where it is installed.
"""

import argparse
import csv
import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import scipy.sparse

import pgmult
from examples.papers.associated_press import associated_press
from examples.papers.linderman2015.timed import completion_by_seconds
from examples.papers.linderman2015.tomotopy_models import TomotopyModel
from pgmult.core.scores import mean_by_token
from pgmult.topics.scores.completion import unigram_log_predictive

REFERENCE = "LDA, α learned"


def models(num_topics):
    """By the name in the figure; `REFERENCE` comes first."""
    ours = {
        REFERENCE: pgmult.topics.LDA(num_topics),
        "LDA, α = 1 (as in the paper)": pgmult.topics.LDA(num_topics, alpha=1.0),
        "LN-CTM": pgmult.topics.LogisticNormalTopics(num_topics),
        "SB-CTM": pgmult.topics.CorrelatedTopics(num_topics),
    }
    peers = {
        "tomotopy, LDA": TomotopyModel("LDAModel", num_topics),
        "tomotopy, CTM": TomotopyModel("CTModel", num_topics),
    }
    return ours | (peers if find_spec("tomotopy") else {})


def nips11():
    with np.load(Path(os.environ["PGMULT_DATA"]) / "nips11" / "nips11_v2000.npz") as file:
        table = scipy.sparse.coo_array((file["count"], (file["doc"], file["word"])))
        return pgmult.topics.as_corpus(table.tocsr(), file["vocab"])


def corpus_of(name):
    return {"ap": associated_press, "nips11": nips11}[name]()


def frequent_words(corpus, num_words=4000):
    totals = np.bincount(corpus.words, corpus.counts, minlength=corpus.num_words)
    chosen = np.argsort(-totals, kind="stable")[:num_words]
    return pgmult.topics.as_corpus(corpus.to_csr()[:, chosen], corpus.vocabulary[chosen])


def run(model, training, held_out, seconds, seed):
    """Scores at growing times of a processor, each over draws of the second half of the time."""
    few, rng = pgmult.topics.as_corpus(training.to_csr()[:60]), np.random.default_rng(0)
    state = model.init(rng, few)
    for _ in range(10):  # compile: what takes longer than a mark leaves no time for sweeps
        state = model.step(rng, state, few)
    marks = seconds * np.geomspace(1 / 64, 1.0, 13)
    return completion_by_seconds(
        model, training, held_out, marks.tolist(), every=2, random_seed=seed
    )


def measure(options):
    """One row for each model, share observed, split and time; gains over `REFERENCE` then."""
    corpus = frequent_words(corpus_of(options.corpus))
    for observed in options.observed:
        for split in options.splits:
            training, held_out = pgmult.topics.split_tokens(
                corpus, options.documents, observed, random_seed=split
            )
            unigram = unigram_log_predictive(training, held_out)
            reference = {}
            chosen = models(options.topics)
            for name in [REFERENCE, *(m for m in options.models or chosen if m != REFERENCE)]:
                model = chosen[name]
                for at in run(model, training, held_out, options.seconds, split):
                    by_document = at.score.by_unit
                    ahead = by_document - reference.setdefault(at.seconds, by_document)
                    gain, error = mean_by_token(ahead, held_out.totals)
                    yield {
                        "observed": observed, "split": split, "model": name,
                        "seconds": round(at.seconds, 3), "sweeps": sum(at.sweeps),
                        "log_predictive": at.score.log_predictive,
                        "unigram": unigram.log_predictive,
                        "gain_over_learned_alpha": gain, "gain_error": error,
                    }  # fmt: skip
                print(
                    f"{observed:.0%} observed, split {split}, {name}: {at.score} after"
                    f" {sum(at.sweeps)} sweeps, {gain:+.3f} ± {error:.3f} over {REFERENCE}",
                    flush=True,
                )


def figure(rows, path):
    """A panel for each share observed; curves of the first split, as the paper has one."""
    from matplotlib.figure import Figure

    shares = sorted({row["observed"] for row in rows}, reverse=True)
    sheet = Figure(figsize=(5.0 * len(shares) + 2.2, 3.8), layout="constrained")
    for axes, observed in zip(
        sheet.subplots(1, len(shares), squeeze=False)[0], shares, strict=True
    ):
        here = [
            row for row in rows if row["observed"] == observed and row["split"] == rows[0]["split"]
        ]
        for name in dict.fromkeys(row["model"] for row in here):
            points = [row for row in here if row["model"] == name]
            axes.plot(
                *([row[key] for row in points] for key in ("seconds", "log_predictive")), label=name
            )
        axes.axhline(here[0]["unigram"], color="#7a7a7a", linestyle="--", label="unigram")
        axes.set_ylabel("held-out log p\nper token")
        axes.set(xscale="log", xlabel="seconds", title=f"{observed:.0%} of each document observed")
    sheet.legend(*axes.get_legend_handles_labels(), frameon=False, loc="outside right center")
    sheet.savefig(path, dpi=150)


def totals(rows):
    """Gains over splits, with their standard error over splits, at the end and thrice halved."""
    seconds = sorted({row["seconds"] for row in rows})[::-2][:4][::-1]
    for observed in dict.fromkeys(row["observed"] for row in rows):
        for name in dict.fromkeys(row["model"] for row in rows):
            for at in seconds:
                here = [
                    row
                    for row in rows
                    if (row["observed"], row["model"], row["seconds"]) == (observed, name, at)
                ]
                if not here:
                    continue
                level = np.mean([row["log_predictive"] for row in here])
                gains = np.array([row["gain_over_learned_alpha"] for row in here])
                text = (
                    f"{observed:.0%} observed, {name}, {at:g} s: {level:.3f}, {gains.mean():+.3f}"
                )
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
    parser.add_argument("--corpus", choices=["ap", "nips11"], default="ap")
    parser.add_argument("--seconds", type=float, default=40.0, help="for each model and split")
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--models", nargs="+", help="by their names in the figure; all if left out")
    parser.add_argument("--observed", type=float, nargs="+", default=[0.5, 0.1])
    parser.add_argument("--splits", type=int, nargs="+", default=[0, 1, 2], help="seeds of splits")
    parser.add_argument("--documents", type=int, default=112, help="test documents")
    main(parser.parse_args())
