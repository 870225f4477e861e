"""How the demo ends: answers, what the queries shared, what it cost, and where to look."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from plait.cli.output.figures import count, duration, rate, size
from plait.spelling import plural

if TYPE_CHECKING:
    from plait.cli.execution import Outcome
    from plait.workloads.questions import Answer

_LONGEST_WHOLE, _SHORTEST_NAME = 14, 8

PlanDocument = Mapping[str, Any]
"""The plan as `plait explain --format json` prints it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """What one plan for all queries saves. A step is one comparison of arriving rows with a store."""

    query: str
    relations: int
    steps: int
    shared_steps: int
    with_queries: tuple[str, ...]


def shares_of_queries(plan: PlanDocument) -> list[Sharing]:
    """Return, per query, how many of its steps it shares and with whom."""
    shares = []
    for query in plan["queries"]:
        steps = [step for order in query["orders"] for step in order["steps"]]
        others = {other for step in steps for other in step["shared_with"]}
        shares.append(
            Sharing(
                query=query["name"],
                relations=len(query["orders"][0]["relations"]),
                steps=len(steps),
                shared_steps=sum(bool(step["shared_with"]) for step in steps),
                with_queries=tuple(sorted(others)),
            )
        )
    return shares


def steps_of(plan: PlanDocument) -> int:
    """Return how many different steps the plan has."""
    return sum(1 for tree in plan["trees"] for _ in _walk(tree["steps"]))


def _walk(steps: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for step in steps:
        yield step
        yield from _walk(step["steps"])


def show_answers(console: Console, answers: Sequence[Answer]) -> None:
    """Print every question with its number of results and a few of them. Times are UTC."""
    for answer in answers:
        question = answer.question
        console.print(f"\n[bold]{question.asks}[/bold]")
        console.print(f"{question.query}: {plural(answer.results, 'result')}" + (", such as" if answer.sample else ""))
        if not answer.sample:
            continue
        table = Table(box=None, pad_edge=False, header_style="dim")
        for column, width in zip(question.columns, _widths(answer, console.width), strict=True):
            table.add_column(column, no_wrap=True, overflow="ellipsis", width=width)
        for row in answer.sample:
            table.add_row(*row)
        console.print(table)


def _widths(answer: Answer, terminal: int) -> list[int]:
    """Return column widths that fit the terminal: names give way; times and numbers are of no use cut short."""
    columns = zip(answer.question.columns, *answer.sample, strict=True)
    longest = [max(len(text) for text in column) for column in columns]
    names = [width for width in longest if width > _LONGEST_WHOLE]
    spare = terminal - sum(longest) - 2 * (len(longest) - 1)
    if spare >= 0 or not names:
        return longest
    room = max((sum(names) + spare) // len(names), _SHORTEST_NAME)
    return [min(width, room) if width > _LONGEST_WHOLE else width for width in longest]


def show_sharing(console: Console, plan: PlanDocument) -> None:
    """Print what the queries have in common."""
    shares = shares_of_queries(plan)
    relations, steps = sum(share.relations for share in shares), sum(share.steps for share in shares)
    console.print("\n[bold]One plan for all of them[/bold]")
    console.print(
        f"{plural(len(shares), 'query', 'queries')} over {relations} relations keep "
        f"{plural(len(plan['stores']), 'store')}{_stores_of_separate_plans(plan)}, "
        f"and need {steps} steps, of which {steps_of(plan)} are different"
    )
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("query", "relations", "steps", "shared", "with"):
        table.add_column(name, justify="left" if name in ("query", "with") else "right")
    for share in shares:
        numbers = (str(share.relations), str(share.steps), str(share.shared_steps))
        table.add_row(share.query, *numbers, ", ".join(share.with_queries))
    console.print(table)


def _stores_of_separate_plans(plan: PlanDocument) -> str:
    compared = (plan["comparison"] or {"plans": []})["plans"]
    return "".join(f" instead of {other['stores']}" for other in compared if other["strategy"] == "independent")


def show_run(console: Console, outcome: Outcome) -> None:
    """Print what the run cost, and whether there is more to do."""
    summary = outcome.summary
    console.print("\n[bold]This run[/bold]")
    if outcome.is_stopped:
        console.print("stopped before the end: the same command goes on from here")
    elif not summary.batches:
        console.print("nothing new: everything had been replayed before")
    if not summary.batches:
        return
    console.print(
        f"{plural(summary.batches, 'batch', 'batches')}, {plural(summary.rows_in, 'row')} in "
        f"{duration(summary.wall_seconds)}: {rate(summary.rows_in, summary.wall_seconds)}, "
        f"{count(summary.probe_tuples)} probe tuples"
    )
    console.print("latency counts the wait: all files lay there when the run began")
    console.print(
        f"kept at the end: {plural(summary.stored_tuples, 'row')} ({size(summary.stored_bytes)}), "
        "the tables, and what the windows reach back to"
    )


def show_where(console: Console, output: Path) -> None:
    """Print where everything is and how to look at it."""
    results, script = output / "out", output / "flights.sql"
    console.print("\n[bold]Look at it[/bold]")
    console.print(f"results   {results}/<query>/*.parquet (times are UTC)", soft_wrap=True)
    console.print(f"queries   {script}: change them, then run `plait run {script} --available-now`", soft_wrap=True)
    checkpoint = script.with_suffix(".checkpoint")
    console.print(f"plan      plait explain {script} --checkpoint {checkpoint}", soft_wrap=True)
    console.print(f"advice    plait advise {script} --sample 10000", soft_wrap=True)
    example = f"import pandas; print(pandas.read_parquet('{results}/knock_on'))"
    console.print(f'pandas    python -c "{example}"', soft_wrap=True)
    console.print(f"DuckDB    SELECT * FROM '{results}/knock_on/*.parquet'", soft_wrap=True)
    console.print(f"Spark     spark.read.parquet('{results}/knock_on')", soft_wrap=True)
