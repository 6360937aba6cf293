"""Who takes part in `./cedr bench peers`, and how each is started: a process of its own that gets one question."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cedr.cli.bench import ENVIRONMENT
from peers.environments import python_of

FOLDER = Path(__file__).parents[1]
ALLOCATOR = {key: value for key, value in ENVIRONMENT.items() if key.startswith("MALLOC")}
"""As `./cedr` sets it (docs/decisions/0008)."""


@dataclass(frozen=True)
class Contestant:
    name: str
    title: str
    guest: bool = False
    """It lives in an environment of its own."""
    streaming: bool = True

    @property
    def takes_corrections(self) -> bool:
        return self.ours or not self.streaming

    @property
    def ours(self) -> bool:
        return self.title.startswith("cedr")

    def command(self, question: str, folder: Path, out: Path, log: Callable[[str], None]) -> list[str]:
        """Installs the environment first if it is not there; may raise NotInstalledError."""
        asked = [question, str(folder), str(out)]
        if self.guest:
            return [str(python_of(self.name, log)), str(FOLDER / "peers" / self.name / "run.py"), *asked]
        return [sys.executable, "-m", "peers.turn", self.name, *asked]

    def environment(self) -> dict[str, str]:
        """No limit of threads: the running system may use all cores."""
        plain = {key: value for key, value in os.environ.items() if key not in ENVIRONMENT}
        if self.guest:
            return {**plain, "PYTHONPATH": str(FOLDER)}
        python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        return {
            **plain,
            **ALLOCATOR,
            **python,
            "PYTHONPATH": os.pathsep.join([str(FOLDER), str(FOLDER.parent / "src")]),
        }


LIMIT = Contestant("polars", "polars in batch", streaming=False)
LOCAL = Contestant("local", "cedr local")
ON_SPARK = Contestant("cedr-spark", "cedr on Spark")
ALL = (
    LIMIT,
    LOCAL,
    ON_SPARK,
    Contestant("spark", "Spark streaming"),
    Contestant("flink", "Flink SQL", guest=True),
    Contestant("bytewax", "Bytewax", guest=True),
    Contestant("pathway", "Pathway", guest=True),
)
