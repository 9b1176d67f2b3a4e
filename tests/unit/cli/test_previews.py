"""Provisional pages of a run that goes on."""

import time

import numpy as np
import pytest
from chain_models import Normal, values

import pgmult
from pgmult.cli import previews
from pgmult.cli.previews import Previews, page_of_brief_run
from pgmult.core.reports import Report

pytestmark = pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
DATA = values()


def report(posterior):
    return Report("Normal", [f"{posterior.num_draws} draws", f"chains {posterior.num_chains}"])


def pages(folder, make=report):
    return Previews(folder, folder / "page.html", make, Normal(), DATA, ["mean", "var"])


def drawn(folder, page, tune=40, draws=4):
    folder.mkdir(exist_ok=True)
    return pgmult.sample(
        Normal(), DATA, draws=draws, tune=tune, chains=2, random_seed=1, progressbar=False,
        callback=page, store=folder / "run",
    )  # fmt: skip


def test_the_first_page_is_of_the_last_sweeps_and_says_so(tmp_path):
    asked = []
    page = pages(tmp_path, lambda posterior: asked.append(posterior) or report(posterior))
    drawn(tmp_path, page)
    page._write()
    (found,) = asked
    assert found["mean"].shape == (2, previews._LAST)
    assert found.sample_stats["log_likelihood"].shape == (2, previews._LAST)
    assert found.data is DATA
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"Provisional: 2 x {previews._LAST} sweeps of tuning" in text
    assert "Provisional" not in report(found).html()


def test_too_few_sweeps_or_too_large_states_make_no_page(tmp_path, monkeypatch):
    page = pages(tmp_path)
    drawn(tmp_path / "few", page, tune=0, draws=2)
    page._write()
    assert not (tmp_path / "page.html").exists()
    monkeypatch.setattr(previews, "_MOST_BYTES", 10)
    drawn(tmp_path / "large", page := pages(tmp_path))
    page._write()
    assert not (tmp_path / "page.html").exists()


def test_later_pages_are_of_stored_draws(tmp_path):
    drawn(tmp_path, None, draws=50)
    page = Previews(
        tmp_path / "run", tmp_path / "page.html", report, Normal(), DATA, ["mean", "var"]
    )
    page._write()
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Provisional: 2 x 50 draws, at" in text


def test_pages_are_written_while_it_runs_and_change_no_draw(tmp_path, monkeypatch):
    monkeypatch.setattr(previews, "_FIRST", 0.0)

    def fails(posterior):
        raise ValueError("too few draws for this")

    def slowly(page):
        def after(sweep):
            page(sweep)
            time.sleep(0.01)

        return after

    with pages(tmp_path) as page:
        found = drawn(tmp_path, slowly(page), tune=30)
    assert "Provisional" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert not page._thread.is_alive()
    with pages(tmp_path, fails) as page:
        again = drawn(tmp_path / "again", slowly(page), tune=30)
    np.testing.assert_array_equal(found["mean"], again["mean"])


def test_the_first_of_brief_runs_has_a_page(tmp_path):
    run, page = drawn(tmp_path / "run", None), tmp_path / "new" / "page.html"
    page_of_brief_run(page, report, run, "a chain")
    text = page.read_text(encoding="utf-8")
    assert "Provisional: 2 x 4 draws of a chain, the first of the models that are tried" in text

    def fails(posterior):
        raise ValueError("too few draws for this")

    page_of_brief_run(tmp_path / "none.html", fails, run, "a chain")
    assert not (tmp_path / "none.html").exists()


def test_chains_wait_for_the_first_page(tmp_path, monkeypatch):
    monkeypatch.setattr(previews, "_FIRST", 0.0)
    sweeps, meanwhile = [], []

    def slow(posterior):
        before = len(sweeps)
        time.sleep(0.3)
        meanwhile.append(len(sweeps) - before)
        return report(posterior)

    def counting(sweep):
        page(sweep)
        sweeps.append(sweep.index)
        time.sleep(0.002)

    with pages(tmp_path, slow) as page:
        drawn(tmp_path, counting, tune=200)
    assert meanwhile[0] <= 2  # either chain ends the sweep that it had begun
    assert len(sweeps) == 2 * 204
