"""Physically Independent Stream Merging: one temporal database (TDB), many physical streams, checked without an engine.

The paper's element models are brought to inserts, adjusts and CTIs by the small adapters below. A finalize element f(t)
and a stable element stable(t) are both `Cti(t)`; why that is right is tested too.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr import testing
from cedr.temporal import (
    END,
    INF,
    Adjust,
    Cti,
    History,
    Insert,
    Relation,
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
    # What a prefix lacks of the other stream's final TDB can be said right after it: none of its promises forbids it.
    tdb = canonical(column(TABLE_I, 1))
    for number in (0, 1):
        for rows in range(len(TABLE_I) + 1):
            seen = column(TABLE_I, number, rows)
            assert canonical([*seen, *repair(canonical(seen), tdb)]) == tdb


# --- f(t), stable(t) and Cti(t) ------------------------------------------------------------------------------------


def test_f_11_freezes_both_ends_the_paper_says_it_would_freeze():
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


def test_a_cti_says_more_than_f_it_also_refuses_new_events_before_it():
    # Example 1 lets f speak about existing events only; stable of Example 5 forbids late inserts too, as a CTI does.
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


def test_table_ii_the_sooner_an_output_speaks_the_more_it_says():
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
