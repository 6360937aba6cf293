"""docs/types.md shows the results of the matrix."""

from matrix.page import PAGE, page


def test_the_page_is_current():
    assert PAGE.read_text() == page(), "docs/types.md is out of date; run .venv/bin/python tests/matrix/page.py"
