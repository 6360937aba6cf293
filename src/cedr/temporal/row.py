"""Payloads: the content of an event, apart from its times.

A payload may be any hashable value. `Row` is a payload with named attributes. `payload` normalizes a value so that
equal payloads compare equal and a retraction always finds its tuple; `order_key` defines one fixed order of all
payloads, so that ties never depend on arrival.
"""

import math
from collections.abc import Iterator, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, Final

from cedr.temporal.errors import PayloadError

NAN: Final = float("nan")
"""The only NaN inside payloads. Python compares the same object as equal, so one NaN equals itself in tuples."""

DECIMAL_NAN: Final = Decimal("NaN")


class Row(Mapping[str, Any]):
    """An immutable record: `Row(machine=7, load=0.5).load`. Two rows with the same attributes are equal."""

    __slots__ = ("_hash", "_values")
    _values: dict[str, Any]
    _hash: int

    def __init__(self, values: Mapping[str, Any] | None = None, /, **attributes: Any) -> None:
        frozen = {name: payload(value) for name, value in {**(values or {}), **attributes}.items()}
        object.__setattr__(self, "_values", frozen)
        object.__setattr__(self, "_hash", hash(frozenset(frozen.items())))

    def __getitem__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            raise KeyError(f"no attribute {name!r}; there are: {', '.join(self._values) or 'none'}") from None

    def __getattr__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(f"no attribute {name!r}; there are: {', '.join(self._values) or 'none'}") from None

    def __setattr__(self, name: str, value: object) -> None:
        raise PayloadError(f"a Row never changes: use row.replace({name}={value!r})")

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row):
            return NotImplemented
        return self._hash == other._hash and self._values == other._values

    def __reduce__(self) -> tuple[Any, ...]:
        return Row, (self._values,)

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self._values.items())

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{name}={value!r}' for name, value in self._values.items())})"

    def replace(self, **attributes: Any) -> "Row":
        return Row(self._values, **attributes)

    def pick(self, *names: str) -> "Row":
        return Row({name: self[name] for name in names})


def payload(value: Any) -> Any:
    """`value` in the form in which equal payloads compare equal: one NaN, no -0.0, containers frozen."""
    if isinstance(value, float):
        return NAN if math.isnan(value) else value + 0.0
    if isinstance(value, Row):
        return value
    if isinstance(value, Decimal):
        return DECIMAL_NAN if value.is_nan() else value
    if isinstance(value, Mapping):
        return Row(value)
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return type(value)._make(payload(item) for item in value)
    if isinstance(value, list | tuple):
        return tuple(payload(item) for item in value)
    if isinstance(value, set | frozenset):
        return frozenset(payload(item) for item in value)
    try:
        hash(value)
    except TypeError:
        raise PayloadError(
            f"payload value {value!r} of type {type(value).__name__} is mutable, so a later adjust could not find "
            "it again; use a number, string, tuple, frozenset or Row"
        ) from None
    return value


def order_key(value: Any) -> tuple[Any, ...]:
    """A sort key for any payloads: none, numbers (NaN last), texts, bytes, dates, sequences, sets, rows, others."""
    if value is None:
        return (0,)
    if isinstance(value, int | float | Decimal):
        return (2,) if value != value else (1, value)
    if isinstance(value, str):
        return (3, value)
    if isinstance(value, bytes):
        return (4, "", value)
    if isinstance(value, date | time | timedelta):
        return (4, type(value).__name__, value)
    if isinstance(value, tuple):
        return (5, tuple(order_key(item) for item in value))
    if isinstance(value, frozenset):
        return (6, tuple(sorted(order_key(item) for item in value)))
    if isinstance(value, Row):
        return (7, tuple((name, order_key(value[name])) for name in sorted(value)))
    return (8, type(value).__qualname__, repr(value))
