"""From the text of a regular expression and its steps to the automaton; errors are displayed in the text."""

from collections.abc import Mapping

from cedr.plan.automata.steps import AutomatonStep
from cedr.syntax.automata import tree
from cedr.syntax.automata.glushkov import Positions, positions_of
from cedr.syntax.automata.parse import parse_regex
from cedr.syntax.errors import LanguageError, did_you_mean, listed
from cedr.syntax.tree import walk


def compiled(text: str, steps: Mapping[str, AutomatonStep]) -> tuple[Positions, tuple[tuple[str, AutomatonStep], ...]]:
    """The automaton, and the steps it uses in the order in which they are written."""
    expression = parse_regex(text)
    try:
        used = {part.name: step_of(part, steps) for part in steps_in(expression)}
        if unused := [name for name in steps if name not in used]:
            raise LanguageError(f"step {unused[0]!r} is given, but the expression has no such step", expression.at)
        return positions_of(expression), tuple(used.items())
    except LanguageError as e:
        raise e.within(text) from None


def steps_in(expression: tree.Regex) -> list[tree.RegexStep]:
    """All occurrences of steps."""
    return [part for part in walk(expression) if isinstance(part, tree.RegexStep)]


def step_of(part: tree.RegexStep, steps: Mapping[str, AutomatonStep]) -> AutomatonStep:
    if part.name in steps:
        return steps[part.name]
    available = f"; the steps are {listed(steps, 'and')}" if steps else "; pass it as a keyword argument"
    raise LanguageError(f"there is no step {part.name!r}{did_you_mean(part.name, steps) or available}", part.at)
