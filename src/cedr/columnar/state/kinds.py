"""The kinds of fields that state is made of: how each is saved, verified, restored and measured."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import fields as fields_of_dataclass
from dataclasses import is_dataclass
from inspect import get_annotations
from operator import attrgetter
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.promises import Promises
from cedr.columnar.verified import describe_schema


class Kind(ABC):
    """What a field holds: how it is saved, verified and restored, and how large it is."""

    name = ""
    counted = False
    """Whether its rows are the rows of the state."""
    saved = True
    added_later = False
    """Whether snapshots of earlier versions lack the field; then it is empty."""
    sized = True
    """Whether it holds bytes worth counting."""

    def save(self, value: Any, owner: Any) -> Any:
        """Plain data that later changes of the value do not affect."""
        return value

    @abstractmethod
    def verify(self, value: Any, saved: Any) -> str | None:
        """What is wrong with a saved value, if anything; `value` is the one it will replace."""

    def load(self, value: Any, saved: Any) -> Any:
        """The restored value; parts are restored in place."""
        return saved

    def nbytes(self, value: Any) -> int:
        return int(value.nbytes)

    def rows(self, value: Any) -> int:
        return len(value)


class PlainKind(Kind):
    """A number, text or container; `copied` makes another one with equal content."""

    sized = False

    def __init__(self, name: str, types: tuple[type, ...], copied: Callable[[Any], Any]) -> None:
        self.name, self.types, self.copied = name, types, copied

    def save(self, value: Any, owner: Any) -> Any:
        return self.copied(value)

    def verify(self, value: Any, saved: Any) -> str | None:
        return None if type(saved) in self.types else type(saved).__name__

    def load(self, value: Any, saved: Any) -> Any:
        return self.copied(saved)


class CountsKind(PlainKind):
    """Saved as a dict."""

    def save(self, value: Any, owner: Any) -> Any:
        return dict(value)


class ArrayKind(Kind):
    """An array of whole numbers, truth values or hashes. `in_place`: it is changed in place, so it is copied.

    `used`: it has spare room; of the owner, the number of rows in use, and only these are saved.
    """

    def __init__(self, dtype: str, ndim: int, in_place: bool = False, used: Callable[[Any], int] | None = None) -> None:
        self.dtype, self.ndim, self.in_place, self.used = dtype, ndim, in_place or used is not None, used
        self.name = f"array {dtype}{ndim}"

    def save(self, value: Any, owner: Any) -> Any:
        part = value if self.used is None else value[: self.used(owner)]
        return part.copy() if self.in_place else part

    def verify(self, value: Any, saved: Any) -> str | None:
        if not isinstance(saved, np.ndarray):
            return type(saved).__name__
        if saved.dtype.kind != self.dtype or saved.ndim != self.ndim:
            return f"array {saved.dtype.kind}{saved.ndim}"
        same_width = self.ndim == 1 or self.in_place or value.shape[1:] == saved.shape[1:] or not len(value)
        return None if same_width else f"array of {saved.shape[1]} columns instead of {value.shape[1]}"

    def load(self, value: Any, saved: Any) -> Any:
        return saved.copy() if self.in_place else saved


class ArraysKind(Kind):
    """A tuple of arrays, one row for all of them at each position."""

    name = "arrays"

    def save(self, value: Any, owner: Any) -> Any:
        return tuple(value)

    def verify(self, value: Any, saved: Any) -> str | None:
        if not isinstance(saved, tuple) or not all(isinstance(a, np.ndarray) for a in saved):
            return type(saved).__name__
        if len(saved) != len(value) or any(a.dtype.kind != b.dtype.kind for a, b in zip(saved, value, strict=True)):
            return f"{len(saved)} arrays of {', '.join(str(a.dtype) for a in saved)}"
        return None

    def nbytes(self, value: Any) -> int:
        return sum([a.nbytes for a in value])

    def rows(self, value: Any) -> int:
        return len(value[0])


class ColumnsKind(Kind):
    """A named tuple or data class of arrays and numbers, saved by column."""

    def __init__(self, cls: type) -> None:
        self.cls: Any = cls
        self.names: tuple[str, ...] = names_of(cls)
        types = {name: kind for base in reversed(cls.__mro__) for name, kind in annotations_of(base).items()}
        self.name = f"{cls.__name__}({', '.join(f'{name}: {types[name]}' for name in self.names)})"
        self._values = attrgetter(*self.names)

    def save(self, value: Any, owner: Any) -> Any:
        return dict(zip(self.names, self._values(value), strict=True))

    def verify(self, value: Any, saved: Any) -> str | None:
        if not isinstance(saved, dict) or tuple(saved) != self.names:
            return f"{type(saved).__name__} of {', '.join(map(str, saved)) if isinstance(saved, dict) else 'values'}"
        now = value if isinstance(value, self.cls) else None
        for name, column in saved.items():
            if not isinstance(column, np.ndarray | int | np.integer | np.bool_):
                return f"{name} of type {type(column).__name__}"
            if now is not None and isinstance(getattr(now, name), np.ndarray) != isinstance(column, np.ndarray):
                return f"{name} of type {type(column).__name__}"
        return None

    def load(self, value: Any, saved: Any) -> Any:
        return self.cls(**saved)

    def nbytes(self, value: Any) -> int:
        return sum([column.nbytes for column in self._values(value) if isinstance(column, np.ndarray)])

    def rows(self, value: Any) -> int:
        return len(getattr(value, self.names[0]))


class FrameKind(Kind):
    """Saved in one piece."""

    name = "frame"

    def save(self, value: Any, owner: Any) -> Any:
        return value if set(value.n_chunks("all")) <= {1} else value.rechunk()  # the same object is not written again

    def verify(self, value: Any, saved: Any) -> str | None:
        if not isinstance(saved, pl.DataFrame):
            return type(saved).__name__
        return None if saved.schema == value.schema else f"frame with {describe_schema(saved.schema)}"

    def nbytes(self, value: Any) -> int:
        return int(value.estimated_size())

    def rows(self, value: Any) -> int:
        return int(value.height)


class PiecesKind(Kind):
    """A list of frames or arrays that are parts of one, saved as one; None if there is none."""

    def __init__(self, name: str, type_: type, joined: Callable[[Any], Any], nbytes: Callable[[Any], int]) -> None:
        self.name, self.type, self.joined, self._nbytes = f"{name} in pieces", type_, joined, nbytes

    def save(self, value: Any, owner: Any) -> Any:
        return self.joined(value) if value else None

    def verify(self, value: Any, saved: Any) -> str | None:
        return None if saved is None or isinstance(saved, self.type) else type(saved).__name__

    def load(self, value: Any, saved: Any) -> Any:
        return [] if saved is None else [saved]

    def nbytes(self, value: Any) -> int:
        return sum([self._nbytes(piece) for piece in value])

    def rows(self, value: Any) -> int:
        return sum(map(len, value))


class CompactKind(Kind):
    """A store with a layout of its own, such as a hash table, saved as a number of arrays of one length.

    `save(owner, store)` returns the arrays, `load(store, arrays)` fills the store with them.
    """

    def __init__(self, width: int, save: Callable[[Any, Any], Any], load: Callable[[Any, Any], None]) -> None:
        self.name, self.width, self._save, self._load = f"{width} columns", width, save, load

    def save(self, value: Any, owner: Any) -> Any:
        return tuple(self._save(owner, value))

    def verify(self, value: Any, saved: Any) -> str | None:
        if not isinstance(saved, tuple) or len(saved) != self.width:
            return type(saved).__name__
        right = all(isinstance(a, np.ndarray) and a.dtype.kind == "i" and len(a) == len(saved[0]) for a in saved)
        return None if right else "columns of different lengths or of other types"

    def load(self, value: Any, saved: Any) -> Any:
        self._load(value, saved)
        return value


class PromisesKind(Kind):
    """A set of promises, which never changes."""

    name = "promises"

    def verify(self, value: Any, saved: Any) -> str | None:
        return None if isinstance(saved, Promises) else type(saved).__name__


class PartKind(Kind):
    """An object with state of its own, restored in place; None stays None."""

    name = "part"

    def save(self, value: Any, owner: Any) -> Any:
        return None if value is None else value.snapshot()

    def verify(self, value: Any, saved: Any) -> str | None:
        if value is None or saved is None:
            return None if value is saved else "nothing" if saved is None else "a part that is not used here"
        value.verify(saved)
        return None

    def load(self, value: Any, saved: Any) -> Any:
        if value is not None:
            value.restore(saved)
        return value

    def nbytes(self, value: Any) -> int:
        return 0 if value is None else int(value.nbytes)

    def rows(self, value: Any) -> int:
        return 0 if value is None else int(value.state_size()[0])


class RebuiltPartKind(PartKind):
    """A part that follows from other fields, and is rebuilt from them. What earlier versions saved of it is ignored."""

    def save(self, value: Any, owner: Any) -> Any:
        return None

    def verify(self, value: Any, saved: Any) -> str | None:
        return None if saved is None else super().verify(value, saved)

    def load(self, value: Any, saved: Any) -> Any:
        return value


class PartsKind(Kind):
    """A list or dict of parts, restored in place: their number and keys are settings."""

    name = "parts"

    def save(self, value: Any, owner: Any) -> Any:
        return (
            {key: part.snapshot() for key, part in value.items()}
            if isinstance(value, dict)
            else [part.snapshot() for part in value]
        )

    def verify(self, value: Any, saved: Any) -> str | None:
        if isinstance(value, dict):
            if not isinstance(saved, dict) or list(saved) != list(value):
                return f"parts {', '.join(map(str, saved))} instead of {', '.join(map(str, value))}"
        elif not isinstance(saved, list) or len(saved) != len(value):
            found = len(saved) if isinstance(saved, list) else type(saved).__name__
            return f"{found} parts instead of {len(value)}"
        for part, its_state in zip(items_of(value), items_of(saved), strict=True):
            part.verify(its_state)
        return None

    def load(self, value: Any, saved: Any) -> Any:
        for part, its_state in zip(items_of(value), items_of(saved), strict=True):
            part.restore(its_state)
        return value

    def nbytes(self, value: Any) -> int:
        return sum([part.nbytes for part in items_of(value)])

    def rows(self, value: Any) -> int:
        return sum([part.state_size()[0] for part in items_of(value)])


class EachKind(Kind):
    """A list or dict of any length with values of one kind."""

    def __init__(self, kind: Kind) -> None:
        self.kind, self.name, self.sized = kind, f"each {kind.name}", kind.sized

    def save(self, value: Any, owner: Any) -> Any:
        if isinstance(value, dict):
            return {key: self.kind.save(v, owner) for key, v in value.items()}
        return [self.kind.save(v, owner) for v in value]

    def verify(self, value: Any, saved: Any) -> str | None:
        if not isinstance(saved, dict if isinstance(value, dict) else list):
            return type(saved).__name__
        now = next(iter(items_of(value)), None)
        return next((wrong for v in items_of(saved) if (wrong := self.kind.verify(now, v))), None)

    def load(self, value: Any, saved: Any) -> Any:
        if isinstance(saved, dict):
            return {key: self.kind.load(None, v) for key, v in saved.items()}
        return [self.kind.load(None, v) for v in saved]

    def nbytes(self, value: Any) -> int:
        return sum([self.kind.nbytes(v) for v in items_of(value)])

    def rows(self, value: Any) -> int:
        return sum([self.kind.rows(v) for v in items_of(value)])


class OptionalKind(Kind):
    """Nothing, or a value of a kind."""

    def __init__(self, kind: Kind) -> None:
        self.kind, self.name, self.sized = kind, f"{kind.name} or nothing", kind.sized

    def save(self, value: Any, owner: Any) -> Any:
        return None if value is None else self.kind.save(value, owner)

    def verify(self, value: Any, saved: Any) -> str | None:
        return None if saved is None else self.kind.verify(value, saved)

    def load(self, value: Any, saved: Any) -> Any:
        return None if saved is None else self.kind.load(value, saved)

    def nbytes(self, value: Any) -> int:
        return 0 if value is None else self.kind.nbytes(value)


class UnsavedKind(Kind):
    saved = sized = False

    def verify(self, value: Any, saved: Any) -> str | None:
        return "a field that is never saved"


class BlocksKind(UnsavedKind):
    """Another layout of saved fields, for example in blocks, or nothing. While there is one, it holds the rows."""

    sized = True

    def nbytes(self, value: Any) -> int:
        return 0 if value is None else int(value.nbytes)

    def rows(self, value: Any) -> int:
        return 0 if value is None else int(value.rows)


NUMBER = PlainKind("number", (int, float), lambda value: value if type(value) in (int, float) else int(value))
FLAG = PlainKind("flag", (bool,), bool)
TEXT = PlainKind("text", (str,), str)
LIST = PlainKind("list", (list,), list)
"""A list of plain values."""
DICT = PlainKind("dict", (dict,), dict)
"""A dict of plain values."""
COUNTS = CountsKind("counts", (dict,), Counter)
ARRAY = ArrayKind("i", 1)
"""Whole numbers. The array is replaced, never changed in place."""
MATRIX = ArrayKind("i", 2)
ARRAYS = ArraysKind()
FRAME = FrameKind()
FRAME_PIECES = PiecesKind(
    "frame", pl.DataFrame, lambda pieces: pl.concat(pieces, rechunk=True), lambda piece: int(piece.estimated_size())
)
ARRAY_PIECES = PiecesKind("array", np.ndarray, np.concatenate, attrgetter("nbytes"))
PROMISES = PromisesKind()
PART = PartKind()
REBUILT_PART = RebuiltPartKind()
PARTS = PartsKind()
DERIVED = UnsavedKind()
"""Computed from other fields; `restored` rebuilds it."""
BLOCKS = BlocksKind()
"""Holds what saved fields will hold when a snapshot is made; `restored` drops it."""
TRANSIENT = UnsavedKind()
"""Of one chunk only, or without effect on the output."""


def array(
    dtype: str = "i", ndim: int = 1, *, in_place: bool = False, used: Callable[[Any], int] | None = None
) -> ArrayKind:
    return ArrayKind(dtype, ndim, in_place, used)


def compact(width: int, save: Callable[[Any, Any], Any], load: Callable[[Any, Any], None]) -> CompactKind:
    return CompactKind(width, save, load)


def columns(cls: type) -> ColumnsKind:
    return ColumnsKind(cls)


def each(kind: Kind) -> EachKind:
    return EachKind(kind)


def optional(kind: Kind) -> OptionalKind:
    return OptionalKind(kind)


def counted(kind: Kind) -> Kind:
    """The same kind; its rows are rows of the state."""
    marked = copy(kind)
    marked.counted = True
    return marked


def added_later(kind: Kind) -> Kind:
    """The same kind of a field that a snapshot of an earlier version lacks. The value of a new object stays then."""
    marked = copy(kind)
    marked.added_later = True
    return marked


def elsewhere(kind: Kind) -> Kind:
    """The same kind of a field that is computed when it is saved, from one that is measured instead of it."""
    marked = copy(kind)
    marked.sized = False
    return marked


def items_of(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def names_of(cls: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields_of_dataclass(cls)) if is_dataclass(cls) else tuple(cls._fields)


def annotations_of(cls: type) -> dict[str, str]:
    return {name: getattr(kind, "__name__", str(kind)) for name, kind in get_annotations(cls).items()}
