"""Nothing that is read from a disk or a socket is unpickled: that would execute whatever code is in it.

What remains is code on its way through Spark, which sends functions pickled itself.
"""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
MODULES = {"pickle", "cloudpickle", "marshal", "shelve", "dill", "joblib"}
ALLOWED = {
    "cedr/runtime/spark/driver/job.py": "the query, sent to tasks by Spark, and left for shard processes in a folder "
    "that only their owner can enter, under the name of its digest",
    "cedr/runtime/spark/reader/source.py": "source and functions, sent to tasks as an option of Spark's data source",
    "cedr/runtime/spark/driver/executors.py": "only marks the module that Spark is to send as code",
    "cedr/job/on_spark.py": "only marks modules of the user, whose functions Spark is to send as code",
}


def imported(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {(node.module or "").partition(".")[0], *(alias.name for alias in node.names)}
    return found


def test_modules_that_unpickle_are_listed_with_a_reason():
    found = {str(f.relative_to(SOURCE)) for f in SOURCE.rglob("*.py") if imported(f) & MODULES}
    assert found == ALLOWED.keys()


def test_libraries_do_not_unpickle_for_us():
    """`np.load` does with `allow_pickle`, `pd.read_pickle` always."""
    for file in SOURCE.rglob("*.py"):
        text = file.read_text()
        assert "allow_pickle" not in text
        assert "read_pickle" not in text
        assert "np.load(" not in text
