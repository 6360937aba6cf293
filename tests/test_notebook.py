"""What notebooks and rich consoles show."""

import polars as pl
from rich.console import Console

import cedr
from cedr import INF, History, Insert, Row

READINGS = cedr.source("readings", {"machine": str, "load": int})
BUSY = READINGS.where(pl.col("load") > 50).group_by("machine").agg(n=cedr.count())


def as_text(shown) -> str:
    console = Console(width=120, record=True, file=None)
    with console.capture() as captured:
        console.print(shown)
    return captured.get()


def test_a_history_is_a_table_with_bars():
    html = History([(0, 5, Row(name="<a>")), (5, INF, Row(name="b"))])._repr_html_()
    assert "<th>name</th>" in html
    assert "&lt;a&gt;" in html
    assert "<td>∞</td>" in html
    assert html.count("<rect") == 2


def test_bars_are_as_long_as_lifetimes():
    html = History([(0, 10, "a"), (5, 10, "b")])._repr_html_()
    assert 'x="0.0" y="1" width="216.0"' in html
    assert 'x="108.0" y="1" width="108.0"' in html


def test_a_long_history_shows_the_number_of_further_rows():
    history = History((i, i + 1, "x") for i in range(1000))
    assert "and 970 more" in history._repr_html_()
    assert "and 970 more" in as_text(history)


def test_payloads_without_names_and_no_events():
    assert "<th>payload</th>" in History([(0, 1, "x")])._repr_html_()
    assert "<tbody></tbody>" in History()._repr_html_()
    assert "payload" in as_text(History([(0, 1, "x")]))


def test_a_stream_shows_its_columns_and_its_plan():
    html = BUSY._repr_html_()
    assert "<th>machine</th><th>n</th>" in html
    assert "Aggregate by machine: n=count()" in html
    text = as_text(BUSY)
    assert text.index("Aggregate") < text.index("Select") < text.index("Source readings")


def test_brackets_of_a_plan_are_not_taken_for_colours():
    assert "[red]" in as_text(READINGS.where(pl.col("machine") == "[red]"))


def test_an_explanation_is_shown_as_it_is():
    text = BUSY.explain()
    assert repr(text) == str(text)
    assert text._repr_html_().startswith("<pre>Plan as written\n")


def test_a_result_shows_its_table_and_what_was_put_aside():
    elements = [Insert(0, 5, Row(machine="a", load=60)), cedr.Cti(9), Insert(1, 5, Row(machine="a", load=60))]
    html = BUSY.run(elements)._repr_html_()
    assert "<table" in html
    assert "1 late rows" in html
    assert "put aside" not in BUSY.run(elements[:1])._repr_html_()


def test_brackets_of_a_payload_are_not_taken_for_colours():
    assert "[/red]" in as_text(History([(0, 3, Row(name="[/red]"))]))
