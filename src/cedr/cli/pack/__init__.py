"""`cedr pack`: an archive of this Python with cedr and its packages, for executors that have neither.

environment.py   the files of the archive
archive.py       writes it, and checks that it works
"""

import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from cedr import CedrError, __version__

SUFFIXES = (".tar.gz", ".tgz")
"""Spark unpacks other kinds of archives without the permission to execute their programs."""


def default_name() -> str:
    """`cedr-0.1.0-cp311-linux-x86_64.tar.gz`."""
    platform = sysconfig.get_platform().replace("-", "_", 1).replace("_", "-", 1)
    return f"cedr-{__version__}-cp{sys.version_info[0]}{sys.version_info[1]}-{platform}.tar.gz"


def pack(
    file: Annotated[
        Path | None,
        typer.Argument(help="Output, a .tar.gz.", show_default=default_name()),
    ] = None,
    include: Annotated[
        list[str] | None, typer.Option(help="A further package that is installed here, such as psycopg; repeatable.")
    ] = None,
    force: Annotated[bool, typer.Option(help="Overwrite the file.")] = False,
) -> None:
    """Pack this Python, cedr and its packages for the executors of a cluster, and check that the archive works.

    Executors need the same kind of processor and a C library (glibc) that is not older; they need no Python. Prints the
    settings of Spark that use the archive.
    """
    from cedr.cli.pack.archive import check_archive, write_archive
    from cedr.cli.pack.environment import environment_files

    target = file or Path(default_name())
    if not target.name.endswith(SUFFIXES):
        raise CedrError(
            f"{target}: the name must end in {' or '.join(SUFFIXES)}: only from these Spark unpacks programs that run"
        )
    if target.exists() and not force:
        raise CedrError(f"{target} exists; --force overwrites it")
    with tempfile.TemporaryDirectory(prefix="cedr-pack-") as scratch:
        files = environment_files(Path(scratch), include or [])
        write_archive(files, target, report)
        report(f"{target}: {len(files)} files, {target.stat().st_size / 1e6:.0f} MB; checking it")
        check_archive(target, Path(scratch) / "check")
    print(settings_text(target))


def report(text: str, end: str = "\n") -> None:
    print(f"cedr: {text}", end=end, file=sys.stderr, flush=True)


def settings_text(target: Path) -> str:
    return (
        f"spark.archives={target.absolute()}#environment\n"
        "spark.pyspark.python=./environment/bin/python\n"
        "# in client mode also unpack it where the driver starts, which runs the same Python for cedr.files:\n"
        f"# mkdir environment && tar -xzf {target.absolute()} -C environment"
    )
