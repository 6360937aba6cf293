"""A real PostgreSQL for tests, with its data and its socket in a temporary folder: no port that another may take.

    from postgres_server import postgres  # a fixture for the whole session; each process of pytest has its own server

The server refuses to run as root, so root starts it as the user `postgres`.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

INSTALL = "these tests need PostgreSQL's server; install it, on Debian or Ubuntu with: apt-get install postgresql"


@dataclass
class Server:
    dsn: str
    data: Path
    run: dict[str, Any]
    process: "subprocess.Popen[bytes]"

    def stop(self) -> None:
        """As when its machine is away for a while. `start` brings it back, with all that was committed."""
        stop(self.process)

    def start(self) -> None:
        if self.process.poll() is not None:
            self.process, self.dsn = started(self.data, self.data.parent / "log", self.run)

    def fresh_schema(self) -> str:
        """The name of a new schema, so that no test sees another's tables."""
        name = f"s_{uuid4().hex}"
        self.execute(f'CREATE SCHEMA "{name}"')
        return name

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            done = connection.execute(statement)
            return done.fetchall() if done.description else []


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="cedr-postgres-"))
    server = None
    try:
        as_user = server_user(folder)
        data = folder / "data"
        run = {"cwd": folder, "env": {"PATH": os.environ["PATH"], "LC_ALL": "C"}, **as_user}
        made = subprocess.run(
            [program("initdb"), "-D", data, "-U", "cedr", "--auth=trust", "-E", "UTF8", "--no-sync"],
            capture_output=True,
            text=True,
            check=False,
            **run,
        )
        assert made.returncode == 0, f"initdb failed: {made.stdout}{made.stderr}"
        process, dsn = started(data, folder / "log", run)
        server = Server(dsn, data, run, process)
        yield server
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def program(name: str) -> str:
    """Debian keeps the server's programs out of the PATH."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: float(folder.parent.name))
    found = shutil.which(name) or next((str(f / name) for f in reversed(folders) if (f / name).exists()), None)
    if not found:
        pytest.fail(INSTALL, pytrace=False)
    return found


def server_user(folder: Path) -> dict[str, Any]:
    if os.getuid() != 0:
        return {}
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        pytest.fail(f"{INSTALL} (there is no user postgres)", pytrace=False)
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def started(data: Path, log: Path, run: dict[str, Any]) -> tuple[subprocess.Popen[bytes], str]:
    settings = {"listen_addresses": "", "unix_socket_directories": data.parent, "fsync": "off"}
    options = [option for name, value in settings.items() for option in ("-c", f"{name}={value}")]
    with log.open("wb") as output:
        process = subprocess.Popen([program("postgres"), "-D", data, *options], stdout=output, stderr=output, **run)
    dsn = f"host={data.parent} user=cedr dbname=postgres"
    if answers(process, dsn):
        return process, dsn
    stop(process)
    raise AssertionError(f"the server did not start: {log.read_text()}")


def answers(process: subprocess.Popen[bytes], dsn: str) -> bool:
    deadline = time.monotonic() + 300
    while process.poll() is None and time.monotonic() < deadline:
        try:
            psycopg.connect(dsn).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return True
    return False


def stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)  # PostgreSQL's fast shutdown
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
