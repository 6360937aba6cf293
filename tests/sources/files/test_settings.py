"""`cedr.files`: arguments are checked when they are given, formats detected by suffix, unfinished files not seen."""

import subprocess
import sys
import threading
from pathlib import Path

import polars as pl
import pytest

from cedr.sources.files import Files, files
from cedr.sources.files.listing import check_place, complete, in_order, listed, stamp
from cedr.sources.files.settings import with_format
from cedr.temporal.errors import QueryError


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("in/*.parquet", "parquet"),
        ("in/a.pq", "parquet"),
        ("in/a.CSV", "csv"),
        ("in/*.tsv.gz", "csv"),
        ("in/*.jsonl", "json"),
        ("in/*.json.gz", "json"),
        ("in/*.ndjson", "json"),
        ("in/a.parquet.gz", None),
        ("in", None),
        ("in/*.txt", None),
    ],
)
def test_the_suffix_determines_the_format(path: str, known: str | None) -> None:
    assert files(path).format == known


def test_a_format_that_is_given_counts(tmp_path: Path) -> None:
    assert files(tmp_path / "a.txt", "csv") == Files(str(tmp_path / "a.txt"), "csv")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": "in", "format": "xml"}, "format='xml' is not one of 'parquet', 'csv', 'json'"),
        ({"path": "in", "on_bad": "skip"}, "on_bad='skip' is not one of 'raise', 'late'"),
        ({"path": "in", "order": "size"}, "order='size' is not one of 'name', 'modified'"),
        ({"path": "in", "max_files": 0}, "max_files=0 would never read anything"),
        ({"path": "in/*.csv", "separator": "||"}, "separator='||' must be one character"),
        ({"path": "in/*.json", "separator": ";"}, "separator=';' applies only to CSV, not to 'json'"),
        ({"path": "in/*.pq", "columns": ["a"]}, "columns=['a'] applies only to CSV, not to 'parquet'"),
        ({"path": "s3://bucket/in"}, "only paths of mounted file systems"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(QueryError) as e:
        files(**arguments)
    assert message in str(e.value)


def test_the_files_of_a_folder_determine_the_format(tmp_path: Path) -> None:
    settings = files(tmp_path)
    with pytest.raises(QueryError, match="no file yet whose suffix determines the format; declare it"):
        with_format(settings, [])
    assert with_format(settings, ["a.csv", "b.csv.gz"]).format == "csv"
    with pytest.raises(QueryError, match=r"several formats: csv \('a.csv'\), json \('b.json'\); use a glob"):
        with_format(settings, ["a.csv", "b.json"])
    with pytest.raises(QueryError, match=r"the suffix of 'b.txt' is not a known format"):
        with_format(settings, ["a.csv", "b.txt"])


def test_folders_are_read_to_the_bottom_without_what_is_hidden_or_unfinished(tmp_path: Path) -> None:
    for name in ("a.csv", "deep/b.csv", "_SUCCESS", ".hidden.csv", "c.csv.tmp", "_delta/d.csv", "e.csv~", "f.csv.part"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    whole = [str(tmp_path / "a.csv"), str(tmp_path / "deep" / "b.csv")]
    assert sorted(listed(files(tmp_path))) == whole
    assert sorted(listed(files(tmp_path / "**" / "*"))) == whole
    assert sorted(listed(files(tmp_path / "*.csv"))) == whole[:1]
    assert sorted(listed(files(tmp_path / "deep" / "b.csv"))) == whole[1:]
    assert sorted(listed(files(tmp_path / "x.csv"))) == []


def test_a_misspelt_place_is_an_error_but_an_empty_one_is_not(tmp_path: Path) -> None:
    check_place(files(tmp_path / "*.csv"))
    for path in (tmp_path / "im" / "*.csv", tmp_path / "im"):
        with pytest.raises(QueryError, match=f"there is no (file or )?folder '{tmp_path / 'im'}'"):
            check_place(files(path))


def test_order_by_name_or_by_time(tmp_path: Path) -> None:
    import os

    for name, time in (("b", 1), ("a", 3), ("c", 1)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time, time))
    found = {path: at for path in listed(files(tmp_path)) if (at := stamp(path))}
    assert [Path(path).name for path in in_order(found, "name")] == ["a", "b", "c"]
    assert [Path(path).name for path in in_order(found, "modified")] == ["b", "c", "a"]


def test_settings_need_no_spark() -> None:
    code = "import sys; from cedr.sources.files import files; files('in/*.csv'); print('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_the_planner_of_parquet_files_does_without_pandas(tmp_path: Path) -> None:
    """Spark starts a Python for each source of a query, and to import pandas takes as long as all the rest of it."""
    pl.DataFrame({"ts": [1]}).write_parquet(tmp_path / "0.parquet")
    code = (
        "import sys, cedr.runtime.spark.reader.source; from cedr.sources.files.parquet import clock_in; "
        "from cedr.plan.nodes.source import Source; feed = Source('s', (), 'ts'); "
        f"print(clock_in({str(tmp_path / '0.parquet')!r}, feed), *(m in sys.modules for m in ('pandas', 'lark')))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "number False False\n"


def test_no_file_is_taken_before_one_that_was_there_first(tmp_path: Path) -> None:
    """While numbered files come, each look takes them without a gap."""
    number, stop = 4_000, threading.Event()

    def write() -> None:
        for i in range(number):
            (tmp_path / f"{i:06d}.csv").touch()
        stop.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen: set[str] = set()
    last = False
    while not last:
        last = stop.is_set()
        found = complete(files(tmp_path), seen)
        seen.update(found)
        assert sorted(Path(path).name for path in seen) == [f"{i:06d}.csv" for i in range(len(seen))]
    writer.join()
    assert len(seen) == number
