"""Declared state: what follows from fields. A snapshot that does not fit is refused before anything changes."""

from typing import NamedTuple

import numpy as np
import polars as pl
import pytest
from storage.through_bytes import through_bytes

from cedr.columnar.promises import NONE
from cedr.columnar.state import (
    ARRAY,
    ARRAY_PIECES,
    ARRAYS,
    COUNTS,
    DERIVED,
    DICT,
    FLAG,
    FORMAT,
    FRAME,
    FRAME_PIECES,
    LIST,
    MATRIX,
    NUMBER,
    PART,
    PARTS,
    PROMISES,
    TEXT,
    TRANSIENT,
    StateError,
    Stateful,
    array,
    columns,
    compact,
    counted,
    each,
    fields,
    optional,
)


def numbers(*values):
    return np.array(values, dtype=np.int64)


class Pairs(NamedTuple):
    one: np.ndarray
    two: np.ndarray


class Table:
    nbytes = 16

    def __init__(self, n):
        self.content = numbers(n), numbers(n)


class Inner(Stateful):
    state = fields(t=NUMBER)

    def __init__(self, t=0):
        self.t = t


class Base(Stateful):
    state = fields(number=NUMBER, flag=FLAG, text=TEXT, list=LIST, dict=DICT, counts=COUNTS)

    def __init__(self, n):
        self.number, self.flag, self.text, self.list, self.dict, self.counts = n, n > 0, str(n), [n], {"a": n}, {"b": n}


class All(Base):
    """One field of every kind; n fills them with something else."""

    state = fields(
        _array=ARRAY,
        held=counted(array(in_place=True)),
        spare=array(used=lambda owner: owner.number),
        matrix=MATRIX,
        arrays=ARRAYS,
        pairs=columns(Pairs),
        frame=counted(FRAME),
        frames=FRAME_PIECES,
        pieces=ARRAY_PIECES,
        table=compact(2, lambda owner, table: table.content, lambda table, saved: setattr(table, "content", saved)),
        promises=PROMISES,
        part=PART,
        parts=PARTS,
        by_name=each(optional(ARRAY)),
        total=DERIVED,
        cache=TRANSIENT,
    )

    def __init__(self, n=0):
        super().__init__(n)
        self._array, self.held, self.matrix = numbers(n), numbers(n, n), np.full((1, 2), n)
        self.spare = np.arange(9)
        self.arrays, self.pairs = (numbers(n), numbers(n)), Pairs(numbers(n), numbers(n + 1))
        self.frame, self.frames = pl.DataFrame({"k": [n]}), [pl.DataFrame({"k": [n]})] * 2
        self.pieces, self.table, self.promises = [numbers(n), numbers(n)], Table(n), NONE
        self.part, self.parts = Inner(n), [Inner(n), Inner(n + 1)]
        self.by_name = {"x": numbers(n), "y": None}
        self.cache = n
        self.restored()

    def restored(self):
        self.total = int(self._array.sum())


def plain(saved):
    if isinstance(saved, np.ndarray):
        return saved.tolist()
    if isinstance(saved, pl.DataFrame):
        return saved.to_dict(as_series=False)
    if isinstance(saved, dict):
        return {key: plain(value) for key, value in saved.items()}
    return [plain(value) for value in saved] if isinstance(saved, list | tuple) else saved


def test_restored_from_a_snapshot():
    old, new = All(5), All()
    new.restore(through_bytes(old.snapshot()))
    assert plain(new.snapshot()) == plain(old.snapshot())
    assert (new.total, new.cache) == (5, 0)
    assert new.spare.tolist() == [0, 1, 2, 3, 4]


def test_a_snapshot_does_not_change_with_its_object():
    tested = All(5)
    saved = tested.snapshot()
    before = plain(saved)
    tested.held[:], tested.spare[:], tested.part.t = 7, 7, 7
    tested.list.append(7)
    assert plain(saved) == before


def test_size_follows_from_the_fields():
    tested = Inner(3)
    assert tested.state_size() == (0, 0)
    rows, size = All(5).state_size()
    assert rows == 3  # those of `held` and `frame`
    assert size > 8 * 9


@pytest.mark.parametrize("name", [name for name in All().snapshot() if name != FORMAT])
def test_a_wrong_field_is_refused_and_nothing_changes(name):
    tested = All(1)
    before = plain(tested.snapshot())
    with pytest.raises(StateError, match="snapshot"):
        tested.restore({**All(5).snapshot(), name: object()})
    assert plain(tested.snapshot()) == before


@pytest.mark.parametrize("name", [name for name in All().snapshot() if name != FORMAT])
def test_a_missing_field_is_refused(name):
    saved = All(5).snapshot()
    del saved[name]
    with pytest.raises(StateError, match=f"lacks {name}; it is incomplete"):
        All().restore(saved)


def test_another_format_is_refused_with_both():
    class Later(Inner):
        state = fields(seen=LIST)

        def __init__(self):
            super().__init__()
            self.seen = []

    with pytest.raises(StateError, match="it has t: number; expected: t: number; seen: list"):
        Later().restore(Inner(1).snapshot())


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("array", np.array([0.5]), "has array f1 as array, and this query requires array i1"),
        ("matrix", np.zeros((1, 3), dtype=np.int64), "array of 3 columns instead of 2"),
        ("frame", pl.DataFrame({"k": ["x"]}), "has frame with k: String"),
        ("parts", [{}], "1 parts instead of 2"),
        ("arrays", (numbers(1),), "has 1 arrays of int64"),
    ],
)
def test_errors_state_what_was_found(name, value, message):
    with pytest.raises(StateError, match=message):
        All().restore({**All(5).snapshot(), name: value})


def test_two_fields_cannot_share_a_name_in_snapshots():
    with pytest.raises(AssertionError, match="two fields with one name"):
        type("Twice", (Stateful,), {"state": fields(t=NUMBER, _t=NUMBER)})
