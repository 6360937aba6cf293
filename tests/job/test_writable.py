"""Sinks create the folders they need; obstacles are found before any sink creates anything."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pytest
from cli.calling import call
from job.files import JOB, put

from cedr import sinks
from cedr.job.job import read
from cedr.job.mistake import JobError
from cedr.job.writable import check_writable
from cedr.sinks.base import SinkError

WITHOUT_SINKS = JOB[: JOB.index("[sinks.hot]")]
FIRST = '[sinks.first]\nparquet = "made"\n'
RUNS = [("run", "job.toml", "--local"), ("run", "job.toml", "--once")]


@pytest.fixture
def cedr(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return lambda *args: call(monkeypatch, capsys, *args)


def test_missing_folders_are_made(cedr, tmp_path):
    sections = [
        '[sinks.a]\nduckdb = "new/deep/d.duckdb"\n',
        '[sinks.b]\nparquet = "new/p/q"\n',
        '[sinks.c]\nchangelog = "new/c/d"\nlate = "new/l/m"\n',
    ]
    put(tmp_path, WITHOUT_SINKS + "\n".join(sections))
    assert cedr("check", "job.toml").code == 0
    assert not (tmp_path / "new").exists()
    assert cedr("run", "job.toml", "--local").code == 0
    with duckdb.connect("new/deep/d.duckdb") as db:
        assert db.execute("SELECT count(*) FROM a").fetchone()[0] > 0
    assert sinks.read_parquet("new/p/q").height > 0


WRONG = {
    "a folder": ('duckdb = "data"', "duckdb: {0}/data is a folder; choose a file in it, such as data/answers.duckdb"),
    "below a file": ('duckdb = "job.toml/d.duckdb"', "duckdb: {0}/job.toml is a file; cannot create the folder"),
    "a file": ('parquet = "job.toml"', "parquet: {0}/job.toml is a file; choose a folder"),
    "a changelog": ('changelog = "job.toml"', "changelog: {0}/job.toml is a file; choose a folder"),
    "late rows": ('parquet = "x"\nlate = "job.toml/x"', "late: {0}/job.toml is a file; cannot create the folder"),
    "a long name": (f'parquet = "{"x" * 300}"', "cannot be used: File name too long"),
}


@pytest.mark.parametrize(("lines", "problem"), WRONG.values(), ids=WRONG.keys())
@pytest.mark.parametrize("command", [("check", "job.toml"), *RUNS], ids=["check", "run --local", "run"])
def test_what_is_in_the_way_is_found_before_anything_is_made(cedr, tmp_path, lines, problem, command):
    put(tmp_path, f"{WITHOUT_SINKS}{FIRST}[sinks.second]\n{lines}\n")
    done = cedr(*command)
    assert done.code == 2
    assert "sinks.second." in done.err
    assert problem.format(tmp_path) in done.err
    assert not (tmp_path / "made").exists()


@pytest.fixture
def open_folder(monkeypatch):
    """A folder that every user can enter, unlike those of pytest."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        monkeypatch.chdir(folder)
        yield Path(folder)


@contextmanager
def not_as_root() -> Iterator[None]:
    """Root may write everywhere, so for a while it is somebody else."""
    if os.getuid() == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        if os.getuid() == 0:
            os.seteuid(0)


def test_folders_of_others_cannot_be_written(open_folder):
    locked = open_folder / "locked"
    locked.mkdir()
    locked.chmod(0o555)
    made = read(put(open_folder, f'{WITHOUT_SINKS}[sinks.a]\nduckdb = "locked/d/e.duckdb"\n'))
    with not_as_root(), pytest.raises(JobError) as raised:
        check_writable(made.sinks.values())
    assert str(raised.value) == (
        f"{open_folder}/job.toml:21: sinks.a.duckdb: {locked} is not writable for this user; "
        "change its permissions, or choose another place"
    )


TAKEN = {
    "a table that is not ours": ("CREATE TABLE second (a int)", "was not created by cedr"),
    "no database": (None, "not a valid DuckDB database"),
}


@pytest.mark.parametrize(("statement", "problem"), TAKEN.values(), ids=TAKEN.keys())
def test_what_a_database_refuses_is_found_before_another_sink_opens(cedr, tmp_path, statement, problem):
    if statement is None:
        (tmp_path / "d.duckdb").write_bytes(b"no database" * 1000)
    else:
        with duckdb.connect(tmp_path / "d.duckdb") as db:
            db.execute(statement)
    put(tmp_path, f'{WITHOUT_SINKS}{FIRST}[sinks.second]\nduckdb = "d.duckdb"\n')
    done = cedr(*RUNS[0])
    assert done.code == 2
    assert problem in done.err
    assert not (tmp_path / "made").exists()


def test_an_unreachable_database_is_found_before_another_sink_opens(cedr, tmp_path):
    dsn = "host=127.0.0.1 port=9 dbname=x connect_timeout=1"
    put(tmp_path, f'{WITHOUT_SINKS}{FIRST}[sinks.second]\npostgres = "{dsn}"\n')
    for command in RUNS:
        done = cedr(*command)
        assert done.code == 2
        assert "not reachable" in done.err
        assert not (tmp_path / "made").exists()


def test_programs_get_folders_and_errors_too(tmp_path):
    (tmp_path / "file").write_text("")
    sink = sinks.duckdb(tmp_path / "file" / "d.duckdb", "t")
    with pytest.raises(SinkError, match="its folder cannot be created"):
        sink.open(None)
