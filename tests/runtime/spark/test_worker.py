"""What a task leaves behind in a Python worker of Spark's; each in a process of its own, as it changes the process."""

import subprocess
import sys
import zipfile

import pytest


def run(code: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_collector_passes_over_what_was_there_after_the_first_tasks():
    code = """
import gc
from cedr.runtime.spark.shard.worker import FIRST_TASKS, in_worker
kept, frozen = [], [0]
for _ in range(FIRST_TASKS + 2):
    kept.append([[] for _ in range(1000)])
    assert list(in_worker(iter([1, 2]))) == [1, 2]
    frozen.append(gc.get_freeze_count())
print([after - before >= 1000 for before, after in zip(frozen, frozen[1:])])
"""
    assert run(code) == "[True, True, True, True, False, False]\n"


def test_zip_files_are_forgotten_until_an_import_needs_them(tmp_path):
    with zipfile.ZipFile(tmp_path / "some.zip", "w") as archive:
        archive.writestr("first_of_zip.py", "value = 1")
        archive.writestr("second_of_zip.py", "value = 2")
    code = """
import sys
from cedr.runtime.spark.shard.worker import in_worker
sys.path.insert(0, sys.argv[1])
import first_of_zip
assert sys.argv[1] in sys.path_importer_cache
list(in_worker(iter([])))
assert sys.argv[1] not in sys.path_importer_cache
import second_of_zip
print(second_of_zip.value)
"""
    assert run(code, str(tmp_path / "some.zip")) == "2\n"


@pytest.mark.parametrize(
    ("raised", "seen"), [("CedrError('mine')", "<<cedr:CedrError:mine:cedr>>"), ("ValueError('x')", "x")]
)
def test_errors_pass(raised, seen):
    code = f"""
from cedr.runtime.spark.shard.worker import in_worker
from cedr.temporal.errors import CedrError
def task():
    yield 1
    raise {raised}
try:
    list(in_worker(task()))
except Exception as e:
    print(e)
"""
    assert run(code) == f"{seen}\n"
