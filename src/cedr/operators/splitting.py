"""The state of an operator, cut by the hash of the keys of its rows: what one of several cells goes on with.

`part_of(operator, state, cut)` takes a snapshot and returns the snapshot of a part. Rows, tuples and end points of
other parts are dropped, and indices of payloads and keys keep only what is used. What holds for all rows is the same in
every part: progress, promises, the highest time seen. Numbers keep their order, so what is sorted stays sorted.

Rows are cut by the columns that their exchange has hashed, under the names that they have at the operator. A state
whose rows do not show these columns any more, or that consists of sums over many keys, cannot be cut: a
`CannotSplitError` says why. To find out, cut the state of a fresh operator.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.chunk import VS, Times
from cedr.columnar.sharding import hashes_of
from cedr.columnar.state import State
from cedr.kernels.automata import places as pl_
from cedr.operators.aggregate import AggregateOperator
from cedr.operators.align import AlignOperator
from cedr.operators.automata.automaton import AutomatonOperator
from cedr.operators.automata.places import PlacesOperator
from cedr.operators.base import Operator
from cedr.operators.chop import ChopOperator
from cedr.operators.clip import ClipOperator
from cedr.operators.finalize.finalize import FinalizeOperator
from cedr.operators.fused import FusedOperator
from cedr.operators.guard import GuardOperator
from cedr.operators.join import JoinKeys, JoinOperator
from cedr.operators.levels import LevelOperator
from cedr.operators.merge.r2 import R2
from cedr.operators.merge.r3 import R3
from cedr.operators.outer_join import OuterJoinOperator, SemiAntiJoinOperator
from cedr.operators.patterns.matcher import MatchOperator
from cedr.operators.patterns.single import SingleEventOperator
from cedr.operators.session import SessionOperator
from cedr.operators.stateless import AlterLifetimeOperator, ProjectOperator, SelectOperator, UnionOperator
from cedr.operators.top_k import TopKOperator
from cedr.operators.values import IndexCodec
from cedr.operators.windows import DeletesOperator
from cedr.temporal.errors import CedrError

Mask = np.ndarray[Any, np.dtype[np.bool_]]

BY_START = "by start"
"""Rows are cut by the hash of their start."""
Columns = tuple[frozenset[str], ...] | str | None
"""How the rows of an input are cut: by the hash of columns, each with all its names, or by start. None: in a way that
cannot be read off the rows."""


class CannotSplitError(CedrError):
    """The state of an operator cannot be cut."""


@dataclass(frozen=True)
class Cut:
    """A part of the hash, from `begin` to before `end` of its upper half; and for each input by what it is hashed."""

    begin: int
    end: int
    inputs: Sequence[Columns]

    def holds(self, port: int, rows: pl.DataFrame) -> Mask:
        """Which rows are in it; they have columns of an input."""
        columns = self.inputs[port]
        if columns is None or isinstance(columns, str):
            if columns == BY_START and VS in rows.columns:
                return self.holds_keys(rows, None)
            raise CannotSplitError("its rows do not show by what they are partitioned")
        found = [sorted(column & set(rows.columns))[:1] for column in columns]
        if not found or not all(found):
            raise CannotSplitError("its keys do not contain the columns by which rows are partitioned")
        return self.holds_keys(rows, tuple(name for (name,) in found))

    def holds_keys(self, rows: pl.DataFrame, names: tuple[str, ...] | None) -> Mask:
        """Which rows are in it, by the hash of these columns, or of their start."""
        upper = hashes_of(rows, names) >> np.uint64(32)
        return (upper >= np.uint64(self.begin)) & (upper < np.uint64(self.end))

    def swapped(self) -> "Cut":
        return Cut(self.begin, self.end, self.inputs[::-1])


class Kept:
    """Which numbers of an index stay, and their new numbers."""

    def __init__(self, mask: Mask) -> None:
        self.mask, self.numbers = mask, np.cumsum(mask) - 1

    @staticmethod
    def used(size: int, *numbers: Times) -> "Kept":
        mask = np.zeros(size, dtype=np.bool_)
        for some in numbers:
            mask[some] = True
        return Kept(mask)

    def rows(self, rows: pl.DataFrame) -> pl.DataFrame:
        return rows.filter(pl.Series(self.mask)) if rows.width else rows

    def holds(self, numbers: Times, without: bool = False) -> Mask:
        """Which of these numbers stay; negative ones, which are none, if `without`."""
        found = np.full(len(numbers), without)
        found[numbers >= 0] = self.mask[numbers[numbers >= 0]]
        return found

    def of(self, numbers: Times) -> Times:
        found = numbers.copy()
        found[numbers >= 0] = self.numbers[numbers[numbers >= 0]]
        return found

    def times(self, times: Times) -> Times:
        """Times by number; the newest numbers may have none yet."""
        return times[self.mask[: len(times)]]


@singledispatch
def part_of(operator: Operator, state: State, cut: Cut) -> State:
    """The part of a snapshot; see the module."""
    raise CannotSplitError(WHOLE.get(type(operator).__name__, "it keeps its state as a whole"))


WHOLE = {
    "SortOperator": "it sorts all rows together",
    "R0": "it merges one event at a time",
    "R1": "it compares the order of all events at one time",
    "R4": "it keeps linked lists of ends",
    "R3Naive": "it is made for comparisons only",
    "MergeByOperator": "its copies come and go",
    "IterateOperator": "it is a loop",
    "ReachOperator": "it keeps the trees of a graph",
    "BitemporalMatchOperator": "it evaluates all keys together",
    "LookupOperator": "it is made for loops",
}
"""Operators whose state stays whole, and why. Their stages keep the cells that they have."""


# --- operators that keep no rows -------------------------------------------------------------------------------------


@part_of.register(SelectOperator)
@part_of.register(ProjectOperator)
@part_of.register(UnionOperator)
@part_of.register(AlterLifetimeOperator)
@part_of.register(FusedOperator)
@part_of.register(ChopOperator)
@part_of.register(DeletesOperator)
@part_of.register(SingleEventOperator)
@part_of.register(GuardOperator)
def _(operator: Operator, state: State, cut: Cut) -> State:
    return state


# --- checking and waiting --------------------------------------------------------------------------------------------


@part_of.register
def _(operator: FinalizeOperator, state: State, cut: Cut) -> State:
    chains = state["chains"]
    payloads, held, store = chains["index"], chains["held"], chains["store"]
    if cut.inputs[0] == BY_START:
        own_edges, own_tuples = (cut.holds(0, pl.DataFrame({VS: vs})) for vs in (held["vs"], store[0]))
    else:
        own = cut.holds(0, payloads)
        own_edges, own_tuples = own[held["pid"]], own[store[1]]
    held = {name: column[own_edges] for name, column in held.items()}
    store = tuple(column[own_tuples] for column in store)
    if payloads.width:
        kept = Kept.used(payloads.height, held["pid"], store[1])
        payloads, held = kept.rows(payloads), {**held, "pid": kept.of(held["pid"])}
        store = (store[0], kept.of(store[1]), *store[2:])
    return {**state, "chains": {**chains, "index": payloads, "held": held, "store": store}}


@part_of.register
def _(operator: AlignOperator, state: State, cut: Cut) -> State:
    held = state["held"]
    return {**state, "held": held.filter(pl.Series(cut.holds(0, held)))}


# --- snapshots of groups ---------------------------------------------------------------------------------------------


@part_of.register
def _(operator: AggregateOperator, state: State, cut: Cut) -> State:
    groups = Kept(cut.holds(0, state["groups"]))
    state = of_groups(state, groups)
    live_rows = state["live_rows"]
    state |= {
        "live": {name: live_part(live, groups) for name, live in state["live"].items()},
        "extremes": {name: live_part(live, groups) for name, live in state["extremes"].items()},
        "live_rows": None if live_rows is None else live_part(live_rows, groups),
    }
    return with_codecs(operator, state)


def with_codecs(operator: AggregateOperator, state: State) -> State:
    """With values that are numbered only as far as they were emitted."""
    words, codecs, at = state["emitted"]["words"].copy(), dict(state["codecs"]), 0
    for name, codec in operator.codecs.items():
        if isinstance(codec, IndexCodec):
            index = codecs[name]["index"]
            kept = Kept.used(index.height, words[:, at])
            words[:, at] = kept.of(words[:, at])
            codecs[name] = {**codecs[name], "index": kept.rows(index)}
        at += codec.width
    return {**state, "codecs": codecs, "emitted": {**state["emitted"], "words": words}}


@part_of.register
def _(operator: TopKOperator, state: State, cut: Cut) -> State:
    state = of_groups(state, groups := Kept(cut.holds(0, state["groups"])))
    live, words = state["live"], state["emitted"]["words"].copy()
    tuples = tuples_part(live["tuples"], groups)
    kept = Kept.used(live["index"].height, tuples["value"], words[:, 0])
    words[:, 0] = kept.of(words[:, 0])
    tuples = {**tuples, "value": kept.of(tuples["value"])}
    live = {**live, "index": kept.rows(live["index"]), "tuples": tuples}
    return {**state, "live": live, "emitted": {**state["emitted"], "words": words}}


def of_groups(state: State, groups: Kept) -> State:
    """What all operators have that answer snapshot by snapshot."""
    return {
        **state,
        "groups": groups.rows(state["groups"]),
        "endpoints": arrays_part(state["endpoints"], groups),
        **({"later": arrays_part(state["later"], groups)} if "later" in state else {}),
        "emitted": emitted_part(state["emitted"], groups),
        "front": front_part(state["front"], groups),
    }


@part_of.register
def _(operator: LevelOperator, state: State, cut: Cut) -> State:
    payloads = Kept(cut.holds(0, state["payloads"]))
    return {
        **state,
        "payloads": payloads.rows(state["payloads"]),
        "endpoints": arrays_part(state["endpoints"], payloads),
        "open": arrays_part(state["open"], payloads),
        "emitted": emitted_part(state["emitted"], payloads),
        "front": front_part(state["front"], payloads),
    }


# --- tuples by key ---------------------------------------------------------------------------------------------------


@part_of.register
def _(operator: JoinOperator, state: State, cut: Cut) -> State:
    keys = kept_keys(operator.keys, state["keys"], cut)
    return {
        **state,
        "keys": keys_part(state["keys"], keys),
        "sides": [stored_part(side, keys, "payloads") for side in state["sides"]],
        "front": front_part(state["front"], keys),
    }


@part_of.register
def _(operator: SemiAntiJoinOperator, state: State, cut: Cut) -> State:
    keys = kept_keys(operator.keys, state["keys"], cut)
    own = Kept(cut.holds(0, state["payloads"][0]))
    emitted = emitted_part(state["emitted"], own, renumber=False)
    tuples = [tuples_part(stored, keys) for stored in state["tuples"]]
    sizes = [payloads.height for payloads in state["payloads"]]
    left = Kept.used(sizes[0], tuples[0]["value"], emitted["g"])
    right = Kept.used(sizes[1], tuples[1]["value"][tuples[1]["value"] >= 0])
    return {
        **state,
        "keys": keys_part(state["keys"], keys),
        "payloads": [kept.rows(rows) for kept, rows in zip((left, right), state["payloads"], strict=True)],
        "tuples": [{**t, "value": kept.of(t["value"])} for kept, t in zip((left, right), tuples, strict=True)],
        "emitted": {**emitted, "g": left.of(emitted["g"])},
        "front": front_part(state["front"], keys),
    }


@part_of.register
def _(operator: OuterJoinOperator, state: State, cut: Cut) -> State:
    parts = [
        part_of(part, its_state, cut.swapped() if flipped else cut)
        for part, its_state, flipped in zip(operator.parts, state["parts"], operator.flipped, strict=True)
    ]
    return {**state, "parts": parts}


@part_of.register
def _(operator: ClipOperator, state: State, cut: Cut) -> State:
    keys = kept_keys(operator.keys, state["keys"], cut)
    state = {**state, "keys": keys_part(state["keys"], keys), "starts": tuples_part(state["starts"], keys)}
    return with_members(state, "tuples", keys)


@part_of.register
def _(operator: SessionOperator, state: State, cut: Cut) -> State:
    groups = Kept(cut.holds(0, state["groups"]))
    return with_members({**state, "groups": groups.rows(state["groups"])}, "members", groups)


def with_members(state: State, name: str, keys: Kept) -> State:
    """Tuples with payloads. What was emitted follows from them."""
    return {
        **state,
        **stored_part(state, keys, "payloads", name),
        "emitted": None,
        "front": front_part(state["front"], keys),
    }


# --- patterns --------------------------------------------------------------------------------------------------------


@part_of.register
def _(operator: MatchOperator, state: State, cut: Cut) -> State:
    """An event goes where its row goes. A match of events without key that waits is looked for in all parts; it is
    found in one."""
    keys = kept_keys(operator.keys, state["keys"], cut, operator.entry.ports.tolist())
    held, ports = state["events"], operator.entry.ports
    events, payloads = held["events"], list(held["payloads"])
    own = np.zeros(len(events["g"]), dtype=np.bool_)
    slots = events["slot"].copy()
    for port, stored in enumerate(payloads):
        rows = stored["pieces"]
        if rows is None:
            rows = pl.DataFrame(schema=operator.events.payloads[port].schema)
        mine = ports[events["variant"]] == port
        own[mine] = cut.holds(port, rows)[slots[mine]]
        kept = Kept.used(rows.height, slots[mine & own])
        slots[mine & own] = kept.of(slots[mine & own])
        payloads[port] = {**stored, "pieces": kept.rows(rows), "size": int(kept.mask.sum())}
    events = {**events, "g": keys.of(events["g"]), "slot": slots}
    events = {name: column[own] if len(column) else column for name, column in events.items()}
    waiting, limits = state["waiting"], state["emission"]["limits"]
    stays = keys.holds(waiting["g"], without=True)
    if limits["keyed"]:
        limits = {**limits, **{name: keys.times(limits[name]) for name in ("front", "own_released", "settled")}}
    return {
        **state,
        "keys": keys_part(state["keys"], keys),
        "events": {**held, "events": events, "payloads": payloads},
        "waiting": {**{n: column[stays] for n, column in waiting.items()}, "g": keys.of(waiting["g"][stays])},
        "consumed": {number: grouped_part(some, keys) for number, some in state["consumed"].items()},
        "emission": {**state["emission"], "limits": limits},
        "front": front_part(state["front"], keys),
    }


def grouped_part(columns: State, keys: Kept) -> State:
    """Columns by group `g`; those without a key are needed in the part that has their events, and ignored in others."""
    stays = keys.holds(columns["g"], without=True)
    kept = {name: column[stays] for name, column in columns.items()}
    return {**kept, "g": keys.of(kept["g"])}


# --- automata --------------------------------------------------------------------------------------------------------


@part_of.register
def _(operator: AutomatonOperator, state: State, cut: Cut) -> State:
    groups = Kept(cut.holds(0, state["groups"]))
    stays = groups.mask[state["events"][:, pl_.G]]
    events = state["events"][stays]
    events[:, pl_.G] = groups.of(events[:, pl_.G])
    return {
        **state,
        "groups": groups.rows(state["groups"]),
        "events": events,
        "reach": state["reach"][stays],
        "front": front_part(state["front"], groups),
    }


@part_of.register
def _(operator: PlacesOperator, state: State, cut: Cut) -> State:
    groups = Kept(cut.holds(0, state["groups"]))
    rows = state["rows"][groups.mask[state["rows"][:, pl_.G]]]
    contents = Kept.used(state["contents"].height, rows[:, pl_.CONTENT])
    rows[:, pl_.G], rows[:, pl_.CONTENT] = groups.of(rows[:, pl_.G]), contents.of(rows[:, pl_.CONTENT])
    kept = {"groups": groups.rows(state["groups"]), "contents": contents.rows(state["contents"])}
    return {**state, **kept, "rows": rows}


# --- merges ----------------------------------------------------------------------------------------------------------


@part_of.register
def _(operator: R2, state: State, cut: Cut) -> State:
    nothing_pending(state)
    events = Kept(cut.holds(0, state["events"]))
    return {**state, "events": events.rows(state["events"]), "counts": state["counts"][events.mask]}


@part_of.register
def _(operator: R3, state: State, cut: Cut) -> State:
    if type(operator) is not R3:
        raise CannotSplitError(WHOLE["R3Naive"])
    nothing_pending(state)
    nodes = Kept(cut.holds(0, state["index"]))
    by_node = {name: state[name][nodes.mask] for name in ("start", "alive", "out", "ends")}
    return {**state, **by_node, "index": nodes.rows(state["index"]), "size": int(nodes.mask.sum())}


def nothing_pending(state: State) -> None:
    """Output waits in a merge only if its last chunk failed."""
    assert state["pending"] is None


# --- parts of states -------------------------------------------------------------------------------------------------


def kept_keys(keys: JoinKeys, state: State, cut: Cut, ports: Sequence[int] = (0, 1)) -> Kept:
    """The keys of several inputs that are in a part. `ports`: the input behind each list of names."""
    index, partitioned = state["index"], []
    for port, names in zip(ports, keys.names, strict=True):
        columns = cut.inputs[port]
        if columns is None or isinstance(columns, str) or not all(column & set(names) for column in columns):
            raise CannotSplitError("its keys do not contain the columns by which rows are partitioned")
        partitioned.append(columns)
    return Kept(cut.holds_keys(index, tuple(index.columns[place] for place in common_places(keys, partitioned))))


def common_places(keys: JoinKeys, partitioned: Sequence[Sequence[Collection[str]]]) -> list[int]:
    """For each column of the hash, the place in the key where all inputs have it. `partitioned`: by input, the names of
    each column."""
    found = []
    for of_column in zip(*partitioned, strict=True):
        places = [
            place
            for place, names in enumerate(zip(*keys.names, strict=True))
            if all(name in column for name, column in zip(names, of_column, strict=True))
        ]
        if not places:
            raise CannotSplitError("its inputs are partitioned by different parts of the key")
        found.append(places[0])
    return found


def keys_part(state: State, keys: Kept) -> State:
    return {**state, "index": keys.rows(state["index"]), "seen": min(state["seen"], int(keys.mask.sum()))}


def tuples_part(tuples: State, keys: Kept) -> State:
    """Stored tuples by key."""
    stays = keys.mask[tuples["key"]]
    kept = {name: column[stays] for name, column in tuples.items()}
    return {**kept, "key": keys.of(kept["key"])}


def stored_part(state: State, keys: Kept, index: str, name: str = "tuples") -> State:
    """Tuples by key, and their payloads in an index."""
    tuples = tuples_part(state[name], keys)
    payloads = Kept.used(state[index].height, tuples["value"])
    tuples = {**tuples, "value": payloads.of(tuples["value"])}
    return {**state, name: tuples, index: payloads.rows(state[index])}


def live_part(state: State, groups: Kept) -> State:
    """Live tuples; without rows in the index, values represent themselves."""
    if state["index"].height:
        return stored_part(state, groups, "index")
    return {**state, "tuples": tuples_part(state["tuples"], groups)}


def arrays_part(arrays: tuple[Times, ...], groups: Kept) -> tuple[Times, ...]:
    """Arrays of which the first is the group."""
    stays = groups.mask[arrays[0]]
    return (groups.of(arrays[0][stays]), *(array[stays] for array in arrays[1:]))


def emitted_part(state: State, groups: Kept, renumber: bool = True) -> State:
    """What was emitted, by group."""
    stays = groups.mask[state["g"]]
    g = state["g"][stays]
    emitted = {name: state[name][stays] for name in ("start", "end", "words")}
    return {**state, **emitted, "g": groups.of(g) if renumber else g}


def front_part(state: State, groups: Kept) -> State:
    """Fronts by group, or one for all."""
    own = [None if times is None else groups.times(times) for times in state["own"]]
    keyed = any(times is not None for times in own)
    return {**state, "own": own, "settled": groups.times(state["settled"]) if keyed else state["settled"]}
