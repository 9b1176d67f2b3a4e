"""Iterations and seconds to convergence of collapsed variational Bayes: the paper's three tables.

    python -m examples.papers.hensman2012.tables mixtures topics expression --out results
    python -m examples.papers.hensman2012.tables mixtures --components 8 --restarts 500 --out eight
    python -m examples.papers.hensman2012.tables starts --out results

writes ``mixtures.csv``, ``topics.csv`` and ``expression.csv`` and prints them; and ``starts.csv``,
where searches for topics end that begin at random or with a sampler.
Topics need the NIPS 2011 counts and the Associated Press corpus, expression the reads of BitSeq, in
the folder that PGMULT_DATA names; what is not there is left out.
"""

import argparse
import csv
import os
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np
import scipy.sparse

import pgmult
from examples.papers.associated_press import associated_press
from examples.papers.hensman2012.alignments import read_alignments
from examples.papers.hensman2012.collapsed import (
    CollapsedFit,
    CollapsedMethod,
    CollapsedProblem,
    natural_cg,
    random_start,
)
from examples.papers.hensman2012.expression import Alignments, as_alignments
from examples.papers.hensman2012.problems import ExpressionProblem, GaussianMixtureProblem
from examples.papers.hensman2012.topic_problem import TopicProblem
from pgmult.compiled.rows import row_threads
from pgmult.topics.scores.completion import completion_score

METHODS = get_args(CollapsedMethod)
VAGUE = pgmult.NormalInverseWishart(np.zeros(2), 0.001, 4.0, 0.01 * np.eye(2))


def found(folder: str, name: str) -> Path | None:
    """A file of PGMULT_DATA; a message and None where it is absent."""
    path = Path(os.environ.get("PGMULT_DATA", "")) / folder / name
    if path.is_file():
        return path
    print(f"{folder}/{name} is left out: PGMULT_DATA has none", flush=True)
    return None


def search(problem: CollapsedProblem, method: str, seed: int, options) -> CollapsedFit:
    start = random_start(problem, seed, options.scale)
    with row_threads(options.threads):
        return natural_cg(
            problem, start, method, tolerance=options.tolerance, max_iterations=options.iterations
        )


# ---------------------------------------------------------------- mixtures of Gaussians


def five_gaussians(distance: float, random_seed: int = 0) -> np.ndarray:
    """500 points around the origin and four corners: the larger the distance, the easier."""
    rng = np.random.default_rng(random_seed)
    corners = np.array([[0, 0], [1, 1], [1, -1], [-1, 1], [-1, -1]])
    return np.repeat(distance * corners, 100, axis=0) + rng.standard_normal((500, 2))


def mixtures(options) -> Iterator[dict]:
    """Steps and evaluations of all restarts, for each one that ends within 10 nats of the best."""
    for distance in options.distances:
        problem = GaussianMixtureProblem(five_gaussians(distance), options.components, VAGUE)
        seeds = range(options.restarts)
        fits = {m: [search(problem, m, seed, options) for seed in seeds] for m in METHODS}
        best = max(fit.objective for each in fits.values() for fit in each)
        for method, each in fits.items():
            successes = sum(fit.objective > best - 10.0 for fit in each)
            iterations, evaluations, seconds = (
                sum(values) for values in zip(*map(costs, each), strict=True)
            )
            yield {
                "R": distance,
                "method": method,
                "successes": successes,
                "restarts": options.restarts,
                "iterations_a_success": iterations / successes if successes else np.inf,
                "evaluations_a_success": evaluations / successes if successes else np.inf,
                "seconds_a_success": seconds / successes if successes else np.inf,
                "best_bound": best,
            }


def costs(fit: CollapsedFit) -> tuple[int, int, float]:
    return fit.num_iterations, int(fit.evaluations[-1]), float(fit.seconds[-1])


# ---------------------------------------------------------------- topics and expression


def runs(name: str, problem: CollapsedProblem, starts: int, options) -> Iterator[dict]:
    """A row a method: means over starts, and standard deviations where there are several."""
    search(problem, "vbem", 0, argparse.Namespace(**{**vars(options), "iterations": 1}))  # compile
    for method in METHODS:
        fits = [search(problem, method, seed, options) for seed in range(starts)]
        row: dict = {"data": name, "method": method, "starts": starts}
        row["converged"] = sum(fit.converged for fit in fits)
        columns = [*zip(*map(costs, fits), strict=True), [fit.objective for fit in fits]]
        for column, values in zip(
            ("iterations", "evaluations", "seconds", "bound"), columns, strict=True
        ):
            row[column] = np.mean(values)
            row[f"{column}_sd"] = np.std(values, ddof=1) if starts > 1 else ""
        yield row


def nips(documents: int) -> pgmult.topics.Corpus | None:
    path = found("nips11", "nips11_v2000.npz")
    if path is None:
        return None
    with np.load(path) as file:
        table = scipy.sparse.csr_array((file["count"], (file["doc"], file["word"])))
    return pgmult.topics.as_corpus(table[:documents])


def press(documents: int) -> pgmult.topics.Corpus | None:
    if found("ap", "ap.dat.gz") is None:
        return None
    return pgmult.topics.as_corpus(associated_press().to_csr()[:documents])


def corpora(options) -> Iterator[tuple[str, pgmult.topics.Corpus]]:
    for name, load, size in (("NIPS", nips, 60), ("NIPS", nips, 200), ("AP", press, 300)):
        corpus = load(size) if size in options.documents else None
        if corpus is not None:
            yield f"{name}, {size} documents", corpus


def topics(options) -> Iterator[dict]:
    for name, corpus in corpora(options):
        problem = TopicProblem(corpus, options.topics, word_concentration=0.1)
        yield from runs(name, problem, options.starts, options)


def starts(options) -> Iterator[dict]:
    """Where Fletcher-Reeves ends from each kind of start; one token in ten is held out."""
    for name, corpus in corpora(options):
        training, held_out = pgmult.topics.split_tokens(corpus, corpus.num_documents, observed=0.9)
        problem = TopicProblem(training, options.topics, word_concentration=0.1)
        kinds = {
            f"random, {s:g}": partial(random_start, problem, scale=s) for s in (1.0, 0.1, 0.01)
        }
        problem.sampled_start(0, 2)  # compile
        for kind, start in (kinds | {"sampled, the default": problem.sampled_start}).items():
            found = []
            for seed in range(options.starts):
                began = time.process_time()
                fit = natural_cg(
                    problem, start(seed), tolerance=options.tolerance,
                    max_iterations=options.iterations,
                )  # fmt: skip
                pair = problem.theta(fit), problem.topics(fit)
                score = completion_score([pair], held_out).log_predictive
                found.append((fit.objective, score, time.process_time() - began))
            columns = zip(("bound", "score", "seconds"), np.transpose(found), strict=True)
            row: dict = {"data": name, "start": kind, "starts": options.starts}
            for column, values in columns:
                row |= {
                    column: values.mean(),
                    f"{column}_sd": values.std(ddof=1) if len(found) > 1 else "",
                }
            yield row


def synthetic_reads(num_reads: int) -> Alignments:
    """Reads of 200 genes of ten transcripts, each of them eight in ten of the gene's ten exons.

    A read is of an exon and fits all transcripts that have it, with 1 / (number of exons) and a
    factor for its length, log-normal, for each.
    """
    rng = np.random.default_rng(0)
    genes, isoforms, exons = 200, 10, 10
    has = rng.random((genes, isoforms, exons)) < 0.8
    has[:, :, 0] = True
    shares = rng.dirichlet(np.full(genes * isoforms, 0.3))
    origin = rng.choice(genes * isoforms, size=num_reads, p=shares)
    gene, isoform = origin // isoforms, origin % isoforms
    score = np.where(has[gene, isoform], rng.random((num_reads, exons)), -1.0)
    fits = has[gene, :, score.argmax(axis=1)]
    read, other = np.nonzero(fits)
    exons_of = has.sum(axis=2)[gene[read], other]
    values = -np.log(exons_of) + 0.1 * rng.standard_normal(len(read))
    return as_alignments(
        read, gene[read] * isoforms + other, values, num_transcripts=genes * isoforms
    )


def bitseq() -> Alignments | None:
    path = found("bitseq", "bitseq_c0b0.npz")
    return None if path is None else read_alignments(path)


def expression(options) -> Iterator[dict]:
    real = bitseq()
    if real is not None:
        yield from runs("BitSeq, 4,663 reads", ExpressionProblem(real), options.starts, options)
    if options.reads:
        problem = ExpressionProblem(synthetic_reads(options.reads))
        name = f"synthetic, {options.reads:,} reads"
        yield from runs(name, problem, options.starts, options)


TABLES: dict[str, Callable[[argparse.Namespace], Iterator[dict]]] = {
    "mixtures": mixtures,
    "topics": topics,
    "starts": starts,
    "expression": expression,
}


def shown(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.1f}" if abs(value) >= 100.0 else f"{value:.3g}"


def write(name: str, rows: Iterable[dict], folder: Path) -> None:
    """Rows to the terminal and to a file, as they come."""
    with open(folder / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
        writer = None
        for row in rows:
            if writer is None:
                writer = csv.DictWriter(file, row)
                writer.writeheader()
                print(*row, sep=" | ", flush=True)
            writer.writerow(row)
            file.flush()
            print(*map(shown, row.values()), sep=" | ", flush=True)


def main(options: argparse.Namespace) -> None:
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.tables:
        write(name, TABLES[name](options), options.out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="+", choices=TABLES)
    parser.add_argument("--out", type=Path, required=True, help="folder for the tables")
    parser.add_argument("--tolerance", type=float, default=1e-6, help="of the squared gradient")
    parser.add_argument("--iterations", type=int, default=10_000, help="at most")
    parser.add_argument("--scale", type=float, default=1.0, help="of the random starts' logits")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--distances", type=float, nargs="+", default=[1.0, 2.0, 3.0, 4.0, 5.0])
    parser.add_argument("--components", type=int, default=10)
    parser.add_argument("--restarts", type=int, default=50, help="of each mixture and method")
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--documents", type=int, nargs="+", default=[60, 200, 300])
    parser.add_argument("--starts", type=int, default=3, help="of topics and of expression")
    parser.add_argument("--reads", type=int, default=100_000, help="synthetic; 0 for none")
    main(parser.parse_args())
