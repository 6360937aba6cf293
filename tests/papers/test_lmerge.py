"""Physically Independent Stream Merging: one temporal database (TDB), many physical streams, and their merge.

The paper's element models are brought to inserts, adjusts and CTIs by the small adapters below. A finalize element f(t)
and a stable element stable(t) are both `Cti(t)`; why that is right is tested too.
"""

from itertools import combinations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr import testing
from cedr.columnar.chunk import chunk_of
from cedr.operators.merge.algorithms import ALGORITHMS
from cedr.reference.merge import compatible, mutually_consistent
from cedr.temporal import (
    END,
    INF,
    Adjust,
    Cti,
    History,
    Insert,
    Relation,
    Row,
    StreamError,
    canonical,
    ordered,
    validate,
    violations,
)
from cedr.temporal.stream import chains, data

# --- Examples 1 and 2: add, modify, finalize -----------------------------------------------------------------------


def a(value, start, end):
    return ("a", value, start, end)


def m(value, start, new_end):
    return ("m", value, start, new_end)


def f(time):
    return ("f", time)


def from_amf(elements):
    """m names only value and start; the end it changes is the current one of that pair."""
    ends = {}
    stream = []
    for kind, *rest in elements:
        if kind == "f":
            stream.append(Cti(rest[0]))
            continue
        value, start, end = rest
        old, ends[value, start] = ends.get((value, start)), end
        stream.append(Insert(start, end, value) if kind == "a" else Adjust(start, old, end, value))
    return stream


# The rows of Table I, top to bottom, are instants of system time.
TABLE_I = [
    (None, a("A", 6, 7)),
    (None, a("B", 8, 15)),
    (a("B", 8, INF), m("A", 6, 12)),
    (a("A", 6, 12), None),
    (m("B", 8, 10), m("B", 8, 10)),
    (f(11), None),
    (f(INF), f(INF)),
]


def column(table, number, rows=None):
    return from_amf([row[number] for row in table[:rows] if row[number]])


def test_table_i_both_physical_streams_are_valid_and_give_one_tdb():
    #     6  7  8  9  10 11
    # A   #################
    # B         #####
    tdb = History([(6, 12, "A"), (8, 10, "B")])
    for number in (0, 1):
        validate(column(TABLE_I, number))
        assert canonical(column(TABLE_I, number)) == tdb


def test_table_i_prefixes_are_not_always_equivalent():
    same = [canonical(column(TABLE_I, 0, rows)) == canonical(column(TABLE_I, 1, rows)) for rows in range(8)]
    assert same == [True, False, False, False, False, True, True, True]


def test_table_i_after_three_rows_a_is_missing_and_b_ends_elsewhere():
    assert canonical(column(TABLE_I, 0, 3)) == History([(8, INF, "B")])
    assert canonical(column(TABLE_I, 1, 3)) == History([(6, 12, "A"), (8, 15, "B")])


def repair(found, wanted):
    """The elements that turn one TDB into another; start and payload are a key in both."""
    ends = {(e.vs, e.payload): e.ve for e in found}
    return [
        Adjust(e.vs, ends[e.vs, e.payload], e.ve, e.payload) if (e.vs, e.payload) in ends else Insert(*e)
        for e in wanted - found
    ]


def test_table_i_all_prefixes_can_still_become_equivalent():
    # What a prefix lacks of the other stream's final TDB can be added right after it: none of its promises forbids it.
    tdb = canonical(column(TABLE_I, 1))
    for number in (0, 1):
        for rows in range(len(TABLE_I) + 1):
            seen = column(TABLE_I, number, rows)
            assert canonical([*seen, *repair(canonical(seen), tdb)]) == tdb


# --- f(t), stable(t) and Cti(t) ------------------------------------------------------------------------------------


def test_f_11_freezes_both_ends_as_in_the_paper():
    # A merge that has put out the first two elements of Phy2 must not pass on the f(11) of Phy1:
    #                 6  7  8  9  10 11 12 13 14
    # A so far        ###                            wanted: 12
    # B so far              ####################     wanted: 10
    # f(11)                          |
    # The change of A starts at 7, that of B at 10; both lie before 11, so a CTI of 11 refuses both.
    hasty = from_amf([a("A", 6, 7), a("B", 8, 15), f(11), m("A", 6, 12), m("B", 8, 10)])
    refused = violations(hasty)
    assert [error.element for error in refused] == [Adjust(6, 7, 12, "A"), Adjust(8, 15, 10, "B")]
    assert all("cti 11 promised" in error.promise for error in refused)


def test_f_11_leaves_alone_what_ends_at_11_or_later():
    # "Earlier than 11" excludes 11 itself, and so does a CTI: the change of an end at 11 has sync time 11.
    validate(from_amf([a("A", 6, 11), f(11), m("A", 6, 20), m("A", 6, 11)]))


def test_a_cti_promises_more_than_f_it_also_excludes_new_events_before_it():
    # Example 1 applies f to existing events only; stable of Example 5 forbids late inserts too, as a CTI does.
    # Every f of the paper's tables keeps the stronger promise, so nothing is lost by reading it as a CTI.
    with pytest.raises(StreamError, match="cti 11 promised"):
        validate([Insert(6, 12, "A"), Cti(11), Insert(10, 13, "C")])


def stable_allows(element, vc):
    """Example 5: no later insert with Vs < Vc, no later adjust with Vold < Vc or Ve < Vc."""
    if isinstance(element, Insert):
        return element.vs >= vc
    return element.ve >= vc and element.ve_new >= vc


@given(testing.streams(ctis=False), st.integers(0, 45), st.data())
def test_stable_of_example_5_is_a_cti(stream, vc, choice):
    before = choice.draw(st.integers(0, len(stream)))
    if before < len(stream):
        refused = violations([*stream[:before], Cti(vc), stream[before]])
        assert bool(refused) == (not stable_allows(stream[before], vc))


def test_adjusts_in_example_5_add_up():
    stream = [Insert(6, 20, "A"), Adjust(6, 20, 30, "A"), Adjust(6, 30, 25, "A")]
    assert canonical(stream) == canonical([Insert(6, 25, "A")])


def freeze_status(vs, ve, stable):
    """What the CTI leaves open: unfrozen events may vanish, half frozen ones may change, fully frozen ones may not."""

    def allowed(adjust):
        relation = Relation()
        relation.apply(Insert(vs, ve, "p"))
        relation.apply(Cti(stable))
        try:
            relation.apply(adjust)
        except StreamError:
            return False
        return True

    if allowed(Adjust(vs, ve, vs, "p")):
        return "UF"
    return "HF" if allowed(Adjust(vs, ve, 50, "p")) else "FF"


@pytest.mark.parametrize(
    ("stable", "events"),
    [
        pytest.param(14, ["A 2 16 HF", "B 3 10 FF", "C 4 18 HF", "D 15 20 UF"], id="I1"),
        pytest.param(11, ["A 2 12 HF", "B 3 10 FF", "C 4 18 HF", "E 17 21 UF"], id="I2"),
        pytest.param(11, ["A 2 ∞ HF", "B 3 10 FF", "C 4 ∞ HF"], id="O1"),
        pytest.param(14, ["A 2 16 HF", "B 3 10 FF", "C 4 18 HF", "D 15 20 UF", "E 17 21 UF"], id="O2"),
        pytest.param(13, ["A 2 12 FF", "C 4 18 HF", "D 15 20 UF"], id="O3"),
    ],
)
def test_the_tables_of_section_iii_d_show_what_a_cti_freezes(stable, events):
    for event in events:
        _, vs, ve, status = event.split()
        assert freeze_status(int(vs), INF if ve == "∞" else int(ve), stable) == status


@pytest.mark.parametrize(("vs", "ve", "status"), [(14, 20, "UF"), (13, 20, "HF"), (3, 14, "HF"), (3, 13, "FF")])
def test_the_edges_of_freezing_are_those_of_the_definition(vs, ve, status):
    # half frozen: Vs < Vc <= Ve; fully frozen: Ve < Vc; here Vc = 14
    assert freeze_status(vs, ve, 14) == status


# --- Example 2: chattiness -----------------------------------------------------------------------------------------

IN_1 = [a("A", 6, 10), m("A", 6, 15)]
IN_2 = [a("A", 6, 12), a("B", 7, 14), m("A", 6, 15), f(16)]
OUT_1 = [a("A", 6, 10), m("A", 6, 12), a("B", 7, 14), m("A", 6, 15), f(16)]
OUT_2 = [a("A", 6, 15), a("B", 7, 14), f(16)]
OUT_3 = [a("A", 6, 10), a("B", 7, 14), m("A", 6, 15), f(16)]


@pytest.mark.parametrize("output", [OUT_1, OUT_2, OUT_3], ids=["Out1", "Out2", "Out3"])
def test_table_ii_all_outputs_give_the_tdb_of_the_complete_input(output):
    #     6  7  8  9  10 11 12 13 14
    # A   ##########################
    # B      #####################
    validate(from_amf(output))
    assert canonical(from_amf(output)) == History([(6, 15, "A"), (7, 14, "B")])
    assert canonical(from_amf(output)) == canonical(from_amf(IN_2))


def test_table_ii_in1_has_not_seen_b_but_agrees_on_a():
    in_1, in_2 = canonical(from_amf(IN_1)), canonical(from_amf(IN_2))
    assert in_2 - in_1 == History([(7, 14, "B")])
    assert in_1 - in_2 == History()


def test_table_ii_the_sooner_an_output_emits_the_more_elements_it_has():
    assert [len(data(from_amf(out))) for out in (OUT_1, OUT_3, OUT_2)] == [4, 3, 2]
    assert [ordered(from_amf(out)) for out in (OUT_1, OUT_3, OUT_2)] == [False, True, True]


# --- Example 3: open and close -------------------------------------------------------------------------------------


def from_open_close(elements):
    """One event per payload is open at a time; a close of a payload that is closed already revises its end."""
    lives = {}
    stream = []
    for kind, payload, time in elements:
        if kind == "open":
            lives[payload] = (time, INF)
            stream.append(Insert(time, INF, payload))
        else:
            vs, ve = lives[payload]
            lives[payload] = (vs, time)
            stream.append(Adjust(vs, ve, time, payload))
    return stream


S = [("open", "A", 1), ("open", "B", 2), ("open", "C", 3), ("close", "A", 4), ("close", "B", 5)]
U = [("open", "A", 1), ("close", "A", 4), ("open", "B", 2), ("close", "B", 5), ("open", "C", 3)]
W = [("open", "B", 2), ("close", "B", 6), ("open", "A", 1), ("open", "C", 3), ("close", "A", 4), ("close", "B", 5)]
PREFIXES = {"S[5]": S, "U[5]": U, "W[6]": W}


@pytest.mark.parametrize("elements", PREFIXES.values(), ids=PREFIXES.keys())
def test_example_3_the_prefixes_are_equivalent(elements):
    #     1  2  3  4  5
    # A   #########
    # B      #########
    # C         ##########>
    stream = from_open_close(elements)
    validate([*stream, END])
    assert canonical(stream) == History([(1, 4, "A"), (2, 5, "B"), (3, INF, "C")])


def test_example_3_only_s_is_ordered():
    assert {name: ordered(from_open_close(elements)) for name, elements in PREFIXES.items()} == {
        "S[5]": True,
        "U[5]": False,
        "W[6]": False,
    }


def test_example_3_only_w_closes_an_event_twice():
    closes = {name: max(len(c) - 1 for c in chains(from_open_close(e))) for name, e in PREFIXES.items()}
    assert closes == {"S[5]": 1, "U[5]": 1, "W[6]": 2}


@pytest.mark.parametrize("elements", PREFIXES.values(), ids=PREFIXES.keys())
def test_example_3_payload_and_start_are_a_key_at_every_moment(elements):
    stream = from_open_close(elements)
    for i in range(len(stream) + 1):
        tdb = canonical(stream[:i])
        assert len({(e.payload, e.vs) for e in tdb}) == len(tdb)


def test_example_3_in_an_ordered_stream_no_finite_end_gets_shorter():
    # The second close of W, from 6 down to 5, is what order rules out.
    assert not any(e.ve != INF for e in from_open_close(S) if isinstance(e, Adjust))
    assert [e for e in from_open_close(W) if isinstance(e, Adjust) and e.ve != INF] == [Adjust(2, 6, 5, "B")]


# --- merging Tables I and II ---------------------------------------------------------------------------------------


def rowed(element):
    """The element with a row as payload, as operators want it."""
    match element:
        case Insert(vs, ve, p):
            return Insert(vs, ve, Row(p=p))
        case Adjust(vs, ve, ve_new, p):
            return Adjust(vs, ve, ve_new, Row(p=p))
    return element


def lined_up(table):
    """The elements of both columns of a table of system time, with the number of their column."""
    columns = [iter(map(rowed, column(table, number))) for number in (0, 1)]
    return [(number, next(columns[number])) for line in table for number in (0, 1) if line[number]]


def merged(arrivals, algorithm="R3", policy="first"):
    merge = ALGORITHMS[algorithm]({"p": pl.String()}, 2, policy)
    return [merge.process(port, chunk_of([e], merge.schema)).elements() for port, e in arrivals]


@pytest.mark.parametrize("algorithm", ["R3", "R3-", "R4"])
def test_table_i_before_f_11_is_passed_on_both_ends_are_put_right(algorithm):
    steps = merged(lined_up(TABLE_I), algorithm)
    expected = [rowed(e) for e in from_amf([a("A", 6, 7), a("B", 8, 15), m("A", 6, 12), m("B", 8, 10), f(11)])]
    assert [e for step in steps[:-2] for e in step] == expected
    assert [step for step in steps if step] == [expected[:1], expected[1:2], expected[2:], [END]]


TABLE_II = [
    (a("A", 6, 10), None),
    (None, a("A", 6, 12)),
    (None, a("B", 7, 14)),
    (m("A", 6, 15), None),
    (None, m("A", 6, 15)),
    (None, f(16)),
]


@pytest.mark.parametrize("algorithm", ["R3", "R3-", "R4"])
@pytest.mark.parametrize(
    ("policy", "out"),
    [
        ("reflect", [OUT_1[:1], OUT_1[1:2], OUT_1[2:3], OUT_1[3:4], [], OUT_1[4:]]),
        ("half-frozen", [[], [], [], [], [], OUT_2]),
        ("first", [OUT_3[:1], [], OUT_3[1:2], [], [], OUT_3[2:]]),
    ],
    ids=["Out1", "Out2", "Out3"],
)
def test_table_ii_each_output_is_that_of_a_policy(policy, out, algorithm):
    expected = iter(map(rowed, from_amf([e for step in out for e in step])))
    assert merged(lined_up(TABLE_II), algorithm, policy) == [[next(expected) for _ in step] for step in out]


# --- section III-D: which outputs are compatible -------------------------------------------------------------------


def tdb(stable, *events):
    return [*(Insert(vs, ve, p) for p, vs, ve in events), Cti(stable)]


I_1 = tdb(14, ("A", 2, 16), ("B", 3, 10), ("C", 4, 18), ("D", 15, 20))
I_2 = tdb(11, ("A", 2, 12), ("B", 3, 10), ("C", 4, 18), ("E", 17, 21))
O_1 = tdb(11, ("A", 2, INF), ("B", 3, 10), ("C", 4, INF))
O_2 = tdb(14, ("A", 2, 16), ("B", 3, 10), ("C", 4, 18), ("D", 15, 20), ("E", 17, 21))
O_3 = tdb(13, ("A", 2, 12), ("C", 4, 18), ("D", 15, 20))


def test_the_inputs_of_section_iii_d_are_mutually_consistent():
    assert mutually_consistent([I_1, I_2])


@pytest.mark.parametrize("output", [O_1, O_2], ids=["O1", "O2"])
@pytest.mark.parametrize("multiset", [False, True])
def test_o1_and_o2_are_compatible(output, multiset):
    assert compatible([I_1, I_2], output, multiset=multiset) == []


def test_o3_is_not_compatible_for_two_reasons():
    # A is fully frozen though I1 has it until 14 at least; B is missing and can no longer come
    found = {(v.condition, e.payload) for v in compatible([I_1, I_2], O_3) for e in v.events}
    assert found == {("C2", "A"), ("C3", "A"), ("C3", "B")}


def test_c2_as_printed_would_allow_an_output_that_cannot_follow():
    # "the event is HF and L_m <= L": I2 may still end A at 12, and an output that promised 14 cannot
    ahead = tdb(14, ("A", 2, 16), ("B", 3, 10), ("C", 4, 18))
    assert {v.condition for v in compatible([I_2], ahead)} >= {"C1"}
    with pytest.raises(StreamError):
        validate([*ahead, Adjust(2, 16, 12, "A")])
    validate([*I_2, Adjust(2, 12, 14, "A"), Adjust(2, 14, 12, "A")])


# --- Example 4: open and close, each event closed once at most -----------------------------------------------------

UNIVERSE = [("open", "p", 1), ("close", "p", 3), ("close", "p", 4), ("open", "q", 2), ("close", "q", 3)]


def well_formed(elements):
    opened = {p for kind, p, _ in elements if kind == "open"}
    closed = [p for kind, p, _ in elements if kind == "close"]
    return len(set(closed)) == len(closed) and set(closed) <= opened


PREFIX_SETS = [
    frozenset(found)
    for size in range(len(UNIVERSE) + 1)
    for found in combinations(UNIVERSE, size)
    if well_formed(found)
]


@pytest.mark.parametrize("inputs", [1, 2])
def test_example_4_an_output_is_compatible_exactly_when_it_is_contained_in_the_inputs(inputs):
    for some in combinations(PREFIX_SETS, inputs):
        futures = [h for h in PREFIX_SETS if all(i <= h for i in some)]
        if not futures:
            continue  # not mutually consistent
        for output in PREFIX_SETS:
            assert all(output <= h for h in futures) == (output <= frozenset().union(*some))


@pytest.mark.parametrize("order", [(S, U), (U, W), (W, S)], ids=["S U", "U W", "W S"])
def test_example_3_merged_the_prefixes_give_the_same_tdb(order):
    arrivals = [(port, rowed(e)) for port, stream in enumerate(order) for e in [*from_open_close(stream), END]]
    out = [e for step in merged(arrivals) for e in step]
    assert canonical(out) == History([(1, 4, Row(p="A")), (2, 5, Row(p="B")), (3, INF, Row(p="C"))])


# --- Theorem 1 -----------------------------------------------------------------------------------------------------


def test_theorem_1_as_printed_does_not_hold_when_ends_grow():
    # "no more insert() or adjust() elements than the total number of insert() elements received"; what does hold is in
    # tests/operators/merge/test_as_printed.py
    p = Row(p="A")
    came = [Insert(0, 1, p), Adjust(0, 1, 3, p), Cti(2), Adjust(0, 3, 5, p), Cti(4)]
    out = [e for step in merged([(0, e) for e in came]) for e in step]
    assert out == [Insert(0, 1, p), Adjust(0, 1, 3, p), Cti(2), Adjust(0, 3, 5, p), Cti(4)]
