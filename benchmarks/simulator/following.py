"""`python -m benchmarks following`: how well plans follow the data, by counts, without Spark (papers 000 and 003).

`returns` is paper 003's experiment: work by initial order and policy. `regret` compares what plans took with the best
ones in hindsight on data that drifts. `forecasts` compares γ and μ as forecast with what the next cycle showed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from statistics import fmean, median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.arguments import parser, positive
from benchmarks.figures import count, write_json
from benchmarks.simulator.experiments import Experiment, returns
from benchmarks.simulator.measuring import (
    ABLATIONS,
    COMPARED,
    METHODS,
    Regret,
    by_order,
    forecast_errors,
    regret,
    shifting,
    weighted,
)
from benchmarks.simulator.recording import Recording, record
from benchmarks.simulator.replay import Policy, best_by_cycle, best_single
from benchmarks.surroundings import surroundings
from benchmarks.workloads.tpcds_returns import ORDERS
from plait.adapt.smoothing import Method

_EXPERIMENTS = ("returns", "regret", "forecasts")
_JUDGED = tuple(policy for policy in COMPARED if policy.name in ("greedy", "dppick"))


def main(arguments: list[str]) -> int:
    """Run the experiments asked for."""
    made = parser("following", "How well plans follow the data, by counts.")
    made.add_argument("--only", choices=_EXPERIMENTS, nargs="+", default=_EXPERIMENTS, help="which experiments")
    made.add_argument("--scale", type=float, default=0.3, help="TPC-DS scale factor of `returns`")
    made.add_argument("--cycles", type=positive, default=40, help="cycles of `returns`")
    made.add_argument("--orders", type=positive, default=len(ORDERS), help="initial orders of `returns`")
    made.add_argument("--workloads", type=positive, default=50, help="random workloads of the others")
    made.add_argument("--rate", type=positive, default=1_000, help="rows of a stream in a cycle of these")
    options = made.parse_args(arguments)
    console, report = Console(), dict[str, Any]()
    if "returns" in options.only:
        first, *_ = ORDERS
        recording = _recorded(returns(options.scale, first, options.cycles, options.seed))
        report["returns"] = _returns(console, recording, tuple(ORDERS)[: options.orders])
    if {"regret", "forecasts"} & {*options.only}:
        report |= _drifting(console, options.workloads, float(options.rate), options.only)
    if options.json is not None:
        write_json(options.json, {"benchmark": "following", **surroundings(), **report})
    return 0


def _recorded(experiment: Experiment) -> Recording:
    return record(experiment.query, experiment.streams, experiment.batches)


def _returns(console: Console, recording: Recording, orders: Sequence[str]) -> dict[str, Any]:
    """Show query and match operations by initial order, and in nanoseconds on average."""
    policies = (*COMPARED, *ABLATIONS)
    operations: dict[str, dict[str, int]] = {}
    work: dict[str, list[float]] = {}
    for order, policy, replayed in by_order(recording, orders, policies):
        operations.setdefault(order, {})[policy] = replayed.operations
        work.setdefault(policy, []).append(weighted(recording, replayed))
    table = _table("initial order", *(policy.name for policy in policies))
    for order, found in operations.items():
        table.add_row(order, *map(count, found.values()))
    means = {name: fmean(found[name] for found in operations.values()) for name in work}
    table.add_row("on average", *(count(round(mean)) for mean in means.values()))
    table.add_row("against fixed", *(f"{mean / means['fixed'] - 1:+.1%}" for mean in means.values()))
    weighed = {name: fmean(each) for name, each in work.items()}
    table.add_row("the same, in ns", *(f"{mean / weighed['fixed'] - 1:+.1%}" for mean in weighed.values()))
    console.print("Query and match operations of paper 003's join:")
    console.print(table)
    least = {"by cycle": sum(best_by_cycle(recording)), "single": best_single(recording)}
    console.print(f"least possible: {count(least['by cycle'])} by cycle, {count(least['single'])} with one plan")
    return {"operations": operations, "work_ns": weighed, "least": least}


def _drifting(console: Console, workloads: int, rate: float, wanted: Sequence[str]) -> dict[str, Any]:
    regrets: dict[str, dict[str, Regret]] = {}
    errors: dict[tuple[str, Method], list[float]] = {}
    for experiment in shifting(workloads, rate):
        recording = _recorded(experiment)
        if "regret" in wanted:
            regrets[experiment.name] = {policy.name: regret(recording, policy) for policy in _JUDGED}
        if "forecasts" in wanted:
            for key, found in forecast_errors(recording).items():
                errors.setdefault(key, []).extend(found)
    report: dict[str, Any] = {}
    if regrets:
        _show_regret(console, regrets, _JUDGED)
        report["regret"] = {
            name: {policy: asdict(each) for policy, each in found.items()} for name, found in regrets.items()
        }
    if errors:
        report["forecasts"] = _show_errors(console, errors)
    return report


def _show_regret(console: Console, regrets: dict[str, dict[str, Regret]], policies: Sequence[Policy]) -> None:
    table = _table("regret", *(policy.name for policy in policies))
    found = {policy.name: [each[policy.name] for each in regrets.values()] for policy in policies}
    by_cycle = {name: [one.by_cycle for one in each] for name, each in found.items()}
    table.add_row("against the best by cycle, median", *(f"{median(each):+.1%}" for each in by_cycle.values()))
    table.add_row("worst", *(f"{max(each):+.1%}" for each in by_cycle.values()))
    single = (max(one.single for one in each) for each in found.values())
    table.add_row("against the best single plan, worst", *(f"{each:+.1%}" for each in single))
    over = (sum(one.single > 0.03 for one in each) for each in found.values())
    table.add_row("more than 3 % above the best single plan", *(f"{each} of {len(regrets)}" for each in over))
    table.add_row("changes", *(count(sum(one.changes for one in each)) for each in found.values()))
    console.print(f"Probe tuples on {len(regrets)} workloads, samples included:")
    console.print(table)


def _show_errors(console: Console, errors: dict[tuple[str, Method], list[float]]) -> dict[str, dict[str, float]]:
    table = _table("median error", *METHODS)
    found: dict[str, dict[str, float]] = {}
    for name in ("gamma", "mu"):
        found[name] = {method: median(errors[name, method]) for method in METHODS}
        table.add_row(name, *(f"{value:.2%}" for value in found[name].values()))
    console.print("Forecasts of the next cycle:")
    console.print(table)
    return found


def _table(title: str, *columns: str) -> Table:
    table = Table()
    table.add_column(title)
    for column in columns:
        table.add_column(column, justify="right")
    return table


__all__ = ["main"]
