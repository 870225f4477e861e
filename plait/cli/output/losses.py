"""Say in text which rows came to nothing, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from plait.cli.output.figures import count
from plait.plan.explain import wording
from plait.spelling import plural

if TYPE_CHECKING:
    from plait.runtime.losses.counts import BadCount, SourceCounts
    from plait.runtime.notice import Notice


def loss_lines(sources: Iterable[SourceCounts]) -> Iterator[str]:
    """Yield what was lost of each source, a line for each reason, with a sample and a hint below it."""
    for counts in sources:
        for bad in counts.bad:
            yield f"  {counts.source}: {plural(bad.rows, 'bad row')}: {_reason(bad)}"
            if bad.hint:
                yield f"    {bad.hint}"
        if counts.gone:
            held = plural(counts.gone, "offset")
            yield f"  {counts.source}: {held} without a record: deleted unread, compacted, or a mark of a transaction"
        if counts.outside:
            yield f"  {counts.source}: {plural(counts.outside, 'row')} outside the selections of all queries"
        for key in counts.null_keys_by:
            nulls = plural(key.rows, "row")
            yield f"  {counts.source}: {nulls} with NULL in {wording.sql(key.key)}, which equals nothing"


def _reason(bad: BadCount) -> str:
    column = "" if bad.column is None else f", column '{bad.column}'"
    sample = f", such as: {' '.join(bad.sample.split())}" if bad.sample else ""
    return f"{bad.reason}{column}{sample}"


def bad_reasons(sources: Iterable[SourceCounts]) -> str:
    """Return how many rows were bad for which reason, in parentheses; empty if none was."""
    reasons = [f"{counts.source} {bad.reason} {count(bad.rows)}" for counts in sources for bad in counts.bad]
    return f" ({', '.join(reasons)})" if reasons else ""


def warning_line(notice: Notice) -> str:
    """Return a notice as a line."""
    return f"{'note' if notice.is_of_start else 'warning'}: {notice.text}"
