"""Which cases the bars ask for: every twenty plans one over 1,000,000 rows, one over 100,000, two over 30,000, the
others over 10,000; in chunks of 1, 1,000, 50,000 and all."""

from dataclasses import dataclass

PLANS = 1_000
LARGE = 1_000_000


@dataclass(frozen=True)
class Wanted:
    """A case to draw. A source has `rows` rows before copies and corrections."""

    seed: int
    rows: int
    slicing: int | str


def wanted(number: int) -> Wanted:
    turn, place = divmod(number, 20)
    if place == 0:
        return Wanted(number, LARGE, (50_000, 0, 50_000, 50_000, 0)[turn % 5] if turn % 10 else 1_000)
    if place == 1:
        return Wanted(number, 100_000, (50_000, 1_000, 0)[turn % 3])
    if place in (2, 3):
        return Wanted(number, 30_000, (1_000, "mixed")[place % 2])
    if place == 4 and turn % 5 == 0:
        return Wanted(number, 10_000, 1)
    return Wanted(number, 10_000, (1_000, "mixed", 1_000, 0)[place % 4])
