"""When the rows of a query come that no arrival completes, in words."""

from __future__ import annotations

from collections.abc import Iterator

from plait.plan.explain.wording import duration
from plait.query.model import JoinStep, Query
from plait.query.partners import KEEPS_LEFT, KEEPS_RIGHT, LeftPart, closing_us, has_stream, left_parts


def joins_notes(query: Query) -> tuple[str, ...]:
    """Return a sentence for each join of a query that keeps rows without a partner, or only asks for one."""
    return tuple(
        f"Query {query.name}: {text}"
        for step, part in left_parts(query)
        if step.kind
        for text in _notes(query, step, part)
    )


def _notes(query: Query, step: JoinStep, part: LeftPart) -> Iterator[str]:
    left, added = _listed(part.aliases), step.alias
    is_table = query.relation(added).is_table
    if step.kind == "semi":
        yield f"rows of {left} come with their first match in {added}; later matches add nothing"
    if step.kind in KEEPS_LEFT or step.kind == "anti":
        if is_table:
            yield f"rows of {left} without a match in table {added} come at once"
        else:
            yield f"rows of {left} without a match in {added} come once the watermark has passed {_end(query, part)}"
    if step.kind in KEEPS_RIGHT:
        if has_stream(query, part.aliases):
            own = query.relation(added).waiting
            window = 0 if own is None or own.window_us is None else own.window_us
            yield f"rows of {added} without a match come {duration(window + (part.lag_us or 0))} of event time later"
        else:
            yield f"rows of {added} without a match come at once"


def _end(query: Query, part: LeftPart) -> str:
    """Return when a row of the part closes."""
    bounded = closing_us(query, part) or 0
    return f"their window ({duration(bounded)} after their event time at the latest)"


def _listed(aliases: tuple[str, ...]) -> str:
    return aliases[0] if len(aliases) == 1 else f"{', '.join(aliases[:-1])} and {aliases[-1]}"


__all__ = ["joins_notes"]
