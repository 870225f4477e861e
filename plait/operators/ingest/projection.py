"""What Spark evaluates for each input row, once per source, before the row reaches Python.

The projection is the meeting point of Spark's expression semantics and the kernels' arrays: every join attribute
becomes one int64 (or what the ingest task makes one of, `plait.operators.ingest.ingest`), every distinct selection one
bit, τ one int64; everything else is a column passed through.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from plait.operators.column_names import ROW, SELECTIONS_PER_WORD, TAU, bit_of, word_names
from plait.plan.model import KeyColumn, Plan, Store, ValueColumn
from plait.plan.traversals import value_names
from plait.query.model import Source, Stream
from plait.query.types import is_calendar
from plait.sinks.storable import AS_TEXT, arrow_problem, spark_type_of
from plait.spelling import backquoted
from plait.state.model import Layout

_MOST_DAYS = (2**63 - 1) // 86_400_000_000
_TOO_FAR = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestSpec:
    """How the rows of one source are taken in.

    `projection`: (name, Spark SQL over the source's columns), the columns an ingest task receives, in order. `aliases`:
    (name, other), columns that hold the same values as another one and so need not cross to Python twice.
    `selections`: texts behind the incoming query-set words. `stores`: who keeps what, with the layout of their buckets.
    `dead_letter`: directory for rows that cannot be joined, with the source's columns that go there.
    """

    source: str
    is_table: bool
    projection: tuple[tuple[str, str], ...]
    aliases: tuple[tuple[str, str], ...]
    selections: tuple[str, ...]
    stores: tuple[tuple[Store, Layout], ...]
    dead_letter: str | None = None
    dead_letter_columns: tuple[str, ...] = ()
    corrupt_column: str | None = None

    @property
    def raw_columns(self) -> tuple[str, ...]:
        """The source's own columns among those that an ingest task receives."""
        kept = (column for store, _ in self.stores for column in store.columns)
        return tuple(dict.fromkeys((*kept, *self.dead_letter_columns)))


def layout_of(store: Store) -> Layout:
    """Return the layout of the buckets that this store writes."""
    return Layout(
        columns=store.columns,
        keys=tuple(key.name for key in store.keys),
        values=value_names(store),
        selections=tuple(selection.sql for selection in store.selections),
        has_tau=not store.is_table,
    )


def ingest_spec(
    source: Source,
    stores: tuple[Store, ...],
    *,
    corrupt_column: str | None = None,
    left_to_tasks: Collection[str] = (),
    read_by_tasks: Collection[str] = (),
) -> IngestSpec:
    """Return the spec for one source and all the stores that keep its rows.

    `corrupt_column`: the column into which Spark puts the text of a malformed record, if the connector has one.
    `left_to_tasks`: selections that Spark need not evaluate; `read_by_tasks`: columns that it hands over for them.
    """
    needed = {selection.sql for store in stores for selection in store.selections}
    selections = tuple(sorted(needed.difference(left_to_tasks)))
    dead_letter = source.dead_letter if isinstance(source, Stream) else None
    letters = tuple(column.name for column in source.schema or ()) if dead_letter is not None else ()
    raw = dict.fromkeys([column for store in stores for column in store.columns] + list(letters) + list(read_by_tasks))
    if corrupt_column is not None:
        raw[corrupt_column] = None
    keys = {key.name: key for store in stores for key in store.keys}
    aliases = _aliases(source, tuple(keys.values()), frozenset(raw))
    texts = {column.name for column in source.schema or () if column.name in letters and _is_text_only(column.type)}
    projection = [(name, f"CAST({backquoted(name)} AS STRING)" if name in texts else backquoted(name)) for name in raw]
    if isinstance(source, Stream):
        projection.append((TAU, tau_sql(source)))
    projection += [(key.name, key_sql(key)) for key in keys.values()]
    values = {key.value_name: value_sql(key) for key in keys.values() if key.value_name is not None}
    values.update((value.name, value_sql(value)) for store in stores for value in store.values)
    projection += list(values.items())
    projection += [(name, bits_sql(selections, word)) for word, name in enumerate(_incoming_words(selections))]
    repeated = dict(aliases)
    return IngestSpec(
        source=source.name,
        is_table=not isinstance(source, Stream),
        aliases=aliases,
        projection=tuple((name, sql) for name, sql in projection if name not in repeated)
        or ((ROW, "CAST(0 AS TINYINT)"),),
        selections=selections,
        stores=tuple((store, layout_of(store)) for store in stores),
        dead_letter=dead_letter,
        dead_letter_columns=letters,
        corrupt_column=corrupt_column,
    )


def spec_in(plan: Plan, source: Source) -> IngestSpec:
    """Return the spec for one source and the stores that a plan has of it."""
    return ingest_spec(source, tuple(store for store in plan.stores if store.source == source.name))


def _is_text_only(type_: str) -> bool:
    """Tell whether Spark hands a type to a task as text alone. No query keeps such a column; dead letters do."""
    parsed = spark_type_of(type_)
    return parsed is not None and arrow_problem(parsed) == AS_TEXT


def _aliases(source: Source, keys: tuple[KeyColumn, ...], raw: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """Return which added columns repeat a raw one: τ of a timestamp column, keys that are a bigint column."""
    types = {column.name: column.type for column in source.schema or () if column.name in raw}
    aliases = []
    time = source.time if isinstance(source, Stream) and source.computed is None else None
    if time is not None and types.get(time) in ("timestamp", "timestamp_ntz"):
        aliases.append((TAU, time))
    bare = {backquoted(name): name for name, kind in types.items() if kind == "bigint"}
    for key in keys:
        if key.type == "bigint" and key.expression.sql in bare:
            aliases.append((key.name, bare[key.expression.sql]))
    return tuple(aliases)


def tau_sql(stream: Stream) -> str:
    """Return event time as BIGINT microseconds, a wall-clock time as it is. Both these and dates are read as UTC,
    whatever the session's zone: Spark has no function that counts the microseconds of a wall-clock time without going
    through that zone, where the hour that a clock change leaves out is the one after it. A date whose microseconds
    would leave BIGINT is one that is out of range (`plait.operators.ingest.badrows.FARTHEST_US`), not an error.
    """
    if stream.computed is not None:
        from plait.sql.expressions.forgiving import forgiving  # here: workers import this module and need no parser

        time, type_ = forgiving(stream.computed.sql), stream.computed.type
    else:
        time = backquoted(stream.time)
        type_ = next((column.type for column in stream.schema or () if column.name == stream.time), None)
    match type_:
        case "timestamp_ntz":
            return time
        case "date":
            days = f"unix_date({time})"
            return (
                f"CASE WHEN {days} BETWEEN -{_MOST_DAYS} AND {_MOST_DAYS} THEN {days} * 86400000000L "
                f"WHEN {days} IS NOT NULL THEN {_TOO_FAR}L END"
            )
        case _:
            return f"unix_micros(CAST({time} AS TIMESTAMP))"


def _incoming_words(selections: tuple[str, ...]) -> tuple[str, ...]:
    """Return the word columns Spark computes: none if nobody asks or every row qualifies anyway."""
    return () if selections in ((), ("true",)) else word_names(max(len(selections), 2))


def value_sql(key: KeyColumn | ValueColumn) -> str:
    """Return the expression as a value of its type. Of years and months it is the number of months: Spark hands no
    interval of these to a task.
    """
    value = _cast(key)
    return f"CAST(CAST({value} AS INTERVAL MONTH) AS INT)" if is_calendar(key.type) else value


def _cast(key: KeyColumn | ValueColumn) -> str:
    return f"CAST(({key.expression.sql}) AS {key.type.upper()})"


def key_sql(key: KeyColumn) -> str:
    """Return the join attribute as one BIGINT, NULL where the attribute is.

    Doubles and wall-clock times of which the order matters are passed on as they are, for the ingest task to turn into
    int64 (for wall-clock times see `tau_sql`). ``xxhash64`` maps NULL to its seed, hence the test.
    """
    value = _cast(key)
    if key.by_size:
        return value
    match key.type:
        case "tinyint" | "smallint" | "int" | "bigint":
            return f"CAST({value} AS BIGINT)"
        case "date":
            return f"CAST(unix_date({value}) AS BIGINT)"
        case "timestamp":
            return f"unix_micros({value})"
        case _:
            return f"CASE WHEN {value} IS NULL THEN NULL ELSE xxhash64({value}) END"


def bits_sql(selections: tuple[str, ...], word: int, held: tuple[str, ...] = ()) -> str:
    """Return query-set word `word`: a selection that is NULL does not hold.

    `held`: the selections of stored rows, whose bits are taken from the words these rows have.
    """
    chosen = selections[word * SELECTIONS_PER_WORD : (word + 1) * SELECTIONS_PER_WORD]
    return " + ".join(
        f"(CASE WHEN {_held_bit(held, sql) if sql in held else sql} THEN {1 << bit}L ELSE 0L END)"
        for bit, sql in enumerate(chosen)
    )


def _held_bit(held: tuple[str, ...], selection: str) -> str:
    if not word_names(len(held)):
        return "true"
    word, mask = bit_of(held, selection)
    return f"({backquoted(word)} & {mask}L) <> 0L"


__all__ = ["IngestSpec", "bits_sql", "ingest_spec", "key_sql", "layout_of", "spec_in", "value_sql"]
