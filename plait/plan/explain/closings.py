"""What of a query comes by the watermark and not by an arrival: rows without a partner, first partners, and groups.

`Closing` says when it comes and what is kept until then; `lines` puts it in words, `document` in JSON.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from plait.plan.explain.wording import duration
from plait.query.model import ColumnRef, JoinKind, JoinStep, Query
from plait.query.partners import KEEPS_LEFT, KEEPS_RIGHT, TESTS, LeftPart, closing_us, has_stream, left_parts
from plait.query.time_windows import SessionWindow, Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """Rows of `rows_of` that a join decides about: with their `first` match in relation `partner`, or without any.
    `after_us`: how much event time after theirs they come at the latest, 0: at once; None for first matches.
    """

    kind: JoinKind
    rows_of: tuple[str, ...]
    partner: str
    first: bool = False
    after_us: int | None = 0
    by_window: bool = False
    in_table: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """For how long rows of a stream are kept so that others can be decided about; None: for ever."""

    relation: str
    source: str
    kept_us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped:
    """How a query groups, and what waits until its windows are over: partial aggregates for every `pane_us` of event
    time and group, or for every session, a group being told by `keys`; or the joined rows. `keeps` None: nobody knows
    without Spark. `matches`: of a join, whether they are counted or made pairs of, in words.
    """

    window: Window
    functions: tuple[str, ...]
    keeps: Literal["partial aggregates", "joined rows"] | None
    pane_us: int | None = None
    keys: tuple[ColumnRef, ...] = ()
    matches: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """What comes of a query by the watermark. `only`: all that it has, so its probe orders answer nothing. `reads`: the
    relations that are groups of other queries, and of which.
    """

    query: str
    decided: tuple[Decided, ...] = ()
    kept: tuple[Kept, ...] = ()
    groups: Grouped | None = None
    only: bool = False
    reads: tuple[tuple[str, str], ...] = ()


def closing_of(query: Query, groups: Grouped | None = None, derived: Container[str] = ()) -> Closing | None:
    """Return what comes of a query by the watermark, None if all its results come as they are found. `derived`: the
    sources that are groups of other queries.
    """
    reads = tuple((each.alias, each.source) for each in query.relations if each.source in derived)
    if not query.joins and groups is None and not reads:
        return None
    kept = (
        Kept(relation=each.alias, source=each.source, kept_us=each.waiting.kept_us)
        for each in query.relations
        if each.waiting is not None and not each.is_table
    )
    return Closing(
        query=query.name,
        decided=tuple(found for step, part in left_parts(query) if step.kind for found in _decided(query, step, part)),
        kept=tuple(kept),
        groups=groups,
        only=any(step.kind in TESTS for step in query.joins),
        reads=reads,
    )


def _decided(query: Query, step: JoinStep, part: LeftPart) -> Iterator[Decided]:
    kind = step.kind
    assert kind is not None
    is_table = query.relation(step.alias).is_table
    if kind == "semi":
        yield Decided(kind=kind, rows_of=part.aliases, partner=step.alias, first=True, after_us=None)
    if kind in KEEPS_LEFT or kind == "anti":
        after = 0 if is_table else closing_us(query, part)
        yield Decided(
            kind=kind,
            rows_of=part.aliases,
            partner=step.alias,
            after_us=after,
            by_window=not is_table,
            in_table=is_table,
        )
    if kind in KEEPS_RIGHT:
        own = query.relation(step.alias).waiting
        window = 0 if own is None or own.window_us is None else own.window_us
        after = window + (part.lag_us or 0) if has_stream(query, part.aliases) else 0
        yield Decided(kind=kind, rows_of=(step.alias,), partner=_listed(part.aliases), after_us=after)


def lines(closing: Closing) -> Iterator[str]:
    """Yield what comes when, and what is kept until then, in words."""
    for relation, query in closing.reads:
        yield f"{relation} is the groups of query {query}: they arrive with the batch after the one that closes them"
    yield from map(_decision, closing.decided)
    if closing.kept:
        yield f"kept for that: {', '.join(map(_lasting, closing.kept))}"
    if closing.only:
        yield "looked up in what is kept; the probe orders of this query are not taken, unless others share them"
    if closing.groups is not None:
        yield from _grouping(closing.groups)


def _decision(decided: Decided) -> str:
    rows = f"rows of {_listed(decided.rows_of)}"
    if decided.first:
        return f"{rows} come with their first match in {decided.partner}; later matches add nothing"
    table = "table " if decided.in_table else ""
    alone = f"{rows} without a match in {table}{decided.partner} come"
    if not decided.after_us and not decided.by_window:
        return f"{alone} at once"
    if decided.by_window:
        latest = f"{duration(decided.after_us or 0)} after their event time at the latest"
        return f"{alone} once the watermark has passed their window ({latest})"
    return f"{alone} once the watermark has passed their event time by {duration(decided.after_us or 0)}"


def _lasting(kept: Kept) -> str:
    return f"{kept.relation} for {'ever' if kept.kept_us is None else duration(kept.kept_us)}"


def _grouping(groups: Grouped) -> Iterator[str]:
    window = groups.window
    functions = f", with {', '.join(groups.functions)}" if groups.functions else ""
    yield f"groups by {_kind(window)} of {window.relation}.{window.column}{functions}"
    if groups.matches is not None:
        yield groups.matches
    is_session = isinstance(window, SessionWindow)
    many, one = ("sessions", "session") if is_session else ("windows", "window")
    match groups.keeps:
        case "partial aggregates":
            span = "session" if groups.pane_us is None else f"{duration(groups.pane_us)} of event time"
            kept = f"partial aggregates are kept for every {span}{' and group' if groups.keys else ''}"
        case "joined rows":
            kept = "not all of that can be put together from parts, so the joined rows are kept"
        case None:
            kept = "partial aggregates are kept, or else the joined rows,"
    yield f"{kept} until their {many} are over"
    at, beyond = ("passed", "passed {} beyond") if is_session else ("come to", "come {} beyond")
    far = at if not window.lag_us else beyond.format(duration(window.lag_us))
    yield f"a {one} is over, and its groups come, once the watermark has {far} its end"


def _kind(window: Window) -> str:
    if isinstance(window, SessionWindow):
        return f"sessions that end {duration(window.gap_us)} after their last row,"
    every = "" if window.slide_us == window.size_us else f" every {duration(window.slide_us)}"
    return f"windows of {duration(window.size_us)}{every}"


def document(closing: Closing) -> dict[str, Any]:
    """Return it as plain values."""
    groups = closing.groups
    return {
        "query": closing.query,
        "decided": [
            {
                "join": each.kind,
                "rows_of": list(each.rows_of),
                "partner": each.partner,
                "come": "with the first match" if each.first else "without a match",
                "after_us": each.after_us,
            }
            for each in closing.decided
        ],
        "kept": [{"relation": each.relation, "source": each.source, "kept_us": each.kept_us} for each in closing.kept],
        "groups": None if groups is None else _groups_document(groups),
        "by_watermark_only": closing.only or groups is not None,
        **({"reads_groups": [{"relation": one, "query": of} for one, of in closing.reads]} if closing.reads else {}),
    }


def _groups_document(groups: Grouped) -> dict[str, Any]:
    window = groups.window
    return {
        "relation": window.relation,
        "column": window.column,
        **_lengths(window),
        "over_after_us": window.lag_us,
        "functions": list(groups.functions),
        "keeps": groups.keeps,
        "pane_us": groups.pane_us,
        "keys": [key.name for key in groups.keys],
        "matches": groups.matches,
    }


def _lengths(window: Window) -> dict[str, int]:
    if isinstance(window, SessionWindow):
        return {"gap_us": window.gap_us}
    return {"size_us": window.size_us, "slide_us": window.slide_us, "start_us": window.start_us}


def _listed(aliases: tuple[str, ...]) -> str:
    return aliases[0] if len(aliases) == 1 else f"{', '.join(aliases[:-1])} and {aliases[-1]}"


__all__ = ["Closing", "Decided", "Grouped", "Kept", "closing_of", "document", "lines"]
