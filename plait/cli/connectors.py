"""`plait connectors`: which connectors are on this machine, and fetching them ahead of the script that needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from plait.errors import OptionError
from plait.sources.connectors import PACKAGES, Package
from plait.spelling import did_you_mean, folded

if TYPE_CHECKING:
    from plait.runtime.spark.connector_jars import ConnectorState

connectors = typer.Typer(
    help="Show which connectors are on this machine. A script that names one fetches it by itself, once.",
    invoke_without_command=True,
)


@connectors.callback()
def listed(context: typer.Context) -> None:
    """Show which connectors are on this machine. A script that names one fetches it by itself, once."""
    # Imported here because what is below the command line loads Spark's Python side, which others must not wait for.
    from plait.runtime.spark.connector_jars import state_of

    if context.invoked_subcommand is None:
        for package in PACKAGES.values():
            typer.echo(f"{package.name:12}{_told(state_of(package))}")


@connectors.command("install")
def install(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help=f"{', '.join(PACKAGES)}.", show_default=False)],
) -> None:
    """Fetch the jars of connectors, so that scripts need no network.

    Maven's client is asked if it is installed; otherwise the repository that PLAIT_MAVEN_REPOSITORY or Maven's settings
    name.
    """
    from plait.runtime.spark.connector_jars import install as install_jars
    from plait.runtime.spark.connector_jars import state_of

    for package in [_named(name) for name in names]:
        if not state_of(package).in_spark:
            install_jars(package)
        typer.echo(f"{package.name:12}{_told(state_of(package))}")


def _named(name: str) -> Package:
    if folded(name) not in PACKAGES:
        raise OptionError(f"there is no connector '{name}'{did_you_mean(name, PACKAGES)}")
    return PACKAGES[folded(name)]


def _told(state: ConnectorState) -> str:
    if state.in_spark:
        return "ready: it is among Spark's own jars"
    if state.is_ready:
        return f"ready: {', '.join(jar.file for jar in state.package.jars)}"
    jars = "its jars" if len(state.missing) == len(state.package.jars) else ", ".join(jar.file for jar in state.missing)
    return (
        f"not here: {jars} will be fetched when a script names it, or by: plait connectors install {state.package.name}"
    )
