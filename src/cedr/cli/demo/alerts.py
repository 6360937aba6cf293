"""The demo's query, and what becomes of its answer from one micro-batch to the next."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

import polars as pl

import cedr


def overloaded() -> cedr.Stream:
    reports = cedr.source(
        "reports",
        {"machine": str, "load": float},
        vs="time",
        ve_new="corrected",  # a later row may take a report back
        delay="60s",  # no report comes later than this
    )
    return (
        reports.sliding("30s")  # each report counts for half a minute
        .group_by("machine")
        .agg(load=cedr.avg("load"))
        .where("load > 90")
        .select("machine")
        .coalesce()  # one alert for as long as it lasts
        .with_latency("ordered")  # told when it begins
    )


class Alert(NamedTuple):
    machine: str
    since: datetime
    until: datetime

    def overlaps(self, other: "Alert") -> bool:
        return self.machine == other.machine and self.since < other.until and other.since < self.until


Alerts = frozenset[Alert]


def brought_forward(alerts: Alerts, said: pl.DataFrame) -> Alerts:
    """The alerts after what a micro-batch said about them."""
    after = set(alerts)
    for change, since, until, new, machine in said.select("change", "vs", "ve", "ve_new", "machine").iter_rows():
        if change == "insert":
            after.add(Alert(machine, since, until))
        else:
            after.remove(Alert(machine, since, until))
        if change == "adjust":
            after.add(Alert(machine, since, new))
    return frozenset(after)


def repaired(before: Alerts, after: Alerts, reach: datetime) -> set[str]:
    """The machines about whose past something else is said now. `reach` is how far `before` spoke."""
    return {alert.machine for alert in past(before, reach) ^ past(after, reach)}


def past(alerts: Alerts, moment: datetime) -> Alerts:
    """What they say about the time before a moment."""
    return frozenset(a._replace(until=min(a.until, moment)) for a in alerts if a.since < moment)


class Change(NamedTuple):
    """`was`: the alerts before that became `now`; it is missing when they are taken back."""

    what: str
    was: list[Alert]
    now: Alert | None

    @property
    def machine(self) -> str:
        return (self.now or self.was[0]).machine


def changes(before: Alerts, after: Alerts, reached: datetime) -> list[Change]:
    """What became of each alert that is not as it was. `reached` is how far `before` spoke."""
    gone = [alert for alert in in_order(before - after) if not any(map(alert.overlaps, after))]
    found = [Change("taken back", [alert], None) for alert in gone]
    for alert in in_order(after - before):
        was = in_order(filter(alert.overlaps, before))
        found.append(Change(what_happened(was, alert, reached), was, alert))
    return found


def what_happened(was: list[Alert], now: Alert, reached: datetime) -> str:
    if not was:
        return "new" if now.since >= reached else "found late"
    if len(was) > 1:
        return f"{len(was)} alerts are one"
    (old,) = was
    if now.since != old.since:
        return f"begins {seconds(now.since, old.since)} {'earlier' if now.since < old.since else 'later'}"
    if min(now.until, reached) == min(old.until, reached):
        return "goes on" if now.until > old.until else "over"
    return f"ends {seconds(now.until, old.until)} {'earlier' if now.until < old.until else 'later'}"


def seconds(one: datetime, other: datetime) -> str:
    return f"{abs((one - other).total_seconds()):.0f} s"


def in_order(alerts: Iterable[Alert]) -> list[Alert]:
    return sorted(alerts, key=lambda alert: (alert.since, alert.machine))
