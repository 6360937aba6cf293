"""One run of `./cedr bench peers`: which systems take part, when an answer counts, and how failures are reported."""

from dataclasses import replace

import polars as pl
import pytest
from peers import data
from peers.choice import chosen
from peers.contest import Prepared, prepare, take
from peers.contestants import ALL, LIMIT, LOCAL, ON_SPARK, Contestant
from peers.data import Shape
from peers.environments import HERE, NotInstalledError, python_of
from peers.flink.changes import settled
from peers.questions import GROUPS, QUESTIONS

from cedr.temporal.errors import QueryError

SHAPE = Shape(events=2_000, files=2, keys=10, rate=100, grain=1_000)


def quiet(text: str) -> None:
    """Nobody listens."""


@pytest.fixture
def prepared(tmp_path) -> Prepared:
    return prepare(QUESTIONS["tumbling"], tmp_path, SHAPE, csv=True)


# --- who takes part ------------------------------------------------------------------------------------------------


def test_all_take_part_unless_some_are_chosen_and_polars_always_does():
    assert chosen("") == (ALL, GROUPS)
    assert chosen("local, cedr-spark") == ((LIMIT, LOCAL, ON_SPARK), GROUPS)
    with pytest.raises(QueryError, match=r"nothing is called 'flank'; there are: polars, local, .* hopping, .* q8, "):
        chosen("local,flank")


def test_questions_can_be_chosen_too():
    contestants, groups = chosen("local, q4, join")
    assert contestants == (LIMIT, LOCAL)
    assert {title: [q.name for q in questions] for title, questions in groups.items()} == {
        "Workloads": ["join"],
        "Nexmark": ["q4"],
    }
    assert chosen("q4")[0] == ALL


def test_packages_of_guests_have_exact_versions_and_come_from_where_pip_looks():
    for guest in (who.name for who in ALL if who.guest):
        lines = (HERE / guest / "requirements.txt").read_text().splitlines()
        assert lines
        assert all(line.count("==") == 1 and not set("/:@") & set(line) for line in lines)


def test_an_environment_is_created_once_and_again_when_its_packages_change(tmp_path):
    required, printed = tmp_path / "requirements.txt", []
    required.write_text("# nothing\n")
    python = python_of("guest", printed.append, tmp_path / "cache", required)
    assert python.exists()
    assert python_of("guest", printed.append, tmp_path / "cache", required) == python
    assert len(printed) == 1
    required.write_text("./no-such-package\n")
    with pytest.raises(NotInstalledError, match=r"guest could not be installed: ERROR: .*no-such-package"):
        python_of("guest", printed.append, tmp_path / "cache", required)
    assert len(printed) == 2


# --- a turn --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", [LIMIT, LOCAL])
def test_a_right_answer_has_a_speed(who, prepared):
    turn = take(who, prepared, quiet, apart=False)
    assert turn.unable == ""
    assert turn.events == 2_000
    assert turn.speed == 2_000 / turn.seconds


def test_in_a_process_of_its_own_memory_is_known_too(prepared):
    turn = take(LIMIT, prepared, quiet)
    assert turn.unable == ""
    assert 0.02 < turn.peak < 2
    assert turn.version.startswith("polars ")


def test_a_wrong_answer_does_not_count(prepared):
    other = replace(prepared, expected=prepared.expected.with_columns(n=pl.col("n") + 1))
    turn = take(LOCAL, other, quiet, apart=False)
    assert "its answer is not right: cedr local" in turn.unable
    assert "rows differ in 'n'" in turn.unable


def test_a_failure_is_reported_and_does_not_stop_the_others(prepared):
    printed = []
    turn = take(Contestant("nobody", "Nobody"), prepared, printed.append)
    assert turn.unable == "it ended with 1"
    assert "KeyError: 'nobody'" in printed[0]


def test_an_answer_without_a_column_is_none(prepared):
    other = replace(prepared, expected=prepared.expected.with_columns(zone=1))
    assert take(LOCAL, other, quiet, apart=False).unable.startswith("its answer cannot be read: ")


def test_a_query_that_a_system_cannot_express_is_reported_with_the_reason(tmp_path):
    prepared = prepare(QUESTIONS["q4"], tmp_path, SHAPE, csv=False)
    turn = take(next(who for who in ALL if who.name == "spark"), prepared, quiet)
    assert "append mode takes no aggregate without a window" in turn.unable


def test_the_sliding_sum_is_compared_at_events_only(tmp_path):
    question = QUESTIONS["sliding"]
    prepared = prepare(question, tmp_path, SHAPE, csv=False)
    expected, tables = prepared.expected, prepared.tables
    starts = tables["events"].select("k", vs="ts").unique()
    at_events = expected.join(starts, on=["k", "vs"], how="semi").select(pl.col("vs").dt.epoch("us"), "k", "s")
    assert at_events.height < expected.height
    assert question.wrong("it", at_events, expected, tables) is None
    assert "rows instead of" in (question.wrong("it", at_events[1:], expected, tables) or "")


# --- input and output of guests ------------------------------------------------------------------------------------


def test_csv_files_hold_the_rows_in_turn_without_header_and_flush(prepared):
    rows = prepared.tables["events"]
    for number in range(2):
        part = pl.read_csv(prepared.folder / "in" / "events.csv" / f"{number}.csv", has_header=False)
        mine = rows.gather_every(2, number)
        assert part.to_series(0).to_list() == mine["ts"].dt.epoch("ms").to_list()
        assert part.to_series(1).to_list() == mine["k"].to_list()
    assert rows.equals(data.read(prepared.folder / "in", ("events",))["events"])


def test_of_changes_what_is_left_counts(tmp_path):
    (tmp_path / "0").write_text(
        '{"before":null,"after":{"k":1,"n":1},"op":"c"}\n'
        '{"before":{"k":1,"n":2},"after":null,"op":"d"}\n'
        '{"before":null,"after":{"k":2,"n":7},"op":"c"}\n'
    )
    (tmp_path / "1").write_text(
        '{"before":{"k":1,"n":1},"after":null,"op":"d"}\n'
        '{"before":null,"after":{"k":1,"n":2},"op":"c"}\n'
        '{"before":null,"after":{"k":1,"n":3},"op":"c"}\n'
    )
    assert sorted(row["n"] for row in settled(sorted(tmp_path.iterdir()))) == [3, 7]
