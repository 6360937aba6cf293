"""Rows and payloads: equal payloads compare equal whatever they were made of, and any payloads have one fixed order."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr.temporal import Adjust, History, Insert, PayloadError, Row, canonical
from cedr.temporal.row import order_key, payload

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(), st.text("ab", max_size=2), st.binary(max_size=2)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
        st.frozensets(SCALARS, max_size=3),
    ),
    max_leaves=6,
)

# --- Row -----------------------------------------------------------------------------------------------------------


def test_a_row_gives_its_attributes_by_name():
    row = Row(machine=7, load=0.5)
    assert row.machine == row["machine"] == 7
    assert dict(row) == {"machine": 7, "load": 0.5}
    assert len(row) == 2


def test_rows_with_the_same_attributes_are_equal_in_any_order():
    assert Row(a=1, b=2) == Row({"b": 2, "a": 1})
    assert hash(Row(a=1, b=2)) == hash(Row(b=2, a=1))
    assert Row(a=1) != Row(a=2)
    assert Row(a=1) != Row(a=1, b=None)


def test_attributes_may_have_any_name_even_those_of_parameters():
    assert Row(self=1, values=2)["values"] == 2


def test_a_missing_attribute_is_named_with_those_that_exist():
    row = Row(machine=7, load=0.5)
    with pytest.raises(AttributeError, match="no attribute 'mashine'; there are: machine, load"):
        _ = row.mashine
    with pytest.raises(KeyError, match="no attribute 'mashine'; there are: machine, load"):
        row["mashine"]
    with pytest.raises(KeyError, match="there are: none"):
        Row()["a"]


def test_a_row_never_changes_and_the_error_names_the_alternative():
    row = Row(a=1)
    with pytest.raises(PayloadError, match=r"a Row never changes: use row\.replace\(a=2\)"):
        row.a = 2
    assert row.replace(a=2) == Row(a=2)
    assert row == Row(a=1)


def test_replace_adds_and_pick_selects():
    row = Row(a=1, b=2)
    assert row.replace(c=3) == Row(a=1, b=2, c=3)
    assert row.pick("b") == Row(b=2)
    with pytest.raises(KeyError, match="no attribute 'z'"):
        row.pick("z")


def test_a_row_does_not_follow_changes_of_what_it_was_made_from():
    values = {"a": [1, 2]}
    row = Row(values)
    values["a"].append(3)
    values["b"] = 4
    assert row == Row(a=(1, 2))


def test_rows_can_be_copied_and_pickled():
    row = Row(a=1, b=("x", None), c=float("nan"))
    assert pickle.loads(pickle.dumps(row)) == row
    assert copy.deepcopy(row) == copy.copy(row) == row


def test_rows_print_their_attributes():
    assert str(Row(a=1, b="x")) == "a=1, b=x"
    assert repr(Row(a=1, b="x")) == "Row(a=1, b='x')"


# --- payload -------------------------------------------------------------------------------------------------------


def test_containers_are_frozen():
    assert payload([1, [2, 3]]) == (1, (2, 3))
    assert payload({"a": [1]}) == Row(a=(1,))
    assert payload({1, 2}) == frozenset({1, 2})
    assert payload([{"a": 1}]) == (Row(a=1),)


def test_every_nan_is_the_same_nan():
    assert payload((float("nan"), 1)) == payload((float("nan"), 1))
    assert payload({"a": float("nan")}) == payload({"a": -float("nan")})
    assert History([(1, 2, float("nan"))]) == History([(1, 2, float("nan"))])


def test_minus_zero_is_zero():
    assert str(payload(-0.0)) == "0.0"
    assert repr(Row(a=-0.0)) == "Row(a=0.0)"


@pytest.mark.parametrize("value", [float("nan"), [1, 2], {"a": {"b": [float("nan")]}}, {1, 2}, -0.0, None])
def test_an_adjust_finds_its_tuple_whatever_the_payload_is_made_of(value):
    stream = [Insert(1, 9, value), Adjust(1, 9, 4, copy.deepcopy(value))]
    assert canonical(stream) == History([(1, 4, value)])


def test_a_mutable_payload_is_refused_with_what_to_use():
    with pytest.raises(PayloadError, match=r"of type bytearray is mutable, .* use a number, string, tuple"):
        Insert(1, 2, bytearray(b"x"))
    with pytest.raises(PayloadError, match="of type bytearray is mutable"):
        Row(a=[bytearray(b"x")])


@given(VALUES)
def test_payload_is_hashable_and_does_nothing_twice(value):
    once = payload(value)
    # In tuples, as payloads are compared in histories: there the one NaN is equal to itself.
    assert (payload(once),) == (once,)
    assert hash(payload(once)) == hash(once)
    assert (payload(copy.deepcopy(value)),) == (once,)


# --- order_key -----------------------------------------------------------------------------------------------------


def test_the_order_goes_by_kind_then_value():
    in_order = [
        None,
        -1,
        0.5,
        2,
        float("nan"),
        "a",
        "b",
        b"a",
        (1,),
        (1, 2),
        ("a",),
        frozenset({1}),
        Row(a=1),
        Row(a=2),
        Row(b=0),
    ]
    backwards = list(reversed(in_order))
    assert sorted(backwards, key=order_key) == in_order


@given(st.lists(VALUES.map(payload), max_size=5).flatmap(lambda v: st.tuples(st.just(v), st.permutations(v))))
def test_any_payloads_have_one_order_however_they_come(drawn):
    values, others = drawn
    assert sorted(values, key=order_key) == sorted(others, key=order_key)


@given(VALUES.map(payload), VALUES.map(payload))
def test_only_equal_payloads_share_a_place_in_the_order(one, two):
    assert (order_key(one) == order_key(two)) == (one == two)


@given(st.lists(st.integers(-5, 5)), st.lists(st.text("ab", max_size=2)))
def test_numbers_and_texts_keep_their_own_order(numbers, texts):
    assert sorted(numbers, key=order_key) == sorted(numbers)
    assert sorted(texts, key=order_key) == sorted(texts)
