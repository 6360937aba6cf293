"""Machines that are installed, shut down and restarted, and how tests write them down."""

import cedr
from cedr import Insert, Row

FEED = cedr.source("machines", {"kind": str, "m": str, "load": int}, types="kind")


def query(text):
    return cedr.query(text, FEED)


def event(vs, kind, m="a", load=0):
    return Insert(vs, vs + 1, Row(kind=kind, m=m, load=load))


def events(*rows):
    return [event(*row) for row in rows]


def text(*lines):
    return "\n".join(lines)
