"""Writes the archive of a packed environment, and checks that its Python finds all that executors need."""

import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

from cedr import CedrError, __version__
from cedr.cli.pack.environment import Files

Report = Callable[..., None]
LEVEL = 1
"""Of gzip: higher ones take several times as long and save a tenth."""
IMPORTS = (
    "import cedr, cedr.runtime.engine, cedr.operators.join, cedr.sinks, ctypes, numba, pandas, polars, pyarrow; "
    "print(cedr.__version__)"
)


def write_archive(files: Files, target: Path, report: Report) -> None:
    """Whole or not at all. Times are kept to the nanosecond, because compiled code names those of its source."""
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    total, done, shown = sum(path.stat().st_size for path in files.values()) or 1, 0, 0
    try:
        with tarfile.open(draft, "w:gz", compresslevel=LEVEL, format=tarfile.PAX_FORMAT) as archive:
            for name in sorted(files):
                add(archive, name, files[name])
                done += files[name].stat().st_size
                if sys.stderr.isatty() and done * 100 // total > shown:
                    shown = done * 100 // total
                    report(f"packing {total / 1e6:.0f} MB: {shown} %", end="\r" if shown < 100 else "\n")
        os.replace(draft, target)
    except OSError as e:
        raise CedrError(f"{target} cannot be written: {e.strerror or e}") from None
    finally:
        draft.unlink(missing_ok=True)


def add(archive: tarfile.TarFile, name: str, path: Path) -> None:
    """The file, as nobody's; what a link refers to instead of the link."""
    info = tarfile.TarInfo(name)
    found = path.stat()
    info.size, info.mtime, info.mode = found.st_size, found.st_mtime, 0o755 if found.st_mode & 0o100 else 0o644
    with open(path, "rb") as file:
        archive.addfile(info, file)


def check_archive(target: Path, folder: Path) -> None:
    """Unpack it, as Spark does, and start its Python in an empty environment and another folder."""
    folder.mkdir()
    subprocess.run(["tar", "-xf", str(target.absolute()), "-C", str(folder)], check=True)
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
    command = [str(folder / "bin" / "python"), "-c", IMPORTS]
    done = subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, check=False)
    if done.returncode or done.stdout.strip() != __version__:
        raise CedrError(f"the Python of {target} does not work: {(done.stderr or done.stdout).strip()}")
