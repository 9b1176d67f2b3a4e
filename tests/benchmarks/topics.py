"""Topic models and their peers by held-out score: the same CPU seconds, four chains.

Needs the corpus (PGMULT_DATA, or a download); tomotopy and gensim run beside where they are
installed.

    python tests/benchmarks/topics.py equal --seconds 8

Protocol: the 4,000 most frequent terms; half of the words of some test documents and nine tenths of
others are held out; document completion averaged over posterior draws, by corpus (`--corpora`).
"""

import argparse
import os
import re
import subprocess
import time
from collections import defaultdict
from dataclasses import replace
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
import scipy.sparse

import pgmult
from examples.papers.associated_press import associated_press
from examples.papers.docstrings import demo_corpus
from examples.papers.linderman2015.timed import completion_by_seconds
from pgmult.datasets import state_of_the_union
from pgmult.topics.scores.completion import _score, unigram_log_predictive
from pgmult.topics.updates.allocation import word_probs


class Sweep:
    """What `DocumentCompletion` asks of a sweep."""

    def __init__(self, model, data, state, index):
        self.model, self.data, self.state, self.index = model, data, state, index
        self.chain, self.tuning = 0, False


def frequent_words(corpus, num_words=4000):
    counts = corpus.to_csr()
    totals = np.bincount(corpus.words, corpus.counts, minlength=corpus.num_words)
    chosen = np.argsort(-totals, kind="stable")[:num_words]
    columns = counts.tocsc()[:, chosen].tocsr()
    columns.sort_indices()
    return pgmult.topics.as_corpus(columns, corpus.vocabulary[chosen])


def nips11():
    """The articles of NIPS 2011, from the folder that PGMULT_DATA names."""
    with np.load(Path(os.environ["PGMULT_DATA"]) / "nips11" / "nips11_v2000.npz") as file:
        entries = scipy.sparse.coo_array((file["count"], (file["doc"], file["word"])))
        return pgmult.topics.as_corpus(entries.tocsr(), file["vocab"])


def descriptions():
    """What this machine's apt says of packages in a line each; those of a maintainer are a text."""
    told = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True)
    fields = [dict(re.findall(r"^(Maintainer|Description): (.*)$", entry, flags=re.M))
              for entry in told.stdout.split("\n\n")]  # fmt: skip
    texts = defaultdict(set)
    for field in fields:
        if len(field) == 2:
            texts[field["Maintainer"]].add(field["Description"])
    joined = [" ".join(sorted(lines)) for lines in texts.values()]
    return pgmult.read({"text": joined}).corpus("text", min_documents=5)


CORPORA = {
    "ap": associated_press, "docstrings": demo_corpus, "nips11": nips11,
    "messages": state_of_the_union, "descriptions": descriptions,
}  # fmt: skip


def split_of(corpus, observed, seed=0):
    words = frequent_words(CORPORA[corpus]())
    documents = 112 if corpus == "ap" else words.num_documents // 20
    return pgmult.topics.split_tokens(words, documents, observed, random_seed=seed)


def ap_split(observed, seed=0):
    return split_of("ap", observed, seed)


def tomotopy_documents(model, corpus):
    for d in range(corpus.num_documents):
        entries = slice(corpus.indptr[d], corpus.indptr[d + 1])
        tokens = np.repeat(corpus.words[entries], corpus.counts[entries])
        model.add_doc([str(w) for w in tokens])
    model.train(1, workers=1)
    return model


def equal_models(num_topics, structured):
    """By name; the first is what the others are compared with."""
    models = {
        "LDA": pgmult.topics.LDA(num_topics),
        "SB-CTM": pgmult.topics.CorrelatedTopics(num_topics),
        "LN-CTM": pgmult.topics.LogisticNormalTopics(num_topics),
    }
    return models | ({"STM": pgmult.topics.StructuralTopics(num_topics)} if structured else {})


def warm_up(model, training):
    few = training[np.arange(0, training.num_documents, training.num_documents // 60)]
    for _ in range(2):  # where the start compiles for longer than this, no sweep is made
        completion_by_seconds(model, few, few, [0.01, 0.1])


def tomotopy_draws(kind, training, held_out, num_topics, seed):
    """Of every sweep: the seconds of the process that it took, and the held-out probabilities."""
    import tomotopy

    peer = getattr(tomotopy, kind)(k=num_topics, eta=0.05, seed=seed + 1)
    test = np.flatnonzero(held_out.totals)
    present = np.cumsum(training.totals > 0) - 1  # it drops empty documents
    tomotopy_documents(peer, training)
    columns = [int(word) for word in peer.used_vocabs]
    documents = list(peer.docs)

    def told():
        theta = np.full((training.num_documents, peer.k), 1.0 / peer.k)
        theta[test] = [documents[present[d]].get_topic_dist() for d in test]
        topics = np.full((peer.k, training.num_words), 1e-12)
        topics[:, columns] = [peer.get_topic_word_dist(k) for k in range(peer.k)]
        return word_probs(held_out, theta, topics)

    while True:
        began = time.process_time()
        peer.train(1, workers=1)
        yield time.process_time() - began, told


def gensim_draws(kind, training, held_out, num_topics, seed):
    """The same of gensim's variational fit, which learns alpha: of every pass over the corpus."""
    from gensim.models import LdaModel

    rows = [
        list(zip(training.words[a:b].tolist(), training.counts[a:b].tolist(), strict=True))
        for a, b in pairwise(training.indptr.tolist())
    ]
    test = np.flatnonzero(held_out.totals)
    began = time.process_time()
    fit = LdaModel(
        id2word={v: str(v) for v in range(training.num_words)}, num_topics=num_topics, eta=0.05,
        alpha="auto", random_state=seed, eval_every=None,
    )  # fmt: skip

    def told():
        theta = np.full((training.num_documents, num_topics), 1.0 / num_topics)
        gamma, _ = fit.inference([rows[d] for d in test])
        theta[test] = gamma / gamma.sum(axis=1, keepdims=True)
        return word_probs(held_out, theta, np.float64(fit.get_topics()))

    while True:
        fit.update(rows, passes=1)
        yield time.process_time() - began, told
        began = time.process_time()


PEERS = {
    "tomotopy LDA": (tomotopy_draws, "LDAModel", 0.5),
    "tomotopy CT": (tomotopy_draws, "CTModel", 0.5),
    "gensim LDA": (gensim_draws, "LdaModel", 1.0),  # a fit: its last pass alone
}


def peer_by_seconds(name, training, held_out, mark, num_topics, seeds):
    """As `completion_by_seconds`, for a model of another package."""
    make, kind, burn_in = PEERS[name]
    chains, count = [], 0
    for seed in seeds:
        passed, told = 0.0, []
        for seconds, tell in make(kind, training, held_out, num_topics, seed):
            passed, count = passed + seconds, count + 1
            if burn_in == 1.0:
                told = [tell()]
            elif burn_in * mark < passed <= mark:
                told.append(tell())
            if passed >= mark:
                break
        chains.append(np.mean(told or [tell()], axis=0))
    return _score(held_out, chains, count), count


def halves_and_tenths(corpus, seed):
    """Training tokens, plain and with covariates if there are any, and what is held out."""
    words = frequent_words(CORPORA[corpus]())
    structured = None
    if corpus == "messages":
        table = state_of_the_union().table.columns
        structured = pgmult.topics.with_covariates(words, table, "~ s(year) + party")
    rows = np.random.default_rng(seed).permutation(words.num_documents)
    size, parts = max(100, words.num_documents // 20), {}
    for place, (seen, share) in enumerate({"half": 0.5, "a tenth": 0.1}.items()):
        chosen = np.sort(rows[place * size : (place + 1) * size]).tolist()
        options = {"random_seed": seed}
        if structured is not None:
            structured, _ = pgmult.topics.split_tokens(structured, chosen, share, **options)
        words, parts[seen] = pgmult.topics.split_tokens(words, chosen, share, **options)
    return words, structured, parts


def equal(options):
    """Every model for the same seconds of a processor: gains over LDA, and over what errors are.

    Of a twentieth of the documents half of the words are held out, of another nine tenths. Errors
    are over documents, paired, and over chains.
    """
    for corpus in options.corpora:
        training, structured, parts = halves_and_tenths(corpus, options.seed)
        held_out = pgmult.topics.as_corpus(sum(part.to_csr() for part in parts.values()))
        found = {"words": (unigram_log_predictive(training, held_out), 0)}
        for name, model in equal_models(options.topics, structured is not None).items():
            if name in options.models:
                data = structured if name == "STM" else training
                warm_up(model, data)
                (at,) = completion_by_seconds(
                    model, data, held_out, [options.seconds], chains=options.chains, every=2,
                    cores=1, random_seed=options.seed,
                )  # fmt: skip
                found[name] = at.score, sum(at.sweeps)
                tell(corpus, options, found, name, parts)
        for name in PEERS:
            if name in options.models and find_spec(name.split()[0]):
                found[name] = peer_by_seconds(
                    name, training, held_out, options.seconds, options.topics, range(options.chains)
                )
                tell(corpus, options, found, name, parts)


def of_documents(score, part):
    """The score of those documents whose held-out tokens stand in `part`."""
    chosen = part.totals > 0
    return replace(
        score, by_unit=np.where(chosen, score.by_unit, 0.0), totals=part.totals,
        by_chain=np.where(chosen, score.by_chain, 0.0),
    )  # fmt: skip


def tell(corpus, options, found, name, parts):
    score, sweeps = found[name]
    for seen, part in parts.items():
        own = of_documents(score, part)
        reference = of_documents(found.get("LDA", found[name])[0], part)
        gain = "" if score is found.get("LDA", (None,))[0] else f"  {own.gain_over(reference)}"
        print(
            f"{corpus} K={options.topics} {options.seconds:g} s x {options.chains} {seen:8s}"
            f" {name:13s} {sweeps:6d} sweeps {own.log_predictive:8.4f}, chains"
            f" {own.chains.mean():.4f} ± {own.chains.std(ddof=1):.4f}{gain}",
            flush=True,
        )


MODELS = ["LDA", "SB-CTM", "LN-CTM", "STM", *PEERS]

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["equal"])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument(
        "--corpora", choices=CORPORA, nargs="+", default=["ap", "messages", "docstrings"]
    )
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    equal(chosen)
