"""The progress of a source, combined from the reports of its parts."""

import numpy as np
import polars as pl
import pytest

import cedr
from cedr.api import source_of_keys
from cedr.sources.ingest import Ingest
from cedr.sources.progress import ProgressReport, SourceProgress
from cedr.temporal import ExternalCti, QueryError
from cedr.temporal.time import MIN


def source(**options):
    return source_of_keys("s", {"v": int}, vs="ts", **options).plan


def test_a_delay_is_counted_from_the_highest_start():
    progress = SourceProgress(source(delay=10))
    assert progress.update([ProgressReport({None: 100})]) == 90
    assert progress.update([ProgressReport({None: 50})]) == 90
    assert progress.update([ProgressReport({None: 120})]) == 110


def test_rows_in_order_have_no_delay():
    assert SourceProgress(source(ordered=True)).update([ProgressReport({None: 100})]) == 100


def test_a_source_is_as_far_as_its_last_partition():
    progress = SourceProgress(source(delay=0, partition="p"))
    assert progress.update([ProgressReport({"x": 100, "y": 30})]) == 30
    assert progress.update([ProgressReport({"y": 70})]) == 70


def test_a_silent_partition_holds_nobody_back_after_the_idle_time():
    progress = SourceProgress(source(delay=0, partition="p", idle=1000))
    assert progress.update([ProgressReport({"x": 10, "y": 5}, at=0)]) == 5
    assert progress.update([ProgressReport({"x": 20}, at=1000)]) == 5
    assert progress.update([ProgressReport({"x": 30}, at=1001)]) == 30
    assert progress.update([ProgressReport({"y": 6}, at=1002)]) == 30, "a promise is not taken back"
    assert progress.update([ProgressReport({"x": 40}, at=1003)]) == 30, "y has rows again, so it counts again"
    assert progress.update([ProgressReport({"y": 35}, at=1004)]) == 35


def test_a_cti_of_the_whole_source_counts_for_all_partitions():
    progress = SourceProgress(source(partition="p", cti="c"))
    assert progress.update([ProgressReport({"x": 10, "y": 5}, {"x": 8})]) == MIN
    assert progress.update([ProgressReport(ctis={None: 7})]) == 7
    assert progress.update([ProgressReport(ctis={"y": 9})]) == 8


def test_external_ctis_close_when_all_their_elements_have_come():
    progress = SourceProgress(source(ve="e", external_ctis="n"), counts=True)
    count = ExternalCti(0, 10, 3)
    assert progress.update([ProgressReport({None: 5}, external=(count,), syncs=np.array([1, 5]))]) < 10
    assert progress.update([ProgressReport({None: 9}, syncs=np.array([9]))]) == 10


def test_external_ctis_that_cannot_be_right_are_kept_with_the_reason():
    progress = SourceProgress(source(ve="e", external_ctis="n"), counts=True)
    progress.update([ProgressReport({None: 5}, external=(ExternalCti(0, 10, 1),), syncs=np.array([1, 5]))])
    ((cti, reason, _),) = progress.take_broken()
    assert cti == ExternalCti(0, 10, 1)
    assert reason == "count_exceeded"
    assert progress.take_broken() == []


def test_progress_goes_on_after_save_and_load():
    progress = SourceProgress(source(delay=0, partition="p", idle=1000))
    progress.update([ProgressReport({"x": 10, "y": 5}, at=0)])
    other = SourceProgress(source(delay=0, partition="p", idle=1000))
    other.restore(progress.snapshot())
    assert other.update([ProgressReport({"y": 9}, at=10)]) == progress.update([ProgressReport({"y": 9}, at=10)]) == 9


def test_partitions_of_a_table_progress_by_themselves():
    ingest = Ingest(source(delay=2, partition="p"))
    table = pl.DataFrame({"ts": [10, 5, 20, 6], "p": ["x", "y", "x", "y"], "v": [1, 2, 3, 4]})
    assert [chunk.cti for chunk in ingest.chunks(table, 2)] == [3, 4]


def test_partitions_of_a_table_have_their_own_ctis():
    ingest = Ingest(source(cti="c", partition="p"))
    table = pl.DataFrame({"ts": [10, None, 20], "p": ["x", "x", "y"], "c": [None, 9, 15], "v": [1, None, 3]})
    (chunk,) = ingest.chunks(table, 10)
    assert len(chunk) == 2
    assert chunk.cti == 9


def test_rows_with_a_count_are_external_ctis():
    query = cedr.source("s", {"v": int}, vs="ts", ve="e", progress=cedr.Progress(external_ctis="n")).agg(c=cedr.count())
    table = pl.DataFrame({"ts": [1, 4, 0], "e": [3, 6, 10], "n": [None, None, 2], "v": [1, 2, None]})
    result = query.run(table, close=False)
    assert result.table().rows() == [(1, 3, 1), (4, 6, 1)]
    assert result.late().height == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"idle": "5s"}, "needs partition"),
        ({"external_ctis": "n"}, "needs ve"),
    ],
)
def test_settings_are_checked(options, message):
    with pytest.raises(QueryError, match=message):
        source(**options)
