"""`cedr docs`: build the documentation site from the checkout."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from cedr import CedrError

REPOSITORY = Path(__file__).parents[3]


def docs(
    to: Annotated[Path, typer.Option(help="Output folder.")] = REPOSITORY / "site",
    serve: Annotated[bool, typer.Option(help="Serve it on this machine and rebuild when a page changes.")] = False,
    port: Annotated[int, typer.Option(help="Port for --serve.", min=1, max=65535)] = 8000,
) -> None:
    """Build the documentation. The pages open from the folder; search requires --serve or another web server."""
    if not (REPOSITORY / "mkdocs.yml").is_file():
        raise CedrError(f"{REPOSITORY} contains no documentation; `cedr docs` needs a checkout of the repository")
    rest = (
        ["serve", "--dev-addr", f"127.0.0.1:{port}"]
        if serve
        else ["build", "--strict", "--site-dir", str(to.absolute())]
    )
    command = [sys.executable, "-m", "mkdocs", rest[0], "--config-file", str(REPOSITORY / "mkdocs.yml"), *rest[1:]]
    # mkdocs looks for tools such as ruff on the PATH; NO_MKDOCS_2_WARNING silences an announcement.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(command, env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PATH": path}, check=False)
    if done.returncode:
        raise typer.Exit(1)
    if not serve:
        print(f"open {to / 'index.html'}")
