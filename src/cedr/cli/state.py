"""`cedr state CHECKPOINT`: the state in a checkpoint, verified, and the rows of its operators."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import polars as pl

    from cedr.runtime.spark.shard.inspection import Inspection

UNITS = ("B", "kB", "MB", "GB", "TB")


def state(
    checkpoint: Annotated[str, typer.Argument(help="The checkpoint of a query on Spark.", show_default=False)],
    operator: Annotated[
        str, typer.Option(help="Show the fields of this operator: STAGE.NUMBER as listed.", show_default=False)
    ] = "",
    field: Annotated[str, typer.Option(help="Show the rows of this field of the operator.", show_default=False)] = "",
    rows: Annotated[int, typer.Option(help="Maximum number of rows.", min=0)] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the shards and operators of a checkpoint with their state, and verify its files.

    Neither Spark nor the query is needed. Exit code 0 if all files are intact, 1 if one is damaged.
    """
    from cedr.cli.as_json import as_json
    from cedr.runtime.spark.shard.inspection import Inspection
    from cedr.runtime.why_waiting import aligned_columns as aligned
    from cedr.temporal.errors import QueryError

    if field and not operator:
        raise QueryError("--field needs --operator; use --operator STAGE.NUMBER as listed without it")
    found = Inspection(checkpoint)
    if operator:
        table = rows_of(found, operator, field).head(rows) if field else fields_of(found, operator)
        print(as_json(table.to_dicts()) if json else aligned(table))
    elif json:
        print(as_json(as_plain(found)))
    else:
        print(f"{aligned(shards_of(found))}\n\n{aligned(operators_of(found))}\n")
    if not json:
        for text in found.damaged:
            print(text)
        if not operator:
            print(f"{found.files} files, {len(found.damaged) or 'none'} damaged")
    raise typer.Exit(1 if found.damaged else 0)


def shards_of(found: "Inspection") -> "pl.DataFrame":
    import polars as pl

    rows = [
        {
            "stage": s.stage,
            **({"shard": s.worker, "cell": s.shard} if found.layout else {"shard": s.shard}),
            "micro-batch": s.batch,
            "snapshot": s.snapshot,
            "bytes": size(s.nbytes) if s.snapshot is not None else None,
            "logged since": s.logged,
            "log": size(s.log_bytes),
        }
        for s in found.shards
    ]
    return pl.DataFrame(rows)


def operators_of(found: "Inspection") -> "pl.DataFrame":
    import polars as pl

    from cedr.temporal.time import MIN

    rows = [
        {
            "operator": f"{s.stage}.{number}",
            "cell" if found.layout else "shard": s.shard,
            "rows": o.get("rows"),
            "bytes": size(o.get("bytes", 0)),
            "CTI": found.show_time(o.get("cti", MIN)),
            "": o.get("text"),
        }
        for s in found.shards
        for number, o in enumerate(s.operators)
    ]
    return pl.DataFrame(sorted(rows, key=lambda row: [int(n) for n in row["operator"].split(".")]))


def fields_of(found: "Inspection", operator: str) -> "pl.DataFrame":
    import polars as pl

    from cedr.columnar.state.tables import tables_of

    rows = [
        {"shard": shard, "field": name, "rows": table.height, "columns": ", ".join(table.columns)}
        for shard, state in found.state_of(operator).items()
        for name, table in tables_of(state).items()
    ]
    return pl.DataFrame(rows, schema={"shard": pl.Int64, "field": pl.String, "rows": pl.Int64, "columns": pl.String})


def rows_of(found: "Inspection", operator: str, field: str) -> "pl.DataFrame":
    import polars as pl

    from cedr.columnar.state.tables import tables_of
    from cedr.temporal.errors import QueryError

    tables = {shard: tables_of(state) for shard, state in found.state_of(operator).items()}
    there = {name: None for fields in tables.values() for name in fields}
    if field not in there:
        names = ", ".join(there) or "none"
        raise QueryError(f"--field {field}: operator {operator} has no such field with rows; it has: {names}")
    frames = [
        fields[field].select(pl.lit(shard).alias("shard"), pl.all())
        for shard, fields in tables.items()
        if field in fields
    ]
    return pl.concat(frames, how="diagonal_relaxed")


def as_plain(found: "Inspection") -> dict[str, Any]:
    shards = [s._asdict() for s in found.shards]
    return {"plan": found.query.get("plan"), "shards": shards, "files": found.files, "damaged": found.damaged}


def size(nbytes: int) -> str:
    """With a unit: 12.3 kB."""
    value, unit = float(nbytes), 0
    while value >= 1000 and unit < len(UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{nbytes} B" if unit == 0 else f"{value:.1f} {UNITS[unit]}"
