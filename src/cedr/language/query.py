"""`query` and `queries`: the public functions of the language."""

from cedr.language.compile import compile
from cedr.stream import Stream


def query(text: str, *streams: Stream, **named: Stream) -> Stream:
    """The stream of the last statement of a text in the CEDR language.

        alerts = cedr.query("EVENT Alert WHEN SEQUENCE(INSTALL x, SHUTDOWN y, 12 hours)", feed)

    Event types are streams given by name, sources by their kind or name, earlier statements, and the values of the
    types column of a source that has one (`cedr.source(..., types="kind")`).
    """
    return list(queries(text, *streams, **named).values())[-1]


def queries(text: str, *streams: Stream, **named: Stream) -> dict[str, Stream]:
    """The streams of all statements, by name."""
    return compile(text, streams, named)
