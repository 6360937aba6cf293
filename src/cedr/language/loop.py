"""RECURSIVE SELECT: a table derived from itself, with `iterate`.

Of the SELECTs between UNIONs, those that read the statement itself are the body; the others are the seed.
"""

from functools import reduce

from cedr.language.tables import Tables
from cedr.stream import Stream
from cedr.syntax import tree
from cedr.syntax.errors import LanguageError, located


def loop(node: tree.ParsedLoopQuery, name: str, tables: Tables) -> Stream:
    parts = united(node.table)
    inside = [part for part in parts if reads(part, name)]
    begin = [part for part in parts if not reads(part, name)]
    if not inside:
        raise LanguageError(
            f"no SELECT reads {name}, so there is nothing recursive: add UNION SELECT … FROM {name} …, or leave "
            "RECURSIVE out",
            node.at,
        )
    for part in inside:
        if isinstance(part, tree.ParsedCompound):
            raise LanguageError(
                f"{part.keyword} applies to everything before it, so it cannot read {name}; only UNION joins the parts "
                "of a loop. Move what comes before or after the loop into another statement",
                part.at,
            )
    if not begin:
        raise LanguageError(
            f"every part reads {name}, so the loop has no seed; write RECURSIVE SELECT … UNION SELECT … FROM {name} …",
            node.at,
        )
    seed = together(begin, tables)

    def body(derived: Stream) -> Stream:
        with tables.reading(name, derived, node.at):
            return together(inside, tables)

    with located(inside[0].at):
        return seed.iterate(body)


def united(node: tree.ParsedSelect | tree.ParsedCompound) -> list[tree.ParsedSelect | tree.ParsedCompound]:
    """The parts of a union, in their order."""
    parts: list[tree.ParsedSelect | tree.ParsedCompound] = []
    while isinstance(node, tree.ParsedCompound) and node.keyword == "UNION":
        parts.append(node.right)
        node = node.left
    return [node, *reversed(parts)]


def reads(node: tree.Syntax, name: str) -> bool:
    return any(isinstance(part, tree.ParsedTable) and part.name == name for part in tree.walk(node))


def together(parts: list[tree.ParsedSelect | tree.ParsedCompound], tables: Tables) -> Stream:
    with located(parts[-1].at):
        return reduce(Stream.union, map(tables.compile, parts))
