"""`to_arviz` gives what the installed ArviZ takes: InferenceData of 0.x, DataTree of 1.x."""

import sys
import warnings

import numpy as np
import pytest

from pgmult.sampling.posterior import Posterior


@pytest.fixture(scope="module")
def arviz():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("arviz")


@pytest.fixture
def posterior():
    rng = np.random.default_rng(0)
    return Posterior(
        {
            "level": rng.normal(size=(4, 50)),
            "cov": rng.normal(size=(4, 50, 2, 2)),
            "size": rng.integers(0, 9, size=(4, 50, 3)),
        },
        dims={"level": (), "cov": ("side", "side"), "size": ("group",)},
        coords={"side": ["left", "right"]},
        sample_stats={"log_likelihood": rng.normal(size=(4, 50))},
        attrs={
            "model": "Model()",
            "seconds": [1.0, 2.0, 3.0, 4.0],
            "start_facts": [{"support": [0.5, 1.0]}],
        },
    )


def test_draws_dims_coords_and_attributes(arviz, posterior):
    data = posterior.to_arviz()
    group = data["posterior"]
    for name in posterior:
        np.testing.assert_array_equal(group[name].values, posterior[name])
    assert group["cov"].dims == ("chain", "draw", "side", "side_2")
    assert group["side"].values.tolist() == group["side_2"].values.tolist() == ["left", "right"]
    assert group["group"].values.tolist() == [0, 1, 2]
    assert group.attrs["model"] == "Model()"
    assert group.attrs["seconds"] == [1.0, 2.0, 3.0, 4.0]
    assert group.attrs["start_facts"] == '[{"support": [0.5, 1.0]}]'  # files hold nothing nested
    stats = data["sample_stats"]["total_log_likelihood"]
    np.testing.assert_array_equal(stats.values, posterior.sample_stats["log_likelihood"])


def test_arviz_can_work_with_it(arviz, posterior):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = arviz.summary(posterior.to_arviz(), round_to="none", kind="all")
    assert len(table) == 1 + 4 + 3
    mean = posterior["level"].mean()
    assert float(table.loc["level", "mean"]) == pytest.approx(mean, rel=1e-6)
    ours = posterior.summary()
    place = ours.rows.index("level")
    for column in ("ess_bulk", "r_hat"):  # the tail that 1.x looks at is another
        assert float(table.loc["level", column]) == pytest.approx(ours[column][place], rel=1e-6)


def test_says_what_to_install(posterior, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match=r"pip install 'pgmult\[arviz\]'"):
        posterior.to_arviz()
