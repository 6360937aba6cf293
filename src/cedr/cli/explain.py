"""`cedr explain JOB`: how the query of a job runs, as text, a Mermaid flowchart or an SVG picture."""

from pathlib import Path
from typing import Annotated

import typer

from cedr.cli.check import JobFile


def explain(
    job: JobFile,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print the plan as a Mermaid flowchart.")] = False,
    svg: Annotated[Path | None, typer.Option(help="Draw the plan to this SVG file.", show_default=False)] = None,
    statement: Annotated[
        str, typer.Option(help="The statement to explain; by default the last.", show_default=False)
    ] = "",
) -> None:
    """Show the plan of a job's query: as written, optimized, what its operators wait for, and its stages on Spark."""
    from cedr.job.job import read
    from cedr.plan.mermaid import mermaid as as_mermaid
    from cedr.plan.nodes import Level
    from cedr.plan.optimizer import optimize
    from cedr.plan.svg import svg as as_svg
    from cedr.secret import hidden
    from cedr.syntax.errors import listed
    from cedr.temporal.errors import QueryError

    made = read(job)
    name = statement or made.answer
    if name not in made.streams:
        available = listed(made.streams, "and")
        raise QueryError(f"--statement {name}: the query has no such statement; available: {available}")
    stream = made.streams[name]
    plan = optimize(Level(stream.plan)).plan
    if svg is not None:
        try:
            svg.write_text(hidden(as_svg(plan, name)), "utf-8")
        except OSError as e:
            raise QueryError(f"--svg {svg}: cannot be written: {e.strerror}") from None
    if mermaid:
        print(hidden(as_mermaid(plan, name)))
    elif svg is None:
        print(hidden(stream.explain()))
