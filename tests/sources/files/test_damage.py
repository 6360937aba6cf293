"""Damaged text files: every kind of damage ends in rows or in lines with a reason, never in a crash of the process."""

import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import cedr
from cedr.plan.nodes.source import Source
from cedr.sources.files import files
from cedr.sources.files.listing import stamp
from cedr.sources.files.reading import Planner, pieces, splits
from cedr.sources.files.unreadable import BadFileError, Unreadable

GOOD = [(ts, 2 * ts, f"text {ts}") for ts in range(1, 6)]
JSON = "".join(f'{{"ts": {ts}, "k": {k}, "s": "{s}"}}\n' for ts, k, s in GOOD).encode()
CSV = ("ts,k,s\n" + "".join(f'{ts},{k},"{s}"\n' for ts, k, s in GOOD)).encode()
CONTENT = {"json": JSON, "csv": CSV}

NAUGHTY = [
    b"null", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b'"', b"'", b"{", b"}", b"[", b"]", b",", b":", b"\r", b"\n", b"\r\n",
    b"1e999", b"-", b"99999999999999999999999", b"NaN", b"\\ud800", b"\\", b"[" * 20_000, b'{"a":' * 20_000, b"true",
    b" ", b"2024-13-45", b"+262200-01-01T00:00:00", b"\xf0\x9f\x98\x80",
]  # fmt: skip


def read(path: Path, content: bytes, **settings: Any) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """The rows, and the lines that could not be read, with the reason."""
    path.write_bytes(content)
    source, chosen = cedr.source("feed", {"k": int, "s": str}, vs="ts").plan, files(path, **settings)
    assert isinstance(source, Source)
    at = stamp(str(path))
    assert at is not None
    entry = Planner(chosen, source, 1).plan([(str(path), at)], None)
    rows, bad = [], []
    for split in splits([(1, entry)]):
        for piece in pieces(split, chosen, source):
            if isinstance(piece, Unreadable):
                assert isinstance(piece.error(), BadFileError)
                assert str(path) in str(piece.error())
                assert piece.late(source).height == piece.rows.height
                bad += piece.rows.select("line", "why").rows()
            else:
                rows += piece.select("ts", "k", "s").rows()
    return rows, bad


OBJECT = "a line should be an object, such as {...}"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"null", OBJECT),
        (b"null null", OBJECT),
        (b'{"ts": 9, "k": 9} null', OBJECT),
        (b"[1]", f"{OBJECT}, and is an array"),
        (b"7", f"{OBJECT}, and is a number"),
        (b'{"ts": 9, "k": {"a": 1}}', "column 'k' should be a number and is an object"),
        (b'{"ts": 9, "k": "1"}', "column 'k' should be a number and is a string"),
        (b'{"ts": 9, "k": 1.5}', "column 'k' should be int64 and is 1.5"),
        (b'{"ts": 1e30, "k": 1}', "column 'ts' should be int64 and is 1e30"),
        (b'{"ts": 9, "k": 1, "k": 2}', "JSON parse error: Column(/k) was specified twice"),
        (b'{"ts": 9, "s": "\xff"}', "this is not UTF-8"),
        (b'{"ts": 9, "k"', "JSON parse error: Missing a colon after a name of object member."),
        (b'{"ts": 9, "k": ' + b"[" * 5_000 + b"]" * 5_000 + b"}", "column 'k' should be a number and is an array"),
    ],
)
@pytest.mark.parametrize("place", [0, 2, 5])
def test_a_bad_line_of_json(tmp_path, line, why, place):
    lines = JSON.splitlines(keepends=True)
    content = b"".join([*lines[:place], line, b"\n", *lines[place:]])
    rows, bad = read(tmp_path / "a.json", content, on_bad="late")
    assert rows == GOOD
    assert bad == [(place + 1, why)]
    _, bad = read(tmp_path / "a.json", content)
    assert bad[0] == (place + 1, why)


@pytest.mark.parametrize(
    "damage",
    [
        lambda b: b.replace(b"\n", b"\r\n"),
        lambda b: b"\xef\xbb\xbf" + b,
        lambda b: b.rstrip(),
        lambda b: b + b"\n\n",
    ],
)
@pytest.mark.parametrize("form", CONTENT)
def test_what_is_no_damage(tmp_path, form, damage):
    assert read(tmp_path / f"a.{form}", damage(CONTENT[form])) == (GOOD, [])


def test_deep_json_among_the_first_lines(tmp_path):
    deep = b'{"ts": 1, "k": 2, "s": "text 1", "x": ' + b"[" * 5_000 + b"]" * 5_000 + b"}\n"
    assert read(tmp_path / "a.json", deep) == (GOOD[:1], [])


def test_a_field_too_long_for_the_csv_module(tmp_path):
    rows, bad = read(tmp_path / "a.csv", CSV + b'6,12,"' + b"x" * 200_000 + b'"\n')
    assert [row[:2] for row in rows] == [(ts, k) for ts, k, _ in [*GOOD, (6, 12, "")]]
    assert not bad


@pytest.mark.parametrize("form", CONTENT)
@pytest.mark.parametrize("on_bad", ["late", "raise"])
def test_random_damage(tmp_path, form, on_bad):
    dice = random.Random(17)
    header = 1 if form == "csv" else 0
    for number in range(300):
        lines = CONTENT[form].splitlines(keepends=True)
        which = dice.randrange(header, len(lines))
        line = lines[which]
        start = dice.randrange(len(line) - 1)
        lines[which] = line[:start] + dice.choice(NAUGHTY) + line[start + dice.choice([0, 0, 1, 3]) :]
        rows, bad = read(tmp_path / f"{number}.{form}", b"".join(lines), on_bad=on_bad)
        assert all(why for _, why in bad)
        if form == "json" and lines[which].endswith(b"\n"):  # a quote in CSV may take other lines with it
            assert set(rows) >= {row for at, row in enumerate(GOOD) if at != which}


def test_far_dates_in_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    days = pl.Series("ts", [2**31 - 1, 19_000], dtype=pl.Int32).cast(pl.Date)
    pl.DataFrame({"ts": days, "k": [1, 2], "s": ["a", "b"]}).write_parquet(path)
    rows, bad = read(path, path.read_bytes(), on_bad="late")
    assert not rows
    assert "a value is outside the range of timestamps" in bad[0][1]
