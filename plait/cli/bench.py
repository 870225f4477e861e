"""`plait bench NAME`: run one benchmark."""

from __future__ import annotations

from typing import Annotated

import typer

from plait.errors import OptionError


def bench(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(help="Which one; without it, the names are listed.")] = None,
) -> None:
    """Run a benchmark. What follows NAME is handed to it: `plait bench NAME --help` says what it takes."""
    # Imported here because benchmarks load Spark, which the other commands must not wait for.
    from plait.bench.registry import BENCHES, listing

    if name is None:
        width = max(map(len, BENCHES))
        for kind, known, summary in listing():
            typer.echo(f"{known:{width}}  {kind}: {summary}")
        return
    if name not in BENCHES:
        raise OptionError(f"unknown benchmark '{name}'; expected one of {', '.join(sorted(BENCHES))}")
    raise typer.Exit(BENCHES[name](context.args))
