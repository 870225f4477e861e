"""`plait check FILE`."""

from __future__ import annotations

import typer

from plait.cli.arguments import ScriptFile
from plait.cli.execution import default_checkpoint
from plait.cli.exit_status import report
from plait.cli.script import ScriptError, read_script_file
from plait.query.model import Stream
from plait.spelling import plural
from plait.sql.expressions.scope import SchemaUnknownError


def check(file: ScriptFile) -> None:
    """Find every mistake in a script, with line and column, without starting Spark.

    What it takes Spark to know (columns of some formats, types inside expressions) comes out when the script is run.
    """
    script = read_script_file(file)
    mistakes = script.mistakes(default_checkpoint(file))
    if mistakes:
        raise typer.Exit(report(ScriptError(mistakes)))
    try:
        loaded = script.load()
    except SchemaUnknownError as unknown:
        typer.echo(f"{file}: no mistakes found without Spark, but it takes Spark to tell: {unknown.message}")
        return
    streams = sum(isinstance(source, Stream) for source in loaded.sources)
    tables = len(loaded.sources) - streams
    declared = [plural(streams, "stream"), plural(tables, "table")]
    declared += [plural(len(loaded.views), "view")] if loaded.views else []
    declared.append(plural(len(loaded.queries), "query", "queries"))
    typer.echo(f"{file}: no mistakes; {', '.join(declared)}")
    if not loaded.queries:
        typer.echo("warning: there is no query to run; add one with CREATE QUERY", err=True)
    for warning in loaded.warnings:
        typer.echo(f"warning: {warning}", err=True)
