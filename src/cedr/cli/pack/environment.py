"""The files of a packed environment: this Python, the packages that executors need, and cedr.

    bin/python            a script that finds everything below the folder it is in
    bin/python3.11        this Python's program
    lib                   the libraries that it and its modules are linked to, except the C library
    lib/python3.11        its modules, and the packages

Nothing is copied to make it: the result maps paths in the archive to files on this machine.
"""

import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from cedr import CedrError

REPOSITORY = Path(__file__).parents[4]
Files = dict[str, Path]

OF_SPARK = {"pyspark", "py4j"}
"""Spark brings its own to each executor, and puts it first."""
OF_THE_COMMAND_LINE = {"typer", "rich"}
NOT_NEEDED = {"test", "tests", "include", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "pydoc_data"}
"""Folders of Python and of packages that nothing else imports."""
MAYBE_NEEDED = {"numpy", "cedr"}
"""Packages of which all is taken."""
C_LIBRARY = ("linux-vdso", "ld-linux", "libc.", "libm.", "libdl.", "librt.", "libutil.", "libpthread.", "libgcc_s.")

START = """#!/bin/sh
# Starts the Python of this folder, wherever the folder is.
unset PYTHONHOME
here=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd -P)
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$here/bin/NAME" "$@"
"""


def environment_files(scratch: Path, more: Sequence[str] = ()) -> Files:
    """All files by their path in the archive. Those made for it are in `scratch`; `more` are further packages."""
    files = {**python_files(scratch), **cedr_files(scratch)}
    built = list(scratch.glob("wheel/cedr-*.dist-info"))
    cedr = Distribution.at(built[0]) if built else installed("cedr")
    for package in with_dependencies([*required(cedr), *more]):
        files.update(package_files(package))
    return files


def in_checkout() -> bool:
    return (REPOSITORY / "pyproject.toml").is_file()


# --- Python -----------------------------------------------------------------------------------------------------------


def home_of_modules() -> str:
    """`lib/python3.11`."""
    return os.path.relpath(sysconfig.get_path("stdlib"), sys.base_prefix)


def home_of_packages() -> str:
    """Where this Python looks for packages when it is not in a virtual environment; Debian's looks elsewhere."""
    debian = "posix_local" in sysconfig.get_scheme_names()
    return f"{home_of_modules()}/{'dist-packages' if debian else 'site-packages'}"


def python_files(scratch: Path) -> Files:
    program = Path(os.path.realpath(sys.executable))
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    start = scratch / "python"
    start.write_text(START.replace("NAME", name))
    start.chmod(0o755)
    modules = Path(sysconfig.get_path("stdlib"))
    found = {"bin/python": start, f"bin/{name}": program}
    left_out = NOT_NEEDED | {"site-packages", "dist-packages"}
    for path in files_below(modules, left_out):
        relative = path.relative_to(modules)
        if not relative.parts[0].startswith(("config-", "sitecustomize")):
            found[f"{home_of_modules()}/{relative}"] = path
    linked = [program, *modules.glob("lib-dynload/*.so")]
    return {**found, **{f"lib/{name}": path for name, path in libraries_of(linked).items()}}


def files_below(folder: Path, left_out: set[str]) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in left_out)
        yield from (path for name in sorted(names) if (path := Path(place, name)).is_file())


def libraries_of(linked: Sequence[Path]) -> Files:
    """The libraries that the dynamic linker finds for these files, by their names, without the C library: that is older
    than the executor's, or the archive does not fit there."""
    done = subprocess.run(["ldd", *map(str, linked)], capture_output=True, text=True, check=False)
    pairs = [line.split(" => ") for line in done.stdout.splitlines() if " => /" in line]
    found = {name.strip(): Path(path.split(" (")[0]) for name, path in pairs}
    return {name: path for name, path in found.items() if not name.startswith(C_LIBRARY)}


# --- packages ---------------------------------------------------------------------------------------------------------


def installed(name: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError:
        raise CedrError(f"{name} is not installed here ({sys.executable}), so it cannot be packed") from None


def required(package: Distribution) -> list[str]:
    """The names of the packages that a package needs on this machine."""
    from packaging.requirements import Requirement

    parsed = [Requirement(line) for line in package.requires or []]
    return [r.name for r in parsed if r.marker is None or r.marker.evaluate({"extra": ""})]


def with_dependencies(names: Sequence[str]) -> list[Distribution]:
    """These packages and all that they need."""
    from packaging.utils import canonicalize_name

    found: dict[str, Distribution] = {}
    waiting = list(names)
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name not in found and name not in OF_SPARK | OF_THE_COMMAND_LINE:
            found[name] = installed(name)
            waiting += required(found[name])
    return [found[name] for name in sorted(found)]


def package_files(package: Distribution) -> Files:
    """Without programs, which name the Python that they were installed for."""
    found = {}
    for file in package.files or []:
        path = Path(str(package.locate_file(file)))
        kept = file.parts[0] in MAYBE_NEEDED or not NOT_NEEDED.intersection(file.parts)
        if file.parts[0] != ".." and kept and path.is_file():
            found[f"{home_of_packages()}/{file}"] = path
    return found


def cedr_files(scratch: Path) -> Files:
    """What a wheel of cedr contains, and the compiled code that this machine has for it. Files of a checkout keep their
    times, because compiled code is used only with the source it was made from."""
    if not in_checkout():
        return package_files(installed("cedr"))
    unpacked, source = wheel_of_checkout(scratch), REPOSITORY / "src"
    found = {str(path.relative_to(unpacked)): path for path in files_below(unpacked, set())}
    found.update((name, source / name) for name in list(found) if (source / name).is_file())
    for name in [name for name in found if name.endswith(".py")]:
        stem = Path(name).stem
        for compiled in (source / name).parent.glob(f"__pycache__/{stem}.*"):
            if compiled.suffix in (".pyc", ".nbi", ".nbc"):
                found[str(compiled.relative_to(source))] = compiled
    return {f"{home_of_packages()}/{name}": path for name, path in found.items()}


def wheel_of_checkout(scratch: Path) -> Path:
    """The folder of an unpacked wheel."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(scratch)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CedrError(f"the wheel of cedr could not be built: {(done.stderr or done.stdout).strip()}")
    with zipfile.ZipFile(next(scratch.glob("cedr-*.whl"))) as wheel:
        wheel.extractall(scratch / "wheel")
    return scratch / "wheel"
