"""Arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from plait.plan.strategy_names import DEFAULT_STRATEGY, STRATEGY_NAMES

EXPLAIN_FORMATS = ("text", "json", "mermaid")
ADVICE_FORMATS = ("text", "json")
"""What the help lists; held against the tables that say what each does by a test, so that the help need not load them.
"""

ScriptFile: TypeAlias = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="A script of CREATE STREAM, CREATE TABLE, CREATE VIEW, CREATE QUERY and SET statements.",
        show_default=False,
    ),
]

Strategy: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"How to plan: {', '.join(STRATEGY_NAMES)}. Default: what the script sets, or {DEFAULT_STRATEGY}. "
        "`plait advise FILE` says whether another one pays.",
    ),
]

Master: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Spark master, such as local[4] or spark://host:7077. Default: local[*], all cores of this machine.",
    ),
]

Conf: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="A Spark setting, such as spark.driver.memory=4g; may be repeated."),
]

Parallelism: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help="Partitions per store. Default: what the script sets, or this machine's cores."
    ),
]
