"""The demo is real: its story happens, its levels are compared, and it always cleans up."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cache
from io import StringIO
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

import cedr
from cedr.cli.demo.alerts import Alert, Alerts, changes, overloaded, repaired, updated
from cedr.cli.demo.levels import LEVELS, Batch, Figures, waits
from cedr.cli.demo.reports import ArrivedRows, pieces, reports
from cedr.cli.demo.screen import DemoPicture, WatchedBatch
from cedr.cli.demo.verdict import sentences

LONG = 600
MARK = "CEDR_DEMO_OF_TEST"


def at(second: int) -> datetime:
    return datetime(2024, 3, 1, 10) + timedelta(seconds=second)


def alert(since: int, until: int, machine: str = "m") -> Alert:
    return Alert(machine, at(since), at(until))


@cache
def emitted(level: cedr.Consistency) -> list[Alerts]:
    """The alerts before and after each piece, from the engine in this process."""
    states: list[Alerts] = [frozenset()]
    for result in overloaded().with_consistency(level).updates(iter([p.rows for p in pieces()]), close=False):
        states.append(updated(states[-1], result.changelog()))
    return states


def steps(level: cedr.Consistency) -> list[WatchedBatch]:
    states, arriving = emitted(level), pieces()
    start = datetime(1970, 1, 1)
    finals = [(piece.reached - timedelta(seconds=60) - start) // timedelta(microseconds=1) for piece in arriving]
    return [
        WatchedBatch(n, len(arriving), piece, Batch(0.5, {"cti": final}), states[n], states[n + 1])
        for n, (piece, final) in enumerate(zip(arriving, finals, strict=True))
    ]


# --- the reports -----------------------------------------------------------------------------------------------------


def test_every_demo_gets_the_same_reports():
    assert reports() == reports()


def test_reports_are_late_and_corrected_but_keep_the_promises_of_the_source_and_of_the_longer_memory():
    late = pl.concat([piece.late for piece in pieces()])
    assert late.height > 100
    assert late["corrected"].count() > 0
    assert late["late"].max() < 45 < 60


def test_each_correction_names_a_report_that_came_before_it():
    seen = set()
    for report in reports():
        if report.corrected is not None:
            assert report.corrected == report.time
            assert (report.time, report.machine, report.load) in seen
        seen.add((report.time, report.machine, report.load))


def test_the_reason_for_a_repair_names_what_came_late():
    rows = pl.DataFrame({"time": [at(12), at(21)], "machine": "m", "load": 50.0, "corrected": [None, None]})
    piece = ArrivedRows(rows.cast({"corrected": pl.Datetime("us")}), before=at(20), reached=at(21))
    assert piece.reason("m") == "the report of 10:00:12 was 8 s late"
    corrected = piece._replace(rows=piece.rows.with_columns(corrected=pl.col("time")))
    assert corrected.reason("m") == "1 report was wrong and is corrected"


# --- how alerts change ------------------------------------------------------------------------------------------------
#
# the stream has reached 20; the earlier result for the time before it is compared with the new one
#
#     0         10        20        30
#     |         |         |         |
#     .    #####.#########|###      .      was, from 5 to 23

WAS = alert(5, 23)


@pytest.mark.parametrize(
    ("now", "what", "is_repair"),
    [
        ([], ["retracted"], True),
        ([alert(5, 28)], ["continues"], False),
        ([alert(5, 21)], ["over"], False),
        ([alert(5, 15)], ["ends 8 s earlier"], True),
        ([alert(3, 23)], ["begins 2 s earlier"], True),
        ([alert(9, 23)], ["begins 4 s later"], True),
        ([WAS, alert(21, 40, "other")], ["new"], False),
        ([WAS, alert(1, 3)], ["found late"], True),
        ([WAS], [], False),
    ],
)
def test_what_happened_to_an_alert(now, what, is_repair):
    before, after = frozenset({WAS}), frozenset(now)
    assert [change.what for change in changes(before, after, at(20))] == what
    assert bool(repaired(before, after, at(20))) == is_repair


def test_two_alerts_become_one():
    before, after = frozenset({alert(1, 5), alert(9, 23)}), frozenset({alert(1, 23)})
    (change,) = changes(before, after, at(20))
    assert change.what == "2 alerts merged into one"
    assert repaired(before, after, at(20)) == {"m"}


def test_an_alert_that_ended_too_early_ends_later():
    (change,) = changes(frozenset({alert(1, 5)}), frozenset({alert(1, 9)}), at(20))
    assert change.what == "ends 4 s later"


# --- the story, from the engine in this process ----------------------------------------------------------------------


def test_the_story_has_what_the_demo_promises_and_a_reason_for_every_repair():
    seen = [(change.what, step.why(change)) for step in steps(cedr.MIDDLE) for change in step.changes]
    whats = [what for what, _ in seen]
    assert whats.count("retracted") >= 2
    for what in ("new", "continues", "begins 5 s earlier", "2 alerts merged into one"):
        assert what in whats
    for what, why in seen:
        assert bool(why) == (what not in ("new", "continues", "over"))
    assert any("corrected" in why for _, why in seen)


def test_the_levels_that_remember_enough_agree_with_all_reports_at_once():
    everything = pl.concat([piece.rows for piece in pieces()])
    table = overloaded().run(everything).table()
    right = {Alert(machine, since, until) for since, until, machine in table.iter_rows()}
    assert right
    for name, level in LEVELS.items():
        assert (emitted(level)[-1] == right) == (name != "weak (forgets at once)")


def test_strong_never_changes_the_past():
    for step in steps(cedr.STRONG):
        final = step.batch.final - timedelta(seconds=10)
        assert not repaired(step.before, step.after, final)
        assert "retracted" not in [change.what for change in step.changes]


def test_the_delay_is_measured_from_the_start_of_an_alert():
    states = [frozenset(), frozenset(), frozenset({alert(5, 9)}), frozenset({alert(3, 9)})]
    empty = pieces()[0].rows[:0]
    arriving = [ArrivedRows(empty, at(0), at(4)), ArrivedRows(empty, at(4), at(12)), ArrivedRows(empty, at(12), at(20))]
    assert waits(states, arriving) == [9.0]


def test_a_verdict_that_the_levels_differ_is_reported_as_a_bug():
    right, wrong = (
        Figures(frozenset(alerts), waits=[1.0], repairs=0, state=1, rows=1, dropped=0)
        for alerts in ([alert(1, 5)], [alert(1, 6)])
    )
    assert "bug" in sentences({"strong": right, "middle": wrong})[0]
    assert "same 1 alerts" in sentences({"strong": right, "middle": right})[0]
    assert "only 0 of its 1 alerts" in sentences({"strong": right, "middle": right, "weak": wrong})[1]


def test_the_picture_fits_and_shows_repairs():
    output = StringIO()
    picture = DemoPicture(Console(file=output, width=100, height=30, force_terminal=True, color_system=None))
    with picture.watching():
        for step in steps(cedr.MIDDLE):
            picture.show(step)
    last = output.getvalue().rpartition("Alerts at middle")[2].splitlines()
    assert len(last) < 29
    assert any("db-08" in line and "retracted" in line and "6 reports were wrong" in line for line in last)
    assert any("web-03" in line and "begins 5 s earlier: the report of 10:00:" in line for line in last)
    assert not any("now" in line.split() for line in last if "final" in line.split())


# --- the demo itself -------------------------------------------------------------------------------------------------


@pytest.fixture
def folder() -> Iterator[Path]:
    """A place for temporary files. Its name is short, as those of sockets must be."""
    with tempfile.TemporaryDirectory(prefix="cedr") as name:
        yield Path(name)


def started(folder: Path, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "cedr", "demo", *arguments],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder), MARK: str(folder), **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def left_over(folder: Path) -> list[str]:
    """The commands of processes that the demo has started and that still run after a while."""
    mark = f"{MARK}={folder}".encode()
    deadline = time.monotonic() + LONG
    while (found := marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def marked(mark: bytes) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_text())
        except OSError:  # it has ended, or is not ours
            continue
    return found


def test_the_demo_shows_alerts_repairs_and_the_levels_side_by_side(folder):
    demo = started(folder, "--pace", "0")
    output, errors = demo.communicate(timeout=LONG)
    assert (demo.returncode, errors) == (0, "")
    assert "Which machines are overloaded?" in output
    assert "reports.sliding" in output
    assert "db-08 overloaded since 10:01:22: new" in output
    assert "db-08 overloaded since 10:01:22: retracted (6 reports were wrong and are corrected)" in output
    assert "micro-batch 24 of 24" in output
    lines = [line for line in output.splitlines() if "/ alert" in line]
    rows = {name: line for name, line in zip(LEVELS, lines, strict=True) if line.strip().startswith(name)}
    assert [rows[name].split()[-1] for name in LEVELS] == ["same", "same", "same", "differs"]
    assert "0.0 / alert" in rows["strong"]
    assert "0.0 / alert" not in rows["middle"]
    assert f"strong and middle end with the same {len(emitted(cedr.STRONG)[-1])} alerts" in output
    assert not left_over(folder)
    assert not list(folder.glob("cedr-demo-*"))


def test_an_interrupt_stops_the_query_and_spark(folder):
    demo = started(folder)
    assert demo.stdout is not None
    while "micro-batch 2" not in (line := demo.stdout.readline()):
        assert line, "the demo ended before it was interrupted"
    demo.send_signal(signal.SIGINT)
    output, errors = demo.communicate(timeout=LONG)
    assert (demo.returncode, errors) == (130, "")
    assert output.splitlines()[-1] == "stopped"
    assert not left_over(folder)
    assert not list(folder.glob("cedr-demo-*"))


def test_when_spark_does_not_start_its_log_is_kept(folder):
    demo = started(folder, JAVA_HOME=str(folder / "no java here"))
    _, errors = demo.communicate(timeout=LONG)
    assert demo.returncode == 1
    (log,) = folder.glob("cedr-demo-*.log")
    assert f"see Spark's log: {log}" in errors
    assert "no java here" in log.read_text()
