"""`plait run FILE`."""

from __future__ import annotations

from json import dumps
from typing import Annotated

import typer

from plait.cli.arguments import Conf, Master, ScriptFile, Strategy
from plait.cli.execution import Choices, execute, settle
from plait.cli.exit_status import FAILED
from plait.cli.output import open_output
from plait.cli.script import read_sound_script
from plait.cli.serving import AllowHost, Listen, TokenFile, listen_choices


def run(
    file: ScriptFile,
    available_now: Annotated[
        bool, typer.Option("--available-now", help="Process what is there now, then end; otherwise run until Ctrl-C.")
    ] = False,
    close: Annotated[
        bool,
        typer.Option(
            "--close",
            help="With --available-now: nothing more will come. What is undecided is decided, and the checkpoint ends.",
        ),
    ] = False,
    retry: Annotated[
        list[str] | None,
        typer.Option(
            metavar="QUERY", help="Try a query once more that an earlier run has set aside; may be given several times."
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Directory or URI of all state. Default: beside the script, FILE without its ending + `.checkpoint`.",
        ),
    ] = None,
    strategy: Strategy = None,
    master: Master = None,
    conf: Conf = None,
    trigger: Annotated[
        str | None,
        typer.Option(
            metavar="INTERVAL",
            help="How often to look for new rows; '0 seconds': as soon as a batch is done. Default: '1 second'.",
        ),
    ] = None,
    json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print one JSON object a line instead of a table: `event` is starting, batch, finished and others.",
        ),
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Whenever the script is saved, add, replace and drop what differs.")
    ] = False,
    listen: Listen = None,
    token_file: TokenFile = None,
    allow_host: AllowHost = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="When it is over, explain the plan, with what was measured.")
    ] = False,
) -> None:
    """Run the queries of a script.

    Run it again on the same checkpoint and it goes on where it ended; changed queries are applied.

    Options given here win over SET in the script.

    The first Ctrl-C ends after the batch at hand, the second at once; both leave the checkpoint usable.
    """
    choices = Choices(
        checkpoint=checkpoint,
        strategy=strategy,
        trigger=trigger,
        master=master,
        conf=tuple(conf or ()),
        available_now=available_now,
        close=close,
        retry=tuple(retry or ()),
        listen=listen_choices(listen, token_file, allow_host),
        watch=watch,
    )
    execution = settle(read_sound_script(file), choices)
    with open_output(json=json) as output:
        outcome = execute(execution, output, explained=explain and not json)
    if explain:
        event = {"event": "explained", "plan": outcome.plan}
        typer.echo(dumps(event, ensure_ascii=False) if json else f"\n{outcome.explanation}".rstrip())
    if outcome.summary.failing or outcome.summary.set_aside:
        raise typer.Exit(FAILED)
