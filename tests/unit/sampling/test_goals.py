"""Runs that end once they are worth so many draws, or after some time."""

import io
import math
import time

import numpy as np
import pytest
from chain_models import Normal, same, values

import pgmult
from pgmult.core.typing import traits_of
from pgmult.sampling import _progress, goals
from pgmult.sampling.goals import Goal, Trace, as_goal, most_are_worth
from pgmult.sampling.labels import match_rows
from pgmult.sampling.store import RunReader, rectangle

pytestmark = pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
DATA = values()
GIVEN = {"model": Normal(), "data": DATA}


def drawn(draws=400, **options):
    given = {"tune": 10, "chains": 3, "random_seed": 5, "progressbar": False} | options
    return pgmult.sample(Normal(), DATA, draws=draws, **given)


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("400ess", Goal("400ess", 400.0, math.inf)),
        (" 90 s ", Goal("90 s", math.inf, 90.0)),
        ("0.5min", Goal("0.5min", math.inf, 30.0)),
        ("2h", Goal("2h", math.inf, 7200.0)),
        (" settled", Goal("settled", 100.0, math.inf, settles=True)),
    ],
)
def test_goals_are_read(text, goal):
    assert as_goal(text) == goal
    assert as_goal(None) is None


@pytest.mark.parametrize("until", ["soon", "400", "-3min", "0ess", 400, "3 days"])
def test_what_is_no_goal_is_refused(until):
    with pytest.raises(ValueError, match="until must be a number of effective draws or a time"):
        drawn(until=until)


def test_looks_grow_by_a_quarter_up_to_all_draws():
    assert list(as_goal("9ess").looks(120)) == [50, 62, 78, 98, 120]
    assert list(as_goal("9ess").looks(20)) == [20]
    assert list(as_goal("9s").looks(120)) == [120]
    settled = as_goal("settled").of(traits_of(Normal()), 4)
    assert list(settled.looks(400)) == [200, 250, 312, 391, 400]
    assert list(settled.looks(120)) == [120]


def test_models_say_what_settled_draws_are_worth():
    class Slow(Normal):
        ess_targets, least_draws = {"mean": 40.0, "scale": 10.0}, 30

    settled = as_goal("settled").of(traits_of(Slow()), 4)
    assert settled.worth == 40.0
    assert settled.shares == {"mean": 0.25, "scale": 1.0}
    assert list(settled.looks(60)) == [30, 38, 47, 59, 60]


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_a_run_stops_at_a_look_and_its_draws_are_the_first_of_a_long_one(cores):
    whole, some = drawn(), drawn(until="150ess", cores=cores)
    assert some.num_draws in (50, 62, 78, 98, 122)
    assert some.attrs["draws"] == some.num_draws
    assert some.attrs["until"] == "150ess"
    for name in whole:
        np.testing.assert_array_equal(some[name], whole[name][:, : some.num_draws])


def test_more_is_asked_more_is_drawn_and_what_is_not_reached_is_said():
    few, many = drawn(until="100ess"), drawn(until="600ess")
    assert few.num_draws < many.num_draws < 400
    with pytest.warns(UserWarning, match=r"until='9000ess' was not reached: 60 draws a chain"):
        assert drawn(60, until="9000ess").num_draws == 60


@pytest.mark.parametrize("cores", [1, 3])
def test_a_settled_run_is_worth_a_hundred_draws_a_chain_and_says_why_it_ended(cores, tmp_path):
    some = drawn(1000, until="settled", cores=cores)
    assert some.num_draws in (200, 250, 312, 391, 488)
    assert some.attrs["ended"] == (
        "as soon as the main results were worth 300 independent draws (1,000 draws a chain at most)"
    )
    drawn(120, store=tmp_path / "run")  # cut short, and gone on with
    stored = pgmult.resume(
        tmp_path / "run", draws=1000, until="settled", progressbar=False, **GIVEN
    )
    assert same(stored, some)
    with pytest.warns(UserWarning, match="until='settled' was not reached: 20 draws a chain"):
        few = drawn(20, until="settled")
    assert few.attrs["ended"] == (
        "at the most draws that it was allowed, before its goal (settled): worth 51 independent"
        " ones, not 300"
    )


def test_chains_that_keep_to_their_modes_are_settled_once_their_likelihood_is_level():
    rng = np.random.default_rng(0)
    level, rising = (Trace("log_likelihood", 2, labelled=False) for _ in range(2))
    for draw in range(200):
        for chain in range(2):
            value = -1e5 - 3e3 * chain + 20.0 * rng.standard_normal()
            level.add(chain, np.array(value))
            rising.add(chain, np.array(value + (10.0 * draw if chain else 0.0)))
    assert level.is_level(200)
    assert not level.agrees(200), "they are of different modes"
    assert not rising.is_level(200), "one chain is enough"
    assert not level.is_level(3)
    agreed = Trace("log_likelihood", 2, labelled=False)
    for _ in range(200):
        for chain in range(2):
            agreed.add(chain, rng.standard_normal())
    assert agreed.agrees(200)


class Moded(Normal):
    """Normal draws whose labels mean something within a chain only."""

    many_modes, reported_names = True, ("mean",)

    def reported(self, draw):
        return np.outer(np.repeat(draw["mean"], 4), [1.0, 2.0])

    def label_probs(self, state, data):
        return np.eye(2)


def test_what_the_report_shows_must_be_worth_fifty_draws_where_chains_stay_in_modes(
    tmp_path, monkeypatch
):
    rng = np.random.default_rng(0)
    values = rng.standard_normal((2, 200, 8, 2))
    both = match_rows(np.stack([np.eye(3)[:2], np.eye(3)[[1, 0]]]))
    assert most_are_worth(50.0, values, both)
    drifting = values + 0.05 * np.arange(200)[:, None, None]
    assert not most_are_worth(50.0, drifting, both)
    apart = values + np.reshape([0.0, 3.0], (2, 1, 1, 1))
    assert not most_are_worth(50.0, apart, both), "chains disagree"
    swapped = values + np.array([[0.0, 9.0], [9.0, 0.0]])[:, None, None]
    assert most_are_worth(50.0, swapped, both), "but for the names of labels"
    other = match_rows(np.stack([np.eye(3)[:2], np.eye(3)[[0, 2]]]))
    apart = values + np.array([[0.0, 0.0], [0.0, 9.0]])[:, None, None]
    assert most_are_worth(50.0, apart, other), "another label is not compared"
    assert not most_are_worth(50.0, values[:, :3], both)
    monkeypatch.setattr(goals, "_LEVEL", 10.0)
    options = {"tune": 10, "chains": 2, "random_seed": 5, "progressbar": False}
    run = pgmult.sample(Moded(), DATA, draws=4000, until="settled", **options)
    assert "most numbers had 50 effective draws" in run.attrs["ended"]
    pgmult.sample(Moded(), DATA, draws=20, store=tmp_path / "run", **options)
    resumed = pgmult.resume(
        tmp_path / "run", draws=4000, until="settled", progressbar=False, model=Moded(), data=DATA
    )
    assert same(resumed, run), "what was stored counts as well"


def test_a_stored_run_stops_there_too_and_goes_on(tmp_path):
    memory = drawn(until="150ess")
    stored = drawn(until="150ess", store=tmp_path / "run")
    assert same(memory, stored)
    assert same(stored, pgmult.load(tmp_path / "run", model=Normal()))
    more = pgmult.resume(tmp_path / "run", draws=200, progressbar=False, **GIVEN)
    assert same(more, drawn(200))


def test_a_run_that_was_cut_short_stops_where_it_would_have(tmp_path):
    drawn(20, store=tmp_path / "run")
    found = pgmult.resume(tmp_path / "run", draws=400, until="150ess", progressbar=False, **GIVEN)
    assert same(found, drawn(until="150ess"))


@pytest.mark.filterwarnings("ignore:.* chains left out")  # where the machine has other work
def test_time_ends_a_run_and_its_length_is_written_down(tmp_path):
    began = time.monotonic()
    found = drawn(10**6, until="0.3s", store=tmp_path / "run", cores=1)
    assert time.monotonic() - began < 20.0
    assert 1 <= found.num_draws < 10**6
    assert found.num_draws <= found.attrs["draws"] < 10**6
    kept = [RunReader(tmp_path / "run").counters(chain).kept for chain in range(3)]
    assert min(kept) > 0, "chains that wait for a thread have their share of the time"
    chains, _ = rectangle(kept)
    longest = found.attrs["draws"] + 1000
    more = pgmult.resume(tmp_path / "run", draws=longest, progressbar=False, **GIVEN)
    for name in found:
        np.testing.assert_array_equal(more[name][chains, : found.num_draws], found[name])


def test_every_chain_has_a_draw_however_short_the_time():
    assert drawn(until="0.000001s", tune=30).num_draws >= 1


def test_a_trace_is_worth_what_its_least_entry_is():
    rng = np.random.default_rng(0)
    trace = Trace("x", 2, labelled=False)
    for _ in range(200):
        for chain in range(2):
            trace.add(chain, rng.standard_normal(5))
    assert 200 < trace.worth() < 600
    assert math.isnan(Trace("x", 2, labelled=False).worth())
    apart = [Trace("x", 2, labelled) for labelled in (False, True)]
    for _ in range(200):
        for chain in range(2):
            value = rng.standard_normal(3) + 10.0 * chain
            for one in apart:
                one.add(chain, value)
    assert apart[0].worth() < 10.0, "chains that differ are worth little"
    assert apart[1].worth() > 200.0, "unless their labels differ"


def test_the_line_counts_towards_the_goal(monkeypatch):
    log, clock = io.StringIO(), [0.0]
    monkeypatch.setattr(_progress.sys, "stderr", log)
    monkeypatch.setattr(_progress.time, "monotonic", lambda: clock[0])
    progress = _progress.Progress(9000, goal=as_goal("400ess"))
    for second in range(0, 130, 5):
        clock[0] = float(second)
        progress.show(second, [], "sampling", worth=lambda: 132.4)
    line, *_ = log.getvalue().splitlines()
    assert "at most " in line
    assert line.endswith("worth 132 of 400 independent draws")
