"""Compare two versions of cedr: both checkouts run the same benchmarks in turn, and medians are compared.

    .venv/bin/python benchmarks/versions/compare.py ../older engine patterns spark-side:pattern --rounds 5

Each checkout needs its own `.venv`, as `./cedr` makes it. A benchmark may have options after a colon. `spark-side` is
cedr's side of `bench spark` alone, with 16 instead of 8 batches, as other systems need no comparison; after the colon
its workloads. Rounds alternate and the order changes with each round, so that a machine that becomes slower affects
both. A figure is slower if its median is worse by more than 5 %; only rates (`.../s`) and times count, and neither
those of other systems nor memory. Exits with 1 if one is.

With `--cpu` benchmarks measure the time of the processor instead of the time that passes, which is less affected by
other work on the machine; for benchmarks that run in one process.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

import spark
from peers import data
from peers.workloads import WORKLOADS

HERE = Path(__file__).parents[2]
OTHERS = ("polars", "Spark's own", "by hand", "loop")
"""Parts of the names of figures that are not cedr's."""
SPARK_SIDE = "spark-side"
SPARK_SHAPE = replace(spark.SHAPE, events=8_000_000, files=16)
WARM_UP = 4
"""Batches that do not count."""
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
    parser.add_argument("--cpu", action="store_true", help="measure processor time")
    parser.add_argument("--json", type=Path, help="also write all values to this file")
    given = parser.parse_args()
    slower, everything = 0, {}
    if given.cpu:
        count_cpu_time()
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


def count_cpu_time() -> None:
    """Every Python that is started from here on imports this first; other versions need not know about it."""
    folder = tempfile.mkdtemp()
    Path(folder, "sitecustomize.py").write_text("import time\ntime.perf_counter = time.process_time\n")
    os.environ["PYTHONPATH"] = folder


def figures(checkout: Path, benchmark: str) -> dict[str, Measured]:
    name, _, options = benchmark.partition(":")
    if name == SPARK_SIDE:
        return {workload: spark_side(checkout, workload) for workload in options.split(",")}
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        python = str(checkout / ".venv" / "bin" / "python")
        command = [python, "-P", "-m", "cedr", "bench", name, "--json", file.name, *filter(None, options.split(","))]
        done = subprocess.run(command, cwd=checkout, capture_output=True, text=True)
        content = file.read()
    if not content:
        raise SystemExit(f"{' '.join(command)} wrote no figures:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return {figure["name"]: Measured(figure["value"], figure["unit"]) for figure in json.loads(content)}


def spark_side(checkout: Path, name: str) -> Measured:
    """cedr on Spark with one workload, without Spark's own."""
    workload = WORKLOADS[name]
    source = Path(tempfile.gettempdir()) / f"cedr-compare-{name}-{SPARK_SHAPE.events}"
    if not source.exists():
        data.write(source, workload.streams, SPARK_SHAPE)
    python = str(checkout / ".venv" / "bin" / "python")
    interpreters = {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}
    environment = {**os.environ, **interpreters, "PYTHONPATH": str(checkout / "benchmarks")}
    with tempfile.TemporaryDirectory() as out:
        command = [python, "-m", "peers.side", "cedr", name, str(source), out, workload.state_store]
        done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    batches = json.loads(done.stdout.splitlines()[-1])["batches"][WARM_UP : SPARK_SHAPE.files]
    elapsed = batches[-1]["start"] + batches[-1]["seconds"] - batches[0]["start"]
    return Measured(SPARK_SHAPE.events // SPARK_SHAPE.files * len(batches) / elapsed / 1e3, "k events/s")


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
        is_slower = change < -TOLERANCE and not any(other in name for other in OTHERS)
        slower += is_slower
        print(f"  {name:70} {old:12,.4g} {new:12,.4g} {unit:12} {change:+7.1%}{'  slower' if is_slower else ''}")
    if only := sorted(after.keys() ^ before.keys()):
        print(f"  only in one version: {', '.join(only)}")
    return slower


if __name__ == "__main__":
    sys.exit(main())
