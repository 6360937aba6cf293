"""The arguments of a pattern operator, classified: parameters, number, scope. Its node in the plan declares them."""

from collections.abc import Callable
from typing import NamedTuple

from cedr.plan.patterns import tree as patterns
from cedr.syntax import tree
from cedr.syntax.errors import LanguageError, located

Amount = tree.ParsedNumber | tree.ParsedLength
Argument = tree.ParsedPattern | tree.ParsedNumber | tree.ParsedLength


class OperatorSyntax(NamedTuple):
    """How an operator is written."""

    keyword: str
    example: str
    arguments: patterns.OperatorArguments
    make: Callable[..., patterns.Pattern]
    """The node in the plan, from parameters, number, scope, and names."""


def syntax(operator: type[patterns.Pattern]) -> OperatorSyntax:
    return OperatorSyntax(operator.keyword, operator.example, operator.arguments, operator.written)


SHORT_FORMS = (
    OperatorSyntax(
        "ALL", "ALL(A x, B y, 5 minutes)", patterns.OperatorArguments(("positive",)), patterns.AtLeast.all_of
    ),
    OperatorSyntax(
        "ANY", "ANY(A x, B y)", patterns.OperatorArguments(("positive",), scope=False), patterns.AtLeast.any_of
    ),
)
"""The short forms of ATLEAST."""

FORMS = {
    form.keyword: form
    for form in (
        *(syntax(operator) for operator in patterns.OPERATORS if len(operator.arguments.roles) == 1),
        *SHORT_FORMS,
        *(syntax(operator) for operator in patterns.OPERATORS if len(operator.arguments.roles) > 1),
    )
}
"""By keyword: first those that take any number of parameters."""


class OperatorShape(NamedTuple):
    form: OperatorSyntax
    parameters: tuple[tree.ParsedPattern, ...]
    n: int | None
    w: int | None


def shape(node: tree.ParsedPatternOperator) -> OperatorShape:
    form = FORMS[node.keyword]
    arguments = list(node.arguments)
    number = leading_number(form, arguments) if form.arguments.number == "first" else None
    w = scope(form, node, arguments) if form.arguments.scope else None
    if form.arguments.number == "contributor" and arguments and isinstance(arguments[-1], Amount):
        number = whole(arguments.pop(), "the number of a contributor")
    for argument in arguments:
        if isinstance(argument, Amount):
            raise LanguageError(f"{form.keyword} takes no number here; write {form.example}", argument.at)
    parameters = tuple(a for a in arguments if isinstance(a, tree.ParsedPattern))
    with located(node.at):
        form.arguments.check_parameters(form.keyword, form.example, len(parameters))
    return OperatorShape(form, parameters, number, w)


def leading_number(form: OperatorSyntax, arguments: list[Argument]) -> int:
    if not isinstance(arguments[0], Amount):
        raise LanguageError(
            f"{form.keyword} begins with the number of events it counts; write {form.example}", arguments[0].at
        )
    return whole(arguments.pop(0), f"the number {form.keyword} begins with")


def scope(form: OperatorSyntax, node: tree.ParsedPatternOperator, arguments: list[Argument]) -> int:
    if not arguments or not isinstance(arguments[-1], Amount):
        raise LanguageError(f"{form.keyword} has no scope, its maximum duration; write {form.example}", node.at)
    last = arguments.pop()
    return (
        last.value if isinstance(last, tree.ParsedLength) else whole(last, f"the scope of {form.keyword} in chronons")
    )


def whole(amount: Argument, what: str) -> int:
    if not isinstance(amount, tree.ParsedNumber) or not isinstance(amount.value, int):
        raise LanguageError(f"{what} is a whole number", amount.at)
    return amount.value
