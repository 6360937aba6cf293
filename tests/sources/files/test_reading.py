"""Reading splits: needed columns in the right types, and a clear outcome for all that can be wrong with a file."""

import gzip
import os
import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr.api import source_of_keys
from cedr.plan.nodes.source import Source
from cedr.sources.files import files, reading, text
from cedr.sources.files import parquet as parquet_file
from cedr.sources.files.columns import ExpectedColumns, check_source
from cedr.sources.files.entry import FilePart, InputFile
from cedr.sources.files.listing import Stamp, stamp
from cedr.sources.files.reading import Planner, pieces, splits
from cedr.sources.files.unreadable import BadFileError, Unreadable
from cedr.sources.row_times import FILE
from cedr.temporal.errors import QueryError

SCHEMA: dict[str, Any] = {"k": int, "v": float}


def source(schema: dict[str, Any] | None = None, **times: Any) -> Source:
    found = source_of_keys("feed", SCHEMA if schema is None else schema, **({"vs": "ts"} | times)).plan
    assert isinstance(found, Source)
    return found


def read(
    *paths: Path, of: Source | None = None, parallelism: int = 1, **settings: Any
) -> tuple[list[pl.DataFrame], list[Unreadable]]:
    """The frames and what was unreadable, of files that are planned together."""
    chosen, feed = files(paths[0], **settings), of or source()
    check_source(feed, chosen)
    entry = Planner(chosen, feed, parallelism).plan([(str(path), stamp(str(path))) for path in paths], None)
    found = [piece for split in splits([(1, entry)]) for piece in pieces(split, chosen, feed)]
    frames = [piece.drop(FILE) for piece in found if isinstance(piece, pl.DataFrame)]
    return frames, [piece for piece in found if isinstance(piece, Unreadable)]


def rows(frames: list[pl.DataFrame]) -> list[tuple[Any, ...]]:
    return [row for frame in frames for row in frame.select("ts", "k", "v").rows()]


def bad_rows(bad: list[Unreadable]) -> list[tuple[Any, ...]]:
    return [row for found in bad for row in found.rows.select("line", "text", "count", "why").rows()]


def made(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def parquet(path: Path, row_group_size: int | None = None, **columns: Any) -> Path:
    pl.DataFrame(columns).write_parquet(path, row_group_size=row_group_size)
    return path


# --- good files ----------------------------------------------------------------------------------------------------


def test_csv_with_further_columns_in_any_order(tmp_path: Path) -> None:
    path = made(tmp_path / "a.csv", 'v,x,ts,k\r\n1.5,"a,\nb",10,7\r\n,,11,\r\n')
    assert rows(read(path)[0]) == [(10, 7, 1.5), (11, None, None)]


def test_csv_without_header_with_its_own_separator_and_nulls(tmp_path: Path) -> None:
    path = made(tmp_path / "a.txt", "10;7;-\n11;-;2.5\n")
    frames, _ = read(path, format="csv", columns=["ts", "k", "v"], separator=";", null_values=["-"])
    assert rows(frames) == [(10, 7, None), (11, None, 2.5)]


def test_tabs_byte_order_mark_blank_lines_and_gzip_members(tmp_path: Path) -> None:
    halves = gzip.compress(b"\xef\xbb\xbfts\tk\tv\n1\t2\t3\n\n") + gzip.compress(b"4\t5\t6")
    assert rows(read(made(tmp_path / "a.tsv.gz", halves))[0]) == [(1, 2, 3.0), (4, 5, 6.0)]


def test_empty_text_means_no_value_only_without_quotes(tmp_path: Path) -> None:
    frames, _ = read(made(tmp_path / "a.csv", 'ts,s\n1,\n2,""\n'), of=source({"s": str}))
    assert frames[0]["s"].to_list() == [None, ""]


def test_json_lines_with_nested_values_and_missing_keys(tmp_path: Path) -> None:
    schema = {"s": str, "l": pl.List(pl.Int64), "o": pl.Struct({"a": pl.Float64}), "d": pl.Date}
    lines = '{"ts": 1, "s": "a", "l": [1, 2], "o": {"a": 1, "b": 2}, "d": "2024-02-29", "x": []}\n\n{"ts": 2}'
    frames, _ = read(made(tmp_path / "a.jsonl", lines), of=source(schema))
    assert frames[0].rows() == [("a", [1, 2], {"a": 1.0}, date(2024, 2, 29), 1), (None, None, None, None, 2)]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (["2024-01-01T00:00:00", "2024-01-01 12:00:00.5", "2024-01-02"], datetime(2024, 1, 1)),
        (["2024-01-01T00:00:00Z", "2024-01-01T02:00:00.000001+02:00"], datetime(2024, 1, 1, tzinfo=UTC)),
        (["20240101", "5"], 20240101),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_times_are_timestamps_with_or_without_zone_or_numbers(
    tmp_path: Path, times: list[str], expected: object, suffix: str
) -> None:
    quote = '"' if not times[0].isdigit() else ""
    content = {
        "csv": "ts,until\n" + "".join(f"{t},\n" for t in times),
        "json": "".join(f'{{"ts": {quote}{t}{quote}}}\n' for t in times),
    }[suffix]
    (frame,), bad = read(made(tmp_path / f"a.{suffix}", content), of=source({}, ve="until"))
    assert bad == []
    assert frame["ts"][0] == expected
    assert frame["ts"].dtype == frame["until"].dtype
    assert frame.height == len(times)


def test_files_without_rows(tmp_path: Path) -> None:
    for name, content in {"a.csv": b"ts,k,v\n", "a.json": b"", "b.json": b"\n"}.items():
        assert read(made(tmp_path / name, content)) == ([], [])
    assert read(made(tmp_path / "d.csv", b""), columns=["ts", "k", "v"]) == ([], [])
    empty = parquet(tmp_path / "b.parquet", ts=pl.Series([], dtype=pl.Int64), k=[], v=[])
    assert rows(read(empty)[0]) == []
    assert rows(read(made(tmp_path / "c.csv.gz", gzip.compress(b"")))[0]) == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a.parquet", r": this is not a complete Parquet file \(Parquet file size is 0 bytes\)"),
        ("a.csv", r" is empty \(0 bytes\): a CSV file without rows has a header line"),
        ("a.csv.gz", r" is empty \(0 bytes\): a gzip file without content has a header"),
        ("a.json.gz", r" is empty \(0 bytes\): a gzip file without content has a header"),
    ],
)
def test_a_file_that_was_never_written_is_not_one_without_rows(tmp_path: Path, name: str, why: str) -> None:
    """0 bytes are what a power cut or a full disk leaves of a file."""
    path = made(tmp_path / name, b"")
    with pytest.raises(BadFileError, match=f"file '{path}'{why}"):
        raise next(iter(read(path)[1])).error()
    frames, (bad,) = read(path, on_bad="late")
    assert frames == []
    assert re.search(f"file {path}{why}", bad.late(source())["message"][0])


def test_parquet_types_are_cast_when_nothing_is_lost(tmp_path: Path) -> None:
    path = parquet(
        tmp_path / "a.parquet", ts=pl.Series([1, 2], dtype=pl.UInt8), k=[3.0, None], v=pl.Series([1, 2], dtype=pl.Int16)
    )
    (frame,), _ = read(path)
    assert frame.schema == {"k": pl.Int64, "v": pl.Float64, "ts": pl.Int64}
    assert rows([frame]) == [(1, 3, 1.0), (2, None, 2.0)]
    dates = parquet(tmp_path / "b.parquet", ts=[date(2024, 1, 2)], k=[1], v=[1.0])
    assert rows(read(dates)[0]) == [(datetime(2024, 1, 2), 1, 1.0)]


def test_row_groups_make_splits_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [
        parquet(tmp_path / f"{n}.parquet", 10, ts=range(n * 40, n * 40 + 40), k=[n] * 40, v=[0.5] * 40)
        for n in range(2)
    ]
    chosen, feed = files(tmp_path / "*.parquet"), source()
    entry = Planner(chosen, feed, 3).plan([(str(path), stamp(str(path))) for path in paths], None)
    found = [[f["ts"].to_list() for f in pieces(split, chosen, feed)] for split in splits([(1, entry)])]
    assert found == [[list(range(30))], [list(range(30, 60))], [list(range(60, 80))]]
    monkeypatch.setattr(reading, "ROWS_AT_ONCE", 15)
    frames, _ = read(*paths, parallelism=2)
    assert max(frame.height for frame in frames) <= 15
    assert [row[0] for row in rows(frames)] == list(range(80))


def test_small_files_go_together(tmp_path: Path) -> None:
    paths = [made(tmp_path / f"{n:03}.json", f'{{"ts": {n}, "k": 1, "v": 2}}') for n in range(100)]
    frames, _ = read(*paths, parallelism=3)
    assert [frame.height for frame in frames] == [34, 33, 33]
    assert [row[0] for row in rows(frames)] == list(range(100))


@given(
    values=st.lists(
        st.tuples(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(st.characters(codec="utf-8")))
    ),
    block=st.integers(1, 60),
)
def test_csv_comes_back_however_it_is_cut_into_blocks(
    tmp_path_factory: pytest.TempPathFactory, values: list[tuple[int, float, str]], block: int
) -> None:
    frame = pl.DataFrame(values, {"ts": pl.Int64, "v": pl.Float64, "s": pl.String}, orient="row")
    frame = frame.with_columns(pl.col("s").str.replace_all("[\r\x00]", ""))
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    frame.write_csv(path, quote_style="non_numeric")
    before, text.BLOCK = text.BLOCK, block
    try:
        frames, bad = read(path, of=source({"v": float, "s": str}))
    finally:
        text.BLOCK = before
    assert bad == []
    assert [row for f in frames for row in f.select("ts", "v", "s").rows()] == frame.rows()


# --- bad lines -----------------------------------------------------------------------------------------------------

CSV = 'ts,k,v\n1,2,3.5\n2,x,1\n3,4\n"4","5","a\nb"\n5,6,7,8\n6,7,8.5\n\n7,8'
CSV_BAD = [
    (3, "2,x,1", 1, "column 'k' should be int64, but: invalid value 'x'"),
    (4, "3,4", 1, "expected 3 values, found 2"),
    (5, '"4","5","a\nb"', 1, "column 'v' should be double, but: invalid value 'a\nb'"),
    (7, "5,6,7,8", 1, "expected 3 values, found 4"),
    (10, "7,8", 1, "expected 3 values, found 2"),
]
JSON = (
    b'{"ts":1,"k":2,"v":3.5}\n{"ts":2,"k":2.5}\nnothing\n{"ts":"x"}\n{"ts":3,"k":99999999999999999999}\n'
    b'{"ts":6,"k":7,"v":8.5}\n[1]\n{"ts":4,"k'
)
JSON_BAD = [
    (2, '{"ts":2,"k":2.5}', 1, "column 'k' should be int64 and is 2.5"),
    (3, "nothing", 1, "JSON parse error: Invalid value."),
    (4, '{"ts":"x"}', 1, "column 'ts' should be a number and is a string"),
    (5, '{"ts":3,"k":99999999999999999999}', 1, "column 'k' should be int64 and is 99999999999999999999"),
    (7, "[1]", 1, "a line should be an object, such as {...}, and is an array"),
    (8, '{"ts":4,"k', 1, "JSON parse error: Missing a closing quotation mark in string."),
]


@pytest.mark.parametrize(("name", "content", "expected"), [("a.csv", CSV, CSV_BAD), ("a.json", JSON, JSON_BAD)])
def test_bad_lines_stand_alone(tmp_path: Path, name: str, content: str, expected: list[tuple[Any, ...]]) -> None:
    frames, bad = read(made(tmp_path / name, content), on_bad="late")
    assert rows(frames) == [(1, 2, 3.5), (6, 7, 8.5)]
    assert bad_rows(bad) == expected


def test_bad_lines_in_many_blocks_keep_their_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "BLOCK", 50)
    lines = ["ts,k,v", *(f"{n},{'x' if n % 7 == 0 else n},1" for n in range(2, 200))]
    frames, bad = read(made(tmp_path / "a.csv", "\n".join(lines)), on_bad="late")
    assert [row[0] for row in bad_rows(bad)] == [n for n in range(2, 200) if n % 7 == 0]
    assert [row[0] for row in rows(frames)] == [n for n in range(2, 200) if n % 7]


@given(st.lists(st.sampled_from(["1,2,3", "1,x,3", "1,2", '1,2,"3', "", "1,2,3,4", '"1",2,3']), max_size=12))
def test_every_line_is_used_or_reported(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    """A line with an open quote takes those after it along, so what counts is the text."""
    path = made(tmp_path_factory.mktemp("csv") / "a.csv", "\n".join(["ts,k,v", *lines]))
    frames, bad = read(path, on_bad="late")
    reported = [line for row in bad_rows(bad) for line in row[1].split("\n") if line]
    assert len(rows(frames)) + len(reported) == len([line for line in lines if line])


def test_the_good_part_of_a_cut_gzip_file_is_read(tmp_path: Path) -> None:
    content = gzip.compress(b"ts,k,v\n" + b"".join(b"%d,%d,0.5\n" % (n, n * 7919 % 1000) for n in range(1000)))
    frames, bad = read(made(tmp_path / "a.csv.gz", content[:-900]), on_bad="late")
    ((line, _, count, why),) = bad_rows(bad)
    assert (count, why) == (1, "the gzip data ends early")
    assert [row[0] for row in rows(frames)] == list(range(line - 2))
    assert line > 100
    damaged = content[:1500] + bytes(100) + content[1600:]
    ((_, _, _, why),) = bad_rows(read(made(tmp_path / "b.csv.gz", damaged), on_bad="late")[1])
    assert why.startswith("the gzip data is damaged")
    (none, bad) = read(made(tmp_path / "c.csv.gz", b"ts,k,v\n1,2,3\n"), on_bad="late")
    assert (none, bad[0].rows["line"].to_list()) == ([], [1])


def test_text_that_is_not_utf_8(tmp_path: Path) -> None:
    for name, content in (("a.csv", b"ts,s\n1,\xff\n2,ok\n"), ("a.json", b'{"ts":1,"s":"\xff"}\n{"ts":2,"s":"ok"}\n')):
        frames, bad = read(made(tmp_path / name, content), of=source({"s": str}), on_bad="late")
        assert frames[0]["s"].to_list() == ["ok"]
        assert "\\xff" in bad_rows(bad)[0][1]


def test_times_written_otherwise_than_in_the_first_file_are_bad_lines(tmp_path: Path) -> None:
    one, other = (
        made(tmp_path / "a.csv", "ts,k,v\n1,1,1\n"),
        made(tmp_path / "b.csv", "ts,k,v\n2024-01-01,1,1\n2,2,2\n"),
    )
    frames, bad = read(one, other, on_bad="late")
    assert [row[0] for row in rows(frames)] == [1, 2]
    assert bad_rows(bad) == [
        (2, "2024-01-01,1,1", 1, "column 'ts' should be int64, but: invalid value '2024-01-01'"),
    ]


# --- bad files -----------------------------------------------------------------------------------------------------


def damaged(path: Path) -> Path:
    """The footer is good, a page in the middle is not."""
    table = pa.table({"ts": range(1000), "k": range(1000), "v": [n * 0.37 for n in range(1000)]})
    pq.write_table(table, path, row_group_size=500, write_page_checksum=True, compression="zstd")
    content = bytearray(path.read_bytes())
    at = pq.ParquetFile(path).metadata.row_group(1).column(2).data_page_offset + 60
    content[at : at + 40] = bytes(40)
    return made(path, bytes(content))


def cut_parquet(path: Path) -> Path:
    return made(path, parquet(path, ts=[1], k=[1], v=[1.0]).read_bytes()[:-9])


BAD_FILES = {
    "no footer": (cut_parquet, "a.parquet", None, ": this is not a complete Parquet file"),
    "damaged": (damaged, "a.parquet", 1000, ": its data is damaged"),
    "missing": (lambda p: parquet(p, ts=[1], K=[1], v=[1.0]), "a.parquet", None, ": no column 'k'; did you mean 'K'?"),
    "lossy": (
        lambda p: parquet(p, ts=[1, 2], k=[1.0, 2.5], v=[1.0, 1.0]),
        "a.parquet",
        2,
        ": column 'k' should be Int64 and is Float64; 2.5 cannot be cast without loss",
    ),
    "other": (
        lambda p: parquet(p, ts=[1], k=["1"], v=[1.0]),
        "a.parquet",
        1,
        ": column 'k' should be Int64 and is String",
    ),
    "times": (
        lambda p: parquet(p, ts=["1"], k=[1], v=[1.0]),
        "a.parquet",
        1,
        ": column 'ts' should be Int64 and is String",
    ),
    "csv": (lambda p: made(p, "ts,k\n1,2\n"), "a.csv", None, ": no column 'v' (columns: ts, k)"),
    "twice": (lambda p: made(p, "ts,k,v,k\n1,2,3,4\n"), "a.csv", None, ": there are several columns 'k'"),
    "header": (lambda p: made(p, b"ts,\xff\n1,2\n"), "a.csv", None, ": the header line cannot be read"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_is_late_as_a_whole(tmp_path: Path, case: str) -> None:
    make, name, count, why = BAD_FILES[case]
    path = make(tmp_path / name)
    frames, bad = read(path, on_bad="late", parallelism=4)
    assert frames == []
    ((line, found_text, found_count, reason),) = bad_rows(bad)
    assert (line, found_text, found_count) == (None, None, count)
    assert reason.startswith(why)


def test_nothing_of_a_damaged_parquet_file_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_file, "ROWS_AT_ONCE", 100)
    path, feed = damaged(tmp_path / "a.parquet"), source()
    assert read(path, on_bad="late", parallelism=4)[0] == []
    good = reading.parquet_pieces(
        FilePart(0, 0, 2), InputFile(str(path), Stamp(0, 0)), files(path), ExpectedColumns(feed, "number")
    )
    assert next(good).height == 100  # what comes before the damage can be read


def test_parquet_times_with_and_without_zone_are_not_mixed(tmp_path: Path) -> None:
    here = parquet(tmp_path / "a.parquet", ts=[datetime(2024, 1, 1)], k=[1], v=[1.0])
    there = parquet(tmp_path / "b.parquet", ts=[datetime(2024, 1, 1, tzinfo=UTC)], k=[1], v=[1.0])
    numbers = parquet(tmp_path / "c.parquet", ts=[1], k=[1], v=[1.0])
    frames, bad = read(here, there, numbers, on_bad="late")
    assert len(rows(frames)) == 1
    assert [row[3] for row in bad_rows(bad)] == [
        ": column 'ts' should be Datetime without a zone and is Datetime with zone UTC",
        ": column 'ts' should be Datetime without a zone and is Int64",
    ]


def test_planning_stops_at_a_bad_parquet_file(tmp_path: Path) -> None:
    with pytest.raises(
        BadFileError, match=r"a.parquet': this is not a complete Parquet file .* repair the file or move it"
    ):
        read(cut_parquet(tmp_path / "a.parquet"))


def test_files_that_change_or_vanish_after_planning(tmp_path: Path) -> None:
    path, chosen, feed = made(tmp_path / "a.csv", "ts,k,v\n1,2,3\n"), files(tmp_path, "csv"), source()
    entry = Planner(chosen, feed, 1).plan([(str(path), stamp(str(path)))], None)
    (split,) = splits([(1, entry)])
    os.utime(path, ns=(0, 0))
    (changed,) = pieces(split, chosen, feed)
    path.unlink()
    (gone,) = pieces(split, chosen, feed)
    assert isinstance(changed, Unreadable)
    assert isinstance(gone, Unreadable)
    assert "was planned for this batch with 13 bytes and has changed to" in str(changed.error())
    assert "restore the old content" in str(changed.error())
    assert "was planned for this batch and no longer exists" in str(gone.error())
    assert "restore the file" in str(gone.error())


def test_a_file_that_changes_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "BLOCK", 8)
    path = made(tmp_path / "a.csv", "ts,k,v\n1,2,3\n2,3,4\n")
    chosen, file = files(path), InputFile(str(path), stamp(str(path)))
    found = reading.file_pieces(FilePart(0), file, chosen, ExpectedColumns(source(), "number"))
    assert isinstance(next(found), pl.DataFrame)
    os.utime(path, ns=(0, 0))
    *_, last = found
    assert isinstance(last, Unreadable)
    assert last.trouble == "changed"


# --- messages ------------------------------------------------------------------------------------------------------


def test_errors_name_the_place_the_problem_and_the_remedy(tmp_path: Path) -> None:
    _, (bad, *_) = read(made(tmp_path / "a.csv", CSV))
    assert str(bad.error()) == (
        f"file '{tmp_path}/a.csv', line 3: column 'k' should be int64, but: invalid value 'x' in '2,x,1'. "
        'To continue, repair the file in place and restart the query; or restart it with on_bad="late", which puts '
        "unreadable data into the late stream and uses the rest. Then the file may also be moved away."
    )


def test_late_rows_look_like_those_of_the_late_stream(tmp_path: Path) -> None:
    feed = source()
    _, (bad,) = read(made(tmp_path / "a.csv", "ts,k,v\n1,x,3\n"), on_bad="late")
    late = bad.late(feed)
    assert late.columns == ["_vs", "_ve_old", "_ve_new", "k", "v", "reason", "message"]
    assert late["reason"].to_list() == ["unreadable"]
    assert late["message"].to_list() == [
        f"file {tmp_path}/a.csv, line 2: column 'k' should be int64, but: invalid value 'x' in 1,x,3"
    ]
    _, (whole,) = read(parquet(tmp_path / "a.parquet", ts=[1], k=["x"], v=[1.0]), on_bad="late")
    assert whole.late(feed)["message"].to_list() == [
        f"file {tmp_path}/a.parquet: column 'k' should be Int64 and is String (1 rows)"
    ]


@pytest.mark.parametrize(
    ("feed", "form", "message"),
    [
        (source({"ts": str}), "csv", "'ts' contains times, but its type in the schema is text"),
        (source(partition="p"), "json", "json has no types; declare 'p' in the schema"),
        (source({"l": pl.List(pl.Int64)}), "csv", "csv files cannot contain values of type List(Int64) (column 'l')"),
        (source({"d": pl.Duration}), "json", "json files cannot contain values of type Duration"),
        (source(vs=None), "csv", "the source has no time column"),
    ],
)
def test_sources_that_no_file_can_serve(feed: Source, form: Any, message: str) -> None:
    with pytest.raises(QueryError) as e:
        check_source(feed, files("in", form))
    assert message in str(e.value)


@pytest.mark.parametrize("when", ["yesterday", "08:00", "12.5"])
@pytest.mark.parametrize("line", [2, 3])
def test_a_time_that_is_none_is_a_bad_line_even_if_it_comes_first(tmp_path: Path, when: str, line: int) -> None:
    """The lines with times determine the format of times."""
    good = ["2026-11-16T08:00:00,1,1", "2026-11-17,2,2"]
    path = made(tmp_path / "a.csv", "\n".join(["ts,k,v", *good[: line - 2], f"{when},3,3", *good[line - 2 :], ""]))
    frames, bad = read(path, on_bad="late")
    assert [ts.day for ts, _, _ in rows(frames)] == [16, 17]
    assert [row[0] for row in bad_rows(bad)] == [line]
    assert bad_rows(bad)[0][1].startswith(when)
