"""What all tests share: how Spark starts, its Python workers run this interpreter, and how hard hypothesis tries.

default                18 examples per law, the same ones in every run, whichever tests ran before: whether a change
                       passes is not left to chance
./cedr explore         100 new ones per law and round; failing ones are kept in .hypothesis and tried first next time
CEDR_EXAMPLES=5000     that many examples per law, when you have the time
"""

import os
import random
import sys
import time
from pathlib import Path

import java_start
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from cedr.storage import disk
from cedr.storage.disk import Disk, Parts

REPOSITORY = Path(__file__).parents[1]

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # ./cedr sets it too; this is for pytest run by hand
os.environ.setdefault("CEDR_DEBUG", "1")  # contracts about all rows are checked, in processes that tests start as well
java_start.set_options()

settings.register_profile(
    "default",
    max_examples=18,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],  # it goes by the clock, and a busy machine is slow
    database=None,
)
settings.register_profile(
    "explore",
    settings.get_profile("default"),
    max_examples=100,
    derandomize=False,
    database=DirectoryBasedExampleDatabase(REPOSITORY / ".hypothesis" / "examples"),
)
EXPLORE_UNTIL = float(os.environ.get("CEDR_EXPLORE_UNTIL", "0"))
PROFILE = "explore" if EXPLORE_UNTIL else "default"
settings.load_profile(PROFILE)

if wanted := os.environ.get("CEDR_EXAMPLES"):
    settings.register_profile("deep", settings.get_profile(PROFILE), max_examples=int(wanted))
    settings.load_profile("deep")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """An exploration that has little time should not always begin with the same laws."""
    if EXPLORE_UNTIL:
        random.Random(os.environ["CEDR_EXPLORE_SEED"]).shuffle(items)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if EXPLORE_UNTIL and time.time() > EXPLORE_UNTIL:
        pytest.skip("the time to explore is over")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Hypothesis also draws the constants of all modules of ours that are loaded by then, and which these are depends
    on the tests that ran before in this process. Where examples have to be the same, it does without."""
    if settings.default is not None and settings.default.derandomize:
        nothing = Constants()
        providers._get_local_constants = lambda: nothing


def pytest_configure(config: pytest.Config) -> None:
    """Only a run of all tests in several processes, and only the process that leads it, makes the archive for Java."""
    leads = bool(config.getoption("numprocesses", None)) and not hasattr(config, "workerinput")
    if leads and config.args_source is pytest.Config.ArgsSource.TESTPATHS and not config.getoption("keyword"):
        java_start.make_in_background()


class WithoutSync(Disk):
    """No power fails in most tests, and a sync takes as long as a hundred writes."""

    def sync(self, path: str) -> None:
        pass

    def write(self, path: str, parts: Parts, sync: bool) -> None:
        super().write(path, parts, sync=False)


@pytest.fixture(scope="session", autouse=True)
def without_sync():
    """In this process; those of Spark and of shards sync as they do for users."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk, "local", WithoutSync())
        yield
