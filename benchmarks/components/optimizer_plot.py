"""Curves of `python -m benchmarks optimizer`: savings and time over the number of queries and their size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from benchmarks.plotting import require_pyplot

if TYPE_CHECKING:
    from benchmarks.components.optimizer import Case

Point: TypeAlias = "tuple[Case, float, float]"
"""A case, the share of probe tuples saved, and the seconds to plan it."""


def draw_curves(points: Sequence[Point], path: Path) -> None:
    """Draw three curves into one file: savings over queries, seconds over queries, seconds over size."""
    pyplot = require_pyplot()
    figure, (saved, seconds, sizes) = pyplot.subplots(1, 3, figsize=(14, 4.5), layout="constrained")
    by_kind = _lines(points, lambda case: f"{case.relations} relations, size {case.size}")
    for label, line in by_kind.items():
        queries = [case.queries for case, _, _ in line]
        saved.plot(queries, [100 * share for _, share, _ in line], marker="o", label=label)
        seconds.plot(queries, [spent for _, _, spent in line], marker="o", label=label)
    for label, line in _lines(points, lambda case: f"{case.relations} relations, {case.queries} queries").items():
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


def _lines(points: Sequence[Point], name: Callable[[Case], str]) -> dict[str, list[Point]]:
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
