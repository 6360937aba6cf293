"""WHEN: from the syntax of a pattern to the pattern, with its variables and the streams it reads.

The plan states the rules of patterns; here an error gets its position in the text. The variable of an event type
without one is the name of the type.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from cedr.language.names import Names, Origin
from cedr.plan.node import Node
from cedr.plan.patterns import tree as patterns
from cedr.plan.patterns.rules import check_pattern
from cedr.plan.schema import Schema
from cedr.syntax import tree
from cedr.syntax.errors import LanguageError
from cedr.syntax.shape import shape
from cedr.syntax.show import name as show_name


@dataclass(frozen=True)
class Variable:
    name: str
    bound_to: str
    """The event type or operator that it names."""
    schema: Schema | None = None
    """The types of its attributes; None for an operator, which has a header only."""
    attributes: tuple[str, ...] = ()
    """Its attributes as `x.*` lists them."""


@dataclass
class Bound:
    """A pattern with its variables and inputs."""

    names: Names
    members: list[Node] = field(default_factory=list)
    variables: dict[str, Variable] = field(default_factory=dict)
    pattern: patterns.Pattern = field(init=False)
    _implicit: dict[int, str] = field(default_factory=dict)
    _written: dict[int, tree.ParsedPattern] = field(default_factory=dict)
    """The syntax of each pattern, by its id."""

    def bind(self, node: tree.ParsedPattern) -> patterns.Pattern:
        self._implicit = implicit_names(node)
        self.pattern = self._pattern(node)
        try:
            check_pattern(self.pattern)
            for operator in self.pattern.walk():
                operator.check_useful()
        except patterns.PatternError as error:
            raise LanguageError(str(error), self._position(error) or node.at) from None
        return self.pattern

    @property
    def leaves(self) -> list[Variable]:
        """The variables of events, in the order of the query."""
        return [v for v in self.variables.values() if v.schema is not None]

    @property
    def schemas(self) -> list[Schema]:
        return [member.schema for member in self.members]

    def _pattern(self, node: tree.ParsedPattern) -> patterns.Pattern:
        made = self._event_type(node) if isinstance(node, tree.ParsedEventType) else self._operator(node)
        self._written[id(made)] = node
        return made

    def _event_type(self, node: tree.ParsedEventType) -> patterns.EventType:
        origin = self.names.find(node.name, name_place(node))
        name = node.var or self._implicit[id(node)]
        self.variables[name] = Variable(name, node.name, origin.stream.schema, tuple(origin.attributes))
        return patterns.EventType(node.name, self._port(origin), origin.where, var=name, **chosen(node))

    def _operator(self, node: tree.ParsedPattern) -> patterns.Pattern:
        assert isinstance(node, tree.ParsedPatternOperator)
        form, parameters, n, w = shape(node)
        roles = form.arguments.roles if len(form.arguments.roles) > 1 else form.arguments.roles * len(parameters)
        made: dict[int, patterns.Pattern] = {}
        for place in sorted(range(len(parameters)), key=lambda place: patterns.ROLES.index(roles[place])):
            made[place] = self._pattern(parameters[place])
        if node.var is not None:
            self.variables[node.var] = Variable(node.var, node.keyword)
        in_order = tuple(made[place] for place in range(len(parameters)))
        return form.make(in_order, n, w, var=node.var, **chosen(node))

    def _port(self, origin: Origin) -> int:
        """The input with these events; types of one feed share one input."""
        plan = origin.stream.plan
        for port, member in enumerate(self.members):
            if member is plan:
                return port
        self.members.append(plan)
        return len(self.members) - 1

    def _position(self, error: patterns.PatternError) -> tree.TextPosition | None:
        node = self._written.get(id(error.about))
        if node is None:
            return None
        if error.argument is None or not isinstance(node, tree.ParsedPatternOperator):
            return node.at
        amounts = [a.at for a in node.arguments if not isinstance(a, tree.ParsedPattern)]
        return amounts[0 if error.argument == "n" else -1]


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


def chosen(node: tree.ParsedPattern) -> dict[str, Any]:
    return {"selection": node.selection or "EACH", "consumption": node.consumption or "REUSE"}
