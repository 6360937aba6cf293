"""WHEN: from the syntax of a pattern to the pattern, with its variables and the streams it reads.

A variable is positive (it has a value in each match it takes part in), negated (it has a value only inside its own
parameter) or counted (one of many). The variable of an event type without one is the name of the type.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

from cedr.language import tree
from cedr.language.errors import LanguageError, listed
from cedr.language.names import Names, Origin
from cedr.language.shape import OperatorShape, shape
from cedr.language.show import name as show_name
from cedr.plan.node import Node
from cedr.plan.patterns import tree as patterns
from cedr.plan.schema import Schema

Role = Literal["positive", "negated", "counted"]

CHOOSING = ("SEQUENCE", "ATLEAST", "ALL", "ANY")
"""Operators whose parameters can be selected and consumed."""


@dataclass(frozen=True)
class Variable:
    name: str
    role: Role
    bound_to: str
    """The event type or operator that it names."""
    around: str
    """The operator it is a parameter of."""
    at: tree.TextPosition
    schema: Schema | None = None
    """The types of its attributes; None for an operator, which has a header only."""
    attributes: tuple[str, ...] = ()
    """Its attributes as `x.*` lists them."""


@dataclass
class Bound:
    """A pattern under construction, with its variables and inputs."""

    names: Names
    members: list[Node] = field(default_factory=list)
    variables: dict[str, Variable] = field(default_factory=dict)
    _implicit: dict[int, str] = field(default_factory=dict)

    def bind(self, node: tree.ParsedPattern) -> patterns.Pattern:
        self._implicit = implicit_names(node)
        check_not_chosen(node, "the whole pattern")
        return self._pattern(node, "positive", "")

    @property
    def leaves(self) -> list[Variable]:
        """The variables of events, in the order of the query."""
        return [v for v in self.variables.values() if v.schema is not None]

    def _pattern(self, node: tree.ParsedPattern, role: Role, around: str) -> patterns.Pattern:
        if isinstance(node, tree.ParsedEventType):
            return self._event_type(node, role, around)
        assert isinstance(node, tree.ParsedPatternOperator)
        form = shape(node)
        made = self._operator(node, form, role)
        check_rules(made, node, form)
        if node.var is not None:
            self._add(Variable(node.var, role, node.keyword, around, node.at))
        return made

    def _event_type(self, node: tree.ParsedEventType, role: Role, around: str) -> patterns.EventType:
        origin = self.names.find(node.name, name_place(node))
        name = node.var or self._implicit[id(node)]
        self._add(
            Variable(name, role, node.name, around, node.at, origin.stream.schema, tuple(origin.attributes)),
        )
        return patterns.EventType(node.name, self._port(origin), origin.where, var=name, **chosen(node))

    def _port(self, origin: Origin) -> int:
        """The input with these events; types of one feed share one input."""
        plan = origin.stream.plan
        for port, member in enumerate(self.members):
            if member is plan:
                return port
        self.members.append(plan)
        return len(self.members) - 1

    def _add(self, variable: Variable) -> None:
        if "." in variable.name:
            raise LanguageError(
                f"a variable cannot have a dot in its name; {variable.name!r} would mean an attribute", variable.at
            )
        if variable.name in self.variables:
            other = self.variables[variable.name]
            raise LanguageError(
                f"variable {variable.name!r} is used for {other.bound_to} and {variable.bound_to}; each needs its own",
                variable.at,
            )
        self.variables[variable.name] = variable

    def _operator(self, node: tree.ParsedPatternOperator, form: OperatorShape, role: Role) -> patterns.Pattern:
        keyword = node.keyword
        for parameter in form.parameters:
            if keyword not in CHOOSING:
                check_not_chosen(parameter, f"a parameter of {keyword}")
        if keyword in ("UNLESS", "NOT", "CANCEL-WHEN"):
            return self._negation(node, form, role)
        inner = "counted" if keyword == "ATMOST" and role == "positive" else role
        parameters = tuple(self._pattern(p, inner, keyword) for p in form.parameters)
        naming = {"var": node.var, **chosen(node)}
        match keyword:
            case "SEQUENCE":
                return patterns.Sequence(parameters, form.w, **naming)
            case "ATMOST":
                return patterns.AtMost(form.n or 0, parameters, form.w, **naming)
            case "ATLEAST":
                return patterns.AtLeast(form.n or 0, parameters, form.w, **naming)
        return patterns.AtLeast(len(parameters) if keyword == "ALL" else 1, parameters, form.w, **naming)

    def _negation(self, node: tree.ParsedPatternOperator, form: OperatorShape, role: Role) -> patterns.Pattern:
        naming = {"var": node.var, **chosen(node)}
        if node.keyword == "NOT":
            forbidden, scope = form.parameters
            kept = self._pattern(scope, role, node.keyword)
            return patterns.Not(kept, self._pattern(forbidden, "negated", node.keyword), **naming)
        kept = self._pattern(form.parameters[0], role, node.keyword)
        forbidden_pattern = self._pattern(form.parameters[1], "negated", node.keyword)
        if node.keyword == "CANCEL-WHEN":
            return patterns.CancelWhen(kept, forbidden_pattern, **naming)
        return patterns.Unless(kept, forbidden_pattern, form.w, form.n, **naming)


# --- names for events that have none -------------------------------------------------------------------------------


def implicit_names(pattern: tree.ParsedPattern) -> dict[int, str]:
    """The name of the event type, with a number if it occurs more than once."""
    leaves = [p for p in walk(pattern) if isinstance(p, tree.ParsedEventType)]
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


def name_place(node: tree.ParsedEventType) -> tree.TextPosition:
    """The place of the event type, without its variable."""
    return node.at._replace(end_line=node.at.line, end_column=node.at.column + len(show_name(node.name)))


def walk(pattern: tree.ParsedPattern) -> list[tree.ParsedPattern]:
    inner = pattern.arguments if isinstance(pattern, tree.ParsedPatternOperator) else ()
    return [pattern, *(p for argument in inner if isinstance(argument, tree.ParsedPattern) for p in walk(argument))]


# --- checks --------------------------------------------------------------------------------------------------------


def chosen(node: tree.ParsedPattern) -> dict[str, Any]:
    return {"selection": node.selection or "EACH", "consumption": node.consumption or "REUSE"}


def check_not_chosen(node: tree.ParsedPattern, where: str) -> None:
    modes = [mode for mode in (node.selection, node.consumption) if mode not in (None, "EACH", "REUSE")]
    if modes:
        raise LanguageError(
            f"{' '.join(map(str, modes))} is not allowed for {where}; selection and consumption apply to parameters "
            f"of {listed(CHOOSING, 'and')}",
            node.at,
        )


def check_rules(made: patterns.Pattern, node: tree.ParsedPatternOperator, form: OperatorShape) -> None:
    """The rules of an operator, which its node in the plan states; an error gets its position in the text."""
    try:
        made.check()
        made.check_useful()
    except patterns.PatternError as error:
        raise LanguageError(str(error), position(error, made, node, form)) from None


def position(
    error: patterns.PatternError, made: patterns.Pattern, node: tree.ParsedPatternOperator, form: OperatorShape
) -> tree.TextPosition:
    if error.about == "n":
        return next(a.at for a in node.arguments if isinstance(a, tree.ParsedNumber))
    parameters = (*made.positive, *made.counted, *made.negated)
    written = form.parameters[::-1] if node.keyword == "NOT" else form.parameters
    return next((w.at for p, w in zip(parameters, written, strict=True) if p is error.about), node.at)
