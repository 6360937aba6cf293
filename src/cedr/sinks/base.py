"""Sinks: stores of the canonical history of a query, updated batch by batch, exactly once.

A batch is prepared by every shard in its own process and committed by the driver in one step together with its number.
What was prepared but never committed leaves no trace. A batch that was committed before is ignored, so the driver may
repeat a batch after a crash.
"""

import base64
import io
import json
import struct
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
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
"""cedr's own columns and their public names; an underscore is added if the payload has the same name."""


class SinkError(CedrError, RuntimeError):
    """A store that cannot be written: not reachable, of another query, or with a gap in its batches."""


@dataclass(frozen=True)
class SinkTable:
    """The table of a sink.

    query         names the query; another query must not write into its table
    columns       the payload
    time_type     the type of the user's times: `pl.Int64`, or a `pl.Datetime("us")` with its zone
    shards        number of shards that prepare each batch
    first_batch   number of the first batch of an empty table
    later         whether the table begins in the middle of the query: tuples from before are not in it, so what is
                  removed need not be there
    """

    query: str
    columns: dict[str, pl.DataType]
    time_type: pl.DataType = field(default_factory=pl.Int64)
    shards: int = 1
    first_batch: int = 0
    later: bool = False

    def __post_init__(self) -> None:
        if taken := [name for name in self.columns if name in PUBLIC]:
            raise QueryError(f"the answer has a column {taken[0]!r}, a name that sinks reserve; rename the column")

    @property
    def inner_schema(self) -> dict[str, pl.DataType]:
        return {VS: pl.Int64(), VE: pl.Int64(), COUNT: pl.Int64(), **self.columns}

    @cached_property
    def public(self) -> dict[str, str]:
        """The public names of cedr's own columns in this table."""
        own = pl.DataFrame(schema=dict.fromkeys(PUBLIC, pl.Int64))
        return dict(zip(PUBLIC, renamed(own, PUBLIC, self.columns).columns, strict=True))

    def shown(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Internal columns with public names and the user's times. Infinity is null."""
        return renamed(as_user_times(frame, (VS, VE), self.time_type), PUBLIC, self.columns)

    def inner(self, shown: pl.DataFrame) -> pl.DataFrame:
        """The inverse of `shown`."""
        own = {name: inner for inner, name in self.public.items() if name in shown.columns}
        times = pl.col(VS).cast(pl.Int64).fill_null(MIN), pl.col(VE).cast(pl.Int64).fill_null(INF)
        return shown.rename(own).with_columns(*times).cast(dict(self.columns))  # type: ignore[arg-type]

    def ordered(self, tuples: pl.DataFrame) -> pl.DataFrame:
        """`_vs`, `_ve` and the payload as the user's table, sorted like `Result.table()`."""
        return self.shown(in_order(tuples.select(VS, VE, *self.columns)))

    def check_same(self, stored: "SinkTable", where: str) -> None:
        """Raise if the stored table is not this one."""
        mine, theirs = show_schema(self.shown_schema), show_schema(stored.shown_schema)
        if mine != theirs:
            raise SinkError(f"{where} has the columns {theirs}, but the query emits {mine}; use another place")
        if self.query != stored.query:
            raise SinkError(
                f"{where} belongs to another query or checkpoint (it was created by {stored.query!r}, this is "
                f"{self.query!r}); use a separate place for each query"
            )

    def begun_as(self, stored: "SinkTable") -> "SinkTable":
        """This table, which was begun before."""
        return replace(self, first_batch=stored.first_batch, later=stored.later)

    @property
    def shown_schema(self) -> dict[str, pl.DataType]:
        return dict(self.shown(pl.DataFrame(schema=self.inner_schema).drop(COUNT)).schema)

    def to_json(self) -> dict[str, Any]:
        """Readable column types for people, and for `from_json` the exact types as an empty Arrow table."""
        empty = pl.DataFrame(schema={VS: self.time_type, **self.columns})
        return {
            "query": self.query,
            "shards": self.shards,
            "first_batch": self.first_batch,
            **({"later": True} if self.later else {}),
            "columns": {name: str(kind) for name, kind in self.shown_schema.items()},
            "types": base64.b64encode(as_ipc(empty)).decode(),
        }

    @staticmethod
    def from_json(stored: dict[str, Any]) -> "SinkTable":
        schema = dict(pl.read_ipc_stream(io.BytesIO(base64.b64decode(stored["types"]))).schema)
        time_type = schema.pop(VS)
        begin = stored["first_batch"], stored.get("later", False)
        return SinkTable(stored["query"], schema, time_type, stored["shards"], *begin)

    def __str__(self) -> str:
        return json.dumps(self.to_json())


class TableSink(ABC):
    """A sink's settings are sent to the shards' processes after `open`; connections and caches are not."""

    table: SinkTable
    keeps = True
    """Whether the sink contains the answer itself, so that its last batch must match the checkpoint."""
    split_shards: frozenset[int] = frozenset()
    """Shards that were split: others remove the tuples that they have inserted."""

    @property
    def trouble(self) -> str | None:
        """What the sink waits for, if its store is unreachable; the query continues when it is reachable again."""
        return None

    def check(self, table: SinkTable) -> None:  # noqa: B027  some stores support every type
        """Reject columns of types that the store does not have. Creates nothing."""

    def check_place(self, table: SinkTable | None = None) -> None:  # noqa: B027  most sinks have nothing to check
        """On the driver, before any sink of a job opens: raise what `open` would raise, and create nothing. Without a
        table, check only whether the store can be used at all."""

    @abstractmethod
    def open(self, table: SinkTable) -> None:
        """On the driver, once per start: create what is missing, raise if it belongs to something else."""

    @abstractmethod
    def last_batch(self) -> int | None:
        """On the driver: the newest batch that is committed."""

    def prepare(self, shard: int, batch: int, changes: Chunk) -> bytes:
        """In the shard's process: a shard's changes, as data for `commit`. May be called again for any batch."""
        return PreparedChanges(shard, changes.cti, net_changes(changes.rows, self.table.columns)).to_bytes()

    @abstractmethod
    def commit(self, batch: int, prepared: list[bytes]) -> None:
        """On the driver: all of the batch, or nothing. Batches without changes are committed as well."""

    @abstractmethod
    def read(self) -> pl.DataFrame:
        """The current table, like `Result.table()`: `vs`, `ve` and the payload, sorted, copies repeated."""

    def close(self) -> None:  # noqa: B027  most sinks have nothing to close
        """On the driver: close connections. The sink may be used again."""

    def check_reached(self, reached: int | None) -> None:
        """Raise if the checkpoint has reached another batch than the table; None is before the first.

        A batch is committed here before Spark commits it, so the table may be one batch ahead.
        """
        last = self.last_batch()
        before_first = self.table.first_batch - 1
        ahead = (before_first if last is None else last) - (before_first if reached is None else reached)
        if self.keeps and ahead not in (0, 1):
            there = "has no batch yet" if last is None else f"has batch {last} as its last"
            noted = "is new" if reached is None else f"has reached batch {reached}"
            raise SinkError(
                f"{self} {there}, but the checkpoint {noted}: they do not belong together. Use the checkpoint this "
                "table was written with, or start with an empty table and a new checkpoint. With upgrade=True "
                "(--upgrade) an empty table gets the results from here on"
            )

    def _is_new(self, batch: int, last: int | None) -> bool:
        """Whether this batch is still to be committed; raises if a previous one is missing."""
        if last is not None and batch <= last:
            return False
        if batch != (expected := self.table.first_batch if last is None else last + 1):
            there = "has no batch yet" if last is None else f"has batch {last} as its last"
            raise SinkError(
                f"{self} {there}, so batch {expected} must follow, but got batch {batch}: the checkpoint is not "
                "the one this table was written with; use that one, or start with an empty table and a new checkpoint"
            )
        return True


@dataclass(frozen=True)
class PreparedChanges:
    """Changes of a shard for the driver, and the shard's progress after them."""

    shard: int
    cti: int
    rows: pl.DataFrame

    def to_bytes(self) -> bytes:
        return HEAD.pack(self.shard, self.cti) + as_ipc(self.rows)

    @staticmethod
    def from_bytes(content: bytes) -> "PreparedChanges":
        shard, cti = HEAD.unpack_from(content)
        return PreparedChanges(shard, cti, pl.read_ipc_stream(io.BytesIO(content[HEAD.size :])))


HEAD = struct.Struct("<iq")


def as_ipc(frame: pl.DataFrame) -> bytes:
    return frame.write_ipc_stream(None, compression="lz4").getvalue()


def all_there(counted: pl.DataFrame, where: str) -> pl.DataFrame:
    """Counted tuples; raises if one is removed that does not exist."""
    if (missing := counted.filter(pl.col(COUNT) < 0)).height:
        raise never_there(missing.row(0, named=True), missing.height, where)
    return counted


def never_there(example: dict[str, Any], number: int, where: str) -> SinkError:
    """The error that `number` tuples, one of them `example`, are removed but do not exist."""
    shown = ", ".join(f"{name}={value!r}" for name, value in example.items())
    return SinkError(
        f"{where}: {number} tuple(s) are removed more often than they exist, among them ({shown}); "
        "an adjust named a tuple that was never inserted, or another program changed the table"
    )


def joined(prepared: list[bytes]) -> tuple[pl.DataFrame, int]:
    """The changes of all shards, and their common progress."""
    parts = sorted((PreparedChanges.from_bytes(content) for content in prepared), key=lambda part: part.shard)
    return pl.concat([part.rows for part in parts]), min(part.cti for part in parts)
