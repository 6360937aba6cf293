"""The definitions and theorems of the papers, on the running engine.

CEDR's Definitions 3 to 5 (consistency levels) are asked of queries; Definitions 6 to 9, Theorems 7 to 11 and the
invariants of *Operator Algorithm Design for Speculative Stream Processing* of queries and of the count without groups,
whose snapshots lie one after the other as in the paper.
"""

from collections import Counter

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle_check import arrivals_of
from plan.catalogue import QUERIES, SCHEMA, a, b, few, payloads

import cedr
from cedr import reference as ref
from cedr import testing
from cedr.columnar.chunk import chunk_of
from cedr.operators.aggregate import AggregateOperator
from cedr.plan import aggregates as agg
from cedr.temporal import (
    END,
    INF,
    MIDDLE,
    MIN,
    STRONG,
    WEAK,
    Adjust,
    Consistency,
    Cti,
    History,
    Insert,
    Row,
    canonical,
    closed_up_to,
    ordered,
    perfect,
    up_to,
    validate,
)
from cedr.temporal.consistency import middle_violation, strong_violation, weak_violation
from cedr.temporal.stream import ctis, data

share = settings(max_examples=max(settings.default.max_examples // 12, 1))
"""For laws over all queries and latencies."""

LATENCIES = ["perfect", "ordered", "eager"]
UNARY = ["agg without group", "top_k", "distinct", "coalesce", "session", "aggregate"]
BINARY = ["difference", "join where", "left join", "anti join", "clip"]


def push(engine, port, elements):
    return engine.push("ab"[port], chunk_of(elements, SCHEMA)).elements()


def emitted(stream, arrivals) -> list:
    """All that a query puts out for slices `(port, elements)`."""
    engine = stream.engine()
    return [e for port, elements in arrivals for e in push(engine, port, elements)]


def one_by_one(stream, elements) -> list[list]:
    """What a query of one source puts out after each element."""
    engine = stream.engine()
    return [push(engine, 0, [e]) for e in elements]


def flat(outputs) -> list:
    return [e for produced in outputs for e in produced]


# --- CEDR, Definitions 3 to 5 --------------------------------------------------------------------------------------


@st.composite
def equivalent_arrivals(draw, ports: int):
    """Two streams of each of the same histories, closed, in slices, the ports taking turns."""
    pairs = [draw(testing.same_history(payloads, max_size=4, closed=True)) for _ in range(ports)]
    return [draw(arrivals_of([pair[i] for pair in pairs])) for i in (0, 1)]


@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
@share
@given(choice=st.data())
def test_definition_4_middle_outputs_are_equivalent_to_common_sync_points(name, latency, choice):
    query = QUERIES[name]
    stream = query.stream().with_latency(latency).with_consistency(MIDDLE)
    one, two = (emitted(stream, arrivals) for arrivals in choice.draw(equivalent_arrivals(query.ports)))
    assert middle_violation(one, two) is None


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
@few
@given(choice=st.data())
def test_definition_3_strong_outputs_are_ordered_too(name, choice):
    """At the latency of the same name: ordered input, which Align sees to, gives ordered output."""
    query = QUERIES[name]
    stream = query.stream().with_latency("ordered").with_consistency(STRONG)
    one, two = (emitted(stream, arrivals) for arrivals in choice.draw(equivalent_arrivals(query.ports)))
    assert strong_violation(one, two) is None


@pytest.mark.parametrize("name", UNARY)
@few
@given(choice=st.data())
def test_definition_3_holds_for_a_strong_query_as_users_write_it(name, choice):
    stream = QUERIES[name].stream().with_consistency("strong")
    one, two = (emitted(stream, arrivals) for arrivals in choice.draw(equivalent_arrivals(1)))
    assert strong_violation(one, two) is None


P, Q = Row(m=0, v=2), Row(m=1, v=2)

# a     |#|  |#|        is emitted first, up to a CTI; b may still change all of it
# b     |#|
ONE_SIDE_FIRST = [
    ("a", [Insert(1, 2, P), Insert(3, 4, P), Cti(9)]),
    ("b", [Insert(1, 2, P), Cti(9)]),
]
# a   |##########       each b has a partner that starts later than the next b
#            |###
# b     |########
#          |#####
PAIRS = [
    ("a", [Insert(0, 10, P), Insert(5, 10, P), Cti(20)]),
    ("b", [Insert(2, 10, P), Cti(3)]),
    ("b", [Insert(3, 10, P), Cti(20)]),
]
# a   |##########       the part without partner starts first, but ends only where b starts
# b        |#####
PARTNER_LATER = [("a", [Insert(1, 9, P), END]), ("b", [Insert(5, 9, P), END])]
# a   |  |    |         one session: the third event, too, lives from the first start on
ONE_SESSION = [
    ("a", [Insert(1, 2, P), Cti(2)]),
    ("a", [Insert(3, 4, P), Cti(4)]),
    ("a", [Insert(6, 7, P), Cti(20)]),
]

STRONG_CASES = {
    "anti join": (a().join(b(), on="m", how="anti"), ONE_SIDE_FIRST),
    "difference": (a().difference(b()), ONE_SIDE_FIRST),
    "clip": (a().clip(b(), on="m"), PAIRS),
    "join": (a().join(b(), on="m"), PAIRS),
    "left join": (a().join(b(), on="m", how="left"), PARTNER_LATER),
    "union": (a().union(b()), ONE_SIDE_FIRST),
    "session": (a().session(4), ONE_SESSION),
}


@pytest.mark.parametrize("latency", ["perfect", "ordered"])
@pytest.mark.parametrize("name", STRONG_CASES)
def test_definition_3_strong_waits_for_both_inputs(name, latency):
    query, arrivals = STRONG_CASES[name]
    engine = query.with_latency(latency).with_consistency(STRONG).engine()
    out = [e for source, elements in arrivals for e in engine.push(source, chunk_of(elements, SCHEMA)).elements()]
    assert ordered(data(out))


@pytest.mark.parametrize("name", ["anti join", "difference"])
def test_a_strong_answer_is_never_taken_back(name):
    query, arrivals = STRONG_CASES[name]
    engine = query.with_consistency(STRONG).engine()
    out = [e for source, elements in arrivals for e in engine.push(source, chunk_of(elements, SCHEMA)).elements()]
    assert data(out) == [Insert(3, 4, P)]


def cut_at_sync_points(elements) -> list[list]:
    """Slices as small as they can be when nothing of a slice lies before anything of an earlier one.

    sync     3 1 2 | 4 | 6 5 | 7          a weak query gives up on nothing: all disorder arrives at once
    """
    slices, rest = [[]], list(elements)
    for i, e in enumerate(rest):
        slices[-1].append(e)
        past = max((x.sync for x in data(rest[: i + 1])), default=MIN)
        if all(x.sync >= past for x in data(rest[i + 1 :])):
            slices.append([])
    return slices


@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("name", ["agg without group", "distinct", "top_k", "session"])
@share
@given(pair=testing.same_history(payloads, max_size=5, closed=True))
def test_definition_5_weak_outputs_are_equivalent_at_common_sync_points(name, latency, pair):
    """Nothing is given up on where all disorder lies between two cuts; then weak keeps its level as it is defined."""
    stream = QUERIES[name].stream().with_latency(latency).with_consistency(WEAK)
    outputs = []
    for elements in pair:
        engine = stream.engine()
        outputs.append(flat(push(engine, 0, piece) for piece in cut_at_sync_points(elements)))
        assert engine.take_late().is_empty()
    assert weak_violation(*outputs) is None


@pytest.mark.parametrize("latency", LATENCIES)
@few
@given(elements=testing.streams(payloads, max_size=8, adjusts=False, closed=True), choice=st.data())
def test_definition_5_weak_answers_as_if_what_it_gave_up_on_had_never_been_sent(latency, elements, choice):
    stream = a().top_k(1, by="v").with_latency(latency).with_consistency(WEAK)
    engine = stream.engine()
    one, kept = [], []
    for e in elements:
        one += push(engine, 0, [e])
        kept += [e] if engine.take_late().is_empty() else []
    other = choice.draw(testing.streams_of(canonical(kept), adjusts=False, ordered=True, closed=True))
    assert weak_violation(one, flat(one_by_one(stream, other))) is None


# --- Speculative, Definition 6 -------------------------------------------------------------------------------------

KEEP_LIFETIMES = ["agg without group", "top_k", "distinct", "coalesce"]


@pytest.mark.parametrize("name", KEEP_LIFETIMES)
@few
@given(elements=testing.streams(payloads, ordered=True, closed=True))
def test_definition_6_ordered_latency_preserves_order(name, elements):
    out = flat(one_by_one(QUERIES[name].stream().with_latency("ordered"), elements))
    assert ordered(data(out))
    assert closed_up_to(out) == INF


# Of v = 2 nothing comes before 3, but that is so of all: the row of v = 3 is open and began earlier.
#
#   v=3  0 ──────────────────→
#   v=2     1 ── 2
#   CTI              3
OPEN_ELSEWHERE = [Insert(0, INF, Row(m=0, v=3)), Insert(1, 2, Row(m=0, v=2)), Cti(3), Cti(INF)]


@pytest.mark.parametrize("name", KEEP_LIFETIMES)
@few
@example(elements=OPEN_ELSEWHERE)
@given(elements=testing.streams(payloads, ordered=True, adjusts=False, closed=True))
def test_definition_6_perfect_latency_preserves_perfectness(name, elements):
    out = flat(one_by_one(QUERIES[name].stream().with_latency("perfect"), elements))
    assert perfect(data(out))
    assert closed_up_to(out) == INF


SELECTED_GROUPS = {
    "distinct": lambda s: s.where(pl.col("v") > 1).distinct(),
    "agg": lambda s: s.where(pl.col("v") > 1).group_by("v").agg(n=cedr.count()),
    "top_k": lambda s: s.where(pl.col("v") > 1).group_by("v").top_k(1, by="m"),
    "ATMOST": lambda s: cedr.query("EVENT E WHEN ATMOST(1, s x, 2) WHERE x.v > 1 AND CorrelationKey(v, EQUAL)", s),
}


@pytest.mark.parametrize("name", SELECTED_GROUPS)
@few
@example(elements=OPEN_ELSEWHERE)
@given(elements=testing.streams(payloads, ordered=True, adjusts=False, closed=True))
def test_definition_6_perfect_latency_of_groups_that_a_condition_selects(name, elements):
    """A select promises that nothing comes of values it rejects; that does not put the other groups ahead."""
    stream = SELECTED_GROUPS[name](cedr.source("s", SCHEMA)).with_latency("perfect")
    engine = stream.engine()
    out = [e for element in elements for e in engine.push("s", chunk_of([element], SCHEMA)).elements()]
    assert perfect(data(out))
    assert closed_up_to(out) == INF


# --- Definitions 7 and 8 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("name", UNARY)
@share
@given(elements=testing.streams(payloads, closed=True))
def test_definition_7_a_closed_input_gives_the_oracles_answer(name, latency, elements):
    query = QUERIES[name]
    out = flat(one_by_one(query.stream().with_latency(latency), elements))
    testing.assert_same(canonical(out), query.oracle(canonical(elements)))


@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("name", UNARY)
@share
@given(elements=testing.streams(payloads, ordered=True))
def test_definition_8_as_printed_what_is_before_a_cti_gives_the_oracles_answer(name, latency, elements):
    """For ordered streams: of others the elements before t may miss a link of a chain."""
    query = QUERIES[name]
    for t in ctis(elements):
        restricted = up_to(elements, t)
        out = flat(one_by_one(query.stream().with_latency(latency), [*restricted, END]))
        testing.assert_same(canonical(out), query.oracle(canonical(restricted)))


@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("name", KEEP_LIFETIMES)
@share
@given(elements=testing.streams(payloads))
def test_definition_8_at_each_cti_the_output_is_right_up_to_its_own(name, latency, elements):
    """Except at perfect latency, the output has come as far as the input.

    input      ##########|  insert [0, ∞), cti 10
    ordered    ##########|  insert [0, ∞), cti 10
    perfect    |            the answer has no end yet: nothing can be emitted, so nothing can be promised
    """
    query = QUERIES[name]
    out = []
    for i, produced in enumerate(one_by_one(query.stream().with_latency(latency), elements), start=1):
        out += produced
        progress, settled = closed_up_to(elements[:i]), closed_up_to(out)
        assert settled <= progress if latency == "perfect" else settled == progress
        testing.assert_same(canonical(out).to(settled), query.oracle(canonical(elements[:i])).to(settled))
    validate(out)


# --- Definition 9, Lemma 6, Theorem 7 ------------------------------------------------------------------------------


def strongly(name):
    return QUERIES[name].stream().with_latency("ordered").with_consistency(STRONG)


def ultra(name):
    return QUERIES[name].stream().with_latency("perfect").with_consistency(STRONG, flavour="perfect")


@pytest.mark.parametrize("name", UNARY)
@few
@given(elements=testing.streams(payloads))
def test_definition_9_a_strong_output_is_ordered_for_any_input(name, elements):
    assert ordered(data(flat(one_by_one(strongly(name), elements))))


@pytest.mark.parametrize("name", UNARY)
@few
@given(elements=testing.streams(payloads))
def test_definition_9_an_ultra_consistent_output_is_perfect_for_any_input(name, elements):
    assert perfect(data(flat(one_by_one(ultra(name), elements))))


@pytest.mark.parametrize("way", [strongly, ultra])
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
@share
@given(choice=st.data())
def test_theorem_7_a_strong_query_emits_only_when_a_cti_arrives(name, way, choice):
    streams = [choice.draw(testing.streams(payloads, max_size=4)) for _ in range(QUERIES[name].ports)]
    engine = way(name).engine()
    for port, elements in choice.draw(arrivals_of(streams)):
        for e in elements:
            rows = data(push(engine, port, [e]))
            assert isinstance(e, Cti) or rows == []


# --- Definitions 10 and 11, Theorems 8 and 9 -----------------------------------------------------------------------

#   earlier and more    eager >= ordered >= perfect >= ultra
#                                ordered >= strong  >= ultra
LADDER = [
    ("eager", "ordered"),
    ("ordered", "perfect"),
    ("perfect", "ultra"),
    ("ordered", "strong"),
    ("strong", "ultra"),
]


def rungs(name):
    ways = {latency: QUERIES[name].stream().with_latency(latency) for latency in LATENCIES}
    return {**ways, "strong": strongly(name), "ultra": ultra(name)}


def watermark(out) -> int:
    """Definition 10, by starts: how far the output has come.

    The paper takes the largest end: its ordered operators emit no end before it is past, ours the end known so far.
    """
    return max((e.vs for e in data(out)), default=MIN)


@pytest.mark.parametrize("name", ["agg without group", "top_k"])
@few
@given(elements=testing.streams(payloads, closed=True))
def test_theorem_8_the_ladder_of_latencies(name, elements):
    outputs = {rung: one_by_one(stream, elements) for rung, stream in rungs(name).items()}
    for i in range(1, len(elements) + 1):
        tau = {rung: watermark(flat(out[:i])) for rung, out in outputs.items()}
        assert all(tau[earlier] >= tau[later] for earlier, later in LADDER), (i, tau)


@pytest.mark.parametrize("name", ["agg without group", "top_k"])
@few
@given(elements=testing.streams(payloads, closed=True))
def test_theorem_9_lower_latency_never_emits_less(name, elements):
    outputs = {rung: one_by_one(stream, elements) for rung, stream in rungs(name).items()}
    for i in range(1, len(elements) + 1):
        size = {rung: len(data(flat(out[:i]))) for rung, out in outputs.items()}
        assert all(size[earlier] >= size[later] for earlier, later in LADDER), (i, size)


# --- Theorems 10 and 11, and the invariants ------------------------------------------------------------------------
#
#   input     |########|     |  |###            snapshots 1 .. 5 of the history so far
#   tau                      ^                  the latest start, or the CTI
#   emitted      |########|     |                  those that end by tau: they are in POS until the CTI has passed them
#   waiting                     ]  ]            the ends past tau: ECQ


class Count:
    """The count without groups at perfect latency, fed one element at a time, with the paper's expectation."""

    def __init__(self) -> None:
        self.operator = AggregateOperator(SCHEMA, (), {"n": agg.Count()}, "perfect")
        self.arrived, self.out = [], []
        self.tau = MIN

    def take(self, element) -> None:
        self.arrived.append(element)
        self.out += self.operator.process(0, chunk_of([element], SCHEMA)).elements()
        match element:
            case Insert(vs, _, _):
                self.tau = max(self.tau, vs)
            case Cti(t):
                self.tau = max(self.tau, max((v for v in self.history.end_points() if v <= t), default=MIN))

    @property
    def history(self) -> History:
        return canonical(self.arrived)

    @property
    def snapshots(self) -> History:
        return ref.aggregate(self.history, n=ref.count())

    @property
    def cti(self) -> int:
        return closed_up_to(self.out)

    @property
    def synopsis(self) -> History:
        """POS: what was emitted and may change."""
        emitted = self.operator.emitted
        rows = zip(emitted.start.tolist(), emitted.end.tolist(), emitted.words[:, 0].tolist(), strict=True)
        return History((vs, ve, Row(n=n)) for vs, ve, n in rows)

    def ends_past(self, t: int) -> Counter:
        """How many end points lie at each time after t."""
        _, times, copies, *_ = self.operator.endpoints
        return Counter({at: n for at, n in zip(times.tolist(), copies.tolist(), strict=True) if at > t})


@given(testing.streams(payloads, max_size=8, ordered=True, adjusts=False))
def test_theorem_10_perfect_input_gives_exactly_the_snapshots_that_end_by_tau(elements):
    """Invariants τ-O and τ-S-Algorithms: no perfectness preserving operator can have emitted more."""
    count = Count()
    for e in elements:
        count.take(e)
        testing.assert_same(canonical(count.out), History(s for s in count.snapshots if s.ve <= count.tau))
        assert perfect(data(count.out))


@given(testing.streams(payloads, max_size=6))
def test_invariant_tau_o_any_input_gives_the_snapshots_that_end_by_tau_and_those_already_promised(elements):
    """τ of the algorithms is the highest start, or the CTI. What starts before an output CTI is emitted for good: if a
    correction moves its end past τ, it is emitted with that end."""
    count = Count()
    for e in elements:
        promised = count.cti
        count.take(e)
        reached = max(count.tau, closed_up_to(count.arrived))
        expected = History(s for s in count.snapshots if s.ve <= reached or s.vs < promised)
        testing.assert_same(canonical(count.out), expected)


@given(testing.streams(payloads, max_size=6, closed=True))
def test_theorem_11_the_algorithm_is_consistent(elements):
    count = Count()
    for e in elements:
        count.take(e)
    testing.assert_same(canonical(count.out), count.snapshots)


@given(testing.streams(payloads, max_size=6))
def test_invariant_pos_the_synopsis_is_what_was_emitted_and_is_not_settled(elements):
    """Every snapshot in it has the payload of the oracle; what ends before the output CTI goes when that pays."""
    count = Count()
    for e in elements:
        count.take(e)
        emitted = canonical(count.out)
        can_change = History(s for s in count.synopsis if s.ve >= count.cti)
        testing.assert_same(can_change, History(s for s in emitted if s.ve >= count.cti))
        assert count.synopsis - emitted == History()
        assert count.synopsis - count.snapshots == History()


@given(testing.streams(payloads, max_size=6))
def test_invariant_ecq_past_tau_the_end_points_are_the_ends_of_live_tuples(elements):
    count = Count()
    for e in elements:
        count.take(e)
        reached = max(count.tau, closed_up_to(count.arrived))
        assert count.operator.emission.watermark == reached
        assert count.ends_past(reached) == Counter(e.ve for e in count.history if e.ve > reached)


# --- "at a sync point a query may change level" --------------------------------------------------------------------

LEVELS = st.sampled_from([STRONG, MIDDLE, Consistency(block=3, remember=INF)])


@st.composite
def parted(draw):
    """A closed stream in two parts. All of the first lies before the CTI that ends it, all of the second after."""
    elements = draw(testing.streams(payloads, max_size=8, ordered=True, ctis=False, closed=True))
    cut = draw(st.integers(0, len(elements) - 1))
    t = min(e.sync for e in elements[cut:])
    early = [e for e in elements if e.sync < t]
    return [*early, Cti(t)], draw(testing.shuffled(elements[len(early) :]))


@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("name", KEEP_LIFETIMES)
@share
@given(stream=parted(), before=LEVELS, after=LEVELS)
def test_at_a_sync_point_a_query_changes_level_and_goes_on_as_if_it_had_always_had_it(
    name, latency, stream, before, after
):
    """What an eager query has emitted of the future stays emitted; it is the same only *to* what is settled."""
    early, late = stream

    def assert_same_answer():
        settled = closed_up_to(out[1]) if latency == "eager" else INF
        testing.assert_same(canonical(out[0]).to(settled), canonical(out[1]).to(settled))

    query = QUERIES[name].stream().with_latency(latency)
    changed, always = query.with_consistency(before).engine(), query.with_consistency(after).engine()
    out = [push(changed, 0, early), push(always, 0, early)]
    out[0] += query.change_level(changed, after).elements()
    assert_same_answer()
    for e in late:
        out[0] += push(changed, 0, [e])
        out[1] += push(always, 0, [e])
        assert_same_answer()
    validate(out[0])


def test_after_a_change_of_level_align_knows_how_far_the_stream_has_come():
    """At block 3, with 10 the highest start, an event that started at 0 is not held, and neither is its end.

    P   |##############################|     end emitted after the change
    Q                            |#|         highest start 10
    CTI                            |         the level changes here
    """
    query = a().distinct().with_latency("eager")
    level = Consistency(block=3, remember=INF)
    early, end = [Insert(0, INF, P), Insert(10, 11, Q), Cti(11)], Adjust(0, INF, 12, P)
    changed, always = query.engine(), query.with_consistency(level).engine()
    push(changed, 0, early)
    push(always, 0, early)
    query.change_level(changed, level)
    assert push(always, 0, [end]) == [end]
    assert push(changed, 0, [end]) == [end]
