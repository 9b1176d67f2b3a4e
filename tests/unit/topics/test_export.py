"""New documents, and files for other programs, of one small run with covariates."""

import csv

import numpy as np
import pytest

import pgmult
from pgmult.datasets import read
from pgmult.topics import CorrelatedTopics, StructuralTopics, as_corpus, export
from pgmult.topics import predict as transform
from pgmult.topics.fits.new_documents import align_words

pytestmark = pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
WORDS = {"sea": ["ship", "sail", "wave"], "land": ["field", "plough", "wheat"]}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    rng = np.random.default_rng(0)
    columns = {"text": [], "party": [], "who": []}
    for d in range(30):
        sea = 0.9 if d % 2 else 0.1
        kinds = rng.choice(["sea", "land"], p=[sea, 1.0 - sea], size=12)
        columns["text"].append(" ".join(rng.choice(WORDS[kind]) for kind in kinds))
        columns["party"].append("N" if d % 2 else "S")
        columns["who"].append(f"member {d % 5}")
    data = read(columns).corpus("text").with_covariates("~ party + (1 | who)")
    path = tmp_path_factory.mktemp("runs") / "run"
    pgmult.sample(
        StructuralTopics(2), data, draws=60, tune=60, chains=2, random_seed=1, progressbar=False,
        store=path, keep=(*StructuralTopics(2).default_keep, "theta"),
    )  # fmt: skip
    return pgmult.load(path)


class TestTransform:
    def test_new_documents(self, run):
        texts = ["wave wave sail ship rocket", "wheat plough wheat field", "rocket moon"]
        columns = {"t": texts, "party": ["N", "S", "N"], "who": ["new", "member 1", "also new"]}
        found = transform(run, read(columns).corpus("t"), new_levels=True)
        sea = int(np.argmax(run["topics"].mean(axis=(0, 1))[:, run.coords["word"] == "ship"]))
        assert found.topics.mean[0, sea] > 0.6 > 0.4 > found.topics.mean[1, sea]
        assert (found.tokens, found.unknown_tokens, found.unknown_words) == (11, 3, 2)
        assert found.empty == ["3"]
        assert found.new_levels == {"who": ["also new", "new"]}
        width = found.topics.upper - found.topics.lower
        assert width[2, sea] > width[1, sea], "nothing was read, and the member is new"
        words = str(found)
        assert "knows 8 of their 11 words (73%), and does not know 2 different" in words
        assert "Without a word that it knows: 1 (3)." in words
        assert "New to the run, of who: 2 (also new, new)." in words

    def test_new_levels_are_asked_for(self, run):
        columns = {"t": ["wave sail"], "party": ["N"], "who": ["membre 1"]}
        corpus = read(columns).corpus("t")
        with pytest.raises(
            ValueError, match=r"'who' must be one of member 0.*got 'membre 1'.*new_levels=True"
        ):
            transform(run, corpus)
        with pytest.raises(TypeError, match="new_levels must be True or False, got 1"):
            transform(run, corpus, new_levels=1)
        found = transform(run, corpus, new_levels=True, max_draws=4)
        assert found.new_levels == {"who": ["membre 1"]}

    def test_covariates_are_asked_for(self, run):
        plain = as_corpus(np.eye(6, dtype=int), run.coords["word"])
        with pytest.raises(ValueError, match=r"covariates must be given, .*party, who"):
            transform(run, plain)
        with pytest.raises(ValueError, match=r"'party' must be one of N, S, got 'W'"):
            transform(run, plain, {"party": "W", "who": "member 1"})
        given = transform(run, plain, {"party": "N", "who": "member 1"}, max_draws=4)
        assert given.topics.mean.shape == (6, 2)

    def test_alignment(self):
        corpus = as_corpus([[1, 2, 3], [0, 0, 4]], ["c", "x", "a"])
        aligned, words, tokens = align_words(corpus, ["a", "b", "c"], 3)
        np.testing.assert_array_equal(aligned.to_csr().toarray(), [[3, 0, 1], [4, 0, 0]])
        assert (words, tokens) == (1, 2)
        assert aligned.vocabulary.tolist() == ["a", "b", "c"]
        with pytest.raises(ValueError, match="must have the posterior's 4 words or a vocabulary"):
            align_words(as_corpus(np.eye(3)), ["a", "b", "c", "d"], 4)

    def test_covariates_of_a_run_without(self):
        posterior = pgmult.sample(
            CorrelatedTopics(2), as_corpus(2 * np.eye(4)), draws=4, tune=2, chains=1, random_seed=0,
            progressbar=False,
        )  # fmt: skip
        with pytest.raises(ValueError, match="covariates must be left out"):
            transform(posterior, as_corpus(2 * np.eye(4)), {"x": [1, 2, 3, 4]})


class TestExport:
    def test_tables(self, run, tmp_path):
        paths = export(run, tmp_path, chain=2)
        assert [path.name for path in paths] == ["topics.csv", "documents.csv"]
        with (tmp_path / "topics.csv").open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        means = run["topics"][1].mean(axis=0)
        np.testing.assert_allclose(np.array(rows)[:, 1:].astype(float).T, means, rtol=1e-5)
        assert header[0] == "word"
        with (tmp_path / "documents.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["party"] for row in rows] == ["S", "N"] * 15
        assert list(rows[0])[:4] == ["document", "party", "who", "words"]
        shares = [float(row[header[1]]) for row in rows]
        np.testing.assert_allclose(shares, run["theta"][1, :, :, 0].mean(axis=0), rtol=1e-4)

    def test_what_cannot_be_written(self, run, tmp_path):
        with pytest.raises(TypeError, match="data must be a corpus with covariates, got Corpus"):
            export(run, tmp_path, data=as_corpus(np.eye(3)))
