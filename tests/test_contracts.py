"""Contracts are checked while tests run, and each of them can fail."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from cedr import contracts
from cedr.columnar.chunk import Chunk, empty
from cedr.columnar.index import RowIndex
from cedr.contracts import CallOrder, sorted_by
from cedr.kernels.ragged_pairs import RaggedPairs
from cedr.operators.front import Front
from cedr.operators.stateless import SelectOperator
from cedr.operators.tuple_store import TupleStore
from cedr.runtime.spark.shard.packet import Packet
from cedr.runtime.spark.shard.shard import Core
from cedr.temporal.time import INF

K = {"k": pl.Int64()}


def numbers(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def test_contracts_about_all_rows_are_on() -> None:
    assert contracts.DEBUG


def test_order_of_several_columns() -> None:
    assert sorted_by(numbers(1, 1, 2), numbers(3, 3, 0))
    assert sorted_by(numbers())
    assert not sorted_by(numbers(1, 1, 2), numbers(3, 2, 0))
    assert not sorted_by(numbers(2, 1), numbers(0, 5))


def test_calls_come_in_turn() -> None:
    order = CallOrder("open", "use", "close")
    assert all(order.call(name) for name in ("open", "use", "close", "open"))
    with pytest.raises(AssertionError, match="close was called after open; the order is: open, use, close"):
        order.call("close")


def front() -> Front:
    operator = SelectOperator(K, pl.col("k") > 0)
    return Front(operator, RowIndex(K))


def test_front_is_settled_before_it_passes() -> None:
    tested = front()
    tested.advance(0, empty(K))
    with pytest.raises(AssertionError, match="passed was called after advance"):
        tested.passed(0, 0)


def test_front_advances_before_it_settles() -> None:
    with pytest.raises(AssertionError, match="settle was called after passed"):
        front().settle(numbers(INF))


def test_front_is_renumbered_after_it_passed() -> None:
    tested = front()
    tested.advance(0, empty(K))
    with pytest.raises(AssertionError, match="compact the index after"):
        tested.renumber(numbers())


def test_front_takes_one_time_or_one_for_each_group() -> None:
    tested = front()
    tested.index.ids(pl.DataFrame({"k": [1, 2, 3]}))
    tested.advance(0, empty(K))
    with pytest.raises(AssertionError, match="one time for all groups"):
        tested.settle(numbers(1, 2))


def test_stores_merge_sorted_tuples() -> None:
    unsorted = TupleStore(numbers(2, 1), numbers(0, 0), numbers(1, 1), numbers(0, 0), numbers(1, 1))
    with pytest.raises(AssertionError, match="not sorted"):
        TupleStore.empty().merge(unsorted)


def test_pairs_are_put_by_sorted_keys() -> None:
    pairs = RaggedPairs()
    pairs.grow(3)
    with pytest.raises(AssertionError, match="not sorted"):
        pairs.put(numbers(2, 1), numbers(1), numbers(5), numbers(6))


def test_shards_process_sorted_packets() -> None:
    packets = [Packet(1, 0, "rows", seq=1), Packet(1, 0, "rows", seq=0)]
    with pytest.raises(AssertionError, match="packets are not sorted"):
        Core.work(SimpleNamespace(), packets)


def test_operators_keep_their_promises() -> None:
    operator = SelectOperator(K, pl.col("k") > 0)
    operator.cti_out = 10
    with pytest.raises(AssertionError, match="SelectOperator emits 5 after CTI 10"):
        operator.process(0, Chunk(pl.DataFrame({"_vs": [5], "_ve_old": [5], "_ve_new": [8], "k": [1]})))
