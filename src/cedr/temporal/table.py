"""Plain text tables, the way the papers print histories."""

from collections.abc import Iterable, Sequence


def text_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns as wide as their widest cell, numbers and times to the right, no trailing blanks.

    >>> print(text_table(["Vs", "(Payload)"], [["1", "P1"], ["10", "P2"]]))
    Vs  (Payload)
     1  P1
    10  P2
    """
    cells = [list(header), *map(list, rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    right = [not name.startswith("(") and name not in ("Type", "ID", "K") for name in header]

    def line(row: Sequence[str]) -> str:
        padded = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True))
        return "  ".join(padded).rstrip()

    return "\n".join(map(line, cells))
