"""`plait bench trees`: what join trees keep and what they send, as paper 002 compares them.

- *stored*: rows that flat, left-deep and budgeted trees keep for the joins of TPC-H's queries 2, 3 and 5, every join
  counted by DuckDB over the full history; and, at the smallest scale, what the engine kept when it ran them.
- *capacity*: probe tuples of the chain of five relations with a million rows each, for three selectivities, against how
  much of a relation one task can hold. Computed; tuples are placed at random, as in the paper.
- *budget*: what the budgeted trees of the same queries send as their budget grows.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path

from rich.console import Console
from rich.table import Table

from plait.bench.counted import CountedSizes
from plait.bench.curve import require_pyplot
from plait.bench.options import parser
from plait.bench.report import count, write_json
from plait.bench.surroundings import surroundings
from plait.bench.systems.launch import run_fresh
from plait.bench.systems.task import Task
from plait.bench.tpch_data import TpchInput, prepare_tpch, read_streams
from plait.bench.tpch_joins import open_tpch
from plait.optimizer.cardinality import Cardinality
from plait.optimizer.cost import JoinSizes
from plait.optimizer.examples import example_query
from plait.optimizer.join_trees import FLAT, Inner, JoinTrees
from plait.optimizer.options import PlanOptions, partitions
from plait.optimizer.sharing.storage import Storage
from plait.optimizer.strategies.bushy import cheapest_tree
from plait.optimizer.strategies.left_deep import smallest_prefixes
from plait.optimizer.tree_plans import Room
from plait.query.model import Stream
from plait.stats.model import JoinSelectivity, SourceStatistics, Statistics
from plait.workloads.joins import QuerySet
from plait.workloads.tpch_trees import tree_queries

_SELECTIVITIES = (1e-8, 1e-6, 1e-5)
_SHARES = (0.1, 0.2, 0.25, 0.5, 1.0)
_ROWS = 1_000_000.0
_FACTORS = (1.0, 1.05, 1.2, 1.5, 2.0, 3.0)
_RUN_FACTORS = (1.05, 2.0)
"""The budgets with which the engine is run: once little fits, once everything that pays."""
_WIDTH = 110
_CHAIN = ("r", "s", "t", "u", "v")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A tree of a query at a scale: rows of the inputs, rows it keeps in all, probe tuples it sends.

    `kept`: what the engine kept, `sent`: what it sent; None where it was not run.
    """

    query: str
    scale: float
    tree: str
    inputs: float
    rows: float
    probe_tuples: float
    budget: float | None = None
    kept: int | None = None
    sent: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """Probe tuples of the chain if one task holds `share` of a relation."""

    selectivity: float
    share: float
    flat: float
    left_deep: float
    bushy: float


def main(arguments: list[str]) -> int:
    """Run the benchmark; 1 if a budgeted tree keeps more than its budget or sends more than with a smaller one."""
    options = _arguments(arguments)
    console = Console()
    where = surroundings()
    stored: list[Stored] = []
    for scale in options.scales:
        stored += _stored(scale, options, console)
    budgets = [row for row in stored if row.budget is not None]
    capacities = [capacity(selectivity, share) for selectivity in _SELECTIVITIES for share in _SHARES]
    wide = Console(width=max(console.width, _WIDTH))
    wide.print(_stored_table([row for row in stored if row.budget is None]))
    wide.print(_budget_table(budgets))
    wide.print(_capacity_table(capacities))
    if options.plot is not None:
        _draw(capacities, budgets, options.plot)
    if options.json is not None:
        lists = {
            "stored": [asdict(row) for row in stored],
            "capacity": [asdict(row) for row in capacities],
        }
        write_json(options.json, {"benchmark": "trees", **where, **lists})
    return 0 if keeps_its_budget(budgets) else 1


def _arguments(arguments: list[str]) -> argparse.Namespace:
    made = parser("trees", "What join trees keep and send: TPC-H queries 2, 3 and 5, and a chain of five relations.")
    made.add_argument("--scales", type=_scales, default=(0.01, 0.1, 1.0), metavar="S,...", help="TPC-H scale factors")
    made.add_argument(
        "--run", action=argparse.BooleanOptionalAction, default=True, help="run the smallest scale through the engine"
    )
    made.add_argument("--plot", type=Path, metavar="FILE", help="draw capacity and budget there (PNG, SVG or PDF)")
    return made.parse_args(arguments)


def _scales(text: str) -> tuple[float, ...]:
    return tuple(sorted(float(part) for part in text.split(",")))


def room(left: float) -> Room:
    """Return room for so many rows of intermediate results."""
    return Room(budget=Storage(left=left, in_bytes=False, width_bytes={}), left=left)


def _stored(scale: float, options: argparse.Namespace, console: Console) -> list[Stored]:
    console.print(f"TPC-H at scale {scale:g}: counting joins", highlight=False)
    data = prepare_tpch(TpchInput(scale=scale), options.dir.absolute())
    streams = read_streams(data)
    found = []
    with open_tpch(data, streams, options.cores) as database:
        for question in tree_queries():
            trees = JoinTrees(CountedSizes(question, streams, database))
            inputs = trees.storage_cost(FLAT)
            chosen: dict[str, tuple[Inner, float | None]] = {
                "flat": (FLAT, None),
                "left-deep": (smallest_prefixes(trees, room(0.0)), None),
                "bushy": (cheapest_tree(trees, room(float("inf"))), None),
            }
            for factor in _FACTORS:
                budget = inputs * factor
                chosen[f"bushy {factor:g}"] = (cheapest_tree(trees, room(budget - inputs)), budget)
            for name, (inner, limit) in chosen.items():
                row = Stored(
                    query=question.name,
                    scale=scale,
                    tree=name,
                    inputs=inputs,
                    rows=trees.storage_cost(inner),
                    probe_tuples=trees.probe_cost(inner),
                    budget=limit,
                )
                is_run = limit is None or any(limit == inputs * factor for factor in _RUN_FACTORS)
                if options.run and is_run and scale == min(options.scales):
                    row = _run(row, QuerySet.over(streams, (question,)), data, options)
                found.append(row)
    return found


def _run(row: Stored, questions: QuerySet, data: Path, options: argparse.Namespace) -> Stored:
    """Let the engine run the query with this kind of tree and budget."""
    conf = () if row.budget is None else (("plait.storage_rows", str(int(row.budget))),)
    scratch = options.dir.absolute() / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    task = Task(
        system="plait",
        strategy=row.tree.split(" ")[0],
        sample=1,
        questions=questions,
        data=str(data),
        files=TpchInput(scale=row.scale).files,
        scratch=str(scratch),
        cores=options.cores,
        options=(*options.conf, *conf),
    )
    outcome = run_fresh(task, timeout_s=600).outcome
    return replace(row, kept=outcome.stored_tuples, sent=outcome.probe_tuples)


def capacity(selectivity: float, share: float) -> Capacity:
    """Return what the trees of the chain send if a task holds `share` of a relation."""
    query = example_query("q", "r.a = s.a", "s.b = t.b", "t.c = u.c", "u.d = v.d")
    keys = [equality.left.expression.sql for equality in query.equalities]
    statistics = Statistics(
        sources=tuple(SourceStatistics(source=name, rate_rows_per_s=_ROWS, rows=_ROWS) for name in _CHAIN),
        joins=tuple(
            JoinSelectivity(sides=((left, f"#k bigint {key}"), (right, f"#k bigint {key}")), selectivity=selectivity)
            for left, right, key in zip(_CHAIN[:-1], _CHAIN[1:], keys, strict=True)
        ),
    )
    options = PlanOptions(
        strategy="flat",
        parallelism=partitions(_ROWS, share * _ROWS),
        task_rows=share * _ROWS,
        sources=tuple(Stream(name=name, time="ts", window_us=1_000_000) for name in _CHAIN),
    )
    trees = JoinTrees(JoinSizes(query, Cardinality(statistics=statistics), options), is_random=True)
    chosen: dict[str, Inner] = {
        "flat": FLAT,
        "left_deep": smallest_prefixes(trees, room(0.0)),
        "bushy": cheapest_tree(trees, room(float("inf"))),
    }
    return Capacity(
        selectivity=selectivity, share=share, **{name: trees.probe_cost(inner) for name, inner in chosen.items()}
    )


def keeps_its_budget(rows: list[Stored]) -> bool:
    """Tell whether no tree keeps more than its budget, by count and as run, and none sends more for a larger one."""
    fits = all(row.budget is None or max(row.rows, row.kept or 0) <= row.budget for row in rows)
    falls = all(
        later.probe_tuples <= before.probe_tuples + 1e-6
        for before, later in pairwise(rows)
        if (before.query, before.scale) == (later.query, later.scale)
    )
    return fits and falls


def _stored_table(rows: list[Stored]) -> Table:
    table = Table(title="Rows stored, full history")
    for name in ("query", "scale", "tree", "inputs", "stored", "again", "as run", "probe tuples", "as run"):
        table.add_column(name, justify="left" if name in ("query", "tree") else "right")
    for row in rows:
        again = (row.rows - row.inputs) / row.inputs
        table.add_row(
            row.query,
            f"{row.scale:g}",
            row.tree,
            count(int(row.inputs)),
            count(int(row.rows)),
            f"{100 * again:.0f} %",
            "-" if row.kept is None else count(row.kept),
            count(int(row.probe_tuples)),
            "-" if row.sent is None else count(row.sent),
        )
    return table


def _budget_table(rows: list[Stored]) -> Table:
    table = Table(title="Budgeted trees")
    for name in ("query", "scale", "budget", "stored", "as run", "probe tuples"):
        table.add_column(name, justify="left" if name == "query" else "right")
    for row in rows:
        table.add_row(
            row.query,
            f"{row.scale:g}",
            count(int(row.budget or 0)),
            count(int(row.rows)),
            "-" if row.kept is None else count(row.kept),
            count(int(row.probe_tuples)),
        )
    return table


def _capacity_table(rows: list[Capacity]) -> Table:
    table = Table(title="Probe tuples, chain of five relations with a million rows each")
    for name in ("selectivity", "a task holds", "flat", "left-deep", "bushy", "left-deep / flat"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            f"{row.selectivity:g}",
            f"{row.share:g}",
            count(int(row.flat)),
            count(int(row.left_deep)),
            count(int(row.bushy)),
            f"{row.left_deep / row.flat:.2f}",
        )
    return table


def _draw(capacities: list[Capacity], budgets: list[Stored], path: Path) -> None:
    """Draw probe tuples against capacity, one picture a selectivity, and against the budget."""
    pyplot = require_pyplot()
    figure, axes = pyplot.subplots(1, len(_SELECTIVITIES) + 1, figsize=(16, 4), layout="constrained")
    for axis, selectivity in zip(axes, _SELECTIVITIES, strict=False):
        rows = [row for row in capacities if row.selectivity == selectivity]
        for name in ("flat", "left_deep", "bushy"):
            axis.plot([row.share for row in rows], [getattr(row, name) for row in rows], marker="o", label=name)
        axis.set(xlabel="share of a relation a task holds", ylabel="probe tuples", title=f"selectivity {selectivity:g}")
        axis.set_yscale("log")
    largest = max(row.scale for row in budgets)
    for query in dict.fromkeys(row.query for row in budgets):
        rows_of = [row for row in budgets if row.query == query and row.scale == largest]
        first = rows_of[0].probe_tuples
        axes[-1].plot(
            [(row.budget or 0.0) / row.inputs for row in rows_of],
            [row.probe_tuples / first for row in rows_of],
            marker="o",
            label=query,
        )
    axes[-1].set(xlabel="budget / input rows", ylabel="probe tuples / flat", title=f"TPC-H, scale {largest:g}")
    for axis in axes:
        axis.legend(fontsize="small")
        axis.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
