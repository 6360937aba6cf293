"""Short streams with the sizes of events that long ones have: in one level, and in many small ones."""

import pytest

from cedr.operators.patterns import levels


@pytest.fixture(autouse=True, params=["one level", "many levels"])
def event_levels(request, monkeypatch):
    if request.param == "many levels":
        monkeypatch.setattr(levels, "FEW_EVENTS", 2)
        monkeypatch.setattr(levels, "GROWTH", 1)
        monkeypatch.setattr(levels, "SAMPLED", 3)
