"""Cells: ranges of the hash of keys, each with a state of its own. A shard works on one or more of them.

At the first start every shard has one cell, an equal part of the hash. Another number of shards moves whole cells to
other shards; where cells are too large for that, they are split, and their state with them (`rescale`).

    2 shards    |     0     |     1     |
    5 shards    | 2  | 3  |4 |5 | 6  | 7  |     0 and 1 are split where the shards begin; the third shard has 4 and 5
    3 shards    | 2  | 3  |4 |5 | 6  | 7  |     two cells each

Cells of each stage have numbers of their own, which are never used again: they name the folder of the state, the
origin of packets and the files of a table. A stage whose state cannot be split keeps its cells.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from cedr.columnar.sharding import Shards, hashes_of, shards_of
from cedr.storage.folder import Folder

SPACE = 2**32
"""A cell is a range of the upper half of the hash."""
UNEVEN = 1.25
"""How much more than its share of the hash a shard may have before cells are split."""
LAYOUT = "shards-"
"""The files that record another number of shards: shards-1, shards-2, ... The newest counts."""


class Cell(NamedTuple):
    """The hashes from `begin` to before `end`."""

    number: int
    begin: int
    end: int
    shard: int
    """The shard that works on it."""


Cells = tuple[Cell, ...]


@lru_cache
def even_cells(shards: int) -> Cells:
    """One cell for each shard, as `shards_of` picks them."""
    begins = bounds(shards)
    return tuple(Cell(s, begins[s], begins[s + 1], s) for s in range(shards))


def bounds(shards: int) -> list[int]:
    """Where the parts of the hash of each of some shards begin, and where the last one ends."""
    return [-(-s * SPACE // shards) for s in range(shards + 1)]


def places_of(rows: pl.DataFrame, keys: tuple[str, ...] | None, cells: Cells) -> Shards:
    """The place of each row's cell among these cells. Without keys, all rows are in the first."""
    begins = begins_of(cells)
    if begins is None or keys == ():
        return shards_of(rows, keys, len(cells))
    upper = hashes_of(rows, keys) >> np.uint64(32)
    return (np.searchsorted(begins, upper, side="right") - 1).astype(np.int32)


@lru_cache
def begins_of(cells: Cells) -> np.ndarray[Any, np.dtype[np.uint64]] | None:
    """Where cells begin; None if they are all alike."""
    begins = [cell.begin for cell in cells]
    return None if begins == bounds(len(cells))[:-1] else np.array(begins, dtype=np.uint64)


# --- all cells of a query ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StageCells:
    """The cells of a stage in the order of their hashes, and of which cell those that were split off are a part."""

    cells: Cells
    parents: dict[int, int]

    def within(self, number: int) -> tuple[int, ...]:
        """The cells that a cell consists of now; itself, as long as it was not split."""
        return tuple(cell.number for cell in self.cells if number in self._line(cell.number))

    def _line(self, number: int) -> list[int]:
        line = [number]
        while line[-1] in self.parents:
            line.append(self.parents[line[-1]])
        return line

    @property
    def next_number(self) -> int:
        return 1 + max([*(cell.number for cell in self.cells), *self.parents, *self.parents.values()])


@dataclass(frozen=True)
class Layout:
    """Which cells there are, and which shard works on which.

    `version` counts the changes; `batch` is the last micro-batch before the newest of them.
    """

    shards: int
    stages: tuple[StageCells, ...]
    version: int = 0
    batch: int = -1

    @staticmethod
    def first(shards: int, stages: int) -> "Layout":
        return Layout(shards, tuple(StageCells(even_cells(shards), {}) for _ in range(stages)))

    def to_bytes(self) -> bytes:
        stages = [{"cells": s.cells, "parents": list(s.parents.items())} for s in self.stages]
        content = {"shards": self.shards, "version": self.version, "batch": self.batch, "stages": stages}
        return json.dumps(content).encode()

    @staticmethod
    def from_bytes(content: bytes) -> "Layout":
        stored = json.loads(content)
        stages = [StageCells(tuple(Cell(*c) for c in s["cells"]), dict(s["parents"])) for s in stored["stages"]]
        return Layout(stored["shards"], tuple(stages), stored["version"], stored["batch"])

    @staticmethod
    def read(folder: Folder) -> "Layout | None":
        """The newest; None if the number of shards never changed."""
        found = [int(name.removeprefix(LAYOUT)) for name in folder.names() if name.startswith(LAYOUT)]
        return Layout.from_bytes(folder.read(f"{LAYOUT}{max(found)}")) if found else None

    def write(self, folder: Folder) -> None:
        """From here on this layout counts. What an earlier one needs may be removed."""
        folder.write(f"{LAYOUT}{self.version}", self.to_bytes())

    def remove_unused(self, folder: Folder) -> None:
        """Remove the state of cells that were split, and what attempts that failed have left."""
        metrics = folder.sub("metrics")
        for number, stage in enumerate(self.stages, start=1):
            used = {str(cell.number) for cell in stage.cells}
            state = folder.sub(f"state/{number}")
            for name in state.subfolders():
                if name not in used:
                    state.sub(name).remove(state.sub(name).names())
            written = [name for name in metrics.names() if name.startswith(f"{number}-")]
            metrics.remove([name for name in written if name.removeprefix(f"{number}-") not in used])


# --- another number of shards --------------------------------------------------------------------------------------


class SplitCell(NamedTuple):
    """A cell, and the cells that replace it."""

    cell: Cell
    parts: Cells


def rescaled(stage: StageCells, shards: int, can_split: bool) -> tuple[StageCells, list[SplitCell]]:
    """The cells for another number of shards, and which of the cells before are split."""
    cells = assigned(stage.cells, shards)
    if not can_split or is_even(cells, shards):
        return StageCells(cells, stage.parents), []
    number, parents, splits = stage.next_number, dict(stage.parents), []
    after: list[Cell] = []
    for cell in stage.cells:
        inner = [bound for bound in bounds(shards) if cell.begin < bound < cell.end]
        if not inner:
            after += [cell]
            continue
        edges = [cell.begin, *inner, cell.end]
        parts = [Cell(number + i, edges[i], edges[i + 1], 0) for i in range(len(edges) - 1)]
        number += len(parts)
        parents |= {part.number: cell.number for part in parts}
        splits.append(SplitCell(cell, tuple(parts)))
        after += parts
    return StageCells(assigned(after, shards), parents), splits


def assigned(cells: Sequence[Cell], shards: int) -> Cells:
    """Each cell with the shard in whose part of the hash its middle lies."""
    return tuple(cell._replace(shard=(cell.begin + cell.end) // 2 * shards // SPACE) for cell in cells)


def is_even(cells: Cells, shards: int) -> bool:
    """Whether every shard has something, and none much more than its share."""
    load = np.zeros(shards)
    np.add.at(load, [cell.shard for cell in cells], [cell.end - cell.begin for cell in cells])
    return bool(load.min() > 0 and load.max() <= UNEVEN * SPACE / shards)
