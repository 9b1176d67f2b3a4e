"""Topic models on the Associated Press corpus: sweep times, held-out curves, starts, peers.

Needs the corpus (PGMULT_DATA, or a download); tomotopy is timed beside where it is installed.

    python tests/benchmarks/topics.py parts --topics 50   # one sweep, part by part, and peers
    python tests/benchmarks/topics.py curve --topics 50   # held-out score against seconds
    python tests/benchmarks/topics.py gain --observed 0.1 --seconds 60 --seeds 3  # over LDA
    python tests/benchmarks/topics.py starts --topics 50  # collapsed sweeps to start from
    python tests/benchmarks/topics.py variational --topics 50  # coordinate ascent and minibatches

Protocol: the 4,000 most frequent terms; 112 test documents whose first half (`--observed`) of
shuffled tokens joins training; document completion averaged over posterior draws.
"""

import argparse
import time
from importlib.util import find_spec

import numpy as np

import pgmult
from pgmult.compiled.rows import row_threads
from pgmult.core.scores import paired_difference
from pgmult.datasets import associated_press
from pgmult.topics.scores.completion import completion_score, unigram_log_predictive
from pgmult.topics.updates.allocation import allocate_tokens
from pgmult.topics.updates.sticks import sample_sticks
from pgmult.topics.updates.words import sample_topics


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


def ap_split(observed, seed=0):
    corpus = frequent_words(associated_press())
    return pgmult.topics.split_tokens(corpus, 112, observed, random_seed=seed)


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
        "psi": lambda: sample_sticks(rng, link, state.psi, counts, state.mu, state.Sigma),
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
        "LN-CTM psi": lambda: softmax._sample_psi(rng, state, state.topic_counts),
        "LN-CTM sweep": lambda: softmax.step(rng, state, training),
    }
    with row_threads(options.threads):
        for name, block in blocks.items():
            print(f"  {name:16s} {1e3 * best(block):8.2f}", flush=True)
    for name, lda in {
        "LDA, collapsed": pgmult.topics.LDA(options.topics),
        "LDA, eta learned": pgmult.topics.LDA(options.topics, word_concentration=None),
        "LDA, uncollapsed": pgmult.topics.UncollapsedLDA(options.topics),
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
    windows = {mark: pgmult.topics.DocumentCompletion(held_out, every=3) for mark in marks}
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
        ("LDA, uncollapsed", pgmult.topics.UncollapsedLDA(options.topics)),
    ):
        for seed in range(options.seeds):
            for mark, sweeps, completion in run(model, training, held_out, options.seconds, seed):
                if completion.num_draws:
                    score = completion.score()
                    print(f"{name:20s} seed {seed} {mark:6.1f} s {sweeps:5d} sweeps {score}")
    if find_spec("tomotopy"):
        import tomotopy

        settings = {"k": options.topics, "eta": 0.05}
        for seed in range(options.seeds):
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
        for seed in range(options.seeds):
            line = [  # the first mark may pass during the start
                f"{mark:.0f} s {completion.log_predictive:.3f}"
                for mark, _, completion in run(model, training, held_out, options.seconds, seed)
                if completion.num_draws
            ]
            print(f"start_sweeps {start_sweeps:3d} seed {seed}: " + ", ".join(line), flush=True)


def gain(options):
    """SB-CTM over LDA with alpha learned, paired by document, a split a seed."""
    for seed in range(options.seeds):
        training, held_out = ap_split(options.observed, seed)
        scores = []
        for model in (
            pgmult.topics.CorrelatedTopics(options.topics),
            pgmult.topics.LDA(options.topics),
        ):
            *_, (_, _, completion) = run(model, training, held_out, options.seconds, seed)
            scores.append(completion.score())
        by_document = [score.by_document for score in scores]
        difference, error = paired_difference(*by_document, held_out.totals)
        print(
            f"split {seed}: SB-CTM {scores[0]}, LDA {scores[1]},"
            f" gain {difference:+.4f} ± {error:.4f}",
            flush=True,
        )


def variational(options):
    training, held_out = ap_split(options.observed)
    model = pgmult.topics.CorrelatedTopics(options.topics)
    fits = {
        "fit_cavi": lambda seed: pgmult.topics.fit_cavi(
            model, training, random_seed=seed, cores=cores
        ),
        "fit_svi": lambda seed: pgmult.topics.fit_svi(
            model, training, random_seed=seed, cores=cores
        ),
    }
    cores = options.threads
    for name, fit in fits.items():
        fit(0)  # compile
        for seed in range(options.seeds):
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["parts", "curve", "starts", "gain", "variational"])
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--observed", type=float, default=0.5)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    commands = {
        "parts": parts, "curve": curve, "starts": starts, "gain": gain, "variational": variational,
    }  # fmt: skip
    commands[chosen.what](chosen)
