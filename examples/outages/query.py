"""Either office's report counts, unless the work was announced."""

from cedr import Stream


def outages(monitors: Stream, phones: Stream, announced: Stream) -> Stream:
    return monitors.union(phones).distinct().difference(announced)
