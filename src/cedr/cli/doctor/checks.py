"""What the doctor looks at: one function for each thing, which says what it found and what to do."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata, util
from pathlib import Path
from typing import Any, Literal

from cedr.cli.doctor.java import FITTING, fitting

LOCK = Path(__file__).parents[4] / "requirements.lock"
OLDEST_PYTHON = (3, 11)
MEMORY, DISK = 3.0, 2.0
"""Gigabytes: Spark's driver takes two, shards and their Python the rest; state and shuffles go to the disk."""
WAIT = 180
START_SPARK = """
from cedr import spark_session
spark = spark_session("local[1]")
assert spark.range(3).mapInArrow(lambda batches: batches, "id long").count() == 3
spark.stop()
"""


@dataclass(frozen=True)
class Found:
    """`optional` is missing, and only what needs it does not work."""

    name: str
    state: Literal["ok", "optional", "wrong"]
    found: str
    advice: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        head = f"{self.state:<8}  {self.name}: {self.found}"
        return f"{head}\n          {self.advice}" if self.advice else head


Check = Callable[[], Found]


def python() -> Found:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < OLDEST_PYTHON:
        return Found("Python", "wrong", version, "install Python 3.11 or newer, remove .venv and start ./cedr again")
    return Found("Python", "ok", f"{version}, {sys.executable}")


def packages() -> Found:
    """Against the lock of a checkout; what was installed in another way has other versions, and may."""
    if not LOCK.is_file():
        return Found("packages", "ok", "not a checkout, so there is no lock to compare with")
    lines = [line for line in LOCK.read_text().splitlines() if line and not line.startswith("#")]
    wanted = dict(line.split("==") for line in lines)
    others = [f"{name} {version_of(name)} instead of {v}" for name, v in wanted.items() if version_of(name) != v]
    if others:
        shown = ", ".join(others[:5]) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
        return Found("packages", "wrong", shown, "remove .venv and start ./cedr again; it installs what the lock says")
    return Found("packages", "ok", f"{len(wanted)} as requirements.lock says")


def version_of(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "nothing"


def java() -> Found:
    found, asked = fitting()
    if found is not None:
        return Found("Java", "ok", f"{asked[found]}, {found}")
    advice = "install Java 17 or 21 (apt-get install openjdk-17-jre-headless), or set JAVA_HOME to one you have"
    seen = ", ".join(f"{path} ({version or 'does not run'})" for path, version in asked.items())
    return Found("Java", "wrong", f"none of version {' or '.join(map(str, FITTING))}; found {seen or 'none'}", advice)


def memory() -> Found:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return Found("memory", "ok", "not known here")
    free = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")) / 2**20
    if free < MEMORY:
        advice = '[spark] conf = { "spark.driver.memory" = "1g" } asks for less; or end other programs'
        return Found("memory", "wrong", f"{free:.1f} GB free, {MEMORY:.0f} are needed", advice)
    return Found("memory", "ok", f"{free:.1f} GB free")


def disk() -> Found:
    folder = tempfile.gettempdir()
    try:
        with tempfile.TemporaryFile():
            pass
    except OSError as e:
        return Found("disk", "wrong", f"{folder} cannot be written: {e.strerror}", "set TMPDIR to a folder that can")
    free = shutil.disk_usage(folder).free / 2**30
    if free < DISK:
        advice = "make room, or set TMPDIR to a folder on another disk"
        return Found("disk", "wrong", f"{free:.1f} GB free in {folder}, {DISK:.0f} are needed", advice)
    return Found("disk", "ok", f"{free:.1f} GB free in {folder}")


def extra(package: str, extra: str, what: str) -> Check:
    def check() -> Found:
        if util.find_spec(package) is None:
            return Found(package, "optional", f"not installed; {what} need it", f"pip install 'cedr[{extra}]'")
        return Found(package, "ok", version_of(package))

    return check


def loopback() -> Found:
    """Spark's Java and Python talk over 127.0.0.1."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), timeout=5).close()
    except OSError as e:
        advice = "let programs of this machine reach each other on 127.0.0.1: look at the firewall and at `ip addr`"
        return Found("loopback", "wrong", f"127.0.0.1 is not reachable: {e}", advice)
    return Found("loopback", "ok", "127.0.0.1 is reachable")


def hostname() -> Found:
    """Spark's driver asks for its own address."""
    name = socket.gethostname()
    try:
        return Found("host name", "ok", f"{name} is {socket.gethostbyname(name)}")
    except OSError:
        advice = f"add '127.0.0.1 {name}' to /etc/hosts, or set SPARK_LOCAL_IP=127.0.0.1"
        good = bool(os.environ.get("SPARK_LOCAL_IP"))
        return Found("host name", "ok" if good else "wrong", f"{name} has no address", "" if good else advice)


def clock() -> Found:
    """`idle` and `future` go by the time of day; a clock before the program itself is wrong."""
    now, made = time.time(), Path(__file__).stat().st_mtime
    said = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    if now < made:
        return Found("clock", "wrong", f"{said}, before cedr was installed", "set the clock of this machine")
    return Found("clock", "ok", said)


def spark() -> Found:
    """In a process of its own: a session, and a task in a Python worker."""
    started = time.monotonic()
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    home, _ = fitting()
    if home is not None:
        environment.setdefault("JAVA_HOME", str(Path(os.path.realpath(home)).parents[1]))
    try:
        done = subprocess.run(
            [sys.executable, "-c", START_SPARK], capture_output=True, text=True, timeout=WAIT, env=environment
        )
    except subprocess.TimeoutExpired:
        return Found("Spark", "wrong", f"has not started within {WAIT} s", "mend what is wrong above; or try again")
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()] or [f"exit code {done.returncode}"]
        return Found(
            "Spark", "wrong", f"does not start: {said[-1].strip()}", "mend what is wrong above, then try again"
        )
    return Found("Spark", "ok", f"starts and runs Python, in {time.monotonic() - started:.0f} s")


CHECKS: tuple[Check, ...] = (
    python,
    packages,
    java,
    memory,
    disk,
    extra("matplotlib", "plots", "cedr plot and bench --plots"),
    extra("psycopg", "postgres", "sinks in PostgreSQL"),
    extra("duckdb", "duckdb", "sinks in DuckDB"),
    loopback,
    hostname,
    clock,
)
SPARK: Check = spark
