"""A newcomer's path: clone, then the tutorial from its first command to its last, as written on its page.

The clone gets the packages of this checkout's environment as they are; that the first start installs them is tested in
test_launcher.py. It also gets what is compiled already of the kernels, which would take a minute of a core again.
"""

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from shown_commands import follow

ROOT = Path(__file__).parents[1]


def test_clone_demo_and_tutorial(tmp_path):
    clone = tmp_path / "cedr"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    with_packages(clone)
    with_compiled_kernels(clone)
    assert follow(ROOT / "docs" / "tutorial.md", clone) > 10
    picture = (clone / "machines" / "lifetimes.svg").read_text()
    assert "<svg" in picture


def with_packages(clone: Path) -> None:
    """An environment like this one, whose cedr is that of the clone."""
    subprocess.run(["cp", "--archive", "--link", str(ROOT / ".venv"), str(clone / ".venv")], check=True)
    for link in (clone / ".venv").glob("lib/*/site-packages/cedr*.pth"):
        text = link.read_text().replace(str(ROOT), str(clone))
        os.unlink(link)  # the file is shared with the other environment
        link.write_text(text)


def with_compiled_kernels(clone: Path) -> None:
    """Compiled code serves a source of the same size and time of change. Where the source is another, it serves nobody.

    Other tests may be writing it: the code is copied before the list of what there is, and what vanishes is left out.
    """
    for source in (ROOT / "src").rglob("*.py"):
        there = clone / source.relative_to(ROOT)
        if there.exists() and there.read_bytes() == source.read_bytes():
            shutil.copystat(source, there)
    for kind in ("*.nbc", "*.nbi"):
        for compiled in list((ROOT / "src").rglob(kind)):
            there = clone / compiled.relative_to(ROOT)
            there.parent.mkdir(exist_ok=True)
            with suppress(FileNotFoundError):
                shutil.copy(compiled, there)
