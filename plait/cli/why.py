"""`plait why FILE --query q --row "o.id = 17"`."""

from __future__ import annotations

import json as jsons
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from plait.cli.arguments import Conf, Master
from plait.cli.execution import Choices, loaded, settle
from plait.cli.opened_session import opened_session
from plait.cli.script import read_sound_script
from plait.cli.service_client import To, Token, client_of
from plait.errors import OptionError


def why(
    *,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="The script, unless --to is given.", show_default=False)
    ] = None,
    query: Annotated[str, typer.Option("--query", metavar="NAME", help="The query that has no result of the row.")],
    row: Annotated[
        str, typer.Option("--row", metavar="CONDITION", help='Which row of which relation, such as "o.id = 17".')
    ],
    checkpoint: Annotated[
        str | None, typer.Option(metavar="DIR", help="The checkpoint of the run, if it is not beside the script.")
    ] = None,
    to: To = None,
    token_file: Token = None,
    master: Master = None,
    conf: Conf = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say why there is no result of a row yet: not arrived, late, not selected, without a partner, or still waiting.

    The streams are read once more for that, which must be possible (files). Nothing is changed.

    With --to the running engine is asked; else the script and its checkpoint are looked at, with a Spark of its own.
    """
    if to is not None:
        told = client_of(to, token_file).get("queries", query, "why", row=row)
    elif file is None:
        raise OptionError("name the script whose checkpoint is to be looked at, or a running engine with --to URL")
    else:
        told = _looked_up(file, query, row, Choices(checkpoint=checkpoint, master=master, conf=tuple(conf or ())))
    from plait.runtime.why.findings import text_of

    typer.echo(jsons.dumps(told, ensure_ascii=False) if json else text_of(told), nl=json)


def _looked_up(file: Path, query: str, row: str, choices: Choices) -> Mapping[str, Any]:
    """Return the answer of a checkpoint."""
    execution = settle(read_sound_script(file), choices)

    def say(text: str) -> None:
        typer.echo(text, err=True)

    formats = execution.script.formats()
    with opened_session(execution.master, execution.conf, say, formats=formats) as spark:
        from plait.runtime.engine import Engine

        engine = Engine(spark, checkpoint=execution.checkpoint)
        engine.load(replace(loaded(execution.script, engine), options=()))
        return engine.why(query, row).as_json()
