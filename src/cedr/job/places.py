"""The line of each key in a TOML text; Python's reader returns only the values.

Python's reader has accepted the text, so the scan only looks for what separates keys, values, tables and comments.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

Path = tuple[str, ...]

BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
KEY = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))[ \t]*""")
STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
EQUALS = re.compile(r"=[ \t]*")
OPENS_A_LINE = re.compile(r"(?:\"{3}|'{3})\r?\n")
REST_OF_LINE = re.compile(r"[^\n]*")
PLAIN = re.compile(r"[^,\]}\n#]*")


@dataclass(frozen=True)
class KeyLines:
    """The lines of a key and of its value; the value of a multi-line text begins with its first line of text."""

    line: int
    value: int


def places(text: str) -> dict[Path, KeyLines]:
    """The place of every key and table; the first place if there are several."""
    return Scan(text).document()


class Scan:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.found: dict[Path, KeyLines] = {}

    def document(self) -> dict[Path, KeyLines]:
        table: Path = ()
        self._skip(BLANK)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                line = self._line()
                self.at += 2 if self.text.startswith("[[", self.at) else 1
                table = self._keys()
                self._note(table, line, line)
                self._skip(REST_OF_LINE)
            else:
                self._pair(table)
            self._skip(BLANK)
        return self.found

    def _pair(self, table: Path) -> None:
        line, path = self._line(), (*table, *self._keys())
        self._skip(EQUALS)
        self._note(path, line, self._line() + bool(OPENS_A_LINE.match(self.text, self.at)))
        self._value(path)

    def _value(self, path: Path) -> None:
        if found := STRING.match(self.text, self.at):
            self.at = found.end()
        elif self.text[self.at] == "[":
            self._members("]", lambda: self._value(path))
        elif self.text[self.at] == "{":
            self._members("}", lambda: self._pair(path))
        else:
            self._skip(PLAIN)

    def _members(self, end: str, member: Callable[[], None]) -> None:
        self.at += 1
        self._skip(BLANK)
        while self.text[self.at] != end:
            member()
            self._skip(BLANK)
            if self.text[self.at] == ",":
                self.at += 1
                self._skip(BLANK)
        self.at += 1

    def _keys(self) -> Path:
        """A key, or several with dots between them."""
        names: list[str] = []
        while found := KEY.match(self.text, self.at):
            double, single, bare = found.groups()
            names.append(next(name for name in (double, single, bare) if name is not None))
            self.at = found.end()
            if not self.text.startswith(".", self.at):
                break
            self.at += 1
        return tuple(names)

    def _note(self, path: Path, line: int, value: int) -> None:
        for length in range(1, len(path)):
            self.found.setdefault(path[:length], KeyLines(line, line))
        self.found.setdefault(path, KeyLines(line, value))

    def _line(self) -> int:
        return self.text.count("\n", 0, self.at) + 1

    def _skip(self, what: re.Pattern[str]) -> None:
        found = what.match(self.text, self.at)
        assert found is not None
        self.at = found.end()
