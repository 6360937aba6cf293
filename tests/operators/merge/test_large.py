"""Streams long enough that settled events are dropped and their numbers given away again."""

import numpy as np
import polars as pl
import pytest
from merge_check import restored

from cedr.columnar.chunk import NEW, OLD, VS, assemble
from cedr.operators.merge.algorithms import ALGORITHMS
from cedr.temporal import INF

SCHEMA = {"k": pl.Int64(), "text": pl.String()}
SIZE, CHUNK = 30_000, 1_000


def elements_of(seed, copies):
    """Chunks of one stream: inserts out of order with ends that are adjusted afterwards, CTIs after each chunk."""
    rng = np.random.default_rng(seed)
    vs = np.arange(SIZE) // copies * 10
    end = vs + 50 + vs * 7 % 400  # the truth, whatever the seed
    first = np.where(rng.random(SIZE) < 0.3, end + rng.integers(1, 100, SIZE), end)
    arrival = vs + rng.integers(0, 300, SIZE)
    adjusted = np.flatnonzero(first != end)
    number = np.concatenate((np.arange(SIZE), adjusted))
    old, new = np.concatenate((vs, first[adjusted])), np.concatenate((first, end[adjusted]))
    when = np.concatenate((arrival, np.maximum(arrival[adjusted], end[adjusted] - 20) + 1))
    order = np.argsort(when, kind="stable")
    number, old, new = number[order], old[order], new[order]
    sync = np.minimum(old, new)
    coming = np.minimum.accumulate(sync[::-1])[::-1]
    payload = pl.DataFrame({"k": vs // 10 % 400, "text": (vs // 10).astype(str)}, schema=SCHEMA)
    for i in range(0, len(number), CHUNK):
        part = number[i : i + CHUNK]
        cti = int(coming[i + CHUNK]) if i + CHUNK < len(number) else INF
        yield assemble(vs[part], old[i : i + CHUNK], new[i : i + CHUNK], payload[part], cti)


def table(changes):
    """The canonical history of many rows."""
    rows = pl.concat(changes)
    names = list(SCHEMA)
    come, gone = rows.filter(pl.col(NEW) > pl.col(VS)), rows.filter(pl.col(OLD) > pl.col(VS))
    ends = [
        come.select(VS, pl.col(NEW).alias("end"), *names, n=pl.lit(1)),
        gone.select(VS, pl.col(OLD).alias("end"), *names, n=pl.lit(-1)),
    ]
    return pl.concat(ends).group_by(VS, "end", *names).sum().filter(pl.col("n") != 0).sort(pl.all())


@pytest.mark.parametrize(("algorithm", "copies"), [("R3", 1), ("R3-", 1), ("R4", 1), ("R4", 3)])
def test_what_is_settled_is_dropped_and_nothing_is_lost(algorithm, copies):
    inputs = [list(elements_of(seed, copies)) for seed in range(3)]
    make = lambda: ALGORITHMS[algorithm](SCHEMA, 3)  # noqa: E731
    merge, out, most = make(), [], 0
    for step in range(max(map(len, inputs))):
        for port, chunks in enumerate(inputs):
            if step < len(chunks):
                out.append(merge.process(port, chunks[step]).rows)
                most = max(most, len(merge.index))
        if step == 11:
            merge = restored(make, merge)
    assert table(out).equals(table([chunk.rows for chunk in inputs[0]]))
    assert most < SIZE / 2 / copies + 4096
    assert merge.state_size()[0] == 0
