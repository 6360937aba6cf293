"""Iterate: the loop as one operator. Its first input is the seed, the others are what the body reads from outside.

One *iteration* passes everything that circulates through the body once, as one chunk. Rows of an input pass the body
separately, between iterations, so new rows enter while older ones still circulate. At most `iterations_per_chunk`
iterations follow each chunk; rows that still circulate then continue with the next chunk. When all inputs have ended,
or the loop has not been at rest for `max_iterations` iterations, iterations continue until nothing circulates.

Withdrawals circulate too, without waiting: nothing is derived again while they do (see `support_table`). So an event
and its retraction never chase each other. A loop that derives new rows for `max_iterations` iterations without any
input fails.
"""

from collections.abc import Mapping

import polars as pl

from cedr.columnar.chunk import Chunk, empty
from cedr.columnar.state import FLAG, NUMBER, PART, counted, fields
from cedr.operators.base import Operator
from cedr.operators.iterate.body import Body
from cedr.operators.iterate.ffp import METHODS
from cedr.operators.iterate.metrics import LoopMetrics
from cedr.operators.iterate.support_table import SupportTable
from cedr.plan.loop import LOOP, Settings, outside
from cedr.temporal.errors import DivergenceError
from cedr.temporal.time import INF, MIN
from cedr.temporal.time import show as show_time


class IterateOperator(Operator):
    state = fields(
        body=counted(PART),
        ffp=PART,
        supports=counted(PART),
        taken=NUMBER,
        restless=NUMBER,
        alone=NUMBER,
        checkpoint=NUMBER,
        circulates=FLAG,
        first=NUMBER,
        silence=NUMBER,
        longest_silence=NUMBER,
        cause=NUMBER,
    )

    def __init__(self, schema: Mapping[str, pl.DataType], body: Body, settings: Settings) -> None:
        self.ports = len(body.names)
        super().__init__()
        self.schema, self.body, self.settings = dict(schema), body, settings
        self.supports = SupportTable(schema, settings.selection)
        self.ffp = METHODS[settings.progress]()
        self.taken = 0
        """Turns."""
        self.restless = 0
        """Turns since nothing circulated, or nothing about times before the checkpoint."""
        self.alone = 0
        """Turns since an input brought rows."""
        self.checkpoint = MIN
        self.circulates, self.first = False, INF
        """Whether anything does, and the earliest time it is about."""
        self.silence = self.longest_silence = 0
        self.cause = 0
        """The input that brought rows last."""

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        if len(chunk):
            self.cause, self.alone = port, 0
        self._enter(port, chunk)
        self.ffp.external = self.cti
        definite = self.ffp.definite
        spent = 0
        self._settle()
        while self._goes_on(spent):
            spent += 1
            self._turn()
        if self.cti == INF:
            self.ffp.reach(INF)
        out = self.supports.emit(self.ffp.definite)
        self._forget(definite)
        return out

    def _enter(self, port: int, chunk: Chunk) -> None:
        plain = Chunk(chunk.rows.select("_vs", "_ve_old", "_ve_new", *self._columns(port, chunk)), self.ctis[port])
        if port == 0:
            self.supports.absorb(plain, firm=False)
        else:
            self._derive(outside(port), plain, firm=False)

    def _columns(self, port: int, chunk: Chunk) -> list[str]:
        return list(self.schema if port == 0 else chunk.schema)

    def _derive(self, name: str, chunk: Chunk, *, firm: bool) -> None:
        derived = self.body.run({name: chunk})
        if derived is not None:
            self.supports.absorb(derived, firm=firm)

    def _goes_on(self, spent: int) -> bool:
        """Whether another iteration follows this chunk."""
        circulates = self.circulates
        if self.cti == INF or self.restless > self.settings.max_iterations:
            return circulates
        self.ffp.leave()
        return spent < self.settings.iterations_per_chunk and (circulates or (self.ffp.flying and not self.ffp.lodged))

    def _turn(self) -> None:
        """What circulates passes the body, then the speculative punctuation."""
        self.taken += 1
        if self.circulates:
            self._count_restless()
            self._derive(LOOP, self.supports.feed(self.ffp.definite), firm=True)
        self._settle()
        self.ffp.back()

    def _settle(self) -> None:
        """Withdraw until no more falls, then hold what has support; and see what that changes."""
        while self.supports.withdraw():
            self.taken += 1
            self._count_restless()
            self._derive(LOOP, self.supports.feed(self.ffp.definite), firm=False)
        self.supports.renew()
        sync = self.supports.circulating().sync
        self.circulates, self.first = len(sync) > 0, int(sync.min(initial=INF))
        if self.circulates:
            self.ffp.see(self.first, int(sync.max()))

    def _forget(self, before: int) -> None:
        """What is definite now lets the loop forget."""
        self.silence = 0 if self.ffp.definite > before else self.silence + 1
        self.longest_silence = max(self.longest_silence, self.silence)
        if not self.circulates:
            self.restless = 0
        if self.ffp.definite > before:
            self._derive(LOOP, empty(self.schema, self.ffp.definite), firm=False)
            self.supports.forget(self.ffp.definite)

    # --- divergence ----------------------------------------------------------------------------------------------

    def _count_restless(self) -> None:
        """Rows about times that all inputs have passed must come to rest, or the loop diverges.

        A loop with constant input may never be at rest. So after `max_iterations` iterations it takes no input until it
        is at rest; it fails only if that takes `max_iterations` iterations, too.
        """
        if self.circulates and self.first >= self.checkpoint > MIN:
            self.restless, self.checkpoint = 0, max(self.checkpoint, self.cti)
        elif self.restless == 0:
            self.checkpoint = self.cti
        self.restless += 1
        self.alone += 1
        if min(self.restless, self.alone) > self.settings.max_iterations:
            raise DivergenceError(self._divergence())

    def _divergence(self) -> str:
        p, vs, _, new = self.supports.circulating()
        example = ""
        if len(p):
            row = ", ".join(f"{k}={v!r}" for k, v in self.supports.payloads.take(p[-1:]).row(0, named=True).items())
            example = f", such as ({row}) from {show_time(int(vs[-1]))} to {show_time(int(new[-1]))}"
        return (
            f"iterate: after {self.settings.max_iterations} iterations, new rows are still derived{example}; the last "
            f"rows came from input {self.body.names[self.cause]!r}. On a cycle, a body that counts or adds up never "
            'ends: leave such columns out, end the body with group_by(...).agg(x=cedr.min("x")), or filter them. '
            f"If the loop does end, set max_iterations= to more than {self.settings.max_iterations}"
        )

    # --- the rest ------------------------------------------------------------------------------------------------

    @property
    def loop_metrics(self) -> LoopMetrics:
        known = MIN not in (self.cti, self.ffp.definite)
        lag = 0 if self.ffp.definite == INF else self.cti - self.ffp.definite if known and self.cti != INF else None
        return LoopMetrics(
            self.settings.progress,
            self.taken,
            self.ffp.speculative_punctuations,
            self.ffp.definite_punctuations,
            lag,
            self.body.state_rows(),
            self.longest_silence,
        )
