"""Draws with named axes: access, tables, and the way to disk and back."""

import pickle

import numpy as np
import pytest
from toy_models import NormalModel, Numbers

import pgmult
from pgmult.sampling import diagnostics
from pgmult.sampling.convergence import chains_in_words
from pgmult.sampling.posterior import Posterior

SIDES = ["left", "right"]


@pytest.fixture
def posterior():
    rng = np.random.default_rng(1)
    return Posterior(
        {
            "level": rng.normal(size=(3, 40)),
            "cov": rng.normal(size=(3, 40, 2, 2)).astype(np.float32),
            "size": rng.integers(0, 9, size=(3, 40, 5)),
        },
        dims={"level": (), "cov": ("side", "side")},
        coords={"side": SIDES},
        sample_stats={"log_likelihood": rng.normal(size=(3, 40))},
        attrs={"model": "Model()", "seconds": [1.0, 2.0, 3.0]},
    )


def test_is_a_mapping_with_named_axes(posterior):
    assert list(posterior) == ["level", "cov", "size"]
    assert len(posterior) == 3
    assert "cov" in posterior
    assert posterior.dims["cov"] == ("chain", "draw", "side", "side")
    assert posterior.dims["size"] == ("chain", "draw", "size_dim_0")
    assert posterior.coords["side"].tolist() == SIDES
    assert posterior.coords["size_dim_0"].tolist() == [0, 1, 2, 3, 4]
    assert (posterior.num_chains, posterior.num_draws) == (3, 40)
    assert repr(posterior).splitlines() == [
        "<Posterior: 3 chains x 40 draws",
        "  level  ()",
        "  cov    (side: 2, side: 2)",
        "  size   (size_dim_0: 5)>",
    ]


def test_unknown_names(posterior):
    with pytest.raises(KeyError, match="no variable 'x'; kept: level, cov, size"):
        posterior["x"]
    with pytest.raises(KeyError, match=r"it is in posterior\.sample_stats"):
        posterior["log_likelihood"]
    with pytest.raises(ValueError, match="var_names must be one of level, cov, size, log_lik"):
        posterior.summary(["level", "x"])


def test_each_draw_in_memory_and_on_disk(posterior, tmp_path, monkeypatch):
    monkeypatch.setattr("pgmult.sampling.store.FLUSH_BYTES", 1000)  # several files a chain
    posterior.save(tmp_path / "run")
    stored = pgmult.load(tmp_path / "run")
    for draws in (posterior, stored):
        found = list(draws.each("cov", 2))
        np.testing.assert_array_equal(found, posterior["cov"][2])
        assert found[0].dtype == np.float32
    assert stored["cov"].shape == (3, 40, 2, 2)
    np.testing.assert_array_equal(list(stored.each("cov", 1)), posterior["cov"][1])
    with pytest.raises(ValueError, match="name must be one of level"):
        stored.each("x")


@pytest.mark.parametrize(("chain", "error"), [(3, ValueError), (-1, ValueError), (1.0, TypeError)])
def test_each_of_a_chain_that_is_not_there(posterior, tmp_path, chain, error):
    """Refused at the call, not at the first draw, in memory as on disk."""
    posterior.save(tmp_path / "run")
    for draws in (posterior, pgmult.load(tmp_path / "run")):
        with pytest.raises(error, match=r"chain must be (at most 2|at least 0|an integer)"):
            draws.each("cov", chain)


@pytest.mark.parametrize("limit", [0, -3])
def test_summary_of_less_than_one_entry(posterior, limit):
    with pytest.raises(ValueError, match=f"max_entries must be at least 1, got {limit}"):
        posterior.summary(max_entries=limit)


def test_a_variable_without_entries(posterior, tmp_path):
    """Such as predictions at no new inputs: nothing to summarise, nothing to complain of."""
    level = np.random.default_rng(0).normal(size=(4, 1000))
    dims = {"new": ("place", "side"), "level": ()}
    both = Posterior({"new": np.zeros((4, 1000, 0, 2)), "level": level}, dims=dims)
    both.save(tmp_path / "run")
    for draws in (both, pgmult.load(tmp_path / "run")):
        table = draws.summary()
        assert table.rows == ("level",)
        assert str(table).splitlines()[-1] == "(new: no entries)"
        assert len(draws.summary("new")) == 0
        assert "no entries" in str(draws.summary("new"))
        assert draws.convergence_problems() == ""
        assert draws["new"].shape == (4, 1000, 0, 2)


def test_shapes_and_dtypes_outlive_a_save_without_draws(posterior, tmp_path):
    """Also of an axis without entries beside one with labels."""
    shapes = {"new": (2, 0, 0, 2), "size": (2, 0, 5)}
    nothing = Posterior({name: np.zeros(shape, np.int32) for name, shape in shapes.items()})
    nothing.save(tmp_path / "run")
    with pytest.warns(UserWarning, match="no draws yet"):
        again = pgmult.load(tmp_path / "run")
    for name, shape in shapes.items():
        assert (again[name].shape, again[name].dtype) == (shape, np.int32)


def test_stack_puts_chains_one_after_the_other(posterior):
    stacked = posterior.stack("cov")
    assert stacked.shape == (120, 2, 2)
    np.testing.assert_array_equal(stacked[40:80], posterior["cov"][1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draws": {}}, "at least one variable"),
        ({"draws": {"a": np.zeros((2, 3, 4))}, "dims": {"a": ()}}, r"got \(2, 3, 4\)"),
        ({"draws": {"a": np.zeros(2)}}, r"must have shape \(chain, draw\), got \(2,\)"),
        (
            {"draws": {"a": np.zeros((2, 3, 4))}, "dims": {"a": ["s"]}, "coords": {"s": [1, 2]}},
            "coords must have 4 labels of 's' to go with a, got shape",
        ),
        ({"draws": {"a": np.zeros((2, 3)), "b": np.zeros((2, 4))}}, "must have 4 labels of 'draw'"),
    ],
)
def test_bad_shapes(options, message):
    with pytest.raises(ValueError, match=message):
        Posterior(**options)


def test_summary_rows_and_numbers(posterior):
    table = posterior.summary()
    assert len(table) == 1 + 4 + 5 + 1
    assert table.rows[1:5] == (
        "cov[left, left]",
        "cov[left, right]",
        "cov[right, left]",
        "cov[right, right]",
    )
    draws = posterior["cov"][:, :, 0, 1].astype(float)
    row = table.rows.index("cov[left, right]")
    assert table["mean"][row] == pytest.approx(draws.mean(), rel=1e-12)
    assert table["sd"][row] == pytest.approx(draws.std(ddof=1), rel=1e-12)
    assert table["5%"][row] == np.quantile(draws, 0.05)
    assert table["95%"][row] == np.quantile(draws, 0.95)
    assert table["mcse_mean"][row] == diagnostics.mcse_mean(draws)
    assert table["ess_bulk"][row] == diagnostics.ess_bulk(draws)
    assert table["ess_tail"][row] == diagnostics.ess_tail(draws)
    assert table["r_hat"][row] == diagnostics.r_hat(draws)


def test_summary_is_printed_aligned(posterior):
    lines = str(posterior.summary(["level", "cov"])).splitlines()
    assert len(lines) == 6
    assert len({len(line) for line in lines}) == 1
    assert lines[0].split() == ["entry", *posterior.summary().columns]
    assert str(posterior.summary("level")).splitlines()[1].startswith("level")


def test_long_summaries_say_what_they_leave_out():
    draws = np.random.default_rng(0).normal(size=(2, 20, 3000))
    posterior = Posterior({"a": draws}, dims={"a": ("x",)})
    table = posterior.summary()
    assert len(table) == 1000
    assert table.rows[0] == "a[0]"
    assert table.rows[-1] == "a[2999]"
    lines = str(table).splitlines()
    assert len(lines) == 1 + 20 + 2
    assert lines[-2:] == [
        "(a: 1,000 of 3,000 entries, evenly spread)",
        "(a: 980 more rows in .columns and .to_dataframe())",
    ]
    assert len(posterior.summary(max_entries=None)) == 3000
    assert "500 of 3,000 entries, evenly spread" in posterior.convergence_problems()


def test_a_summary_as_a_data_frame(posterior):
    pytest.importorskip("pandas")
    table = posterior.summary()
    frame = table.to_dataframe().set_index("entry")
    assert frame.loc["cov[left, right]", "mean"] == table["mean"][2]


def test_label_dims_are_summarised_by_chain(posterior):
    labelled = Posterior(
        {"cov": posterior["cov"]}, dims={"cov": ("topic", "side")}, label_dims=frozenset({"topic"})
    )
    table = labelled.summary()
    assert table.rows[4] == "cov[0, 0] chain 1"
    assert table["mean"][4] == pytest.approx(posterior["cov"][1, :, 0, 0].mean(), rel=1e-5)
    assert len(table) == 12


def test_nan_and_stuck_values_are_named():
    draws = np.random.default_rng(0).normal(size=(4, 1000, 4))
    draws[2, 5, 1] = np.nan
    draws[:, :, 2] = np.arange(4)[:, None]
    draws[:, :, 3] = 7.0  # constant everywhere: a fact, not a problem
    text = Posterior({"a": draws}).convergence_problems()
    assert "1 are nan in some draw (a[1])" in text
    assert "1 have a split R-hat above 1.01 (worst: a[2] " in text
    assert "a[3]" not in text


def test_save_and_load(posterior, tmp_path):
    posterior.save(tmp_path / "saved")
    again = pgmult.load(tmp_path / "saved")
    assert list(again) == list(posterior)
    for name in posterior:
        assert again[name].dtype == posterior[name].dtype
        np.testing.assert_array_equal(again[name], posterior[name])
    stats = again.sample_stats["log_likelihood"]
    np.testing.assert_array_equal(stats, posterior.sample_stats["log_likelihood"])
    assert again.dims == posterior.dims
    assert again.attrs == posterior.attrs
    assert again.coords["side"].tolist() == SIDES
    assert str(again.summary()) == str(posterior.summary())
    with pytest.raises(FileExistsError, match="holds a run"):
        posterior.save(tmp_path / "saved")
    with pytest.raises(ValueError, match="no run to go on with"):
        pgmult.resume(tmp_path / "saved")


def test_save_refuses_names_that_are_no_identifiers(tmp_path):
    with pytest.raises(ValueError, match=r"must be identifiers to be saved, got '\.\./a'"):
        Posterior({"../a": np.zeros((1, 4))}).save(tmp_path / "saved")


def test_summary_from_disk_reads_no_whole_variable(posterior, tmp_path):
    """Entries are gathered part by part: the table is made before `cov` is put together."""
    posterior.save(tmp_path / "saved")
    again = pgmult.load(tmp_path / "saved")
    table = again.summary("cov", max_entries=2)
    assert table.rows == ("cov[left, left]", "cov[right, right]")
    assert again._draws._found == {}
    np.testing.assert_array_equal(again["cov"], posterior["cov"])
    assert str(again.summary("cov", max_entries=2)) == str(table)


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_draws_find_their_data(tmp_path):
    """At hand after sampling, in a run directory ever after, and never guessed."""
    model, data = NormalModel(), Numbers(np.array([0.5, 1.5]), np.zeros(2))
    options = {"draws": 3, "tune": 1, "chains": 1, "random_seed": 0, "progressbar": False}
    sampled = pgmult.sample(model, data, **options)
    pgmult.sample(model, data, store=tmp_path / "run", **options)
    assert sampled.data is data
    assert pickle.loads(pickle.dumps(sampled)).data.y.tolist() == [0.5, 1.5]
    np.testing.assert_array_equal(pgmult.load(tmp_path / "run", model=model).data.y, data.y)
    sampled.save(tmp_path / "draws")
    with pytest.raises(ValueError, match="data must be given, for these draws were saved without"):
        pgmult.load(tmp_path / "draws", model=model).data  # noqa: B018
    with pytest.raises(ValueError, match="posterior must know its model"):
        Posterior({"x": np.zeros((1, 2))}).data  # noqa: B018


@pytest.mark.parametrize("drifts", [True, False])
def test_advice_is_what_helps_chains_that_differ(drifts):
    """Longer tuning where chains are still moving; not where each has settled in its own place."""
    rng = np.random.default_rng(0)
    path = np.linspace(0.0, 20.0, 400) if drifts else np.zeros(400)
    values = rng.normal(size=(2, 400, 1)) + path[:, None] + 20.0 * np.arange(2)[:, None, None]
    posterior = Posterior({"x": values}, dims={"x": ("a",)})
    told = posterior.convergence_problems()
    assert ("tune longer" in told) is drifts
    assert ("nor more draws join them" in told) is not drifts
    verdict = chains_in_words(posterior, {"values": "x"})[0]
    assert ("tune longer" in verdict) is drifts
