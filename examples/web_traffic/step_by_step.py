"""Web traffic: far too much to remember, so count what comes and let go of what comes too late.

Hits per page and 10 seconds at weak consistency. A window is counted when a hit of a later one arrives; a hit that
arrives for a window already counted is dropped and goes to the late stream.
"""

import warnings

import cedr
from cedr.runtime.result import Result

warnings.simplefilter("ignore", cedr.LateWarning)  # what is dropped is shown below

hits = cedr.source("hits", {"page": str}, vs="second")

# second    0         10        20        30
# /home     |#########|#########|             each hit counts for its whole window
counts = hits.tumbling(10).group_by("page").agg(n=cedr.count()).with_consistency("weak")

ARRIVALS = [
    [(1, "/home"), (7, "/home"), (3, "/news")],
    [(9, "/news"), (4, "/home")],
    [(12, "/home"), (11, "/news")],
    [(8, "/news"), (14, "/home")],
    [(23, "/home"), (2, "/home"), (21, "/home")],
    [(19, "/news"), (34, "/news")],
]


def batches() -> list[list[dict]]:
    return [[{"second": second, "page": page} for second, page in batch] for batch in ARRIVALS]


def answers() -> list[Result]:
    """The result after each batch, and after the end."""
    return list(counts.updates(iter(batches())))


def main() -> None:
    dropped = 0
    for batch, result in zip([*ARRIVALS, []], answers(), strict=True):
        print("arrives:", ", ".join(f"{page} at {second}" for second, page in batch) or "nothing more")
        for vs, ve, page, n in result.changelog().sort("vs", "page").select("vs", "ve", "page", "n").iter_rows():
            print(f"    seconds {vs} to {ve}: {n} x {page}")
        late = result.late()
        for vs, page in late[dropped:].select("vs", "page").iter_rows():
            print(f"    too late: {page} for the window from second {vs}")
        dropped = late.height
    print(f"{dropped} of {sum(map(len, ARRIVALS))} hits were dropped")


if __name__ == "__main__":
    main()
