"""A tuple's identity is in users' tables: another way to compute it would lose every tuple there."""

import math
import struct
from hashlib import blake2b

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from cedr.sinks.identity import tuple_ids

MISSING, THERE = b"\0", b"\1"


def digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()


def by_hand(number, real, text, words) -> str:
    """The definition, one value after another."""
    found = THERE + struct.pack("<q", number)
    found += MISSING + bytes(8) if real is None else THERE + struct.pack("<d", real)
    found += MISSING + bytes(16) if text is None else THERE + digest(text.encode())
    inner = b"".join(MISSING + bytes(16) if w is None else THERE + digest(w.encode()) for w in words or [])
    found += MISSING + bytes(16) if words is None else THERE + digest(inner)
    return digest(found).hex()


reals = st.none() | st.floats(allow_nan=False).map(lambda x: x + 0.0) | st.just(math.nan)
texts = st.none() | st.text(st.characters(blacklist_categories=["Cs"]))
SCHEMA = {"number": pl.Int64, "real": pl.Float64, "text": pl.String, "words": pl.List(pl.String)}
tuples = st.tuples(st.integers(-(2**63), 2**63 - 1), reals, texts, st.none() | st.lists(texts, max_size=3))


@given(st.lists(tuples))
def test_it_is_the_hash_of_the_values(rows):
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    assert tuple_ids(frame).to_list() == [by_hand(*row) for row in rows]


def test_it_never_changes():
    frame = pl.DataFrame({"vs": [1], "a": ["x"], "b": [None], "c": [0.5], "d": [[1, 2]], "e": [{"f": True}]})
    assert tuple_ids(frame).to_list() == ["32071b92784709f8fe6bf4eb0c321777"]


def test_equal_values_have_one_identity():
    def same(values: list[float]) -> bool:
        return tuple_ids(pl.DataFrame({"v": pl.Series(values)})).n_unique() == 1

    assert same([0.0, -0.0])
    assert same([math.nan, struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000001))[0]])
    assert not same([0.0, 1.0])


def test_what_looks_alike_differs():
    """Missing and empty, and values that only together have the same bytes."""
    schema = {"a": pl.String, "b": pl.List(pl.List(pl.String))}
    rows = [("", None), (None, []), ("", []), (None, None), ("", [None]), ("", [[]]), ("", [[], []]), ("", [[None]])]
    assert tuple_ids(pl.DataFrame(rows, schema=schema, orient="row")).n_unique() == len(rows)
    assert tuple_ids(pl.DataFrame({"a": ["ab", "a"], "b": ["c", "bc"]})).n_unique() == 2


def test_the_other_rows_do_not_matter():
    frame = pl.DataFrame({"a": ["x", None, "y", "x"], "b": [[1], None, [], [1]]})
    ids = tuple_ids(frame)
    assert [tuple_ids(frame[i])[0] for i in range(frame.height)] == ids.to_list()
    assert ids[0] == ids[3]
