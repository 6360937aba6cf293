"""What `--only` chooses: contestants, questions or both, by their names with commas between."""

from cedr.temporal.errors import QueryError
from peers.contestants import ALL, LIMIT, Contestant
from peers.questions import GROUPS, QUESTIONS, Question

Groups = dict[str, tuple[Question, ...]]


def chosen(only: str) -> tuple[tuple[Contestant, ...], Groups]:
    """All of a kind of which none is named. polars takes part always, as its answer is the one to compare with."""
    names = {name.strip() for name in only.split(",") if name.strip()}
    known = {who.name for who in ALL}
    if unknown := sorted(names - known - QUESTIONS.keys()):
        there = ", ".join([*(who.name for who in ALL), *QUESTIONS])
        raise QueryError(f"--only {only}: nothing is called {unknown[0]!r}; there are: {there}")
    contestants = tuple(who for who in ALL if who.name in names or who is LIMIT) if names & known else ALL
    if not names - known:
        return contestants, GROUPS
    asked = {title: tuple(q for q in questions if q.name in names) for title, questions in GROUPS.items()}
    return contestants, {title: questions for title, questions in asked.items() if questions}
