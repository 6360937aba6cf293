"""`cedr bench NAME`: run a benchmark of the `benchmarks` folder and compare its figures with their limits."""

import importlib
import importlib.util
import inspect
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from cedr.temporal.errors import QueryError

FOLDER = Path(__file__).parents[3] / "benchmarks"
ENVIRONMENT = {
    "POLARS_MAX_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    # Every chunk allocates and frees arrays of a few MB; the allocator must not return their pages each time.
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 32),
}


def bench(
    name: Annotated[str, typer.Argument(help="Name of the benchmark; without it, all names are listed.")] = "",
    json: Annotated[Path | None, typer.Option(help="Also write the figures to this file.")] = None,
    plots: Annotated[Path | None, typer.Option(help="Also plot the figures, as PNG files in FOLDER/NAME.")] = None,
    only: Annotated[str, typer.Option(help="Only these parts of the benchmark, separated by commas.")] = "",
    quick: Annotated[
        bool, typer.Option(help="A tenth of the work, to try things out; the figures do not count.")
    ] = False,
) -> None:
    """Run a benchmark, print a table, and exit with 0 only if every limit is met."""
    if not FOLDER.is_dir():
        raise QueryError(f"there is no folder {FOLDER}; `cedr bench` needs a checkout of the repository")
    names = sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_"))
    if not name:
        print("\n".join(names))
        return
    if name not in names:
        raise QueryError(f"there is no benchmark {name!r}; available: {', '.join(names)}")
    if plots:
        plots = ready(plots / name)
    if any(os.environ.get(key) != value for key, value in ENVIRONMENT.items()):
        os.execve(sys.executable, [sys.executable, "-P", "-m", "cedr", *sys.argv[1:]], {**os.environ, **ENVIRONMENT})
    sys.path.insert(0, str(FOLDER))
    harness = importlib.import_module("harness")
    spec = importlib.util.spec_from_file_location(f"benchmarks.{name}", FOLDER / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    more = {"only": only} if only else {}
    if more and "only" not in inspect.signature(module.run).parameters:
        raise QueryError(f"--only {only}: the benchmark {name!r} has no parts; leave --only out")
    report = harness.BenchmarkReport((module.__doc__ or name).strip().splitlines()[0])
    report.console.print(f"[bold]{report.title}[/]" + (" (quick: figures do not count)" if quick else ""))
    module.run(report, quick, **more)
    report.console.print(report.table())
    if json:
        report.write_json(json)
    if plots:
        report.draw(plots)
    raise typer.Exit(0 if report.ok else 1)


def ready(folder: Path) -> Path:
    """Create the folder for plots. Problems are reported before anything is measured."""
    from cedr.plots import check_installed

    check_installed()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise QueryError(f"--plots: cannot create the folder {folder}: {e.strerror}; choose a writable one") from e
    return folder
