"""Local times over a change of clocks, with their zone and without it."""

import warnings
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

import pgmult
from pgmult.sequences.data.tables import future_of, sequences_of
from pgmult.sequences.data.times import shown_twice

BERLIN, LONDON, ATHENS = "Europe/Berlin", "Europe/London", "Europe/Athens"
NEW_YORK, CHICAGO, SYDNEY = "America/New_York", "America/Chicago", "Australia/Sydney"
SPRING = {
    BERLIN: "2024-03-31", LONDON: "2021-03-28", ATHENS: "2023-03-26", NEW_YORK: "2024-03-10",
    CHICAGO: "1998-04-05", SYDNEY: "2024-10-06",
}  # fmt: skip
AUTUMN = {
    BERLIN: "2024-10-27", LONDON: "2021-10-31", ATHENS: "2023-10-29", NEW_YORK: "2024-11-03",
    CHICAGO: "1998-10-25", SYDNEY: "2024-04-07",
}  # fmt: skip
CHANGES = [("forward", *each) for each in SPRING.items()]
CHANGES += [("back", *each) for each in AUTUMN.items()]
STEPS = {"h": 60, "15min": 15, "30min": 30}


def local_times(day, zone, minutes, number=None):
    """Two days and more of times as a zone's clocks show them, from noon before a change."""
    first = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone)) - timedelta(hours=12)
    first = first.astimezone(ZoneInfo("UTC"))
    number = 48 * 60 // minutes if number is None else number
    times = [first + timedelta(minutes=minutes * i) for i in range(number)]
    shown = [time.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for time in times]
    return np.array(shown, dtype="datetime64[s]"), np.datetime64(first.replace(tzinfo=None))


def file_of(tmp_path, times, who=None):
    file = tmp_path / "t.csv"
    who = np.zeros(len(times), dtype=int) if who is None else who
    rows = [f"{at},{'uv'[i % 2]},{s}" for i, (at, s) in enumerate(zip(times, who, strict=True))]
    file.write_text("\n".join(["at,s,who", *rows]))
    return file


def steps_of(table, every, sequence=None):
    return sequences_of(table, symbol="s", time="at", every=every, sequence=sequence)


@pytest.mark.parametrize("every", STEPS)
@pytest.mark.parametrize(("where", "zone", "day"), CHANGES)
def test_a_change_of_clocks_is_told_and_a_zone_mends_it(tmp_path, where, zone, day, every):
    times, first = local_times(day, zone, STEPS[every])
    file = file_of(tmp_path, times)
    with pytest.warns(UserWarning, match=f"clocks are set {where} .* and no zone: .*time_zone="):
        steps_of(pgmult.read(file), every)
    with pytest.warns(UserWarning, match="steps are counted in UTC"):
        data = steps_of(pgmult.read(file, time_zone=zone), every)
    assert data.totals.tolist() == [1] * len(times)
    assert data.symbols.tolist() == [i % 2 for i in range(len(times))]
    assert data.times([0], [0])[0] == first


@pytest.mark.filterwarnings("ignore:.*steps are counted in UTC")
@pytest.mark.parametrize("turn", ["several", "backwards", "sorted", "two rows a step", "shuffled"])
def test_the_order_of_rows_tells_the_second_hour(tmp_path, turn):
    times, _ = local_times(AUTUMN[BERLIN], BERLIN, 15)
    who = np.zeros(len(times), dtype=int)
    if turn == "several":
        times, who = np.repeat(times, 3), np.tile(np.arange(3), len(times))
    elif turn == "backwards":
        times = times[::-1]
    elif turn == "sorted":
        times = np.sort(times)
    elif turn == "two rows a step":
        times, who = np.repeat(times, 2), np.repeat(who, 2)
    else:
        times = np.random.default_rng(0).permutation(times)
    file = file_of(tmp_path, times, who)
    data = steps_of(pgmult.read(file, time_zone=BERLIN), "15min", "who")
    rows = 2 if turn == "two rows a step" else 1
    assert data.totals.tolist() == [rows] * (len(times) // rows)
    with pytest.warns(UserWarning, match="twice the rows in the hour from 2024-10-27T02:00:00"):
        steps_of(pgmult.read(file), "15min", "who")


@pytest.mark.filterwarnings("ignore:.*steps are counted in UTC")
def test_what_rows_do_not_tell_is_said(tmp_path):
    times, _ = local_times(AUTUMN[BERLIN], BERLIN, 15)
    times = np.random.default_rng(0).permutation(np.delete(times, 60))  # 02:00, shown once
    with pytest.warns(UserWarning, match="does not show which are the second ones"):
        steps_of(pgmult.read(file_of(tmp_path, times), time_zone=BERLIN), "15min")


def without(times, *hours):
    return times[~np.isin(times.astype("datetime64[h]"), np.array(hours, dtype="datetime64[h]"))]


HOURS = np.arange("2024-03-28", "2024-04-04", dtype="datetime64[h]").astype("datetime64[s]")
QUIET = {
    "days": (np.arange("2024-01-01", "2024-12-31", dtype="datetime64[D]"), "day"),
    "a row a day": (HOURS[::24], "h"),
    "every three hours": (HOURS[::3], "3h"),
    "utc": (HOURS, "h"),
    "an hour that lacks elsewhere": (without(HOURS, "2024-03-30T02", "2024-03-31T09"), "h"),
    "an hour that lacks every day": (HOURS[np.arange(len(HOURS)) % 24 != 2], "h"),
    "steps without an order": (
        np.datetime64("2024-03-30", "s") + np.random.default_rng(3).integers(0, 2 * 86400, 60), "h",
    ),
    "an hour with two rows a step, as all": (np.repeat(HOURS, 2), "h"),
    "rows that are one step": (HOURS, "day"),
}  # fmt: skip


@pytest.mark.parametrize("kind", QUIET)
def test_other_times_are_left_alone(kind):
    times, every = QUIET[kind]
    table = {"at": times, "s": [["u", "v"][i % 2] for i in range(len(times))]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        steps_of(table, every)


def test_years_of_a_zone_have_no_hole(tmp_path):
    times, _ = local_times("2019-01-02", NEW_YORK, 60, 6 * 8766)
    table = {"at": times, "s": ["u", "v"] * (len(times) // 2)}
    with pytest.warns(UserWarning, match="steps are counted in UTC"):
        data = steps_of(pgmult.read(table, time_zone=NEW_YORK), "h")
    assert data.totals.tolist() == [1] * len(times)


def test_times_that_a_zone_has_not_are_refused(tmp_path):
    file = file_of(tmp_path, ["2024-03-31 01:30", "2024-03-31 02:30"])
    with pytest.raises(ValueError, match=r"clocks of Europe/Berlin skip 2024-03-31T02:30"):
        steps_of(pgmult.read(file, time_zone=BERLIN), "30min")


@pytest.mark.filterwarnings("ignore:.*steps are counted in UTC")
def test_rows_ahead_are_those_of_the_zone(tmp_path):
    times, _ = local_times(SPRING[BERLIN], BERLIN, 60, 24)
    table = pgmult.read(file_of(tmp_path, times), time_zone=BERLIN)
    data = steps_of(table[:13], "h")
    assert future_of(data, table[13:], 11)["at"].values.tolist() == times[13:].tolist()


def test_days_and_months_need_no_clock(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("day,month\n2024-03-31,2024-03\n2024-10-27,2024-10\n")
    table = pgmult.read(file, time_zone="America/Santiago")
    assert table.cells["day"].east is None
    assert table.cells["month"].east is None


def test_gaps_and_jitter_do_not_hide_the_second_hour():
    times, _ = local_times(AUTUMN[NEW_YORK], NEW_YORK, 10)
    seconds = times.astype(np.int64) + np.random.default_rng(1).integers(0, 60, len(times))
    kept = np.delete(np.arange(len(times)), [3, 70, 83, 90])
    start = np.datetime64("2024-11-03T01:00:00").astype(np.int64)
    hour = np.where((seconds >= start) & (seconds < start + 3600), 0, -1)[kept]
    second, unsure = shown_twice(seconds[kept], np.zeros(len(kept), dtype=np.int64), hour)
    assert not unsure.any()
    assert second.tolist() == ((hour == 0) & (kept >= 84)).tolist()


@pytest.mark.parametrize(
    ("times", "every", "message"),
    [
        (["08:15", "08:20"], None, "'08:15' at row 0 .a time of day needs its date"),
        (["08:15", "08:20"], "5min", "'08:15' at row 0 .a time of day needs its date"),
        (["Mon", "Tue"], "day", "'Mon' at row 0 .dates are written"),
        (["2020-01-06", "2020-01-07", "tomorrow"], "day", "'tomorrow' at row 2 .dates are written"),
    ],
)
def test_times_that_are_no_dates_are_named(times, every, message):
    table = {"t": times, "s": ["a", "b", "a"][: len(times)]}
    with pytest.raises(ValueError, match=message):
        pgmult.read(table).sequences("s", time="t", every=every)
