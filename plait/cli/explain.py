"""`plait explain FILE`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

import typer

from plait.cli.arguments import EXPLAIN_FORMATS, Parallelism, ScriptFile, Strategy
from plait.cli.execution import default_checkpoint
from plait.cli.script import read_sound_script


def explain(
    file: ScriptFile,
    strategy: Strategy = None,
    output_format: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help=f"One of {', '.join(EXPLAIN_FORMATS)} (to draw it).")
    ] = "text",
    parallelism: Parallelism = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Explain the plan in force in this checkpoint, with what was measured; change nothing."
        ),
    ] = None,
    query: Annotated[
        list[str] | None,
        typer.Option("--query", metavar="NAME", help="Show only what this query needs; may be given several times."),
    ] = None,
    stream: Annotated[
        list[str] | None,
        typer.Option("--stream", metavar="NAME", help="Show only what a row of this stream goes through."),
    ] = None,
    history: Annotated[
        bool,
        typer.Option("--history", help="Show which plan was in force when, why, and what it brought, instead."),
    ] = False,
) -> None:
    """Show probe orders, stores, and what the queries share and save, without starting Spark.

    The plan rests on the statistics the script declares. A run starts with the same plan, and reconsiders it later.

    With --checkpoint the plan is the one that governed the last batch there.

    --history looks at the checkpoint that `plait run FILE` would have, unless --checkpoint names another.
    """
    # Imported here because they load Arrow and the kernels, which the other commands must not wait for.
    from plait.adapt.planning import PlanRequest
    from plait.cli.plan_options import plan_options
    from plait.errors import OptionError
    from plait.plan.explain import EVERYTHING, Shown, checked_format
    from plait.query.model import Stream
    from plait.runtime.admission.survey import explained_bounds
    from plait.runtime.checkpoint.observed import observe, with_types_of
    from plait.runtime.explaining import explained_alone, explained_plan

    format = checked_format(output_format)
    shown = Shown(queries=tuple(dict.fromkeys(query or ())), streams=tuple(dict.fromkeys(stream or ())))
    if history:
        if shown != EVERYTHING:
            raise OptionError("--history tells of whole plans: leave out --query and --stream")
        typer.echo(_history(checkpoint or default_checkpoint(file), format), nl=False)
        return
    script = read_sound_script(file)
    loaded = script.load()
    request = PlanRequest(
        queries=loaded.queries, options=plan_options(loaded.settings, loaded.read, strategy, parallelism)
    )
    bounds = (explained_bounds(loaded.sources, checkpoint, loaded.settings),)
    if checkpoint is None:
        streams = [source.name for source in loaded.read if isinstance(source, Stream)]
        shown.require([each.name for each in loaded.queries], streams)  # planning hundreds of queries takes a while
        typer.echo(explained_plan(request, request.plan(None), None, None, format, bounds, shown), nl=False)
        return
    observed = observe(checkpoint)
    request = PlanRequest(queries=with_types_of(observed.plan, request.queries), options=request.options)
    aside = _set_aside(checkpoint, set(shown.queries).difference(observed.plan.queries))
    if aside:
        asked = tuple(each for each in request.queries if each.name in shown.queries)
        alone = PlanRequest(queries=asked, options=request.options)
        typer.echo(explained_alone(alone, observed.manifest, aside, format, shown), nl=False)
        return
    plan, manifest, measured = observed.plan, observed.manifest, observed.measured
    typer.echo(explained_plan(request, plan, manifest, measured, format, bounds, shown), nl=False)


def _set_aside(checkpoint: str, missing: Collection[str]) -> list[str]:
    """Return why those of these queries are in no plan that are set aside."""
    if not missing:
        return []
    from plait.runtime.checkpoint.set_aside import read_set_aside
    from plait.state.place import state_of

    return [each.text for each in read_set_aside(state_of(checkpoint)) if each.query in missing]


def _history(checkpoint: str, format: str) -> str:
    from plait.cli.history_plot import history_mermaid
    from plait.cli.history_text import history_json, history_text
    from plait.runtime.checkpoint.plan_history import history_of

    shown = {"text": history_text, "json": history_json, "mermaid": history_mermaid}
    return shown[format](history_of(checkpoint))
