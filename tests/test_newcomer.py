"""A newcomer's path: clone, then the tutorial from its first command to its last, as its page says.

The clone gets the packages of this checkout's environment as they are; that the first start installs them is tested in
test_launcher.py.
"""

import os
import subprocess
from pathlib import Path

from shown_commands import follow

ROOT = Path(__file__).parents[1]


def test_clone_demo_and_tutorial(tmp_path):
    clone = tmp_path / "cedr"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    with_packages(clone)
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
