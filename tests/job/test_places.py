"""Where keys stand in a TOML text, compared with where a writer of such texts has put them."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from cedr.job.places import KeyLines, places

KEYS = st.sampled_from(["a", "b-c", "d_1", "kafka.servers", "it's"])
TEXTS = st.sampled_from(["plain", "with # no comment", "[no table]", "two\nlines", 'a "quote"', "x = 1", "back\\slash"])


class Writer:
    """Writes a document, and notes the line of every key."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw, self.text, self.noted = draw, "", {}

    @property
    def line(self) -> int:
        return self.text.count("\n") + 1

    def blank(self) -> None:
        self.text += self.draw(st.sampled_from(["", "\n", "# a comment with = and [brackets]\n", "  \n\n"]))

    def key(self, name: str) -> str:
        return name if name.replace("-", "").replace("_", "").isalnum() else f'"{name}"'

    def pair(self, table: tuple[str, ...], name: str, depth: int) -> None:
        path = (*table, name)
        line = self.line
        self.text += f"{self.key(name)}{self.draw(st.sampled_from(['=', ' = ', ' =']))}"
        opens = self.value(path, depth)
        self.noted[path] = KeyLines(line, line + opens)

    def value(self, path: tuple[str, ...], depth: int) -> int:
        """Returns by how many lines the text itself begins later."""
        kind = self.draw(st.sampled_from(["text", "long", "literal", "number", "list", "table"] if depth else ["text"]))
        written = self.draw(TEXTS)
        match kind:
            case "text":
                escaped = written.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
                self.text += f'"{escaped}"'
            case "long":
                self.text += '"""\n' + written.replace("\\", "\\\\") + '\n"""'
                return 1
            case "literal":
                self.text += f"'''{written}'''"
            case "number":
                self.text += self.draw(st.sampled_from(["12", "1.5", "true", "1979-05-27T07:32:00Z"]))
            case "list":
                self.text += self.draw(st.sampled_from(["[1, 2]", '[\n  "a]", # here\n  "b",\n]', "[]"]))
            case "table":
                self.text += "{ "
                for number, name in enumerate(self.draw(st.lists(KEYS, unique=True, max_size=3))):
                    self.text += ", " if number else ""
                    self.pair(path, name, 0)
                self.text += " }"
        return 0


@st.composite
def documents(draw) -> tuple[str, dict]:
    writer = Writer(draw)
    for table in [(), *draw(st.lists(st.tuples(KEYS, KEYS), unique=True, max_size=3))]:
        writer.blank()
        if table:
            line = writer.line
            writer.noted.setdefault(table[:1], KeyLines(line, line))
            writer.noted[table] = KeyLines(line, line)
            writer.text += f"[{'.'.join(map(writer.key, table))}]{draw(st.sampled_from(['', ' # [x]']))}\n"
        taken = {path[-1] for path in writer.noted if path[:-1] == table}
        for name in draw(st.lists(KEYS, unique=True, max_size=3)) if table else []:
            if name in taken:
                continue
            writer.blank()
            writer.pair(table, name, 1)
            writer.text += draw(st.sampled_from(["\n", " # comment\n"]))
    return writer.text, writer.noted


@given(documents())
def test_every_key_is_found_on_its_line(document):
    text, noted = document
    tomllib.loads(text)
    assert places(text) == noted


def test_dotted_keys_and_arrays_of_tables():
    found = places("a.b = 1\n[[c]]\nd = 2\n[[c]]\ne = 3\n")
    assert {path: place.line for path, place in found.items()} == {
        ("a",): 1,
        ("a", "b"): 1,
        ("c",): 2,
        ("c", "d"): 3,
        ("c", "e"): 5,
    }
