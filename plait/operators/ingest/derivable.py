"""What of a spec can be had from rows that are at hand, and how: for `plait.operators.ingest.deriving`.

At hand is what Spark computes for a plan that is in force, or what a bucket holds. Computed besides is what DuckDB
gives exactly as Spark does (`plait.sql.predicates.translation`) and what cannot fail, and selections that an index
decides (`plait.operators.ingest.indexing`): all else takes Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from plait.operators.column_names import TAU, word_names
from plait.operators.ingest.deriving import NO_INDEX, Derivation, Derived
from plait.operators.ingest.hashes import HASHED
from plait.operators.ingest.indexing import selection_index
from plait.operators.ingest.projection import IngestSpec, ingest_spec, layout_of
from plait.operators.ingest.readings import Reading
from plait.plan.columns import stored_column
from plait.plan.model import KeyColumn, Selection, Store, ValueColumn
from plait.query.model import Source, Stream
from plait.sql.lexis.literals import duckdb_type
from plait.sql.lexis.numbers import INTEGERS
from plait.sql.lexis.tokens import rendered, tokens_of
from plait.sql.predicates.coercions import ALIKE, Untranslatable, Value, converted
from plait.sql.predicates.translation import condition_of, value_of

FEWEST_INDEXED: Final = 8
"""For fewer selections Spark evaluates all: their columns would have to be handed over for a few bits. For 100,000 rows
Spark takes 0.2 s of a processor for 16 selections, 2.5 s for 175 and 7 s for 500, an index 5, 23 and 61 ms."""

_AS_INT64: Final = {
    "date": "CAST(date_diff('day', DATE '1970-01-01', {}) AS BIGINT)",
    "timestamp": "epoch_us({})",
    **dict.fromkeys(INTEGERS, "CAST({} AS BIGINT)"),
}


def derivation_from_running(spec: IngestSpec, running: IngestSpec, source: Source) -> Derivation | None:
    """Return how the rows that Spark hands over for `running` serve another spec of the same source; None if they take
    Spark.
    """
    if _letters_of(spec) != _letters_of(running):
        return None
    repeated = {name: other for name, other in running.aliases if name not in dict(spec.aliases)}
    at_hand = {*(name for name, _ in running.projection), *repeated} - {*word_names(max(len(running.selections), 2))}
    return derivation(spec, at_hand, running.selections, source, aliases=repeated)


def derivation(
    spec: IngestSpec,
    at_hand: Collection[str],
    held: tuple[str, ...],
    source: Source,
    *,
    aliases: Mapping[str, str] | None = None,
) -> Derivation | None:
    """Return how rows of `source` with the columns `at_hand` come to be as a spec has them; None if that takes Spark.
    `held`: the selections that are known of them; `aliases`: columns at hand under another name as well.
    """
    words = word_names(max(len(spec.selections), 2))
    rows = set(at_hand) - set(word_names(max(len(held), 2)))
    lacking = [name for name, _ in spec.projection if name not in {*rows, *words}]
    asked = spec.selections if any(name in words for name, _ in spec.projection) else ()
    makers = _makers(spec)
    types = {column.name: column.type for column in source.schema or () if column.name in rows}
    by_text = _selections(spec)
    index = selection_index([None if sql in held else by_text[sql] for sql in asked], types) if asked else NO_INDEX
    translator = _Translator(types)
    columns = [None if name not in makers else translator.column(makers[name]) for name in lacking]
    left = (sql for place, sql in enumerate(asked) if sql not in held and place not in index.places)
    selections = [translator.selection(sql) for sql in left]
    if None in columns or None in selections:
        return None
    return Derivation(
        spec=spec,
        aliases=tuple((aliases or {}).items()),
        held=held,
        # Something has to be read, or nobody knows how many rows there are.
        reads=tuple(translator.reads) or tuple(sorted(rows))[:1],
        columns=tuple(each for each in columns if each is not None),
        selections=tuple(each for each in selections if each is not None),
        index=index,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Taking:
    """What Spark hands over of a source, and what tasks make of it; None: they take it as it is."""

    handed: IngestSpec
    how: Derivation | None = None


def taking_in(spec: IngestSpec, source: Source) -> Taking:
    """Return how the rows of a source come to be as a spec has them. The selections in an index are left to the tasks
    if they are many; these then need the columns that they read.
    """
    if not spec.selections or spec.selections == ("true",):
        return Taking(handed=spec)
    by_text = _selections(spec)
    types = {column.name: column.type for column in source.schema or ()}
    index = selection_index([by_text[sql] for sql in spec.selections], types)
    if len(index.places) < FEWEST_INDEXED:
        return Taking(handed=spec)
    handed = ingest_spec(
        source,
        tuple(store for store, _ in spec.stores),
        corrupt_column=spec.corrupt_column,
        left_to_tasks={spec.selections[place] for place in index.places},
        read_by_tasks=tuple(each.column for each in index.columns),
    )
    how = derivation_from_running(spec, handed, source)
    return Taking(handed=spec) if how is None else Taking(handed=handed, how=how)


def reading_of(store: Store, source: Stream) -> Reading | None:
    """Return how rows of a stream that were stored for earlier plans are read as the store keeps them now: by their raw
    columns and event time alone. None if that takes Spark.
    """
    spec = ingest_spec(replace(source, dead_letter=None), (store,))
    raw = [column.name for column in source.schema or ()]
    how = derivation(spec, [*raw, TAU], (), source)
    layout = layout_of(store)
    if how is None or not (layout.carried or layout.selections):
        return None
    if len(layout.selections) == 1 and layout.selections != ("true",):  # it would hold for every row that is there
        layout = replace(layout, selections=(*layout.selections, ""))
    passed = (name for name, _ in spec.projection if stored_column(name).kind in ("raw", "time"))
    repeated = (other for _, other in spec.aliases)
    computed = how.reads if how.columns or how.selections else ()
    asked = (each.column for each in how.index.columns)
    return Reading(layout=layout, columns=tuple(dict.fromkeys((*passed, *repeated, *computed, *asked))), how=how)


def _selections(spec: IngestSpec) -> dict[str, Selection]:
    return {selection.sql: selection for store, _ in spec.stores for selection in store.selections}


def _letters_of(spec: IngestSpec) -> tuple[object, ...]:
    return spec.dead_letter, spec.dead_letter_columns, spec.corrupt_column


def _makers(spec: IngestSpec) -> dict[str, KeyColumn | ValueColumn]:
    """Return the keys and values of a spec's stores by name."""
    makers: dict[str, KeyColumn | ValueColumn] = {}
    for store, _ in spec.stores:
        makers.update((key.name, key) for key in store.keys)
        behind = ((key, key.value_name) for key in store.keys)
        makers.update((name, ValueColumn(expression=key.expression, type=key.type)) for key, name in behind if name)
        makers.update((value.name, value) for value in store.values)
    return makers


@dataclass(slots=True)
class _Translator:
    """Translates expressions over raw columns of these `types`, and collects which of them it `reads`."""

    types: Mapping[str, str]
    reads: dict[str, int] = field(default_factory=dict)

    def column(self, column: KeyColumn | ValueColumn) -> Derived | None:
        """Return how a key or value is computed; None if that takes Spark."""
        value = self._translated(column.expression.sql, partial(value_of, is_exact=True))
        encoded = None if value is None else _encoded(value, column)
        return None if encoded is None else replace(encoded, name=column.name)

    def selection(self, sql: str) -> Derived | None:
        """Return how a selection is computed; None if that takes Spark."""
        value = self._translated(sql, partial(condition_of, is_exact=True))
        return None if value is None else Derived(name=sql, sql=value.sql)

    def _translated(self, sql: str, translate: Callable[[str, Sequence[str]], Value]) -> Value | None:
        """Return the value in DuckDB's SQL over numbered columns; None if one of them is not at hand or of a type that
        DuckDB has not alike, or if it can fail.
        """
        tokens = tokens_of(sql)
        quoted = [token for token in tokens if token.kind == "quoted"]
        if not all(ALIKE.fullmatch(self.types.get(token.value, "")) for token in quoted):
            return None
        for token in quoted:
            self.reads.setdefault(token.value, len(self.reads))
        places = {token.start: (token.end, f"`{self.reads[token.value]}`") for token in quoted}
        try:
            value = translate(rendered(sql, tokens, places), [self.types[name] for name in self.reads])
        except Untranslatable:
            return None
        return None if value.can_fail else value


def _encoded(value: Value, column: KeyColumn | ValueColumn) -> Derived | None:
    """Return a value as `plait.operators.ingest.projection` would have it of Spark; None if that takes Spark."""
    try:
        sql = converted(value, column.type)
    except Untranslatable:
        return None
    if not isinstance(column, KeyColumn):
        if column.type in INTEGERS:  # DuckDB counts in wider ones
            sql = f"CAST({sql} AS {duckdb_type(column.type)})"
        return Derived(name="", sql=sql, is_instant=column.type == "timestamp")
    if column.by_size:
        return Derived(name="", sql=sql)
    if column.type in _AS_INT64:
        return Derived(name="", sql=_AS_INT64[column.type].format(f"({sql})"))
    return Derived(name="", sql=sql, is_hash=True) if HASHED.fullmatch(column.type) else None


__all__ = ["FEWEST_INDEXED", "Taking", "derivation", "derivation_from_running", "reading_of", "taking_in"]
