"""Posterior predictive checks of topic models: dispersion, and dependence of words within topics.

For every posterior draw the data are compared with data simulated from that draw, a replicate
(Gelman, Meng and Stern 1996). There are three checks, with covariates four:

* *dispersion*: are counts more variable than multinomial counts? With q_dv =
  sum_k theta_dk phi_kv, x_dv the counts and m_d their sum, D = sum_dv (x_dv - m_d q_dv)**2 / (m_d
  q_dv (1 - q_dv)), a cell, is 1 in expectation (Taddy 2012, section 4.2). In cells with tiny
  expectations single tokens would decide it: those below 0.05 are left out;
* *words by document*: within a topic, do words depend on the document? Under the model they do
  not: given the topic, words have the same distribution in every document. With N the counts of one
  draw of z, the mutual information of a topic's words with documents is (Mimno and Blei 2011,
  section 4) MI(k) = sum_wd N(w,d,k) / N(k) log[N(w,d,k) N(k) / (N(d,k) N(w,k))], in nats a token;
  that of all topics is their average, weighted by N(k);
* *words by group*: the same with groups of documents in place of documents. If words of a topic
  depend on the group, content covariates can model this.

* *topics along a number*: does prevalence follow the formula? Documents are grouped along each
  number that it depends on. The squared distances of the groups' average proportions to those that
  the regression expects, each weighted by the group's size, are compared with those of documents
  whose psi is drawn from the regression.

The replicates of the second and third check draw words from phi given each token's z. If the model
is true, the p-value of one draw is uniform. The average over draws is nearer to 0.5 (Meng 1994), so
a small p-value is stronger evidence than it seems, and 0.2 does not mean that the model fits. Words
in real text come in bursts, and few bag-of-words models pass the first two checks; the size of the
excess matters more than the p-values.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pgmult.core.arguments import as_list, as_seed
from pgmult.core.blas import one_blas_thread
from pgmult.core.checks import PredictiveChecks
from pgmult.core.labels import labels_of
from pgmult.core.tables import chosen_columns
from pgmult.core.typing import FloatArray, Generator, IntArray
from pgmult.formulas.design import table_of
from pgmult.sampling.posterior import Posterior
from pgmult.topics import runs
from pgmult.topics.data.corpus import Corpus, StructuredCorpus, Versions
from pgmult.topics.data.timed import TimedCorpus
from pgmult.topics.summaries.documents import in_bins
from pgmult.topics.summaries.effects import topic_names
from pgmult.topics.summaries.matching import best_chain

_BLOCK = 2**18  # numbers at a time, which stay in a processor's memory
_EXPECTING = 10  # draws of psi that expected shares of documents are averages of
_EXPECTED = 0.05  # tokens of a word in a document, at least, for it to be counted there
_DISPERSED = (
    "Counts are more dispersed than the model's: more topics, or shorter pieces of text, may be"
    " wanted.",
    "Counts are less dispersed than the model's.",
)
_BURSTY = (
    "Within topics, words keep to single documents more than by chance: text is bursty, and"
    " repeated words are not independent evidence."
)


@one_blas_thread()  # products of some hundred documents at a time: more threads only wait
def check(
    run: Posterior, *, groups: Mapping[str, object] | str | Sequence[str] | None = None,
    data: Corpus | None = None, chain: int | None = None, max_draws: int = 40, random_seed: int = 0,
) -> PredictiveChecks:  # fmt: skip
    """Compare the data with replicates of the model, draw by draw.

    Parameters
    ----------
    run : Posterior
        Of a model with words of topics ``topics`` (or ``group_topics``) and proportions ``theta``
        or ``psi``: name one of these in ``keep=`` of `pgmult.sample`.
    groups : str, list of str, or mapping from name to labels, optional
        Columns of the corpus's covariates, or labels of any kind, one per document.
    data : Corpus, optional
        What the model was fitted to; needed only where `run` was saved without it.
    chain : int, optional
        The chain that is checked; that with the best log likelihood if left out.
    max_draws : int
        Draws to use at most, evenly spread.
    random_seed : int
        Of z and the replicates.

    Returns
    -------
    PredictiveChecks
        Dispersion; and words by document and by group, of all topics and of each. Costs O(draws
        (entries + documents * words) num_topics).
    """
    corpus = runs.data_of_run(runs.as_unmerged(run), data, Corpus)
    labels, numbers = _groups_of(corpus, groups), _numbers_of(run, corpus)
    rng = np.random.default_rng(as_seed(random_seed))
    source = "theta" if "theta" in runs.as_draws(run) else "psi"
    words = "group_topics" if "group_topics" in run else "topics"
    runs.as_draws(run, source, words)
    place = best_chain(run) if chain is None else runs.as_chain(run, chain)
    names = topic_names(run, place + 1)
    is_timed = isinstance(corpus, TimedCorpus)
    codes = np.zeros(corpus.num_documents, dtype=np.int64)
    if corpus.versions is not None and (is_timed or words == "group_topics"):
        codes = corpus.versions.codes
    content = getattr(corpus, "content", None) if words == "group_topics" else None
    factors = {"document": np.arange(corpus.num_documents), **labels}
    advice = {"dispersion": _DISPERSED}
    for of in factors:
        why = f"content covariates of {of} would show how"
        if content is not None and of == content.name:
            why = "the model, which varies words by it, does not go all the way"
        text = f"Within topics, words keep to one {of} or another more than by chance: {why}."
        advice[f"words by {of}"] = (text if of in labels else _BURSTY, "")
        advice |= {f"words by {of}, {name}": ("", "") for name in names}
    terms = corpus.design.terms if isinstance(corpus, StructuredCorpus) else ()
    curved = {name for term in terms for name in term.variables}
    for name in numbers:
        more = f"s({name}, knots=20)"
        take = more if name in curved else f"s({name}), or C({name}) of few values"
        look = f"look at the points beside the curves, and take {take}"
        text = f"Shares of topics along {name} differ from what the formula allows: {look}."
        advice[f"topics along {name}"] = (text, "")

    def compared() -> Iterator[tuple[dict[str, float], dict[str, float]]]:
        needed = [source, words, *(runs.regression_variables(run, corpus) if numbers else [])]
        draws = [runs.each_draw(run, name, place, max_draws, needed) for name in needed]
        for proportions, phi, *of_mean in zip(*draws, strict=True):
            theta = proportions if source == "theta" else run.link.probs(proportions)
            phi = phi[None] if phi.ndim == 2 else phi.swapaxes(0, 1) if is_timed else phi
            dispersions = _dispersion(rng, corpus, theta, phi, codes)
            tokens = _allocated(rng, corpus, theta, phi, codes)
            both, gaps = (tokens, _drawn_again(rng, tokens, phi, codes)), np.zeros((2, 0))
            if numbers and isinstance(corpus, StructuredCorpus):
                draw = {n: of[None] for n, of in zip(needed[2:], of_mean, strict=True)}
                prior = runs.prior_at(draw, 0, corpus.design)
                gaps = _along(rng, run, prior, theta, numbers)
            rows = []
            for dispersion, of_words, along in zip(dispersions, both, gaps, strict=True):
                shared = [_information(of_words, of, phi.shape[1:]) for of in factors.values()]
                values = np.concatenate([[dispersion], *shared, along])
                rows.append(dict(zip(advice, values.tolist(), strict=True)))
            yield rows[0], rows[1]

    return PredictiveChecks.of(compared(), advice)


def _groups_of(corpus: Corpus, groups: Any) -> dict[str, IntArray]:
    """Numbers of labels, one per document, by name."""
    if groups is None:
        return {}
    columns = groups
    if not isinstance(groups, Mapping):
        names = [groups] if isinstance(groups, str) else as_list(groups, "groups", "columns")
        covariates = table_of(corpus.design) if isinstance(corpus, StructuredCorpus) else {}
        content = getattr(corpus, "content", None)
        content_column = {} if content is None else {content.name: content.labels[content.codes]}
        columns = chosen_columns(covariates | content_column, names, "the corpus", "groups")
    codes = {}
    for name, column in columns.items():
        labels = labels_of(as_list(column, "groups", "labels"), name).tolist()
        if len(labels) != corpus.num_documents:
            every = f"one label for each of the {corpus.num_documents} documents"
            raise ValueError(f"groups must have {every}, got {len(labels)} of {name!r}")
        codes[name] = np.unique(labels, return_inverse=True)[1]
        if codes[name].max() == 0:
            raise ValueError(f"groups must differ, got the one label {labels[0]!r} of {name!r}")
    return codes


def _numbers_of(run: Posterior, corpus: Corpus) -> dict[str, IntArray]:
    """Groups of documents along each number that prevalence depends on."""
    if not isinstance(corpus, StructuredCorpus) or "coefficients" not in run:
        return {}
    columns, spans = corpus.design.columns, np.ptp(corpus.design.columns.values, axis=0)
    varying = [j for j, of in enumerate(columns.num_levels) if not of and spans[j] > 0.0]
    return {str(columns.names[j]): in_bins(columns.values[:, j]) for j in varying}


def _along(
    rng: Generator, run: Posterior, prior: runs.PsiPrior,
    theta: FloatArray, numbers: Mapping[str, IntArray],
) -> FloatArray:  # fmt: skip
    """Distances of topics' averages along numbers to what the regression expects there.

    Those of the documents, and of documents whose psi is drawn from the regression.
    """
    means, which, covariances = prior
    roots = np.linalg.cholesky(covariances)[which]

    def drawn() -> FloatArray:
        noise = rng.standard_normal(means.shape)
        return np.asarray(run.link.probs(means + np.einsum("dij,dj->di", roots, noise)))

    made, several = drawn(), [drawn() for _ in range(_EXPECTING)]
    expected = np.mean(several, axis=0)
    scale = np.maximum(np.var(several, axis=(0, 1)), 1e-12)
    distances = []
    for codes in numbers.values():
        sizes = np.bincount(codes)
        members = np.equal.outer(np.arange(len(sizes)), codes) / np.sqrt(sizes)[:, None]
        distances.append([np.sum((members @ (of - expected)) ** 2 / scale) for of in (theta, made)])
    return np.transpose(distances)


class _Tokens(NamedTuple):
    """Counts of tokens by document, topic and word, which may stand in several rows."""

    documents: IntArray
    topics: IntArray
    words: IntArray
    counts: IntArray


def _dispersion(
    rng: Generator, corpus: Corpus, theta: FloatArray, phi: FloatArray, codes: IntArray
) -> FloatArray:
    """Dispersion of the data, and of documents simulated with the same theta and phi."""
    sums, cells, matrix, lengths = np.zeros(2), 0, corpus.to_csr(), corpus.totals
    size = max(1, _BLOCK // phi.shape[2])
    for start in range(0, corpus.num_documents, size):
        rows = slice(start, min(start + size, corpus.num_documents))
        totals, of_rows = lengths[rows], codes[rows]
        shares = Versions(of_rows, len(phi)).word_probs(theta[rows], phi)
        shares = np.clip(shares, 1e-300, 1.0 - 1e-12)
        means = totals[:, None] * shares
        weights = np.maximum(means * (1.0 - shares), 1e-300)
        np.divide(means >= _EXPECTED, weights, out=weights)  # 0 for counts that are left out
        cells += int(np.count_nonzero(weights))
        allocated = rng.multinomial(totals, theta[rows] / theta[rows].sum(axis=1, keepdims=True))
        places, topics = np.nonzero(allocated)
        again = _with_words(rng, places, topics, allocated[places, topics], phi, of_rows)
        made = np.zeros_like(means)
        np.add.at(made, (again.documents, again.words), again.counts)
        sums += [np.vdot(weights, (x - means) ** 2) for x in (matrix[rows].toarray(), made)]
    return sums / max(cells, 1)


def _allocated(
    rng: Generator, corpus: Corpus, theta: FloatArray, phi: FloatArray, codes: IntArray
) -> _Tokens:
    """A draw of z, token by token."""
    rows = np.repeat(corpus.entry_documents, corpus.counts)
    words = np.repeat(corpus.words.astype(np.int64), corpus.counts)
    size = max(1, _BLOCK // len(theta[0]))
    topics = []
    for start in range(0, len(rows), size):
        documents, its = rows[start : start + size], words[start : start + size]
        probs = np.maximum(theta[documents] * phi[codes[documents], :, its], 1e-300)
        upto = np.cumsum(probs, axis=1)
        drawn = rng.random((len(documents), 1)) * upto[:, -1:]
        topics.append(np.count_nonzero(upto[:, :-1] <= drawn, axis=1))
    return _Tokens(rows, np.concatenate(topics), words, np.ones_like(rows))


def _drawn_again(rng: Generator, tokens: _Tokens, phi: FloatArray, codes: IntArray) -> _Tokens:
    """The same tokens with other words, given their topics."""
    num_topics = phi.shape[1]
    keys, place = np.unique(tokens.documents * num_topics + tokens.topics, return_inverse=True)
    counts = np.bincount(place, tokens.counts, len(keys)).astype(np.int64)
    return _with_words(rng, keys // num_topics, keys % num_topics, counts, phi, codes)


def _with_words(
    rng: Generator, documents: IntArray, topics: IntArray, counts: IntArray,
    phi: FloatArray, codes: IntArray,
) -> _Tokens:  # fmt: skip
    """Words for so many tokens of each document and topic, by document."""
    num_groups, num_topics, num_words = phi.shape
    source = np.repeat(codes[documents] * num_topics + topics, counts)
    words = np.empty(len(source), dtype=np.int64)
    small = np.min_scalar_type(num_groups * num_topics)  # sorted by digits, if it has 16 bits
    order = np.argsort(source.astype(small), kind="stable")
    ends = np.cumsum(np.bincount(source, minlength=num_groups * num_topics))
    for s, (first, last) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        running = np.cumsum(phi[s // num_topics, s % num_topics])
        uniform = rng.random(last - first) * running[-1]
        words[order[first:last]] = np.searchsorted(running, uniform, side="right")
    keys = (np.repeat(documents * num_topics + topics, counts)) * num_words + words
    keys, counts = np.unique(keys, return_counts=True)
    rows, words = np.divmod(keys, num_words)
    return _Tokens(*np.divmod(rows, num_topics), words, counts)


def _information(tokens: _Tokens, factor: IntArray, shape: tuple[int, ...]) -> FloatArray:
    """Mutual information of words and levels of a factor, of all topics and of each."""
    num_topics, num_words = shape
    num_levels = int(factor.max()) + 1
    keys = (tokens.topics * num_levels + factor[tokens.documents]) * num_words + tokens.words
    keys, place = np.unique(keys, return_inverse=True)
    n = np.bincount(place, tokens.counts, len(keys))
    by_level, words = np.divmod(keys, num_words)
    topics = by_level // num_levels
    by_word = topics * num_words + words
    n_level = np.bincount(by_level, n, num_topics * num_levels)
    n_word = np.bincount(by_word, n, num_topics * num_words)
    n_topic = np.bincount(topics, n, num_topics)
    ratio = np.log(n * n_topic[topics] / (n_level[by_level] * n_word[by_word]))
    summed = np.bincount(topics, n * ratio, num_topics)
    return np.append(summed.sum() / max(n.sum(), 1.0), summed / np.maximum(n_topic, 1.0))
