"""The state of the prompt: loaded streams and statements, which later statements can use."""

from cedr.cli.prompt.loading import Loaded
from cedr.language.compile import compiled
from cedr.language.names import Names
from cedr.runtime.result import Result
from cedr.stream import Stream
from cedr.syntax import tree
from cedr.syntax.errors import LanguageError
from cedr.syntax.parse import parse
from cedr.temporal.errors import QueryError

STEPS = 1_000
"""Maximum number of steps in which rows are processed to show their changes."""


class PromptSession:
    def __init__(self) -> None:
        self.loaded: dict[str, Loaded] = {}
        self.statements: dict[str, Stream] = {}

    def load(self, name: str, loaded: Loaded) -> list[str]:
        """Add a stream; returns the statements that are removed because they read the previous stream of that name."""
        self.loaded[name] = loaded
        removed = [s for s, stream in self.statements.items() if s == name or name in self.sources(stream)]
        for statement in removed:
            del self.statements[statement]
        return removed

    def compile(self, text: str) -> dict[str, Stream]:
        """The streams of the statements in a text, by name. A new statement replaces an old one of the same name."""
        script = parse(text)
        new = {statement.name for statement in script.statements}
        names = Names((), {name: loaded.stream for name, loaded in self.loaded.items()})
        for name, stream in self.statements.items():
            if name not in new:
                names.define(name, stream, tree.TextPosition())
        try:
            made = compiled(script, names)
        except LanguageError as e:
            raise e.within(text) from None
        for name, stream in made.items():
            self.statements.pop(name, None)
            self.statements[name] = stream
        return made

    def answer(self, stream: Stream, row_by_row: bool = False) -> Result:
        """The answer to all loaded rows. Row by row, its changelog also contains what a later row repairs."""
        data = {name: self.loaded[name].rows for name in self.sources(stream)}
        rows = max((frame.height for frame in data.values()), default=0)
        return stream.run(data, chunk_size=max(1, rows // STEPS if row_by_row else rows))

    def sources(self, stream: Stream) -> list[str]:
        return list(stream.fragment().sources)

    def find(self, name: str) -> Stream:
        """A statement or a loaded stream."""
        if name in self.statements:
            return self.statements[name]
        if name in self.loaded:
            return self.loaded[name].stream
        available = ", ".join([*self.statements, *self.loaded]) or "none yet"
        raise QueryError(f"there is no statement or stream {name!r} (available: {available})")
