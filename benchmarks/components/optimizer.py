"""`python -m benchmarks optimizer`: how long planning many queries together takes, and what it saves.

The random queries of paper 000, section VII.C (`tests.random_joins`). Nothing runs but the optimizer.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, TypeAlias

from rich.console import Console
from rich.table import Table

from benchmarks.arguments import numbers, parser, positive
from benchmarks.figures import count, write_json
from benchmarks.plotting import require_pyplot
from benchmarks.surroundings import surroundings
from plait.optimizer.multi_query import Limits, cheapest_orders, decide, explore
from plait.optimizer.options import PlanOptions
from tests.random_joins import Instance, RandomJoins, draw


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """So many queries of one size over so many relations."""

    relations: int
    queries: int
    size: int
    parallelism: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One instance of a case.

    `distinct` queries were left of those drawn. `steps`, `intermediates` and `keys` are what could be chosen.
    Costs are probe tuples: `alone_flat` of all queries planned alone over their input relations, `alone` with
    intermediate stores too, `together` of the shared plan; no plan has less than `bound`.
    """

    distinct: int
    steps: int
    intermediates: int
    keys: int
    build_seconds: float
    solve_seconds: float
    alone_flat: float
    alone: float
    together: float
    bound: float
    solver: str

    @property
    def seconds(self) -> float:
        """Build plus solve."""
        return self.build_seconds + self.solve_seconds

    @property
    def gap(self) -> float:
        """Share of the cost that may be avoidable."""
        return 1 - self.bound / self.together if self.together else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Medians over the instances of a case."""

    case: Case
    distinct: float
    variables: float
    build_seconds: float
    solve_seconds: float
    seconds: float
    alone_flat: float
    alone: float
    together: float
    saved_of_flat: float
    saved: float
    gap: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a case has to keep to: seconds to build and solve, and the gap to the bound."""

    case: Case
    seconds: float
    gap: float


TARGETS = (
    Target(case=Case(relations=100, queries=100, size=3, parallelism=1), seconds=0.25, gap=0.01),
    Target(case=Case(relations=10, queries=30, size=5, parallelism=1), seconds=2.0, gap=0.01),
    Target(case=Case(relations=10, queries=100, size=6, parallelism=1), seconds=20.0, gap=0.01),
)


_WARMING = Case(relations=10, queries=10, size=4, parallelism=1)
"""Planned once before anything is timed, so that no case pays for loading the solver."""


def main(arguments: list[str]) -> int:
    """Run the benchmark; 0 if the cases that have a target kept to it, else 1."""
    options = _arguments(arguments)
    console = Console()
    where = surroundings()
    cases = [
        Case(relations=relations, queries=queries, size=size, parallelism=parallelism)
        for parallelism, relations, size, queries in product(
            options.parallelism, options.relations, options.sizes, options.queries
        )
    ]
    planned: list[tuple[Case, list[Planned]]] = []
    plan_case(_WARMING, options.seed, _limits(options))
    for case in cases:
        runs = [plan_case(case, seed, _limits(options)) for seed in range(options.seed, options.seed + options.repeat)]
        planned.append((case, runs))
        console.print(_line(summarize(case, runs)), highlight=False)
    found = [summarize(case, runs) for case, runs in planned]
    missed = missed_targets(found)
    if options.json is not None:
        write_json(options.json, _document(options, where, planned, found, missed))
    if options.plot is not None:
        draw_curves([(each.case, each.saved_of_flat, each.seconds) for each in found], options.plot)
    console.print(table(found))
    for target in missed:
        console.print(_sentence(target), highlight=False)
    return 1 if missed else 0


def _arguments(arguments: list[str]) -> argparse.Namespace:
    made = parser("optimizer", "Time and savings of planning random queries together.")
    made.add_argument("--relations", type=numbers, default="10,100", help="numbers of relations to draw from")
    made.add_argument("--queries", type=numbers, default="10,30,50,100", help="numbers of queries to draw")
    made.add_argument("--sizes", type=numbers, default="3,4,5", help="relations in a query")
    made.add_argument("--parallelism", type=numbers, default="1", help="partitions of every store")
    made.add_argument("--repeat", type=positive, default=3, help="instances of each case to take the median of")
    made.add_argument("--time-limit", type=positive, default=60, help="seconds to solve one instance")
    made.add_argument("--gap", type=float, default=0.01, help="relative gap that is good enough")
    made.add_argument("--plot", type=Path, metavar="FILE", help="draw the curves there (PNG or SVG)")
    return made.parse_args(arguments)


def _limits(options: argparse.Namespace) -> Limits:
    return Limits(seconds=options.time_limit, gap=options.gap)


def plan_case(case: Case, seed: int, limits: Limits) -> Planned:
    """Draw an instance of a case and plan it."""
    made = draw(RandomJoins(relations=case.relations, queries=case.queries, size=case.size, seed=seed))
    options = made.options("ilp", case.parallelism)
    begun = perf_counter()
    space = explore(made.queries, made.statistics, options)
    built = perf_counter()
    solution = cheapest_orders(space, limits).solution
    solved = perf_counter()
    stores = space.network.stores
    return Planned(
        distinct=len(made.queries),
        steps=len(space.network.tail),
        intermediates=sum(store.intermediate is not None for store in stores),
        keys=sum(store.choices for store in stores if store.is_open),
        build_seconds=built - begun,
        solve_seconds=solved - built,
        alone_flat=_one_by_one(made, replace(options, storage_rows=0)),
        alone=_one_by_one(made, options),
        together=solution.objective,
        bound=solution.bound,
        solver=solution.solver,
    )


def _one_by_one(made: Instance, options: PlanOptions) -> float:
    """Return what the queries cost together if each is planned without knowing of the others."""
    return sum(decide((query,), made.statistics, options).solution.objective for query in made.queries)


def summarize(case: Case, runs: Sequence[Planned]) -> Figures:
    """Return the medians over the instances of a case."""

    def middle(read: Callable[[Planned], float]) -> float:
        return median(read(run) for run in runs)

    return Figures(
        case=case,
        distinct=middle(lambda run: run.distinct),
        variables=middle(lambda run: run.steps + run.intermediates + run.keys),
        build_seconds=middle(lambda run: run.build_seconds),
        solve_seconds=middle(lambda run: run.solve_seconds),
        seconds=middle(lambda run: run.seconds),
        alone_flat=middle(lambda run: run.alone_flat),
        alone=middle(lambda run: run.alone),
        together=middle(lambda run: run.together),
        saved_of_flat=middle(lambda run: 1 - run.together / run.alone_flat),
        saved=middle(lambda run: 1 - run.together / run.alone),
        gap=middle(lambda run: run.gap),
    )


def missed_targets(found: Sequence[Figures]) -> list[Target]:
    """Return the targets of the cases at hand that were not kept."""
    by_case = {each.case: each for each in found}
    return [
        target
        for target in TARGETS
        if target.case in by_case
        and not (by_case[target.case].seconds <= target.seconds and by_case[target.case].gap <= target.gap + 1e-6)
    ]


def table(found: Sequence[Figures]) -> Table:
    """Return a table for people: a line a case."""
    made = Table(
        title="Planning random queries together",
        caption="Medians. Probe tuples of all queries planned alone over their input relations, with intermediate "
        "stores of their own too, and together, which saves so much of the first.",
        box=None,
        padding=(0, 1, 0, 0),
    )
    columns = [column for column in _COLUMNS if column[0] != "parts" or any(_partitions(each) > 1 for each in found)]
    for name, _ in columns:
        made.add_column(name, justify="right", no_wrap=True)
    for each in found:
        made.add_row(*(write(each) for _, write in columns))
    return made


def _partitions(found: Figures) -> int:
    return found.case.parallelism


_COLUMNS: tuple[tuple[str, Callable[[Figures], str]], ...] = (
    ("relations", lambda found: str(found.case.relations)),
    ("parts", lambda found: str(_partitions(found))),
    ("size", lambda found: str(found.case.size)),
    ("queries", lambda found: str(found.case.queries)),
    ("variables", lambda found: count(round(found.variables))),
    ("seconds", lambda found: f"{found.seconds:.2f}"),
    ("alone", lambda found: count(round(found.alone_flat))),
    ("stores", lambda found: count(round(found.alone))),
    ("together", lambda found: count(round(found.together))),
    ("saved", lambda found: f"{found.saved_of_flat:.0%}"),
    ("gap", lambda found: f"{found.gap:.1%}"),
)


def _line(found: Figures) -> str:
    case = found.case
    return (
        f"{case.queries} queries of {case.size} over {case.relations} relations, {case.parallelism} partitions: "
        f"{found.seconds:.2f} s, {found.saved_of_flat:.0%} saved, gap {found.gap:.2%}"
    )


def _sentence(target: Target) -> str:
    case = target.case
    return (
        f"NOT within limits: {case.queries} queries of {case.size} over {case.relations} relations "
        f"(limits: {target.seconds:g} s, gap {target.gap:.0%})"
    )


def _document(
    options: argparse.Namespace,
    where: dict[str, Any],
    planned: list[tuple[Case, list[Planned]]],
    found: Sequence[Figures],
    missed: Sequence[Target],
) -> dict[str, Any]:
    return {
        "benchmark": "optimizer",
        **where,
        "settings": {"seed": options.seed, "repeat": options.repeat, **asdict(_limits(options))},
        "figures": [asdict(each) for each in found],
        "runs": [{"case": asdict(case), "run": asdict(run)} for case, runs in planned for run in runs],
        "missed": [asdict(target) for target in missed],
    }


Point: TypeAlias = tuple[Case, float, float]
"""A case, the share of probe tuples saved, and the seconds to plan it."""


def draw_curves(points: Sequence[Point], path: Path) -> None:
    """Draw three curves into one file: savings over queries, seconds over queries, seconds over size."""
    pyplot = require_pyplot()
    figure, (saved, seconds, sizes) = pyplot.subplots(1, 3, figsize=(14, 4.5), layout="constrained")
    by_kind = _curves(points, lambda case: f"{case.relations} relations, size {case.size}")
    for label, line in by_kind.items():
        queries = [case.queries for case, _, _ in line]
        saved.plot(queries, [100 * share for _, share, _ in line], marker="o", label=label)
        seconds.plot(queries, [spent for _, _, spent in line], marker="o", label=label)
    for label, line in _curves(points, lambda case: f"{case.relations} relations, {case.queries} queries").items():
        ordered = sorted(line, key=lambda point: point[0].size)
        sizes.plot([case.size for case, _, _ in ordered], [spent for _, _, spent in ordered], marker="o", label=label)
    saved.set(xlabel="queries", ylabel="probe tuples saved, %", ylim=(0, None))
    seconds.set(xlabel="queries", ylabel="seconds to plan", yscale="log")
    sizes.set(xlabel="relations in a query", ylabel="seconds to plan", yscale="log")
    sizes.set_xticks(sorted({case.size for case, _, _ in points}))
    _legends(saved, seconds, sizes)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _curves(points: Sequence[Point], name: Callable[[Case], str]) -> dict[str, list[Point]]:
    """Group points into lines by name; several numbers of partitions make several lines."""
    several = len({case.parallelism for case, _, _ in points}) > 1
    found: dict[str, list[Point]] = {}
    for point in points:
        label = name(point[0]) + (f", {point[0].parallelism} partitions" if several else "")
        found.setdefault(label, []).append(point)
    return found


def _legends(*axes: Any) -> None:
    for each in axes:
        each.legend(fontsize="small")
        each.grid(alpha=0.3)
