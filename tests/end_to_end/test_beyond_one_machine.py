"""Models in blocks have the same draws on threads, processes and Dask, and wherever they go on."""

import numpy as np
import pytest
from block_models import InThisProcess, same

import pgmult
from pgmult.sequences import MultinomialLDS, as_sequences, forecast
from pgmult.topics import (
    CorrelatedTopics,
    DynamicTopics,
    StructuralTopics,
    as_corpus,
    as_timed_corpus,
    with_covariates,
)
from pgmult.topics.starts import searches

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
SETTINGS = {"draws": 3, "tune": 2, "chains": 1, "random_seed": 1, "progressbar": False}


def corpus(num_documents=330, num_words=60):
    rng = np.random.default_rng(0)
    return as_corpus(rng.poisson(0.4, size=(num_documents, num_words)))


class TestCorrelatedTopics:
    """With so many topics that linear algebra would split its work among threads of its own."""

    model = CorrelatedTopics(80, start_sweeps=2, block_rows=32)

    @pytest.fixture(scope="class")
    def here(self):
        return pgmult.sample(self.model, corpus(), cores=1, **SETTINGS)

    def on(self, folder, **more):
        return pgmult.sample(self.model, corpus(), store=folder / "run", **SETTINGS, **more)

    def test_threads(self, here, tmp_path):
        assert same(here, self.on(tmp_path, cores=2))

    @pytest.mark.parametrize("shards", [1, 2, 5])
    def test_shards(self, here, tmp_path, shards):
        assert same(here, self.on(tmp_path, cluster=InThisProcess(), shards=shards, cut=2))

    def test_processes_and_going_on_with_other_shards(self, here, tmp_path):
        def enough(sweep):
            if sweep.index == 3:
                raise InterruptedError("enough")

        with pytest.raises(InterruptedError):
            self.on(tmp_path, cluster="local", cores=2, cut=2, callback=enough)
        found = pgmult.resume(
            tmp_path / "run", cluster="local", cores=2, shards=5, cut=1, progressbar=False
        )
        assert same(here, found)

    def test_dask(self, here, tmp_path):
        distributed = pytest.importorskip("distributed")
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            assert same(here, self.on(tmp_path, cluster=client))


def problem(name):
    rng = np.random.default_rng(1)
    texts = corpus(90, 40)
    columns = {"x": rng.normal(size=90), "who": rng.choice(list("abcdef"), 90)}
    if name == "structural":
        data = with_covariates(texts, columns, "~ x + (1 | who)")
        return StructuralTopics(4, start_sweeps=2, block_rows=16), data
    if name == "dynamic":
        data = as_timed_corpus(texts, np.sort(rng.integers(0, 4, 90)))
        return DynamicTopics(3, start_sweeps=2, block_rows=16), data
    lengths = 1 + np.arange(30) % 12
    inputs = rng.normal(size=(lengths.sum(), 1))
    return MultinomialLDS(2, block_rows=4), as_sequences(
        [rng.integers(-1, 4, length) for length in lengths], inputs=inputs
    )


@pytest.mark.parametrize("name", ["correlated", "structural", "dynamic"])
def test_chains_of_a_large_corpus_start_on_workers(tmp_path, monkeypatch, name):
    monkeypatch.setattr(searches, "_LARGE", (50, 500))  # here: workers have no need to know
    monkeypatch.setattr(searches, "_MOST_TOKENS", (600, 1))
    model, data = problem(name) if name != "correlated" else (
        CorrelatedTopics(4, start_sweeps=20, block_rows=16), corpus(90, 40)
    )  # fmt: skip
    one, two = (pgmult.sample(model, data, cores=threads, **SETTINGS) for threads in (1, 2))
    assert same(one, two)
    workers = InThisProcess()
    for cluster, shards in ((workers, 3), ("local", 2)):
        found = pgmult.sample(
            model, data, store=tmp_path / f"run-{shards}", cluster=cluster, shards=shards, cores=2,
            **SETTINGS,
        )  # fmt: skip
        assert same(pgmult.sample(model, data, keep=list(found), **SETTINGS), found)
    assert [task.kind for task, _ in workers.done].count("start") == 3


@pytest.mark.parametrize("name", ["structural", "dynamic", "sequences"])
def test_other_models(tmp_path, name):
    model, data = problem(name)
    found = pgmult.sample(
        model, data, store=tmp_path / "run", cluster=InThisProcess(), shards=3, **SETTINGS
    )
    assert same(pgmult.sample(model, data, keep=list(found), **SETTINGS), found)


def test_paths_that_go_on_with_other_workers(tmp_path):
    """All blocks answer every leapfrog, wherever they are and whoever has begun."""
    model, data = problem("sequences")
    run, settings = tmp_path / "run", SETTINGS | {"draws": 6}

    def enough(sweep):
        if sweep.index == 4:
            raise InterruptedError("enough")

    with pytest.raises(InterruptedError):
        pgmult.sample(
            model, data, store=run, cluster="local", cores=2, shards=2, cut=3, callback=enough,
            **settings,
        )  # fmt: skip
    found = pgmult.resume(run, cluster="local", cores=2, shards=5, cut=1, progressbar=False)
    assert same(pgmult.sample(model, data, keep=list(found), cores=2, **settings), found)
    with pytest.raises(ValueError, match=r"must have kept last_states .*forecast\(steps, data\)"):
        forecast(found, 2, inputs=np.zeros((30, 2, 1)))
    ahead = forecast(found, 2, data, inputs=np.zeros((30, 2, 1)))
    assert ahead.mean.shape == (30, 2, 4)
    with pytest.raises(ValueError, match=r"made of all rows .* 'mean_probs'"):
        pgmult.sample(
            model, data, store=tmp_path / "other", cluster="local", keep="mean_probs", **settings
        )
