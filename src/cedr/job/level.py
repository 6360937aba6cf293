"""`[consistency]`: how long the query blocks and how long it remembers, as in `Stream.with_consistency`."""

from typing import cast, get_args

from cedr.arguments import LEVELS
from cedr.job.section import LENGTH, TEXT, Section
from cedr.plan.latency import Latency
from cedr.plan.nodes.align import Flavour
from cedr.stream import Stream

KEYS = {"level": TEXT, "block": LENGTH, "remember": LENGTH, "flavour": TEXT, "latency": TEXT}


def at_level(section: Section, stream: Stream) -> Stream:
    section.check_keys(KEYS)
    section.choice("level", tuple(LEVELS))
    section.choice("flavour", get_args(Flavour))
    latency = section.choice("latency", get_args(Latency))
    if "level" in section and (also := section.pick("block", "remember")):
        key = next(iter(also))
        raise section.mistake(f"level cannot be combined with block or remember; leave {key} out", key)
    with section.about():
        if given := section.pick("level", "block", "remember", "flavour"):
            stream = stream.with_consistency(**given)
        return stream.with_latency(cast(Latency, latency)) if latency else stream
