"""Stores forget rows that are no longer used only when they hold thousands. Here they do so at once, so that the short
streams of the laws reach that code."""

import pytest
from layouts import LAYOUTS, use_layout

from cedr.columnar import blocks, index
from cedr.kernels import hash_table
from cedr.operators import future, lap
from cedr.operators import layout as layouts
from cedr.operators.aggregate import AggregateOperator
from cedr.operators.finalize import chains


@pytest.fixture(autouse=True)
def forget_at_once(monkeypatch):
    monkeypatch.setattr(index, "WORTH_COMPACTING", 1)
    monkeypatch.setattr(chains, "FEW_PAYLOADS", 0)
    monkeypatch.setattr(lap, "AT_ONCE", 1)
    monkeypatch.setattr(hash_table, "IN_CACHE", 16)
    monkeypatch.setattr(lap, "PER_ROW", 3)


@pytest.fixture(params=LAYOUTS)
def layout(request, monkeypatch):
    use_layout(monkeypatch, request.param)


@pytest.fixture
def changing_layout(monkeypatch):
    use_layout(monkeypatch, "changing")


SNAPSHOT_LAYOUTS = {"blocks": (0, 0), "by chunk": (1, 1), "future": (0, 0)}
"""When a chunk is small, and for how many of them nothing changes."""


def use_snapshot_layout(monkeypatch, name):
    small_chunk, patience = SNAPSHOT_LAYOUTS[name]
    if name == "future":
        monkeypatch.setattr(AggregateOperator, "_to_blocks", lambda self: None)
    monkeypatch.setattr(layouts, "MUCH_STATE", 0)
    monkeypatch.setattr(layouts, "PATIENCE", patience)
    monkeypatch.setattr(layouts, "SMALL_CHUNK", small_chunk)
    monkeypatch.setattr(future, "WORTH_IT", 0)
    monkeypatch.setattr(blocks, "BLOCK", 4)
    monkeypatch.setattr(blocks, "SEGMENT_BITS", 1)
    return name


@pytest.fixture(params=["blocks", "by chunk"])
def snapshot_layout(request, monkeypatch):
    """State in blocks of 4 rows from the first chunk on, or moved there and back, depending on the sizes of chunks."""
    return use_snapshot_layout(monkeypatch, request.param)


@pytest.fixture(params=SNAPSHOT_LAYOUTS)
def layout_of_sums(request, monkeypatch):
    """The same, or with only end points in the future in blocks."""
    return use_snapshot_layout(monkeypatch, request.param)
