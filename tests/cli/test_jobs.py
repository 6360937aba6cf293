"""The commands around job files: what they print, and their exit codes."""

import io
import json
import os
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import polars as pl
import pytest
from cli.calling import call
from job.files import JOB, put
from rich.console import Console
from rich.live import Live

from cedr import sinks
from cedr.cli.doctor import checks
from cedr.cli.run.view import LiveView
from cedr.job.job import read
from cedr.job.reports import StepReport
from cedr.plan.nodes import Level
from cedr.plan.optimizer import optimize
from cedr.plan.svg import boxes_of


@pytest.fixture
def cedr(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    put(tmp_path)
    return lambda *args: call(monkeypatch, capsys, *args)


# --- check and explain ---------------------------------------------------------------------------------------------


def test_check_shows_columns(cedr, tmp_path):
    assert cedr("check", "job.toml") == (
        0,
        "job.toml: OK\n"
        f"  source readings (machine: String, load: Float64) from files {tmp_path}/data/*.csv\n"
        "  answer Hot (machine: String, load: Float64)\n"
        f"  sink hot: Hot to parquet {tmp_path}/out/hot\n",
        "",
    )


def test_check_as_json(cedr):
    found = json.loads(cedr("check", "job.toml", "--json").out)
    assert found["answers"] == {"Hot": {"machine": "String", "load": "Float64"}}
    assert found["warnings"] == []


def test_check_warns_of_a_query_that_never_emits(cedr, tmp_path):
    put(tmp_path, JOB.replace("delay = 5\n", "").replace('level = "middle"', 'level = "strong"'))
    done = cedr("check", "job.toml")
    assert done.code == 0
    assert "emits only at end of stream" in done.out.splitlines()[-1]
    assert done.out.splitlines()[-1].startswith("  warning: ")
    assert cedr("check", "job.toml", "--strict").code == 1


def test_check_names_a_source_that_nobody_reads(cedr, tmp_path):
    put(tmp_path, JOB + '\n[sources.more]\nrate = {}\ncolumns = { value = "int" }\nvs = "timestamp"\n')
    assert "  warning: source 'more' is not read by the query\n" in cedr("check", "job.toml").out


def test_explain_is_that_of_the_query(cedr):
    done = cedr("explain", "job.toml")
    assert (done.code, done.err) == (0, "")
    assert done.out == read("job.toml").streams["Hot"].explain() + "\n"


def test_explain_as_a_flowchart(cedr):
    assert cedr("explain", "job.toml", "--mermaid").out == (
        "flowchart TB\n"
        '    n0[("Source readings (machine: String, load: Float64), vs=start, ve=end")]\n'
        '    n1["Finalize, remember ∞"]\n'
        "    n0 --> n1\n"
        '    n2["Match: machine, load (eager)"]\n'
        "    n1 --> n2\n"
        '    n2 --> answer(["Hot"])\n'
    )


def test_explain_as_a_picture(cedr, tmp_path):
    assert cedr("explain", "job.toml", "--svg", "plan.svg") == (0, "", "")
    picture = ElementTree.parse(tmp_path / "plan.svg").getroot()
    texts = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[-1] == "Hot"
    assert "Finalize, remember ∞" in texts
    boxes, arrows = boxes_of(optimize(Level(read("job.toml").streams["Hot"].plan)).plan, "Hot")
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}rect"))) == len(boxes) + 1
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}path"))) == len(arrows) + 1


def test_explain_of_no_statement(cedr):
    done = cedr("explain", "job.toml", "--statement", "Cold")
    assert done == (2, "", "error: --statement Cold: the query has no such statement; available: Hot\n")


# --- run -----------------------------------------------------------------------------------------------------------


def test_run_here_in_lines(cedr, tmp_path):
    done = cedr("run", "job.toml", "--local")
    assert (done.code, done.err) == (0, "")
    first, *_, last = done.out.splitlines()
    assert first.startswith("hot: batch 0, 6 rows in ")
    assert ", 5 out, 0 repairs, 0 late, state " in first
    assert last == f"hot: finished; the answer is in parquet {tmp_path}/out/hot"
    assert sinks.read_parquet(tmp_path / "out" / "hot").height == 5


def test_run_here_in_json_shows_late_rows(cedr, tmp_path):
    put(tmp_path, JOB[: JOB.index("[sinks")].replace("delay = 5", "delay = 5\nmax_files = 1"))
    events_out = [json.loads(line) for line in cedr("run", "job.toml", "--local", "--json").out.splitlines()]
    assert [s["event"] for s in events_out] == ["step", "step", "step", "late", "answer"]
    assert [s["late"] for s in events_out[:3]] == [0, 1, 0]
    assert events_out[3]["rows"] == 1
    assert events_out[4]["rows"][0] == {"vs": 0, "ve": 1, "machine": "web1", "load": 0.9}


def test_json_has_no_nan(cedr, tmp_path):
    job = (
        JOB[: JOB.index("[sinks")].replace('machine = "str"', 'machine = "float"').replace("r.load > 0.5", "r.load > 0")
    )
    put(tmp_path, job)
    (tmp_path / "data" / "b.csv").unlink()
    (tmp_path / "data" / "a.csv").write_text("start,end,machine,load\n0,1,nan,inf\n1,2,2.5,1\n")
    done = cedr("run", "job.toml", "--local", "--json")

    def refuse(number):
        raise AssertionError(f"{number} is not in JSON")

    *_, answer = [json.loads(line, parse_constant=refuse) for line in done.out.splitlines()]
    assert [(row["machine"], row["load"]) for row in answer["rows"]] == [("nan", "inf"), (2.5, 1.0)]


def test_a_local_run_always_closes(cedr):
    message = "error: --no-close: a local run starts from scratch each time and emits every result; leave it out\n"
    assert cedr("run", "job.toml", "--local", "--no-close") == (2, "", message)
    message = "error: --upgrade: a local run starts from scratch each time; leave it out\n"
    assert cedr("run", "job.toml", "--local", "--upgrade") == (2, "", message)


def test_a_folder_that_looks_like_a_glob(cedr, tmp_path):
    (tmp_path / "jobs [1] *").mkdir()
    job = put(tmp_path / "jobs [1] *")
    assert cedr("run", job, "--local").code == 0
    assert sinks.read_parquet(job.parent / "out" / "hot").height == 5


def test_a_terminal_without_infinity(cedr, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "cedr", "run", "job.toml", "--local"],
        capture_output=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"final up to \\u221e" in done.stdout


def test_a_sink_that_cannot_be_there(cedr, tmp_path):
    put(tmp_path, JOB.replace("out/hot", "data/a.csv"))
    message = f"error: job.toml:21: sinks.hot.parquet: {tmp_path}/data/a.csv is a file; choose a folder\n"
    assert cedr("run", "job.toml", "--local") == (2, "", message)


@pytest.mark.parametrize("origin", ["rate = {}", 'socket = { host = "localhost", port = 9999 }'])
def test_what_needs_spark_is_refused_here(cedr, tmp_path, origin):
    job = JOB.replace('files = "data/*.csv"', origin).replace('machine = "str", load = "float"', 'value = "int"')
    job = job.replace('vs = "start"\nve = "end"', 'vs = "timestamp"').replace("r.load", "r.value")
    put(tmp_path, job.replace("r.machine, r.value", "r.value"))
    done = cedr("run", "job.toml", "--local")
    name = origin.split()[0]
    assert done.code == 2
    assert done.err == (
        f"error: job.toml:11: sources.readings.{name}: only files can be read without Spark, and this source has "
        f"{name}; run it without --local\n"
    )


def test_a_table_of_something_else_is_not_touched(cedr, tmp_path):
    (tmp_path / "out" / "hot").mkdir(parents=True)
    (tmp_path / "out" / "hot" / "mine.parquet").write_text("x")
    done = cedr("run", "job.toml", "--local")
    assert done.code == 2
    assert "contains files that cedr has not written, such as mine.parquet" in done.err


def test_a_run_that_fails_ends_with_1(cedr, tmp_path):
    (tmp_path / "data" / "c.csv").write_text("start,end,machine,load\n5,soon,web1,0.5\n")
    done = cedr("run", "job.toml", "--local")
    assert done.code == 1
    assert done.err.startswith(f"error: hot: file '{tmp_path}/data/c.csv', line 2: ")


def test_in_a_terminal_a_table_is_brought_up_to_date():
    console = Console(file=io.StringIO(), force_terminal=True, width=140)
    with Live(console=console) as live:
        screen = LiveView(live)
        for batch in (0, 1):
            screen.step(StepReport("hot", batch, 1000, 20, 3, 1, 70, 800, "2026-03-01 10:00:00", "5s", 0.5))
    cells = [line for line in console.file.getvalue().splitlines() if "hot" in line][-1].split()
    numbers = ["1", "2,000", "2,000", "40", "6", "2", "70"]
    assert [cell for cell in cells if cell != "│"] == ["hot", *numbers, "2026-03-01", "10:00:00", "5s"]


def test_run_on_spark_until_it_is_stopped(tmp_path):
    job = put(tmp_path)
    command = [sys.executable, "-m", "cedr", "run", str(job), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        events_out = []
        for line in running.stdout:
            events_out.append(json.loads(line))
            if events_out[-1]["event"] == "step":
                running.send_signal(signal.SIGTERM)
                break
        events_out += [json.loads(line) for line in running.stdout]
        errors = running.stderr.read()
    assert (running.returncode, errors) == (0, "")
    events = [s["event"] for s in events_out]
    assert events[:2] == ["started", "step"]
    assert events[-2:] == ["stopped", "ended"]
    assert events_out[1]["rows_in"] == 6
    assert sinks.read_parquet(tmp_path / "out" / "hot").height > 0
    assert (tmp_path / "job.checkpoint" / "spark.log").exists()


def test_a_run_whose_java_is_gone_reports_it(tmp_path):
    """As when the machine has no memory left for it."""
    command = [sys.executable, "-m", "cedr", "run", str(put(tmp_path)), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        for line in running.stdout:
            if json.loads(line)["event"] == "step":
                children = ["ps", "--ppid", str(running.pid), "-o", "pid=,comm="]
                listed = subprocess.run(children, capture_output=True, text=True).stdout.split("\n")
                os.kill(next(int(child.split()[0]) for child in listed if child.endswith(" java")), signal.SIGKILL)
                break
        events_out = [json.loads(line) for line in running.stdout]
        errors = running.stderr.read()
    assert running.returncode == 1
    assert "cedr/cli" not in errors
    assert events_out[-1]["message"] == "error: Spark: its Java process has ended"


# --- changelogs ----------------------------------------------------------------------------------------------------

CHANGES = """\
change,vs,ve,ve_new,machine,load,emitted
insert,0,10,,web1,20,2026-03-01T10:00:00
insert,6,12,,web1,80,2026-03-01T10:00:01
cti,5,5,,,,2026-03-01T10:00:01
remove,6,12,6,web1,80,2026-03-01T10:00:02
insert,6,12,,web1,40,2026-03-01T10:00:03
adjust,0,10,8,web1,20,2026-03-01T10:00:03
"""


@pytest.fixture
def recorded(cedr, tmp_path):
    (tmp_path / "changes.csv").write_text(CHANGES)
    (tmp_path / "same.csv").write_text("change,vs,ve,ve_new,machine,load\ninsert,6,12,,web1,40\ninsert,0,8,,web1,20\n")
    return cedr


def test_history(recorded):
    assert recorded("history", "changes.csv").out == "vs  ve  machine  load\n0   8   web1     20\n6   12  web1     40\n"
    assert recorded("history", "changes.csv", "--at", "2").out.splitlines()[2] == "6   12  web1     80"
    assert recorded("history", "changes.csv", "--at", "2026-03-01T10:00:00").out.count("\n") == 2
    assert (
        recorded("history", "changes.csv", "--to", "7", "--as", "csv").out
        == "vs,ve,machine,load\n0,7,web1,20\n6,7,web1,40\n"
    )
    assert recorded("history", "changes.csv", "--tritemporal").out.splitlines()[3] == "E1  6   6   3       web1     80"


def test_history_as_parquet(recorded, tmp_path):
    import polars as pl

    assert recorded("history", "changes.csv", "--as", "parquet", "-o", "h.parquet").code == 0
    assert pl.read_parquet(tmp_path / "h.parquet").rows() == [(0, 8, "web1", 20), (6, 12, "web1", 40)]


def test_diff(recorded, tmp_path):
    assert recorded("diff", "changes.csv", "same.csv") == (0, "logically equivalent\n", "")
    (tmp_path / "other.csv").write_text((tmp_path / "same.csv").read_text().replace("40", "41"))
    expected = "different: only changes.csv has (vs=6, ve=12, machine=web1, load=40); 1 more tuple differs\n"
    assert recorded("diff", "changes.csv", "other.csv") == (1, expected, "")
    assert recorded("diff", "changes.csv", "other.csv", "--to", "6").code == 0
    found = json.loads(recorded("diff", "changes.csv", "other.csv", "--json").out)
    assert (found["equivalent"], found["tuples"], found["first"]["load"]) == (False, 2, 40)


def test_replay(recorded):
    assert recorded("replay", "changes.csv", "--speed", "max").out == (
        "vs,ve,ve_new,cti,machine,load\n"
        "0,10,,,web1,20\n6,12,,,web1,80\n,,,5,,\n6,12,6,,web1,80\n6,12,,,web1,40\n0,10,8,,web1,20\n"
    )


def test_replay_accepts_the_former_name_of_its_default_pace_and_warns(recorded):
    code, out, err = recorded("replay", "changes.csv", "--speed", "max", "--by", "told")
    assert (code, out) == (0, recorded("replay", "changes.csv", "--speed", "max", "--by", "emitted").out)
    assert err == "warning: --by told is now --by emitted; the old name will be removed in the next version\n"


def test_what_is_replayed_into_files_is_the_input_of_a_job(recorded, tmp_path):
    assert recorded("replay", "changes.csv", "--speed", "1000x", "--into", "again").code == 0
    assert len(list((tmp_path / "again").glob("*.csv"))) == 4
    put(
        tmp_path,
        '[query]\ntext = "EVENT Same SELECT machine, load FROM replayed"\n'
        '[sources.replayed]\nfiles = "again"\ncolumns = { machine = "str", load = "int" }\n'
        'vs = "vs"\nve = "ve"\nve_new = "ve_new"\ncti = "cti"\n[sinks.same]\nchangelog = "changes"\n',
    )
    assert recorded("run", "job.toml", "--local").code == 0
    assert recorded("diff", "changes.csv", "changes") == (0, "logically equivalent\n", "")


MISTAKES = {
    "history nothing.csv": "nothing.csv does not exist; name a Parquet or CSV file, or a folder of such files",
    "history changes.csv --at soon": "--at soon: write a whole number, or a time such as 2026-03-01T10:00:00",
    "history same.csv --at 2026-03-01": "--at 2026-03-01: same.csv has no column 'emitted'; give a number of "
    "changes instead",
    "history changes.csv --to soon": "--to soon: the times of this changelog are whole numbers; write one",
    "diff changes.csv data/a.csv": "data/a.csv is neither a changelog nor a table with vs and ve: "
    "it has no column 'change' (columns: start, end, "
    "machine, load)",
    "replay same.csv": "same.csv has no column 'emitted', so the pace is unknown; use --by vs or --speed max",
    "replay changes.csv --speed fast": "--speed fast: write 1x, 10x, 0.5x or max",
    "replay changes.csv --into data": "--into data: the folder is not empty; choose a new one",
    "history stamps.csv --to 5": "--to 5: write a time such as 2026-03-01T10:00:00",
    "history bytes.parquet --as csv": "--as csv: the column 'code' is of type Binary, which csv does not support; "
    "use parquet",
    "replay bytes.parquet --by vs --as json": "--as json: the column 'code' is of type Binary, "
    "which json does not support; use parquet",
    "replay lists.parquet --by vs": "--as csv: the column 'code' is of type List(Int64), which csv does not support; "
    "use parquet",
    "plot changes.csv --against stamps.csv": "stamps.csv and changes.csv use different time types: "
    "Datetime(time_unit='us', time_zone=None) and Int64",
    "plot job.toml --against changes.csv": "--against changes.csv: for a job its own input is drawn above; "
    "leave it out",
    "plot changes.csv -o changes.jpeg": "changes.jpeg: this format is not supported; use .png, .svg, .pdf",
}


@pytest.mark.parametrize("command", MISTAKES)
def test_mistakes_about_changelogs(recorded, command, tmp_path):
    (tmp_path / "stamps.csv").write_text("change,vs,ve,ve_new\ninsert,2026-03-01T10:00:00,,\n")
    for name, code in (("bytes", [b"x"]), ("lists", [[1]])):
        row = {"change": ["insert"], "vs": [1], "ve": [2], "ve_new": [None], "code": code}
        pl.DataFrame(row).write_parquet(tmp_path / f"{name}.parquet")
    assert recorded(*command.split()) == (2, "", f"error: {MISTAKES[command]}\n")


def test_plots(recorded, tmp_path):
    assert recorded("plot", "changes.csv", "-o", "changes.png") == (0, "changes.png\n", "")
    assert (tmp_path / "changes.png").read_bytes().startswith(b"\x89PNG")
    assert recorded("plot", "job.toml", "-o", "job.svg").code == 0
    assert ElementTree.parse(tmp_path / "job.svg").getroot().tag.endswith("svg")


# --- the doctor and the shell --------------------------------------------------------------------------------------


def test_the_doctor_reports_what_is_wrong(cedr, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(checks, "MEMORY", 0)  # how much is free depends on what else runs here
    monkeypatch.setattr(checks, "DISK", 0)
    done = cedr("doctor", "--no-spark", "--json")
    found = {line["name"]: line for line in map(json.loads, done.out.splitlines())}
    assert done.code == 1
    assert [name for name, line in found.items() if line["state"] == "wrong"] == ["Java"]
    assert found["Java"]["advice"].startswith("install Java 17 or 21")
    assert list(found) == [
        *("Python", "packages", "Java", "memory", "disk", "matplotlib", "psycopg", "duckdb"),
        *("loopback", "host name", "clock"),
    ]


@pytest.mark.parametrize(
    ("line", "expected"), [("cedr che", ["check"]), ("cedr history --tri", ["--tritemporal"]), ("cedr rep", ["replay"])]
)
def test_the_shell_completes(line, expected):
    env = {"_CEDR_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    from os import environ

    done = subprocess.run([sys.executable, "-m", "cedr"], env={**environ, **env}, capture_output=True, text=True)
    assert set(expected) <= set(done.stdout.split())


def test_the_table_of_a_sink_can_be_compared_with_its_changelog(cedr, tmp_path):
    put(tmp_path, JOB.replace("[spark]", '[sinks.changes]\nchangelog = "out/changes"\n\n[spark]'))
    assert cedr("run", "job.toml", "--local", "-q").code == 0
    assert cedr("diff", "out/hot", "out/changes") == (0, "logically equivalent\n", "")
    assert cedr("history", "out/hot").out == cedr("history", "out/changes").out
    assert cedr("history", "out/changes", "--as", "parquet", "-o", "kept.parquet").code == 0
    assert cedr("diff", "out/hot", "kept.parquet").code == 0
    (tmp_path / "less.csv").write_text("vs,ve,machine,load\n0,10,web1,0.9\n")
    assert cedr("diff", "out/hot", "less.csv").code == 1


def test_check_notes_former_names_of_keys(cedr, tmp_path):
    put(tmp_path, JOB.replace("delay = 5", 'delay = 5\nper = "machine"\nfuture = 100'))
    done = cedr("check", "job.toml")
    assert (done.code, done.err) == (0, "")
    assert "  warning: sources.readings.per is now called progress_by; the old name will stop working\n" in done.out
    assert "  warning: sources.readings.future is now called max_ahead; the old name will stop working\n" in done.out
    put(tmp_path, JOB.replace("delay = 5", 'delay = 5\nprogress_by = "machine"\nmax_ahead = 100'))
    assert "now called" not in cedr("check", "job.toml").out
    put(tmp_path, JOB.replace("delay = 5", 'delay = 5\nprogress_by = "machine"\nper = "machine"'))
    wrong = "error: job.toml:17: sources.readings.per: per is the former name of progress_by; leave it out\n"
    assert cedr("check", "job.toml") == (2, "", wrong)
    put(tmp_path, JOB.replace("delay = 5", 'delay = 5\nfuture = "soon"'))
    assert cedr("check", "job.toml").err.startswith(
        "error: job.toml:16: sources.readings.max_ahead: max_ahead is 'soon'"
    )
