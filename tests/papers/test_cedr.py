"""Consistent Streaming Through Time: its figures, definitions 1 to 12 and its example query, checked without an engine.

The history tables and the consistency levels are tested on the temporal model, the operator definitions on the oracle.
"""

from collections import Counter
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from level_sizes import event_levels  # noqa: F401 a fixture for all tests here

from cedr import reference, testing
from cedr.reference.patterns import (
    SEQUENCE,
    UNLESS,
    ReferenceCorrelationKey,
    ReferenceEventType,
    ReferencePatternQuery,
    ReferencePredicate,
)
from cedr.temporal import (
    INF,
    MIDDLE,
    MIN,
    STRONG,
    WEAK,
    Adjust,
    Consistency,
    Event,
    History,
    HistoryRow,
    HistoryTable,
    Insert,
    Interval,
    QueryError,
    Row,
    Statement,
    SyncPoint,
    Version,
    bitemporal,
    canonical,
    equivalent,
    known_at,
    ordered,
    sync_points,
)
from cedr.temporal.consistency import (
    is_sync_point,
    middle_violation,
    strong_violation,
    supports_middle,
    supports_strong,
    supports_weak,
    weak_violation,
)
from cedr.temporal.stream import data
from cedr.temporal.tritemporal import bitemporal_table, ideal_table, logically_equivalent


def printed(text: str) -> str:
    """A table as written in the test, without the indentation of the code around it."""
    lines = text.strip("\n").splitlines()
    margin = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join(line[margin:].rstrip() for line in lines if line.strip())


# --- Figure 1: the conceptual stream -------------------------------------------------------------------------------

FIGURE_1 = [
    Statement("e0", 1, INF, os=1),
    Statement("e0", 1, 10, os=2),
    Statement("e0", 1, 5, os=3),
    Statement("e1", 4, 9, os=3),
]


def test_figure_1_prints_as_in_the_paper():
    table = """
        ID  Vs  Ve  Os  Oe  (Payload)
        e0   1   ∞   1   2  …
        e0   1  10   2   3  …
        e0   1   5   3   ∞  …
        e1   4   9   3   ∞  …
    """
    assert bitemporal_table(bitemporal(FIGURE_1)) == printed(table)


@given(st.permutations(FIGURE_1))
def test_figure_1_does_not_depend_on_the_order_of_the_statements(statements):
    assert bitemporal(statements) == bitemporal(FIGURE_1)


@pytest.mark.parametrize(
    ("occurrence", "valid"),
    [
        (0, []),
        (1, [(1, INF, None)]),
        (2, [(1, 10, None)]),
        (3, [(1, 5, None), (4, 9, None)]),
        (99, [(1, 5, None), (4, 9, None)]),
    ],
)
def test_figure_1_shows_what_the_provider_believed_at_each_occurrence_time(occurrence, valid):
    # occurrence  1          2           3
    # e0          [1, ∞)     [1, 10)     [1, 5)
    # e1                                 [4, 9)
    assert known_at(bitemporal(FIGURE_1), occurrence) == History(valid)


# --- Figure 2: the tritemporal history table -----------------------------------------------------------------------

OPEN = Version("e0", 1, INF, None)
SHORT = Version("e0", 1, 10, None)

FIGURE_2 = HistoryTable(
    (
        HistoryRow("E0", 1, 5, 1, 4, OPEN),
        # The paper prints Ce = 6 here, but the row that replaces it, E1 with Oe = Os = 5, arrived at Cs = 5.
        HistoryRow("E1", 5, INF, 2, 5, SHORT),
        HistoryRow("E0", 1, 3, 4, INF, OPEN),
        HistoryRow("E1", 5, 5, 5, INF, SHORT),
        HistoryRow("E2", 3, INF, 6, INF, SHORT),
    )
)

FIGURE_2_STREAM = [
    Insert(1, 5, OPEN),
    Insert(5, INF, SHORT),
    Adjust(1, 5, 3, OPEN),
    Adjust(5, INF, 5, SHORT),
    Insert(3, INF, SHORT),
]


def test_figure_2_prints_as_in_the_paper_but_for_one_ce():
    table = """
        ID  Vs  Ve  Os  Oe  Cs  Ce  (Payload)  K
        e0   1   ∞   1   5   1   4             E0
        e0   1  10   5   ∞   2   5             E1
        e0   1   ∞   1   3   4   ∞             E0
        e0   1  10   5   5   5   ∞             E1
        e0   1  10   3   ∞   6   ∞             E2
    """
    assert str(FIGURE_2) == printed(table)


def test_figure_2_is_what_its_stream_leaves():
    assert HistoryTable.of(FIGURE_2_STREAM, arrivals=[1, 2, 4, 5, 6]) == FIGURE_2


def test_figure_2_moves_the_modification_from_occurrence_time_5_to_3():
    # after CEDR time 3     1   3   5           after CEDR time 7     1   3   5
    # [1, ∞)                ########            [1, ∞)                ####
    # [1, 10)                       ####>       [1, 10)                   ########>
    assert canonical(FIGURE_2_STREAM[:2]) == History([(1, 5, OPEN), (5, INF, SHORT)])
    assert canonical(FIGURE_2_STREAM) == History([(1, 3, OPEN), (3, INF, SHORT)])
    assert FIGURE_2.history() == canonical(FIGURE_2_STREAM)


# --- Figures 3, 4 and 5: reduction, truncation, logical equivalence ------------------------------------------------

FIGURE_3_LEFT = HistoryTable((HistoryRow("E0", 1, 5, 1, 3), HistoryRow("E0", 1, 3, 3, INF)))
FIGURE_3_RIGHT = HistoryTable((HistoryRow("E0", 1, INF, 1, 2), HistoryRow("E0", 1, 5, 2, INF)))
LEFT_STREAM = [Insert(1, 5, None), Adjust(1, 5, 3, None)]
RIGHT_STREAM = [Insert(1, INF, None), Adjust(1, INF, 5, None)]


def test_figure_3_is_what_the_two_streams_leave():
    assert HistoryTable.of(LEFT_STREAM, arrivals=[1, 3]) == FIGURE_3_LEFT
    assert HistoryTable.of(RIGHT_STREAM, arrivals=[1, 2]) == FIGURE_3_RIGHT
    table = """
        K   Os  Oe  Cs  Ce  (Payload)
        E0   1   5   1   3
        E0   1   3   3   ∞
    """
    assert str(FIGURE_3_LEFT) == printed(table)


def test_figure_4_keeps_of_each_chain_the_earliest_end():
    assert FIGURE_3_LEFT.reduced() == HistoryTable((HistoryRow("E0", 1, 3, 3, INF),))
    assert FIGURE_3_RIGHT.reduced() == HistoryTable((HistoryRow("E0", 1, 5, 2, INF),))


def test_figure_5_truncates_both_tables_to_3():
    assert FIGURE_3_LEFT.canonical(to=3) == HistoryTable((HistoryRow("E0", 1, 3, 3, INF),))
    assert FIGURE_3_RIGHT.canonical(to=3) == HistoryTable((HistoryRow("E0", 1, 3, 2, INF),))


def test_the_streams_of_figure_3_are_equivalent_to_3_and_at_3_but_not_beyond():
    #         1   2   3   4   5
    # left    ########|
    # right   ########|#######
    assert logically_equivalent(FIGURE_3_LEFT, FIGURE_3_RIGHT, to=3)
    assert logically_equivalent(FIGURE_3_LEFT, FIGURE_3_RIGHT, at=3)
    assert equivalent(LEFT_STREAM, RIGHT_STREAM, to=3)
    assert equivalent(LEFT_STREAM, RIGHT_STREAM, at=3)
    for t in (4, 5, INF):
        assert not logically_equivalent(FIGURE_3_LEFT, FIGURE_3_RIGHT, to=t)
        assert not equivalent(LEFT_STREAM, RIGHT_STREAM, to=t)
    assert not equivalent(LEFT_STREAM, RIGHT_STREAM, at=5)
    assert equivalent(LEFT_STREAM, RIGHT_STREAM, at=6)


def test_at_a_time_means_the_rows_that_reach_it_after_truncation():
    # Truncated to t, no half-open row contains t itself; read literally, every table at t would be empty. The rows that
    # reach t are those live at the last instant before it, and only so is Figure 3 equivalent at 3 as in the text.
    assert len(FIGURE_3_LEFT.canonical(at=3).rows) == 1
    assert len(FIGURE_3_RIGHT.canonical(at=3).rows) == 1
    assert FIGURE_3_LEFT.canonical(at=1).rows == ()


# --- Figure 6 and Definition 2: sync times and sync points ---------------------------------------------------------


def test_figure_6_shows_the_sync_column():
    figure_6 = HistoryTable((HistoryRow("E0", 1, 10, 0, 7), HistoryRow("E0", 1, 5, 7, 10)))
    table = """
        K   Sync  Os  Oe  Cs  Ce  (Payload)
        E0     1   1  10   0   7
        E0     5   1   5   7  10
    """
    assert figure_6.annotated() == printed(table)
    assert figure_6.syncs() == [e.sync for e in [Insert(1, 10, None), Adjust(1, 10, 5, None)]]


def test_every_place_of_an_ordered_stream_has_sync_points():
    # sync       1           5
    # arrived  0 |     1     |     2
    stream = [Insert(1, 10, "A"), Adjust(1, 10, 5, "A")]
    assert sync_points(stream) == [
        SyncPoint(Interval(MIN, 1), 0),
        SyncPoint(Interval(1, 5), 1),
        SyncPoint(Interval(5, INF), 2),
    ]


def test_while_an_earlier_element_is_missing_there_is_no_sync_point():
    # arrival   B  A          sync   A  .  .  B
    #                                1  2  3  4
    stream = [Insert(4, 6, "B"), Insert(1, 2, "A")]
    assert sync_points(stream) == [SyncPoint(Interval(MIN, 1), 0), SyncPoint(Interval(4, INF), 2)]
    assert not any(is_sync_point(stream, t, 1) for t in range(10))


def test_two_elements_at_one_time_have_no_sync_point_between_them():
    stream = [Insert(2, 4, "A"), Insert(2, 5, "B")]
    assert [p.arrived for p in sync_points(stream)] == [0, 2]


@given(testing.streams(), st.integers(-1, 45), st.integers(0, 20))
def test_sync_points_are_those_of_definition_2(stream, t, arrived):
    arrived = min(arrived, len(data(stream)))
    listed = any(t in p.times and p.arrived == arrived for p in sync_points(stream))
    assert listed == is_sync_point(stream, t, arrived)


@given(st.one_of(testing.streams(ctis=False), testing.streams(ctis=False, ordered=True)))
def test_a_stream_is_ordered_iff_sorting_by_sync_changes_nothing(stream):
    assert ordered(stream) == (sorted(stream, key=lambda e: e.sync) == stream)


# --- Definitions 3, 4 and 5: what a consistency level promises -----------------------------------------------------


def test_outputs_in_order_support_all_levels():
    # time   1  2  3  4  5  6
    # one    A  A  A  B  B
    # two    A  A  A  B  B        the same, with an element that was taken back at once
    one = [Insert(1, 4, "A"), Insert(4, 6, "B")]
    two = [Insert(1, 4, "A"), Insert(4, 6, "C"), Adjust(4, 6, 4, "C"), Insert(4, 6, "B")]
    assert supports_strong(one, two)
    assert supports_middle(one, two)
    assert supports_weak(one, two)


def test_elements_of_one_sync_time_may_come_in_any_order_at_every_level():
    one = [Insert(1, 4, "A"), Insert(1, 6, "B")]
    assert supports_strong(one, one[::-1])


def test_an_optimistic_output_that_is_repaired_is_middle_but_not_strong():
    # arrival            one                          two
    # 1      A ################  [1, 9)        A ####  [1, 3)
    # 2                  B ##    [7, 8)                    B ##  [7, 8)
    # 3      A ####              [1, 3)
    #        1   3       7 8 9                  1   3      7 8
    one = [Insert(1, 9, "A"), Insert(7, 8, "B"), Adjust(1, 9, 3, "A")]
    two = [Insert(1, 3, "A"), Insert(7, 8, "B")]
    assert supports_weak(one, two)
    assert supports_middle(one, two)
    assert strong_violation(one, two) == (
        "output is not ordered: adjust A [1, 9) to 3 (sync 3) comes after insert B [7, 8) (sync 7)"
    )


def test_an_output_that_forgets_the_past_is_weak_but_not_middle():
    #        1  2  3  4  5  6  7  8
    # one    A  A  .  .  B  B  B  B      B came first, then the late A
    # two    .  .  .  .  B  B  B  B      A was forgotten
    one = [Insert(5, 9, "B"), Insert(1, 3, "A")]
    two = [Insert(5, 9, "B")]
    assert supports_weak(one, two)
    assert "only the first has\nVs  Ve  (Payload)\n 1   3  A" in middle_violation(one, two)
    assert not supports_strong(two, one)


def test_an_output_that_is_wrong_at_a_common_sync_point_is_not_even_weak():
    #        1  2  3  4  5  6  7
    # one    A  A  A  A  A  A  B      A should have ended at 3, and no element shows it
    # two    A  A  .  .  .  .  B
    one = [Insert(1, 9, "A"), Insert(7, 8, "B")]
    two = [Insert(1, 3, "A"), Insert(7, 8, "B")]
    assert weak_violation(one, two) is not None
    assert middle_violation(one, two) is not None
    assert strong_violation(one, two) is not None


def test_outputs_must_agree_on_the_future_they_have_emitted():
    #        1  2  3  4  5  6  7  8
    # one    A  A  A  A  A  A  A  A      both settled at 1, and nothing more comes
    # two    A  A  A
    one, two = [Insert(1, 9, "A")], [Insert(1, 4, "A")]
    assert not supports_strong(one, two)
    assert not supports_middle(one, two)
    assert not supports_weak(one, two)


def test_outputs_that_never_emit_support_all_levels():
    assert supports_strong([], [])
    assert supports_middle([], [])
    assert supports_weak([], [])


@given(testing.same_history(ctis=False))
def test_each_level_includes_the_one_below(pair):
    one, two = pair
    assert supports_middle(one, two)
    assert supports_weak(one, two)
    assert supports_strong(one, two) == (ordered(one) and ordered(two))


@given(testing.streams(max_size=3), testing.streams(max_size=3))
def test_outputs_that_support_middle_support_weak(one, two):
    assert supports_weak(one, two) or not supports_middle(one, two)


def test_figure_9_is_a_triangle():
    # block
    #   ∞            strong
    #             /    |
    #   0   weak --- middle
    #        0         ∞   remember
    assert (STRONG.block, STRONG.remember) == (INF, INF)
    assert (MIDDLE.block, MIDDLE.remember) == (0, INF)
    assert (WEAK.block, WEAK.remember) == (0, 0)
    with pytest.raises(QueryError, match="block=5 is longer than remember=3"):
        Consistency(block=5, remember=3)


# --- Definition 6: well behaved ------------------------------------------------------------------------------------

ROWS = testing.rows(g=st.sampled_from("XY"), v=st.integers(0, 3))


def same_group(p1, p2):
    return p1.g == p2.g


COMPLIANT = {
    "select": lambda h: reference.select(h, lambda p: p.v > 1),
    "project": lambda h: reference.project(h, lambda p: p.v // 2),
    "distinct": reference.distinct,
    "coalesce": reference.coalesce,
    "count": lambda h: reference.aggregate(h, n=reference.count()),
    "count by group": lambda h: reference.aggregate(h, ["g"], n=reference.count("v")),
    "sum": lambda h: reference.aggregate(h, ["g"], total=reference.sum_("v")),
    "min and max": lambda h: reference.aggregate(h, low=reference.min_("v"), high=reference.max_("v")),
    "avg": lambda h: reference.aggregate(h, mean=reference.avg("v")),
    "top_k": lambda h: reference.top_k(h, 2, lambda p: p.v),
    "top_k by group with rank": lambda h: reference.top_k(h, 2, lambda p: p.v, by=lambda p: p.g, rank="place"),
}

COMPLIANT_BINARY = {
    "inner join": partial(reference.join, on=same_group, how="inner"),
    "left join": partial(reference.join, on=same_group, how="left"),
    "full join": partial(reference.join, on=same_group, how="full"),
    "semi join": partial(reference.join, on=same_group, how="semi"),
    "anti join": partial(reference.join, on=same_group, how="anti"),
    "union": reference.union,
    "difference": reference.difference,
    "difference by key": partial(reference.difference, key=lambda p: p.g),
    "intersect": reference.intersect,
}

NOT_COMPLIANT = {
    "sliding": lambda h: reference.sliding(h, 4),
    "moving": lambda h: reference.moving(h, 4),
    "tumbling": lambda h: reference.tumbling(h, 5),
    "inserts": reference.inserts,
    "deletes": reference.deletes,
    "session": lambda h: reference.session(h, 3, by=lambda p: p.g),
    "first": lambda h: reference.aggregate(h, start=reference.first("v")),
}


def differing(operators, one, two):
    """The operators that do not give the same for both lists of arguments."""
    return [name for name, operator in operators.items() if operator(*one) != operator(*two)]


@given(testing.same_history(payloads=ROWS))
def test_every_unary_operator_is_well_behaved(pair):
    one, two = map(canonical, pair)
    assert differing(COMPLIANT | NOT_COMPLIANT, [one], [two]) == []


@given(testing.same_history(payloads=ROWS, max_size=4), testing.same_history(payloads=ROWS, max_size=4))
def test_every_binary_operator_is_well_behaved(left, right):
    arguments = [[canonical(one), canonical(two)] for one in left for two in right]
    assert differing(COMPLIANT_BINARY, arguments[0], arguments[1]) == []
    assert differing(COMPLIANT_BINARY, arguments[0], arguments[2]) == []
    assert differing(COMPLIANT_BINARY, arguments[0], arguments[3]) == []


@given(testing.streams(payloads=ROWS).flatmap(lambda s: st.tuples(st.just(s), testing.shuffled(s))))
def test_no_operator_sees_the_order_of_arrival(pair):
    one, two = map(canonical, pair)
    assert differing(COMPLIANT | NOT_COMPLIANT, [one], [two]) == []


# --- Definitions 7 to 9, Figure 10 ---------------------------------------------------------------------------------

FIGURE_10 = History([(1, 5, "P1"), (4, 9, "P2")])


def test_figure_10_numbers_the_events():
    table = """
        ID  Vs  Ve  (Payload)
        E0   1   5  P1
        E1   4   9  P2
    """
    assert ideal_table(FIGURE_10) == printed(table)


def test_projection_and_selection_leave_times_alone():
    assert reference.project(FIGURE_10, str.lower) == History([(1, 5, "p1"), (4, 9, "p2")])
    assert reference.select(FIGURE_10, lambda p: p == "P2") == History([(4, 9, "P2")])


def test_a_join_lives_while_both_sides_live():
    #      1  2  3  4  5  6  7  8
    # P1   #  #  #  #
    # P2            #  #  #  #  #
    # both          #
    one, two = History([(1, 5, "P1")]), History([(4, 9, "P2")])
    assert reference.inner_join(one, two) == History([(4, 5, ("P1", "P2"))])
    assert reference.inner_join(one, two, lambda p1, p2: p1 == p2) == History()


def test_lifetimes_that_only_meet_do_not_join():
    assert reference.inner_join(History([(1, 4, "P1")]), History([(4, 9, "P2")])) == History()


# --- Definition 10: coalescing -------------------------------------------------------------------------------------


def test_events_that_meet_with_equal_payload_become_one():
    # before   1  3  5     after   1     5
    #          ###---              ######
    assert History([(1, 3, "A"), (3, 5, "A")]).coalesce() == History([(1, 5, "A")])


def test_coalescing_repeats_until_nothing_meets():
    pieces = [(5, 9, "A"), (1, 3, "A"), (3, 5, "A"), (9, INF, "A")]
    assert History(pieces).coalesce() == History([(1, INF, "A")])


def test_a_gap_or_another_payload_keeps_events_apart():
    #  1  2  3  4  5  6  7
    #  A  A  .  A  B  B  B
    apart = History([(1, 3, "A"), (4, 5, "A"), (5, 8, "B")])
    assert apart.coalesce() == apart


def merged_in_turn(events, draw):
    """Definition 10 as printed: merge any two that meet, in any order, until there are none."""
    rest = [Event(*e) for e in events]
    while True:
        meeting = [
            (i, j)
            for i, one in enumerate(rest)
            for j, two in enumerate(rest)
            if one.lifetime.meets(two.lifetime) and one.payload == two.payload
        ]
        if not meeting:
            return History(rest)
        i, j = draw(st.sampled_from(meeting))
        merged = Event(rest[i].vs, rest[j].ve, rest[i].payload)
        rest = [e for k, e in enumerate(rest) if k not in (i, j)] + [merged]


@given(testing.histories().map(reference.distinct).flatmap(testing.repackaged), st.data())
def test_on_relations_coalesce_is_the_repeated_merging_of_definition_10(history, choice):
    assert history.coalesce() == merged_in_turn(history, choice.draw)


def test_with_copies_merging_alone_depends_on_its_order_and_coalesce_does_not():
    #          1  2  3  4  5
    # copy 1   ######            merged left: [1, 5) and [2, 3); merged right: [2, 5) and [1, 3)
    # copy 2      ###
    # copy 3         ######
    copies = History([(1, 3, "A"), (2, 3, "A"), (3, 5, "A")])
    assert copies.coalesce() == History([(1, 5, "A"), (2, 3, "A")])
    assert copies.coalesce() == History([(2, 5, "A"), (1, 3, "A")]).coalesce()


# --- Definition 11: view update compliance -------------------------------------------------------------------------


def packagings(infinite=True):
    """A history and the same table cut into other events."""
    return testing.histories(ROWS, max_size=5, infinite=infinite).flatmap(
        lambda h: st.tuples(st.just(h), testing.repackaged(h))
    )


def seen_through(operators, one, two):
    """The operators whose results for both lists of arguments are not the same table at every instant."""
    return [name for name, operator in operators.items() if operator(*one).coalesce() != operator(*two).coalesce()]


@given(packagings())
def test_unary_operators_do_not_see_how_a_table_is_cut_into_events(pair):
    one, two = pair
    assert seen_through(COMPLIANT, [one], [two]) == []


@given(packagings(infinite=False), st.integers(1, 6), st.integers(0, 5))
def test_chop_of_finite_lifetimes_is_compliant(pair, period, offset):
    one, two = pair
    testing.assert_same_snapshots(reference.chop(one, period, offset), reference.chop(two, period, offset))
    testing.assert_same_snapshots(reference.chop(one, period, offset), one)


@given(packagings(), testing.histories(ROWS, max_size=4))
def test_binary_operators_are_compliant_in_the_first_argument(pair, other):
    one, two = pair
    assert seen_through(COMPLIANT_BINARY, [one, other], [two, other]) == []


@given(packagings(), testing.histories(ROWS, max_size=4))
def test_binary_operators_are_compliant_in_the_second_argument(pair, other):
    one, two = pair
    assert seen_through(COMPLIANT_BINARY, [other, one], [other, two]) == []


def matches(p, others):
    return sum(n for other, n in others.items() if same_group(p, other))


def pairs(left, right):
    return Counter({(p, q): n * m for p, n in left.items() for q, m in right.items() if same_group(p, q)})


def alone(left, right):
    return Counter({p: n for p, n in left.items() if not matches(p, right)})


def with_none(payloads, side):
    return Counter({(None, p) if side == "left" else (p, None): n for p, n in payloads.items()})


RELATIONAL = {
    "inner join": pairs,
    "left join": lambda left, right: pairs(left, right) + with_none(alone(left, right), "right"),
    "full join": lambda left, right: (
        pairs(left, right) + with_none(alone(left, right), "right") + with_none(alone(right, left), "left")
    ),
    "semi join": lambda left, right: Counter({p: n for p, n in left.items() if matches(p, right)}),
    "anti join": alone,
    "union": lambda left, right: left + right,
    "difference": lambda left, right: left - right,
    "difference by key": alone,
    "intersect": lambda left, right: Counter(dict.fromkeys(left.keys() & right.keys(), 1)),
}
"""What each operator does to two bags of payloads, without time."""


@given(testing.histories(ROWS, max_size=5), testing.histories(ROWS, max_size=5))
def test_at_each_instant_an_operator_is_its_relational_counterpart(left, right):
    wrong = [
        (name, t)
        for name, operator in COMPLIANT_BINARY.items()
        for t in sorted({*left.end_points(), *right.end_points()} - {INF})
        if operator(left, right).snapshot(t) != RELATIONAL[name](left.snapshot(t), right.snapshot(t))
    ]
    assert wrong == []


#          0  1  2  3  4  5  6  7  8
# WHOLE    #########################
# CUT      ############-------------
WHOLE = History([(0, 9, Row(g="X", v=1))])
CUT = History([(0, 4, Row(g="X", v=1)), (4, 9, Row(g="X", v=1))])
ANOTHER = History([(2, 9, Row(g="X", v=2))])


def test_the_two_packagings_are_one_table():
    assert WHOLE.coalesce() == CUT.coalesce()


@pytest.mark.parametrize("operator", NOT_COMPLIANT.values(), ids=NOT_COMPLIANT.keys())
def test_windows_sessions_and_first_see_how_a_table_is_cut(operator):
    one, two = operator(WHOLE + ANOTHER).coalesce(), operator(CUT + ANOTHER).coalesce()
    assert one != two


def test_a_sliding_window_counts_a_cut_lifetime_twice():
    #                 0  1  2  3  4  5
    # sliding(WHOLE)  ######
    # sliding(CUT)    ######      ######
    p = Row(g="X", v=1)
    assert reference.sliding(WHOLE, 2) == History([(0, 2, p)])
    assert reference.sliding(CUT, 2) == History([(0, 2, p), (4, 6, p)])


def test_clip_sees_how_either_side_is_cut():
    #                      0  1  2  3  4  5  6  7  8
    # other                         #
    # clip(WHOLE, other)   #########
    # clip(CUT, other)     #########   -------------
    p = Row(g="X", v=1)
    other = History([(3, 4, "stop")])
    assert reference.clip(WHOLE, other) == History([(0, 3, p)])
    assert reference.clip(CUT, other) == History([(0, 3, p), (4, 9, p)])
    assert reference.clip(WHOLE, History([(0, 1, "at the start"), (9, 10, "at the end")])) == WHOLE
    assert reference.clip(History([(2, 9, p)]), WHOLE) == History([(2, 9, p)])
    assert reference.clip(History([(2, 9, p)]), CUT) == History([(2, 4, p)])


def test_a_session_starts_again_where_a_lifetime_is_cut():
    p = Row(g="X", v=1)
    assert reference.session(WHOLE, 3) == History([(0, 3, p)])
    assert reference.session(CUT, 3) == History([(0, 3, p), (4, 7, p)])


# --- Definition 12: AlterLifetime, windows, inserts and deletes ----------------------------------------------------

LIVES = History([(1, 3, "A"), (2, 9, "B"), (4, INF, "C")])


def test_alter_lifetime_maps_start_and_duration():
    # A [1, 3) -> [2, 4), B [2, 9) -> [4, 11), C [4, ∞) -> [8, ∞)
    doubled = reference.alter_lifetime(LIVES, start=lambda e: 2 * e.vs)
    assert doubled == History([(2, 4, "A"), (4, 11, "B"), (8, INF, "C")])


def test_the_moving_window_clips_lifetimes_to_its_length():
    #     1  2  3  4  5  6  7
    # A   ######
    # B      ############             [2, 9) clipped to 4
    # C            ############       [4, ∞) clipped to 4
    assert reference.moving(LIVES, 4) == History([(1, 3, "A"), (2, 6, "B"), (4, 8, "C")])


@given(testing.histories(), st.one_of(st.integers(1, 25), st.just(INF)))
def test_the_moving_window_is_alter_lifetime_as_the_paper_writes_it(history, wl):
    written = reference.alter_lifetime(history, lambda e: e.vs, lambda e: min(e.lifetime.length, wl))
    assert reference.moving(history, wl) == written


def test_inserts_keep_the_starts_and_deletes_the_ends_for_ever():
    assert reference.inserts(LIVES) == History([(1, INF, "A"), (2, INF, "B"), (4, INF, "C")])
    assert reference.deletes(LIVES) == History([(3, INF, "A"), (9, INF, "B")])


@given(testing.histories())
def test_inserts_less_deletes_are_what_is_live(history):
    live = reference.difference(reference.inserts(history), reference.deletes(history))
    testing.assert_same_snapshots(live, history)


def test_a_hopping_window_rounds_starts_down_by_integer_division():
    #            0           5           10          15
    # starts        1  2        4..      |
    # tumbling   ############|
    assert reference.tumbling(LIVES, 5) == History([(0, 5, "A"), (0, 5, "B"), (0, 5, "C")])


@given(testing.histories(), st.integers(1, 4), st.integers(1, 4))
def test_a_hopping_window_is_alter_lifetime_with_integer_division(history, hop, hops):
    written = reference.alter_lifetime(history, lambda e: e.vs // hop * hop, lambda e: hop * hops)
    assert reference.hopping(history, hop * hops, hop) == written


# --- CIDR07_Example: installed, shut down, not restarted -----------------------------------------------------------

HOUR = 60
"""The chronon is a minute here."""

MISSING_RESTART = UNLESS(
    SEQUENCE(ReferenceEventType("INSTALL", "x"), ReferenceEventType("SHUTDOWN", "y"), w=12 * HOUR),
    ReferenceEventType("RESTART", "z"),
    w=5,
)
CIDR07 = ReferencePatternQuery(
    MISSING_RESTART,
    where=(
        ReferencePredicate("x y", lambda x, y: x.payload.Machine_Id == y.payload.Machine_Id),
        ReferencePredicate("x z", lambda x, z: x.payload.Machine_Id == z.payload.Machine_Id),
    ),
    output=lambda match: match.payload[0].Machine_Id,
)
CIDR07_BY_KEY = ReferencePatternQuery(
    MISSING_RESTART, where=(ReferenceCorrelationKey("Machine_Id"),), output=CIDR07.output
)


def instants(*happened):
    return History((t, t + 1, Row(Machine_Id=machine)) for t, machine in happened)


def alerts(install, shutdown, restart=()):
    inputs = {"INSTALL": instants(*install), "SHUTDOWN": instants(*shutdown), "RESTART": instants(*restart)}
    answer = CIDR07.run(inputs)
    assert CIDR07_BY_KEY.run(inputs) == answer  # the paper's shorthand means the same
    return answer


def test_a_machine_that_stays_down_is_reported_for_the_scope_of_unless():
    # minute    0          100   102   104   106
    # INSTALL   M1
    # SHUTDOWN             M1
    # RESTART
    # output               #############          [100, 105)
    assert alerts([(0, "M1")], [(100, "M1")]) == History([(100, 105, "M1")])


def test_a_restart_in_time_prevents_the_report():
    # minute    0          100   102   104
    # INSTALL   M1
    # SHUTDOWN             M1
    # RESTART                          M1
    assert alerts([(0, "M1")], [(100, "M1")], [(104, "M1")]) == History()


@pytest.mark.parametrize("minute", [50, 100, 105, 200])
def test_a_restart_before_with_or_5_minutes_after_the_shutdown_does_not_count(minute):
    # minute    0    50    100  101 .. 104   105
    # INSTALL   M1
    # SHUTDOWN             M1
    # counts                    ##########
    assert alerts([(0, "M1")], [(100, "M1")], [(minute, "M1")]) == History([(100, 105, "M1")])


def test_the_restart_of_another_machine_does_not_count():
    # minute    0          100   102   104
    # INSTALL   M1 M2
    # SHUTDOWN             M1
    # RESTART                    M2
    assert alerts([(0, "M1"), (0, "M2")], [(100, "M1")], [(102, "M2")]) == History([(100, 105, "M1")])


def test_the_shutdown_of_another_machine_makes_no_sequence():
    assert alerts([(0, "M1")], [(100, "M2")]) == History()


def test_a_shutdown_before_or_with_the_install_makes_no_sequence():
    assert alerts([(100, "M1")], [(99, "M1"), (100, "M1")]) == History()


@pytest.mark.parametrize(
    ("minute", "expected"),
    [
        (12 * HOUR - 1, [(719, 724, "M1")]),
        (12 * HOUR, [(720, 725, "M1")]),
        (12 * HOUR + 1, []),
    ],
)
def test_the_scope_of_the_sequence_is_12_hours_and_includes_its_end(minute, expected):
    assert alerts([(0, "M1")], [(minute, "M1")]) == History(expected)


def test_each_machine_is_judged_by_its_own_restart():
    # minute    0     10         100 101 102 103
    # INSTALL   M1    M2
    # SHUTDOWN                   M1  M2
    # RESTART                            M1
    answer = alerts([(0, "M1"), (10, "M2")], [(100, "M1"), (101, "M2")], [(102, "M1")])
    assert answer == History([(101, 106, "M2")])
