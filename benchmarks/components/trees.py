"""`python -m benchmarks trees`: what join trees keep and what they send, as paper 002 compares them.

- *stored*: rows that flat, left-deep and budgeted trees keep for the joins of TPC-H's queries 2, 3 and 5, every join
  counted by DuckDB over the full history; and, at the smallest scale, what the engine kept when it ran them.
- *capacity*: probe tuples of the chain of five relations with a million rows each, for three selectivities, against how
  much of a relation one task can hold. Computed; tuples are placed at random, as in the paper.
- *scaling*: rows a second, and the time a batch takes, against the partitions of every store, and of the largest alone.
- *budget*: what the budgeted trees of the same queries send as their budget grows.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from statistics import median

from rich.console import Console

from benchmarks.arguments import parser
from benchmarks.components.counted import CountedSizes
from benchmarks.components.trees_report import (
    SCALING,
    SELECTIVITIES,
    Capacity,
    Scaling,
    Stored,
    budget_table,
    capacity_table,
    draw,
    scaling_table,
    stored_table,
)
from benchmarks.figures import write_json
from benchmarks.surroundings import surroundings
from benchmarks.systems.launch import run_fresh
from benchmarks.systems.task import Outcome, Task
from benchmarks.workloads.joins import QuerySet
from benchmarks.workloads.tpch_counts import open_tpch
from benchmarks.workloads.tpch_data import TpchInput, prepare_tpch, read_streams
from benchmarks.workloads.tpch_trees import tree_queries
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.join_sizes import JoinSizes
from plait.optimizer.estimate.storage_budget import StorageBudget
from plait.optimizer.examples import example_query
from plait.optimizer.join_trees.join_tree import FLAT, Inner, JoinTrees
from plait.optimizer.join_trees.plan_trees import RemainingBudget
from plait.optimizer.options import PlanOptions, partitions
from plait.optimizer.strategies.bushy import cheapest_tree
from plait.optimizer.strategies.left_deep import smallest_prefixes
from plait.query.model import Stream
from plait.stats.model import JoinSelectivity, SourceStatistics, Statistics

_SHARES = (0.1, 0.2, 0.25, 0.5, 1.0)
_ROWS = 1_000_000.0
_FACTORS = (1.0, 1.05, 1.2, 1.5, 2.0, 3.0)
_RUN_FACTORS = (1.05, 2.0)
"""The budgets with which the engine is run: once little fits, once everything that pays."""
_PARTITIONS = (1, 2, 4, 8)
_WIDTH = 110
_CHAIN = ("r", "s", "t", "u", "v")


def main(arguments: list[str]) -> int:
    """Run the benchmark; 1 if a budgeted tree keeps more than its budget or sends more than with a smaller one."""
    options = _arguments(arguments)
    console = Console()
    where = surroundings()
    stored: list[Stored] = []
    for scale in options.scales:
        stored += _stored(scale, options, console)
    budgets = [row for row in stored if row.budget is not None]
    capacities = [capacity(selectivity, share) for selectivity in SELECTIVITIES for share in _SHARES]
    scaling = list(_scaling(options, console)) if options.scaling else []
    wide = Console(width=max(console.width, _WIDTH))
    wide.print(stored_table([row for row in stored if row.budget is None]))
    wide.print(budget_table(budgets))
    wide.print(capacity_table(capacities))
    if scaling:
        wide.print(scaling_table(scaling))
    if options.plot is not None:
        draw(capacities, budgets, options.plot)
    if options.json is not None:
        lists = {
            "stored": [asdict(row) for row in stored],
            "capacity": [asdict(row) for row in capacities],
            "scaling": [asdict(row) for row in scaling],
        }
        write_json(options.json, {"benchmark": "trees", **where, **lists})
    return 0 if keeps_its_budget(budgets) else 1


def _arguments(arguments: list[str]) -> argparse.Namespace:
    made = parser("trees", "What join trees keep and send: TPC-H queries 2, 3 and 5, and a chain of five relations.")
    made.add_argument("--scales", type=_scales, default=(0.01, 0.05, 0.1), metavar="S,...", help="TPC-H scale factors")
    made.add_argument(
        "--run", action=argparse.BooleanOptionalAction, default=True, help="run the smallest scale through the engine"
    )
    made.add_argument("--scaling", action="store_true", help="also run queries 2 and 3 with 1, 2, 4 and 8 partitions")
    made.add_argument("--plot", type=Path, metavar="FILE", help="draw capacity and budget there (PNG, SVG or PDF)")
    return made.parse_args(arguments)


def _scales(text: str) -> tuple[float, ...]:
    return tuple(sorted(float(part) for part in text.split(",")))


def remaining(left: float) -> RemainingBudget:
    """Return a budget with room for so many rows of intermediate results."""
    return RemainingBudget(budget=StorageBudget(left=left, inputs=0.0, in_bytes=False, width_bytes={}), left=left)


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
                "left-deep": (smallest_prefixes(trees, remaining(0.0)), None),
                "bushy": (cheapest_tree(trees, remaining(float("inf"))), None),
            }
            for factor in _FACTORS:
                budget = inputs * factor
                chosen[f"bushy {factor:g}"] = (cheapest_tree(trees, remaining(budget - inputs)), budget)
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


def _scaling(options: argparse.Namespace, console: Console) -> Iterator[Scaling]:
    """Run query 2 with all stores spread, and query 3 with its largest store alone spread, as the paper does."""
    wanted = TpchInput(scale=SCALING, files=10)
    data = prepare_tpch(wanted, options.dir.absolute())
    streams = read_streams(data)
    queries = {question.name: question for question in tree_queries()}
    for name, trees, largest in (("q2", ("flat", "left-deep", "bushy"), None), ("q3", ("flat",), "lineitem")):
        questions = QuerySet.over(streams, (queries[name],))
        for tree in trees:
            for number in _PARTITIONS:
                spread: tuple[tuple[str, str], ...] = (("plait.parallelism", str(number)),)
                if largest is not None:
                    spread = (("plait.parallelism", "1"), (f"plait.parallelism.{largest}", str(number)))
                outcome = _outcome(questions, data, wanted, tree, spread, options)
                console.print(f"  {name}, {tree}, {number} partitions: {outcome.seconds:.1f} s", highlight=False)
                yield Scaling(
                    query=name,
                    tree=tree,
                    partitions=number,
                    largest_only=largest is not None,
                    rows_per_s=outcome.rows_in / outcome.seconds,
                    batch_s=median(outcome.batch_seconds[1:]),
                    probe_tuples=outcome.probe_tuples or 0,
                )


def _run(row: Stored, questions: QuerySet, data: Path, options: argparse.Namespace) -> Stored:
    """Let the engine run the query with this kind of tree and budget."""
    conf = () if row.budget is None else (("plait.storage_rows", str(int(row.budget))),)
    outcome = _outcome(questions, data, TpchInput(scale=row.scale), row.tree.split(" ")[0], conf, options)
    return replace(row, kept=outcome.stored_tuples, sent=outcome.probe_tuples)


def _outcome(
    questions: QuerySet,
    data: Path,
    wanted: TpchInput,
    strategy: str,
    conf: tuple[tuple[str, str], ...],
    options: argparse.Namespace,
) -> Outcome:
    scratch = options.dir.absolute() / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    task = Task(
        system="plait",
        mode=strategy,
        sample=1,
        questions=questions,
        data=str(data),
        files=wanted.files,
        scratch=str(scratch),
        cores=options.cores,
        options=(*options.conf, *conf),
    )
    return run_fresh(task, timeout_s=600).outcome


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
        sources=tuple(Stream(name=name, time="ts", window_us=1_000_000, placement="random") for name in _CHAIN),
    )
    trees = JoinTrees(JoinSizes(query, Cardinality(statistics=statistics), options))
    chosen: dict[str, Inner] = {
        "flat": FLAT,
        "left_deep": smallest_prefixes(trees, remaining(0.0)),
        "bushy": cheapest_tree(trees, remaining(float("inf"))),
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
