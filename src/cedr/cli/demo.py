"""`cedr demo`: one query over a small disordered stream, shown as it answers, takes back and settles.

The answers come from the oracle, recomputed after every element, so what is shown is what the query means: at middle
consistency the difference between two answers is exactly what has to be put out or taken back, at strong consistency
only what a CTI has settled may be told.
"""

import sys
import time
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from cedr.reference.patterns import SEQUENCE, UNLESS, CorrelationKey, Kind, PatternQuery
from cedr.temporal import Adjust, Cti, Element, History, Insert, Row, canonical, closed_up_to, retract
from cedr.temporal.time import show

TEXT = """\
EVENT  MissedRestart
WHEN   UNLESS(SEQUENCE(INSTALL x, SHUTDOWN AS y, 12 hours),
              RESTART AS z, 5 minutes)
WHERE  CorrelationKey(machine, EQUAL)
OUTPUT x.machine, y.Vs AS down_since"""

HOUR = 60
QUERY = PatternQuery(
    UNLESS(SEQUENCE(Kind("INSTALL", "x"), Kind("SHUTDOWN", "y"), w=12 * HOUR), Kind("RESTART", "z"), w=5),
    where=(CorrelationKey("machine"),),
    output=lambda m: Row(machine=m.bound["x"].payload.machine, down_since=m.bound["y"].vs),
)


def event(kind: str, machine: str, at: int) -> Insert:
    return Insert(at, at + 1, Row(kind=kind, machine=machine))


ARRIVALS: list[tuple[Element, str]] = [
    (event("INSTALL", "web1", 10), "a patch is installed"),
    (event("INSTALL", "db1", 12), ""),
    (event("SHUTDOWN", "web1", 20), "web1 is down, and no restart was seen"),
    (event("SHUTDOWN", "db1", 21), "the same for db1"),
    (event("RESTART", "web1", 23), "late: web1 was up again, the alert was wrong"),
    (Cti(20), "nothing older than minute 20 will come"),
    (event("SHUTDOWN", "web1", 40), "web1 goes down again, and stays down"),
    (retract(21, 22, Row(kind="SHUTDOWN", machine="db1")), "a correction: db1 was never shut down"),
    (Cti(60), "what is left now is certain"),
]


def answer(stream: list[Element]) -> History:
    """What the query says of all that arrived."""
    facts = canonical(stream)
    by_kind = facts.groups(lambda p: p.kind)
    return QUERY.run({kind: by_kind.get(kind, History()) for kind in ("INSTALL", "SHUTDOWN", "RESTART")})


def steps() -> Iterator[tuple[Element, str, History, History, History]]:
    """For each arrival: what middle consistency puts out and takes back, and what strong consistency puts out."""
    stream: list[Element] = []
    before = settled_before = History()
    for element, note in ARRIVALS:
        stream.append(element)
        now = answer(stream)
        # UNLESS looks 5 minutes ahead: an alert is settled once a CTI has passed the end of its scope.
        settled = History(e for e in now if e.ve <= closed_up_to(stream))
        yield element, note, now - before, before - now, settled - settled_before
        before, settled_before = now, settled


def demo(pause: Annotated[float, typer.Option(help="Seconds between two arrivals.")] = 0.6) -> None:
    """Watch a query answer early, take back what a late event made wrong, and settle."""
    console = Console()
    console.print("\n[bold]Which machines did not come up after a patch?[/] Times are minutes.\n")
    console.print(TEXT, style="cyan", highlight=False)
    console.print("\nEvents arrive late, and one is corrected. [bold]middle[/] answers at once and repairs;")
    console.print("[bold]strong[/] waits until the answer cannot change.\n")
    repairs = 0
    for element, note, new, gone, settled in steps():
        console.print(f"[bold]{line(element)}[/]  [dim]{note}[/]", highlight=False)
        for e in gone:
            repairs += 1
            console.print(f"    middle  [red]− taken back: {alert(e.payload)}[/]", highlight=False)
        for e in new:
            console.print(f"    middle  [green]+ alert: {alert(e.payload)}[/]", highlight=False)
        for e in settled:
            console.print(f"    strong  [green]+ alert: {alert(e.payload)}[/]", highlight=False)
        if sys.stdout.isatty():
            time.sleep(pause)
    final = answer([element for element, _ in ARRIVALS])
    table = Table(title=f"\nThe answer, the same for both (middle repaired {repairs} on the way)")
    for name in ("from", "to", "machine", "down since"):
        table.add_column(name, justify="right" if name != "machine" else "left")
    for e in final:
        table.add_row(show(e.vs), show(e.ve), e.payload.machine, str(e.payload.down_since))
    console.print(table)


def alert(payload: Row) -> str:
    return f"{payload.machine} down since {payload.down_since}"


def line(element: Element) -> str:
    match element:
        case Cti(t):
            return f"promise  before {show(t)}".ljust(30)
        case Insert(vs, _, p):
            return f"arrives  {p.kind} {p.machine} at {vs}".ljust(30)
        case Adjust(vs, _, _, p):
            return f"removes  {p.kind} {p.machine} at {vs}".ljust(30)
    return str(element)
