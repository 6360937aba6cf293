"""Every type in files of every format: read exactly, or rejected before any file is read."""

import pytest
from matrix.cells import suggests
from matrix.compare import same_rows
from matrix.files import FORMATS, read, rejected, written
from matrix.roles import finite, in_turn
from matrix.values import COLUMNS


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("format_", FORMATS)
def test_cell(tmp_path, format_, kind):
    values = COLUMNS[kind]
    if reason := rejected(format_, values.dtype):
        assert "'v'" in reason
        assert suggests(reason)
        return
    rows = in_turn(finite(values) if format_ == "json" else values)  # JSON has no NaN and no infinity
    written(rows, tmp_path, format_)
    found = read(tmp_path, format_, values.dtype)
    assert found.schema["v"] == values.dtype
    same_rows(found.select(rows.columns), rows)
