"""How near collapsed variational Bayes is to long Gibbs sampling, for the paper's three models.

    python -m examples.papers.hensman2012.accuracy expression topics mixtures --out results

writes ``accuracy_expression.csv``, ``accuracy_topics.csv`` and ``accuracy_mixtures.csv`` and prints
them. Everything compared has the same value however topics and components are numbered, and stands
beside what differs between chains of the sampler: an approximation cannot be seen to be nearer.
Data come from the folder that PGMULT_DATA names; what is not there is left out.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path

import numpy as np

import pgmult
from examples.papers.hensman2012.collapsed import (
    CollapsedFit,
    CollapsedProblem,
    natural_cg,
    random_start,
)
from examples.papers.hensman2012.expression import TranscriptExpression
from examples.papers.hensman2012.mixture_gibbs import Components, Floats, gibbs
from examples.papers.hensman2012.problems import ExpressionProblem, GaussianMixtureProblem
from examples.papers.hensman2012.tables import (
    VAGUE,
    bitseq,
    five_gaussians,
    nips,
    press,
    synthetic_reads,
    write,
)
from examples.papers.hensman2012.topic_problem import TopicProblem
from pgmult.sampling.chains import Sweep

FREQUENT = 5  # tokens of a word in a document


def searches(problem: CollapsedProblem, starts: Iterable[Floats]) -> list[CollapsedFit]:
    """The best one first."""
    fits = [natural_cg(problem, start) for start in starts]
    return sorted(fits, key=lambda fit: -fit.objective)


def random_starts(problem: CollapsedProblem, number: int, scale: float = 1.0) -> list[Floats]:
    return [random_start(problem, seed, scale) for seed in range(number)]


# ---------------------------------------------------------------- expression


def expression(options: argparse.Namespace) -> Iterator[dict]:
    """Shares of transcripts: means and standard deviations."""
    real = bitseq()
    tables = [] if real is None else [("BitSeq, 4,663 reads", real)]
    if options.reads:
        tables.append((f"synthetic, {options.reads:,} reads", synthetic_reads(options.reads)))
    for name, data in tables:
        problem = ExpressionProblem(data)
        fit = searches(problem, random_starts(problem, 1))[0]
        mean, var = problem.shares_posterior(fit)
        begin = time.perf_counter()
        posterior = pgmult.sample(
            TranscriptExpression(), data, draws=options.draws,
            tune=options.draws // 10, chains=2, random_seed=0, progressbar=False,
        )  # fmt: skip
        seconds = time.perf_counter() - begin
        draws = posterior["shares"].reshape(-1, data.num_transcripts)
        exact, sd = draws.mean(axis=0), draws.std(axis=0)
        for label, kept in (("all", exact > 0.0), ("share > 0.001", exact > 1e-3)):
            away, ratio = np.abs(mean - exact)[kept] / sd[kept], np.sqrt(var[kept]) / sd[kept]
            yield {
                "data": name,
                "transcripts": label,
                "number": int(kept.sum()),
                "mean_away_in_sd_median": np.median(away),
                "mean_away_in_sd_largest": away.max(),
                "sd_ratio_median": np.median(ratio),
                "sd_ratio_smallest": ratio.min(),
                "total_variation": 0.5 * np.abs(mean - exact).sum(),
                "search_seconds": fit.seconds[-1],
                "gibbs_seconds": seconds,
                "gibbs_draws": len(draws),
            }


# ---------------------------------------------------------------- topics


@dataclass(frozen=True, slots=True, eq=False)
class WordProbabilities:
    """Sums over draws of what is known of p(w | d) = sum_k theta_dk topics_kw.

    Attributes
    ----------
    draws : int
    probs : array, ``(num_documents, num_words)``
        Means of p(w | d) given the topics of tokens.
    moments : array, ``(3, num_places)``
        For the frequent words of documents: means, their squares, and variances.
    """

    draws: int
    probs: Floats
    moments: Floats

    def __add__(self, other: "WordProbabilities") -> "WordProbabilities":
        return WordProbabilities(
            self.draws + other.draws, self.probs + other.probs, self.moments + other.moments
        )

    def mean_and_sd(self) -> tuple[Floats, Floats]:
        """Of p(w | d), for the frequent words of documents."""
        mean, square, var = self.moments / self.draws
        return mean, np.sqrt(var + square - mean**2)

    def score(self, held_out: pgmult.topics.Corpus) -> float:
        """Mean log probability of held-out tokens."""
        documents = np.repeat(np.arange(held_out.num_documents), np.diff(held_out.indptr))
        probs = self.probs[documents, held_out.words] / self.draws
        return float(held_out.counts @ np.log(probs) / held_out.num_tokens)


def apart(one: WordProbabilities, other: WordProbabilities) -> float:
    """Total variation between means of p(. | d), averaged over documents."""
    gap = one.probs / one.draws - other.probs / other.draws
    return float(0.5 * np.abs(gap).sum(axis=1).mean())


def word_probabilities(problem: TopicProblem, theta: Floats, topics: Floats) -> WordProbabilities:
    """Given posterior means of theta and topics, which are independent Dirichlet vectors.

    So they are given the topics of tokens, and so they are under the approximation.
    """
    corpus, alpha, eta = problem.corpus, problem.topic_concentration, problem.word_concentration
    K, V = topics.shape
    in_document = K * alpha + corpus.totals  # sums of Dirichlet parameters
    in_topic = V * eta + np.sum(theta * in_document[:, None] - alpha, axis=0)
    places = corpus.counts >= FREQUENT
    document = np.repeat(np.arange(corpus.num_documents), np.diff(corpus.indptr))[places]
    share, prob = theta[document], topics[:, corpus.words[places]].T
    size = in_document[document, None]
    mean = np.sum(share * prob, axis=1)
    between = (np.sum(share * prob**2, axis=1) - mean**2) / (size[:, 0] + 1.0)
    square = share * (share * size + 1.0) / (size + 1.0)  # expectation of theta**2
    within = np.sum(square * prob * (1.0 - prob) / (in_topic + 1.0), axis=1)
    return WordProbabilities(1, theta @ topics, np.stack([mean, mean**2, between + within]))


def topic_chains(problem: TopicProblem, chains: int, sweeps: int) -> list[WordProbabilities]:
    """Of each chain, over every tenth sweep but the first fifth."""
    model = pgmult.topics.LDA(
        problem.num_topics, problem.word_concentration, alpha=problem.topic_concentration
    )
    found: dict[int, WordProbabilities] = {}

    def keep(sweep: Sweep) -> None:
        if not sweep.tuning and sweep.index % 10 == 0:
            theta, topics = (f(sweep.state, problem.corpus) for f in (model.theta, model.topics))
            new = word_probabilities(problem, theta, topics)
            found[sweep.chain] = found[sweep.chain] + new if sweep.chain in found else new

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pgmult.ConvergenceWarning)  # the table says how far apart
        pgmult.sample(
            model, problem.corpus, draws=sweeps - sweeps // 5, tune=sweeps // 5, chains=chains,
            keep=["effective_topics"], callback=keep, random_seed=0, progressbar=False,
        )  # fmt: skip
    return [found[chain] for chain in range(chains)]


def topics(options: argparse.Namespace) -> Iterator[dict]:
    """Word probabilities of documents, one token in ten of which is held out."""
    for name, load, size in (("NIPS", nips, 60), ("AP", press, 300)):
        corpus = load(size) if size in options.documents else None
        if corpus is None:
            continue
        training, held_out = pgmult.topics.split_tokens(corpus, corpus.num_documents, observed=0.9)
        for num_topics in options.topics:
            problem = TopicProblem(training, num_topics, word_concentration=0.1)
            chains = topic_chains(problem, options.chains, options.sweeps)
            exact = reduce(add, chains)
            mean, sd = exact.mean_and_sd()
            others = [reduce(add, chains[:c] + chains[c + 1 :]) for c in range(len(chains))]
            about_chains = {
                "score_gibbs": exact.score(held_out),
                "score_chain": np.mean([chain.score(held_out) for chain in chains]),
                "chains_apart": np.mean(list(map(apart, chains, others))),
                "sd_ratio_chain_median": np.median(
                    [chain.mean_and_sd()[1] / sd for chain in chains]
                ),
            }
            for label, starts in (
                ("random", random_starts(problem, options.starts, 0.1)),
                ("sampled", map(problem.sampled_start, range(options.starts))),
            ):
                fits = searches(problem, starts)
                best, *rest = [
                    word_probabilities(problem, problem.theta(fit), problem.topics(fit))
                    for fit in fits
                ]
                fit_mean, fit_sd = best.mean_and_sd()
                yield {
                    "data": f"{name}, {size} documents",
                    "topics": num_topics,
                    "start": label,
                    "bound": fits[0].objective,
                    "score": best.score(held_out),
                    "away": apart(best, exact),
                    "starts_apart": np.mean([apart(best, fit) for fit in rest]),
                    "mean_away_in_sd_median": np.median(np.abs(fit_mean - mean) / sd),
                    "sd_ratio_median": np.median(fit_sd / sd),
                    **about_chains,
                }


# ---------------------------------------------------------------- mixtures of Gaussians


def mixture_law(
    problem: GaussianMixtureProblem, shares: Floats, points: Floats
) -> tuple[Floats, Floats, Floats]:
    """What does not depend on labels, averaged over chains.

    Parameters
    ----------
    shares : array, ``(num_chains, num_rows, num_components)``
        Probabilities of rows' components: zeros and ones of a sampler's, or those of a fit.

    Returns
    -------
    density : array, ``(num_points,)``
        Predictive density of new points.
    together : array, ``(num_rows * (num_rows - 1) / 2,)``
        Probability of each pair of rows that both are of one component.
    number : array, ``(num_components + 1,)``
        Probability of each number of components with more than a hundredth of the rows.
    """
    num_chains, num_rows, K = shares.shape
    components = Components.of(problem.x, shares, problem.prior)
    density = np.exp(components.log_density(points, problem.concentration)).mean(axis=0)
    flat = shares.transpose(1, 0, 2).reshape(num_rows, -1)
    together = (flat @ flat.T)[np.triu_indices(num_rows, 1)] / num_chains
    large = np.sum(components.counts > 0.01 * num_rows, axis=1)
    return density, together, np.bincount(large, minlength=K + 1) / num_chains


def mixture_chains(
    problem: GaussianMixtureProblem, points: Floats, chains: int, sweeps: int
) -> list[list[Floats]]:
    """`mixture_law` over every fifth sweep but the first quarter, for each kind of start."""
    laws: list[list] = [[], []]
    every = gibbs(
        np.random.default_rng(0), problem.x, problem.num_components, problem.prior,
        problem.concentration, num_chains=chains, sweeps=sweeps,
    )  # fmt: skip
    for index, z in enumerate(every):
        if index >= sweeps // 4 and index % 5 == 0:
            shares = np.eye(problem.num_components)[z]
            for start, law in enumerate(laws):
                law.append(mixture_law(problem, shares[start::2], points))
    return [[np.mean(values, axis=0) for values in zip(*law, strict=True)] for law in laws]


def mixtures(options: argparse.Namespace) -> Iterator[dict]:
    """Densities of new points, pairs of rows, and how many components there are."""
    sizes = np.arange(options.components + 1)
    for distance in options.distances:
        x, points = five_gaussians(distance), five_gaussians(distance, random_seed=1)
        for name, prior in (("default", None), ("vague", VAGUE)):
            problem = GaussianMixtureProblem(x, options.components, prior)
            fit = searches(problem, random_starts(problem, options.restarts))[0]
            fitted = mixture_law(problem, fit.probs.reshape(1, len(x), -1), points)
            one, other = mixture_chains(
                problem, points, options.mixture_chains, options.mixture_sweeps
            )
            density, together, number = (0.5 * (a + b) for a, b in zip(one, other, strict=True))
            mean = sizes @ number
            yield {
                "R": distance,
                "prior": name,
                "score": np.log(fitted[0]).mean(),
                "score_gibbs": np.log(density).mean(),
                "score_halves_apart": np.abs(np.log(one[0]).mean() - np.log(other[0]).mean()),
                "together_away": np.abs(fitted[1] - together).mean(),
                "together_halves_apart": np.abs(one[1] - other[1]).mean(),
                "unsure": unsure(fitted[1]),
                "unsure_gibbs": unsure(together),
                "number": int(sizes @ fitted[2]),
                "number_gibbs": mean,
                "number_gibbs_sd": np.sqrt(sizes**2 @ number - mean**2),
                "number_halves_apart": np.abs(sizes @ (one[2] - other[2])),
                "bound": fit.objective,
            }


def unsure(probs: Floats) -> float:
    """The share of probabilities that are neither below 0.1 nor above 0.9."""
    return float(np.mean((probs > 0.1) & (probs < 0.9)))


TABLES: dict[str, Callable[[argparse.Namespace], Iterator[dict]]] = {
    "expression": expression,
    "topics": topics,
    "mixtures": mixtures,
}


def main(options: argparse.Namespace) -> None:
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.tables:
        write(f"accuracy_{name}", TABLES[name](options), options.out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="+", choices=TABLES)
    parser.add_argument("--out", type=Path, required=True, help="folder for the tables")
    parser.add_argument("--reads", type=int, default=20_000, help="synthetic; 0 for none")
    parser.add_argument("--draws", type=int, default=4000, help="of expression, of two chains")
    parser.add_argument("--documents", type=int, nargs="+", default=[60, 300])
    parser.add_argument("--topics", type=int, nargs="+", default=[3, 20])
    parser.add_argument("--starts", type=int, default=5, help="of searches for topics")
    parser.add_argument("--chains", type=int, default=4, help="of topics")
    parser.add_argument("--sweeps", type=int, default=1000, help="of topics, of each chain")
    parser.add_argument("--distances", type=float, nargs="+", default=[2.0, 5.0])
    parser.add_argument("--components", type=int, default=10)
    parser.add_argument("--restarts", type=int, default=50, help="of searches for mixtures")
    parser.add_argument("--mixture-chains", type=int, default=32)
    parser.add_argument("--mixture-sweeps", type=int, default=350, help="of each chain")
    main(parser.parse_args())
