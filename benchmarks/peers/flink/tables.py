"""The input streams as Flink sees them: rows of CSV files with a time attribute and its watermark."""

from peers.parameters import DELAY

TIMES = f"""
    rt AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR rt AS rt - INTERVAL '{DELAY}' SECOND
"""
FROM = "WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{path}')"
EVENTS = "ts BIGINT, k BIGINT, v DOUBLE"

TABLES = {name: f"CREATE TABLE `{name}` ({EVENTS}, {TIMES}) {FROM}" for name in ("events", "left", "right")}
