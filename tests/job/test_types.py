"""Types of columns in job files."""

import polars as pl
import pytest
from job.files import JOB, put

from cedr.job.job import read
from cedr.job.local import LocalAnswer
from cedr.temporal import QueryError


def with_load(kind: str) -> str:
    return JOB.replace('load = "float"', f'load = "{kind}"')


def test_decimals_are_exact(tmp_path):
    job = read(put(tmp_path, with_load("decimal(12, 2)").replace("r.load > 0.5", "r.machine <> 'none'")))
    answer = LocalAnswer(job, job.sinks["hot"])
    list(answer.steps())
    loads = answer.result.table()["load"]
    assert loads.dtype == pl.Decimal(12, 2)
    assert sorted(map(str, loads.unique())) == ["0.20", "0.60", "0.70", "0.80", "0.90"]


@pytest.mark.parametrize("kind", ["decimal(39, 0)", "decimal(0, 0)", "decimal(2, 3)"])
def test_decimals_that_cannot_be(tmp_path, kind):
    with pytest.raises(QueryError, match="a decimal has 1 to 38 digits"):
        read(put(tmp_path, with_load(kind)))
