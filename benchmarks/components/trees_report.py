"""Figures and tables of `python -m benchmarks trees`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from benchmarks.figures import count
from benchmarks.plotting import require_pyplot

SELECTIVITIES = (1e-8, 1e-6, 1e-5)
SCALING = 0.3


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """A query run with so many partitions of every store, or of the largest one alone. `batch_s`: the median batch,
    which is how long a result takes at most once its last member has been read.
    """

    query: str
    tree: str
    partitions: int
    largest_only: bool
    rows_per_s: float
    batch_s: float
    probe_tuples: int


def stored_table(rows: list[Stored]) -> Table:
    """Return what trees keep."""
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


def budget_table(rows: list[Stored]) -> Table:
    """Return what budgeted trees keep and send."""
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


def capacity_table(rows: list[Capacity]) -> Table:
    """Return what the trees of the chain send."""
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


def scaling_table(rows: list[Scaling]) -> Table:
    """Return how fast queries ran by partitions."""
    table = Table(title=f"Partitions of a store, TPC-H at scale {SCALING:g}")
    for name in ("query", "tree", "partitions", "rows/s", "a batch", "probe tuples"):
        table.add_column(name, justify="left" if name in ("query", "tree") else "right")
    for row in rows:
        partitions_shown = f"{row.partitions}{' (largest store)' if row.largest_only else ''}"
        rate, batch = count(int(row.rows_per_s)), f"{row.batch_s:.2f} s"
        table.add_row(row.query, row.tree, partitions_shown, rate, batch, count(row.probe_tuples))
    return table


def draw(capacities: list[Capacity], budgets: list[Stored], path: Path) -> None:
    """Draw probe tuples against capacity, one picture a selectivity, and against the budget."""
    pyplot = require_pyplot()
    figure, axes = pyplot.subplots(1, len(SELECTIVITIES) + 1, figsize=(16, 4), layout="constrained")
    for axis, selectivity in zip(axes, SELECTIVITIES, strict=False):
        rows = [row for row in capacities if row.selectivity == selectivity]
        for name, style in (("flat", "o-"), ("left_deep", "s-"), ("bushy", "x--")):
            sent = [getattr(row, name) for row in rows]
            axis.plot([row.share for row in rows], sent, style, label=name.replace("_", "-"))
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
