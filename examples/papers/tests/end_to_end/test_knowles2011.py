"""The figure and tables of Knowles and Minka (2011) are made, here for a few halves of Iris."""

import re
from argparse import Namespace

import numpy as np
import pytest

from examples.papers.knowles2011.probit import probit_probs
from pgmult.sampling.diagnostics import mcse_mean


@pytest.fixture
def scripts(paper_scripts):
    return paper_scripts("knowles2011")


def run(scripts, capsys, *tables, **options):
    defaults = {
        "splits": 2, "methods": ["quadratic", "tilted", "bohning"], "out": None,
        "repetitions": 100, "data": ["iris"], "draws": 150,
    }  # fmt: skip
    scripts["tables"].main(Namespace(tables=tables, **(defaults | options)))
    return capsys.readouterr().out


@pytest.mark.slow
def test_errors_of_the_bounds(scripts, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    printed = run(scripts, capsys, "figure2", out=tmp_path)
    by_variance, by_classes, by_spread = (
        {float(line.split()[0]): [float(cell) for cell in line.split()[1:4]] for line in table}
        for table in (part.splitlines()[1:] for part in printed.strip().split("\n\n"))
    )
    for at_one in (by_variance[1.0], by_classes[10.0], by_spread[1.0]):  # all three the same
        assert at_one == by_variance[1.0]
        log, tilted, quadratic = at_one
        assert tilted < log < quadratic
    log, tilted, quadratic = by_variance[100.0]
    assert quadratic < tilted < log
    assert (tmp_path / "figure2.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_iris(scripts, capsys, shared_data, monkeypatch):
    monkeypatch.setenv("PGMULT_DATA", str(shared_data("uci").parent))
    printed = run(scripts, capsys, "iris")
    bounds = dict(re.findall(r"^(quadratic|tilted|bohning) +(-\d+\.\d) ±", printed, re.MULTILINE))
    assert float(bounds["tilted"]) == pytest.approx(-30.5, abs=3.5)  # the paper: -31.2
    assert float(bounds["quadratic"]) == pytest.approx(-64.9, abs=6.0)  # the paper: -65
    assert float(bounds["bohning"]) == pytest.approx(-40.6, abs=4.0)


@pytest.mark.slow
def test_accuracy(scripts, capsys, shared_data, monkeypatch):
    monkeypatch.setenv("PGMULT_DATA", str(shared_data("uci").parent))
    printed = run(scripts, capsys, "accuracy")
    assert all(float(worst) < 1.1 for worst in re.findall(r"R-hat at most ([\d.]+)", printed))
    rows = re.findall(r"^(\w[\w, ]*?)  +(\d.*)$", printed, re.MULTILINE)
    table = {name: [float(cell) for cell in cells.split()] for name, cells in rows}
    error, ratio, _, of_differences, of_probs, _ = table["tilted, full"]
    assert error < 0.05
    assert ratio == pytest.approx(0.98, abs=0.05)
    assert of_differences == pytest.approx(0.96, abs=0.05)
    assert of_probs < 0.004 < table["laplace, full"][4] < table["quadratic, class"][4]
    assert table["tilted, class"][1] == pytest.approx(0.80, abs=0.05)
    assert table["quadrature"][1] == pytest.approx(0.98, abs=0.1)  # of sticks
    assert table["jaakkola_jordan"][1] < 0.9
    assert table["variational Bayes"][1] < 0.45


@pytest.mark.slow
def test_without_data(scripts, capsys, monkeypatch):
    monkeypatch.delenv("PGMULT_DATA", raising=False)
    assert "left out" in run(scripts, capsys, "glass")


@pytest.mark.parametrize("rows", ["softmax_rows", "probit_rows"])
def test_gradients_of_the_long_chains(scripts, rows):
    chains = scripts["long_chains"]
    rng = np.random.default_rng(0)
    x, labels = rng.standard_normal((9, 2)), rng.integers(0, 3, 9)
    density = chains.posterior(x, labels, 3, getattr(chains, rows))
    weights, step = rng.standard_normal((4, 6)), 1e-5
    for j, shift in enumerate(step * np.eye(6)):
        slope = (density(weights + shift)[0] - density(weights - shift)[0]) / (2.0 * step)
        np.testing.assert_allclose(density(weights)[1][:, j], slope, atol=1e-4)


def test_probit_of_the_long_chains(scripts):
    chains = scripts["long_chains"]
    psi = 2.0 * np.random.default_rng(0).standard_normal((50, 4))
    exact = probit_probs(psi, np.zeros(50))
    np.testing.assert_allclose(chains.probit_probs(psi.T[None])[0].T, exact, atol=1e-5)


@pytest.mark.parametrize("rows", ["softmax_rows", "probit_rows"])
def test_long_chains_have_the_moments_of_a_grid(scripts, rows):
    chains = scripts["long_chains"]
    x, labels = np.array([[1.0], [2.0], [-0.5]]), np.array([0, 0, 1])
    density = chains.posterior(x, labels, 2, getattr(chains, rows))
    axis = np.linspace(-6.0, 6.0, 121)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    share = np.exp(density(grid)[0])
    share /= share.sum()
    draws = chains.hamiltonian(np.random.default_rng(0), density, np.zeros(2), np.eye(2), 500)

    def scores(share):
        features = [lambda w: w, lambda w: w * w, lambda w: w[..., :1] * w[..., 1:]]
        return np.concatenate(
            [(f(draws).mean(axis=(0, 1)) - share @ f(grid)) / mcse_mean(f(draws)) for f in features]
        )

    assert np.abs(scores(share)).max() < 4.0
    flat = np.exp(density(grid)[0] + 0.05 * (grid * grid).sum(axis=1))  # another prior
    assert np.abs(scores(flat / flat.sum())).max() > 6.0


@pytest.mark.slow
def test_figure1(scripts, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    figures = scripts["figures"]
    mean, var, x, density = figures.exact_toy(-5.0, 10.0)  # sigma(x) N(x | -v / 2, v) is even
    assert mean == pytest.approx(0.0, abs=1e-9)
    assert np.sum(x**2 * density) * (x[1] - x[0]) == pytest.approx(var, rel=1e-9)
    assert figures.toy("quadrature", 0.0, 1.0) == pytest.approx((0.413, 0.911**2), abs=2e-3)
    figures.main(Namespace(figures=["figure1"], out=tmp_path))
    assert (tmp_path / "figure1.png").read_bytes().startswith(b"\x89PNG")
    assert "m = 0, v = 10: exact 2.206 2.266, quadratic 1.922" in capsys.readouterr().out


@pytest.mark.slow
def test_figure3(scripts, capsys, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    figures = scripts["figures"]
    monkeypatch.setattr(figures, "SIZES", (20, 500))
    monkeypatch.setattr(figures, "NOISES", (0.0,))
    figures.main(
        Namespace(figures=["figure3"], out=tmp_path, classes=[2, 4], sets=3, rows=20, draws=300)
    )
    assert (tmp_path / "figure3.png").read_bytes().startswith(b"\x89PNG")
    two, _, four, _ = capsys.readouterr().out.split("classes, ")[1:]
    of_two, of_four = (
        {
            name: float(last)
            for name, last in re.findall(r"^(\w[\w ,]*?) {2,}.* (-?[\d.]+)$", table, re.MULTILINE)
        }
        for table in (two, four)
    )
    for table in (of_two, of_four):
        assert table["error, tilted"] == pytest.approx(table["error, exact"], rel=0.1)
    assert of_four["log density, tilted"] > of_four["log density, log"] + 0.3
    assert of_two["iterations as in the paper, tilted"] < 20
    assert of_two["iterations as in the paper, log"] > 50
    assert of_four["error, quadratic"] > 2.0 * of_four["error, exact"]
