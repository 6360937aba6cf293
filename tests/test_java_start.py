"""An archive of classes makes Java start faster, and an unusable one does no harm."""

import os
import subprocess
from pathlib import Path

import java_start
import pytest


@pytest.mark.parametrize("content", [None, b"", b"no archive" * 1000])
def test_java_does_without_an_archive_that_is_of_no_use(content, tmp_path, monkeypatch):
    archive = tmp_path / "spark.jsa"
    if content is not None:
        archive.write_bytes(content)
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "")
    monkeypatch.setenv("SPARK_LAUNCHER_OPTS", "")
    java_start.set_options(archive)
    java = Path(os.environ["JAVA_HOME"]) / "bin" / "java" if "JAVA_HOME" in os.environ else "java"
    command = [java, *os.environ["SPARK_SUBMIT_OPTS"].split(), "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "openjdk" in done.stdout.lower()
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 3
