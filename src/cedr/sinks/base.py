"""What a sink is: a store that holds the canonical history of a query, brought forward batch by batch, exactly once.

A batch is prepared by every shard in its own process and committed by the driver in one step together with its number.
What was prepared and never committed leaves no trace. A batch that was committed before is ignored, so the driver may
repeat whatever a crash made it forget.
"""

import base64
import io
import json
import struct
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from cedr.columnar.chunk import VS, Chunk
from cedr.columnar.tally import COUNT, VE, in_order, net_changes
from cedr.plan.schema import show_schema
from cedr.sinks.readable import renamed
from cedr.sources.user_times import as_user_times
from cedr.temporal.errors import CedrError, QueryError
from cedr.temporal.time import INF, MIN

ID = "_cedr_id"
PUBLIC = {VS: "vs", VE: "ve", COUNT: "copies", ID: "cedr_id"}
"""Columns of cedr's own and the names users see; an underscore is put before one that the payload has, too."""


class SinkError(CedrError, RuntimeError):
    """A store that cannot take the answer: not reachable, of another query, or with a gap in its batches."""


@dataclass(frozen=True)
class Table:
    """What a sink keeps.

    query         names the query; another query must not write into its table
    columns       the payload
    time_type     how the user's times look: `pl.Int64`, or a `pl.Datetime("us")` with its zone
    shards        how many shards prepare each batch
    first_batch   the number of the batch an empty table begins with
    """

    query: str
    columns: dict[str, pl.DataType]
    time_type: pl.DataType = field(default_factory=pl.Int64)
    shards: int = 1
    first_batch: int = 0

    def __post_init__(self) -> None:
        if taken := [name for name in self.columns if name in PUBLIC]:
            raise QueryError(
                f"the answer has a column {taken[0]!r}, a name that sinks use themselves; rename the column"
            )

    @property
    def inner_schema(self) -> dict[str, pl.DataType]:
        return {VS: pl.Int64(), VE: pl.Int64(), COUNT: pl.Int64(), **self.columns}

    @cached_property
    def public(self) -> dict[str, str]:
        """The public names of cedr's own columns in this table."""
        own = pl.DataFrame(schema=dict.fromkeys(PUBLIC, pl.Int64))
        return dict(zip(PUBLIC, renamed(own, PUBLIC, self.columns).columns, strict=True))

    def shown(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Inner columns as users see them: their times, their names. No end is a missing value."""
        return renamed(as_user_times(frame, (VS, VE), self.time_type), PUBLIC, self.columns)

    def inner(self, shown: pl.DataFrame) -> pl.DataFrame:
        """The way back from `shown`."""
        own = {name: inner for inner, name in self.public.items() if name in shown.columns}
        times = pl.col(VS).cast(pl.Int64).fill_null(MIN), pl.col(VE).cast(pl.Int64).fill_null(INF)
        return shown.rename(own).with_columns(*times).cast(dict(self.columns))  # type: ignore[arg-type]

    def ordered(self, tuples: pl.DataFrame) -> pl.DataFrame:
        """`_vs`, `_ve` and the payload as the user's table, sorted like `Result.table()`."""
        return self.shown(in_order(tuples.select(VS, VE, *self.columns)))

    def check_same(self, stored: "Table", where: str) -> None:
        """Refuse to go on in a table that is not this one."""
        mine, theirs = show_schema(self.shown_schema), show_schema(stored.shown_schema)
        if mine != theirs:
            raise SinkError(f"{where} has the columns {theirs}, but the query puts out {mine}; give it another place")
        if self.query != stored.query:
            raise SinkError(
                f"{where} belongs to another query or checkpoint (it was made by {stored.query!r}, this is "
                f"{self.query!r}); give each query a place of its own"
            )

    @property
    def shown_schema(self) -> dict[str, pl.DataType]:
        return dict(self.shown(pl.DataFrame(schema=self.inner_schema).drop(COUNT)).schema)

    def to_json(self) -> dict[str, Any]:
        """For people the columns in words, for `from_json` the exact types as an empty Arrow table."""
        empty = pl.DataFrame(schema={VS: self.time_type, **self.columns})
        return {
            "query": self.query,
            "shards": self.shards,
            "first_batch": self.first_batch,
            "columns": {name: str(kind) for name, kind in self.shown_schema.items()},
            "types": base64.b64encode(as_ipc(empty)).decode(),
        }

    @staticmethod
    def from_json(stored: dict[str, Any]) -> "Table":
        schema = dict(pl.read_ipc_stream(io.BytesIO(base64.b64decode(stored["types"]))).schema)
        time_type = schema.pop(VS)
        return Table(stored["query"], schema, time_type, stored["shards"], stored["first_batch"])

    def __str__(self) -> str:
        return json.dumps(self.to_json())


class TableSink(ABC):
    """A sink's settings travel to the shards' processes after `open`; connections and what is remembered do not."""

    table: Table
    keeps = True
    """Whether the sink holds the answer itself, so that it must be as far as the checkpoint."""

    @property
    def trouble(self) -> str | None:
        """What the sink waits for, if its store is away; the query goes on when it is back."""
        return None

    def check(self, table: Table) -> None:  # noqa: B027  some stores keep every type
        """Reject columns of types that the store does not have. Makes nothing."""

    def check_place(self, table: Table | None = None) -> None:  # noqa: B027  most sinks have nothing to ask
        """On the driver, before any sink of a job opens: refuse what `open` would refuse, and make nothing. Without a
        table only whether the store can be used at all."""

    @abstractmethod
    def open(self, table: Table) -> None:
        """On the driver, once per start: make what is missing, refuse what belongs to something else."""

    @abstractmethod
    def last_batch(self) -> int | None:
        """On the driver: the newest batch that is committed."""

    def prepare(self, shard: int, batch: int, changes: Chunk) -> bytes:
        """In the shard's process: whatever `commit` needs of a shard's changes. May be called again for any batch."""
        return Prepared(shard, changes.cti, net_changes(changes.rows, self.table.columns)).to_bytes()

    @abstractmethod
    def commit(self, batch: int, prepared: list[bytes]) -> None:
        """On the driver: all of the batch, or nothing. Every batch is committed, those without changes, too."""

    @abstractmethod
    def read(self) -> pl.DataFrame:
        """The table as it is now, like `Result.table()`: `vs`, `ve` and the payload, sorted, copies repeated."""

    def close(self) -> None:  # noqa: B027  most sinks have nothing to let go of
        """On the driver: let go of connections. The sink may be used again."""

    def check_reached(self, reached: int | None) -> None:
        """Refuse to go on with a checkpoint that has come to another batch than the table; None is before the first.

        A batch is committed here before Spark notes it as done, so the table may be one batch ahead.
        """
        last = self.last_batch()
        before_first = self.table.first_batch - 1
        ahead = (before_first if last is None else last) - (before_first if reached is None else reached)
        if self.keeps and ahead not in (0, 1):
            there = "has no batch yet" if last is None else f"has batch {last} as its last"
            noted = "is new" if reached is None else f"has come to batch {reached}"
            raise SinkError(
                f"{self} {there}, but the checkpoint {noted}: they do not belong together. Use the checkpoint this "
                "table was written with, or start with an empty table and a new checkpoint"
            )

    def _is_new(self, batch: int, last: int | None) -> bool:
        """Is this batch still to be committed? An error when one before it is missing."""
        if last is not None and batch <= last:
            return False
        if batch != (expected := self.table.first_batch if last is None else last + 1):
            there = "has no batch yet" if last is None else f"has batch {last} as its last"
            raise SinkError(
                f"{self} {there}, so batch {expected} must come next, but batch {batch} came: the checkpoint is not "
                "the one this table was written with; use that one, or start with an empty table and a new checkpoint"
            )
        return True


@dataclass(frozen=True)
class Prepared:
    """Changes of a shard on their way to the driver, and the shard's progress after them."""

    shard: int
    cti: int
    rows: pl.DataFrame

    def to_bytes(self) -> bytes:
        return HEAD.pack(self.shard, self.cti) + as_ipc(self.rows)

    @staticmethod
    def from_bytes(content: bytes) -> "Prepared":
        shard, cti = HEAD.unpack_from(content)
        return Prepared(shard, cti, pl.read_ipc_stream(io.BytesIO(content[HEAD.size :])))


HEAD = struct.Struct("<iq")


def as_ipc(frame: pl.DataFrame) -> bytes:
    return frame.write_ipc_stream(None, compression="lz4").getvalue()


def all_there(counted: pl.DataFrame, where: str) -> pl.DataFrame:
    """Counted tuples, of which none is taken away that was not there."""
    if (missing := counted.filter(pl.col(COUNT) < 0)).height:
        raise never_there(missing.row(0, named=True), missing.height, where)
    return counted


def never_there(example: dict[str, Any], number: int, where: str) -> SinkError:
    """`number` tuples, one of them `example`, are taken away and not there."""
    shown = ", ".join(f"{name}={value!r}" for name, value in example.items())
    return SinkError(
        f"{where}: {number} tuple(s) are taken away more often than they are there, among them ({shown}); "
        "an adjust named a tuple that was never inserted, or the table was changed by somebody else"
    )


def joined(prepared: list[bytes]) -> tuple[pl.DataFrame, int]:
    """What all shards have prepared, and the progress they all have reached."""
    parts = sorted((Prepared.from_bytes(content) for content in prepared), key=lambda part: part.shard)
    return pl.concat([part.rows for part in parts]), min(part.cti for part in parts)
