"""SELECT ... FROM gives what the same query written with the stream API gives."""

import polars as pl
import pytest

import cedr
from cedr import api

feed = api.source("machines", {"kind": str, "machine": str, "load": float}, vs="ts", types="kind")
rooms = api.source("rooms", {"machine": str, "room": int, "load": float}, vs="ts", duration=20)
MACHINES = pl.DataFrame(
    {
        "ts": [1, 2, 3, 5, 6, 9, 14],
        "kind": ["A", "B", "A", "A", "B", "A", "A"],
        "machine": ["m", "m", "n", "m", "n", "m", None],
        "load": [0.5, None, 0.25, 1.0, 2.0, 4.0, 8.0],
    }
)
ROOMS = pl.DataFrame({"ts": [0, 4, 4], "machine": ["m", "n", "n"], "room": [1, 2, 3], "load": [1.0, 1.0, 3.0]})

load = pl.col("load")
CASES = {
    "SELECT machine, load * 2 AS double FROM machines WHERE load > 0.3 AND kind = 'A'": (
        lambda m, r: m.where(load > 0.3, pl.col("kind") == "A").select("machine", double=load * 2)
    ),
    "SELECT * FROM A TUMBLING 4": lambda m, r: m.where(pl.col("kind") == "A").tumbling(4),
    "SELECT machine, AVG(load) AS mean, COUNT(*) AS n, COUNT(load) AS c FROM machines SLIDING 5 GROUP BY machine": (
        lambda m, r: m.sliding(5).group_by("machine").agg(mean=cedr.avg("load"), n=cedr.count(), c=cedr.count("load"))
    ),
    "SELECT SUM(load) / COUNT(load) AS mean FROM machines HOPPING 6 EVERY 3 HAVING MAX(load) >= 1": (
        lambda m, r: (
            m.hopping(6, 3)
            .agg(s=cedr.sum("load"), c=cedr.count("load"), h=cedr.max("load"))
            .where(pl.col("h") >= 1)
            .select(mean=pl.col("s") / pl.col("c"))
        )
    ),
    "SELECT machine, FIRST(load) AS a, LAST(load) AS b, MIN(load) AS c, STDDEV(load) AS d, MEDIAN(load) AS e,"
    " QUANTILE(load + 1, 0.25) AS f, COUNT_DISTINCT(load) AS g, MODE(kind) AS h"
    " FROM machines SESSION 4 BY machine GROUP BY machine": (
        lambda m, r: (
            m.session(4, by="machine")
            .with_columns(more=load + 1)
            .group_by("machine")
            .agg(
                a=cedr.first("load"),
                b=cedr.last("load"),
                c=cedr.min("load"),
                d=cedr.stddev("load"),
                e=cedr.median("load"),
                f=cedr.quantile("more", 0.25),
                g=cedr.count_distinct("load"),
                h=cedr.mode("kind"),
            )
        )
    ),
    "SELECT UPPER(f.machine) AS machine, room, r.load AS other FROM machines AS f SLIDING 5"
    " JOIN rooms r ON r.machine = f.machine AND f.load < r.load": (
        lambda m, r: (
            m.sliding(5)
            .join(r, on="machine", where=load < pl.col("load_right"))
            .select(machine=pl.col("machine").str.to_uppercase(), room="room", other="load_right")
        )
    ),
    "SELECT f.machine, room FROM machines f LEFT JOIN rooms r ON f.machine = r.machine AND room > 1 WHERE f.load > 0": (
        lambda m, r: (
            m.where(load > 0).join(r, on="machine", how="left", where=pl.col("room") > 1).select("machine", "room")
        )
    ),
    "SELECT * FROM machines f ANTI JOIN rooms r ON f.machine = r.machine AND f.load > r.load": (
        lambda m, r: m.join(r, on="machine", how="anti", where=load > pl.col("load_right"))
    ),
    "SELECT * FROM machines AS f SEMI JOIN rooms ON f.load = rooms.load": (
        lambda m, r: m.join(r, on="load", how="semi")
    ),
    "SELECT kind, machine, f.load, r.load AS load_r FROM machines f FULL JOIN rooms r ON f.machine = r.machine": (
        lambda m, r: m.join(r, on="machine", how="full", suffix="_r").select("kind", "machine", "load", "load_r")
    ),
    "SELECT machine FROM machines SLIDING 9 EXCEPT SELECT machine FROM B SLIDING 3": (
        lambda m, r: (
            m.sliding(9).select("machine").difference(m.where(pl.col("kind") == "B").sliding(3).select("machine"))
        )
    ),
    "SELECT machine FROM machines SLIDING 9 UNION SELECT machine FROM rooms INTERSECT SELECT machine FROM rooms": (
        lambda m, r: m.sliding(9).select("machine").union(r.select("machine")).intersect(r.select("machine"))
    ),
    "SELECT DISTINCT machine FROM machines SLIDING 9": lambda m, r: m.sliding(9).select("machine").distinct(),
    "SELECT machine FROM machines SLIDING 9 GROUP BY machine": (lambda m, r: m.sliding(9).select("machine").distinct()),
    "SELECT 'all' AS which, COUNT(*) + 1 AS more FROM machines SLIDING 4": (
        lambda m, r: m.sliding(4).agg(n=cedr.count()).select(which=pl.lit("all"), more=pl.col("n") + 1)
    ),
}


@pytest.mark.parametrize("text", CASES)
def test_it_is_the_same_query(text):
    written, built = cedr.query(f"EVENT q {text}", feed, rooms), CASES[text](feed, rooms)
    data = {"machines": MACHINES, "rooms": ROOMS}
    found, expected = (s.run({n: data[n] for n in s.fragment().sources}).table() for s in (written, built))
    assert found.columns == expected.columns
    assert sorted(found.rows(), key=repr) == sorted(expected.rows(), key=repr)
    assert found.height > 0


def test_one_file_holds_a_whole_pipeline():
    text = """
        -- machines that stay busy, and what follows
        EVENT Busy   SELECT machine, AVG(load) AS load FROM machines SLIDING 5 GROUP BY machine HAVING AVG(load) > 0.7;
        EVENT Alarm  WHEN SEQUENCE(Busy b FIRST, B y, 6) WHERE b.machine = y.machine OUTPUT b.machine, y.load;
        EVENT Alarms SELECT COUNT(*) AS n FROM Alarm TUMBLING 10
    """
    found = cedr.queries(text, feed)
    late = pl.DataFrame({"ts": [8], "kind": ["B"], "machine": ["m"], "load": [3.0]})
    rows = pl.concat([MACHINES, late])
    assert list(found) == ["Busy", "Alarm", "Alarms"]
    assert found["Alarm"].run(rows).table().rows() == [(8, 11, "m", 3.0)]
    assert found["Alarms"].run(rows).table().rows() == [(0, 10, 1)]


# --- outer joins: what a side without a partner shows ----------------------------------------------------------------

LEFT_SIDE = api.source("l", {"k": int, "a": int, "x": int}, vs="t", ve="e")
RIGHT_SIDE = api.source("r", {"k": int, "b": int, "y": int}, vs="t", ve="e")
SIDES = {
    "l": pl.DataFrame({"t": [1, 1], "e": [5, 5], "k": [1, 3], "a": [1, 3], "x": [10, 30]}),
    "r": pl.DataFrame({"t": [1, 1], "e": [5, 5], "k": [2, 3], "b": [2, 3], "y": [20, 33]}),
}
FULL = [(None, 2, None, 20), (1, None, 10, None), (3, 3, 30, 33)]


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("l.k AS i, r.k AS j, x, y FROM l FULL JOIN r ON l.k = r.k", "i j x y", FULL),
        ("a, b, x, y FROM l FULL JOIN r ON l.a = r.b", "a b x y", FULL),
        ("l.k AS i, r.k AS j, x, y FROM l LEFT JOIN r ON l.k = r.k", "i j x y", FULL[1:]),
        ("k, x FROM l FULL JOIN r ON l.k = r.k", "k x", [(1, 10), (2, None), (3, 30)]),
        ("x FROM l LEFT JOIN r ON l.k = r.k WHERE r.k IS NULL", "x", [(10,)]),
        ("* FROM l LEFT JOIN r ON l.k = r.k", "k a x b y", [(1, 1, 10, None, None), (3, 3, 30, 3, 33)]),
        ("r.* FROM l LEFT JOIN r ON l.a = r.b", "k_r y b", [(None, None, None), (3, 33, 3)]),
        ("r.k, COUNT(*) AS n FROM l FULL JOIN r ON l.k = r.k GROUP BY r.k", "k n", [(None, 1), (2, 1), (3, 1)]),
    ],
)  # fmt: skip
def test_keys_of_a_side_without_a_partner_are_null(text, names, expected):
    found = cedr.query(f"EVENT q SELECT {text}", LEFT_SIDE, RIGHT_SIDE).run(SIDES).table().drop("vs", "ve")
    assert found.columns == names.split()
    assert sorted(found.rows(), key=str) == sorted(expected, key=str)


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("k IN (1, 2)", [1]),
        ("k NOT IN (1, 2)", [3]),
        ("k IN (1, NULL)", [1]),
        ("k NOT IN (1, NULL)", []),
        ("k IN (3)", [3]),
        ("name IN ('u', 'v')", [1]),
        ("name NOT IN ('u', 'v')", []),
    ],
)
def test_in_is_that_of_sql_in_both_languages(condition, kept):
    stream = api.source("l", {"k": int, "name": str}, vs="t")
    frame = pl.DataFrame({"t": [1, 2], "k": [1, 3], "name": ["u", None]})
    for query in (stream.where(condition), cedr.query(f"EVENT q SELECT * FROM l WHERE {condition}", stream)):
        assert query.run(frame).table()["k"].to_list() == kept
