"""What queries keep until the watermark decides, and for ever, as lines and as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from plait.optimizer.advise.undecided import GroupsAdvice, KeptAdvice, ShorterAdvice, Undecided
from plait.plan.explain import wording
from plait.plan.explain.document import Json, rounded
from plait.plan.explain.summary import aligned
from plait.plan.explain.wording import pace_for
from plait.query.time_windows import SessionWindow

_LISTED = 10


def undecided_lines(undecided: Undecided) -> Iterator[str]:
    """Yield a table of what is kept, then which windows to shorten, and what is never let go."""
    kept, groups = undecided.kept[:_LISTED], undecided.groups[:_LISTED]
    if not kept and not groups:
        return
    rows = [["query", "keeps", "for", "rows"]]
    rows += [[wording.name(each.query), _named(each), _length(each.kept_us), _count(each)] for each in kept]
    rows += [[wording.name(each.query), _of_groups(each), _open(each), _most(each)] for each in groups]
    yield from aligned(rows, left=3)
    more = len(undecided.kept) + len(undecided.groups) - len(kept) - len(groups)
    if more:
        yield f"... and {more:,} more (--format json lists all)"
    yield from map(_shorter, undecided.shorter[:_LISTED])
    endless = {each.source: each for each in kept if each.kept_us is None}
    yield from (_endless(each) for each in endless.values())
    yield from (_joined_rows(each) for each in groups if each.groups.keeps == "joined rows")
    yield "What a query keeps of a stream is stored once for all queries, as long as the longest of them asks for"


def _named(kept: KeptAdvice) -> str:
    name = wording.name(kept.relation)
    return name if kept.source == kept.relation else f"{name} ({wording.name(kept.source)})"


def _length(us: int | None) -> str:
    return "ever" if us is None else wording.duration(us)


def _count(kept: KeptAdvice) -> str:
    if kept.rows is not None:
        return wording.estimated_count(kept.rows)
    return f"+ {pace_for(kept.rows_per_s).rate(kept.rows_per_s, 'rows')}"


def _open(advised: GroupsAdvice) -> str:
    lasting = wording.duration(advised.open_us)
    return f"{lasting} or more" if isinstance(advised.groups.window, SessionWindow) else lasting


def _of_groups(advised: GroupsAdvice) -> str:
    match advised.groups.keeps:
        case "partial aggregates" if advised.groups.pane_us is None:
            return "partial aggregates for every session"
        case "partial aggregates":
            return f"partial aggregates for every {wording.duration(advised.groups.pane_us or 0)}"
        case "joined rows":
            return "joined rows of open windows"
        case None:
            return "what it groups, of open windows"


def _most(advised: GroupsAdvice) -> str:
    return "?" if advised.rows is None else f"at most {wording.estimated_count(advised.rows)}"


def _shorter(advised: ShorterAdvice) -> str:
    now, half = (wording.duration(us) for us in (advised.window_us, advised.window_us // 2))
    return (
        f"{wording.name(advised.query)} would keep {wording.plural_of(advised.spared_rows, 'row')} fewer with half the "
        f"window of {wording.name(advised.relation)} ({half} instead of {now})"
    )


def _endless(kept: KeptAdvice) -> str:
    return (
        f"Rows of {wording.name(kept.source)} never close for {wording.name(kept.query)}, so all are kept: give the "
        f"stream a WINDOW, or the query one, as in WINDOW ({wording.name(kept.relation)} INTERVAL 1 HOUR)"
    )


def _joined_rows(advised: GroupsAdvice) -> str:
    functions = ", ".join(advised.groups.functions)
    return (
        f"{wording.name(advised.query)} keeps each joined row until its windows are over, because {functions} cannot "
        "be put together from parts; count, sum, min, max of columns, and averages of INT, keep one row a group"
    )


def undecided_document(undecided: Undecided) -> Json:
    """Return it as plain values."""
    return {
        "kept": [
            {
                "query": each.query,
                "relation": each.relation,
                "source": each.source,
                "kept_us": each.kept_us,
                "rows": rounded(each.rows),
                "rows_per_s": rounded(each.rows_per_s),
            }
            for each in undecided.kept
        ],
        "shorter_windows": [
            {
                "query": each.query,
                "relation": each.relation,
                "window_us": each.window_us,
                "spared_rows_at_half": rounded(each.spared_rows),
            }
            for each in undecided.shorter
        ],
        "groups": [
            {
                "query": each.query,
                "keeps": each.groups.keeps,
                "pane_us": each.groups.pane_us,
                "open_us": each.open_us,
                "rows_at_most": rounded(each.rows),
            }
            for each in undecided.groups
        ],
    }


__all__ = ["undecided_document", "undecided_lines"]
