"""Every Python block in README and docs runs, and prints what the block after it shows.

Blocks of other languages are files and commands; pages that have them have tests of their own.
"""

import contextlib
import doctest
import io
import re
from pathlib import Path

import pytest

import cedr.temporal.table
from cedr import secret

ROOT = Path(__file__).parent.parent
BLOCKS = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGES = sorted(p for p in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")] if "```python" in p.read_text())


@pytest.fixture(autouse=True)
def no_secrets_of_other_tests(monkeypatch):
    """They would be replaced in what a page prints; a password may be any text."""
    monkeypatch.setattr(secret, "KNOWN", set())
    secret.known_forms.cache_clear()
    yield
    secret.known_forms.cache_clear()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_examples_print_what_the_page_shows(page):
    """Blocks of one page share their names, as they would in a notebook."""
    names: dict = {"__name__": "__main__"}
    printed = shown = ""
    for language, text in BLOCKS.findall(page.read_text()):
        if language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(text, page.name, "exec"), names)
            printed += out.getvalue()
        elif not language:
            shown += text
    assert lines(printed) == lines(shown)


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def test_the_tour_shows_examples():
    assert ROOT / "docs" / "tour.md" in PAGES


def test_docstring_examples():
    assert doctest.testmod(cedr.temporal.table).attempted > 0
    assert doctest.testmod(cedr.temporal.table).failed == 0
