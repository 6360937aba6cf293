"""A plan as a picture in SVG, drawn without any other program: sources on top, the answer at the bottom.

A node is one row below the lowest of its inputs, under the middle of them as far as its neighbours allow.
"""

from dataclasses import dataclass
from html import escape
from textwrap import wrap

from cedr.plan.node import Node, topological
from cedr.plan.nodes import Source

WIDTH, GAP, ROW_GAP = 300.0, 30.0, 46.0
LINE, PADDING, MARGIN = 16.0, 10.0, 20.0
CHARACTERS = 42
INK, PAPER, SOURCE = "#333333", "#ffffff", "#e8f1f8"


@dataclass
class Box:
    """A node on the page; `x` is its middle, `y` its top."""

    text: list[str]
    row: int
    source: bool = False
    x: float = 0.0
    y: float = 0.0

    @property
    def height(self) -> float:
        return len(self.text) * LINE + 2 * PADDING


def svg(plan: Node, answer: str = "answer") -> str:
    boxes, arrows = boxes_of(plan, answer)
    rows = [[box for box in boxes if box.row == number] for number in range(max(box.row for box in boxes) + 1)]
    place(rows, {id(box): [boxes[a] for a, b in arrows if b == number] for number, box in enumerate(boxes)})
    width = max(box.x for box in boxes) + WIDTH / 2 + MARGIN
    height = max(box.y + box.height for box in boxes) + MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
            f'height="{height:.0f}" font-family="monospace" font-size="11" fill="{INK}">',
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
            f'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{INK}"/></marker></defs>',
            f'<rect width="100%" height="100%" fill="{PAPER}"/>',
            *(arrow(boxes[a], boxes[b]) for a, b in arrows),
            *map(drawn, boxes),
            "</svg>",
        ]
    )


def boxes_of(plan: Node, answer: str) -> tuple[list[Box], list[tuple[int, int]]]:
    """The boxes, and from which to which there are arrows."""
    nodes = topological(plan)
    numbers = {id(node): number for number, node in enumerate(nodes)}
    boxes: list[Box] = []
    for node in nodes:
        row = max((boxes[numbers[id(i)]].row + 1 for i in node.inputs), default=0)
        boxes.append(Box(wrap(node.describe(), CHARACTERS) or [""], row, isinstance(node, Source)))
    arrows = [(numbers[id(i)], number) for number, node in enumerate(nodes) for i in node.inputs]
    boxes.append(Box(wrap(answer, CHARACTERS), boxes[-1].row + 1))
    return boxes, [*arrows, (len(nodes) - 1, len(nodes))]


def place(rows: list[list[Box]], inputs: dict[int, list[Box]]) -> None:
    y = MARGIN
    for row in rows:
        least = MARGIN + WIDTH / 2
        for box in row:
            above = [other.x for other in inputs[id(box)]]
            wanted = sum(above) / len(above) if above else least
            box.x, box.y = max(wanted, least), y
            least = box.x + WIDTH + GAP
        y += max(box.height for box in row) + ROW_GAP


def arrow(start: Box, end: Box) -> str:
    x, y, to_x, to_y = start.x, start.y + start.height, end.x, end.y
    half = (to_y - y) / 2
    curve = f"M{x:.0f},{y:.0f} C{x:.0f},{y + half:.0f} {to_x:.0f},{to_y - half:.0f} {to_x:.0f},{to_y:.0f}"
    return f'<path d="{curve}" fill="none" stroke="{INK}" marker-end="url(#tip)"/>'


def drawn(box: Box) -> str:
    fill = SOURCE if box.source else PAPER
    left, first = box.x - WIDTH / 2, box.y + PADDING + LINE * 0.75
    texts = (
        f'<text x="{left + PADDING:.0f}" y="{first + number * LINE:.0f}">{escape(text)}</text>'
        for number, text in enumerate(box.text)
    )
    frame = f'<rect x="{left:.0f}" y="{box.y:.0f}" width="{WIDTH:.0f}" height="{box.height:.0f}" rx="4"'
    return f'{frame} fill="{fill}" stroke="{INK}"/>{"".join(texts)}'
