"""`plait apply FILE --to URL`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from plait.cli.arguments import ScriptFile
from plait.cli.exit_status import FAILED
from plait.cli.queries import Service
from plait.cli.script import read_sound_script
from plait.cli.script_difference import Difference, difference, statement_text
from plait.cli.service_client import Client, Token, client_of
from plait.errors import PlaitError
from plait.plan.explain.wording import estimated_count, some
from plait.spelling import plural

_MOST_PREVIEWED = 200_000
"""Characters: of more, the service would take none."""

_POLL_SECONDS, _PATIENCE_SECONDS = 0.2, 120.0


def apply(
    file: ScriptFile,
    to: Service,
    yes: Annotated[bool, typer.Option("--yes", help="Carry it out without asking.")] = False,
    token_file: Token = None,
) -> None:
    """Let a running engine answer the queries of a script, and no others.

    First it is shown which queries would be added, dropped and replaced, and what they would cost and share.

    Streams and tables stay as they are: for others the engine has to be started with the script.
    """
    client = client_of(to, token_file)
    loaded = read_sound_script(file).load()
    found = difference(loaded.queries, loaded.sources, client.get("queries")["queries"])
    if found.is_empty:
        typer.echo(f"Nothing to do: {plural(found.same, 'query is', 'queries are')} answered as the script says.")
        return
    added = "".join(f"{statement_text(query)};\n" for query in (*found.added, *found.replaced))
    preview = client.post("preview", body=added, drop=found.dropped) if len(added) < _MOST_PREVIEWED else {}
    typer.echo("\n".join(difference_lines(found, preview)))
    if not yes and not typer.confirm("Carry it out?"):
        raise typer.Exit(FAILED)
    carry_out(client, found)


def difference_lines(found: Difference, preview: Mapping[str, Any]) -> Iterator[str]:
    """Yield what would change, and what it would cost, for people."""
    for sign, queries in (("+", found.added), ("~", found.replaced)):
        yield from (f"{sign} {query.name}: {_cost(preview.get('added', {}).get(query.name, {}))}" for query in queries)
    yield from (f"- {name}" for name in found.dropped)
    yield f"= {plural(found.same, 'query stays', 'queries stay')} as {'it is' if found.same == 1 else 'they are'}"
    before, after = ((preview.get(key) or {}).get("probe_tuples_per_s") for key in ("before", "after"))
    yield f"All together: {estimated_count(before)} → {estimated_count(after)} probe tuples/s, as estimated"


def _cost(cost: Mapping[str, Any]) -> str:
    if not cost:
        return "what it costs is not known"
    own = f"{plural(cost['own_steps'], 'step')} of its own"
    rate = f", {estimated_count(cost['own_probe_tuples_per_s'])} probe tuples/s" if cost["own_steps"] else ""
    shared = cost["steps"] - cost["own_steps"]
    return f"{own}{rate}" + (f", {shared} shared with {some(cost['shares_with'])}" if shared else "")


def carry_out(client: Client, found: Difference) -> None:
    """Ask for all of it, and wait until it is in force. Raises PlaitError for what the engine does not take."""
    for name in found.dropped:
        client.delete("queries", name)
    for query in found.added:
        client.post("queries", body=statement_text(query))
    for query in found.replaced:
        client.post("queries", body=statement_text(query), replace=("true",))
    waited, refused = [query.name for query in (*found.added, *found.replaced)], []
    end = time.monotonic() + _PATIENCE_SECONDS
    while waited and time.monotonic() < end:
        told = client.get("queries", waited[0])
        if told["state"] == "waiting":
            time.sleep(_POLL_SECONDS)
            continue
        name = waited.pop(0)
        if told["state"] == "refused":
            refused.append(f"{name} is refused: {told['reason']}")
        else:
            typer.echo(f"{name} is answered" + _since(told))
    if refused or waited:
        still = [f"{', '.join(waited)}: no batch has begun yet with it"] if waited else []
        raise PlaitError("\n".join((*refused, *still)))


def _since(told: Mapping[str, Any]) -> str:
    return "" if told["active_since"] is None else f" from batch {told['active_since']} on"


__all__ = ["apply", "carry_out", "difference_lines"]
