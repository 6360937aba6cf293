"""State as declared fields: what a class keeps between chunks, written down once.

A class with state derives from `Stateful` and declares its fields with their kinds:

    class Sort(Operator):
        state = fields(payloads=PART, tuples=counted(columns(TupleStore)), waiting=PART)

From the declaration follow

    snapshot()     the state as plain data: a dict with the value of each field, without the leading underscore of its
                   name, and under `FORMAT` the names and kinds of all fields
    restore(s)     the reverse, into an object with the same settings. All of `s` is verified before anything changes: a
                   field that is missing, unknown or of another kind is a `StateError`
    nbytes         bytes held by all fields
    state_size()   rows and bytes; the rows are those of the `counted` fields, or `state_rows()` if the class defines it

Fields of a base class come first, so a subclass declares only its own. Fields are restored in the order in which they
are declared, then `restored()` is called to rebuild what is DERIVED.

Every attribute is one of three: a declared field, DERIVED or TRANSIENT, or a setting, which never changes after
`__init__`. `tests/operators/test_declared_state.py` verifies this for all operators.

A part is any object with `snapshot`, `restore`, `verify` and `nbytes`. Most derive from `Stateful`; `RowIndex` and
`PromiseIndex`, which fields of most classes hold, implement them themselves: their snapshots are a frame and a set.
"""

from cedr.columnar.state.kinds import (
    ARRAY,
    ARRAY_PIECES,
    ARRAYS,
    BLOCKS,
    COUNTS,
    DERIVED,
    DICT,
    FLAG,
    FRAME,
    FRAME_PIECES,
    LIST,
    MATRIX,
    NUMBER,
    PART,
    PARTS,
    PROMISES,
    REBUILT_PART,
    TEXT,
    TRANSIENT,
    Kind,
    added_later,
    array,
    columns,
    compact,
    counted,
    each,
    elsewhere,
    optional,
)
from cedr.columnar.state.stateful import FORMAT, State, Stateful, fields
from cedr.temporal.errors import StateError

__all__ = [
    "ARRAY",
    "ARRAYS",
    "ARRAY_PIECES",
    "BLOCKS",
    "COUNTS",
    "DERIVED",
    "DICT",
    "FLAG",
    "FORMAT",
    "FRAME",
    "FRAME_PIECES",
    "LIST",
    "MATRIX",
    "NUMBER",
    "PART",
    "PARTS",
    "PROMISES",
    "REBUILT_PART",
    "TEXT",
    "TRANSIENT",
    "Kind",
    "State",
    "StateError",
    "Stateful",
    "added_later",
    "array",
    "columns",
    "compact",
    "counted",
    "each",
    "elsewhere",
    "fields",
    "optional",
]
