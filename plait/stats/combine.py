"""Put what was declared and what was measured together.

A declared number wins over the measured one, number by number: a user who declares a rate wants plans made for that
rate (the peak, say), and wants the same plan tomorrow. Measurement fills in where the declaration is silent. A distinct
count is declared per column and measured per key, so both are carried, and whoever looks a key up asks for the column
first (`plait.optimizer.estimate.cardinality`). The measured selectivity of an equality gives way where both distinct
counts that it is otherwise computed from were declared.
"""

from __future__ import annotations

from collections.abc import Mapping

from plait.stats.model import KEY_SEPARATOR, Side, SourceStatistics, Statistics


def with_measured(declared: Statistics, measured: Statistics) -> Statistics:
    """Return the declared statistics, completed by the measured ones."""
    names = {each.source for each in (*declared.sources, *measured.sources)}
    return Statistics(
        sources=tuple(_combine_source(declared.of(name), measured.of(name)) for name in sorted(names)),
        joins=tuple(each for each in measured.joins if not all(_is_declared(declared, side) for side in each.sides)),
        steps=measured.steps,
        keys=measured.keys,
        batch_s=measured.batch_s,
    )


def _is_declared(declared: Statistics, side: Side) -> bool:
    """Tell whether the distinct values of a key were declared: of the key itself, or of the column it is."""
    source, key = side
    return KEY_SEPARATOR not in key and any(
        name == key or key.endswith(f" `{name}`") for name, _ in declared.of(source).distinct
    )


def _combine_source(declared: SourceStatistics, measured: SourceStatistics) -> SourceStatistics:
    return SourceStatistics(
        source=declared.source,
        rate_rows_per_s=measured.rate_rows_per_s if declared.rate_rows_per_s is None else declared.rate_rows_per_s,
        rows=measured.rows if declared.rows is None else declared.rows,
        distinct=_overlay(dict(measured.distinct), dict(declared.distinct)),
        selectivity=_overlay(dict(measured.selectivity), dict(declared.selectivity)),
    )


def _overlay(below: Mapping[str, float], above: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    return tuple(sorted({**below, **above}.items()))
