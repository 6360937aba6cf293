"""Every test of automata runs on one table of all events, and on many small levels."""

import pytest

from cedr.operators.automata import levels


@pytest.fixture(autouse=True, params=["one table", "many levels"])
def event_levels(request, monkeypatch):
    if request.param == "many levels":
        monkeypatch.setattr(levels, "FEW_EVENTS", 0)
        monkeypatch.setattr(levels, "GROWTH", 1)
        monkeypatch.setattr(levels, "SHARE", 0)
        monkeypatch.setattr(levels, "AHEAD", 1)
        monkeypatch.setattr(levels, "CREDIT", 1)
    return request.param
