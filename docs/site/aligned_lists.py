"""Docstrings keep their lists of arguments aligned in columns; on the site each becomes a table."""

import re
from typing import Any

from griffe import Extension, Object

ITEM = re.compile(r"(?P<names>\S+(?: \S+)*) {2,}(?P<words>\S.*)")


class AlignedLists(Extension):
    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = with_tables(obj.docstring.value)


def with_tables(text: str) -> str:
    """`text` with each paragraph of aligned lines as a table; the others as they are."""
    return "\n\n".join(as_table(paragraph) or paragraph for paragraph in text.split("\n\n"))


def as_table(paragraph: str) -> str | None:
    """A list is a paragraph whose lines are all items, or go on with the one before, in the same column."""
    rows: list[tuple[str, str]] = []
    column = 0
    for line in paragraph.splitlines():
        item = ITEM.fullmatch(line)
        if item and (not rows or item.start("words") == column):
            column = item.start("words")
            rows.append((item["names"], item["words"]))
        elif rows and line[:column].isspace():
            rows[-1] = (rows[-1][0], f"{rows[-1][1]} {line.strip()}")
        else:
            return None
    cells = [(", ".join(f"`{name}`" for name in names.split(", ")), words.replace("|", "\\|")) for names, words in rows]
    return "\n".join(["| | |", "|---|---|", *(f"| {names} | {words} |" for names, words in cells)])
