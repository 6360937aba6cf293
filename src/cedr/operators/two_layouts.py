"""Snapshots of state that is in arrays or in blocks.

A snapshot has fields as arrays, whatever their layout. An increment (`cedr.columnar.stored`) has blocks in the place of
the fields that are in blocks, so that it writes the rows that changed. Both are read as arrays; what was read from
blocks goes on in blocks, and the next snapshot is an increment of the last.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

from cedr.columnar.blocks import SortedBlocks
from cedr.columnar.increments import BlockColumns, SavedColumns, source_of
from cedr.columnar.state import State, Stateful
from cedr.columnar.stored import is_incremental


class BlockView(NamedTuple):
    """Blocks, and how their rows are the arrays of a field."""

    blocks: SortedBlocks
    columns: BlockColumns

    def saved(self) -> SavedColumns:
        return SavedColumns(self.blocks.increments.save(self.blocks), self.columns)


Views = dict[str, BlockView | list[BlockView]]
"""By the name of a field in snapshots; a list of views for a list of values."""


class TwoLayouts(Stateful, ABC):
    """State that is in arrays or in blocks. A subclass defines the views of its blocks and how it changes the layout.

    Rows of blocks that no longer matter may be in a view: they are dropped by `BlockColumns.above`, or they have no
    effect in the arrays either.
    """

    fields_in_blocks: ClassVar[tuple[str, ...]] = ()
    """The names in snapshots of the fields that blocks hold."""

    @abstractmethod
    def block_views(self) -> Views | None:
        """The views of these fields; None if they are in arrays, nothing if they are always saved as arrays."""

    @abstractmethod
    def fill_arrays(self) -> None:
        """Fill the arrays from the blocks, which stay."""

    @abstractmethod
    def clear_arrays(self) -> None:
        """Undo that."""

    @abstractmethod
    def move_to_blocks(self) -> None:
        """Fill blocks from the arrays."""

    def snapshot(self) -> State:
        views = self.block_views()
        if views is None:
            return super().snapshot()
        if views and is_incremental():
            return super().snapshot() | {name: saved(view) for name, view in views.items()}
        self.fill_arrays()
        state = super().snapshot()
        self.clear_arrays()
        return state

    def restore(self, state: State) -> None:
        """What was saved in blocks goes on in blocks."""
        super().restore(state)
        if self.fields_in_blocks and all(is_from_blocks(state[name]) for name in self.fields_in_blocks):
            self.move_to_blocks()
            for name, view in (self.block_views() or {}).items():
                adopt(view, state[name])


def saved(view: BlockView | list[BlockView]) -> Any:
    return view.saved() if isinstance(view, BlockView) else [one.saved() for one in view]


def is_from_blocks(value: Any) -> bool:
    """Whether the value of a field was read from blocks; of a list whether all of its values were."""
    if type(value) is list:
        return bool(value) and all(map(is_from_blocks, value))
    return source_of(value) is not None


def adopt(view: BlockView | list[BlockView], value: Any) -> None:
    """The content of blocks is stored where it was read from."""
    if isinstance(view, list):
        for one, its_value in zip(view, value, strict=True):
            adopt(one, its_value)
    elif (source := source_of(value)) is not None:
        view.blocks.increments.adopt(source)


def stored_blocks(operator: TwoLayouts) -> Iterator[SortedBlocks]:
    """The blocks that an increment writes."""
    for view in (operator.block_views() or {}).values():
        yield from (one.blocks for one in ([view] if isinstance(view, BlockView) else view))
