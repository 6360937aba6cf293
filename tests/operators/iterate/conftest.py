"""Loops forget with every progress where they hold little, as short streams do, and later where they hold much."""

import pytest

from cedr.columnar import marks
from cedr.operators.iterate import support_table


@pytest.fixture(autouse=True, params=["at once", "later"])
def much_state(request, monkeypatch):
    if request.param == "later":
        monkeypatch.setattr(support_table, "FEW_ROWS", 0)
        monkeypatch.setattr(support_table, "FREE", 1)
        monkeypatch.setattr(marks, "PASS", 0)
