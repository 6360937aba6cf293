"""Session windows: events of a group that follow each other closely share one lifetime."""

from dataclasses import dataclass
from functools import cached_property

from cedr.plan.node import Unary
from cedr.plan.schema import Schema, check_columns


@dataclass(frozen=True, eq=False)
class Session(Unary):
    timeout: int
    by: tuple[str, ...] = ()

    @cached_property
    def schema(self) -> Schema:
        check_columns(self.by, self.input.schema, f"session(by={list(self.by)})")
        return self.input.schema
