"""Every test of patterns runs twice: with events in one level, as short streams have them, and in many."""

import pytest
from level_sizes import event_levels  # noqa: F401 a fixture for all tests here

from cedr.operators.patterns import first_fitting


@pytest.fixture(autouse=True)
def looks_at_few_places_first(monkeypatch):
    monkeypatch.setattr(first_fitting, "AT_FIRST", 1)
