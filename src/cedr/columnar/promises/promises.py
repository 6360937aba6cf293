"""A set of promises, as a function from payloads to times."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.promises.others import held, promised, undominated
from cedr.columnar.promises.points import (
    BEFORE,
    Indexes,
    Names,
    Points,
    held_points,
    later_of,
    looked_up,
    met_points,
    needed,
)
from cedr.columnar.promises.steps import NO_STEPS, Steps, held_steps, merged, pointwise
from cedr.columnar.promises.values import value_of, whole
from cedr.columnar.times import Times
from cedr.temporal.punctuation import Constant, Pattern, Punctuation, Range, combine, simple
from cedr.temporal.time import INF, MIN

FEW = 64
"""Maximum number of steps that are also combined, one by one, with promises about several attributes."""


@dataclass(frozen=True)
class Promises:
    points: Points = field(default_factory=dict)
    steps: Mapping[str, Steps] = field(default_factory=dict)
    others: tuple[Punctuation, ...] = ()
    kinds: Mapping[str, pl.DataType] = field(default_factory=dict)
    """The types of the attributes in `steps`, to convert them back to values."""
    _indexes: Indexes = field(default_factory=dict, init=False, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_indexes": {}}

    def __len__(self) -> int:
        """The number of stored entries."""
        stored = sum(table.height for table in self.points.values()) + sum(len(s.low) for s in self.steps.values())
        return stored + len(self.others)

    @property
    def nbytes(self) -> int:
        tables = sum(int(table.estimated_size()) for table in self.points.values())
        return tables + sum(a.nbytes for s in self.steps.values() for a in s) + 200 * len(self.others)

    @property
    def schemes(self) -> set[Names]:
        """The sets of attributes it is about."""
        single = {(name,) for name in self.steps}
        return {*self.points, *single, *(p.attributes for p in self.others)}

    def of(self, rows: pl.DataFrame) -> Times:
        """The time promised for each row; MIN if nothing is promised.

        A row that lacks an attribute represents all payloads that agree with it in the others, so only promises about
        the columns of the rows count.
        """
        points = looked_up(self.points, rows, self._indexes)
        return np.maximum(np.maximum(points, self._steps_of(rows)), promised(self.others, rows))

    def _steps_of(self, rows: pl.DataFrame) -> Times:
        found = np.full(rows.height, MIN, dtype=np.int64)
        for name, steps in self.steps.items():
            if name in rows.columns:
                np.maximum(found, steps.of(rows[name], self.kinds[name]), out=found)
        return found

    def __iter__(self) -> Iterator[Punctuation]:
        """The punctuations one by one; slow, for inspection."""
        for names, table in self.points.items():
            for *values, before in table.select(*names, BEFORE).iter_rows():
                yield Punctuation({n: Constant(v) for n, v in zip(names, values, strict=True)}, before)
        for name, steps in self.steps.items():
            for low, last, before in zip(*(a.tolist() for a in steps), strict=True):
                if pattern := self._range(name, low, last):
                    yield Punctuation({name: pattern}, before)
        yield from self.others

    def _range(self, name: str, low: int, last: int) -> Pattern | None:
        first = None if low == MIN else value_of(low, self.kinds[name])
        if first is None and low != MIN:
            return None  # beyond the largest value of the type
        return simple(Range(first, None if last == INF else value_of(last, self.kinds[name])))

    # --- two sets ----------------------------------------------------------------------------------------------------

    def plus(self, other: "Promises") -> "Promises":
        """Both promises hold: for each payload the later time."""
        if not len(other):
            return self
        if not len(self):
            return other
        points = {
            names: later_of(*(t for t in (self.points.get(names), other.points.get(names)) if t is not None))
            for names in {**self.points, **other.points}
        }
        steps = {
            name: pointwise(np.maximum, self.steps.get(name, NO_STEPS), other.steps.get(name, NO_STEPS))
            for name in {**self.steps, **other.steps}
        }
        return Promises(
            points, steps, undominated((*self.others, *other.others)), {**self.kinds, **other.kinds}
        )._without_repeats()

    def _without_repeats(self) -> "Promises":
        """Without points that promises about fewer attributes cover."""
        if all(len(names) == 1 for names in self.points):
            return self
        points = needed(self.points, {names: self._steps_of(table) for names, table in self.points.items()})
        return self._with(points, self.steps, self.others)

    def combined(self, cti: int, other: "Promises", other_cti: int) -> "Promises":
        """What two inputs both promise, given their CTIs: for each payload the earlier of their times.

        Each promise of one input is combined with those of the other about the same attributes or fewer.
        """
        points: dict[Names, pl.DataFrame] = {}
        for mine, theirs, their_cti in ((self, other, other_cti), (other, self, cti)):
            for names, table in mine.points.items():
                met = met_points(table, theirs.of, their_cti)
                points[names] = later_of(points[names], met) if names in points else met
        outside = (cti, other_cti)
        steps = {
            name: pointwise(np.minimum, self.steps.get(name, NO_STEPS), other.steps.get(name, NO_STEPS), outside)
            for name in {**self.steps, **other.steps}
        }
        met_others = [
            combine(p, q)
            for mine, theirs, their_cti in ((self, other, other_cti), (other, self, cti))
            for p in mine.others
            for q in (*theirs.others, Punctuation({}, their_cti), *theirs._few_steps(p.attributes))
        ]
        least = min(cti, other_cti)
        kinds = {**self.kinds, **other.kinds}
        return Promises(kinds=kinds)._with(points, steps, undominated(met_others), after=least)

    def limited(self, of: Callable[[pl.DataFrame], Times], steps: Mapping[str, Steps], cti: int) -> "Promises":
        """The promises with times no later than `of` for points and `steps` for ranges, or the CTI if that is later;
        for others the CTI alone."""
        points = {names: met_points(table, of, cti) for names, table in self.points.items()}
        met = {name: pointwise(np.minimum, s, steps.get(name, NO_STEPS), (MIN, cti)) for name, s in self.steps.items()}
        return self._with(points, met, (Punctuation(p.patterns, min(p.before, cti)) for p in self.others))

    def about_more(self, other: "Promises") -> "Promises":
        """The part that must be combined with another set one by one, as attributes or form of the promises differ."""
        alike = {*other.points, *((name,) for name in other.steps)}
        fewer = other.schemes
        points = {
            names: table
            for names, table in self.points.items()
            if any(set(s) <= set(names) and (s != names or s not in alike) for s in fewer)
        }
        return Promises(points, self.steps if other.others else {}, self.others, self.kinds)

    def beyond(self, other: "Promises") -> "Promises":
        """The part that reaches further than another set about the same payloads."""
        if not len(self) or not len(other):
            return self
        points = {
            names: table.filter(pl.Series(table[BEFORE].to_numpy() > other.of(table.drop(BEFORE))))
            for names, table in self.points.items()
        }
        steps = {name: pointwise(raised, s, other.steps.get(name, NO_STEPS)) for name, s in self.steps.items()}
        return self._with(points, steps, (p for p in self.others if not any(q.covers(p) for q in other.others)))

    def _few_steps(self, names: Names) -> Iterator[Punctuation]:
        few = {n: s for n, s in self.steps.items() if n in names and len(s.low) <= FEW}
        return iter(Promises(steps=few, kinds=self.kinds))

    # --- parts and images --------------------------------------------------------------------------------------------

    def after(self, cti: int) -> "Promises":
        """The promises that the CTI does not imply."""
        if not len(self) or cti == MIN:
            return self
        return self._with(self.points, self.steps, self.others, after=cti)

    def about(self, columns: Iterable[str]) -> "Promises":
        """Only promises about these columns and no others."""
        return self.renamed({name: (name,) for name in columns})

    def renamed(self, names: Mapping[str, Iterable[str]]) -> "Promises":
        """The promises with attributes renamed, without those about other attributes. An attribute may get several
        new names."""
        chosen = {old: tuple(new) for old, new in names.items()}
        points: dict[Names, pl.DataFrame] = {}
        for old, table in self.points.items():
            for renamed in images(old, chosen):
                key = tuple(sorted(renamed))
                image = table.rename(dict(zip(old, renamed, strict=True))).select(*key, BEFORE)
                points[key] = later_of(points[key], image) if key in points else image
        steps: dict[str, Steps] = {}
        for name, s in self.steps.items():
            for new in chosen.get(name, ()):
                steps[new] = pointwise(np.maximum, steps[new], s) if new in steps else s
        kinds = {new: self.kinds[name] for name in self.steps for new in chosen.get(name, ())}
        others = [
            Punctuation({new: p[old] for old, new in zip(p.attributes, image, strict=True)}, p.before)
            for p in self.others
            for image in images(p.attributes, chosen)
        ]
        return Promises(points, steps, tuple(others), kinds)

    def moved(self, move: Callable[[Times], Times]) -> "Promises":
        """The promises with times changed by `move`, which must not decrease; MIN and INF stay."""

        def times(before: Times) -> Times:
            finite = (before != INF) & (before != MIN)
            return np.where(finite, move(np.where(finite, before, 0)), before)

        points = {
            names: t.with_columns(pl.Series(BEFORE, times(t[BEFORE].to_numpy()))) for names, t in self.points.items()
        }
        steps = {name: merged(Steps(s.low, s.last, times(s.before))) for name, s in self.steps.items()}
        others = [Punctuation(p.patterns, int(times(np.array([p.before]))[0])) for p in self.others]
        return self._with(points, steps, others)

    def held_back(self, rows: pl.DataFrame, until: Times) -> "Promises":
        """The promises with times no later than `until` of any row that may agree with the payload.

        `rows` are keys of state. A row holds back each promise that it matches in the columns both have.
        """
        if not rows.height or not len(self):
            return self
        points = {names: held_points(t, rows, until) for names, t in self.points.items()}
        steps = {name: self._held_steps(name, s, rows, until) for name, s in self.steps.items()}
        return self._with(points, steps, (held(p, rows, until) for p in self.others))

    def _held_steps(self, name: str, steps: Steps, rows: pl.DataFrame, until: Times) -> Steps:
        if name not in rows.columns:
            return merged(Steps(steps.low, steps.last, np.minimum(steps.before, until.min())))
        values, there = whole(rows[name], self.kinds[name])
        return held_steps(steps, values[there], until[there])

    def _with(
        self, points: Points, steps: Mapping[str, Steps], others: Iterable[Punctuation], after: int = MIN
    ) -> "Promises":
        """Another set about the same attributes, restricted to times after `after`."""
        later = {name: Steps(*(a[s.before > after] for a in s)) for name, s in steps.items()}
        return Promises(
            {names: kept for names, t in points.items() if (kept := t.filter(pl.col(BEFORE) > after)).height},
            {name: s for name, s in later.items() if len(s.low)},
            tuple(p for p in others if p.before > after),
            self.kinds,
        )


def images(names: Names, chosen: Mapping[str, Names]) -> Iterator[Names]:
    """All combinations of different new names of these attributes."""
    return (image for image in product(*(chosen.get(n, ()) for n in names)) if len(set(image)) == len(image))


def raised(new: Times, old: Times) -> Times:
    return np.where(new > old, new, MIN)


NONE = Promises()
