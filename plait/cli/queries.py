"""`plait queries --to URL`."""

from __future__ import annotations

import json as jsons
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from plait.cli.service_client import Token, client_of

Service = Annotated[
    str, typer.Option("--to", metavar="URL", help="The service of a running engine, such as http://127.0.0.1:8040.")
]


def queries(
    to: Service,
    token_file: Token = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List the queries of a running engine: their states, how many results they have had, what they read and write."""
    told = client_of(to, token_file).get("queries")
    typer.echo(jsons.dumps(told, ensure_ascii=False) if json else queries_text(told["queries"]))


def queries_text(told: Iterable[Mapping[str, Any]]) -> str:
    """Return the queries as a table, and below it why some of them have no results."""
    listed = list(told)
    if not listed:
        return "There is no query."
    rows = [["query", "state", "results", "reads", "writes"]]
    rows += [[each["name"], each["state"], f"{each['rows_out']:,}", _reads(each), _writes(each)] for each in listed]
    reasons = [f"{each['name']}: {each['reason']}" for each in listed if each["reason"]]
    return "\n".join([*_aligned(rows), *([""] if reasons else []), *reasons])


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _reads(query: Mapping[str, Any]) -> str:
    return ", ".join(dict.fromkeys(relation["source"] for relation in query["relations"]))


def _writes(query: Mapping[str, Any]) -> str:
    sink = query["sink"]
    place = sink["options"].get("path") or sink["options"].get("topic")
    return sink["format"] if place is None else f"{sink['format']} {place}"


__all__ = ["queries", "queries_text"]
