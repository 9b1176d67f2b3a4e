"""Topic models on the Associated Press corpus: sweep times, held-out curves, starts, peers.

Needs the corpus (PGMULT_DATA, or a download); tomotopy is timed beside where it is installed.

    python tests/benchmarks/topics.py parts --topics 50   # one sweep, part by part, and peers
    python tests/benchmarks/topics.py curve --topics 50   # held-out score against seconds
    python tests/benchmarks/topics.py equal --marks 5 10 20 40 --seeds 0 1 2  # all, the same CPU s
    python tests/benchmarks/topics.py agreement --seeds 0  # own and shared starts: what chains say
    python tests/benchmarks/topics.py starts --topics 50  # collapsed sweeps to start from
    python tests/benchmarks/topics.py variational --topics 50  # coordinate ascent and minibatches

Protocol: the 4,000 most frequent terms; 112 test documents whose first half (`--observed`) of
shuffled tokens joins training; document completion averaged over posterior draws. `--corpus nips11`
takes the articles of NIPS instead, `--corpus docstrings` those of numpy and scipy.
"""

import argparse
import os
import re
import subprocess
import time
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import scipy.sparse

import pgmult
from pgmult.compiled.rows import row_threads
from pgmult.core.scores import paired_difference
from pgmult.datasets import associated_press, demo_corpus, state_of_the_union
from pgmult.sampling.diagnostics import ess_bulk, r_hat
from pgmult.topics.scores.completion import completion_score, unigram_log_predictive
from pgmult.topics.scores.timed import completion_by_seconds
from pgmult.topics.updates.allocation import allocate_tokens, sample_topics
from pgmult.topics.updates.swing import swing_psi


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
    return pgmult.datasets.corpus_from_texts(
        [" ".join(sorted(lines)) for lines in texts.values()], min_documents=5
    )


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


def best(function, repeats=15):
    """Seconds of the quickest of several calls, after one call to compile."""
    function()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def tomotopy_documents(model, corpus):
    for d in range(corpus.num_documents):
        entries = slice(corpus.indptr[d], corpus.indptr[d + 1])
        tokens = np.repeat(corpus.words[entries], corpus.counts[entries])
        model.add_doc([str(w) for w in tokens])
    model.train(1, workers=1)
    return model


def parts(options):
    training, _ = ap_split(options.observed)
    model = pgmult.topics.CorrelatedTopics(options.topics)
    link = model.link()
    rng = np.random.default_rng(options.seed)
    state = model.init(rng, training)
    for _ in range(30):
        state = model.step(rng, state, training)

    def allocate():
        theta = model.theta(state, training)
        return allocate_tokens(rng, training, theta, state.topics)

    counts, word_counts = allocate()
    blocks = {
        "z (with theta)": allocate,
        "topics": lambda: sample_topics(rng, model.word_concentration, word_counts),
        "psi": lambda: swing_psi(rng, link, state.psi, counts, state.mu, state.Sigma),
        "mu, Sigma": lambda: model.gaussian.condition(state.psi).sample(rng),
        "whole sweep": lambda: model.step(rng, state, training),
        "log likelihood": lambda: model.log_likelihood(state, training),
    }
    print(f"K = {options.topics}, {training}, milliseconds on {options.threads} thread(s)")
    with row_threads(options.threads):
        for name, block in blocks.items():
            print(f"  {name:16s} {1e3 * best(block):8.2f}", flush=True)
    softmax = pgmult.topics.LogisticNormalTopics(options.topics)
    state = softmax.init(rng, training)
    for _ in range(30):
        state = softmax.step(rng, state, training)
    blocks = {
        "LN-CTM psi": lambda: softmax._sample_psi(rng, state, state.topic_counts, training),
        "LN-CTM sweep": lambda: softmax.step(rng, state, training),
    }
    with row_threads(options.threads):
        for name, block in blocks.items():
            print(f"  {name:16s} {1e3 * best(block):8.2f}", flush=True)
    for name, lda in {
        "LDA, collapsed": pgmult.topics.LDA(options.topics),
        "LDA, eta learned": pgmult.topics.LDA(options.topics, word_concentration=None),
        "LDA, uncollapsed": pgmult.topics.models.UncollapsedLDA(options.topics),
    }.items():
        start = lda.init(rng, training)
        for _ in range(30):
            start = lda.step(rng, start, training)
        with row_threads(options.threads):
            seconds = best(lambda m=lda, s=start: m.step(rng, s, training))
        print(f"  {name:16s} {1e3 * seconds:8.2f}", flush=True)
    if find_spec("tomotopy"):
        import tomotopy

        peers = {
            "tomotopy LDA": (tomotopy.LDAModel(k=options.topics, eta=0.05, seed=1), 10, 3),
            "tomotopy CT": (tomotopy.CTModel(k=options.topics, eta=0.05, seed=1), 4, 1),
        }
        for name, (peer, iterations, repeats) in peers.items():
            tomotopy_documents(peer, training)
            seconds = best(lambda p=peer, n=iterations: p.train(n, workers=1), repeats)
            seconds /= iterations
            print(f"  {name:16s} {1e3 * seconds:8.2f}", flush=True)


def run(model, training, held_out, seconds, seed, burn_in=0.3):
    """Sweeps and held-out score at growing times, each over the draws after its first 30 %."""
    rng = np.random.default_rng(seed)
    model.step(rng, model.init(rng, training), training)  # compile
    clock = time.perf_counter
    begin = clock()
    state = model.init(rng, training)
    marks = [seconds * share for share in (0.1, 0.2, 0.35, 0.5, 0.7, 1.0)]
    windows = {mark: pgmult.topics.scores.DocumentCompletion(held_out, every=3) for mark in marks}
    sweeps = 0
    for mark in marks:
        while clock() - begin < mark:
            state = model.step(rng, state, training)
            sweeps += 1
            passed = clock() - begin
            for end, completion in windows.items():
                if burn_in * end < passed <= end:
                    completion(Sweep(model, training, state, sweeps))
        yield mark, sweeps, windows[mark]


def run_peer(peer, training, held_out, seconds, iterations, burn_in=0.3):
    """As `run`, for a tomotopy model: its clock counts training only."""
    present = np.flatnonzero(training.totals)  # it drops empty documents
    tomotopy_documents(peer, training)
    columns = [int(word) for word in peer.used_vocabs]
    draws, passed, count = [], 0.0, 0
    for mark in [seconds * share for share in (0.1, 0.2, 0.35, 0.5, 0.7, 1.0)]:
        while passed < mark:
            begin = time.perf_counter()
            peer.train(iterations, workers=1)
            passed += time.perf_counter() - begin
            count += iterations
            theta = np.full((training.num_documents, peer.k), 1.0 / peer.k)
            theta[present] = [document.get_topic_dist() for document in peer.docs]
            topics = np.zeros((peer.k, training.num_words))
            topics[:, columns] = [peer.get_topic_word_dist(k) for k in range(peer.k)]
            draws.append((passed, theta, topics))
        window = [(theta, topics) for at, theta, topics in draws if burn_in * mark < at <= passed]
        yield mark, count, completion_score(window, held_out)


def curve(options):
    training, held_out = ap_split(options.observed)
    print(f"unigram {unigram_log_predictive(training, held_out)}")
    for name, model in (
        ("SB-CTM", pgmult.topics.CorrelatedTopics(options.topics)),
        ("LN-CTM", pgmult.topics.LogisticNormalTopics(options.topics)),
        ("LDA, alpha learned", pgmult.topics.LDA(options.topics)),
        ("LDA, both learned", pgmult.topics.LDA(options.topics, word_concentration=None)),
        ("LDA, uncollapsed", pgmult.topics.models.UncollapsedLDA(options.topics)),
    ):
        for seed in options.seeds:
            for mark, sweeps, completion in run(model, training, held_out, options.seconds, seed):
                if completion.num_draws:
                    score = completion.score()
                    print(f"{name:20s} seed {seed} {mark:6.1f} s {sweeps:5d} sweeps {score}")
    if find_spec("tomotopy"):
        import tomotopy

        settings = {"k": options.topics, "eta": 0.05}
        for seed in options.seeds:
            for name, peer, iterations in (
                ("tomotopy LDA", tomotopy.LDAModel(**settings, seed=seed + 1), 10),
                ("tomotopy CT", tomotopy.CTModel(**settings, seed=seed + 1), 1),
            ):
                peer_run = run_peer(peer, training, held_out, options.seconds, iterations)
                for mark, count, score in peer_run:
                    print(f"{name:20s} seed {seed} {mark:6.1f} s {count:5d} sweeps {score}")


def starts(options):
    training, held_out = ap_split(options.observed)
    for start_sweeps in (0, 5, 30, 100):
        model = pgmult.topics.CorrelatedTopics(options.topics, start_sweeps=start_sweeps)
        for seed in options.seeds:
            line = [  # the first mark may pass during the start
                f"{mark:.0f} s {completion.log_predictive:.3f}"
                for mark, _, completion in run(model, training, held_out, options.seconds, seed)
                if completion.num_draws
            ]
            print(f"start_sweeps {start_sweeps:3d} seed {seed}: " + ", ".join(line), flush=True)


def equal_models(num_topics):
    """By name; the first is what the others are compared with."""
    return {
        "LDA": pgmult.topics.LDA(num_topics),
        "SB-CTM": pgmult.topics.CorrelatedTopics(num_topics),
        "LN-CTM": pgmult.topics.LogisticNormalTopics(num_topics),
        "LDA, eta learned": pgmult.topics.LDA(num_topics, word_concentration=None),
    }


def warm_up(model, training):
    few = pgmult.topics.as_corpus(training.to_csr()[:60])
    for _ in range(2):  # where the start compiles for longer than this, no sweep is made
        completion_by_seconds(model, few, few, [0.01, 0.1])


def peer_by_seconds(peer, training, held_out, marks, burn_in=0.5):
    """As `completion_by_seconds`, for a tomotopy model: seconds of the process while it trains."""
    test = np.flatnonzero(held_out.totals)
    present = np.cumsum(training.totals > 0) - 1  # it drops empty documents
    tomotopy_documents(peer, training)
    columns = [int(word) for word in peer.used_vocabs]
    documents = list(peer.docs)
    draws, passed = [], 0.0
    while passed < marks[-1]:
        begin = time.process_time()
        peer.train(1, workers=1)
        passed += time.process_time() - begin
        if any(burn_in * mark < passed <= mark for mark in marks):
            theta = np.full((training.num_documents, peer.k), 1.0 / peer.k)
            theta[test] = [documents[present[d]].get_topic_dist() for d in test]
            topics = np.full((peer.k, training.num_words), 1e-12)
            topics[:, columns] = [peer.get_topic_word_dist(k) for k in range(peer.k)]
            draws.append((passed, probabilities(theta, topics, held_out)))
    for mark in marks:
        window = [probs for at, probs in draws if burn_in * mark < at <= mark]
        if window:
            yield mark, len(window), score_of(np.mean(window, axis=0), held_out)


def probabilities(theta, topics, held_out):
    rows = np.repeat(np.arange(held_out.num_documents), np.diff(held_out.indptr))
    return np.einsum("ik,ki->i", theta[rows], topics[:, held_out.words])


def score_of(probs, held_out):
    """Summed log probability of each document's tokens."""
    sums = np.concatenate([[0.0], np.cumsum(held_out.counts * np.log(probs))])
    return np.diff(sums[held_out.indptr])


def equal(options):
    """Every model for the same seconds of a processor; gains over LDA, paired by document."""
    rows = {}
    for seed in options.seeds:
        training, held_out = split_of(options.corpus, options.observed, seed)
        by_name = {}
        for name, model in equal_models(options.topics).items():
            if name not in options.models:
                continue
            warm_up(model, training)
            for at in completion_by_seconds(
                model, training, held_out, options.marks, every=2, random_seed=seed
            ):
                by_name[name, at.seconds] = at.score.by_unit, sum(at.sweeps)
            tell(options, seed, name, by_name, held_out)
        if find_spec("tomotopy"):
            import tomotopy

            settings = {"k": options.topics, "eta": 0.05, "seed": seed + 1}
            for name, kind in (
                ("tomotopy LDA", tomotopy.LDAModel),
                ("tomotopy CT", tomotopy.CTModel),
            ):
                if name in options.models:
                    peer = kind(**settings)
                    for mark, count, found in peer_by_seconds(
                        peer, training, held_out, options.marks
                    ):
                        by_name[name, mark] = found, count
                    tell(options, seed, name, by_name, held_out)
        for key in by_name:
            rows.setdefault(key, []).append(compared(by_name, key, held_out))
    print(f"gain over LDA, mean of {len(options.seeds)} splits ± its standard error over them")
    for (name, mark), gains in rows.items():
        values = np.array([gain for _, gain, _ in gains])
        error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
        level = np.mean([level for level, _, _ in gains])
        print(f"{name:17s} {mark:5.0f} s  {level:8.4f}  {values.mean():+.4f} ± {error:.4f}")


def compared(by_name, key, held_out):
    found, reference = by_name[key][0], by_name.get(("LDA", key[1]), by_name[key])[0]
    level = found.sum() / held_out.num_tokens
    return level, *paired_difference(found, reference, held_out.totals)


def tell(options, seed, name, by_name, held_out):
    for mark in options.marks:
        if (name, mark) in by_name:
            level, gain, error = compared(by_name, (name, mark), held_out)
            print(
                f"{options.corpus} K={options.topics} observed {options.observed:g} split {seed}"
                f" {name:17s} {mark:5.0f} s {by_name[name, mark][1]:6d} sweeps {level:8.4f}"
                f" {gain:+.4f} ± {error:.4f}",
                flush=True,
            )


def agreement(options):
    """What several chains say, from own and from shared starts."""
    for seed in options.seeds:
        training, held_out = split_of(options.corpus, options.observed, seed)
        for starts in ("own", "shared"):
            model = pgmult.topics.CorrelatedTopics(options.topics)
            completion = pgmult.topics.scores.DocumentCompletion(held_out, every=2)
            begin = time.process_time()
            posterior = pgmult.sample(
                model, training, starts=starts, draws=options.draws, tune=options.draws, chains=4,
                random_seed=seed, callback=completion, progressbar=False,
            )  # fmt: skip
            seconds = time.process_time() - begin
            score = completion.score()
            found = pgmult.topics.topic_stability(posterior)
            values = posterior.sample_stats["log_likelihood"]
            within = [values[c : c + 1] for c in range(len(values))]
            print(
                f"{options.corpus} K={options.topics} split {seed} {starts}: {found.headline}"
                f" ({found.breakdown}), mean TV {found.mean_distance.mean():.2f};"
                f" log likelihood R-hat {r_hat(values):.2f}, ESS {ess_bulk(values):.0f}; within"
                f" chains R-hat at most {max(r_hat(v) for v in within):.2f}, ESS at least"
                f" {min(ess_bulk(v) for v in within):.0f} of {values.shape[1]}; pooled {score},"
                f" chains {np.round(score.chains, 3).tolist()}; {seconds:.0f} CPU s",
                flush=True,
            )


def variational(options):
    training, held_out = ap_split(options.observed)
    model = pgmult.topics.CorrelatedTopics(options.topics)
    fits = {
        "fit_cavi": lambda seed: pgmult.topics.fits.fit_cavi(
            model, training, random_seed=seed, cores=cores
        ),
        "fit_svi": lambda seed: pgmult.topics.fits.fit_svi(
            model, training, random_seed=seed, cores=cores
        ),
    }
    cores = options.threads
    for name, fit in fits.items():
        fit(0)  # compile
        for seed in options.seeds:
            begin = time.perf_counter()
            q = fit(seed)
            seconds = time.perf_counter() - begin
            documents = q.infer(training)
            score = completion_score([(documents.theta(), q.topics)], held_out)
            bound = q.bound(documents).total
            print(
                f"{name:9s} seed {seed} {seconds:6.1f} s {q.num_updates:4d} updates"
                f" bound {bound:.0f} {score}",
                flush=True,
            )


COMMANDS = {
    "parts": parts, "curve": curve, "starts": starts, "equal": equal, "agreement": agreement,
    "variational": variational,
}  # fmt: skip
MODELS = ["LDA", "LDA, eta learned", "SB-CTM", "LN-CTM", "tomotopy LDA", "tomotopy CT"]

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=COMMANDS)
    parser.add_argument("--corpus", choices=CORPORA, default="ap")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--marks", type=float, nargs="+", default=[5.0, 10.0, 20.0, 40.0])
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--observed", type=float, default=0.5)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    COMMANDS[chosen.what](chosen)
