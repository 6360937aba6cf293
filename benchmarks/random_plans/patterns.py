"""Patterns as data, and as text in the CEDR language.

    {"p": "event", "type": "T0", "var": "x0", "mode": ""}      mode: FIRST, LAST, CONSUME, FIRST CONSUME, ..
    {"p": "sequence", "of": [..], "w": 5}
    {"p": "atleast", "of": [..], "n": 2, "w": 5}
    {"p": "atmost", "of": [..], "n": 2, "w": 5}
    {"p": "unless", "of": [kept, forbidden], "w": 5, "n": None}
    {"p": "not", "of": [kept, forbidden]}
    {"p": "cancel", "of": [kept, forbidden]}

Conditions are ["key", a], ["unique", a], ["fixed", a, value], ["const", x, a, comparison, value] and
["pair", x, a, comparison, y, b]. Outputs are [name, x, a], [name, "Rt"], [name, "COUNT"], [name, "MAX", a].
"""

from collections.abc import Iterator, Mapping
from typing import Any

Pattern = Mapping[str, Any]


def leaves(pattern: Pattern, negated: bool = True) -> Iterator[Pattern]:
    """The events in it, from left to right; without the negated ones if these are not wanted."""
    if pattern["p"] == "event":
        yield pattern
        return
    inner = pattern["of"]
    for child in inner if negated or pattern["p"] not in ("unless", "not", "cancel") else inner[:1]:
        yield from leaves(child, negated)


def pattern_text(pattern: Pattern) -> str:
    if pattern["p"] == "event":
        return " ".join(part for part in (pattern["type"], pattern["var"], pattern["mode"]) if part)
    inner = [pattern_text(child) for child in pattern["of"]]
    match pattern["p"]:
        case "sequence":
            return f"SEQUENCE({', '.join(inner)}, {pattern['w']})"
        case "atleast" if pattern["n"] == len(inner):
            return f"ALL({', '.join(inner)}, {pattern['w']})"
        case "atleast" if pattern["n"] == pattern["w"] == 1:
            return f"ANY({', '.join(inner)})"
        case "atleast" | "atmost":
            return f"{pattern['p'].upper()}({pattern['n']}, {', '.join(inner)}, {pattern['w']})"
        case "unless":
            counted = [str(pattern["n"])] if pattern["n"] else []
            return f"UNLESS({', '.join([*inner, *counted, str(pattern['w'])])})"
        case "not":
            return f"NOT({inner[1]}, {inner[0]})"
        case _:
            return f"CANCEL-WHEN({inner[0]}, {inner[1]})"


def condition_text(condition: list[Any]) -> str:
    match condition:
        case ["key", a]:
            return f"CorrelationKey({a}, EQUAL)"
        case ["unique", a]:
            return f"CorrelationKey({a}, UNIQUE)"
        case ["fixed", a, value]:
            return f"[{a} EQUAL {literal(value)}]"
        case ["const", x, a, comparison, value]:
            return f"{x}.{a} {comparison} {literal(value)}"
        case ["pair", x, a, comparison, y, b]:
            return f"{{{x}.{a} {comparison} {y}.{b}}}"
    raise ValueError(f"no condition {condition}")


def literal(value: Any) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def output_text(output: list[Any]) -> str:
    match output:
        case [name, "COUNT"]:
            return f"COUNT(*) AS {name}"
        case [name, "MAX", a]:
            return f"MAX({a}) AS {name}"
        case [name, x, a]:
            return f"{x}.{a} AS {name}"
        case [name, header]:
            return f"{header} AS {name}"
    raise ValueError(f"no output {output}")


def query_text(node: Mapping[str, Any]) -> str:
    lines = ["EVENT Found", f"WHEN {pattern_text(node['pattern'])}"]
    if node["where"]:
        lines.append("WHERE " + " AND ".join(map(condition_text, node["where"])))
    lines.append("OUTPUT " + ", ".join(map(output_text, node["outputs"])))
    return "\n".join(lines)
