"""Examples: what their pages show is what their commands print, and on Spark it is the same.

Four of them, scenarios of the papers' introductions, also run step by step, and are compared with the oracle.
"""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from runtime.spark.conftest import spark as spark
from shown_commands import follow

from cedr import INF, MIDDLE, STRONG, Event, History, Row, canonical, testing
from cedr import reference as ref
from cedr.job.job import read
from cedr.job.local import LocalAnswer
from cedr.job.on_spark import SparkAnswer
from cedr.job.sinks import JobSink
from cedr.recording.changelog import read_changelog
from cedr.recording.history import canonical_table, known_at
from cedr.temporal.stream import data

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*/step_by_step.py"))
PAGES = sorted(EXAMPLES.glob("*/README.md"))
JOBS = sorted(EXAMPLES.glob("*/job.toml"))


def load(name: str):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / name / "step_by_step.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def history(table: pl.DataFrame) -> History:
    """A table with `vs` and `ve` as events."""
    return History(
        Event(row.pop("vs"), INF if (ve := row.pop("ve")) is None else ve, Row(row)) for row in table.to_dicts()
    )


def name_of(path: Path) -> str:
    return path.parent.name


@pytest.fixture
def checkout(tmp_path):
    """The examples next to the command, as in a checkout; what they write stays here."""
    for name in ("cedr", ".venv"):
        (tmp_path / name).symlink_to(EXAMPLES.parent / name)
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("out", "*.checkpoint"))
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_shows_what_its_commands_print(page, checkout):
    assert follow(page, checkout) >= 1


def test_every_example_is_in_the_list():
    listed = re.findall(r"\]\((\w+)/README\.md\)", (EXAMPLES / "README.md").read_text())
    assert sorted(listed) == [name_of(page) for page in PAGES]
    assert len(PAGES) == 10


@pytest.mark.parametrize("job", JOBS, ids=name_of)
def test_the_same_on_spark(job, checkout, spark):
    """Streaming, file by file, as a batch, and in this process: the same canonical history."""
    made = read(checkout / "examples" / name_of(job) / "job.toml")
    (sink,) = made.sinks.values()
    local = LocalAnswer(made, JobSink(sink.name, sink.statement))
    for _ in local.steps():
        pass
    running = SparkAnswer(made, sink, spark, once=True, close=True).running
    running.await_termination()
    recorded = canonical_table(known_at(read_changelog(sink.target), None), INF)
    assert recorded.equals(local.result.table())
    assert recorded.height > 0
    assert running.late().height == local.result.late().height
    if not local.result.late().height:  # to a batch nothing comes late
        stream = made.stream(sink)
        files = {source.name: source.files for source in made.read_by(stream)}
        batch = pl.DataFrame(stream.batch(spark, files).toArrow())
        assert_frame_equal(batch, recorded, check_row_order=False, check_dtypes=False)


def test_these_run_step_by_step():
    assert [name_of(script) for script in SCRIPTS] == ["maintenance", "outages", "stocks", "web_traffic"]


@pytest.mark.parametrize("script", SCRIPTS, ids=name_of)
def test_an_example_prints_what_its_text_shows(script):
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout == script.with_suffix(".txt").read_text()


# --- system maintenance --------------------------------------------------------------------------------------------


def expected_alerts(maintenance) -> History:
    inputs = {"patched": [], "came_up": []}
    for _, source, elements in maintenance.ARRIVALS:
        inputs[source] += data(elements)
    deadlines = ref.alter_lifetime(canonical(inputs["patched"]), start=lambda e: e.vs + 10)
    return ref.anti_join(deadlines, ref.sliding(canonical(inputs["came_up"]), 10), lambda p, q: p.machine == q.machine)


@pytest.mark.parametrize("level", [STRONG, MIDDLE])
def test_system_maintenance_ends_with_the_right_alerts(level):
    maintenance = load("maintenance")
    *_, (_, last) = maintenance.answers(maintenance.alerts.with_consistency(level))
    testing.assert_same(history(last.table()), expected_alerts(maintenance))
    assert last.table()["machine"].to_list() == ["db1"]


def test_a_strong_alert_is_never_taken_back():
    maintenance = load("maintenance")
    strong = maintenance.alerts.with_consistency(STRONG)
    changes = [change for _, result in maintenance.answers(strong) for change in result.changelog()["change"]]
    assert changes == ["insert"]


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
    ticker = load("stocks")
    last = ticker.answers()[-1]
    *in_time, (_, too_late) = ticker.ARRIVALS
    readings = canonical([e for _, elements in in_time for e in elements])
    days = ref.tumbling(readings, 24)
    expected = ref.aggregate(days, by=["symbol"], average=ref.avg("price"), n=ref.count())
    testing.assert_same(history(last.table()), expected)
    assert last.late()["reason"].to_list() == ["forgotten"] * len(too_late)


def test_stock_ticker_repairs_the_average_when_the_correction_comes():
    ticker = load("stocks")
    average = pl.col("average").filter((pl.col("vs") == 0) & (pl.col("symbol") == "ACME"))
    averages = [result.table().select(average).item() for result in ticker.answers()]
    assert averages == [10.0, 60.0, 60.0, *[10.5] * 5]


# --- outages -------------------------------------------------------------------------------------------------------


def reports(outages, office: str, arrivals) -> History:
    closed_by_all = [
        (hour, zone) for name, hour, zones in arrivals if name == office and zones != outages.OVER for zone in zones
    ]
    return History(Event(hour, hour + 1, Row(zone=zone, hour=hour)) for hour, zone in closed_by_all)


def expected_outages(outages, arrivals) -> History:
    monitors, phones, announced = (reports(outages, name, arrivals) for name in ("monitors", "phones", "announced"))
    return ref.difference(ref.distinct(ref.union(monitors, phones)), announced)


def hours_over(outages, arrivals) -> set[int]:
    """The hours that all three offices have closed."""
    closed = [{hour for name, hour, report in arrivals if (name, report) == (o, outages.OVER)} for o in outages.OFFICES]
    return set.intersection(*closed)


def test_outages_of_an_hour_are_emitted_when_all_offices_have_closed_it_and_not_before():
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
