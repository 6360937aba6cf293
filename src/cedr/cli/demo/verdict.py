"""The levels of consistency compared: what each answered, how soon, and at what cost."""

from collections.abc import Mapping
from statistics import mean

from rich.table import Table

from cedr.cli.demo.levels import Figures
from cedr.cli.demo.screen import plain_table

Found = Mapping[str, Figures]


def table(found: Found) -> Table:
    truth = found["strong"].answer
    shown = plain_table("consistency", "delay*", "repairs*", "state*", "emitted*", "dropped*", "answer")
    for name, figures in found.items():
        shown.add_row(
            name,
            f"{mean(figures.waits):.0f} s, max {max(figures.waits):.0f} s",
            f"{figures.repairs / len(figures.answer):.1f} / alert",
            f"{figures.state:,} rows",
            f"{figures.rows} rows",
            f"{figures.dropped} rows",
            "[green]same[/]" if figures.answer == truth else "[red]differs[/]",
        )
    return shown


LEGEND = """\
[dim]delay: how far the stream was past the start of an alert when the alert was first emitted. repairs: changes to \
results already emitted. state: maximum number of rows held. dropped: reports that arrived too late for this level.[/]
"""


def sentences(found: Found) -> list[str]:
    """The figures in sentences. The first two levels promise the right answer."""
    strong, middle, *weaker = found.values()
    if strong.answer != middle.answer:
        return [f"[red]strong and middle differ: {len(strong.answer ^ middle.answer)} alerts. This is a bug.[/]"]
    text = [
        f"[bold]strong and middle end with the same {len(strong.answer)} alerts.[/] strong waited until they were "
        f"final, {mean(strong.waits):.0f} s after an alert began, and repaired {times(strong.repairs)}; middle "
        f"answered after {mean(middle.waits):.0f} s and repaired {times(middle.repairs)}."
    ]
    return text + [sentence(name, figures, middle) for name, figures in list(found.items())[-len(weaker) :]]


def sentence(name: str, figures: Figures, right: Figures) -> str:
    if figures.answer == right.answer:
        return (
            f"[bold]{name}:[/] the same answer here, because no report was later than that. Later reports are dropped, "
            "counted, and kept for inspection."
        )
    right_too = len(figures.answer & right.answer)
    return (
        f"[bold]{name}:[/] dropped {figures.dropped} late reports, so only {right_too} of its {len(figures.answer)} "
        f"alerts are right, and {len(right.answer) - right_too} of the true ones are missing or have other times."
    )


def times(number: int) -> str:
    return {0: "nothing", 1: "once", 2: "twice"}.get(number, f"{number} times")
