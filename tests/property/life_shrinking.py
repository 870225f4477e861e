"""Make a failing life smaller while it still fails, so that a person can follow it by hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from tests.oracle.duckdb_oracle import UnsuitableCaseError
from tests.property.case import CaseQuery, CaseSource
from tests.property.lives import Life, Span, Way
from tests.property.plain import simpler_queries

Fails = Callable[[Life], bool]


def shrink_life(life: Life, fails: Fails, seconds: float = 30.0) -> Life:
    """Return the smallest failing life found in the time; `fails` says whether a life still does."""
    deadline = time.monotonic() + seconds
    progress = True
    while progress:
        progress = False
        for smaller in _smaller(life):
            if time.monotonic() > deadline:
                return life
            if _still_fails(smaller, fails):
                life, progress = smaller, True
                break
    return life


def _still_fails(life: Life, fails: Fails) -> bool:
    try:
        return fails(life)
    except UnsuitableCaseError:
        return False


def _smaller(life: Life) -> Iterator[Life]:
    """Yield simpler lives, the boldest steps first."""
    for number in range(len(life.spans)):
        if len(life.spans) > 1:
            yield _without_span(life, number)
    for name in sorted({query.name for span in life.spans for query in span.queries}):
        yield from _if_sound(life, lambda span, name=name: _without_query(span, name))
    for number, span in enumerate(life.spans):
        for query in span.queries if len(span.queries) > 1 else ():
            yield _with_span(life, number, _without_query(span, query.name))
    for number, span in enumerate(life.spans):
        yield from (_with_span(life, number, simpler) for simpler in _simpler_spans(span))
    for query in {id(query): query for span in life.spans for query in span.queries}.values():
        for simpler in simpler_queries(_Sources(life), query):  # type: ignore[arg-type]
            yield _with_query(life, query, simpler)
    for name, source in _sources(life).items():
        yield from (_with_source(life, name, fewer) for fewer in _fewer_rows(source))


@dataclass(frozen=True, slots=True)
class _Sources:
    """Sources by the name that queries have for them, as `simpler_queries` asks for them."""

    life: Life

    def source(self, name: str) -> CaseSource:
        return next(each.source for span in self.life.spans for each in span.declared if each.name == name)


def _sources(life: Life) -> dict[str, CaseSource]:
    return {each.source.name: each.source for span in life.spans for each in span.declared}


def _with_span(life: Life, number: int, span: Span) -> Life:
    return replace(life, spans=(*life.spans[:number], span, *life.spans[number + 1 :]))


def _without_span(life: Life, number: int) -> Life:
    """Leave a span out; the one after it begins with a restart, because what was declared need not fit any more."""
    rest = list(life.spans[number + 1 :])
    if rest:
        rest[0] = replace(rest[0], is_restart=True)
    return replace(life, spans=(*life.spans[:number], *rest))


def _if_sound(life: Life, change: Callable[[Span], Span]) -> Iterator[Life]:
    spans = tuple(map(change, life.spans))
    if all(span.queries for span in spans):
        yield replace(life, spans=spans)


def _without_query(span: Span, name: str) -> Span:
    return replace(span, queries=tuple(query for query in span.queries if query.name != name))


def _simpler_spans(span: Span) -> Iterator[Span]:
    read = {name for query in span.queries for _, name in query.relations}
    if span.is_restart and any(each.name not in read for each in span.declared):
        yield replace(span, declared=tuple(each for each in span.declared if each.name in read))
    if not span.is_restart:
        yield replace(span, is_restart=True)
    if span.kill is not None:
        yield replace(span, kill=None)
    for number, each in enumerate(span.declared):
        for name in ("dead_letter", "keep_all", "is_impatient"):
            if getattr(each, name):
                simpler = replace(each, **{name: False})
                yield replace(span, declared=(*span.declared[:number], simpler, *span.declared[number + 1 :]))
    simple = Way(parallelism=1)
    for name in ("strategy", "parallelism", "routing", "capacity", "compaction", "backfill"):
        if getattr(span.way, name) != getattr(simple, name):
            yield replace(span, way=replace(span.way, **{name: getattr(simple, name)}))


def _with_query(life: Life, old: CaseQuery, new: CaseQuery) -> Life:
    """Write a query otherwise wherever it is this one: it stays one query over all its spans."""
    spans = (
        replace(span, queries=tuple(new if query is old else query for query in span.queries)) for span in life.spans
    )
    return replace(life, spans=tuple(spans))


def _fewer_rows(source: CaseSource) -> Iterator[CaseSource]:
    rows = size = source.rows.num_rows
    while size >= 1:
        for start in range(0, rows, size):
            kept = [row for row in range(rows) if not start <= row < start + size]
            files = tuple(source.batch_of[row] for row in kept) if source.batch_of else ()
            yield replace(source, rows=source.rows.take(pa.array(kept, pa.int64())), batch_of=files)
        size //= 2


def _with_source(life: Life, name: str, source: CaseSource) -> Life:
    spans = (
        replace(
            span,
            declared=tuple(
                replace(each, source=source) if each.source.name == name else each for each in span.declared
            ),
        )
        for span in life.spans
    )
    return replace(life, spans=tuple(spans))
