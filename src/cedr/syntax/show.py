"""Syntax tree to text, which `parse` turns into the same tree.

Parentheses appear only where the tree requires them, and names are quoted only where they would be keywords.
"""

import re
from functools import cache, singledispatch
from typing import Any

from cedr.syntax import tree
from cedr.syntax.automata import tree as regular
from cedr.syntax.automata.quantifiers import SIGNS
from cedr.syntax.parse import parser

UNITS = {"w": "week", "d": "day", "h": "hour", "m": "minute", "s": "second", "ms": "ms", "us": "us"}

# precedence, from the weakest
OR, AND, NOT, COMPARISON, SUM, PRODUCT, UNARY, ATOM = range(8)
BINARY = {**dict.fromkeys(("+", "-", "||"), SUM), **dict.fromkeys(("*", "/", "%"), PRODUCT)}


@singledispatch
def show(node: tree.Syntax) -> str:
    raise TypeError(f"no text for {type(node).__name__}")


# --- names ---------------------------------------------------------------------------------------------------------


@cache
def patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Regular expressions of names and of keywords."""
    terminals = {t.name: t for t in parser().terminals}
    keywords = "|".join(f"(?:{t.pattern.to_regexp()})" for t in terminals.values() if t.priority == 2)
    return re.compile(terminals["NAME"].pattern.to_regexp()), re.compile(keywords)


def name(text: str) -> str:
    plain, keywords = patterns()
    if plain.fullmatch(text) and not keywords.fullmatch(text):
        return text
    return '"{}"'.format(text.replace('"', '""'))


def function(text: str) -> str:
    """Only reserved keywords cannot be functions."""
    return text.upper() if patterns()[0].fullmatch(text) else name(text)


def names(texts: tuple[str, ...]) -> str:
    return ", ".join(map(name, texts))


# --- statements ----------------------------------------------------------------------------------------------------


@show.register
def _(node: tree.ParsedScript) -> str:
    return ";\n\n".join(map(show, node.statements))


@show.register
def _(node: tree.ParsedStatement) -> str:
    lines = [f"EVENT {name(node.name)}", show(node.body)]
    lines += [show(node.consistency)] if node.consistency else []
    lines += [f"LATENCY {node.latency}"] if node.latency else []
    return "\n".join(lines)


@show.register
def _(node: tree.ParsedPatternQuery) -> str:
    lines = [f"WHEN {show(node.pattern)}"]
    lines += [f"WHERE {show(node.where)}"] if node.where else []
    lines += [f"OUTPUT {', '.join(map(show, node.output))}"] if node.output else []
    lines += [show(node.slice)] if node.slice else []
    return "\n".join(lines)


@show.register
def _(node: tree.ParsedConsistency) -> str:
    if node.level:
        return f"CONSISTENCY {node.level}"
    block = f" BLOCK {show(node.block)}" if node.block else ""
    remember = f" REMEMBER {show(node.remember)}" if node.remember else ""
    return f"CONSISTENCY{block}{remember}"


@show.register
def _(node: tree.ParsedSlice) -> str:
    sides = (("@", node.occurrence), ("#", node.valid))
    return " ".join(f"{sign} {show(interval)}" for sign, interval in sides if interval)


@show.register
def _(node: tree.ParsedInterval) -> str:
    return f"[{show(node.start) if node.start else ''}, {show(node.end) if node.end else ''})"


# --- patterns ------------------------------------------------------------------------------------------------------


@show.register
def _(node: tree.ParsedEventType) -> str:
    return name(node.name) + parameter(node)


@show.register
def _(node: tree.ParsedPatternOperator) -> str:
    return f"{node.keyword}({', '.join(map(show, node.arguments))}){parameter(node)}"


def parameter(node: tree.ParsedPattern) -> str:
    texts = [f"AS {name(node.var)}" if node.var else "", node.selection or "", node.consumption or ""]
    return "".join(f" {text}" for text in texts if text)


# --- regular expressions -------------------------------------------------------------------------------------------


@show.register
def _(node: tree.ParsedRegexQuery) -> str:
    window = f", {show(node.window)}" if node.window else ""
    alias = f" AS {name(node.var)}" if node.var else ""
    lines = [f"WHEN REGEX({show(node.expression)}{window}){alias}"]
    lines += [show(node.over)] if node.over else []
    lines += [f"REGISTER {', '.join(map(show, node.registers))}"] if node.registers else []
    lines += map(show, node.defines)
    lines += [f"WHERE {show(node.where)}"] if node.where else []
    lines += [f"OUTPUT {', '.join(map(show, node.output))}"] if node.output else []
    lines += [show(node.slice)] if node.slice else []
    return "\n".join(lines)


@show.register
def _(node: tree.ParsedOver) -> str:
    by = f" BY {names(node.by)}" if node.by else ""
    return f"OVER {name(node.name)}{by}{f' ORDER BY {name(node.order)}' if node.order else ''}"


@show.register
def _(node: tree.ParsedDefine) -> str:
    condition = f" AS {show(node.condition)}" if node.condition else ""
    sets = f" SET {', '.join(map(show, node.sets))}" if node.sets else ""
    return f"DEFINE {name(node.name)}{condition}{sets}"


@show.register
def _(node: tree.ParsedAssignment) -> str:
    return f"{name(node.name)} = {show(node.value)}"


@show.register
def _(node: regular.RegexStep) -> str:
    return name(node.name)


@show.register
def _(node: regular.RegexSequence) -> str:
    return " ".join(grouped(part, regular.RegexSequence | regular.RegexChoice) for part in node.parts)


@show.register
def _(node: regular.RegexChoice) -> str:
    return " | ".join(grouped(part, regular.RegexChoice) for part in node.parts)


@show.register
def _(node: regular.RegexRepeat) -> str:
    part = grouped(node.part, regular.RegexSequence | regular.RegexChoice)
    signs = {times: sign for sign, times in SIGNS.items()}
    if (sign := signs.get((node.least, node.most))) is not None:
        return f"{part}{sign}"
    most = "" if node.most is None else node.most
    return f"{part}{{{node.least}}}" if node.most == node.least else f"{part}{{{node.least},{most}}}"


def grouped(node: regular.Regex, weaker: Any) -> str:
    return f"({show(node)})" if isinstance(node, weaker) else show(node)


# --- tables --------------------------------------------------------------------------------------------------------


@show.register
def _(node: tree.ParsedTableQuery) -> str:
    return f"{show(node.table)}\n{show(node.slice)}" if node.slice else show(node.table)


@show.register
def _(node: tree.ParsedLoopQuery) -> str:
    lines = ["RECURSIVE", show(node.table), *([show(node.slice)] if node.slice else [])]
    return "\n".join(lines)


@show.register
def _(node: tree.ParsedCompound) -> str:
    return f"{show(node.left)}\n{node.keyword}\n{show(node.right)}"


@show.register
def _(node: tree.ParsedSelect) -> str:
    lines = [f"SELECT {'DISTINCT ' if node.distinct else ''}{', '.join(map(show, node.items))}"]
    lines += [f"FROM {show(node.table)}", *map(show, node.joins)]
    lines += [f"WHERE {show(node.where)}"] if node.where else []
    lines += [f"GROUP BY {', '.join(map(show, node.group_by))}"] if node.group_by else []
    lines += [f"HAVING {show(node.having)}"] if node.having else []
    return "\n".join(lines)


@show.register
def _(node: tree.ParsedItem) -> str:
    return show(node.value) + (f" AS {name(node.alias)}" if node.alias else "")


@show.register
def _(node: tree.ParsedTable) -> str:
    alias = f" AS {name(node.alias)}" if node.alias else ""
    return f"{name(node.name)}{alias}{' ' + show(node.window) if node.window else ''}"


@show.register
def _(node: tree.ParsedWindow) -> str:
    every = f" EVERY {show(node.every)}" if node.every else ""
    by = f" BY {names(node.by)}" if node.by else ""
    zone = f" {show(node.zone)}" if node.zone else ""
    return f"{node.keyword} {show(node.length)}{every}{by}{zone}"


@show.register
def _(node: tree.ParsedMonths) -> str:
    return f"{node.count} {node.unit}s"


@show.register
def _(node: tree.ParsedZone) -> str:
    offset = f" OFFSET {show(node.offset)}" if node.offset else ""
    return f"ZONE {show(tree.ParsedText(node.name))}{offset}"


@show.register
def _(node: tree.ParsedJoin) -> str:
    return f"{node.how} JOIN {show(node.table)} ON {show(node.on)}"


# --- scalar expressions --------------------------------------------------------------------------------------------


def strength(node: tree.ParsedScalar) -> int:
    match node:
        case tree.ParsedOr():
            return OR
        case tree.ParsedAnd():
            return AND
        case tree.ParsedNot():
            return NOT
        case tree.ParsedIsNull() | tree.ParsedBetween() | tree.ParsedIn() | tree.ParsedLike():
            return COMPARISON
        case tree.ParsedBinary():
            return BINARY.get(node.sign, COMPARISON)
        case tree.ParsedMinus():
            return UNARY
    return ATOM


def inside(node: tree.ParsedScalar, least: int) -> str:
    """The expression, in parentheses if its precedence is lower than its place requires."""
    return show(node) if strength(node) >= least else f"({show(node)})"


def negated(node: tree.ParsedIsNull | tree.ParsedBetween | tree.ParsedIn | tree.ParsedLike) -> str:
    return "NOT " if node.negated else ""


@show.register
def _(node: tree.ParsedOr) -> str:
    return " OR ".join(inside(o, AND) for o in node.operands)


@show.register
def _(node: tree.ParsedAnd) -> str:
    return " AND ".join(inside(o, NOT) for o in node.operands)


@show.register
def _(node: tree.ParsedNot) -> str:
    return f"NOT {inside(node.operand, NOT)}"


@show.register
def _(node: tree.ParsedBinary) -> str:
    own = BINARY.get(node.sign, COMPARISON)
    left = SUM if own == COMPARISON else own
    return f"{inside(node.left, left)} {node.sign} {inside(node.right, own + 1)}"


@show.register
def _(node: tree.ParsedMinus) -> str:
    return f"-{inside(node.operand, ATOM)}"  # two signs in a row would begin a comment


@show.register
def _(node: tree.ParsedIsNull) -> str:
    return f"{inside(node.operand, SUM)} IS {negated(node)}NULL"


@show.register
def _(node: tree.ParsedBetween) -> str:
    operand, low, high = (inside(part, SUM) for part in (node.operand, node.low, node.high))
    return f"{operand} {negated(node)}BETWEEN {low} AND {high}"


@show.register
def _(node: tree.ParsedIn) -> str:
    return f"{inside(node.operand, SUM)} {negated(node)}IN ({', '.join(map(show, node.items))})"


@show.register
def _(node: tree.ParsedLike) -> str:
    return f"{inside(node.operand, SUM)} {negated(node)}LIKE {quoted(node.pattern)}"


@show.register
def _(node: tree.ParsedCase) -> str:
    subject = f" {show(node.subject)}" if node.subject else ""
    whens = "".join(f" WHEN {show(w.condition)} THEN {show(w.value)}" for w in node.whens)
    return f"CASE{subject}{whens}{' ELSE ' + show(node.otherwise) if node.otherwise else ''} END"


@show.register
def _(node: tree.ParsedCast) -> str:
    return f"CAST({show(node.operand)} AS {name(node.type)})"


@show.register
def _(node: tree.ParsedCall) -> str:
    return f"{function(node.name)}({', '.join(map(show, node.arguments))})"


@show.register
def _(node: tree.ParsedCorrelationKey) -> str:
    return f"CorrelationKey({name(node.attribute)}, {node.mode})"


@show.register
def _(node: tree.ParsedAttributeEqual) -> str:
    return f"[{name(node.attribute)} EQUAL {show(node.value)}]"


@show.register
def _(node: tree.ParsedColumn) -> str:
    return f"{name(node.variable)}.{name(node.name)}" if node.variable else name(node.name)


@show.register
def _(node: tree.ParsedStar) -> str:
    return f"{name(node.variable)}.*" if node.variable else "*"


@show.register
def _(node: tree.ParsedNumber) -> str:
    return node.text


@show.register
def _(node: tree.ParsedLength) -> str:
    return " ".join(length(number, unit) for number, unit in node.parts)


def length(number: str, unit: str) -> str:
    text = UNITS[unit]
    return f"{number} {text}{'' if number == '1' or text == unit else 's'}"


@show.register
def _(node: tree.ParsedText) -> str:
    return quoted(node.value)


@show.register
def _(node: tree.ParsedTimestamp) -> str:
    return f"TIMESTAMP {quoted(node.text)}"


@show.register
def _(node: tree.ParsedTruth) -> str:
    return "TRUE" if node.value else "FALSE"


@show.register
def _(node: tree.ParsedNull) -> str:
    return "NULL"


@show.register
def _(node: tree.ParsedInfinity) -> str:
    return "INF"


def quoted(text: str) -> str:
    return "'{}'".format(text.replace("'", "''"))
