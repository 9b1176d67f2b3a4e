r"""Probabilities of whole unseen documents, theta integrated out: log p(w | topics, prior).

For N tokens w = (w_1, ..., w_N) in their order (no multinomial coefficient),

    p(w) = E_{p(theta)} prod_i f(w_i | theta),      f(w | theta) = sum_k theta_k topics_kw,

has no closed form under a Dirichlet or a stick-breaking Gaussian. The mean of f over prior draws of
theta is useless for more than a few words, a theta fitted to w overstates p(w), and the harmonic
mean of f over the posterior has infinite variance (Wallach, Murray, Salakhutdinov and Mimno 2009,
"Evaluation methods for topic models"). The estimate p^ here is annealed importance sampling (Neal
2001), with E p^ = p(w). For shares t from 0 to 1,

    p_t(theta) ∝ p(theta) prod_i [(1 - t) m(w_i) + t f(w_i | theta)],

the posterior if a token comes from the topics with probability t only and else from a background m.
At t = 0 that is the prior, its normaliser prod m(w_i) is known, and at t = 1 it is p(w). From
theta_0 ~ p_0, steps theta_s ~ T_s(. | theta_{s-1}) that leave p_{t_s} invariant give

    p^ = prod_i m(w_i) prod_s prod_i [(1 - t_s) m + t_s f] / [(1 - t_{s-1}) m + t_{s-1} f],

f at theta_{s-1}. T_s is a Gibbs step of the same model: which tokens come from topics, which topics
those are, and theta given their counts; the others say nothing about theta. No power of a
probability appears, so words that are impossible in most topics do no harm, and z stays integrated
out of the weights. m is the mean of f over the prior.

Beside a particle filter over the tokens, "left to right" (Wallach et al., section 4), on articles
of 150 words and 20 topics with eight runs each: under sticks 0.4 s of a processor bring the
estimate 2.5 nats a document nearer to log p(w) than 0.6 s of the filter, under a Dirichlet the two
are level at 0.4 and 0.5 s. The filter costs O(N**2).

The log of an unbiased estimate is too low on average, by about half the squared Monte Carlo error
of that document; both errors are in the result. Estimates are averaged over posterior draws of the
topics and the prior before the logarithm, so they estimate log p(w | training corpus).

>>> import numpy as np, pgmult
>>> counts = np.random.default_rng(0).poisson(0.5, size=(20, 30))
>>> posterior = pgmult.sample(
...     pgmult.topics.CorrelatedTopics(num_topics=3), pgmult.topics.as_corpus(counts[:15]),
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> score = annealed(topic_draws(posterior), pgmult.topics.as_corpus(counts[15:]), steps=50)
>>> score.by_unit.shape
(5,)
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from pgmult.compiled.rows import over_rows, row_threads
from pgmult.core.arguments import as_kind, as_list, as_repeats, as_seed
from pgmult.core.machine import as_cores
from pgmult.core.tables import as_frame
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_simplex, new_key
from pgmult.links import StickBreaking
from pgmult.priors import Dirichlet, MvNormal
from pgmult.topics.compiled import document_probability as kernels
from pgmult.topics.data.corpus import Corpus
from pgmult.topics.draws import Draws, as_draws, spread, stick_order_of
from pgmult.topics.scores.completion import CompletionScore

_PRIOR_DRAWS = 2000  # for the background under Gaussian sticks, which sets the variance only


class TopicDraw(NamedTuple):
    """Topics and prior that a document's probability is given.

    Attributes
    ----------
    topics : array, ``(num_topics, num_words)``
        Rows sum to 1.
    prior : Dirichlet or MvNormal
        Of theta, ``(num_topics,)``, or of the sticks that break theta in the order of the topics,
        ``(num_topics - 1,)``.
    """

    topics: FloatArray
    prior: Dirichlet | MvNormal


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class DocumentScore(CompletionScore):
    """Estimated log probabilities of whole documents: a score that `compare_scores` takes, too.

    Attributes
    ----------
    by_unit : array, ``(num_documents,)``
        log p^(words of the document), nats; 0 for an empty document.
    totals : int array, ``(num_documents,)``
        Its words.
    errors : array, ``(num_documents,)``
        Monte Carlo standard error of `by_unit`: over posterior draws where there are several, as if
        they were independent, else over runs; nan if there was one run of one draw.
    num_draws : int
        Posterior draws averaged over.
    """

    errors: FloatArray

    @property
    def monte_carlo_error(self) -> float:
        """Of `log_predictive`, for these very documents."""
        return float(np.sqrt(np.sum(self.errors**2)) / self.totals.sum())

    def __str__(self) -> str:
        return f"{CompletionScore.__str__(self)} (Monte Carlo ± {self.monte_carlo_error:.3f})"

    __repr__ = __str__

    def to_dataframe(self) -> Any:
        """One row per document, as a pandas data frame: log probability and Monte Carlo error."""
        numbers = np.arange(len(self.by_unit))
        return as_frame({"document": numbers, "log_prob": self.by_unit, "error": self.errors})


def topic_draws(posterior: Draws, *, max_draws: int = 20) -> list[TopicDraw]:
    """Draws of the topics and of the prior of theta, evenly spread over all chains.

    Parameters
    ----------
    posterior : Posterior, or mapping for LDA
        With ``topics`` and either ``alpha`` (LDA) or ``mu`` and ``Sigma`` (`CorrelatedTopics`),
        ``(chain, draw, ...)``. LDA's ``topics`` are means given the assignments.
    max_draws : int

    Raises
    ------
    ValueError
        If the posterior holds neither prior, or one without alpha is not of `CorrelatedTopics` or
        does not know its model.
    """
    needed = {"topics", "alpha"} if "alpha" in as_draws(posterior) else {"topics", "mu", "Sigma"}
    if not needed <= set(posterior):
        raise ValueError(
            "posterior must hold topics and alpha, or topics, mu and Sigma, got"
            f" {', '.join(map(str, posterior))}"
        )
    topics = posterior["topics"]
    places = list(np.ndindex(topics.shape[:2]))
    used = [places[i] for i in spread(len(places), max_draws)]
    if "alpha" in needed:
        return [TopicDraw(topics[place], Dirichlet(posterior["alpha"][place])) for place in used]
    order = stick_order_of(posterior)
    mu, Sigma = posterior["mu"], posterior["Sigma"]
    return [TopicDraw(topics[place][order], MvNormal(mu[place], Sigma[place])) for place in used]


def annealed(
    draws: Iterable[TopicDraw],
    corpus: Corpus,
    *,
    steps: int = 1000,
    runs: int = 8,
    random_seed: int = 0,
    cores: int | None = None,
) -> DocumentScore:
    """Probabilities of documents by annealed importance sampling.

    Parameters
    ----------
    draws : iterable of TopicDraw
        From `topic_draws`, or one of your own. p^ is averaged over them.
    corpus : Corpus
        Unseen documents, with the words of the topics.
    steps : int
        From share 0 to share 1; see `anneal_shares`.
    runs : int
        Independent runs at each draw; eight at a time take their steps under Gaussian sticks.
    random_seed : int
    cores : int, optional
        Threads; all processors if left out. Results do not depend on it.

    Raises
    ------
    ValueError
        If topics, priors and words do not agree, or nothing is to be scored.

    Notes
    -----
    A document of N tokens costs O(N K) per step, and O(K**3) more under Gaussian sticks. The
    relative variance of p^ falls like 1 / (steps * runs) once there are steps enough, and with too
    few the runs miss the best theta together: compare with twice as many.
    """
    shares = anneal_shares(as_repeats(steps, "steps"))
    runs = as_repeats(runs, "runs")
    cores = as_cores(cores)
    as_kind(corpus, "corpus", Corpus, "make one with as_corpus")
    if corpus.num_tokens == 0:
        raise ValueError("corpus has no tokens to score")
    rng = np.random.Generator(np.random.Philox(as_seed(random_seed)))
    given = as_list(draws, "draws", "TopicDraws")
    with row_threads(cores):
        estimates = [_anneal(rng, draw, corpus, shares, runs) for draw in given]
    if not estimates:
        raise ValueError("draws must hold at least one TopicDraw")
    return _score(np.stack(estimates), corpus)


def _anneal(
    rng: np.random.Generator, draw: TopicDraw, corpus: Corpus, shares: FloatArray, runs: int
) -> FloatArray:
    """Log p^ of documents given one draw, ``(num_documents, runs)``."""
    topics, prior = as_kind(draw, "draws", TopicDraw, "see topic_draws")
    topics = as_simplex(topics, "topics")
    mean_theta = _mean_theta(rng, prior, topics, corpus)
    background = mean_theta @ topics
    relative = np.zeros(topics.T.shape)
    np.divide(topics.T, background[:, None], out=relative, where=background[:, None] > 0.0)
    log_ratios = np.empty((corpus.num_documents, runs))
    if isinstance(prior, Dirichlet):
        kernel: Any = kernels.anneal_dirichlet
        of_theta: Any = np.array(np.broadcast_to(prior.concentration, mean_theta.shape))
    else:
        root = np.asarray(np.linalg.cholesky(prior.prior_cov), dtype=np.float64)
        kernel, of_theta = (
            kernels.anneal_sticks, kernels.Sticks(prior.precision(), root, prior.prior_mean)
        )  # fmt: skip
    statuses = over_rows(
        kernel, corpus.num_documents, new_key(rng), corpus.entries, relative, of_theta, shares,
        log_ratios, grain=1,
    )  # fmt: skip
    failed = [status - 1 for status in statuses if status]
    if failed:
        raise FloatingPointError(
            f"document {min(failed)} has no finite draw of its sticks: is the covariance"
            " singular to working precision?"
        )
    with np.errstate(divide="ignore"):
        logs = corpus.counts * np.log(background[corpus.words])
    base = np.bincount(corpus.entry_documents, logs, minlength=corpus.num_documents)
    return np.asarray(base[:, None] + log_ratios)


def anneal_shares(steps: int) -> FloatArray:
    """Shares from 0 to 1, ``(steps + 1,)``: closest at 0, where weights vary most."""
    return np.square(np.arange(steps + 1) / steps)


def _score(estimates: FloatArray, corpus: Corpus) -> DocumentScore:
    """The score of log estimates, ``(draw, document, run)``."""
    num_draws, _, runs = estimates.shape
    units = logsumexp(estimates, axis=2).T - np.log(runs) if num_draws > 1 else estimates[0]
    count = units.shape[1]
    by_document = np.asarray(logsumexp(units, axis=1) - np.log(count))
    error = np.full(len(by_document), np.nan)
    if count > 1:
        possible = np.isfinite(by_document)
        relative = np.exp(units[possible] - by_document[possible, None])
        error[possible] = relative.std(axis=1, ddof=1) / np.sqrt(count)
    return DocumentScore(by_document, corpus.totals, errors=error, num_draws=num_draws)


def _mean_theta(
    rng: np.random.Generator, prior: Dirichlet | MvNormal, topics: FloatArray, corpus: Corpus
) -> FloatArray:
    """Mean topic proportions under the prior, ``(num_topics,)``, of shapes that agree."""
    if topics.ndim != 2 or topics.shape[1] != corpus.num_words:
        raise ValueError(
            f"topics must be (num_topics, {corpus.num_words}) like the corpus's words, got"
            f" {topics.shape}"
        )
    num_topics = len(topics)
    if isinstance(prior, Dirichlet):
        alpha = np.asarray(prior.concentration)
        if alpha.shape not in ((), (num_topics,)):
            raise ValueError(f"the prior must be of {num_topics} topics, got {alpha.shape}")
        alpha = np.broadcast_to(alpha, (num_topics,))
        return np.asarray(alpha / alpha.sum())
    if prior.prior_mean.shape != (num_topics - 1,) or prior.potential is not None:
        raise ValueError(
            f"the prior must be one unconditioned Gaussian of {num_topics - 1} sticks, got mean of"
            f" shape {prior.prior_mean.shape}"
        )
    return np.asarray(StickBreaking().probs(prior.sample(rng, _PRIOR_DRAWS)).mean(axis=0))
