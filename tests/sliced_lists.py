"""Random punctuated sliced lists, everything that may still follow them, and the laws of stream iterators.

The laws are about every list L that obeys what was promised. Here L runs through all single rows of a small domain and
some longer lists. The domain has a value more than punctuations can name, so that none of them is about everything
unless it promises that, and a value below all that are in the streams, so that anything may still come first.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product, takewhile

from hypothesis import strategies as st

from cedr import testing
from cedr.reference.punctuated import grammatical
from cedr.temporal.punctuation import ANY, OneOf, Punctuation, Range, puncts, set_nomatch_ts, tups
from cedr.temporal.row import Row
from cedr.temporal.slices import prefix

LEAST, NAMED, FRESH = 0, (1, 2), 9


def rows(names: Sequence[str], values: Sequence[int]) -> list[Row]:
    return [Row(dict(zip(names, chosen, strict=True))) for chosen in product(values, repeat=len(names))]


def patterns() -> st.SearchStrategy:
    """No range without an upper end: two of them could be about everything together."""
    value = st.sampled_from(NAMED)
    return st.one_of(
        st.just(ANY),
        value.map(lambda v: OneOf([v])),
        st.builds(Range, st.one_of(st.none(), value), value),
        st.lists(value, min_size=1, unique=True).map(OneOf),
    )


@st.composite
def lists(draw, names: Sequence[str], about: Sequence[str] | None = None, size: int = 6) -> list:
    """Rows and punctuations, of which rows keep what was promised. `about`: what punctuations may be about."""
    result: list = []
    for _ in range(draw(st.integers(0, size))):
        allowed = set_nomatch_ts(rows(names, NAMED), puncts(result))
        if allowed and draw(st.integers(0, 2)):
            result.append(draw(st.sampled_from(allowed)))
        else:
            result.append(Punctuation({name: draw(patterns()) for name in about or names}))
    return result


@st.composite
def sliced(draw, names: Sequence[str], about: Sequence[str] | None = None) -> list[list]:
    return draw(testing.slicings(draw(lists(names, about))))


@st.composite
def sliced_pairs(draw, left: Sequence[str], right: Sequence[str]) -> tuple[list[list], list[list]]:
    """Two sliced lists of as many slices."""
    one, two = draw(sliced(left)), draw(sliced(right))
    size = max(len(one), len(two))
    return [*one, *([[]] * (size - len(one)))], [*two, *([[]] * (size - len(two)))]


def follow_ups(seen: Sequence, names: Sequence[str]) -> list[list[Row]]:
    """Lists L that obey the punctuations seen: none, each row alone, each row twice, and all rows."""
    allowed = set_nomatch_ts(rows(names, (LEAST, *NAMED, FRESH)), puncts(seen))
    return [[], *([t] for t in allowed), *([t, t] for t in allowed), allowed]


# --- the laws --------------------------------------------------------------------------------------------------------

Table = Callable[..., list[Row]]


def check_faithful(outputs: Sequence[list], inputs: Sequence[list[list]], names: Sequence, table: Table) -> None:
    """Safe and complete after each slice. `outputs` has as many slices per slice of input as there are inputs."""
    for i in range(len(inputs[0]) + 1):
        emitted = Counter(tups(prefix(outputs, i * len(inputs))))
        seen = [prefix(slices, i) for slices in inputs]
        certain = None
        for answer in answers(seen, names, table):
            assert emitted <= Counter(answer), (
                f"emitted {emitted - Counter(answer)} after slice {i}, which may turn out wrong"
            )
            certain = Counter(answer) if certain is None else certain & Counter(answer)
        assert not (certain or Counter()) - emitted, f"kept back after slice {i} what is certain"


def check_faithful_in_order(outputs: Sequence[list], slices: list[list], names: Sequence[str], table: Table) -> None:
    """As `check_faithful`, where the order of the answer counts: the longest certain prefix is emitted."""
    for i in range(len(slices) + 1):
        emitted = tups(prefix(outputs, i))
        possible = answers([prefix(slices, i)], [names], table)
        for answer in possible:
            assert emitted == answer[: len(emitted)], f"emitted {emitted} after slice {i}, but {answer} is possible"
        certain = len(list(takewhile(lambda column: len(set(column)) == 1, zip(*possible, strict=False))))
        assert len(emitted) >= certain, f"kept back after slice {i} what is certain"


def answers(seen: Sequence[list], names: Sequence[Sequence[str]], table: Table) -> list[list[Row]]:
    """Answers that are still possible: one input goes on alone, or all do in the same way."""
    choices = [follow_ups(s, n) for s, n in zip(seen, names, strict=True)]
    alone = [
        [more if port == other else [] for other in range(len(seen))]
        for port, lists in enumerate(choices)
        for more in lists
    ]
    together = [list(lists) for lists in zip(*choices, strict=False)] + [[lists[-1] for lists in choices]]
    return [table(*([*tups(s), *more] for s, more in zip(seen, chosen, strict=True))) for chosen in alone + together]


def check_proper(outputs: Sequence[list]) -> None:
    assert grammatical(prefix(outputs, len(outputs)))
