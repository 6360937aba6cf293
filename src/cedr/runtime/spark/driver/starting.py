"""Starts a streaming query, again if its file sources did not start in time.

Spark gives the Python process of a file source ten seconds to start, whatever the load of the machine, and no setting
changes that. Nothing has been read by then, so the query is simply started again.
"""

import time
from collections.abc import Callable

from pyspark.sql.streaming.query import StreamingQuery

STARTS = 5
LATE_PYTHON = "Python worker failed to connect back"


def start_until_running(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """The last query that `start` has started. Other errors are reported as usual, when the user waits for it."""
    for _ in range(STARTS):
        query = start()
        while query.isActive and query.status["message"].startswith("Initializing"):
            time.sleep(0.02)
        if (error := query.exception()) is None or LATE_PYTHON not in str(error):
            break
    return query
