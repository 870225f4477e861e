"""`plait explain FILE`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from plait.cli.arguments import ScriptFile, Strategy
from plait.cli.execution import DEFAULT_STRATEGY
from plait.cli.script import read_sound_script
from plait.optimizer import PlanOptions, plan
from plait.plan.explain import FORMATS
from plait.plan.explain import explain as describe
from plait.stats.declared import declared_statistics


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
) -> None:
    """Show stores, probe orders and what the queries share, without starting Spark.

    The plan rests on the statistics the script declares. A run starts with the same plan, and reconsiders it after some
    batches.
    """
    script = read_sound_script(file)
    said, loaded = script.settings(), script.load()
    prefix = "plait.parallelism."
    options = PlanOptions(
        strategy=strategy or said.get("plait.strategy", DEFAULT_STRATEGY),
        sources=loaded.sources,
        parallelism=parallelism or int(said.get("plait.parallelism", os.cpu_count() or 1)),
        parallelism_by_source=tuple(
            (name.removeprefix(prefix), int(count)) for name, count in said.items() if name.startswith(prefix)
        ),
    )
    made = plan(loaded.queries, declared_statistics(loaded.sources), options)
    typer.echo(describe(made, output_format), nl=False)
