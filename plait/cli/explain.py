"""`plait explain FILE`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from plait.cli.arguments import ScriptFile, Strategy
from plait.cli.execution import DEFAULT_STRATEGY
from plait.cli.script import ScriptText, read_sound_script
from plait.optimizer import PlanOptions
from plait.plan.explain import FORMATS, check_format
from plait.runtime.explaining import explained_plan
from plait.runtime.observed import observe, with_types_of
from plait.runtime.planning import PLANNING, PlanRequest, planning_option

_PER_SOURCE = "plait.parallelism."


def explain(
    file: ScriptFile,
    strategy: Strategy = None,
    output_format: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help=f"One of {', '.join(FORMATS)}.")
    ] = "text",
    parallelism: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Partitions per store. Default: what the script sets, or this machine's cores."
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Explain the plan in force in this checkpoint, with what was measured; change nothing."
        ),
    ] = None,
) -> None:
    """Show probe orders, stores, and what the queries share and save, without starting Spark.

    The plan rests on the statistics the script declares. A run starts with the same plan, and reconsiders it after some
    batches. With --checkpoint the plan is the one that governed the last batch there.
    """
    check_format(output_format)
    request = plan_request(read_sound_script(file), strategy, parallelism)
    if checkpoint is None:
        typer.echo(explained_plan(request, request.plan(()), None, None, output_format), nl=False)
        return
    found = observe(checkpoint)
    request = PlanRequest(queries=with_types_of(found.plan, request.queries), options=request.options)
    typer.echo(explained_plan(request, found.plan, found.manifest, found.measured, output_format), nl=False)


def plan_request(script: ScriptText, strategy: str | None, parallelism: int | None) -> PlanRequest:
    """Return what a script asks to be planned, as far as that can be told without Spark."""
    said, loaded = script.settings(), script.load()
    planning: dict[str, float] = {}
    for option in PLANNING:
        if f"plait.{option}" in said:
            planning |= planning_option(option, said[f"plait.{option}"])
    return PlanRequest(
        queries=loaded.queries,
        options=PlanOptions(
            strategy=strategy or said.get("plait.strategy", DEFAULT_STRATEGY),
            sources=loaded.sources,
            parallelism=parallelism or int(said.get("plait.parallelism", os.cpu_count() or 1)),
            parallelism_by_source=tuple(
                (name.removeprefix(_PER_SOURCE), int(count))
                for name, count in said.items()
                if name.startswith(_PER_SOURCE)
            ),
            **planning,
        ),
    )
