"""The base class of everything with state: snapshot, restore and size from the declared fields."""

from collections.abc import Callable
from typing import Any, ClassVar

from cedr.columnar.state.kinds import Kind
from cedr.temporal.errors import StateError

State = dict[str, Any]
SavedField = tuple[str, str, Kind]
"""Attribute, name in snapshots and kind."""
FORMAT = "format"
"""The key of the names and kinds in a snapshot."""


def fields(**kinds: Kind) -> dict[str, Kind]:
    return kinds


def format_of(saved: tuple[SavedField, ...]) -> str:
    return "; ".join(f"{name}: {kind.name}" for _, name, kind in saved)


class Stateful:
    """An object whose state is declared in `state`."""

    state: ClassVar[dict[str, Kind]] = {}
    """The fields of this class; those of its base classes are added."""

    declared: ClassVar[dict[str, Kind]] = {}
    """The fields of this class and its base classes."""
    _saved: ClassVar[tuple[SavedField, ...]] = ()
    _sized: ClassVar[tuple[tuple[str, Callable[[Any], int]], ...]] = ()
    _counted: ClassVar[tuple[tuple[str, Callable[[Any], int]], ...]] = ()
    _format = ""
    _earlier_format = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.declared = {n: kind for base in reversed(cls.__mro__) for n, kind in vars(base).get("state", {}).items()}
        kinds = cls.declared.items()
        cls._saved = tuple((name, name.lstrip("_"), kind) for name, kind in kinds if kind.saved)
        cls._sized = tuple((name, kind.nbytes) for name, kind in kinds if kind.sized)
        cls._counted = tuple((name, kind.rows) for name, kind in kinds if kind.counted)
        cls._format = format_of(cls._saved)
        cls._earlier_format = format_of(tuple(field for field in cls._saved if not field[2].added_later))
        names = [FORMAT, *(name for _, name, _ in cls._saved)]
        assert len(names) == len({*names}), f"{cls.__name__} declares two fields with one name: {names}"

    # --- size ----------------------------------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        total = 0
        for name, nbytes in self._sized:
            total += nbytes(getattr(self, name))
        return total

    def state_rows(self) -> int:
        total = 0
        for name, rows in self._counted:
            total += rows(getattr(self, name))
        return total

    def state_size(self) -> tuple[int, int]:
        """Rows and bytes held."""
        return self.state_rows(), self.nbytes

    # --- snapshots -----------------------------------------------------------------------------------------------

    def snapshot(self) -> State:
        """Everything needed to continue in another object with the same settings, as plain data."""
        saved = {name: kind.save(getattr(self, attribute), self) for attribute, name, kind in self._saved}
        return {FORMAT: self._format, **saved}

    def restore(self, state: State) -> None:
        """Continue from a snapshot. One that does not fit is a `StateError`, and changes nothing."""
        self.verify(state)
        for attribute, name, kind in self._fields_of(state):
            value = getattr(self, attribute)
            loaded = kind.load(value, state[name])
            if loaded is not value:
                setattr(self, attribute, loaded)
        self.restored()

    def verify(self, state: Any) -> None:
        """Raise a `StateError` if the snapshot does not fit."""
        self.make_room(state)
        if not isinstance(state, dict) or state.get(FORMAT) not in (self._format, self._earlier_format):
            raise StateError(self._other_format(state))
        for attribute, name, kind in self._fields_of(state):
            if name not in state:
                raise StateError(f"the snapshot of {type(self).__name__} lacks {name}; it is incomplete")
            wrong = kind.verify(getattr(self, attribute), state[name])
            if wrong is not None:
                raise StateError(
                    f"the snapshot of {type(self).__name__} has {wrong} as {name}, and this query requires "
                    f"{kind.name}; it was made by another query or by another version of cedr"
                )

    def _fields_of(self, state: State) -> list[SavedField]:
        """The fields that a snapshot has to have."""
        is_earlier = state[FORMAT] != self._format
        return [field for field in self._saved if not (is_earlier and field[2].added_later)]

    def make_room(self, state: Any) -> None:
        """Called first, with a snapshot that is not verified yet: create the parts that it is about."""

    def restored(self) -> None:
        """Called last: rebuild what is DERIVED."""

    def _other_format(self, state: Any) -> str:
        found = state.get(FORMAT, "no declared fields") if isinstance(state, dict) else type(state).__name__
        return (
            f"the snapshot is not one of {type(self).__name__} of this version of cedr, so it cannot be read: "
            f"it has {found}; expected: {self._format}. Start the query with a new checkpoint, or use the version "
            "that wrote it"
        )
