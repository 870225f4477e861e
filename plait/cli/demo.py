"""`plait demo`: a year of flights out of New York as streams, and nine questions about them."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Annotated

import typer

from plait.cli.arguments import Strategy
from plait.cli.execution import Choices, execute, settle
from plait.cli.exit_status import FAILED
from plait.cli.output import open_output
from plait.cli.script import read_sound_script
from plait.cli.serving import Listen, listen_choices

START = datetime(2013, 1, 28)
"""A Monday with a wind storm two days later, and the blizzard of February 2013 in its second week."""

DAYS, WHOLE_YEAR = 21, 365
_WIDTH_OF_FILES = 120
HOURS_PER_FILE, HOURS_PER_FILE_OF_A_YEAR = 24, 7 * 24


def demo(
    days: Annotated[int, typer.Option(metavar="N", min=1, help="How many days to replay.")] = DAYS,
    everything: Annotated[bool, typer.Option("--all", help="Replay the whole year, a week a batch.")] = False,
    start: Annotated[
        datetime,
        typer.Option(
            "--from",
            formats=["%Y-%m-%d"],
            metavar="DATE",
            show_default=False,
            help=f"First day, in 2013. Default: {START:%Y-%m-%d}.",
        ),
    ] = START,
    hours: Annotated[
        int | None, typer.Option("--hours", metavar="N", min=1, help="Hours of event time a batch. Default: 24.")
    ] = None,
    output: Annotated[Path, typer.Option(metavar="DIR", help="Where to put inputs, script and results.")] = Path(
        "demo-out"
    ),
    fresh: Annotated[bool, typer.Option("--fresh", help="Remove what an earlier demo left in DIR first.")] = False,
    strategy: Strategy = None,
    listen: Listen = None,
) -> None:
    """Replay flights out of New York in 2013 (departures, arrivals, cancellations, weather) and answer nine questions.

    Stop it with Ctrl-C, or kill it, and start it again: it goes on where it ended, and no result is lost or doubled.
    """
    # Imported here because reading the data and showing answers load what the other commands must not wait for.
    from rich.console import Console

    from plait.cli.demo_report import show_answers, show_run, show_sharing, show_where
    from plait.workloads.flights import Replay, write_demo
    from plait.workloads.questions import QUESTIONS, read_answer

    if everything:
        start, days = datetime(2013, 1, 1), WHOLE_YEAR
    default_hours = HOURS_PER_FILE_OF_A_YEAR if everything else HOURS_PER_FILE
    replay = Replay(first_day=start.date(), days=days, hours_per_file=hours or default_hours)
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_WIDTH_OF_FILES)
    console.print(f"Flights out of New York, {_span(replay.first_day, replay.last_day)}, in {output}")
    file = write_demo(replay, output, fresh=fresh)
    choices = Choices(strategy=strategy, available_now=listen is None, listen=listen_choices(listen, None, None))
    execution = settle(read_sound_script(file), choices)
    if execution.rules is not None:
        console.print("The page stays there until you press Ctrl-C; then the answers are shown")
    with open_output(json=False) as shown:
        outcome = execute(execution, shown)
    answers = [read_answer(question, output, sample=3) for question in QUESTIONS]
    show_answers(console, answers)
    show_sharing(console, outcome.plan)
    show_run(console, outcome)
    show_where(console, output)
    if outcome.summary.failing:
        raise typer.Exit(FAILED)


def _span(first: date, last: date) -> str:
    return f"{first:%d %B %Y}" if first == last else f"{first:%d %B} to {last:%d %B %Y}"
