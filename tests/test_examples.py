"""Scenarios of the papers' introductions: each prints what its text file shows, and is right."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from cedr import INF, MIDDLE, STRONG, Event, History, Row, canonical, testing
from cedr import reference as ref
from cedr.temporal.stream import data

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))


def load(name: str):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def history(table: pl.DataFrame) -> History:
    """A table with `vs` and `ve` as events."""
    return History(
        Event(row.pop("vs"), INF if (ve := row.pop("ve")) is None else ve, Row(row)) for row in table.to_dicts()
    )


def test_these_are_the_scenarios():
    assert [script.stem for script in SCRIPTS] == ["outages", "stock_ticker", "system_maintenance", "web_traffic"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_an_example_prints_what_its_text_shows(script):
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout == script.with_suffix(".txt").read_text()


# --- system maintenance --------------------------------------------------------------------------------------------


def expected_alerts(maintenance) -> History:
    told = {"patched": [], "came_up": []}
    for _, source, elements in maintenance.ARRIVALS:
        told[source] += data(elements)
    deadlines = ref.alter_lifetime(canonical(told["patched"]), start=lambda e: e.vs + 10)
    return ref.anti_join(deadlines, ref.sliding(canonical(told["came_up"]), 10), lambda p, q: p.machine == q.machine)


@pytest.mark.parametrize("level", [STRONG, MIDDLE])
def test_system_maintenance_ends_with_the_right_alerts(level):
    maintenance = load("system_maintenance")
    *_, (_, last) = maintenance.answers(maintenance.alerts.with_consistency(level))
    testing.assert_same(history(last.table()), expected_alerts(maintenance))
    assert last.table()["machine"].to_list() == ["db1"]


def test_a_strong_alert_is_never_taken_back():
    maintenance = load("system_maintenance")
    strong = maintenance.alerts.with_consistency(STRONG)
    said = [change for _, result in maintenance.answers(strong) for change in result.changelog()["change"]]
    assert said == ["insert"]


# --- web traffic ---------------------------------------------------------------------------------------------------


def test_web_traffic_counts_what_was_not_dropped():
    traffic = load("web_traffic")
    last = traffic.answers()[-1]
    windows = ref.tumbling(hits(traffic), 10)
    dropped = last.late()
    late = History(Event(vs, ve, Row(page=p)) for vs, ve, p in dropped.select("vs", "ve", "page").iter_rows())
    assert dropped["reason"].unique().to_list() == ["forgotten"]
    testing.assert_same(history(last.table()), ref.aggregate(windows - late, by=["page"], n=ref.count()))
    assert last.table()["n"].sum() + len(late) == len(windows) == 14


def hits(traffic) -> History:
    return History(Event(second, second + 1, Row(page=page)) for batch in traffic.ARRIVALS for second, page in batch)


# --- stock ticker --------------------------------------------------------------------------------------------------


def test_stock_ticker_ends_with_the_averages_of_all_but_the_last_correction():
    ticker = load("stock_ticker")
    last = ticker.answers()[-1]
    *in_time, (_, too_late) = ticker.ARRIVALS
    readings = canonical([e for _, elements in in_time for e in elements])
    days = ref.tumbling(readings, 24)
    expected = ref.aggregate(days, by=["symbol"], average=ref.avg("price"), n=ref.count())
    testing.assert_same(history(last.table()), expected)
    assert last.late()["reason"].to_list() == ["forgotten"] * len(too_late)


def test_stock_ticker_repairs_the_average_when_the_correction_comes():
    ticker = load("stock_ticker")
    average = pl.col("average").filter((pl.col("vs") == 0) & (pl.col("symbol") == "ACME"))
    told = [result.table().select(average).item() for result in ticker.answers()]
    assert told == [10.0, 60.0, 60.0, *[10.5] * 5]


# --- outages -------------------------------------------------------------------------------------------------------


def reports(outages, office: str, arrivals) -> History:
    told = [
        (hour, zone) for name, hour, zones in arrivals if name == office and zones != outages.OVER for zone in zones
    ]
    return History(Event(hour, hour + 1, Row(zone=zone, hour=hour)) for hour, zone in told)


def expected_outages(outages, arrivals) -> History:
    monitors, phones, announced = (reports(outages, name, arrivals) for name in ("monitors", "phones", "announced"))
    return ref.difference(ref.distinct(ref.union(monitors, phones)), announced)


def hours_over(outages, arrivals) -> set[int]:
    """The hours that all three offices have closed."""
    closed = [{hour for name, hour, told in arrivals if (name, told) == (o, outages.OVER)} for o in outages.OFFICES]
    return set.intersection(*closed)


def test_outages_of_an_hour_are_told_when_all_offices_have_closed_it_and_not_before():
    outages = load("outages")
    for i, result in enumerate(outages.answers()):
        arrivals = outages.ARRIVALS[: i + 1]
        over = hours_over(outages, arrivals)
        certain = History(e for e in expected_outages(outages, arrivals) if e.payload.hour in over)
        testing.assert_same(history(result.table()), certain)


def test_an_outage_is_never_taken_back_and_hours_that_are_over_take_no_room():
    results = load("outages").answers()
    assert {change for result in results for change in result.changelog()["change"]} == {"insert"}
    assert results[-1].metrics()["state_rows"].sum() == 0
