"""Correlated topics by Laplace's method, beside Gibbs sampling of sticks.

    python -m examples.papers.wang2013.ctm --out results      # Figures 2, 5 and 6, some ten minutes
    python -m examples.papers.wang2013.ctm --corpus nips11 --documents 60 --out nips
    python -m examples.papers.wang2013.ctm --words            # the language model, without topics

Held-out log likelihood against the number of topics and against seconds, and the objective
against seconds. Writes ``ctm.csv``, a row for
each share observed, K, method and time, and ``ctm.png`` into the folder given as ``--out``, and
prints a table. Needs matplotlib and the corpus, in the folder that PGMULT_DATA names: articles of
the Associated Press (otherwise a download) or of NIPS 2011 (``nips11/nips11_v2000.npz``).
"""

import argparse
import csv
import os
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import scipy.sparse

import pgmult
from examples.papers.associated_press import associated_press
from examples.papers.wang2013.language_model import fit_language_model
from examples.papers.wang2013.variational_ctm import fit_ctm
from pgmult.topics.scores.completion import completion_score, unigram_log_predictive
from pgmult.variational.ascent import has_settled

LAPLACE, GIBBS = "Laplace", "SB-CTM Gibbs"
STOP = 1e-3  # relative change of the objective at which variational EM ends in the table


def nips11():
    with np.load(Path(os.environ["PGMULT_DATA"]) / "nips11" / "nips11_v2000.npz") as file:
        table = scipy.sparse.coo_array((file["count"], (file["doc"], file["word"])))
        return pgmult.topics.as_corpus(table.tocsr(), file["vocab"])


def split_of(name, observed, num_words=4000, documents=112):
    """The most frequent words; part of the tokens of some documents held out."""
    corpus = {"ap": associated_press, "nips11": nips11}[name]()
    totals = np.bincount(corpus.words, corpus.counts, minlength=corpus.num_words)
    chosen = np.argsort(-totals, kind="stable")[:num_words]
    corpus = pgmult.topics.as_corpus(corpus.to_csr()[:, chosen], corpus.vocabulary[chosen])
    return pgmult.topics.split_tokens(corpus, documents, observed)


def rows_held_out(training, held_out):
    """Both corpora without the documents that have no held-out tokens."""
    rows = np.flatnonzero(held_out.totals)
    return (pgmult.topics.as_corpus(corpus.to_csr()[rows]) for corpus in (training, held_out))


def run_em(training, held_out, num_topics, iterations):
    """Seconds, score, objective, whether EM would have stopped, iteration after iteration.

    Scoring is not timed; the objective is in nats a token.
    """
    seen, words = rows_held_out(training, held_out)
    results, clock = [], SimpleNamespace(begin=time.process_time(), passed=0.0)

    def record(fit):
        clock.passed += time.process_time() - clock.begin
        score = completion_score([(fit.theta(seen), fit.topics)], words)
        objective = fit.history[-1] / training.num_tokens
        would_stop = has_settled(fit.history, STOP)
        results.append((clock.passed, score.log_predictive, objective, would_stop))
        clock.begin = time.process_time()

    model = pgmult.topics.LogisticNormalTopics(num_topics)
    warm = pgmult.topics.as_corpus(training.to_csr()[:8])
    fit_ctm(model, warm, cores=1, max_iterations=2, random_seed=0)  # compile
    clock.begin = time.process_time()
    fit_ctm(
        model, training, cores=1, random_seed=0, tolerance=1e-9,
        max_iterations=iterations, callback=record,
    )  # fmt: skip
    return results


def run_gibbs(training, held_out, num_topics, seconds):
    """As `run_em` at growing times, over draws of the second half of each; without objective."""
    model, rng = pgmult.topics.CorrelatedTopics(num_topics), np.random.default_rng(0)
    model.step(rng, model.init(rng, training), training)  # compile
    marks = seconds * np.geomspace(1 / 32, 1.0, 11)
    windows = [pgmult.topics.scores.DocumentCompletion(held_out, every=1) for _ in marks]
    begin = time.process_time()
    state = model.init(rng, training)
    passed, sweeps = time.process_time() - begin, 0
    while passed < seconds:
        begin = time.process_time()
        state = model.step(rng, state, training)
        passed += time.process_time() - begin
        sweeps += 1
        sweep = SimpleNamespace(
            chain=0, index=sweeps, tuning=False, state=state, model=model, data=training
        )
        for end, window in zip(marks, windows, strict=True):
            if end / 2 < passed <= end:
                window(sweep)
    return [
        (mark, window.log_predictive, np.nan, mark == marks[-1])
        for mark, window in zip(marks, windows, strict=True)
        if window.num_draws
    ]


def measure(options):
    """One row for each share observed, number of topics, method and time."""
    for observed in options.observed:
        training, held_out = split_of(
            options.corpus, observed, options.num_words, options.documents
        )
        unigram = unigram_log_predictive(training, held_out).log_predictive
        for num_topics in options.topics:
            runs = {LAPLACE: run_em(training, held_out, num_topics, options.iterations)}
            seconds = options.seconds * max(1.0, num_topics / 50)
            runs[GIBBS] = run_gibbs(training, held_out, num_topics, seconds)
            for name, results in runs.items():
                stops = [i for i, result in enumerate(results) if result[-1]]
                stop = stops[0] if stops else len(results) - 1
                print(
                    f"{observed:.0%} observed, K = {num_topics}, {name}:"
                    f" {results[stop][1]:.3f} at {results[stop][0]:.1f} s,"
                    f" {results[-1][1]:.3f} at {results[-1][0]:.1f} s",
                    flush=True,
                )
                for i, (passed, score, objective, _) in enumerate(results):
                    yield {
                        "observed": observed, "topics": num_topics, "method": name,
                        "seconds": round(passed, 3), "log_predictive": score,
                        "objective": objective, "is_stop": int(i == stop), "unigram": unigram,
                    }  # fmt: skip


def figure(rows, path, num_topics):
    """Three panels a share observed: against topics where methods stop, and against seconds."""
    from matplotlib.figure import Figure

    shares = sorted({row["observed"] for row in rows}, reverse=True)
    sheet = Figure(figsize=(14.0, 3.8 * len(shares)), layout="constrained")
    for line, observed in zip(sheet.subplots(len(shares), 3, squeeze=False), shares, strict=True):
        here = [row for row in rows if row["observed"] == observed]
        title = f"{observed:.0%} observed"
        of_one = [row for row in here if row["topics"] == num_topics]
        at_stop = [row for row in here if row["is_stop"]]
        for axes, chosen, x, y in zip(
            line, (at_stop, of_one, of_one), ("topics", "seconds", "seconds"),
            ("log_predictive", "log_predictive", "objective"), strict=True,
        ):  # fmt: skip
            unigram = here[0]["unigram"] if y == "log_predictive" else np.nan
            axes.axhline(unigram, color="C0", linestyle="--", label="unigram")
            for number, name in enumerate(dict.fromkeys(row["method"] for row in here), start=1):
                points = [row for row in chosen if row["method"] == name]
                values = ([row[key] for row in points] for key in (x, y))
                axes.plot(*values, color=f"C{number}", label=name)
            axes.set_ylabel("held-out log p\nper token")
            axes.set(xlabel=x, title=title if x == "topics" else f"{title}, K = {num_topics}")
        line[2].set_ylabel("objective\nper token")
    sheet.axes[0].legend(frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1.0, 0.1))
    sheet.savefig(path, dpi=150)


def table(rows):
    """Held-out log likelihood where each method stops, by number of topics."""
    for observed in dict.fromkeys(row["observed"] for row in rows):
        here = [row for row in rows if row["observed"] == observed and row["is_stop"]]
        topics = list(dict.fromkeys(row["topics"] for row in here))
        print(f"\n{observed:.0%} observed | " + " | ".join(f"K = {k}" for k in topics))
        for name in dict.fromkeys(row["method"] for row in here):
            cells = [
                f"{row['log_predictive']:.3f} ({row['seconds']:.1f} s)"
                for row in here
                if row["method"] == name
            ]
            print(f"{name} | " + " | ".join(cells))


def language_models(observed):
    """Held-out scores of smoothed language models beside what they smooth, no topics."""
    for share in observed:
        training, held_out = split_of("ap", share)
        seen, words = rows_held_out(training, held_out)
        own = seen.to_csr().toarray()
        corpus = np.asarray(training.to_csr().sum(axis=0)).ravel() + 1.0
        scores = {
            "corpus, add one": np.tile(corpus / corpus.sum(), (len(own), 1)),
            "document, add one": (own + 1.0) / (own + 1.0).sum(axis=1, keepdims=True),
        }
        eye = np.eye(len(own))
        for name, probs in scores.items():
            print(f"{share:.0%} observed, {name}: {completion_score([(eye, probs)], words)}")
        begin = time.process_time()
        fit = fit_language_model(training)
        passed = time.process_time() - begin
        print(
            f"{share:.0%} observed, smoothed: {fit.log_predictive(seen, words)}"
            f" ({passed:.1f} s, sum of concentrations {fit.concentration.sum():.0f},"
            f" standard deviations {np.sqrt(fit.var.min()):.3f} to"
            f" {np.sqrt(fit.var.max()):.3f})",
            flush=True,
        )


def main(options):
    if options.words:
        return language_models(options.observed)
    options.out.mkdir(parents=True, exist_ok=True)
    rows = []
    with open(options.out / "ctm.csv", "w", newline="", encoding="utf-8") as file:
        for row in measure(options):
            writer = csv.DictWriter(file, row)
            if not rows:
                writer.writeheader()
            writer.writerow(row)
            file.flush()
            rows.append(row)
    table(rows)
    shown = 50 if 50 in options.topics else options.topics[-1]
    figure(rows, options.out / "ctm.png", shown)
    return None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results"), help="for the CSV and PNG")
    parser.add_argument("--corpus", choices=["ap", "nips11"], default="ap")
    parser.add_argument("--documents", type=int, default=112, help="test documents")
    parser.add_argument("--topics", type=int, nargs="+", default=[5, 10, 20, 50, 100])
    parser.add_argument("--observed", type=float, nargs="+", default=[0.5, 0.1])
    parser.add_argument("--iterations", type=int, default=30, help="of variational EM")
    parser.add_argument("--seconds", type=float, default=20.0, help="of Gibbs, to 50 topics")
    parser.add_argument("--num-words", type=int, default=4000)
    parser.add_argument("--words", action="store_true", help="the language model instead")
    main(parser.parse_args())
