"""Predicates and computed columns as data, so that a case can be written to a file; polars evaluates them."""

from typing import Any

import polars as pl

Expression = list[Any]


def predicate(p: Expression) -> pl.Expr:
    match p:
        case ["and", *parts]:
            return pl.all_horizontal(predicate(q) for q in parts)
        case ["or", *parts]:
            return pl.any_horizontal(predicate(q) for q in parts)
        case ["not", q]:
            return ~predicate(q)
        case ["<", c, value]:
            return pl.col(c) < value
        case [">=", c, value]:
            return pl.col(c) >= value
        case ["=", c, value]:
            return pl.col(c) == value
        case ["null", c]:
            return pl.col(c).is_null()
        case ["true", c]:
            return pl.col(c)
        case ["in", c, found]:
            return pl.col(c).is_in(found)
        case ["columns", a, b]:
            return pl.col(a) <= pl.col(b)
    raise ValueError(f"no predicate {p}")


def value(e: Expression) -> pl.Expr:
    match e:
        case ["col", c]:
            return pl.col(c)
        case ["mod", c, n]:
            return pl.col(c) % n
        case ["half", c]:
            return pl.col(c) * 0.5
        case ["length", c]:
            return pl.col(c).str.len_chars().cast(pl.Int64)
        case ["null", c]:
            return pl.col(c).is_null()
        case ["fill", c, filled]:
            return pl.col(c).fill_null(filled)
        case ["lit", filled]:
            return pl.lit(filled)
        case ["text", c]:
            return pl.col(c).cast(pl.String)
    raise ValueError(f"no expression {e}")
