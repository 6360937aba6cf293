"""WHEN: the syntax of a pattern to the pattern itself, with its variables and the streams it reads.

A variable is positive (it has a value in each match it takes part in), negated (known only while it is looked for) or
counted (one of many). An event type without a variable of its own goes by its name.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

from cedr.language import tree
from cedr.language.errors import LanguageError, listed
from cedr.language.names import Names, Origin
from cedr.language.shape import FORMS, Shape, shape
from cedr.language.show import name as show_name
from cedr.plan import patterns
from cedr.plan.node import Node
from cedr.plan.schema import Schema

Role = Literal["positive", "negated", "counted"]

CHOOSING = ("SEQUENCE", "ATLEAST", "ALL", "ANY")
"""Operators whose parameters can be selected and consumed."""


@dataclass(frozen=True)
class Variable:
    name: str
    role: Role
    word: str
    """The event type or operator it stands for."""
    around: str
    """The operator it is a parameter of."""
    at: tree.Place
    schema: Schema | None = None
    """The types of its attributes; None for an operator, which has a header only."""
    attributes: tuple[str, ...] = ()
    """Its attributes as `x.*` lists them."""


@dataclass
class Bound:
    """A pattern with all that belongs to it, while it is put together."""

    names: Names
    members: list[Node] = field(default_factory=list)
    variables: dict[str, Variable] = field(default_factory=dict)
    _implicit: dict[int, str] = field(default_factory=dict)

    def bind(self, node: tree.Pattern) -> patterns.Pattern:
        self._implicit = implicit_names(node)
        check_not_chosen(node, "the whole pattern")
        return self._pattern(node, "positive", "")

    @property
    def leaves(self) -> list[Variable]:
        """The variables of events, in the order of the query."""
        return [v for v in self.variables.values() if v.schema is not None]

    def _pattern(self, node: tree.Pattern, role: Role, around: str) -> patterns.Pattern:
        if isinstance(node, tree.EventType):
            return self._event_type(node, role, around)
        assert isinstance(node, tree.Operator)
        made = self._operator(node, shape(node), role)
        if node.var is not None:
            self._add(Variable(node.var, role, node.word, around, node.at))
        return made

    def _event_type(self, node: tree.EventType, role: Role, around: str) -> patterns.EventType:
        origin = self.names.find(node.name, name_place(node))
        name = node.var or self._implicit[id(node)]
        self._add(
            Variable(name, role, node.name, around, node.at, origin.stream.schema, tuple(origin.attributes)),
        )
        return patterns.EventType(node.name, self._port(origin), origin.where, var=name, **chosen(node))

    def _port(self, origin: Origin) -> int:
        """The input that brings these events; types of one feed share theirs."""
        plan = origin.stream.plan
        for port, member in enumerate(self.members):
            if member is plan:
                return port
        self.members.append(plan)
        return len(self.members) - 1

    def _add(self, variable: Variable) -> None:
        if "." in variable.name:
            raise LanguageError(
                f"a variable has no dot in its name; {variable.name!r} would be read as an attribute", variable.at
            )
        if variable.name in self.variables:
            other = self.variables[variable.name]
            raise LanguageError(
                f"variable {variable.name!r} is given to {other.word} and to {variable.word}; each needs its own",
                variable.at,
            )
        self.variables[variable.name] = variable

    def _operator(self, node: tree.Operator, form: Shape, role: Role) -> patterns.Pattern:
        word = node.word
        for parameter in form.parameters:
            if word not in CHOOSING:
                check_not_chosen(parameter, f"a parameter of {word}")
        if word in ("UNLESS", "NOT", "CANCEL-WHEN"):
            return self._negation(node, form, role)
        inner = "counted" if word == "ATMOST" and role == "positive" else role
        parameters = tuple(self._pattern(p, inner, word) for p in form.parameters)
        naming = {"var": node.var, **chosen(node)}
        match word:
            case "SEQUENCE":
                return patterns.Sequence(parameters, form.w, **naming)
            case "ATMOST":
                return patterns.AtMost(check_count(node, form, 2**31), parameters, form.w, **naming)
            case "ATLEAST":
                return patterns.AtLeast(check_count(node, form, len(parameters)), parameters, form.w, **naming)
        return patterns.AtLeast(len(parameters) if word == "ALL" else 1, parameters, form.w, **naming)

    def _negation(self, node: tree.Operator, form: Shape, role: Role) -> patterns.Pattern:
        naming = {"var": node.var, **chosen(node)}
        if node.word == "NOT":
            forbidden, scope = form.parameters
            check_is_sequence(scope)
            kept = self._pattern(scope, role, node.word)
            return patterns.Not(kept, self._pattern(forbidden, "negated", node.word), **naming)
        kept = self._pattern(form.parameters[0], role, node.word)
        forbidden_pattern = self._pattern(form.parameters[1], "negated", node.word)
        if node.word == "CANCEL-WHEN":
            check_takes_time(form.parameters[0])
            return patterns.CancelWhen(kept, forbidden_pattern, **naming)
        if form.n is not None and not 1 <= form.n <= kept.contributors:
            raise LanguageError(
                f"UNLESS counts its scope from contributor {form.n} of its first parameter, which is sure to have "
                f"{kept.contributors or 'none: it is an event type, so leave the number out'}",
                node.arguments[2].at,
            )
        return patterns.Unless(kept, forbidden_pattern, form.w, form.n, **naming)


# --- names for events that have none -------------------------------------------------------------------------------


def implicit_names(pattern: tree.Pattern) -> dict[int, str]:
    """The event type's name; when it stands more than once, with a number."""
    leaves = [p for p in walk(pattern) if isinstance(p, tree.EventType)]
    taken = {p.var for p in walk(pattern) if p.var}
    uses = Counter(p.name for p in leaves if p.var is None)
    names: dict[int, str] = {}
    for leaf in leaves:
        if leaf.var is not None:
            continue
        plain = leaf.name.replace(".", "_")
        name, number = plain, 1
        while name in taken or (uses[leaf.name] > 1 and name == plain):
            name, number = f"{plain}_{number}", number + 1
        names[id(leaf)] = name
        taken.add(name)
    return names


def name_place(node: tree.EventType) -> tree.Place:
    """Where the event type stands, without its variable."""
    return node.at._replace(end_line=node.at.line, end_column=node.at.column + len(show_name(node.name)))


def walk(pattern: tree.Pattern) -> list[tree.Pattern]:
    inner = pattern.arguments if isinstance(pattern, tree.Operator) else ()
    return [pattern, *(p for argument in inner if isinstance(argument, tree.Pattern) for p in walk(argument))]


# --- what cannot be meant ------------------------------------------------------------------------------------------


def chosen(node: tree.Pattern) -> dict[str, Any]:
    return {"selection": node.selection or "EACH", "consumption": node.consumption or "REUSE"}


def check_not_chosen(node: tree.Pattern, where: str) -> None:
    words = [w for w in (node.selection, node.consumption) if w not in (None, "EACH", "REUSE")]
    if words:
        raise LanguageError(
            f"{' '.join(map(str, words))} cannot be said of {where}; selection and consumption go with the parameters "
            f"of {listed(CHOOSING, 'and')}",
            node.at,
        )


def check_count(node: tree.Operator, form: Shape, most: int) -> int:
    n = form.n or 0
    if not 1 <= n <= most:
        limit = "at least 1" if most > len(form.parameters) else f"from 1 to {most}, the number of its parameters"
        raise LanguageError(f"{node.word} counts {n} events; the number must be {limit}", node.arguments[0].at)
    return n


def check_takes_time(kept: tree.Pattern) -> None:
    if isinstance(kept, tree.EventType):
        raise LanguageError(
            f"CANCEL-WHEN stops a detection on its way, but {kept.name} is a single event, which has none; write "
            f"{FORMS['CANCEL-WHEN']}",
            kept.at,
        )


def check_is_sequence(scope: tree.Pattern) -> None:
    if isinstance(scope, tree.Operator):
        word = scope.word
    else:
        assert isinstance(scope, tree.EventType)
        word = f"the event type {scope.name}"
    if word not in CHOOSING:
        raise LanguageError(
            f"NOT looks between the first and the last event of a sequence, but its second parameter is {word}; write "
            f"{FORMS['NOT']}, or use UNLESS or CANCEL-WHEN",
            scope.at,
        )
