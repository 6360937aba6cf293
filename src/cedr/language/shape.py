"""The arguments of a pattern operator, classified and checked: parameters, number, scope."""

from dataclasses import dataclass

from cedr.language import tree
from cedr.language.errors import LanguageError
from cedr.plan.patterns import tree as patterns

Amount = tree.ParsedNumber | tree.ParsedLength

FORMS = {
    **{made.keyword: made.example for made in patterns.OPERATORS},
    "ALL": "ALL(A x, B y, 5 minutes)",
    "ANY": "ANY(A x, B y)",
}
COUNTING = ("ATLEAST", "ATMOST")
WITHOUT_SCOPE = ("ANY", "NOT", "CANCEL-WHEN")
TWO_PARAMETERS = ("UNLESS", "NOT", "CANCEL-WHEN")


@dataclass(frozen=True)
class OperatorShape:
    parameters: tuple[tree.ParsedPattern, ...]
    n: int | None
    w: int


def shape(node: tree.ParsedPatternOperator) -> OperatorShape:
    arguments = list(node.arguments)
    number = leading_number(node, arguments) if node.keyword in COUNTING else None
    w = 1 if node.keyword in WITHOUT_SCOPE else scope(node, arguments)
    if node.keyword == "UNLESS" and arguments and isinstance(arguments[-1], Amount):
        number = whole(arguments.pop(), "the number of a contributor")
    for argument in arguments:
        if isinstance(argument, Amount):
            raise LanguageError(f"{node.keyword} takes no number here; write {FORMS[node.keyword]}", argument.at)
    parameters = tuple(a for a in arguments if isinstance(a, tree.ParsedPattern))
    check_parameters(node, parameters)
    return OperatorShape(parameters, number, w)


def leading_number(
    node: tree.ParsedPatternOperator, arguments: list[tree.ParsedPattern | tree.ParsedNumber | tree.ParsedLength]
) -> int:
    if not isinstance(arguments[0], Amount):
        raise LanguageError(
            f"{node.keyword} begins with the number of events it counts; write {FORMS[node.keyword]}", arguments[0].at
        )
    return whole(arguments.pop(0), f"the number {node.keyword} begins with")


def scope(
    node: tree.ParsedPatternOperator, arguments: list[tree.ParsedPattern | tree.ParsedNumber | tree.ParsedLength]
) -> int:
    if not arguments or not isinstance(arguments[-1], Amount):
        raise LanguageError(f"{node.keyword} has no scope, its maximum duration; write {FORMS[node.keyword]}", node.at)
    last = arguments.pop()
    assert isinstance(last, Amount)
    w = last.value if isinstance(last, tree.ParsedLength) else whole(last, f"the scope of {node.keyword} in chronons")
    if w < 1:
        raise LanguageError(f"the scope of {node.keyword} is empty; it must be at least one chronon", last.at)
    return w


def whole(amount: tree.ParsedPattern | tree.ParsedNumber | tree.ParsedLength, what: str) -> int:
    if not isinstance(amount, tree.ParsedNumber) or not isinstance(amount.value, int):
        raise LanguageError(f"{what} is a whole number", amount.at)
    return amount.value


def check_parameters(node: tree.ParsedPatternOperator, parameters: tuple[tree.ParsedPattern, ...]) -> None:
    if not parameters:
        raise LanguageError(f"{node.keyword} names no event type; write {FORMS[node.keyword]}", node.at)
    if node.keyword in TWO_PARAMETERS and len(parameters) != 2:
        raise LanguageError(
            f"{node.keyword} takes two parameters, not {len(parameters)}; write {FORMS[node.keyword]}", node.at
        )
