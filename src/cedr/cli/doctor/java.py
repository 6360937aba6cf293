"""Which Java there is, in the order in which the launcher looks: JAVA_HOME, the PATH, the usual folder."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from glob import glob

FITTING = (17, 21)


def javas() -> Iterator[str]:
    """Programs, whether they are there or not."""
    if home := os.environ.get("JAVA_HOME"):
        yield os.path.join(home, "bin", "java")
    if found := shutil.which("java"):
        yield found
    if not home:  # with one that was chosen, Spark takes no other
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
    """The first that fits, and all that were asked."""
    asked: dict[str, int | None] = {}
    for java in javas():
        asked[java] = version(java)
        if asked[java] in FITTING:
            return java, asked
    return None, asked
