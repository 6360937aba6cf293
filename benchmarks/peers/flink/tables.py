"""The input streams as Flink sees them: rows of CSV files with a time attribute and its watermark."""

from peers.parameters import DELAY

TIMES = f"""
    rt AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR rt AS rt - INTERVAL '{DELAY}' SECOND
"""
FROM = "WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{path}')"
EVENTS = "ts BIGINT, k BIGINT, v DOUBLE"
COLUMNS = {
    "events": EVENTS,
    "left": EVENTS,
    "right": EVENTS,
    "person": "ts BIGINT, id BIGINT, name STRING, city STRING, state STRING",
    "auction": "ts BIGINT, id BIGINT, seller BIGINT, category BIGINT, expires BIGINT",
    "bid": "ts BIGINT, auction BIGINT, bidder BIGINT, price BIGINT",
}

TABLES = {name: f"CREATE TABLE `{name}` ({columns}, {TIMES}) {FROM}" for name, columns in COLUMNS.items()}
