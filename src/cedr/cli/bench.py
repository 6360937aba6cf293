"""`cedr bench NAME`: run a benchmark of the `benchmarks` folder and compare its figures with their bars."""

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
    # Arrays of a few MB come and go with every chunk; the allocator must not give their pages back each time.
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 32),
}


def bench(
    name: Annotated[str, typer.Argument(help="Which benchmark; without one, they are listed.")] = "",
    json: Annotated[Path | None, typer.Option(help="Write the figures to this file as well.")] = None,
    plots: Annotated[Path | None, typer.Option(help="Draw the figures too, as PNG files in FOLDER/NAME.")] = None,
    only: Annotated[str, typer.Option(help="Only these parts, with commas between, if it has some.")] = "",
    quick: Annotated[bool, typer.Option(help="A tenth of the work: to try things, not for figures.")] = False,
) -> None:
    """Measure, print a table, and exit with 0 only if every bar holds."""
    if not FOLDER.is_dir():
        raise QueryError(f"there is no folder {FOLDER}; `cedr bench` needs a checkout of the repository")
    known = sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_"))
    if not name:
        print("\n".join(known))
        return
    if name not in known:
        raise QueryError(f"no benchmark {name!r}; there are: {', '.join(known)}")
    if plots:
        plots = ready(plots / name)
    if any(os.environ.get(key) != value for key, value in ENVIRONMENT.items()):
        os.execve(sys.executable, [sys.executable, "-P", "-m", "cedr", *sys.argv[1:]], {**os.environ, **ENVIRONMENT})
    from cedr.bench import Report

    spec = importlib.util.spec_from_file_location(f"benchmarks.{name}", FOLDER / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    more = {"only": only} if only else {}
    if more and "only" not in inspect.signature(module.run).parameters:
        raise QueryError(f"--only {only}: the benchmark {name!r} has no parts to choose from; leave it out")
    report = Report((module.__doc__ or name).strip().splitlines()[0])
    report.console.print(f"[bold]{report.title}[/]" + (" (quick: figures do not count)" if quick else ""))
    module.run(report, quick, **more)
    report.console.print(report.table())
    if json:
        report.write_json(json)
    if plots:
        report.draw(plots)
    raise typer.Exit(0 if report.ok else 1)


def ready(folder: Path) -> Path:
    """The folder, made if need be: what keeps plots from being drawn is said before anything is measured."""
    from cedr.plots import check_installed

    check_installed()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise QueryError(
            f"--plots: cannot make the folder {folder}: {e.strerror}; name one that can be written to"
        ) from e
    return folder
