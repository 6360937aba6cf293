"""Finds Java in the order of the launcher: JAVA_HOME, the PATH, the usual folder."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from glob import glob

FITTING = (17, 21)


def javas() -> Iterator[str]:
    """Candidate programs; they may not exist."""
    if home := os.environ.get("JAVA_HOME"):
        yield os.path.join(home, "bin", "java")
    if found := shutil.which("java"):
        yield found
    if not home:  # Spark uses JAVA_HOME if it is set, and no other
        yield from sorted(glob("/usr/lib/jvm/*/bin/java"))


def version(java: str) -> int | None:
    """17 of `openjdk version "17.0.2"`; None when it does not run."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    return int(found[1]) if found else None


def fitting() -> tuple[str | None, dict[str, int | None]]:
    """The first Java of a supported version, and the versions of all candidates that were tried."""
    versions: dict[str, int | None] = {}
    for java in javas():
        versions[java] = version(java)
        if versions[java] in FITTING:
            return java, versions
    return None, versions
