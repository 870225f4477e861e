"""Advice as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from plait.cli.undecided_text import undecided_document, undecided_lines
from plait.optimizer.advise.advice import Advice, AssumptionAdvice
from plait.optimizer.advise.comparing import unknown_text
from plait.optimizer.advise.unknowns import Unknown
from plait.plan.columns import stored_column
from plait.plan.explain import expected_cost, wording
from plait.plan.explain.costs import factor
from plait.plan.explain.document import Json, cost_document, rounded
from plait.plan.explain.predicate_wording import joined
from plait.plan.explain.summary import aligned, solved
from plait.plan.explain.wording import Pace, pace_for
from plait.plan.relations import store_name
from plait.plan.strategy_names import DEFAULT_STRATEGY
from plait.stats.model import SourceStatistics, Statistics

if TYPE_CHECKING:
    from plait.runtime.sampling import SampledSource

Read: TypeAlias = "tuple[SampledSource, ...]"

_LISTED = 10
_WIDE_GAP = 0.02


def to_text(advice: Advice, read: Read, measured: Statistics) -> str:
    """Return the advice as text for people."""
    pace = pace_for(expected_cost(advice.best).probe_tuples_per_s)
    sections = (
        ("What sharing saves", [*_ladder(advice, pace)]),
        ("Intermediate stores that pay", [*_stores(advice, pace)]),
        ("What each query costs", [*_queries(advice, pace)]),
        ("What waits, and for how long", [*undecided_lines(advice.undecided)]),
        ("What was assumed", [*_assumed(advice, pace)]),
        ("What the sample showed (numbers that the script declares win)", [*_sample(read, measured)]),
    )
    return "\n\n".join("\n".join((title, *lines)) for title, lines in sections if lines) + "\n"


def _ladder(advice: Advice, pace: Pace) -> Iterator[str]:
    first = advice.costs[0]
    rows = [["", f"probe tuples/{pace.name}", "", "stored rows", "", "bytes", "steps", "stores"]]
    for cost in advice.costs:
        rows.append(
            [
                cost.strategy,
                pace.count(cost.probe_tuples_per_s),
                "" if cost is first else _less(cost.probe_tuples_per_s, first.probe_tuples_per_s),
                wording.estimated_count(cost.stored_rows),
                "" if cost is first else _less(cost.stored_rows, first.stored_rows),
                "?" if cost.stored_bytes is None else wording.estimated_size(cost.stored_bytes),
                f"{cost.steps:,}",
                f"{cost.stores:,}",
            ]
        )
    yield from aligned(rows)
    if advice.solution is not None and advice.solution.gap > _WIDE_GAP:
        yield f"{solved(advice.solution)}; SET plait.time_limit = '1 minute'; gives it more time"
    yield _best(advice)


def _best(advice: Advice) -> str:
    """Say which strategy to set: the default, unless another gains something."""
    costs = {cost.strategy: cost for cost in advice.costs}
    best, default = costs[advice.best.strategy], costs[DEFAULT_STRATEGY]
    if _is_as_much(best.probe_tuples_per_s, default.probe_tuples_per_s) and _is_as_much(
        best.stored_rows, default.stored_rows
    ):
        return f"Best: the default, plait.strategy = {DEFAULT_STRATEGY}; to look longer, as ilp does, saves nothing"
    return f"Best: SET plait.strategy = {best.strategy};"


def _is_as_much(number: float | None, other: float | None) -> bool:
    ratio = factor(number, other)
    return number == other or (ratio is not None and 0.995 < ratio < 1.005)


def _less(number: float | None, than: float | None) -> str:
    ratio = factor(number, than)
    if not ratio or _is_as_much(number, than):
        return "" if ratio is None else "the same"
    return wording.times(ratio)


def _stores(advice: Advice, pace: Pace) -> Iterator[str]:
    if not advice.stores:
        goes_on = any(path for tree in advice.best.trees for path, _ in tree.walk())
        why = "to do these joins anew for every arrival costs less than to keep them"
        yield f"None: {why if goes_on else 'only a query that joins three relations or more could use one'}"
        return
    stores = {store.id: store for store in advice.best.stores}
    for advised in advice.stores[:_LISTED]:
        made = stores[advised.store].intermediate
        yield (
            f"{store_name(advised.store)} saves {pace.rate(advised.saved_per_s, 'probe tuples')} for "
            f"{wording.some(advised.queries)}; keeps {wording.plural_of(advised.rows, 'row')} "
            f"({wording.estimated_size(advised.bytes)})"
        )
        yield f"  {'' if made is None else joined(made, advice.best)}"
    yield from _more(len(advice.stores))
    yield "What a store saves is what its readers would send if they joined its parts one by one, less what fills it"


def _queries(advice: Advice, pace: Pace) -> Iterator[str]:
    total = expected_cost(advice.best).probe_tuples_per_s
    rows = [["query", f"adds probe tuples/{pace.name}", "of all", f"alone probe tuples/{pace.name}"]]
    for advised in advice.queries[:_LISTED]:
        share = factor(advised.added_per_s, total)
        rows.append(
            [
                wording.name(advised.query),
                pace.count(advised.added_per_s),
                "" if share is None else f"{share:.0%}",
                pace.count(advised.alone_per_s),
            ]
        )
    yield from aligned(rows)
    yield from _more(len(advice.queries))
    yield "A query adds the steps that no other query needs: so much is saved at least if it is dropped"


def _assumed(advice: Advice, pace: Pace) -> Iterator[str]:
    if not advice.assumptions:
        return
    rows = [["", "assumed", "rests on it", "at 1/10 of it", "at 10 times it", "to tell"]]
    for advised in advice.assumptions[:_LISTED]:
        unknown = advised.assumption.unknown
        rows.append(
            [
                unknown_text(unknown),
                f"{advised.assumption.value:.0%}"
                if unknown.what == "selectivity"
                else wording.estimated_count(advised.assumption.value),
                f"{advised.assumption.share:.0%}" if advised.assumption.share else "stored rows only",
                "" if advised.low_per_s is None else pace.count(advised.low_per_s),
                "" if advised.high_per_s is None else pace.count(advised.high_per_s),
                how_to_tell(unknown),
            ]
        )
    lines = [*aligned([row[:-1] for row in rows])]
    width = max(len(line) for line in lines)
    yield from (f"{line.ljust(width)}  {row[-1]}".rstrip() for line, row in zip(lines, rows, strict=True))
    yield from _more(len(advice.assumptions))
    yield (
        "rests on it: share of the best plan's probe tuples; then how many there would be "
        f"(per {pace.name}) if the truth were ten times less or more"
    )


def how_to_tell(unknown: Unknown) -> str:
    """Return what a user does about an unknown number."""
    if unknown.option is None:
        return "--sample 10000"
    return f"{_option(unknown.option, '...')} of {wording.name(unknown.source)}, or --sample 10000"


def _option(name: str, value: str) -> str:
    return f"{name} '{value}'" if name.replace(".", "").replace("_", "").isalnum() else f"'{name}' '{value}'"


def _sample(read: Read, measured: Statistics) -> Iterator[str]:
    for source in read:
        if source.problem is not None:
            yield f"{wording.name(source.source)}: could not be read ({source.problem}); declare what is known of it"
            continue
        extent = f"all {source.rows:,} rows" if source.is_whole else f"the first {source.rows:,} rows"
        options = ", ".join(_told(measured.of(source.source)))
        yield f"{wording.name(source.source)}: {extent}" + (f"; OPTIONS ({options})" if options else "")


def _told(statistics: SourceStatistics) -> Iterator[str]:
    """Yield the source options that declare what is known."""
    if statistics.rate_rows_per_s is not None:
        yield _option("rate", f"{statistics.rate_rows_per_s:.3g}")
    if statistics.rows is not None:
        yield _option("rows", f"{statistics.rows:.0f}")
    columns: dict[str, float] = {}
    for name, count in statistics.distinct:
        column = stored_column(name).source_column
        if column is not None:
            columns.setdefault(column, count)
    yield from (_option(f"distinct.{column}", f"{count:.0f}") for column, count in sorted(columns.items()))


def _more(count: int) -> Iterator[str]:
    if count > _LISTED:
        yield f"... and {count - _LISTED:,} more (--format json lists all)"


def to_json(advice: Advice, read: Read, measured: Statistics) -> str:
    """Return the advice as indented JSON."""
    document: Json = {
        "unit": "probe tuples per second of event time",
        "best": advice.best.strategy,
        "plans": [{"strategy": cost.strategy, **cost_document(cost)} for cost in advice.costs],
        "gap": None if advice.solution is None else rounded(advice.solution.gap),
        "intermediate_stores": [
            {
                "store": each.store,
                "used_by": list(each.queries),
                "rows": rounded(each.rows),
                "bytes": rounded(each.bytes),
                "saved_probe_tuples_per_s": rounded(each.saved_per_s),
            }
            for each in advice.stores
        ],
        "queries": [
            {
                "query": each.query,
                "added_probe_tuples_per_s": rounded(each.added_per_s),
                "alone_probe_tuples_per_s": rounded(each.alone_per_s),
            }
            for each in advice.queries
        ],
        "waiting": undecided_document(advice.undecided),
        "assumptions": [_assumption(each) for each in advice.assumptions],
        "sample": [
            {
                "source": each.source,
                "rows": each.rows,
                "is_whole": each.is_whole,
                "problem": each.problem,
                "statistics": _statistics(measured.of(each.source)),
            }
            for each in read
        ],
    }
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _assumption(advised: AssumptionAdvice) -> Json:
    unknown = advised.assumption.unknown
    return {
        "source": unknown.source,
        "what": unknown.what,
        "of": unknown.of or None,
        "option": unknown.option,
        "assumed": rounded(advised.assumption.value),
        "share_of_probe_tuples": rounded(advised.assumption.share),
        "probe_tuples_per_s_at_a_tenth": rounded(advised.low_per_s),
        "probe_tuples_per_s_at_ten_times": rounded(advised.high_per_s),
    }


def _statistics(statistics: SourceStatistics) -> Json:
    return {
        "rate_rows_per_s": rounded(statistics.rate_rows_per_s),
        "rows": rounded(statistics.rows),
        "distinct": {name: rounded(count) for name, count in statistics.distinct},
        "selectivity": {sql: rounded(selectivity) for sql, selectivity in statistics.selectivity},
    }


FORMATS: Mapping[str, Callable[[Advice, Read, Statistics], str]] = MappingProxyType({"text": to_text, "json": to_json})
