"""The random life of a seed: which runs and changes a checkpoint goes through."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tests.oracle.duckdb_oracle import UnsuitableCaseError, expected
from tests.property.case import Case, CaseColumn, CaseQuery, CaseSource
from tests.property.cases import random_case
from tests.property.expressions import Expression, column, equality
from tests.property.lives import Declared, Life, Span, Way
from tests.property.plain import plain_query, simpler_queries
from tests.property.queries import NO_THETAS, Thetas, random_query, random_selection
from tests.property.values import BY_NAME, may_meet

STRATEGIES = ("fixed", "selectivity", "greedy", "dppick", "shared", "ilp", "adhoc", "left-deep", "chain", "bushy")
FAIL_POINTS = ("stored", "probed", "delivered", "committed", "published")
ENDLESS_US = 10**17
"""A delay that never ends: nothing is late and nothing is forgotten."""
_MOST_RELATIONS = 4
_THETAS = Thetas(instead=0.3, beside=0.4)


@dataclass(slots=True, kw_only=True)
class _Draft:
    """A life being made. `versions`: what each query has been, newest last."""

    rng: random.Random
    case: Case
    thetas: Thetas
    windows_us: list[int]
    versions: dict[str, list[CaseQuery]] = field(default_factory=dict)


def random_life(seed: int) -> Life:
    """Return the life of this seed: two to five spans over the sources of a random case.

    Strategy ``independent`` is used throughout a life or not at all.
    """
    rng = random.Random(f"life {seed}")
    case = _base_case(rng, seed)
    draft = _Draft(
        rng=rng,
        case=case,
        thetas=_THETAS if rng.random() < 0.3 else NO_THETAS,
        windows_us=[1, *sorted({source.window_us for source in case.sources if source.window_us is not None})],
    )
    for number in range(rng.choice((1, 2, 2, 3, 3, 4))):
        draft.versions[f"q{number}"] = [_new_query(draft, f"q{number}")]
    cuts = sorted(rng.randint(1, case.batches) for _ in range(rng.choice((1, 2, 2, 3, 4))))
    spans: list[Span] = []
    independent = rng.random() < 0.06
    for until in (*cuts, case.batches):
        spans.append(_span(draft, spans, until, independent))
    life = Life(seed=seed, spans=tuple(spans))
    return _with_renamed_stream(rng, life) if rng.random() < 0.1 else life


def _base_case(rng: random.Random, seed: int) -> Case:
    """Return sources with files; half of the time nothing is ever late or forgotten."""
    case = random_case(seed * 7 + 10**7, late=rng.random() < 0.25, rows_scale=0.6)
    while case.batches < 3 or all(source.is_table for source in case.sources):
        case = random_case(rng.randrange(10**9), rows_scale=0.6)
    is_endless = rng.random() < 0.5
    sources = tuple(
        source
        if source.is_table
        else replace(
            source,
            window_us=None if rng.random() < 0.4 else source.window_us,
            delay_us=ENDLESS_US if is_endless else source.delay_us,
        )
        for source in case.sources
    )
    return replace(case, sources=sources, queries=())


def _span(draft: _Draft, before: Sequence[Span], until: int, independent: bool) -> Span:
    rng, case = draft.rng, draft.case
    queries = _live_queries(draft)
    read = {name for query in queries for _, name in query.relations}
    if before and rng.random() < 0.35:
        known = {each.name for each in before[-1].declared}
        added = [_declared(rng, source) for source in case.sources if source.name in read - known]
        return replace(
            before[-1],
            declared=(*before[-1].declared, *added),
            queries=queries,
            until=until,
            is_restart=False,
            kill=_kill(rng),
        )
    declared = [_declared(rng, source) for source in case.sources if source.name in read or rng.random() < 0.5]
    if rng.random() < 0.5:
        rng.shuffle(declared)
    return Span(declared=tuple(declared), queries=queries, until=until, way=_way(rng, independent), kill=_kill(rng))


def _way(rng: random.Random, independent: bool) -> Way:
    return Way(
        strategy="independent" if independent else rng.choice(STRATEGIES),
        parallelism=rng.randint(1, 3),
        routing=rng.choice(("local", "local", "shuffle")),
        capacity=rng.choice((16, 1024)),
        compaction=rng.random() < 0.3,
        backfill=rng.random() < 0.35,
    )


def _kill(rng: random.Random) -> tuple[int, str] | None:
    return (rng.choice((0, 0, 1)), rng.choice(FAIL_POINTS)) if rng.random() < 0.15 else None


def _declared(rng: random.Random, source: CaseSource) -> Declared:
    if source.is_table:
        return Declared(name=source.name, source=source)
    return Declared(
        name=source.name,
        source=_told_otherwise(rng, source),
        keep_all=rng.random() < 0.25,
        dead_letter=rng.random() < 0.3,
        is_impatient=rng.random() < 0.15,
    )


def _told_otherwise(rng: random.Random, source: CaseSource) -> CaseSource:
    """Return the source as it is, or with another window or delay."""
    window_us, delay_us = source.window_us, source.delay_us
    if rng.random() < 0.12:
        window_us = None if window_us is not None and rng.random() < 0.5 else rng.choice((1, 10 * (window_us or 10**6)))
    if delay_us != ENDLESS_US and rng.random() < 0.15:
        delay_us = rng.choice((0, delay_us // 2, 2 * delay_us + 1))
    return replace(source, window_us=window_us, delay_us=delay_us)


# -- queries -----------------------------------------------------------------------------------------------------------


def _live_queries(draft: _Draft) -> tuple[CaseQuery, ...]:
    rng = draft.rng
    for name, versions in draft.versions.items():
        if rng.random() < 0.3:
            versions.append(_changed(draft, versions[-1]) if rng.random() < 0.8 else _new_query(draft, name))
        elif rng.random() < 0.15:
            versions.append(rng.choice(versions))
    names = [name for name in draft.versions if rng.random() < 0.65] or [rng.choice(list(draft.versions))]
    rng.shuffle(names)
    return tuple(draft.versions[name][-1] for name in names)


def _new_query(draft: _Draft, name: str) -> CaseQuery:
    """Return a query like another one, or one of its own kind."""
    rng = draft.rng
    others = [versions[-1] for other, versions in draft.versions.items() if other != name]
    if others and rng.random() < 0.7:
        like = rng.choice(others)
        return _changed(draft, plain_query(name, like.relations, like.conditions, like.projection, like.windows))
    relations = rng.choice((1, 2, 2, 2, 2, 3, 3, _MOST_RELATIONS))
    query = _drawn(draft, name, relations)
    for _ in range(3):  # of queries without results nothing is seen
        if _has_results(draft, query):
            break
        query = _drawn(draft, name, relations)
    return query


def _drawn(draft: _Draft, name: str, relations: int) -> CaseQuery:
    drawn = random_query(draft.rng, name, draft.case.sources, relations, draft.windows_us, draft.thetas)
    return plain_query(name, drawn.relations, drawn.conditions, drawn.projection, drawn.windows)


def _has_results(draft: _Draft, query: CaseQuery) -> bool:
    """Tell whether a query has results if nothing is ever late or forgotten."""
    case = replace(draft.case, queries=(query,))
    try:
        return expected(case)[query.name].num_rows > 0
    except UnsuitableCaseError:
        return False


def _changed(draft: _Draft, query: CaseQuery) -> CaseQuery:
    """Change one thing of a query, as people do: a selection, a key, the columns, a window."""
    rng = draft.rng
    changes = [_other_selection, _other_selection, _other_columns, _kept_columns, _kept_columns, _other_windows, _less]
    changes.append(_other_key)
    return rng.choice(changes)(draft, query)


def _rebuilt(
    query: CaseQuery,
    *,
    conditions: Sequence[Expression] | None = None,
    projection: Sequence[Expression] | None = None,
    windows: tuple[tuple[str, int | None], ...] | None = None,
) -> CaseQuery:
    return plain_query(
        query.name,
        query.relations,
        query.conditions if conditions is None else conditions,
        query.projection if projection is None else projection,
        query.windows if windows is None else windows,
    )


def _columns(draft: _Draft, query: CaseQuery, alias: str) -> list[Expression]:
    found: tuple[CaseColumn, ...] = draft.case.source(dict(query.relations)[alias]).columns
    return [column(alias, each.name, each.kind.name, each.kind.small) for each in found]


def _aliases(expression: Expression) -> list[str]:
    return list(dict.fromkeys(alias for alias, _ in expression.columns))


def _other_selection(draft: _Draft, query: CaseQuery) -> CaseQuery:
    """Take a selection away, put one in its place, or add one."""
    rng = draft.rng
    own = [each for each in query.conditions if len(_aliases(each)) == 1]
    gone = rng.choice(own) if own and rng.random() < 0.6 else None
    kept = [each for each in query.conditions if each is not gone]
    if gone is None or rng.random() < 0.5:
        alias = rng.choice(query.relations)[0]
        kept.append(random_selection(rng, _columns(draft, query, alias)))
    return _rebuilt(query, conditions=kept)


def _other_columns(draft: _Draft, query: CaseQuery) -> CaseQuery:
    columns = [each for alias, _ in query.relations for each in _columns(draft, query, alias)]
    every = [each for each in columns if BY_NAME[each.kind].is_kept]
    return _rebuilt(query, projection=draft.rng.sample(every, draft.rng.randint(1, min(4, len(every)))))


def _kept_columns(draft: _Draft, query: CaseQuery) -> CaseQuery:
    """Ask for some of the columns that the query has, which rows from before carry."""
    return _rebuilt(query, projection=draft.rng.choices(query.projection, k=draft.rng.randint(1, 4)))


def _other_windows(draft: _Draft, query: CaseQuery) -> CaseQuery:
    streams = [alias for alias, name in query.relations if not draft.case.source(name).is_table]
    chosen = draft.rng.sample(streams, draft.rng.randint(1, len(streams)))
    return _rebuilt(query, windows=tuple((alias, draft.rng.choice([None, *draft.windows_us])) for alias in chosen))


def _less(draft: _Draft, query: CaseQuery) -> CaseQuery:
    """Drop a relation, a condition or columns; add columns where there is nothing to drop."""
    simpler = list(simpler_queries(draft.case, query))
    return draft.rng.choice(simpler) if simpler else _other_columns(draft, query)


def _other_key(draft: _Draft, query: CaseQuery) -> CaseQuery:
    """Compare two joined relations by other columns."""
    rng = draft.rng
    joins = [each for each in query.conditions if len(_aliases(each)) == 2]
    if not joins:
        return _other_selection(draft, query)
    gone = rng.choice(joins)
    left, right = (_columns(draft, query, alias) for alias in _aliases(gone))
    pairs = [(a, b) for a in left for b in right if may_meet(a.kind, b.kind)]
    likely = [(a, b) for a, b in pairs if a.kind == b.kind and a.kind != "b"] or pairs
    added = equality(*rng.choice(likely))
    return _rebuilt(query, conditions=[added if each is gone else each for each in query.conditions])


# -- a stream under another name ---------------------------------------------------------------------------------------


def _with_renamed_stream(rng: random.Random, life: Life) -> Life:
    """Give a stream another name from some span on, in which the engine starts anew."""
    starts = [number for number, span in enumerate(life.spans) if number and span.is_restart]
    names = sorted({each.name for span in life.spans for each in span.declared if not each.is_table})
    if not starts or not names:
        return life
    first, name = rng.choice(starts), rng.choice(names)
    renamed: dict[int, CaseQuery] = {}
    spans = [span if number < first else _renamed(span, name, renamed) for number, span in enumerate(life.spans)]
    return replace(life, spans=tuple(spans))


def _renamed(span: Span, name: str, renamed: dict[int, CaseQuery]) -> Span:
    other = f"{name}_again"
    for query in span.queries:
        if id(query) not in renamed and any(source == name for _, source in query.relations):
            relations = tuple((alias, other if source == name else source) for alias, source in query.relations)
            renamed[id(query)] = plain_query(query.name, relations, query.conditions, query.projection, query.windows)
    return replace(
        span,
        declared=tuple(replace(each, name=other) if each.name == name else each for each in span.declared),
        queries=tuple(renamed.get(id(query), query) for query in span.queries),
    )
