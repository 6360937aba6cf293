"""Random plans over large tables, compared with plain polars and DuckDB programs.

Plans of up to five levels of all operators, patterns among them, over one or two sources of 10,000 to 1,000,000 rows
each that come late, twice, corrected and retracted, in chunks of 1, 1,000, 50,000 and all rows. `random_plans/mix.py`
has the mix, docs/decisions/0036-differential-tests.md the reasons. A case that fails is reduced and written to
tests/differential/kept, from where the tests run it again.

    ./cedr bench differential                            1,000 plans, the bars
    ./cedr bench differential --only from=300            go on with plan 300
    ./cedr bench differential --only from=5000,to=5200   other plans
    ./cedr bench differential --only seed=17             one of them, with its plan
    ./cedr bench differential --only most=10000          only plans with sources of at most 10,000 rows
    ./cedr bench differential --only least=1000000       only plans with sources of at least 1,000,000 rows
"""

import sys
import time
import traceback
from pathlib import Path

from harness import BenchmarkReport, one_core
from rich.markup import escape

from cedr.temporal.errors import QueryError

sys.path.insert(0, str(Path(__file__).parent))

from random_plans.case import Case, draw, failure
from random_plans.kept import FOLDER, save
from random_plans.mix import LARGE, PLANS, wanted
from random_plans.reduce import reduced, signature

NUMBERS = ("from", "to", "seed", "least", "most", "reduce")


def chosen(only: str) -> dict[str, int]:
    """The values of `--only` as numbers."""
    found = {}
    for part in only.split(",") if only else ():
        name, _, value = part.partition("=")
        if name.strip() not in NUMBERS or not value.strip().isdecimal():
            raise QueryError(
                f"--only {part}: write {'=.., '.join(NUMBERS)}=.. with whole numbers, such as from=300,to=400"
            )
        found[name.strip()] = int(value)
    return found


def run(report: BenchmarkReport, quick: bool, only: str = "") -> None:
    one_core()
    asked = chosen(only)
    first = asked.get("seed", asked.get("from", 0))
    last = first + 1 if "seed" in asked else asked.get("to", PLANS // 10 if quick else PLANS)
    cases = [w for w in map(wanted, range(first, last)) if asked.get("least", 0) <= w.rows <= asked.get("most", LARGE)]
    counts = {"plans": 0, "large": 0, "rows": 0, "differences": 0, "exceptions": 0}
    start = time.monotonic()
    for number, case in enumerate(cases, start=1):
        try:
            made = draw(case.seed, case.rows, case.slicing)
            if "seed" in asked:
                report.print(escape(str(made)))
            found = failure(made)
        except KeyboardInterrupt:
            report.print(f"stopped; go on with --only from={case.seed}")
            break
        except Exception:  # in a program that cedr is compared with; the other plans go on
            counts["exceptions"] += 1
            report.print(escape(f"seed {case.seed} has no expected answer:\n{traceback.format_exc()}"))
            continue
        counts["plans"] += 1
        counts["large"] += case.rows >= LARGE
        counts["rows"] += made.rows
        if found:
            counts["exceptions" if found.startswith("exception") else "differences"] += 1
            keep(report, made, found, asked.get("reduce", 120))
        if number % 20 == 0 or case.rows >= LARGE or number == len(cases):
            seconds = time.monotonic() - start
            left = seconds / number * (len(cases) - number)
            wrong = counts["differences"] + counts["exceptions"]
            report.print(
                f"{number:,} of {len(cases):,} plans, {counts['rows'] / 1e6:,.1f} M rows, {wrong} failed, "
                f"{seconds / 60:,.1f} min, about {left / 60:,.0f} more (next is --only from={case.seed + 1})"
            )
    complete = not asked and not quick
    report.add("plans", counts["plans"], "at 10,000 rows or more", bar=PLANS if complete else None)
    report.add("plans over 1,000,000 rows", counts["large"], "", bar=50 if complete else None)
    report.add("rows delivered", counts["rows"] / 1e6, "M")
    report.add("differences", counts["differences"], "", bar=0, at_most=True)
    report.add("exceptions", counts["exceptions"], "", bar=0, at_most=True)
    report.add("time", (time.monotonic() - start) / 60, "min", note=f"{time.process_time() / 60:.1f} min of one core")


def keep(report: BenchmarkReport, case: Case, found: str, seconds: int) -> None:
    """Reduce a failing case and write it down."""
    report.print(escape(f"{case}\n{found}"))
    small = reduced(case, seconds, report.print)
    path = FOLDER / f"seed-{case.seed}.json"
    if small.rows > 500:
        report.print(
            f"still {small.rows:,} rows after {seconds} s; not kept: run --only seed={case.seed} to see it again"
        )
        return
    save(small, path, f"{signature(found)}; {found.strip().splitlines()[-1][:300]}")
    report.print(escape(f"kept as {path}:\n{small}\n{failure(small)}"))
