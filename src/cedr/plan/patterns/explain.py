"""`explain` of a pattern: its tree, where each condition is checked, and which patterns are computed for others.

UNLESS 5m
  SEQUENCE 12h
    INSTALL x, at entry x.load > 0.9
    SHUTDOWN y
  without RESTART z, only those with z.load > y.load
key: x.Machine_Id, y.Machine_Id, z.Machine_Id, for CorrelationKey(Machine_Id, EQUAL)
"""

from cedr.plan.patterns.keys import Key
from cedr.plan.patterns.parts import PatternPart
from cedr.plan.patterns.sharing import parts_under
from cedr.plan.patterns.tree import Condition, EventType, Pattern, Predicate
from cedr.plan.schema import show_expression
from cedr.temporal.duration import show_duration


def pattern_lines(pattern: Pattern, where: tuple[Condition, ...], key: Key) -> list[str]:
    replaced = {id(c) for c in key.replaced}
    lines = part_lines(parts_under(key, pattern, where), 0)
    lines += [f"of all events: {text(c)}" for c in where if not isinstance(c, Predicate) and id(c) not in replaced]
    return lines + key_lines(pattern, key)


def part_lines(
    part: PatternPart, depth: int, prefix: str = "", forbidden: bool = False, printed: bool = False
) -> list[str]:
    """`printed`: it is a part of a pattern that equals another one, which is printed already."""
    same = [f"same as {short(part.same_as.pattern)}"] if part.same_as and part.leaf < 0 and not printed else []
    printed = printed or bool(same)
    checked = "only those with" if forbidden else "checked there" if printed else "checked here"
    notes = [*same, *(f"at entry {text(p)}" for p in part.at_entry), *(f"{checked} {text(p)}" for p in part.predicates)]
    lines = ["  " * depth + ", ".join([prefix + headline(part.pattern), *notes])]
    for child in part.positive:
        lines += part_lines(child, depth + 1, "", forbidden, printed)
    for child in part.counted:
        lines += part_lines(child, depth + 1, "counted ", forbidden, printed)
    for child in part.negated:
        lines += part_lines(child, depth + 1, "without ", True, printed)
    return lines


def headline(pattern: Pattern) -> str:
    """The operator or event type, its numbers and its variable."""
    scope = [] if pattern.scope is None else [show_duration(pattern.scope)]
    parts = [pattern.keyword or str(pattern), *map(str, pattern.numbers[: len(pattern.numbers) - len(scope)]), *scope]
    if pattern.var and pattern.var != parts[0]:
        parts.append(pattern.var)
    parts += [w for w in (pattern.selection, pattern.consumption) if w not in ("EACH", "REUSE")]
    return " ".join(parts)


def short(pattern: Pattern) -> str:
    """A pattern by its variable, or by those of its parameters."""
    if pattern.var or isinstance(pattern, EventType):
        return pattern.var or str(pattern)
    return f"{pattern.keyword}({', '.join(short(p) for p in (*pattern.positive, *pattern.counted, *pattern.negated))})"


def key_lines(pattern: Pattern, key: Key) -> list[str]:
    """What events are kept and spread by, and the conditions that are kept by that alone."""
    if not key:
        return ["key: none, so all events meet in one shard"]
    names = [leaf.var or leaf.name for leaf in pattern.leaves()]
    columns = zip(*key.attributes, strict=True)
    shown_columns = (" = ".join(f"{name}.{a}" for name, a in zip(names, column, strict=True)) for column in columns)
    return [f"key: {', '.join(shown_columns)}; it replaces {' and '.join(map(text, key.replaced))}"]


def text(condition: Condition) -> str:
    if isinstance(condition, Predicate):
        return condition.text or show_expression(condition.expression)
    return str(condition)
