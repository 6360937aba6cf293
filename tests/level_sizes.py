"""Short streams with the sizes of events that long ones have: in one level, and in many small ones.

Matches that wait are in arrays, and in blocks of a few rows.
"""

import pytest

from cedr.columnar import blocks
from cedr.operators import layout
from cedr.operators.patterns import levels


@pytest.fixture(autouse=True, params=["one level", "many levels"])
def event_levels(request, monkeypatch):
    if request.param == "many levels":
        monkeypatch.setattr(levels, "FEW_EVENTS", 2)
        monkeypatch.setattr(levels, "GROWTH", 1)
        monkeypatch.setattr(levels, "SAMPLED", 3)
        monkeypatch.setattr(layout, "MUCH_STATE", 0)
        monkeypatch.setattr(layout, "SMALL_CHUNK", 0)
        monkeypatch.setattr(layout, "PATIENCE", 2)
        monkeypatch.setattr(blocks, "BLOCK", 4)
        monkeypatch.setattr(blocks, "SEGMENT_BITS", 1)
