"""Nexmark's queries in Flink's SQL. An auction takes bids from its start to just before it expires."""

from flink_query import MICROS, FlinkQuery
from peers.parameters import NEXMARK_HOP, NEXMARK_WINDOW

SAME_WINDOW = "x.window_start = y.window_start AND x.window_end = y.window_end"
HOPS = f"HOP(TABLE bid, DESCRIPTOR(rt), INTERVAL '{NEXMARK_HOP}' SECOND, INTERVAL '{NEXMARK_WINDOW}' SECOND)"


def tumbling(table: str) -> str:
    return f"TABLE(TUMBLE(TABLE {table}, DESCRIPTOR(rt), INTERVAL '{NEXMARK_WINDOW}' SECOND))"


FINALS = """
    CREATE VIEW finals AS
    SELECT a.id, a.seller, a.category, MAX(b.price) AS final
    FROM auction a JOIN bid b ON a.id = b.auction AND b.ts >= a.ts AND b.ts < a.expires
    GROUP BY a.id, a.seller, a.category
"""

NEXMARK = {
    "q0": FlinkQuery(
        ("bid",),
        "ts BIGINT, auction BIGINT, bidder BIGINT, price BIGINT",
        "SELECT 1000 * ts, auction, bidder, price FROM bid",
    ),
    "q1": FlinkQuery(
        ("bid",),
        "ts BIGINT, auction BIGINT, bidder BIGINT, price DOUBLE",
        "SELECT 1000 * ts, auction, bidder, price * 0.908e0 FROM bid",
    ),
    "q2": FlinkQuery(
        ("bid",),
        "ts BIGINT, auction BIGINT, price BIGINT",
        "SELECT 1000 * ts, auction, price FROM bid WHERE MOD(auction, 123) = 0",
    ),
    "q3": FlinkQuery(
        ("person", "auction"),
        "name STRING, city STRING, state STRING, id BIGINT",
        """
        SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id
        WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')
        """,
    ),
    "q4": FlinkQuery(
        ("auction", "bid"),
        "category BIGINT, price DOUBLE",
        "SELECT category, AVG(CAST(final AS DOUBLE)) FROM finals GROUP BY category",
        (FINALS,),
        changes=True,
    ),
    "q5": FlinkQuery(
        ("bid",),
        "`start` BIGINT, `end` BIGINT, auction BIGINT, n BIGINT",
        f"""
        SELECT {MICROS.format("x.window_start")}, {MICROS.format("x.window_end")}, x.auction, x.n
        FROM counts x JOIN (
            SELECT MAX(n) AS most, window_start, window_end FROM counts GROUP BY window_start, window_end
        ) y ON {SAME_WINDOW} AND x.n = y.most
        """,
        (
            f"""
            CREATE VIEW counts AS
            SELECT auction, COUNT(*) AS n, window_start, window_end
            FROM TABLE({HOPS}) GROUP BY auction, window_start, window_end
            """,
        ),
    ),
    "q6": FlinkQuery(
        ("auction", "bid"),
        "seller BIGINT, price DOUBLE",
        """
        SELECT seller, AVG(CAST(final AS DOUBLE)) FROM (
            SELECT seller, final, ROW_NUMBER() OVER (PARTITION BY seller ORDER BY id DESC) AS place FROM finals
        ) WHERE place <= 10 GROUP BY seller
        """,
        (FINALS,),
        changes=True,
    ),
    "q7": FlinkQuery(
        ("bid",),
        "`start` BIGINT, auction BIGINT, bidder BIGINT, price BIGINT",
        f"""
        SELECT {MICROS.format("x.window_start")}, x.auction, x.bidder, x.price
        FROM (SELECT * FROM {tumbling("bid")}) x JOIN (
            SELECT MAX(price) AS most, window_start, window_end FROM {tumbling("bid")}
            GROUP BY window_start, window_end
        ) y ON {SAME_WINDOW} AND x.price = y.most
        """,
    ),
    "q8": FlinkQuery(
        ("person", "auction"),
        "`start` BIGINT, id BIGINT, name STRING",
        f"""
        SELECT {MICROS.format("x.window_start")}, x.id, x.name
        FROM (
            SELECT id, name, window_start, window_end FROM {tumbling("person")}
            GROUP BY id, name, window_start, window_end
        ) x JOIN (
            SELECT seller, window_start, window_end FROM {tumbling("auction")} GROUP BY seller, window_start, window_end
        ) y ON {SAME_WINDOW} AND x.id = y.seller
        """,
    ),
}
