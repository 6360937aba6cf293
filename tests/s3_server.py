"""A real S3 server for tests, on the loopback address, with its objects in a temporary folder.

    from s3_server import any_storage, bucket, s3

`s3` is the server of this process, `bucket` a new bucket in it, `any_storage` a local folder and then a bucket.

`fetch_s3` gets the server and Spark's connector. A test that needs one which is missing is skipped with the reason;
with CEDR_NO_SKIP=1, as in continuous integration, it fails.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import fetch_s3
import pytest

from cedr.storage import remote_settings
from cedr.storage.folder import Folder

KEY, SECRET = "cedr-tests", "a secret of these tests"


@dataclass
class S3Server:
    url: str
    folder: Path
    process: "subprocess.Popen[bytes]"

    def new_bucket(self) -> str:
        name = f"b-{uuid4().hex[:12]}"
        (self.folder / "data" / name).mkdir()
        return name

    @property
    def hadoop(self) -> dict[str, str]:
        """Settings under Hadoop's names."""
        return {
            "fs.s3a.endpoint": self.url,
            "fs.s3a.access.key": KEY,
            "fs.s3a.secret.key": SECRET,
            "fs.s3a.path.style.access": "true",
            "fs.s3a.endpoint.region": "us-east-1",
        }

    @property
    def spark(self) -> dict[str, str]:
        """Spark's settings for `cedr.spark_session`, with the connector."""
        return {**{f"spark.hadoop.{name}": value for name, value in self.hadoop.items()}, "spark.jars": connector()}


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    need(fetch_s3.SERVER, "an S3 server")
    folder = Path(tempfile.mkdtemp(prefix="cedr-s3-"))
    server = None
    try:
        (folder / "data").mkdir()
        server = started(folder)
        yield server
    finally:
        if server is not None:
            server.process.send_signal(signal.SIGTERM)
            try:
                server.process.wait(10)
            except subprocess.TimeoutExpired:
                server.process.kill()
                server.process.wait()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def bucket(s3: S3Server) -> Iterator[str]:
    """The URI of a new bucket, which this process may use meanwhile."""
    before = remote_settings.current()
    remote_settings.use(s3.hadoop)
    yield f"s3a://{s3.new_bucket()}"
    remote_settings.use(before.values)


@pytest.fixture(params=["disk", "s3"])
def any_storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place for folders."""
    return str(tmp_path) if request.param == "disk" else str(request.getfixturevalue("bucket"))


def everything(folder: Folder) -> list[str]:
    """All files in a folder, hidden ones as well."""
    return os.listdir(folder.path) if folder.local else folder.store.below(folder.path)


def started(folder: Path) -> S3Server:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET, "PATH": os.environ["PATH"]}
    with (folder / "log").open("wb") as log:
        command = [fetch_s3.SERVER, "--port", f"127.0.0.1:{port}", "posix", folder / "data"]
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return S3Server(f"http://127.0.0.1:{port}", folder, process)
    process.kill()
    process.wait()
    raise AssertionError(f"the S3 server did not start: {(folder / 'log').read_text()}")


def connector() -> str:
    """The jars of hadoop-aws, for `spark.jars`."""
    need(fetch_s3.JARS, "Spark's connector hadoop-aws")
    return ",".join(str(jar) for jar in sorted(fetch_s3.JARS.glob("*.jar")))


def need(there: Path, what: str) -> None:
    if not there.exists():
        how = f"these tests need {what}; get it with: .venv/bin/python tests/fetch_s3.py"
        pytest.fail(how, pytrace=False) if os.environ.get("CEDR_NO_SKIP") else pytest.skip(how)
