"""Windows of days, weeks and months: the operators against the definition, the definition against polars.

Berlin, 2024-03-31: the clocks go from 02:00 to 03:00, so this day has 23 hours
Berlin, 2024-10-27: they go from 03:00 back to 02:00, so this day has 25 hours
"""

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_check import check_against_oracle, runs
from plan.catalogue import SCHEMA, AsOperator, a, payloads
from plan.test_ends_of_time import moved

import cedr
from cedr import reference as ref
from cedr.columnar.calendar import cells_of, instants
from cedr.reference.windows import calendar_cell
from cedr.temporal import INF, MIN, Insert, QueryError, Row
from cedr.temporal.calendar import DAY, Calendar

ZONES = ["Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kathmandu", "America/New_York", "UTC"]
HOUR = 3_600_000_000
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
counted = cedr.source("s", {"v": int}, vs="t")


def us(*when, zone="UTC"):
    return (dt.datetime(*when, tzinfo=ZoneInfo(zone)) - EPOCH) // dt.timedelta(microseconds=1)


def table(zone="UTC", hours="7h"):
    """Two years around changes of the clocks."""
    times = pl.datetime_range(dt.datetime(2023, 1, 1), dt.datetime(2025, 1, 1), hours, time_zone="UTC", eager=True)
    return pl.DataFrame({"t": times.dt.convert_time_zone(zone), "v": range(len(times))})


# --- against an independent program --------------------------------------------------------------------------------


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(
    ("size", "every"), [("1 day", "1d"), ("1 week", "1w"), ("1 month", "1mo"), ("3 months", "3mo"), ("1 year", "1y")]
)
def test_tumbling_as_polars_has_it(zone, size, every):
    data = table(zone)
    found = counted.tumbling(size, zone=zone).agg(n=cedr.count(), v=cedr.sum("v")).run(data).table()
    start = pl.col("t").dt.truncate(every)
    expected = data.group_by(vs=start).agg(n=pl.len().cast(pl.Int64), v=pl.sum("v")).sort("vs")
    assert found.drop("ve").rows() == expected.rows()
    assert found["vs"].to_list()[1:] == found["ve"].to_list()[:-1]


def test_hopping_as_polars_has_it():
    data = table("Europe/Berlin")
    found = counted.hopping("7 days", "1 day", zone="Europe/Berlin").agg(v=cedr.sum("v")).run(data).table()
    windows = data.group_by_dynamic("t", every="1d", period="7d").agg(pl.sum("v"))
    ends = dict(zip(windows["t"].dt.offset_by("7d"), windows["v"], strict=True))
    whole = found.filter(pl.col("ve") >= min(ends))  # polars has no windows that begin before the first row
    assert dict(whole.select("ve", "v").rows()) == ends


def test_days_in_berlin_have_23_or_25_hours_when_the_clocks_change():
    found = counted.tumbling("1 day", zone="Europe/Berlin").agg(n=cedr.count()).run(table()).table()
    hours = {
        vs.astimezone(ZoneInfo("Europe/Berlin")).date(): (ve - vs) // dt.timedelta(hours=1)
        for vs, ve in found.select("vs", "ve").rows()
    }
    assert {day for day, n in hours.items() if n == 23} == {dt.date(2023, 3, 26), dt.date(2024, 3, 31)}
    assert {day for day, n in hours.items() if n == 25} == {dt.date(2023, 10, 29), dt.date(2024, 10, 27)}


# --- against the definition ----------------------------------------------------------------------------------------

GRIDS = st.builds(
    Calendar,
    st.sampled_from(ZONES),
    st.sampled_from(["day", "week", "month"]),
    st.integers(1, 5),
    st.integers(1, 4),
    st.sampled_from([0, HOUR * 5 // 2, 6 * HOUR, 3 * DAY, 40 * DAY]),
)
NEAR_CHANGES = st.one_of(
    st.sampled_from([us(2024, 3, 31), us(2024, 10, 27), us(2018, 11, 4), us(2023, 12, 31, 23)]).flatmap(
        lambda t: st.integers(t - 3 * HOUR, t + 4 * HOUR)
    ),
    st.integers(us(1900, 1, 1), us(2100, 1, 1)),
    st.integers(MIN, INF - 1),
)


@settings(max_examples=settings.default.max_examples * 3)
@given(grid=GRIDS, times=st.lists(NEAR_CHANGES, min_size=1, max_size=5))
def test_the_cell_of_a_time_is_the_last_that_began(grid, times):
    cells = cells_of(grid, np.array(times))
    assert cells.tolist() == [calendar_cell(t, grid) for t in times]
    begins, ends = instants(grid, cells), instants(grid, cells + 1)
    assert ((begins <= times) & (times < ends)).all()


PLACES = {"spring": us(2024, 3, 30, 22), "autumn": us(2024, 10, 26, 21), "year": us(2023, 12, 31, 12)}
WINDOWS = {
    "tumbling": (
        lambda a, g: a.tumbling("1 day", offset=g.offset, zone=g.zone),
        Calendar("Europe/Berlin", "day", 1, 1, 2 * HOUR),
    ),
    "hopping": (lambda a, g: a.hopping("2 weeks", "1 week", zone=g.zone), Calendar("Europe/Berlin", "week", 1, 2)),
    "months": (lambda a, g: a.hopping("1 year", "6 months", zone=g.zone), Calendar("America/New_York", "month", 6, 2)),
}


@pytest.mark.parametrize("name", [*WINDOWS, "chop"])
@given(data=st.data(), place=st.sampled_from(sorted(PLACES)))
def test_windows_and_their_progress(name, data, place):
    """Times are hours here, so that streams reach over the change of the clocks."""
    chops = name == "chop"
    arrivals, restore_at = data.draw(runs(payloads, 1, max_size=5, infinite=not chops, adjusts=not chops))
    arrivals = [(port, list(moved(elements, lambda t: PLACES[place] + t * HOUR))) for port, elements in arrivals]
    if chops:
        stream, grid = a().chop("1 day", zone="Europe/Berlin"), Calendar("Europe/Berlin", "day", 1)
        oracle = lambda h: ref.chop(h, grid)  # noqa: E731
    else:
        build, grid = WINDOWS[name]
        stream = build(a(), grid).group_by("m").agg(n=cedr.count())
        oracle = lambda h: ref.aggregate(ref.calendar_windows(h, grid), by=["m"], n=ref.count())  # noqa: E731
    check_against_oracle(lambda: AsOperator(stream), oracle, arrivals, [SCHEMA], restore_at)


# --- as users write it ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "stream"),
    [
        ("TUMBLING 1 day ZONE 'Europe/Berlin'", counted.tumbling("1 day", zone="Europe/Berlin")),
        (
            "TUMBLING 1 week ZONE 'America/New_York' OFFSET 6 days",
            counted.tumbling("1 week", "6 days", zone="America/New_York"),
        ),
        ("HOPPING 1 year EVERY 3 months ZONE 'UTC'", counted.hopping("1 year", "3 months", zone="UTC")),
    ],
)
def test_the_language_has_the_same_windows(text, stream):
    query = cedr.query(f"EVENT q SELECT COUNT(*) AS n FROM s {text}", counted)
    data = table(hours="31h")
    assert query.run(data).table().equals(stream.agg(n=cedr.count()).run(data).table())


def test_elements_count_microseconds_since_1970():
    found = a().tumbling("1 day", zone="Asia/Kathmandu").run([Insert(us(2024, 1, 1), us(2024, 1, 2), Row(m=0, v=0))])
    (event,) = found.history()
    assert (event.vs, event.ve) == (us(2024, 1, 1, zone="Asia/Kathmandu"), us(2024, 1, 2, zone="Asia/Kathmandu"))


def test_far_dates_have_days_too():
    grid = Calendar("Europe/Berlin", "day", 1)
    for cell in (-(10**8), 10**8, 3 * 10**6):
        start, end = grid.point(cell), grid.point(cell + 1)
        assert cells_of(grid, np.array([start, end - 1])).tolist() == [cell, cell]
        assert (end - start) / HOUR in (23, 24, 25)


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (lambda: counted.tumbling("1 month"), "months differ in length; give the time zone"),
        (lambda: counted.chop("1 year"), "months differ in length; give the time zone"),
        (lambda: counted.tumbling("1 day", zone="Europe/Berln"), "'Europe/Berln'; did you mean 'Europe/Berlin'"),
        (lambda: counted.tumbling("5h", zone="UTC"), "size is '5h'; with a zone it is a whole number of days"),
        (lambda: counted.hopping("1 month", "1 week", zone="UTC"), "both be months or years, or both days or weeks"),
        (lambda: counted.hopping("10 days", "1 week", zone="UTC"), "the size must be a multiple of the hop"),
        (
            lambda: counted.tumbling("1 day", zone="UTC").run(pl.DataFrame({"t": [1], "v": [1]})),
            "source 's' has whole numbers as times, and windows of 1 day in UTC require their unit",
        ),
    ],
)  # fmt: skip
def test_mistakes(build, problem):
    with pytest.raises(QueryError, match=problem):
        build()
