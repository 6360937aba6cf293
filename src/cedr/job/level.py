"""`[consistency]`: how long the query waits and how long it repairs, as `Stream.with_consistency` has it."""

from typing import get_args

from cedr.arguments import LEVELS
from cedr.job.section import LENGTH, TEXT, Section
from cedr.operators.base import Latency
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
        raise section.mistake(f"give a level, or block and remember, not both; leave {key} out", key)
    with section.about():
        if said := section.pick("level", "block", "remember", "flavour"):
            stream = stream.with_consistency(**said)
        return stream.with_latency(latency) if latency else stream  # type: ignore[arg-type]
