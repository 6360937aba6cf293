"""Broken job files: each mistake is one message that names the line and the key, exit code 2, and no traceback."""

import subprocess
import sys
from pathlib import Path

import pytest
from job.files import JOB, put

from cedr.cli import main
from cedr.job.job import read

TEXT = JOB[JOB.index("text") : JOB.index("\n\n[sources")]
FILES = 'files = "data/*.csv"'

MISTAKES = {
    "not TOML": ('vs = "start"', 'vs = "start', "13: column 12: illegal character '\\n'; this is not valid TOML"),
    "a key twice": ('ve = "end"', 'vs = "end"', "14: column 11: cannot overwrite a value; this is not valid TOML"),
    "a list that does not end": (
        'trigger = "1 second"\n',
        "conf = [",
        "26: the end of the file: invalid value; this is not valid TOML",
    ),
    "a table that is not known": (
        "[consistency]",
        "[consistancy]",
        "17: consistancy: there is no such key; did you mean 'consistency'?",
    ),
    "no query": (
        JOB[JOB.index("[query]") : JOB.index("[sources")],
        "",
        "the table [query] is missing, what to compute; write [query]",
    ),
    "no sources": (
        JOB[JOB.index("[sources") : JOB.index("[consistency")],
        "",
        "the table [sources] is missing, where rows come from; write [sources.NAME]",
    ),
    "a value for a table": (
        "[consistency]\n",
        "[x]\n",
        "17: x: there is no such key; the keys here are query, sources, consistency, sinks and spark",
    ),
    "an empty query": (TEXT, "", "2: query: the query is missing; write text, file or function"),
    "two queries": (
        TEXT,
        TEXT + '\nfile = "q.cedr"',
        "9: query.file: text and file cannot be combined; keep one of them",
    ),
    "a query that is not a string": (TEXT, "text = 7", '3: query.text: 7 is not a string; write text = "..."'),
    "a key of the query": (
        TEXT,
        TEXT.replace("text", "txt", 1),
        "3: query.txt: there is no such key; did you mean 'text'?",
    ),
    "syntax of the language": (
        "WHERE r.load",
        "WHER r.load",
        "6: query.text: column 6: unexpected 'r'; expected EACH, FIRST or LAST, REUSE or CONSUME, the end, "
        "CONSISTENCY, OUTPUT or WHERE; did you mean WHERE for 'WHER'?\n  WHER r.load > 0.5\n       ^",
    ),
    "an attribute": (
        "r.load >",
        "r.lod >",
        "6: query.text: column 7: readings has no attribute 'lod'; did you mean 'load'? (attributes: machine, load)\n"
        "  WHERE r.lod > 0.5\n        ^^^^^",
    ),
    "an event type": (
        "ANY(readings r)",
        "ANY(reading r)",
        "5: query.text: column 10: there is no event type 'reading'; did you mean 'readings'? (known: readings)\n"
        "  WHEN ANY(reading r)\n           ^^^^^^^",
    ),
    "no file of the query": (
        TEXT,
        'file = "q.cedr"',
        "3: query.file: {folder}/q.cedr cannot be read: No such file or directory",
    ),
    "no function": (TEXT, 'function = "query.py:build"', "3: query.function: there is no file 'query.py'"),
    "no name of a function": (
        TEXT,
        'function = "build"',
        "3: query.function: write file.py:function or module:function",
    ),
    "no module": (TEXT, 'function = "no_such_module:build"', "3: query.function: No module named 'no_such_module'"),
    "a key of a source": (
        "delay = 5",
        "dalay = 5",
        "15: sources.readings.dalay: there is no such key; did you mean 'delay'?",
    ),
    "a length of time": (
        "delay = 5",
        'delay = "5 parsecs"',
        "15: sources.readings.delay: delay is '5 parsecs', which is not a duration; write a number and a unit, "
        'such as "250ms", "60s", "5 minutes", "1h 30m", "2 days", or a whole number of chronons',
    ),
    "a delay below zero": ("delay = 5", "delay = -5", "15: sources.readings.delay: delay is -5; it must be 0 or more"),
    "a flag": (
        "delay = 5",
        'ordered = "yes"',
        '15: sources.readings.ordered: "yes" is not true or false; write ordered = true',
    ),
    "no place": (
        FILES,
        "",
        "10: sources.readings: where its rows come from is missing; write files, kafka, rate or socket",
    ),
    "two places": (
        FILES,
        FILES + "\nrate = {}",
        "12: sources.readings.rate: files and rate cannot be combined; keep one of them",
    ),
    "no columns": (
        'columns = { machine = "str", load = "float" }',
        "",
        "10: sources.readings: columns is missing, the names and types of its payload columns; "
        'write columns = { machine = "str", load = "float" }',
    ),
    "a type": (
        'load = "float"',
        'load = "flaot"',
        "12: sources.readings.columns.load: \"flaot\" is not a type; did you mean 'float'?",
    ),
    "a type that is nothing like one": (
        'load = "float"',
        "load = 7",
        "12: sources.readings.columns.load: 7 is not a type; write one of str, int, float, bool, date, timestamp, "
        "or a list of strings",
    ),
    "no start": (
        'vs = "start"',
        "",
        '10: sources.readings: vs is missing, the column of the start times; write vs = "start"',
    ),
    "end and length": ("delay = 5", "duration = 5", "14: sources.readings.ve: give ve='end' or duration=5, not both"),
    "a column of types": (
        "delay = 5",
        'types = "knd"',
        "15: sources.readings.types: no column 'knd' (columns: machine, load)",
    ),
    "an empty name": (
        'vs = "start"',
        'vs = ""',
        '13: sources.readings.vs: vs is empty; write vs = "...", or leave it out',
    ),
    "an empty path": (
        'parquet = "out/hot"',
        'parquet = ""',
        '21: sinks.hot.parquet: parquet is empty; write parquet = "...", or leave it out',
    ),
    "a path that cannot be": (
        FILES,
        'files = "da\\u0000ta"',
        "11: sources.readings.files: 'da\\x00ta' is not a path; it contains a zero character",
    ),
    "a user who is not there": (
        FILES,
        'files = "~nobody-of-this-name/a.csv"',
        "11: sources.readings.files: \"~nobody-of-this-name/a.csv\": there is no home folder for 'nobody-of-this-name'",
    ),
    "late rows where another sink puts its own": (
        'parquet = "out/hot"',
        'parquet = "out/hot"\nlate = "out/late"\n[sinks.again]\nparquet = "out/again"\nlate = "./out/late"',
        "25: sinks.again.late: sink 'hot' writes there; use a different place for each",
    ),
    "two sinks in one place, written in two ways": (
        'parquet = "out/hot"',
        'parquet = "out/hot"\n[sinks.again]\nchangelog = "out/../out/hot/"',
        "23: sinks.again.changelog: sink 'hot' writes there; use a different place for each",
    ),
    "an answer over its input": (
        'parquet = "out/hot"',
        'parquet = "data/*.csv"',
        "21: sinks.hot.parquet: source 'readings' reads there; use a different place for each",
    ),
    "a sink outside of the checkpoint": (
        "[sinks.hot]",
        '[sinks."../hot"]',
        "20: sinks.\"../hot\": '../hot' is not a valid folder name in the checkpoint; rename the sink",
    ),
    "a sink called like a file of the checkpoint": (
        "[sinks.hot]",
        '[sinks."spark.log"]',
        "20: sinks.\"spark.log\": 'spark.log' is not a valid folder name in the checkpoint; rename the sink",
    ),
    "no folder": (FILES, 'files = "dta/*.csv"', "11: sources.readings.files: there is no folder '{folder}/dta'"),
    "a format": (
        FILES,
        FILES + '\nformat = "cvs"',
        "12: sources.readings.format: \"cvs\" is not one of parquet, csv or json; did you mean 'csv'?",
    ),
    "an option of another place": (
        FILES,
        'socket = { host = "localhost", port = 9 }\nmax_files = 3',
        "12: sources.readings.max_files: max_files applies only to files sources, not to socket; leave it out",
    ),
    "an option that is missing": (
        FILES,
        'kafka = { subscribe = "readings" }',
        "11: sources.readings.kafka: kafka.bootstrap.servers is missing; "
        'write kafka = { "kafka.bootstrap.servers" = "localhost:9092", ... }',
    ),
    "a column that the files do not have": (
        'load = "float" }',
        'load = "float", zone = "int" }',
        "11: sources.readings.files: file '{folder}/data/a.csv': no column 'zone' (columns: start, end, machine, "
        "load). "
        'To continue, repair the file in place and restart the query; or restart it with on_bad="late", which puts '
        "unreadable data into the late stream and uses the rest. Then the file may also be moved away.",
    ),
    "a source that is not a table": (
        "[sources.readings]",
        "[sources]",
        '11: sources.files: "data/*.csv" is not a table; write [sources.NAME] with the settings below it',
    ),
    "a level": (
        'level = "middle"',
        'level = "midle"',
        "18: consistency.level: \"midle\" is not one of strong, middle or weak; did you mean 'middle'?",
    ),
    "level and block": (
        'level = "middle"',
        'level = "middle"\nblock = "5s"',
        "19: consistency.block: level cannot be combined with block or remember; leave block out",
    ),
    "a sink without a place": (
        'parquet = "out/hot"',
        "",
        "20: sinks.hot: where the answer goes is missing; write parquet, duckdb, postgres, changelog or kafka",
    ),
    "a key of a sink": (
        'parquet = "out/hot"',
        'parkett = "out/hot"',
        "21: sinks.hot.parkett: there is no such key; did you mean 'parquet'?",
    ),
    "a statement": (
        'parquet = "out/hot"',
        'parquet = "out/hot"\nstatement = "Cold"',
        "22: sinks.hot.statement: the query has no statement 'Cold'; available: Hot",
    ),
    "a table without a database": (
        'parquet = "out/hot"',
        'parquet = "out/hot"\ntable = "hot"',
        "22: sinks.hot.table: table applies only to duckdb and postgres, not to parquet; leave it out",
    ),
    "a retry without a database": (
        'parquet = "out/hot"',
        'parquet = "out/hot"\nretry = "60s"',
        "22: sinks.hot.retry: retry applies only to duckdb and postgres, not to parquet; leave it out",
    ),
    "a retry that is not a duration": (
        'parquet = "out/hot"',
        'duckdb = "hot.duckdb"\nretry = "often"',
        "22: sinks.hot.retry: retry is 'often', which is not a duration; write a number and a unit, such as "
        '"250ms", "60s", "5 minutes", "1h 30m", "2 days", or a whole number of chronons',
    ),
    "two sinks in one place": (
        'parquet = "out/hot"',
        'parquet = "out/hot"\n[sinks.again]\nparquet = "out/hot"',
        "23: sinks.again.parquet: sink 'hot' writes there; use a different place for each",
    ),
    "a master": (
        'master = "local[2]"',
        'master = "lcal[2]"',
        '24: spark.master: "lcal[2]" is not a Spark master; write "local[*]" for this machine, or "spark://host:7077"',
    ),
    "no memory": (
        "shards = 2",
        'state_memory = "1.5g"',
        "25: spark.state_memory: state_memory is '1.5g', which is not a size; "
        'write "512m", "1g" or a number of bytes, at least 1',
    ),
    "no shards": ("shards = 2", "shards = 0", "25: spark.shards: 0 is too small; write shards = 1 or more"),
    "half a shard": ("shards = 2", "shards = 2.5", "25: spark.shards: 2.5 is not an integer; write shards = 10"),
    "a trigger": (
        'trigger = "1 second"',
        "trigger = true",
        '26: spark.trigger: true is not a duration; write trigger = "5s"',
    ),
    "a setting of Spark": (
        'trigger = "1 second"',
        'conf = { "sprk.x" = 1 }',
        "26: spark.conf.\"sprk.x\": 'sprk.x' is not a Spark setting; their names begin with spark.",
    ),
}


def check(capsys, monkeypatch, folder: Path) -> str:
    """The error of `cedr check job.toml` in this folder, after `error: job.toml:`."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["cedr", "check", "job.toml"])
    with pytest.raises(SystemExit) as end:
        main()
    out, err = capsys.readouterr()
    assert (end.value.code, out) == (2, "")
    assert "Traceback" not in err
    assert err.startswith("error: job.toml:")
    return err.removeprefix("error: job.toml:").removesuffix("\n").removeprefix(" ")


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_its_line_and_key(mistake, tmp_path, capsys, monkeypatch):
    old, new, expected = MISTAKES[mistake]
    assert JOB.count(old) == 1
    put(tmp_path, JOB.replace(old, new))
    assert check(capsys, monkeypatch, tmp_path) == expected.replace("{folder}", str(tmp_path))


def test_there_are_more_than_thirty_kinds():
    assert len(MISTAKES) > 30


FUNCTIONS = {
    "no such function": ("def other(readings): return readings", "'query.py' has no function 'build'"),
    "syntax": ("def build(readings) return readings", "expected ':' (query.py, line 1)"),
    "it fails": ("def build(readings):\n    return {}['x']", "KeyError: 'x' (query.py, line 2)"),
    "a source that is not there": (
        "def build(readings, machines): return readings",
        "the function requires a source 'machines'; the sources are readings",
    ),
    "no stream": (
        "def build(readings): return 7",
        "query.py:build returns a int; it must return a stream or a dict of streams",
    ),
    "no streams": ("def build(readings): return {}", "query.py:build returns no stream"),
    "it ends the program": (
        "import sys\ndef build(readings): sys.exit(3)",
        "it exits the program with code 3; it must return",
    ),
    "no names": (
        "def build(*sources): return sources[0]",
        "sources are passed by name, which 'sources' does not allow; write it without * and /",
    ),
    "no parameters to be seen": ("build = dict", "ValueError: no signature found for builtin type <class 'dict'>"),
    "a name that is none": (
        "def build(readings): return {1: readings}",
        "query.py:build returns a stream under 1; names must be strings",
    ),
    "a query error": (
        "def build(readings): return readings.where('lod > 1')",
        "where([(col(\"lod\")) > (1)]): no column 'lod'; did you mean 'load'? (columns: machine, load)",
    ),
}


@pytest.mark.parametrize("mistake", FUNCTIONS)
def test_a_mistake_in_a_function(mistake, tmp_path, capsys, monkeypatch):
    code, expected = FUNCTIONS[mistake]
    put(tmp_path, JOB.replace(TEXT, 'function = "query.py:build"'))
    (tmp_path / "query.py").write_text(code)
    assert check(capsys, monkeypatch, tmp_path).partition(" (inspect")[0] == f"3: query.function: {expected}"


def test_a_mistake_in_a_file_of_the_query(tmp_path, capsys, monkeypatch):
    put(tmp_path, JOB.replace(TEXT, 'file = "hot.cedr"'))
    (tmp_path / "hot.cedr").write_text("EVENT Hot\nWHEN ANY(readings r)\nWHERE r.lod > 1\n")
    assert check(capsys, monkeypatch, tmp_path) == (
        "3: query.file: hot.cedr, line 3, column 7: readings has no attribute 'lod'; did you mean 'load'? "
        "(attributes: machine, load)\n  WHERE r.lod > 1\n        ^^^^^"
    )


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda path: None, "cannot be read: No such file or directory"),
        (lambda path: path.mkdir(), "is a folder; name the job file in it, such as job.toml"),
        (lambda path: path.write_bytes(b"[query]\n\xff"), "is not UTF-8 text (byte 8)"),
        (
            lambda path: path.write_text(f"a = {'[' * 5000}{']' * 5000}"),
            "is nested too deeply; a job file needs only a few levels",
        ),
        (lambda path: path.write_text(""), "the table [query] is missing, what to compute; write [query]"),
    ],
    ids=["no file", "a folder", "no text", "deep", "empty"],
)
def test_no_job_file_at_all(make, problem, tmp_path, capsys, monkeypatch):
    make(tmp_path / "job.toml")
    assert check(capsys, monkeypatch, tmp_path) == problem


@pytest.mark.parametrize("command", [["check"], ["run", "--once"]], ids=" ".join)
def test_a_process_ends_with_exit_code_2_and_one_line(command, tmp_path):
    job = put(tmp_path, JOB.replace("delay", "dalay"))
    done = subprocess.run([sys.executable, "-m", "cedr", *command, str(job)], capture_output=True, text=True)
    expected = f"error: {job}:15: sources.readings.dalay: there is no such key; did you mean 'delay'?\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", expected)


def test_the_format_must_be_known_before_there_is_a_file(tmp_path, capsys, monkeypatch):
    put(tmp_path, JOB.replace(FILES, 'files = "later"'))
    (tmp_path / "later").mkdir()
    assert check(capsys, monkeypatch, tmp_path).startswith(
        "11: sources.readings.files: there is no file yet whose suffix determines the format; declare it: format="
    )


def test_a_byte_order_mark_is_allowed(tmp_path):
    """Some editors write one at the start of UTF-8 text."""
    job = put(tmp_path)
    job.write_bytes(b"\xef\xbb\xbf" + JOB.encode())
    assert read(job).answer == "Hot"
