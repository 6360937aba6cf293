"""The drawings of docs/concepts.md: `python docs/drawings/draw.py` writes them again. Time runs to the right.

Filled bars are lifetimes as they stand, hatched ones are parts that were taken back, vertical lines are promises.
"""

from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

INK, PALE, GOOD, LATE, LINE = "#263238", "#90a4ae", "#26a69a", "#e64a19", "#5c6bc0"
ROW, UNIT, LEFT, TOP = 34, 46, 150, 18


@dataclass
class Drawing:
    """Rows from top to bottom, times from left to right; `width` and `height` count these."""

    width: int
    height: int
    parts: list[str] = field(default_factory=list)

    def x(self, time: float) -> float:
        return LEFT + time * UNIT

    def y(self, row: float) -> float:
        return TOP + row * ROW

    def text(self, x: float, y: float, words: str, anchor: str = "start", color: str = INK, bold: bool = False) -> None:
        weight = ' font-weight="600"' if bold else ""
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{color}"{weight}>{escape(words)}</text>'
        )

    def label(self, row: float, words: str) -> None:
        self.text(LEFT - 14, self.y(row) + 19, words, "end")

    def bar(self, row: float, start: float, end: float, words: str = "", color: str = GOOD, gone: bool = False) -> None:
        fill = 'fill="url(#gone)" stroke-dasharray="4 3"' if gone else f'fill="{color}"'
        self.parts.append(
            f'<rect x="{self.x(start):g}" y="{self.y(row) + 5:g}" width="{(end - start) * UNIT:g}" height="{ROW - 12}" '
            f'rx="3" {fill} stroke="{color}"/>'
        )
        if words:
            color = INK if gone else "#ffffff"
            self.text(self.x((start + end) / 2), self.y(row) + 20, words, "middle", color)

    def line(self, x1: float, y1: float, x2: float, y2: float, color: str = INK, dashed: bool = False) -> None:
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{color}" stroke-width="1.5"{dashes}/>'
        )

    def promise(self, time: float, words: str, first: float, last: float) -> None:
        self.line(self.x(time), self.y(first), self.x(time), self.y(last), LINE, dashed=True)
        self.text(self.x(time) + 5, self.y(last) - 4, words, color=LINE)

    def dot(self, time: float, row: float, words: str, color: str = GOOD) -> None:
        self.parts.append(f'<circle cx="{self.x(time):g}" cy="{self.y(row) + 16:g}" r="7" fill="{color}"/>')
        self.text(self.x(time) + 12, self.y(row) + 21, words, color=color)

    def axis(self, row: float, last: int, name: str = "valid time") -> None:
        y = self.y(row) + 4
        self.line(LEFT, y, self.x(last), y, PALE)
        for time in range(last + 1):
            self.line(self.x(time), y, self.x(time), y + 4, PALE)
            self.text(self.x(time), y + 19, str(time), "middle", PALE)
        self.text(self.x(last) + 12, y + 5, name, color=PALE)

    def svg(self) -> str:
        width, height = LEFT + self.width * UNIT + 120, TOP + self.height * ROW + 20
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
                'font-size="14">',
                '<defs><pattern id="gone" width="7" height="7" patternUnits="userSpaceOnUse" '
                'patternTransform="rotate(45)">'
                f'<rect width="7" height="7" fill="#ffffff"/><line x1="0" y1="0" x2="0" y2="7" stroke="{PALE}" '
                'stroke-width="2"/></pattern></defs>',
                f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>',
                *self.parts,
                "</svg>\n",
            ]
        )


def lifetimes() -> Drawing:
    d = Drawing(10, 4)
    d.label(0, "web1: load 20")
    d.bar(0, 0, 6, "[0, 6)")
    d.label(1, "web1: load 80")
    d.bar(1, 4, 10, "[4, 10)")
    d.label(2, "db1: load 40")
    d.bar(2, 2, 3)
    d.text(d.x(3) + 8, d.y(2) + 20, "an instant: [2, 3)")
    d.axis(3, 10)
    return d


def retraction() -> Drawing:
    d = Drawing(10, 6)
    d.text(14, d.y(0) + 19, "arrives first", bold=True)
    d.label(1, "insert [1, 9)")
    d.bar(1, 1, 9, "hall: 20 °C")
    d.text(14, d.y(2) + 19, "arrives later", bold=True)
    d.label(3, "adjust to 6")
    d.bar(3, 1, 6, "hall: 20 °C")
    d.bar(3, 6, 9, "retracted", PALE, gone=True)
    d.label(4, "adjust to 1")
    d.bar(4, 1, 9, "never existed: a full retraction", PALE, gone=True)
    d.axis(5, 10)
    return d


def progress() -> Drawing:
    d = Drawing(10, 7)
    for row, (words, time, color) in enumerate(
        [("1st to arrive", 2, GOOD), ("2nd", 5, GOOD), ("3rd, out of order", 3, GOOD)]
    ):
        d.label(row, words)
        d.dot(time, row, f"insert at {time}", color)
    d.label(3, "4th, a promise")
    d.text(d.x(4) + 10, d.y(3) + 20, "cti(4): nothing more before 4", color=LINE)
    d.label(4, "5th")
    d.dot(7, 4, "insert at 7")
    d.label(5, "6th, too late")
    d.dot(1, 5, "insert at 1: kept in the late stream", LATE)
    d.line(d.x(4), d.y(3), d.x(4), d.y(6), LINE, dashed=True)
    d.axis(6, 10)
    return d


def repair() -> Drawing:
    d = Drawing(10, 10)
    d.text(14, d.y(0) + 19, "input so far", bold=True)
    d.label(1, "a")
    d.bar(1, 0, 8, "a")
    d.text(14, d.y(2) + 19, "result: count", bold=True)
    d.label(3, "emitted at once")
    d.bar(3, 0, 8, "1", LINE)
    d.text(14, d.y(4) + 19, "b arrives late", bold=True)
    d.label(5, "b")
    d.bar(5, 3, 6, "b")
    d.text(14, d.y(6) + 19, "emitted as repair", bold=True)
    d.label(7, "adjust [0, 8) to 3")
    d.bar(7, 0, 3, "1", LINE)
    d.bar(7, 3, 8, "", PALE, gone=True)
    d.label(8, "two inserts")
    d.bar(8, 3, 6, "2", LINE)
    d.bar(8, 6, 8, "1", LINE)
    d.axis(9, 10)
    return d


def triangle() -> Drawing:
    d = Drawing(8, 9)
    left, right, top, bottom = d.x(0), d.x(6), d.y(1), d.y(7)
    d.parts.append(
        f'<polygon points="{left:g},{bottom:g} {right:g},{bottom:g} {right:g},{top:g}" fill="{GOOD}" '
        f'fill-opacity="0.18" stroke="{GOOD}"/>'
    )
    d.line(left, bottom, right, bottom)
    d.line(left, bottom, left, d.y(0.4))
    d.text(d.x(3), bottom + 40, "remember: how long answers may still be repaired", "middle")
    d.text(left - 12, d.y(0.4) + 6, "block: how long", "end")
    d.text(left - 12, d.y(0.4) + 24, "to wait", "end")
    for x, y, words, anchor, dx, dy in [
        (left, bottom, "weak: 0, 0", "start", -12, 21),
        (right, bottom, "middle: 0, ∞", "start", -40, 21),
        (right, top, "strong: ∞, ∞", "start", 12, 5),
    ]:
        d.parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="7" fill="{INK}"/>')
        d.text(x + dx, y + dy, words, anchor, bold=True)
    d.text(d.x(4.2), d.y(5.2), "any point in here", "middle", GOOD)
    d.text(d.x(3), bottom - 8, "no waiting", "middle", GOOD)
    d.text(right + 12, d.y(4), "correct in the end", color=GOOD)
    d.parts.append(f'<g transform="translate({d.x(2.8):g} {d.y(3.9):g}) rotate(-36.5)">')
    d.text(0, 0, "nothing is retracted", "middle", GOOD)
    d.parts.append("</g>")
    d.text(d.x(1.5), d.y(2.4), "waiting longer than", "middle", PALE)
    d.text(d.x(1.5), d.y(2.9), "you remember", "middle", PALE)
    d.text(d.x(1.5), d.y(3.4), "gains nothing", "middle", PALE)
    return d


def rooms() -> Drawing:
    """The packages that a row passes, and those that prepare its way."""
    d = Drawing(15, 11)

    def box(column: float, row: float, width: float, name: str, what: str, color: str = GOOD) -> None:
        d.parts.append(
            f'<rect x="{14 + column * UNIT:g}" y="{d.y(row):g}" width="{width * UNIT:g}" height="{1.6 * ROW:g}" rx="4" '
            f'fill="{color}" fill-opacity="0.15" stroke="{color}"/>'
        )
        d.text(14 + (column + width / 2) * UNIT, d.y(row) + 22, name, "middle", bold=True)
        d.text(14 + (column + width / 2) * UNIT, d.y(row) + 42, what, "middle")

    def arrow(x1: float, y1: float, x2: float, y2: float) -> None:
        d.line(14 + x1 * UNIT, d.y(y1), 14 + x2 * UNIT, d.y(y2))
        d.parts.append(f'<circle cx="{14 + x2 * UNIT:g}" cy="{d.y(y2):g}" r="3.5" fill="{INK}"/>')

    d.text(14, d.y(0) + 12, "a query", bold=True, color=LINE)
    box(0, 0.7, 3.6, "language", "text of a query", LINE)
    box(4.6, 0.7, 3.6, "stream, api", "stream operators", LINE)
    box(9.2, 0.7, 4.2, "plan", "nodes, rules, analysis", LINE)
    box(14.4, 0.7, 3.4, "operators, kernels", "physical operators", LINE)
    arrow(3.6, 1.5, 4.6, 1.5)
    arrow(8.2, 1.5, 9.2, 1.5)
    arrow(13.4, 1.5, 14.4, 1.5)
    d.text(14, d.y(3) + 12, "a row, locally", bold=True, color=GOOD)
    box(0, 3.7, 3.6, "sources", "times, progress")
    box(4.6, 3.7, 3.6, "columnar", "chunks")
    box(9.2, 3.7, 4.2, "runtime/engine", "operators and state")
    box(14.4, 3.7, 3.4, "runtime/result", "changes, history")
    for x in (3.6, 8.2, 13.4):
        arrow(x, 4.5, x + 1, 4.5)
    d.text(14, d.y(6) + 12, "a row, on Spark", bold=True, color=LATE)
    box(0, 6.7, 3.6, "sources", "times, progress", LATE)
    box(4.6, 6.7, 3.6, "spark/reader", "packets by shard", LATE)
    box(9.2, 6.7, 4.2, "spark/shard", "same engine, with a log", LATE)
    box(14.4, 6.7, 3.4, "sinks", "a table, exactly once", LATE)
    for x in (3.6, 8.2, 13.4):
        arrow(x, 7.5, x + 1, 7.5)
    box(4.6, 9.2, 3.6, "spark/driver", "starts micro-batches", LATE)
    box(9.2, 9.2, 4.2, "storage", "files that survive crashes", LATE)
    arrow(6.4, 9.2, 6.4, 8.3)
    arrow(11.3, 8.3, 11.3, 9.2)
    return d


DRAWINGS = {
    "lifetimes": lifetimes,
    "retraction": retraction,
    "progress": progress,
    "repair": repair,
    "triangle": triangle,
    "rooms": rooms,
}


def write(folder: Path) -> None:
    for name, draw in DRAWINGS.items():
        (folder / f"{name}.svg").write_text(draw().svg())


if __name__ == "__main__":
    write(Path(__file__).parent)
