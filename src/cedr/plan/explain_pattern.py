"""`explain` of a pattern: its tree, and of each condition where it is asked.

UNLESS 5m
  SEQUENCE 12h
    INSTALL x, at entry x.load > 0.9
    SHUTDOWN y
  without RESTART z, only those with z.load > y.load
key: x.Machine_Id, y.Machine_Id, z.Machine_Id, for CorrelationKey(Machine_Id, EQUAL)
"""

from cedr.operators.patterns.parts import Part, parts_of
from cedr.operators.patterns.tree import (
    AtLeast,
    AtMost,
    AttributeEqual,
    Condition,
    CorrelationKey,
    EventType,
    Pattern,
    Predicate,
    Sequence,
    Unless,
)
from cedr.plan.patterns import Match, shown
from cedr.plan.schema import show_expression
from cedr.temporal.duration import show_duration


def pattern_lines(node: Match) -> list[str]:
    replaced = {id(c) for c in node.key.replaced}
    asked = tuple(c for c in node.where if isinstance(c, Predicate) and id(c) not in replaced)
    unique = any(isinstance(c, CorrelationKey) and c.mode == "UNIQUE" for c in node.where)
    lines = part_lines(parts_of(node.pattern, asked, unique), 0)
    lines += [f"of all events: {text(c)}" for c in node.where if not isinstance(c, Predicate) and id(c) not in replaced]
    return lines + key_lines(node)


def part_lines(part: Part, depth: int, word: str = "", forbidden: bool = False) -> list[str]:
    asked = "only those with" if forbidden else "asked here"
    notes = [*(f"at entry {text(p)}" for p in part.at_entry), *(f"{asked} {text(p)}" for p in part.asked)]
    lines = ["  " * depth + ", ".join([word + headline(part.pattern), *notes])]
    for child in part.positive:
        lines += part_lines(child, depth + 1, forbidden=forbidden)
    for child in part.counted:
        lines += part_lines(child, depth + 1, "counted ", forbidden)
    for child in part.negated:
        lines += part_lines(child, depth + 1, "without ", forbidden=True)
    return lines


def headline(pattern: Pattern) -> str:
    """The operator or event type, its numbers and its variable."""
    words = [pattern.name if isinstance(pattern, EventType) else pattern.word]
    match pattern:
        case AtLeast(n=n, w=w) | AtMost(n=n, w=w) | Unless(n=int(n), w=w):
            words += [str(n), show_duration(w)]
        case Sequence(w=w) | Unless(w=w):
            words.append(show_duration(w))
    if pattern.var and pattern.var != words[0]:
        words.append(pattern.var)
    words += [w for w in (pattern.selection, pattern.consumption) if w not in ("EACH", "REUSE")]
    return " ".join(words)


def key_lines(node: Match) -> list[str]:
    """What events are kept and spread by, and the conditions that are kept by that alone."""
    if not node.key:
        return ["key: none, so all events meet in one shard"]
    names = [leaf.var or leaf.name for leaf in node.pattern.leaves()]
    columns = zip(*node.key.attributes, strict=True)
    shown_columns = (" = ".join(f"{name}.{a}" for name, a in zip(names, column, strict=True)) for column in columns)
    return [f"key: {', '.join(shown_columns)}; it stands for {' and '.join(map(text, node.key.replaced))}"]


def text(condition: Condition) -> str:
    if isinstance(condition, CorrelationKey | AttributeEqual):
        return shown(condition)
    return condition.text or show_expression(condition.expression)
