"""Stores forget rows that are no longer used only when they hold thousands. Here they do so at once, so that the short
streams of the laws reach that code."""

import pytest

from cedr.columnar import blocks, index
from cedr.operators.finalize import chains
from cedr.operators.locality import Locality


@pytest.fixture(autouse=True)
def forget_at_once(monkeypatch):
    monkeypatch.setattr(index, "WORTH_COMPACTING", 1)
    monkeypatch.setattr(chains, "FEW_PAYLOADS", 0)


@pytest.fixture(params=["arrays", "blocks", "changing"])
def layout(request, monkeypatch):
    """State in arrays, in blocks of a few rows, or now in these and now in those."""
    turns = {"arrays": [False], "blocks": [True], "changing": [False, True, True, False, False, True, True, True]}

    def prefers_blocks(self, rows, arrived, now):
        self.arrived += arrived
        self.turn = getattr(self, "turn", -1) + 1
        answers = turns[request.param]
        return answers[self.turn % len(answers)]

    monkeypatch.setattr(Locality, "prefers_blocks", prefers_blocks)
    monkeypatch.setattr("cedr.operators.locality.FEW", 5)
    monkeypatch.setattr(blocks, "BLOCK", 4)
