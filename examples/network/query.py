"""A link joins two routers, in that direction; what is reachable is a loop over links that knows how far it is."""

import cedr
from cedr import Stream


def reaches(links: Stream) -> Stream:
    return cedr.reachability(links, start="a", end="b")
