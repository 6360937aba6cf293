"""The levels of consistency side by side: what each answered, how soon, and what it cost."""

from collections.abc import Mapping
from statistics import mean

from rich.table import Table

from cedr.cli.demo.levels import Figures
from cedr.cli.demo.screen import plain_table

Found = Mapping[str, Figures]


def table(found: Found) -> Table:
    truth = found["strong"].answer
    shown = plain_table("consistency", "first word*", "repairs*", "state*", "put out*", "given up*", "answer")
    for name, figures in found.items():
        shown.add_row(
            name,
            f"{mean(figures.waits):.0f} s, max {max(figures.waits):.0f} s",
            f"{figures.repairs / len(figures.answer):.1f} / alert",
            f"{figures.state:,} rows",
            f"{figures.rows} rows",
            f"{figures.given_up} rows",
            "[green]same[/]" if figures.answer == truth else "[red]differs[/]",
        )
    return shown


LEGEND = """\
[dim]first word: how far the stream had come, after the beginning of an alert, when it was first told. repairs: \
something else was said about a time already told. state: the most rows held. given up: reports too late for it.[/]
"""


def sentences(found: Found) -> list[str]:
    """What the figures say. The two levels that promise the right answer come first."""
    strong, middle, *weaker = found.values()
    if strong.answer != middle.answer:
        return [f"[red]strong and middle differ: {len(strong.answer ^ middle.answer)} alerts. This is a bug.[/]"]
    said = [
        f"[bold]strong and middle end with the same {len(strong.answer)} alerts.[/] strong waited until it was "
        f"certain, {mean(strong.waits):.0f} s after an alert began, and repaired {times(strong.repairs)}; middle spoke "
        f"after {mean(middle.waits):.0f} s and repaired {times(middle.repairs)}."
    ]
    return said + [sentence(name, figures, middle) for name, figures in list(found.items())[-len(weaker) :]]


def sentence(name: str, figures: Figures, right: Figures) -> str:
    if figures.answer == right.answer:
        return (
            f"[bold]{name}:[/] the same answer here, because no report came later than that. Later ones are given up, "
            "counted, and kept for you to read."
        )
    right_too = len(figures.answer & right.answer)
    return (
        f"[bold]{name}:[/] gave up {figures.given_up} late reports, so only {right_too} of its {len(figures.answer)} "
        f"alerts are right, and {len(right.answer) - right_too} of the true ones are missing or have other times."
    )


def times(number: int) -> str:
    return {0: "nothing", 1: "once", 2: "twice"}.get(number, f"{number} times")
