"""Compare two versions of cedr: both checkouts run the same benchmarks in turn, and medians are compared.

    .venv/bin/python benchmarks/versions/compare.py ../older engine patterns spark:--only=pattern --rounds 5

Each checkout needs its own `.venv`, as `./cedr` makes it. A benchmark may have options after a colon. Rounds alternate
and the order changes with each round, so that a machine that becomes slower affects both. A figure is slower if its
median is worse by more than 5 %; only rates (`.../s`) and times count. Exits with 1 if one is.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parents[2]
TIMES = ("s", "ms", "us", "µs", "ns", "minutes")
TOLERANCE = 0.05


class Measured(NamedTuple):
    value: float
    unit: str


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("older", type=Path, help="the checkout to compare with")
    parser.add_argument("benchmarks", nargs="+", help="names, each with options after a colon, separated by commas")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="also write all values to this file")
    given = parser.parse_args()
    slower, everything = 0, {}
    for benchmark in given.benchmarks:
        values = alternate({"before": given.older, "after": HERE}, benchmark, given.rounds)
        everything[benchmark] = values
        slower += print_table(benchmark, values)
        if given.json:
            given.json.write_text(json.dumps(everything, indent=1))
    print(f"{slower} figures are slower by more than {TOLERANCE:.0%}")
    return 1 if slower else 0


Values = dict[str, dict[str, list[Measured]]]
"""By version and figure."""


def alternate(versions: dict[str, Path], benchmark: str, rounds: int) -> Values:
    values: Values = {version: defaultdict(list) for version in versions}
    for number in range(rounds):
        for version in list(versions)[:: 1 if number % 2 == 0 else -1]:
            print(f"{benchmark}: round {number + 1} of {rounds}, {version}", file=sys.stderr)
            for name, measured in figures(versions[version], benchmark).items():
                values[version][name].append(measured)
    return values


def figures(checkout: Path, benchmark: str) -> dict[str, Measured]:
    name, _, options = benchmark.partition(":")
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [str(checkout / "cedr"), "bench", name, "--json", file.name, *filter(None, options.split(","))]
        done = subprocess.run(command, cwd=checkout, capture_output=True, text=True)
        content = file.read()
    if not content:
        raise SystemExit(f"{' '.join(command)} wrote no figures:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return {figure["name"]: Measured(figure["value"], figure["unit"]) for figure in json.loads(content)}


def print_table(benchmark: str, values: Values) -> int:
    """One line for each figure that both versions have; returns the number of slower ones."""
    before, after = values["before"], values["after"]
    slower = 0
    print(f"\n{benchmark}: median of {max(map(len, after.values()))} before and after")
    for name in [name for name in after if name in before]:
        old, new = (statistics.median(measured.value for measured in found[name]) for found in (before, after))
        unit = after[name][0].unit
        if not old or not (unit in TIMES or unit.endswith("/s")):
            continue
        change = new / old - 1 if unit.endswith("/s") else old / new - 1
        is_slower = change < -TOLERANCE
        slower += is_slower
        print(f"  {name:70} {old:12,.4g} {new:12,.4g} {unit:12} {change:+7.1%}{'  slower' if is_slower else ''}")
    if only := sorted(after.keys() ^ before.keys()):
        print(f"  only in one version: {', '.join(only)}")
    return slower


if __name__ == "__main__":
    sys.exit(main())
