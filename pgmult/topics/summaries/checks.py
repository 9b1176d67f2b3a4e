"""Posterior predictive checks of topic models: dispersion, and dependence of words within topics.

For every posterior draw the data are compared with data simulated from that draw, a replicate
(Gelman, Meng and Stern 1996). There are three checks:

* *dispersion*: are counts more variable than multinomial counts? With q_dv =
  sum_k theta_dk phi_kv, x_dv the counts and m_d their sum, D = sum_dv (x_dv - m_d q_dv)**2 / (m_d
  q_dv (1 - q_dv)), a cell, is 1 in expectation (Taddy 2012, section 4.2), over cells of which
  anything is expected (`pgmult.topics.scores.dispersion`);
* *words by document*: within a topic, do words depend on the document? Under the model they do
  not: given the topic, words have the same law in every document. With N the counts of one draw of
  z, the mutual information of a word and of a topic with documents is (Mimno and Blei 2011, section
  4) IMI(w, k) = sum_d N(w,d,k) / N(w,k) log[N(w,d,k) N(k) / (N(d,k) N(w,k))] and
  MI(k) = sum_w N(w,k) / N(k) IMI(w, k);
* *words by group*: the same with groups of documents in place of documents. If words of a topic
  depend on the group, content covariates can model this.

The replicates of the second and third check draw words from phi given each token's z. If the model
is true, the p-value of one draw is uniform. The average over draws is nearer to 0.5 (Meng 1994), so
a small p-value is stronger evidence than it seems, and 0.2 does not mean that the model fits. Words
in real text come in bursts, and few bag-of-words models pass the first two checks; the size of the
excess, and the words that have it, matter more than the p-values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pgmult.core.arguments import as_list, as_seed
from pgmult.core.labels import labels_of
from pgmult.core.markup import paragraphs
from pgmult.core.tabled import WIDTH, Column, Table, number, wrapped
from pgmult.core.tables import as_frame
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.formulas.terms import GroupTerm
from pgmult.sampling.posterior import Posterior
from pgmult.topics.data.corpus import Corpus, StructuredCorpus, Versions
from pgmult.topics.data.timed import TimedCorpus
from pgmult.topics.draws import (
    as_draws,
    data_of_run,
    each_draw,
    most_probable,
    names_along,
    share_of_draws,
)
from pgmult.topics.scores.dispersion import expected_cells
from pgmult.topics.summaries.effects import topic_names
from pgmult.topics.summaries.matching import AlignedChain, aligned_chains, best_chain, mean_topics

_SMALL = 0.05
_BLOCK = 2**23  # numbers in memory at a time


@dataclass(frozen=True, slots=True, eq=False)
class Dependence:
    """How much words of a topic depend on documents, or on groups of them.

    Attributes
    ----------
    of : str
        What words are checked against, such as "document" or "party".
    observed, expected : arrays, ``(topic,)``
        Mutual information in nats: of the data and of replicates, means over draws.
    p : array, ``(topic,)``
        Share of draws whose replicate has at least that of the data.
    words : lists of (str, float), one per topic
        The probable words with most information beyond replicates, and how much: nats per token.
    is_modelled : bool
        Whether the model lets words depend on it.
    """

    of: str
    observed: FloatArray
    expected: FloatArray
    p: FloatArray
    words: list[list[tuple[str, float]]]
    is_modelled: bool = False

    @property
    def excess(self) -> FloatArray:
        """Information that the model does not explain, ``(topic,)``, in nats per token."""
        return self.observed - self.expected


@dataclass(frozen=True, slots=True, eq=False)
class PredictiveChecks:
    """Data against replicates of the model; print it for a verdict and a table.

    Attributes
    ----------
    dispersion, expected_dispersion : float
        Of the data and of replicates, means over draws; 1 where counts are multinomial.
    dispersion_p : float
        Share of draws whose replicate is at least as dispersed.
    dependence : tuple of Dependence
        Of words on documents and, where they were given, on groups.
    names : list of str
        Number and telling words of each topic.
    num_draws : int
        How many draws were compared: a p-value is a multiple of its inverse.
    """

    dispersion: float
    expected_dispersion: float
    dispersion_p: float
    dependence: tuple[Dependence, ...]
    names: list[str]
    num_draws: int

    @property
    def verdict(self) -> list[str]:
        """The verdict, in sentences."""
        sentences = []
        ratio = self.dispersion / self.expected_dispersion
        if self.dispersion_p < _SMALL:
            sentences.append(
                f"Counts are {100 * (ratio - 1):.1f} % more dispersed than the model's (p"
                f" {_p_text(self.dispersion_p, self.num_draws)}): more topics, or shorter pieces of"
                " text, may be wanted."
            )
        elif self.dispersion_p > 1.0 - _SMALL:
            sentences.append(
                f"Counts are {100 * (1 - ratio):.1f} % less dispersed than the model's (p"
                f" {_p_text(self.dispersion_p, self.num_draws)})."
            )
        else:
            sentences.append(
                f"Counts are as dispersed as the model's (p"
                f" {_p_text(self.dispersion_p, self.num_draws)})."
            )
        for one in self.dependence:
            bad = one.p < _SMALL
            known = ~np.isnan(one.p)
            where = "single documents" if one.of == "document" else f"one {one.of} or another"
            if not bad.any():
                sentences.append(
                    f"Within topics, words do not keep to {where} more than by chance"
                    f" ({int(known.sum())} topics checked)."
                )
                continue
            worst = int(np.nanargmax(np.where(bad, one.excess, np.nan)))
            examples = ", ".join(word for word, _ in one.words[worst][:3])
            if one.of == "document":
                advice = "text is bursty, and repeated words are not independent evidence"
            elif one.is_modelled:
                advice = "the model, which varies words by it, does not go all the way"
            else:
                advice = f"content covariates of {one.of} would tell how"
            sentences.append(
                f"Within {int(bad.sum())} of {int(known.sum())} topics, words keep to {where} more"
                f" than by chance, most in topic {self.names[worst]}"
                f"{f' ({examples})' if examples else ''}: {advice}."
            )
        return sentences

    def take(self, topics: IntArray) -> "PredictiveChecks":
        """The same of some topics, in another order."""
        dependence = tuple(
            replace(
                one, observed=one.observed[topics], expected=one.expected[topics],
                p=one.p[topics], words=[one.words[k] for k in topics.tolist()],
            )
            for one in self.dependence
        )  # fmt: skip
        return replace(self, dependence=dependence, names=[self.names[k] for k in topics])

    def tables(self) -> list[Table]:
        """For documents and for each group: information beyond the model's, p, and which words."""
        return [self._table(one) for one in self.dependence]

    def _table(self, one: Dependence) -> Table:
        words = [", ".join(f"{word} {value:+.2f}" for word, value in w[:4]) for w in one.words]
        caption = (
            f"What the words of a topic know of their {one.of}: mutual information in nats a token,"
            f" of the data and of the model's replicates, means over {self.num_draws} draws. p:"
            " share of draws whose replicate has as much as the data."
        )
        columns = [
            Column("topic", range(len(self.names))),
            Column("words", self.names, "topic"),
            Column("observed", one.observed, "observed", number(3)),
            Column("expected", one.expected, "by chance", number(3)),
            Column("p", one.p, "p", lambda p: _p_text(p, self.num_draws)),
            Column("keeping", words, f"words that keep to a {one.of}"),
        ]
        return Table(caption, columns)

    def __repr__(self) -> str:
        verdict = [line for s in self.verdict for line in wrapped(f"* {s}", WIDTH)]
        return "\n\n".join(["\n".join(verdict), *map(str, self.tables())])

    def to_dataframe(self) -> Any:
        """All tables as one pandas data frame; column ``of`` names the table of each row."""
        each = [table.columns for table in self.tables()]
        columns = {name: np.concatenate([one[name] for one in each]) for name in each[0]}
        of = np.repeat([one.of for one in self.dependence], len(self.names))
        return as_frame({"of": of, **columns})

    def _repr_html_(self) -> str:
        return paragraphs(self.verdict) + "".join(one._repr_html_() for one in self.tables())


def _p_text(p: float, num_draws: int) -> str:
    if np.isnan(p):
        return ""
    return f"<{1.0 / num_draws:.2g}" if p == 0.0 else f"{p:.2f}"


def check(
    posterior: Posterior,
    *,
    groups: Mapping[str, Any] | str | Sequence[str] | None = None,
    data: Corpus | None = None,
    num_words: int = 10,
    chain: int | None = None,
    max_draws: int = 40,
    random_seed: int = 0,
) -> PredictiveChecks:
    """Compare the data with replicates of the model, draw by draw.

    Parameters
    ----------
    posterior : Posterior
        Of a model with words of topics ``topics`` (or ``group_topics``) and proportions ``theta``
        or ``psi``: name one of these in ``keep=`` of `pgmult.sample`.
    groups : str, list of str, or mapping from name to labels, optional
        Columns of labels of the corpus's covariates, or labels of any kind, one per document.
    data : Corpus, optional
        What the model was fitted to; needed only where `posterior` was saved without it.
    num_words : int
        How many of a topic's most probable words are checked one by one.
    chain : int, optional
        One chain alone. If left out, chains are aligned topic by topic with the best one, and each
        topic is checked over the chains that found it.
    max_draws : int
        Draws to use at most, evenly spread over chains.
    random_seed : int
        Of z and the replicates.

    Returns
    -------
    PredictiveChecks
        Costs O(draws (entries + documents * words) num_topics).
    """
    corpus = data_of_run(posterior, data, Corpus)
    labels = _groups_of(corpus, groups)
    num_words = as_positive_int(num_words, "num_words")
    rng = np.random.default_rng(as_seed(random_seed))
    source = "theta" if "theta" in as_draws(posterior) else "psi"
    words = "group_topics" if "group_topics" in posterior else "topics"
    as_draws(posterior, source, words)
    chains = aligned_chains(posterior, chain, words)
    names = topic_names(posterior, chain)
    is_timed = isinstance(corpus, TimedCorpus)
    codes = np.zeros(corpus.num_documents, dtype=np.int64)
    if corpus.versions is not None and (is_timed or words == "group_topics"):
        codes = corpus.versions.codes
    content = getattr(corpus, "content", None) if words == "group_topics" else None
    varied = () if content is None else content.names
    factors = {"document": np.arange(corpus.num_documents), **labels}
    known = best_chain(posterior) if chain is None else chain
    best = most_probable(mean_topics(posterior, known, max_draws=100), num_words)
    dispersions: list[tuple[float, float]] = []
    found: dict[str, list[tuple[FloatArray, ...]]] = {name: [] for name in factors}
    count = share_of_draws(max_draws, len(chains))
    for one in chains:
        draws = zip(
            each_draw(posterior, source, one.chain, count, [words]),
            each_draw(posterior, words, one.chain, count, [source]),
            strict=True,
        )
        for proportions, phi in draws:
            theta = proportions if source == "theta" else posterior.link.probs(proportions)
            phi = phi[None] if phi.ndim == 2 else phi.swapaxes(0, 1) if is_timed else phi
            dispersions.append(_dispersion(rng, corpus, theta, phi, codes))
            tokens = _allocated(rng, corpus, theta, phi, codes)
            again = _drawn_again(rng, tokens, phi, codes)
            for name, factor in factors.items():
                pair = [_information(t, factor, phi.shape[1:], best, one) for t in (tokens, again)]
                found[name].append((pair[0][0], pair[1][0], pair[0][1], pair[1][1]))
    vocabulary = names_along(posterior, "word", corpus.num_words)
    observed, expected = np.array(dispersions).T
    return PredictiveChecks(
        float(observed.mean()), float(expected.mean()), float((expected >= observed).mean()),
        tuple(
            _dependence(name, draws, best, vocabulary, name in varied)
            for name, draws in found.items()
        ),
        names, len(dispersions),
    )  # fmt: skip


def _groups_of(corpus: Corpus, groups: Any) -> dict[str, IntArray]:
    """Numbers of labels, one per document, by name."""
    if groups is None:
        return {}
    if isinstance(groups, Mapping):
        given = {str(name): column for name, column in groups.items()}
    else:
        names = [groups] if isinstance(groups, str) else as_list(groups, "groups", "columns")
        given = {name: _labels_of(corpus, name) for name in names}
    codes = {}
    for name, column in given.items():
        labels = labels_of(as_list(column, "groups", "labels"), name).tolist()
        if len(labels) != corpus.num_documents:
            raise ValueError(
                f"groups must have one label for each of the {corpus.num_documents} documents, got"
                f" {len(labels)} of {name!r}"
            )
        codes[name] = np.unique(labels, return_inverse=True)[1]
        if codes[name].max() == 0:
            raise ValueError(f"groups must differ, got the one label {labels[0]!r} of {name!r}")
    return codes


def _labels_of(corpus: Corpus, name: Any) -> Sequence[Any]:
    """A column of labels among a corpus's covariates."""
    known: dict[str, Sequence[Any]] = {}
    if isinstance(corpus, StructuredCorpus):
        columns = corpus.design.columns
        for j, column in enumerate(columns.names.tolist()):
            if columns.num_levels[j]:
                known[column] = columns.values[:, j].astype(np.int64).tolist()
        for term in corpus.design.terms:
            if isinstance(term, GroupTerm):
                known.setdefault(":".join(term.variables), term.codes.tolist())
        if corpus.content is not None:
            for i, column in enumerate(corpus.content.names):
                known.setdefault(column, corpus.content.values[corpus.content.codes, i].tolist())
    if not isinstance(name, str) or name not in known:
        raise ValueError(
            f"groups must be columns of labels ({', '.join(known) or 'the corpus has none'}), or a"
            f" mapping from a name to labels, got {name!r}"
        )
    return known[name]


@dataclass(frozen=True, slots=True, eq=False)
class _Tokens:
    """Counts of tokens by document, topic and word."""

    documents: IntArray
    topics: IntArray
    words: IntArray
    counts: IntArray


def _blocks(corpus: Corpus, width: int) -> list[slice]:
    """Documents, so many at a time that width numbers of each fit."""
    size = max(1, _BLOCK // width)
    return [
        slice(d, min(d + size, corpus.num_documents)) for d in range(0, corpus.num_documents, size)
    ]


def _dispersion(
    rng: np.random.Generator, corpus: Corpus, theta: FloatArray, phi: FloatArray, codes: IntArray
) -> tuple[float, float]:
    """Of the data, and of documents that the model makes with the same theta and phi."""
    totals, rows = corpus.totals, corpus.entry_documents
    data = replicate = cells = 0.0
    for block in _blocks(corpus, phi.shape[2]):
        q = Versions(codes[block], len(phi)).word_probs(theta[block], phi)
        means, weights = expected_cells(totals[block], q)
        cells += np.count_nonzero(weights)
        span = slice(corpus.indptr[block.start], corpus.indptr[block.stop])
        own = rows[span] - block.start, corpus.words[span], corpus.counts[span]
        data += _square(means, weights, *own)
        allocated = rng.multinomial(totals[block], _normal(theta[block]))
        places, topics = np.nonzero(allocated)
        again = _with_words(rng, places, topics, allocated[places, topics], phi, codes[block])
        replicate += _square(means, weights, again.documents, again.words, again.counts)
    return data / max(cells, 1.0), replicate / max(cells, 1.0)


def _square(means: FloatArray, weights: FloatArray, rows: Any, words: Any, counts: Any) -> float:
    """The weighted squared distance of counts, a cell of which may stand in several entries."""
    away = -means
    cells = np.asarray(rows) * means.shape[1] + words  # numpy adds at one index, not at two, fast
    np.add.at(away.reshape(-1), cells, np.asarray(counts, dtype=np.float64))
    product = weights * away
    product *= away
    return float(np.sum(product))


def _normal(theta: FloatArray) -> FloatArray:
    return np.asarray(theta / theta.sum(axis=1, keepdims=True))


def _allocated(
    rng: np.random.Generator, corpus: Corpus, theta: FloatArray, phi: FloatArray, codes: IntArray
) -> _Tokens:
    """A draw of z."""
    rows = corpus.entry_documents
    size = max(1, _BLOCK // len(theta[0]))
    pieces = []
    for start in range(0, len(rows), size):
        here = slice(start, start + size)
        probs = theta[rows[here]] * phi[codes[rows[here]], :, corpus.words[here]]
        counts = rng.multinomial(corpus.counts[here], _normal(np.maximum(probs, 1e-300)))
        entry, topic = np.nonzero(counts)
        pieces.append((rows[here][entry], topic, corpus.words[here][entry], counts[entry, topic]))
    documents, topics, words, counts = (np.concatenate(x) for x in zip(*pieces, strict=True))
    return _Tokens(documents, topics, words.astype(np.int64), counts)


def _drawn_again(
    rng: np.random.Generator, tokens: _Tokens, phi: FloatArray, codes: IntArray
) -> _Tokens:
    """The same tokens with other words, given their topics."""
    num_topics = phi.shape[1]
    keys, place = np.unique(tokens.documents * num_topics + tokens.topics, return_inverse=True)
    counts = np.bincount(place, tokens.counts, len(keys)).astype(np.int64)
    return _with_words(rng, keys // num_topics, keys % num_topics, counts, phi, codes)


def _with_words(
    rng: np.random.Generator,
    documents: IntArray,
    topics: IntArray,
    counts: IntArray,
    phi: FloatArray,
    codes: IntArray,
) -> _Tokens:
    """Words for so many tokens of each document and topic, by document."""
    num_groups, num_topics, num_words = phi.shape
    source = np.repeat(codes[documents] * num_topics + topics, counts)
    words = np.empty(len(source), dtype=np.int64)
    order = np.argsort(source, kind="stable")
    ends = np.cumsum(np.bincount(source, minlength=num_groups * num_topics))
    for s, (first, last) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        running = np.cumsum(phi[s // num_topics, s % num_topics])
        uniform = rng.random(last - first) * running[-1]
        words[order[first:last]] = np.searchsorted(running, uniform, side="right")
    keys = (np.repeat(documents * num_topics + topics, counts)) * num_words + words
    keys, counts = np.unique(keys, return_counts=True)
    rows, words = np.divmod(keys, num_words)
    return _Tokens(*np.divmod(rows, num_topics), words, counts)


def _information(
    tokens: _Tokens,
    factor: IntArray,
    shape: tuple[int, ...],
    best: IntArray,
    one: AlignedChain,
) -> tuple[FloatArray, FloatArray]:
    """Mutual information of each topic, ``(topic,)``, and of its probable words, ``(topic, n)``."""
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
    summed = np.bincount(by_word, n * ratio, num_topics * num_words).reshape(num_topics, num_words)
    whole = summed.sum(axis=1) / np.maximum(n_topic, 1.0)
    each = summed / np.maximum(n_word.reshape(num_topics, num_words), 1.0)
    return one.place(whole), np.take_along_axis(one.place(each, 0), best, axis=1)


# --------------------------------------------------------------------------- all draws


def _dependence(
    name: str,
    draws: list[tuple[FloatArray, ...]],
    best: IntArray,
    vocabulary: Sequence[str],
    is_modelled: bool,
) -> Dependence:
    observed, expected, each, each_again = map(np.stack, zip(*draws, strict=True))
    gap = np.nanmean(each - each_again, axis=0)
    p = _share_at_least(each_again, each)
    words = [
        [
            (vocabulary[best[k, i]], float(gap[k, i]))
            for i in np.argsort(-gap[k], kind="stable")
            if p[k, i] < _SMALL and gap[k, i] > 0.0
        ]
        for k in range(len(best))
    ]
    return Dependence(
        name, np.nanmean(observed, axis=0), np.nanmean(expected, axis=0),
        _share_at_least(expected, observed), words, is_modelled,
    )  # fmt: skip


def _share_at_least(replicate: FloatArray, data: FloatArray) -> FloatArray:
    """Share of draws in which the replicate has at least as much; of those that are not nan."""
    known = ~np.isnan(data)
    return np.asarray((known & (replicate >= data)).sum(axis=0) / known.sum(axis=0))
