"""`python -m benchmarks following`: how well plans follow the data, by counts, without Spark (papers 000 and 003).

`returns` is paper 003's experiment: work by initial order and policy; `curves` the same by the length of a cycle and by
the cycles that are kept. `turns` are paper 000's two. `regret` compares what plans took with the best ones in hindsight
on data that drifts. `forecasts` compares γ and μ as forecast with what the next cycle showed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import fmean, median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.arguments import parser, positive
from benchmarks.figures import count, write_json
from benchmarks.simulator.curves import by_history, by_length, flooded, turned
from benchmarks.simulator.experiments import Experiment, returns
from benchmarks.simulator.hindsight import best_by_cycle, best_single
from benchmarks.simulator.measuring import (
    ABLATIONS,
    COMPARED,
    METHODS,
    Drifting,
    Regret,
    behind_best,
    by_order,
    forecast_errors,
    regret,
    shifting,
    weighted,
)
from benchmarks.simulator.recording import Recording, record
from benchmarks.simulator.replay import Policy
from benchmarks.surroundings import surroundings
from benchmarks.workloads.tpcds_returns import ORDERS
from plait.adapt.smoothing import Method
from plait.plan.strategy_names import StrategyName

_EXPERIMENTS = ("returns", "curves", "turns", "regret", "forecasts")
_TURNING: tuple[StrategyName, ...] = ("greedy", "dppick")
_STORING: tuple[StrategyName, ...] = ("dppick", "bushy", "ilp")
_NEAR = 0.01
_JUDGED = tuple(policy for policy in COMPARED if policy.name in ("greedy", "dppick"))


def main(arguments: list[str]) -> int:
    """Run the experiments asked for."""
    made = parser("following", "How well plans follow the data, by counts.")
    made.add_argument("--only", choices=_EXPERIMENTS, nargs="+", default=_EXPERIMENTS, help="which experiments")
    made.add_argument("--scale", type=float, default=0.3, help="TPC-DS scale factor of `returns`")
    made.add_argument("--cycles", type=positive, default=40, help="cycles of `returns`")
    made.add_argument("--seconds", type=positive, default=240, help="batches of a second of `curves`")
    made.add_argument("--orders", type=positive, default=len(ORDERS), help="initial orders of `returns` and `curves`")
    made.add_argument("--workloads", type=int, default=50, help="random workloads of the others")
    made.add_argument("--first", type=int, default=0, help="seed of the first random workload")
    made.add_argument("--small-scale", type=float, default=0.02, help="scale factor of TPC data in `regret`")
    made.add_argument("--no-named", action="store_true", help="random workloads only")
    made.add_argument("--rate", type=positive, default=1_000, help="rows of a stream in a cycle of these")
    options = made.parse_args(arguments)
    console, report = Console(), dict[str, Any]()
    if "returns" in options.only:
        first, *_ = ORDERS
        recording = _recorded(returns(options.scale, first, options.cycles, options.seed))
        report["returns"] = _returns(console, recording, tuple(ORDERS)[: options.orders])
    if "curves" in options.only:
        first, *_ = ORDERS
        recording = _recorded(returns(options.scale, first, options.seconds, options.seed))
        report["curves"] = _curves(console, recording, tuple(ORDERS)[: options.orders])
    if "turns" in options.only:
        report["turns"] = _turns(console)
    if {"regret", "forecasts"} & {*options.only}:
        seeds = range(options.first, options.first + options.workloads)
        wanted = Drifting(
            seeds=seeds,
            rate=float(options.rate),
            scale=options.small_scale,
            directory=options.dir,
            named=not options.no_named,
        )
        report |= _drifting(console, wanted, options.only)
    if options.json is not None:
        write_json(options.json, {"benchmark": "following", **surroundings(), **report})
    return 0


def _recorded(experiment: Experiment) -> Recording:
    return record(experiment.query, experiment.streams, experiment.batches)


def _returns(console: Console, recording: Recording, orders: Sequence[str]) -> dict[str, Any]:
    """Show query and match operations by initial order, and in nanoseconds on average."""
    policies = (*COMPARED, *ABLATIONS)
    operations: dict[str, dict[str, float]] = {}
    work: dict[str, dict[str, float]] = {}
    changes: dict[str, list[int]] = {}
    for order, policy, replayed in by_order(recording, orders, policies):
        operations.setdefault(order, {})[policy] = replayed.operations
        work.setdefault(order, {})[policy] = weighted(recording, replayed)
        changes.setdefault(policy, []).append(len(replayed.changes))
    table = _table("initial order", *(policy.name for policy in policies))
    for order, found in operations.items():
        table.add_row(order, *(count(round(each)) for each in found.values()))
    means = {name: fmean(found[name] for found in operations.values()) for name in changes}
    table.add_row("on average", *(count(round(mean)) for mean in means.values()))
    table.add_row("against fixed", *(f"{mean / means['fixed'] - 1:+.2%}" for mean in means.values()))
    weighed = {name: fmean(found[name] for found in work.values()) for name in changes}
    table.add_row("the same, in ns", *(f"{mean / weighed['fixed'] - 1:+.2%}" for mean in weighed.values()))
    table.add_row("changes of plan", *(f"{fmean(each):.1f}" for each in changes.values()))
    console.print("Query and match operations of paper 003's join:")
    console.print(table)
    for what, taken in (("operations", operations), ("ns", work)):
        console.print(_nearness(what, behind_best(taken)))
    least = {"by cycle": sum(best_by_cycle(recording)), "single": best_single(recording)}
    console.print(f"least possible: {count(least['by cycle'])} by cycle, {count(least['single'])} with one plan")
    return {"operations": operations, "work_ns": work, "changes": changes, "least": least}


def _nearness(what: str, behind: Mapping[str, float]) -> str:
    near, worst = sum(share <= _NEAR for share in behind.values()), max(behind.values())
    return f"dppick is the best of four or within 1 % by {what}: {near} of {len(behind)}, {worst:+.2%} at worst"


def _curves(console: Console, recording: Recording, orders: Sequence[str]) -> dict[str, Any]:
    """Show the operations of `dppick` against `fixed` by T and by L."""
    found = {"T": by_length(recording, orders), "L": by_history(recording, orders)}
    for name, curve in found.items():
        table = _table(name, *map(str, curve))
        table.add_row("operations against fixed", *(f"{value:+.2%}" for value in curve.values()))
        console.print(table)
    return {name: {str(value): share for value, share in curve.items()} for name, curve in found.items()}


def _turns(console: Console) -> dict[str, Any]:
    """Show how plans come through paper 000's two turns of the data."""
    turns, floods = list(turned(_TURNING, 1_000)), list(flooded(_STORING, 10))
    table = _table("turn", "recovered after", "operations a cycle", "of the plan before")
    for turn in turns:
        table.add_row(turn.strategy, f"{turn.recovered} cycles", count(round(turn.after)), count(round(turn.static)))
    console.print(table)
    table = _table("flood", "store after", "operations a cycle", "of the plan before")
    for flood in floods:
        table.add_row(flood.strategy, f"{flood.appeared} cycles", count(round(flood.after)), count(round(flood.static)))
    console.print(table)
    return {"turn": [asdict(each) for each in turns], "flood": [asdict(each) for each in floods]}


def _drifting(console: Console, drifting: Drifting, wanted: Sequence[str]) -> dict[str, Any]:
    regrets: dict[str, dict[str, Regret]] = {}
    errors: dict[tuple[str, Method], list[float]] = {}
    for experiment in shifting(drifting):
        recording = _recorded(experiment)
        if "regret" in wanted:
            found = regrets[experiment.name] = {policy.name: regret(recording, policy) for policy in _JUDGED}
            told = "; ".join(
                f"{name} {each.by_cycle:+.1%} {each.single:+.1%} {each.changes}" for name, each in found.items()
            )
            console.print(f"{experiment.name}: {told} changes of {found['dppick'].shifts} shifts", highlight=False)
        if "forecasts" in wanted:
            for key, each_error in forecast_errors(recording).items():
                errors.setdefault(key, []).extend(each_error)
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
    blind = (median(one.unavoidable for one in each) for each in found.values())
    table.add_row("in the first cycle, median", *(f"{each:+.1%}" for each in blind))
    table.add_row("changes", *(count(sum(one.changes for one in each)) for each in found.values()))
    table.add_row("that saved nothing", *(count(sum(one.vain for one in each)) for each in found.values()))
    table.add_row("shifts of the data", *(count(sum(one.shifts for one in each)) for each in found.values()))
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
