"""The command line, called in this process."""

import sys
from typing import NamedTuple

import pytest

from cedr.cli import main


class Done(NamedTuple):
    code: int
    out: str
    err: str


def call(monkeypatch, capsys, *args: object) -> Done:
    """`cedr ARGS`: its exit code and output."""
    monkeypatch.setattr(sys, "argv", ["cedr", *map(str, args)])
    with pytest.raises(SystemExit) as end:
        main()
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return Done(int(end.value.code or 0), out, err)
