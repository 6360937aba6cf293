"""A streaming query whose sources are there.

Spark gives the Python of a file source ten seconds to start, whatever the machine has to do besides, and no setting
changes that. Nothing was read by then, so such a query is simply started again.
"""

import time
from collections.abc import Callable

from pyspark.sql.streaming.query import StreamingQuery

STARTS = 5
LATE_PYTHON = "Python worker failed to connect back"


def started(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """What `start` has started last. Of other errors its user hears in the usual way, when it waits for the query."""
    for _ in range(STARTS):
        query = start()
        while query.isActive and query.status["message"].startswith("Initializing"):
            time.sleep(0.02)
        if (error := query.exception()) is None or LATE_PYTHON not in str(error):
            break
    return query
