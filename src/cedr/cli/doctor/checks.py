"""The doctor's checks: one function each, which reports what it found and how to fix it."""

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
"""In gigabytes: Spark's driver takes two, shards and their Python the rest; state and shuffles go to the disk."""
WAIT = 180
START_SPARK = """
from cedr import spark_session
spark = spark_session("local[1]")
assert spark.range(3).mapInArrow(lambda batches: batches, "id long").count() == 3
spark.stop()
"""


@dataclass(frozen=True)
class CheckResult:
    """`optional`: missing, but only needed for some features."""

    name: str
    state: Literal["ok", "optional", "wrong"]
    found: str
    advice: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        head = f"{self.state:<8}  {self.name}: {self.found}"
        return f"{head}\n          {self.advice}" if self.advice else head


Check = Callable[[], CheckResult]


def python() -> CheckResult:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < OLDEST_PYTHON:
        return CheckResult(
            "Python", "wrong", version, "install Python 3.11 or newer, remove .venv and start ./cedr again"
        )
    return CheckResult("Python", "ok", f"{version}, {sys.executable}")


def packages() -> CheckResult:
    """Compare with the lock file of a checkout; other installations may have other versions."""
    if not LOCK.is_file():
        return CheckResult("packages", "ok", "not a checkout; there is no lock file to compare with")
    lines = [line for line in LOCK.read_text().splitlines() if line and not line.startswith("#")]
    locked = dict(line.split("==") for line in lines)
    others = [f"{name} {version_of(name)} instead of {v}" for name, v in locked.items() if version_of(name) != v]
    if others:
        shown = ", ".join(others[:5]) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
        return CheckResult(
            "packages", "wrong", shown, "remove .venv and start ./cedr again to install the locked versions"
        )
    return CheckResult("packages", "ok", f"{len(locked)} packages match requirements.lock")


def version_of(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "nothing"


def java() -> CheckResult:
    found, versions = fitting()
    if found is not None:
        return CheckResult("Java", "ok", f"{versions[found]}, {found}")
    advice = "install Java 17 or 21 (apt-get install openjdk-17-jre-headless), or set JAVA_HOME to one you have"
    seen = ", ".join(f"{path} ({version or 'does not run'})" for path, version in versions.items())
    return CheckResult(
        "Java", "wrong", f"requires version {' or '.join(map(str, FITTING))}; found {seen or 'none'}", advice
    )


def memory() -> CheckResult:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return CheckResult("memory", "ok", "unknown on this system")
    free = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")) / 2**20
    if free < MEMORY:
        advice = '[spark] conf = { "spark.driver.memory" = "1g" } uses less; or stop other programs'
        return CheckResult("memory", "wrong", f"{free:.1f} GB free, {MEMORY:.0f} GB required", advice)
    return CheckResult("memory", "ok", f"{free:.1f} GB free")


def disk() -> CheckResult:
    folder = tempfile.gettempdir()
    try:
        with tempfile.TemporaryFile():
            pass
    except OSError as e:
        return CheckResult(
            "disk", "wrong", f"{folder} is not writable: {e.strerror}", "set TMPDIR to a writable folder"
        )
    free = shutil.disk_usage(folder).free / 2**30
    if free < DISK:
        advice = "free some space, or set TMPDIR to a folder on another disk"
        return CheckResult("disk", "wrong", f"{free:.1f} GB free in {folder}, {DISK:.0f} GB required", advice)
    return CheckResult("disk", "ok", f"{free:.1f} GB free in {folder}")


def extra(package: str, extra: str, what: str) -> Check:
    def check() -> CheckResult:
        if util.find_spec(package) is None:
            return CheckResult(
                package, "optional", f"not installed; required for {what}", f"pip install 'cedr[{extra}]'"
            )
        return CheckResult(package, "ok", version_of(package))

    return check


def loopback() -> CheckResult:
    """Spark's Java and Python processes communicate over 127.0.0.1."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), timeout=5).close()
    except OSError as e:
        advice = "allow connections to 127.0.0.1: check the firewall and `ip addr`"
        return CheckResult("loopback", "wrong", f"127.0.0.1 is not reachable: {e}", advice)
    return CheckResult("loopback", "ok", "127.0.0.1 is reachable")


def hostname() -> CheckResult:
    """Spark's driver looks up its own address."""
    name = socket.gethostname()
    try:
        return CheckResult("host name", "ok", f"{name} is {socket.gethostbyname(name)}")
    except OSError:
        advice = f"add '127.0.0.1 {name}' to /etc/hosts, or set SPARK_LOCAL_IP=127.0.0.1"
        good = bool(os.environ.get("SPARK_LOCAL_IP"))
        return CheckResult("host name", "ok" if good else "wrong", f"{name} has no address", "" if good else advice)


def clock() -> CheckResult:
    """`idle` and `max_ahead` use the wall clock; a time before the installation of cedr is wrong."""
    now, made = time.time(), Path(__file__).stat().st_mtime
    text = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    if now < made:
        return CheckResult("clock", "wrong", f"{text}, before cedr was installed", "set the clock of this machine")
    return CheckResult("clock", "ok", text)


def spark() -> CheckResult:
    """In a separate process: a session, and a task in a Python worker."""
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
        return CheckResult("Spark", "wrong", f"did not start within {WAIT} s", "fix the problems above, or try again")
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or [f"exit code {done.returncode}"]
        return CheckResult(
            "Spark", "wrong", f"does not start: {lines[-1].strip()}", "fix the problems above, then try again"
        )
    return CheckResult("Spark", "ok", f"starts and runs Python, in {time.monotonic() - started:.0f} s")


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
