"""The questions in Flink's SQL."""

from auctions import NEXMARK
from flink_query import ENDS, STARTS, FlinkQuery
from peers.parameters import APART, HIGH, HOP, LOW, SCOPE, SLIDING, WINDOW


def windows(table_function: str) -> FlinkQuery:
    return FlinkQuery(
        ("events",),
        "k BIGINT, `start` BIGINT, `end` BIGINT, n BIGINT, s DOUBLE, a DOUBLE, m DOUBLE",
        f"""
        SELECT k, {STARTS}, {ENDS}, COUNT(*), SUM(v), AVG(v), MAX(v)
        FROM TABLE({table_function})
        GROUP BY k, window_start, window_end
        """,
    )


HOPPING = windows(f"HOP(TABLE events, DESCRIPTOR(rt), INTERVAL '{HOP}' SECOND, INTERVAL '{WINDOW}' SECOND)")
TUMBLING = windows(f"TUMBLE(TABLE events, DESCRIPTOR(rt), INTERVAL '{WINDOW}' SECOND)")

NEAR = f"INTERVAL '{(APART - 1) / 1000}' SECOND"
JOIN = FlinkQuery(
    ("left", "right"),
    "vs BIGINT, ve BIGINT, k BIGINT, v DOUBLE, v_right DOUBLE",
    f"""
    SELECT 1000 * GREATEST(l.ts, r.ts), 1000 * (LEAST(l.ts, r.ts) + {APART}), l.k, l.v, r.v
    FROM `left` l JOIN `right` r ON l.k = r.k AND r.rt BETWEEN l.rt - {NEAR} AND l.rt + {NEAR}
    """,
)

SLIDING_SUM = FlinkQuery(
    ("events",),
    "vs BIGINT, k BIGINT, s DOUBLE",
    f"""
    SELECT 1000 * ts, k, SUM(v) OVER (
        PARTITION BY k ORDER BY rt RANGE BETWEEN INTERVAL '{SLIDING - 0.001}' SECOND PRECEDING AND CURRENT ROW
    ) FROM events
    """,
)

# MATCH_RECOGNIZE finds one match for each first event; asked for are all pairs. So: how many forbidding events have
# come up to each event, those of its own time counted apart, and a join of pairs with none between.
FORBIDDING = f"COUNT(CASE WHEN v >= {HIGH} THEN 1 END) OVER (PARTITION BY k ORDER BY rt RANGE BETWEEN"
PATTERN = FlinkQuery(
    ("events",),
    "vs BIGINT, ve BIGINT, k BIGINT, `first` DOUBLE, `second` DOUBLE",
    f"""
    SELECT 1000 * y.ts, GREATEST(1000 * x.ts + {SCOPE * 1000000}, 1000 * y.ts + 1), x.k, x.v, y.v
    FROM counted x JOIN counted y ON x.k = y.k AND y.rt BETWEEN x.rt AND x.rt + INTERVAL '{SCOPE}' SECOND
    WHERE x.v < {LOW} AND y.v >= {LOW} AND y.v < {HIGH} AND x.ts < y.ts AND y.before = x.until
    """,
    (
        f"""
        CREATE VIEW till_now AS
        SELECT ts, rt, k, v, {FORBIDDING} UNBOUNDED PRECEDING AND CURRENT ROW) AS until FROM events
        """,
        f"""
        CREATE VIEW counted AS
        SELECT ts, rt, k, v, until, until - {FORBIDDING} INTERVAL '0' SECOND PRECEDING AND CURRENT ROW) AS before
        FROM till_now
        """,
    ),
)

QUESTIONS = {
    "hopping": HOPPING,
    "tumbling": TUMBLING,
    "join": JOIN,
    "sliding": SLIDING_SUM,
    "pattern": PATTERN,
    **NEXMARK,
}
