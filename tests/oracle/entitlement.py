"""What every query of a life is entitled to: a function of the input, the batches, and who asked what and when.

A query that lives from batch A to batch Z is entitled to each combination that is a result (docs/semantics.md) and

1. whose last member arrives in a batch from A to Z; with `backfill`, if no query of its name has lived in a batch
   before, also to those whose members had all arrived before A;
2. whose members are **there**: none of them late or bad, and each either arrived in batch A or later, or **was kept**.
   Rows of tables are always there.

A row that arrived earlier, in batch b, was kept if in every batch from b to A − 1

3. some query that lived then **wanted the row**: it is a join with another relation over a stream, its selections hold
   for the row, and the row's sides of its join conditions are not NULL. A stream that keeps 'all' wants every row;
   while no query reads a stream, its rows rest and nobody needs to want them;
4. it was **young enough**: its event time plus the largest window of its stream among the queries that lived, or where
   none reads it the last ones that did, lay not below the watermark at the end of the batch;

and if

5. **what the query needs is carried**: columns in its output, both sides of join conditions, its selections. Of a row
   is carried what the queries that lived when it arrived needed. When the queries change, what the new ones need is
   carried on as far as it was carried or can be computed from columns that were; the rest is forgotten. With keep 'all'
   all columns are carried.

This is the lower bound: all of it must come out. At most may come out, once each, what only obeys 1 and is neither late
nor bad: the engine may remember more than it owes. (Buckets are forgotten as a whole.) A query of a name that lived
before may be filled up, too, but with nothing that has a member of that time.

Batches: while a stream that is read has a file that was not taken, a batch takes the next file of each. A stream that
is not read stays where it is. The watermark restates the rule of `tests.property.arrivals` for streams that come and
go: it is the smallest, over the streams that are read and not idle, of (largest τ of earlier batches − delay); there is
none while one of these has never sent anything. Idle is an impatient stream in a batch, not its first, in which it
sends nothing; if all are idle the watermark stays where it came to for any of them. A row is late if it is older than
the highest watermark its stream was read under, and a stream counts as having come at least that far.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

from tests.oracle.compare import multiset, table_rows
from tests.oracle.duckdb_oracle import MOST_ROWS, MOST_UNWINDOWED_ROWS, UnsuitableCaseError, load
from tests.oracle.translate import connection, to_duckdb
from tests.property.case import CaseQuery
from tests.property.expressions import Expression
from tests.property.lives import Declared, Incarnation, Life, Span, incarnations


@dataclass(frozen=True, slots=True)
class Item:
    """Something a stored row carries: a column, a side of a join condition or the selections of a relation; `columns`
    are what it can be computed from.
    """

    kind: str
    text: str
    columns: frozenset[str]


NEVER = -1
"""The batch after which a query was gone that was never there."""


def _column(name: str) -> Item:
    return Item("column", name, frozenset((name,)))


@dataclass(slots=True, kw_only=True)
class Batch:
    """One micro-batch: the span it is in, the file it takes of each stream, and the next one's watermark."""

    span: int
    files: dict[str, int]
    next_watermark_us: int | None = None


@dataclass(slots=True, kw_only=True)
class Arrived:
    """A row of a stream: its place in the source, its batch and τ. Late and bad ones are left out."""

    row: int
    batch: int
    tau_us: int


@dataclass(slots=True, kw_only=True)
class History:
    """What happened in a life: batches, rows that count by stream, and how many were late or bad."""

    batches: list[Batch] = field(default_factory=list)
    arrived: dict[str, list[Arrived]] = field(default_factory=dict)
    late: Counter[str] = field(default_factory=Counter)
    bad: Counter[str] = field(default_factory=Counter)
    letters: Counter[str] = field(default_factory=Counter)

    def first_batch(self, span: int) -> int:
        """Return the first batch that is not before a span: its own, if it has any."""
        return sum(1 for batch in self.batches if batch.span < span)

    def spans_of(self, first: int, last: int) -> list[int]:
        """Return the spans of the batches from `first` to `last`, in order."""
        return list(dict.fromkeys(batch.span for batch in self.batches[first : last + 1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Entitlement:
    """What a query must output and may at most. `past`: how many of those it must have a member from before it."""

    must: Counter[tuple[Any, ...]]
    may: Counter[tuple[Any, ...]]
    past: int

    @property
    def is_exact(self) -> bool:
        return self.must == self.may


def history(life: Life) -> History:
    """Play the life's input: which batches there are, and which rows are late."""
    found = History()
    taken: Counter[str] = Counter()
    newest: dict[str, int] = {}
    late_before: dict[str, int] = {}
    known: set[str] = set()
    for number, span in enumerate(life.spans):
        read = span.read()
        while any(taken[each.name] < span.until for each in read):
            batch = Batch(span=number, files={})
            for each in read:
                if taken[each.name] < span.until:
                    batch.files[each.name] = taken[each.name]
                    taken[each.name] += 1
            _arrive(found, span, batch, newest, late_before)
            silent = {each.name for each in read if each.is_impatient and each.name in known and not _rows(each, batch)}
            watermark = _watermark([each for each in read if each.name not in silent], read, newest, late_before)
            if watermark is not None:
                late_before.update({each.name: max(watermark, late_before.get(each.name, watermark)) for each in read})
            batch.next_watermark_us = watermark
            known |= {each.name for each in read}
            found.batches.append(batch)
    return found


def _rows(declared: Declared, batch: Batch) -> int:
    """Return how many rows a stream sends in a batch."""
    file = batch.files.get(declared.name)
    return 0 if file is None else declared.source.batch(file)[1]


def _watermark(
    awake: list[Declared], read: list[Declared], newest: Mapping[str, int], late_before: Mapping[str, int]
) -> int | None:
    """Return the next batch's watermark, None if there is none."""
    if not awake:
        return max((late_before[each.name] for each in read if each.name in late_before), default=None)
    if not all(each.name in newest for each in awake):
        return None
    marks = {each.name: newest[each.name] - each.source.delay_us for each in awake}
    return min(max(mark, late_before.get(name, mark)) for name, mark in marks.items())


def _arrive(found: History, span: Span, batch: Batch, newest: dict[str, int], late_before: Mapping[str, int]) -> None:
    for name, file in batch.files.items():
        declared = span.named(name)
        start, rows = declared.source.batch(file)
        for row, tau in enumerate(declared.source.taus()[start : start + rows], start):
            is_late = tau is not None and tau < late_before.get(name, tau)
            found.bad[name] += tau is None
            found.late[name] += is_late
            found.letters[name] += declared.dead_letter and (tau is None or is_late)
            if tau is not None:
                newest[name] = max(tau, newest.get(name, tau))
            if tau is not None and not is_late:
                arrived = Arrived(row=row, batch=len(found.batches), tau_us=tau)
                found.arrived.setdefault(name, []).append(arrived)


def entitlements(life: Life) -> dict[str, Entitlement]:
    """Return what each incarnation of each query is entitled to. Raises UnsuitableCaseError for huge results."""
    played = history(life)
    return {each.key: _entitlement(life, played, each) for each in incarnations(life)}


def _entitlement(life: Life, played: History, incarnation: Incarnation) -> Entitlement:
    query, span = incarnation.query, life.spans[incarnation.first]
    added = played.first_batch(incarnation.first)
    ended = played.first_batch(incarnation.last + 1) - 1
    for alias, name in query.relations:
        declared = span.named(name)
        if declared.is_table:
            rows = _marked(declared.source.rows, [(-1, True, 0)] * declared.source.rows.num_rows)
        else:
            kept = _Kept(life=life, played=played, incarnation=incarnation, alias=alias)
            seen = [each for each in played.arrived.get(name, []) if each.batch <= ended]
            marks = [(each.batch, kept.tell(each, added), each.tau_us) for each in seen]
            rows = _marked(declared.source.rows.take(pa.array([each.row for each in seen], pa.int64())), marks)
        load(connection(), {f"#{alias}": rows})
    results = _joined(span, query)
    output = table_rows(results.select(range(len(query.projection))))
    newest, oldest, sure = (column.to_pylist() for column in results.columns[len(query.projection) :])
    backfill = _backfill(life, played, incarnation, added)
    all_ = range(len(output))
    owed = [n for n in all_ if sure[n] and (newest[n] >= added or backfill == NEVER)]
    return Entitlement(
        must=multiset(output[n] for n in owed),
        may=multiset(output[n] for n in all_ if newest[n] >= added or (backfill is not None and oldest[n] > backfill)),
        past=sum(oldest[n] < added for n in owed),
    )


def _backfill(life: Life, played: History, incarnation: Incarnation, added: int) -> int | None:
    """Return the last batch before the query's in which one of its name lived, NEVER if none did, so that it is
    entitled to what was complete before it came; None if queries are not filled up.
    """
    if added in (0, len(played.batches)) or played.batches[added].span > incarnation.last:
        return None
    if not life.spans[played.batches[added].span].way.backfill:
        return None
    name = incarnation.query.name
    lived = {number for number, span in enumerate(life.spans) if any(query.name == name for query in span.queries)}
    return max((number for number, batch in enumerate(played.batches[:added]) if batch.span in lived), default=NEVER)


# -- results of a query ------------------------------------------------------------------------------------------------


def _marked(rows: pa.Table, marks: list[tuple[int, bool, int]]) -> pa.Table:
    """Add to each row its batch as newest and as oldest member, whether it is surely there, and its τ."""
    columns = {
        "#newest": pa.array([batch for batch, *_ in marks], pa.int64()),
        "#oldest": pa.array([batch if batch >= 0 else 2**31 for batch, *_ in marks], pa.int64()),
        "#sure": pa.array([sure for _, sure, _ in marks], pa.bool_()),
        "#tau": pa.array([tau for *_, tau in marks], pa.int64()),
    }
    for name, values in columns.items():
        rows = rows.append_column(name, values)
    return rows


def _joined(span: Span, query: CaseQuery) -> pa.Table:
    """Return all results of the query over the loaded relations: output, newest and oldest batch, and whether all
    members are surely there.

    Raises UnsuitableCaseError for too many.
    """
    aliases = [alias for alias, _ in query.relations]
    streams = [alias for alias, name in query.relations if not span.named(name).is_table]
    bare = [condition.sql(_reference) for condition in query.conditions]
    windowed = []
    for alias in streams:
        window_us = span.window_us(query, alias)
        if window_us is not None and len(streams) > 1:
            windowed.append(f"{_of_all('greatest', '#tau', streams)} - {_reference(alias, '#tau')} <= {window_us}")
    output = ", ".join(f"{item.sql(_reference)} AS c{number}" for number, item in enumerate(query.projection))
    sure = " AND ".join(_reference(alias, "#sure") for alias in aliases)
    newest, oldest = _of_all("greatest", "#newest", aliases), _of_all("least", "#oldest", aliases)
    marks = f"{newest} AS m0, {oldest} AS m1, {sure} AS m2"
    tables = ", ".join(f"`#{alias}` AS {alias}" for alias in aliases)
    _refuse_many(_select("1", tables, bare), MOST_UNWINDOWED_ROWS)
    text = _select(f"{output}, {marks}", tables, [*bare, *windowed])
    _refuse_many(text, MOST_ROWS)
    return connection().sql(to_duckdb(text)).to_arrow_table()


def _select(items: str, tables: str, conditions: list[str]) -> str:
    where = " WHERE " + " AND ".join(f"({condition})" for condition in conditions) if conditions else ""
    return f"SELECT {items} FROM {tables}{where}"


def _refuse_many(text: str, most: int) -> None:
    count = f"SELECT count(*) FROM (SELECT 1 FROM ({to_duckdb(text)}) LIMIT {most + 1})"
    try:
        ((rows,),) = connection().execute(count).fetchall()
    except duckdb.OutOfRangeException as error:
        raise UnsuitableCaseError(str(error)) from error
    if rows > most:
        raise UnsuitableCaseError(f"more than {most} rows")


def _of_all(function: str, name: str, aliases: list[str]) -> str:
    items = [_reference(alias, name) for alias in aliases]
    return items[0] if len(items) == 1 else f"{function}({', '.join(items)})"


def _reference(alias: str, name: str) -> str:
    return f"{alias}.`" + name.replace("`", "``") + "`"


# -- what is kept ------------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class _Kept:
    """Whether rows of one relation that arrived before its query came were kept for it (3, 4 and 5 above)."""

    life: Life
    played: History
    incarnation: Incarnation
    alias: str
    _carried: dict[int, bool] = field(default_factory=dict)

    @property
    def stream(self) -> str:
        return dict(self.incarnation.query.relations)[self.alias]

    def tell(self, row: Arrived, added: int) -> bool:
        """Return whether a row is surely there for the query, added with batch `added`."""
        if row.batch >= added:
            return True
        spans = self.played.spans_of(row.batch, added - 1)
        values = self._values(row)
        batches = self.played.batches[row.batch : added]
        return (
            all(self._is_wanted(self.life.spans[span], values) for span in spans if self._is_read(span))
            and all(self._is_young(self._reader(each.span), each, row) for each in batches)
            and self._is_carried(spans[0], spans)
        )

    def _is_read(self, span: int) -> bool:
        return any(each.name == self.stream for each in self.life.spans[span].read())

    def _reader(self, span: int) -> Span:
        """Return the last span up to this one that reads the stream; of those with batches, if any has some since."""
        read = (number for number in range(span, -1, -1) if self._is_read(number) and self._has_batches(number))
        return self.life.spans[next(read)]

    def _values(self, row: Arrived) -> dict[str, Any]:
        span = self.life.spans[self.incarnation.first]
        (values,) = span.named(self.stream).source.rows.slice(row.row, 1).to_pylist()
        return dict(values)

    def _is_wanted(self, span: Span, values: dict[str, Any]) -> bool:
        if _keeps_all(span, self.stream):
            return True
        if span.way.strategy == "independent":
            return False
        return any(_wants(query, alias, values) for query, alias in _uses(span, self.stream) if _is_join(span, query))

    def _is_young(self, span: Span, batch: Batch, row: Arrived) -> bool:
        mark = batch.next_watermark_us
        if mark is None:
            return True
        windows = [_window_us(span, query, alias) for query, alias in _uses(span, self.stream)]
        if _keeps_all(span, self.stream):
            windows.append(span.named(self.stream).source.window_us)
        return None in windows or row.tau_us + max(each for each in windows if each is not None) >= mark

    def _is_carried(self, first: int, spans: list[int]) -> bool:
        """Tell whether rows of span `first` carry what the query needs once it is added, after all `spans`."""
        if first not in self._carried:
            now = self.life.spans[self.incarnation.first]
            carried = self._carry(first, [*spans[1:], self.incarnation.first])
            self._carried[first] = set(_needs(now, self.incarnation.query, self.alias)) <= carried
        return self._carried[first]

    def _carry(self, first: int, spans: Iterable[int]) -> set[Item]:
        """Return what rows of span `first` still carry after these spans."""
        carried = set(_needed(self.life.spans[first], self.stream))
        for number in filter(self._is_read, spans):
            columns = {item.text for item in carried if item.kind == "column"}
            wanted = set(_needed(self.life.spans[number], self.stream))
            carried = {item for item in wanted if item in carried or item.columns <= columns}
        return carried

    def _has_batches(self, span: int) -> bool:
        return any(batch.span == span for batch in self.played.batches)


def _uses(span: Span, stream: str) -> Iterator[tuple[CaseQuery, str]]:
    """Yield the relations over a stream among the queries of a span."""
    for query in span.queries:
        yield from ((query, alias) for alias, name in query.relations if name == stream)


def _keeps_all(span: Span, stream: str) -> bool:
    return any(each.name == stream and each.keep_all for each in span.declared)


def _is_join(span: Span, query: CaseQuery) -> bool:
    """Tell whether rows of the query's streams are kept: some later row of a stream must look for them."""
    return sum(not span.named(name).is_table for _, name in query.relations) > 1


def _wants(query: CaseQuery, alias: str, values: dict[str, Any]) -> bool:
    row = {alias: values}
    for condition in query.conditions:
        aliases = _aliases(condition)
        if aliases == {alias} and condition.value(row) is not True:
            return False
        if len(aliases) > 1 and any(side.value(row) is None for side in _sides(condition, alias)):
            return False
    return True


def _aliases(expression: Expression) -> set[str]:
    return {alias for alias, _ in expression.columns}


def _sides(expression: Expression, alias: str) -> Iterator[Expression]:
    """Yield the largest parts of a condition that concern this relation alone."""
    if _aliases(expression) == {alias}:
        yield expression
        return
    for operand in expression.operands:
        yield from _sides(operand, alias)


def _window_us(span: Span, query: CaseQuery, alias: str) -> int | None:
    """Return how long a relation's rows are kept at least: where a join condition reads event times, nobody promises
    more than the moment.
    """
    times = {(other, span.named(name).source.time) for other, name in query.relations}
    if any(len(_aliases(each)) > 1 and times & set(each.columns) for each in query.conditions):
        return 0
    return span.window_us(query, alias)


def _needed(span: Span, stream: str) -> Iterator[Item]:
    """Yield what rows of a stream carry for the queries of a span."""
    if _keeps_all(span, stream):
        yield from (_column(each.name) for each in span.named(stream).source.columns)
    for query, alias in _uses(span, stream):
        yield from _needs(span, query, alias)


def _needs(span: Span, query: CaseQuery, alias: str) -> Iterator[Item]:
    """Yield what a query needs of one of its relations. Two items are the same only if they surely are."""
    for item in query.projection:
        yield from (_column(name) for other, name in item.columns if other == alias)
    own = [each for each in query.conditions if _aliases(each) == {alias}]
    selection = sorted({each.sql(lambda _, name: name) for each in own})
    yield Item("selection", " AND ".join(selection), frozenset(name for each in own for _, name in each.columns))
    for condition in query.conditions:
        if len(_aliases(condition)) < 2:
            continue
        other = (
            next(dict(query.relations)[each] for each in sorted(_aliases(condition)) if each != alias)
            if (alias in _aliases(condition))
            else ""
        )
        for side in _sides(condition, alias):
            text = (
                _key_text(condition, side)
                or condition.sql(lambda found, name: f"{'own' if found == alias else 'other'}.{name}")
                + f" {other} {side.sql(lambda _, name: name)}"
            )
            yield Item("side", text, frozenset(name for _, name in side.columns))


def _key_text(condition: Expression, side: Expression) -> str | None:
    """Return what makes a side of an equality the same key as another: its text and what it is compared as."""
    if condition.template != "{0} = {1}" or side not in condition.operands:
        return None
    left, right = condition.operands
    other = right if side is left else left
    return f"{side.sql(lambda _, name: name)} as {side.kind} = {other.kind}"
