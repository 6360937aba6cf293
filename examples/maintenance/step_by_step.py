"""System maintenance: an alert costs a walk to the machine, so wait until it is certain.

After a patch a machine has 10 minutes to come up. Reports may be delayed. At middle consistency the alert about web1
is raised and taken back; at strong consistency it is never raised, as the query waits for what may still come.
"""

from collections.abc import Iterator

import cedr
from cedr import Cti, Insert, Row
from cedr.runtime.result import Result

patched = cedr.source("patched", {"machine": str}, vs="vs", ve="ve", cti="cti")
came_up = cedr.source("came_up", {"machine": str}, vs="vs", ve="ve", cti="cti")

# patched    |
# deadline   .--- 10 minutes --->|         an alert,
# came_up         |##############|####     unless the machine came up in between
alerts = patched.shift(10).join(came_up.sliding(10), on="machine", how="anti")


def at(minute: int, machine: str) -> Insert:
    return Insert(minute, minute + 1, Row(machine=machine))


ARRIVALS = [
    ("web1 and db1 are patched", "patched", [at(0, "web1"), at(1, "db1")]),
    ("20 minutes later web2 is, too", "patched", [at(21, "web2")]),
    ("and comes up", "came_up", [at(24, "web2")]),
    ("delayed: web1 was up in minute 3", "came_up", [at(3, "web1")]),
    ("all that came up before minute 25 is known", "came_up", [Cti(25)]),
    ("and all patches before it", "patched", [Cti(25)]),
    ("the day ends: nothing more comes up", "came_up", [cedr.END]),
    ("and nothing is patched", "patched", [cedr.END]),
]


def answers(query: cedr.Stream) -> Iterator[tuple[str, Result]]:
    """The result after each arrival."""
    updates = query.updates(iter([{source: elements} for _, source, elements in ARRIVALS]), close=False)
    return zip([text for text, _, _ in ARRIVALS], updates, strict=True)


def main() -> None:
    for level, latency in (("middle", "eager"), ("strong", "ordered")):
        print(f"{level} consistency")
        for text, result in answers(alerts.with_consistency(level).with_latency(latency)):
            print(f"  {text}")
            for change, vs, machine in result.changelog().select("change", "vs", "machine").iter_rows():
                text = "ALERT" if change == "insert" else "never mind"
                print(f"      {text}: {machine} did not come up by minute {vs}")


if __name__ == "__main__":
    main()
