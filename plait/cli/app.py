"""The commands: parse arguments, call one module a command, turn errors into exit statuses."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from plait.cli.advise import advise
from plait.cli.apply import apply
from plait.cli.check import check
from plait.cli.connectors import connectors
from plait.cli.demo import demo
from plait.cli.exit_status import report
from plait.cli.explain import explain
from plait.cli.queries import queries
from plait.cli.run import run
from plait.cli.why import why

app = typer.Typer(
    name="plait",
    help="Run many continuous multi-way join queries over the same streams, on Spark, as one shared plan.",
    epilog="Exit status: 0 done, 1 the run failed, 2 the script or the arguments are wrong. "
    "PLAIT_DEBUG=1 shows where an error came from.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run)
app.command("explain")(explain)
app.command("advise")(advise)
app.command("check")(check)
app.command("why")(why)
app.command("queries")(queries)
app.command("apply")(apply)
app.command("demo")(demo)
app.add_typer(connectors, name="connectors")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"plait {version('plait')}")
        raise typer.Exit


@app.callback()
def _options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Hold the options of `plait` itself."""


def run_command() -> None:
    """Parse the arguments and run the command; always leaves by SystemExit, or by KeyboardInterrupt."""
    try:
        app()
    except Exception as error:  # every error becomes a message and a status
        sys.exit(report(error))
