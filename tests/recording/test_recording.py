"""A recorded changelog contains the stream: its histories, its differences, its rows at any pace."""

import itertools

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cedr
from cedr import INF, Adjust, CedrError, Cti, Event, History, Insert, Row, canonical, retract, testing
from cedr.columnar.chunk import chunk_of
from cedr.recording.changelog import changelog_rows, read_changelog, recorded, write_changelog
from cedr.recording.difference import difference
from cedr.recording.history import as_moment, canonical_table, canonical_tuples, known_at, tritemporal_table
from cedr.recording.lifetimes import Lane, LifetimeBar, bars, picture
from cedr.recording.pace import moments, paced, write_moment
from cedr.runtime.result import Result
from cedr.temporal.stream import data
from cedr.temporal.tritemporal import HistoryTable

SCHEMA = {"m": pl.Int64(), "v": pl.String()}
PAYLOADS = testing.rows(m=st.integers(0, 1), v=st.sampled_from("ab"))
STREAMS = testing.streams(PAYLOADS)
SECOND = 1_000_000


def changelog(stream, schema=SCHEMA) -> pl.DataFrame:
    """Each element, emitted a second after the one before."""
    frames = [changelog_rows(chunk_of([e], schema), n * SECOND, pl.Int64()) for n, e in enumerate(stream)]
    return pl.concat(frames) if frames else changelog_rows(chunk_of([], schema), 0, pl.Int64())


def record(stream):
    return recorded(changelog(stream), "changes")


def history(known, to=INF) -> History:
    return Result(known.schema, [], canonical_tuples(known, to), pl.Int64()).history()


@given(STREAMS)
def test_the_canonical_history_is_that_of_the_stream(stream):
    assert history(record(stream)) == canonical(stream)
    ctis = [e.t for e in stream if isinstance(e, Cti)]
    assert [cti for _, cti in record(stream).ctis] == sorted(set(ctis))


@given(STREAMS, st.integers(0, 20), st.integers(0, 20))
def test_as_known_at_a_cedr_time(stream, number, to):
    known = known_at(record(stream), str(number))
    first = data(stream)[:number]
    assert history(known) == canonical(first)
    assert history(known, to) == canonical(first).to(to)


@given(STREAMS, st.integers(0, 20))
def test_as_known_at_a_time_of_day(stream, second):
    known = known_at(record(stream), f"1970-01-01T00:00:{second:02}")
    assert history(known) == canonical(data(stream[: second + 1]))


@given(STREAMS)
def test_the_tritemporal_table_is_that_of_the_paper(stream):
    rows = tritemporal_table(record(stream)).rows()
    none = lambda t: None if t == INF else t  # noqa: E731
    expected = HistoryTable.of(data(stream)).rows
    assert rows == [(r.k, r.os, none(r.oe), r.cs, none(r.ce), r.payload.m, r.payload.v) for r in expected]


@given(testing.same_history(PAYLOADS))
def test_two_streams_of_one_history_do_not_differ(both):
    one, two = both
    assert not difference(record(one), record(two))


@given(STREAMS, STREAMS, st.one_of(st.just(INF), st.integers(0, 20)))
def test_the_difference_is_that_of_the_histories(one, two, to):
    found = difference(record(one), record(two), to)
    left, right = canonical(one).to(to), canonical(two).to(to)
    tuples = [
        (Event(row["vs"], INF if row["ve"] is None else row["ve"], Row(m=row["m"], v=row["v"])), row["copies"])
        for row in found.only.to_dicts()
    ]
    assert sum(n for _, n in tuples) == len(left - right) + len(right - left)
    assert {e for e, _ in tuples} == set(left - right) | set(right - left)
    assert [e[:2] for e, _ in tuples] == sorted(e[:2] for e, _ in tuples), "the first difference comes first"


@given(STREAMS, st.sampled_from(["emitted", "vs"]))
def test_a_source_reads_what_is_replayed(stream, by):
    source = cedr.source("changes", SCHEMA, vs="vs", ve="ve", times=cedr.Times(ve_new="ve_new"), cti="cti")
    tables = [moment.rows for moment in moments(record(stream), by)]
    result = list(source.updates(iter(tables)))[-1:]
    assert (result[0].history() if result else History()) == canonical(stream)
    assert not result or not result[0].late().height


def test_moments_come_when_they_are_due():
    stream = [Insert(t, t + 1, Row(m=0, v="a")) for t in range(4)]
    now, waits = [100.0], []

    def sleep(seconds):
        waits.append(seconds)
        now[0] += seconds

    found = list(paced(moments(record(stream), "emitted"), 2.0, lambda: now[0], sleep))
    assert [moment.at for moment in found] == [0, SECOND, 2 * SECOND, 3 * SECOND]
    assert waits == [0.5, 0.5, 0.5]
    waits.clear()
    list(paced(moments(record(stream), "emitted"), float("inf"), lambda: now[0], sleep))
    assert waits == []


@given(STREAMS)
def test_bars_end_where_the_events_do(stream):
    found = bars(record(stream).rows)
    assert History((b.start, b.end, b.label) for b in found if not b.removed) == History(
        (e.vs, e.ve, f"{e.payload.m}, {e.payload.v}") for e in canonical(stream)
    )
    assert sum(b.repairs + 1 for b in found) == len(data(stream))
    assert all(b.longest >= b.end for b in found)


# --- files ---------------------------------------------------------------------------------------------------------

STREAM = [
    Insert(0, 10, Row(m=1, v="a")),
    Insert(6, INF, Row(m=2, v="b")),
    Cti(3),
    retract(6, INF, Row(m=2, v="b")),
    Adjust(0, 10, INF, Row(m=1, v="a")),
    Cti(INF),
]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_is_read_as_it_was_written(tmp_path, suffix):
    path = tmp_path / f"changes.{suffix}"
    frame = changelog(STREAM)
    frame.write_csv(path) if suffix == "csv" else frame.write_parquet(path)
    found = read_changelog(path)
    assert history(found) == canonical(STREAM)
    assert found.ctis == ((2, 3), (4, INF))
    assert found.emitted_at is not None
    assert found.emitted_at.tolist() == [0, SECOND, 3 * SECOND, 4 * SECOND]


def test_a_folder_is_replaced_and_read_in_order(tmp_path):
    for stream in (STREAM, STREAM[:3]):
        frames = [changelog([e]) for e in stream]
        write_changelog(tmp_path / "changes", frames)
        assert history(read_changelog(tmp_path / "changes")) == canonical(stream)


def test_shards_have_come_as_far_as_the_last_of_them():
    frame = pl.DataFrame(
        {"change": ["cti", "cti", "insert", "cti"], "vs": [5, 3, 7, 9], "ve": [5, 3, 8, 9], "ve_new": None}
        | {"shard": [0, 1, 0, 1], "m": 1}
    )
    assert recorded(frame, "changes").ctis == ((0, 3), (1, 5))


def test_own_names_in_the_payload():
    schema = {"vs": pl.Int64(), "emitted": pl.Int64()}
    row = Row(vs=7, emitted=8)
    stream = [Insert(1, 4, row), retract(1, 4, row), Insert(2, 3, row)]
    assert canonical_table(recorded(changelog(stream, schema), "changes")).rows() == [(2, 3, 7, 8)]


@pytest.mark.parametrize("payload", ["m", "told", "emitted"])
@pytest.mark.parametrize("former", [[0], [0, 1]], ids=["mixed", "old"])
def test_files_with_the_former_name_of_the_time_of_emission_are_read(payload, former, tmp_path):
    """A query that wrote `told` and goes on writes `emitted` into the same folder."""
    schema = {payload: pl.Int64()}
    for number, vs in enumerate((1, 5)):
        frame = changelog([Insert(vs, 9, Row(**{payload: vs}))], schema)
        if number in former:
            own = "_told" if payload == "told" else "told"
            frame = frame.rename({frame.columns[-1]: own})
            assert frame.columns[-2:] == [payload, own]
        frame.write_parquet(tmp_path / f"{number}.parquet")
    found = read_changelog(tmp_path)
    assert found.emitted_at.tolist() == [0, 0]
    assert canonical_table(found).to_dicts() == [{"vs": vs, "ve": 9, payload: vs} for vs in (1, 5)]


def test_files_of_moments_are_seen_when_they_are_whole(tmp_path):
    for number, moment in enumerate(moments(record(STREAM[:3]), "emitted")):
        write_moment(moment, tmp_path, number, "csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["00000000.csv", "00000001.csv"]
    assert (tmp_path / "00000001.csv").read_text() == "vs,ve,ve_new,cti,m,v\n6,,,,2,b\n,,,3,,\n"


BROKEN = {
    "nothing there": (lambda p: None, "does not exist; name a Parquet or CSV file"),
    "an empty folder": (lambda p: p.mkdir(), "this folder contains no .parquet or .csv files"),
    "no changelog": (
        lambda p: p.write_text("a,b\n1,2\n"),
        "is neither a changelog nor a table with vs and ve: it has no column 'change' (columns: a, b)",
    ),
    "another change": (
        lambda p: p.write_text("change,vs,ve,ve_new\nupsert,1,2,\n"),
        "invalid change 'upsert'; it must be one of insert, adjust, remove, cti",
    ),
    "times that are none": (
        lambda p: p.write_text("change,vs,ve,ve_new\ninsert,now,2,\n"),
        "time column 'vs' is of type String",
    ),
    "an end before the start": (
        lambda p: p.write_text("change,vs,ve,ve_new\ninsert,1,2,\ninsert,5,1,\n"),
        "change 2 has the start 5 and the end 1; an end must come after the start",
    ),
    "an adjust to before the start": (
        lambda p: p.write_text("change,vs,ve,ve_new\ninsert,5,9,\nadjust,5,9,1\n"),
        "change 2 has the start 5 and the end 1; an end must come after the start",
    ),
    "a time of day that is missing": (
        lambda p: p.write_text("change,vs,ve,ve_new,emitted\ninsert,1,2,,2026-01-01T00:00:00\ninsert,1,2,,\n"),
        "change 2 has no time in the column 'emitted'; give it one",
    ),
    "a change of nothing": (
        lambda p: p.write_text("change,vs,ve,ve_new\nadjust,1,2,5\n"),
        "a change is about a tuple that was never inserted, or was removed: vs=1, ve=2",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_invalid_changelogs_are_refused(kind, tmp_path):
    make, message = BROKEN[kind]
    path = tmp_path / "changes.csv"
    make(path)
    with pytest.raises(CedrError) as error:
        canonical_table(read_changelog(path))
    assert message in str(error.value)


def test_cti_numbers_count_from_the_start():
    stream = list(itertools.chain.from_iterable((Insert(t, t + 2, Row(m=t, v="a")), Cti(t)) for t in range(3)))
    assert record(stream).ctis == ((1, 0), (2, 1), (3, 2))


def test_instants_are_drawn_as_points():
    bars = [LifetimeBar("instant", 5, 6, 6), LifetimeBar("long", 0, 100_000, 100_000)]
    (axes,) = picture([Lane("input", bars)], pl.Int64(), "").axes
    assert [line.get_marker() for line in axes.lines] == ["o"]
    assert [bar.get_width() for bar in axes.patches] == [100_000]


def test_a_difference_of_tuples_with_columns_of_these_names():
    schema = {"vs": pl.Int64(), "of": pl.Int64(), "copies": pl.Int64()}
    row = Row(vs=7, of=8, copies=9)
    one, two = (recorded(changelog([Insert(1, end, row)], schema), f"{end}") for end in (4, 5))
    assert (
        str(difference(one, two)) == "different: only 4 has (_vs=1, ve=4, vs=7, of=8, copies=9); 1 more tuple differs"
    )
    assert not difference(one, one)


def test_a_log_of_spark_that_is_broken(tmp_path):
    (tmp_path / "_spark_metadata").mkdir()
    (tmp_path / "_spark_metadata" / "0").write_text("v1\nno JSON\n")
    with pytest.raises(CedrError, match="0: the log of Spark's file sink cannot be read: Expecting value"):
        read_changelog(tmp_path)


def test_suffixes_in_capitals(tmp_path):
    (tmp_path / "A.CSV").write_text("change,vs,ve,ve_new,m\ninsert,1,2,,7\n")
    assert canonical_table(read_changelog(tmp_path)).rows() == [(1, 2, 7)]


def test_times_are_exact_to_the_end_of_the_calendar():
    assert as_moment("9999-12-31T23:59:59.999999", "--to") == 253402300799999999
