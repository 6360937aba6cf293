"""Every kind of mistake, with the whole message a user sees. golden/mistakes.txt holds the queries and the messages."""

import re
from pathlib import Path

import polars as pl
import pytest

import cedr
from cedr import api
from cedr.syntax.errors import LanguageError

BLOCK = re.compile(r"=== (.*)\n((?:.*\n)*?)---\n((?:.+\n)+)")
MISTAKES = BLOCK.findall((Path(__file__).parent / "golden" / "mistakes.txt").read_text())

feed = api.source("machines", {"kind": str, "machine": str, "load": float}, vs="ts", types="kind")
SENSOR = {"room": str, "celsius": int, "at": pl.Datetime("us"), "machine": int}
sensor = api.source("sensor", SENSOR, vs="vs", kind="HOT")


@pytest.mark.parametrize(("text", "message"), [pytest.param(q[:-1], m[:-1], id=name) for name, q, m in MISTAKES])
def test_the_message(text, message):
    with pytest.raises(LanguageError) as caught:
        cedr.query(text, feed, HOT=sensor)
    assert str(caught.value) == message


def test_none_is_left_out():
    text = (Path(__file__).parent / "golden" / "mistakes.txt").read_text()
    assert len(MISTAKES) == text.count("=== ") > 70


def message(text: str, *streams, **named) -> str:
    with pytest.raises(cedr.CedrError) as caught:
        cedr.query(text, *streams, **named)
    return str(caught.value)


def test_unknown_event_types():
    assert message("EVENT a\n  WHEN SEQUENCE(HT x, HOT y, 12 hours)", sensor) == (
        "line 2, column 17: there is no event type 'HT'; did you mean 'HOT'? (known: HOT)\n"
        "  WHEN SEQUENCE(HT x, HOT y, 12 hours)\n"
        "                ^^"
    )
    assert message("EVENT a SELECT room FROM hot", sensor) == (
        "line 1, column 26: there is no stream or event type 'hot'; did you mean 'HOT'? (known: HOT)\n"
        "  EVENT a SELECT room FROM hot\n"
        "                           ^^^"
    )


def test_types_that_are_known():
    """Where the types column is an Enum, its values are all there are."""
    kinds = pl.Enum(["INSTALL", "SHUTDOWN"])
    typed = api.source("machines", {"kind": kinds, "load": float}, vs="ts", types="kind")
    assert message("EVENT a WHEN SEQUENCE(INSTAL x, SHUTDOWN y, 12 hours)", typed).startswith(
        "line 1, column 23: there is no event type 'INSTAL'; did you mean 'INSTALL'? "
        "(column 'kind' has: INSTALL, SHUTDOWN)\n"
    )
    assert cedr.query("EVENT a WHEN SEQUENCE(INSTALL x, SHUTDOWN y, 12 hours)", typed).columns == ["x_load", "y_load"]


def test_types_that_are_no_text():
    numbered = api.source("machines", {"kind": int, "load": float}, vs="ts", types="kind")
    assert "the types column 'kind' is Int64, not text" in message("EVENT a WHEN ANY(INSTALL x)", numbered)


def test_types_of_two_feeds():
    other = api.source("others", {"type": str}, vs="ts", types="type")
    assert message("EVENT a WHEN ANY(INSTALL x)", feed, other).startswith(
        "line 1, column 18: 'INSTALL' could be a type of several feeds, by their columns 'kind' and 'type'; give its "
        "events by name: INSTALL=feed.where(…)\n"
    )


def test_streams_that_are_none():
    assert message("EVENT a WHEN ANY(A x)", 5) == "query: argument 2 is a int; it must be a stream"
    assert message("EVENT a WHEN ANY(A x)", A=5) == "query(A=…): A is a int; it must be a stream"
    unnamed = sensor.select("room")
    assert "stream 1 has no name; give it by name" in message("EVENT a WHEN ANY(A x)", unnamed)
    assert "two streams are called 'HOT'" in message("EVENT a WHEN ANY(A x)", sensor, sensor)


def test_the_place_is_shown():
    with pytest.raises(LanguageError) as caught:
        cedr.query("EVENT a WHEN\n\n   ANY(A x)\n  WHERE x.lod > 3", feed)
    assert (caught.value.line, caught.value.column) == (4, 9)
    assert caught.value.problem == "A has no attribute 'lod'; did you mean 'load'? (attributes: kind, machine, load)"


def test_long_lines_are_cut():
    text = f"EVENT a WHEN ANY(A x) WHERE {'x.load > 1 AND ' * 30}x.lod > 3{' AND x.load > 1' * 30}"
    first, line, carets = message(text, feed).split("\n")
    assert first.startswith(f"line 1, column {text.index('x.lod >') + 1}: A has no attribute 'lod'")
    assert len(line) == 122
    assert line[carets.index("^") : carets.rindex("^") + 1] == "x.lod"


@pytest.mark.parametrize("number", ["9" * 400, "9" * 5000])
def test_endless_numbers(number):
    length = message(f"EVENT a WHEN SEQUENCE(A x, B y, {number} weeks)", feed)
    assert length.startswith("line 1, column 33: the duration is too large; its microseconds must fit into 64 bits")
    assert "the number is too large" in message(f"EVENT a WHEN ANY(A x) WHERE x.load > {number}", feed)


def test_tabs_take_one_column():
    _, line, carets = message("EVENT a\n\tWHEN\tANY(A\tx)\tWHERE\tx.lod > 3", feed).split("\n")
    assert line[carets.index("^") : carets.rindex("^") + 1] == "x.lod"
