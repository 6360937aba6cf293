"""Stores forget rows that are no longer used only when they hold thousands. Here they do so at once, so that the short
streams of the laws reach that code."""

import pytest
from layouts import LAYOUTS, use_layout

from cedr.columnar import index
from cedr.operators.finalize import chains


@pytest.fixture(autouse=True)
def forget_at_once(monkeypatch):
    monkeypatch.setattr(index, "WORTH_COMPACTING", 1)
    monkeypatch.setattr(chains, "FEW_PAYLOADS", 0)


@pytest.fixture(params=LAYOUTS)
def layout(request, monkeypatch):
    use_layout(monkeypatch, request.param)


@pytest.fixture
def changing_layout(monkeypatch):
    use_layout(monkeypatch, "changing")
