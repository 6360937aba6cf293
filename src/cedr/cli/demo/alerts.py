"""The demo's query, and how its result changes from one micro-batch to the next."""

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
        times=cedr.Times(ve_new="corrected"),  # a later row may retract a report
        delay="60s",  # no report arrives later than this
    )
    return (
        reports.sliding("30s")  # each report counts for half a minute
        .group_by("machine")
        .agg(load=cedr.avg("load"))
        .where("load > 90")
        .select("machine")
        .coalesce()  # one alert for as long as it lasts
        .with_latency("ordered")  # emitted when it begins
    )


class Alert(NamedTuple):
    machine: str
    since: datetime
    until: datetime

    def overlaps(self, other: "Alert") -> bool:
        return self.machine == other.machine and self.since < other.until and other.since < self.until


Alerts = frozenset[Alert]


def updated(alerts: Alerts, changes: pl.DataFrame) -> Alerts:
    """The alerts after the changes that a micro-batch emitted."""
    after = set(alerts)
    for change, since, until, new, machine in changes.select("change", "vs", "ve", "ve_new", "machine").iter_rows():
        if change == "insert":
            after.add(Alert(machine, since, until))
        else:
            after.remove(Alert(machine, since, until))
        if change == "adjust":
            after.add(Alert(machine, since, new))
    return frozenset(after)


def repaired(before: Alerts, after: Alerts, reach: datetime) -> set[str]:
    """The machines whose past has changed. `reach` is the time up to which `before` was emitted."""
    return {alert.machine for alert in past(before, reach) ^ past(after, reach)}


def past(alerts: Alerts, moment: datetime) -> Alerts:
    """The parts of alerts that are before a moment."""
    return frozenset(a._replace(until=min(a.until, moment)) for a in alerts if a.since < moment)


class Change(NamedTuple):
    """`was`: the previous alerts that became `now`; `now` is None if they were retracted."""

    what: str
    was: list[Alert]
    now: Alert | None

    @property
    def machine(self) -> str:
        return (self.now or self.was[0]).machine


def changes(before: Alerts, after: Alerts, reached: datetime) -> list[Change]:
    """How each changed alert differs. `reached` is the time up to which `before` was emitted."""
    gone = [alert for alert in in_order(before - after) if not any(map(alert.overlaps, after))]
    found = [Change("retracted", [alert], None) for alert in gone]
    for alert in in_order(after - before):
        was = in_order(filter(alert.overlaps, before))
        found.append(Change(what_happened(was, alert, reached), was, alert))
    return found


def what_happened(was: list[Alert], now: Alert, reached: datetime) -> str:
    if not was:
        return "new" if now.since >= reached else "found late"
    if len(was) > 1:
        return f"{len(was)} alerts merged into one"
    (old,) = was
    if now.since != old.since:
        return f"begins {seconds(now.since, old.since)} {'earlier' if now.since < old.since else 'later'}"
    if min(now.until, reached) == min(old.until, reached):
        return "continues" if now.until > old.until else "over"
    return f"ends {seconds(now.until, old.until)} {'earlier' if now.until < old.until else 'later'}"


def seconds(one: datetime, other: datetime) -> str:
    return f"{abs((one - other).total_seconds()):.0f} s"


def in_order(alerts: Iterable[Alert]) -> list[Alert]:
    return sorted(alerts, key=lambda alert: (alert.since, alert.machine))
