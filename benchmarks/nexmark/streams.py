"""The streams of Nexmark as sources of cedr. Bids may be corrected; an auction lives until it expires."""

from peers.workload import WATERMARK

import cedr


def person() -> cedr.Stream:
    return cedr.source("person", {"id": int, "name": str, "city": str, "state": str}, vs="ts", delay=WATERMARK)


def auction() -> cedr.Stream:
    schema = {"id": int, "seller": int, "category": int}
    return cedr.source("auction", schema, vs="ts", ve="expires", delay=WATERMARK)


def bid(corrected: bool) -> cedr.Stream:
    schema = {"auction": int, "bidder": int, "price": int}
    return cedr.source(
        "bid", schema, vs="ts", times=cedr.Times(ve_new="ve_new" if corrected else None), delay=WATERMARK
    )
