"""The head of EXPLAIN as text: what the plan costs, and what others would."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from plait.plan.expected import Solution
from plait.plan.explain import wording
from plait.plan.explain.costs import Comparison, PlanCost, expected_cost, factor
from plait.plan.explain.explanation import Explanation
from plait.plan.explain.run_counts import Measured
from plait.plan.explain.wording import Pace, pace_for
from plait.spelling import plural

_SHOWN = 4


def summary(shown: Explanation) -> Iterator[str]:
    """Yield the lines."""
    plan, own = shown.plan, expected_cost(shown.plan)
    yield (
        f"Plan by strategy '{plan.strategy}': {plural(len(plan.queries), 'query', 'queries')}, "
        f"{plural(len(plan.stores), 'store')}, {plural(len(plan.trees), 'probe tree')}"
    )
    if plan.solution is not None:
        yield solved(plan.solution)
    yield from shown.notes
    if shown.measured is not None:
        yield _counted(shown.measured)
        if shown.measured.sampled_share is not None:
            yield (
                "Samples of other orders, by which these are known, took "
                f"{plural(shown.measured.sampled, 'probe tuple')} more ({shown.measured.sampled_share:.1%})"
            )
    yield ""
    others = () if shown.comparison is None else shown.comparison.others
    yield from aligned([*cost_table(own, others, shown.measured)])
    if shown.comparison is not None and shown.comparison.assumed:
        yield assumptions_text(shown.comparison)


def solved(solution: Solution) -> str:
    """Return who found the plan and how good it is known to be."""
    return (
        f"Found by {solution.solver} at cost {wording.estimated_count(solution.objective)}; no plan costs less than "
        f"{wording.estimated_count(solution.bound)} (gap {solution.gap:.2%})"
    )


def _counted(measured: Measured) -> str:
    if measured.span_us is None:
        return f"Measured after batch {measured.batch}: what is stored; nothing has been probed under this plan yet"
    return (
        f"Measured after batch {measured.batch}: what is stored now, and probe tuples under this plan in "
        f"{plural(measured.batches, 'batch', 'batches')} ({wording.span(measured.span_us)} of event time)"
    )


def cost_table(own: PlanCost, others: tuple[PlanCost, ...], measured: Measured | None = None) -> Iterator[list[str]]:
    """Yield header and rows: this plan, what was measured of it, and other plans with their factors over this one."""
    pace = pace_for(own.probe_tuples_per_s)
    yield ["", f"probe tuples/{pace.name}", "", "stored rows", "", "bytes", "steps", "stores"]
    yield [f"this plan ({own.strategy})", *_row(own, None, pace)]
    if measured is not None:
        stored = measured.stores
        yield [
            "  measured",
            "-" if measured.probe_tuples_per_s is None else pace.count(measured.probe_tuples_per_s),
            _times(factor(measured.probe_tuples_per_s, own.probe_tuples_per_s)),
            wording.estimated_count(sum(count.rows for count in stored)),
            _times(factor(sum(count.rows for count in stored), own.stored_rows)),
            wording.estimated_size(sum(count.bytes for count in stored)),
            "",
            "",
        ]
    for other in others:
        if other.strategy != own.strategy:
            yield [other.strategy, *_row(other, own, pace)]


def _row(cost: PlanCost, over: PlanCost | None, pace: Pace) -> list[str]:
    return [
        pace.count(cost.probe_tuples_per_s),
        "" if over is None else _times(factor(cost.probe_tuples_per_s, over.probe_tuples_per_s)),
        wording.estimated_count(cost.stored_rows),
        "" if over is None else _times(factor(cost.stored_rows, over.stored_rows)),
        "?" if cost.stored_bytes is None else wording.estimated_size(cost.stored_bytes),
        f"{cost.steps:,}",
        f"{cost.stores:,}",
    ]


def _times(ratio: float | None) -> str:
    return "" if ratio is None else wording.factor_text(ratio)


def assumptions_text(comparison: Comparison) -> str:
    """Return the numbers that had to be assumed, as one line."""
    named = list(comparison.assumed[:_SHOWN])
    more = len(comparison.assumed) - len(named)
    named += [f"{more:,} more"] if more else []
    listed = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
    return f"Assumed: {listed} (`plait advise` says which of them matter)"


def aligned(rows: Sequence[Sequence[str]], *, gap: str = "  ", left: int = 1) -> Iterator[str]:
    """Yield one line a row; the first `left` columns are to the left.

    >>> print(*aligned([["", "rows"], ["r", "1,000"], ["orders", "5"]]), sep="\\n")
             rows
    r       1,000
    orders      5
    """
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield gap.join(cells).rstrip()
