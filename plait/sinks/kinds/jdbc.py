"""Results as rows of a PostgreSQL table, each exactly once.

A batch is one transaction: Spark's writer commits once for each task, and here there is one. Four more columns say what
a row is: of which ``plait_checkpoint``, ``plait_query`` and ``plait_batch``, and its ``plait_index`` there. They are
unique, so that a row is there once even if a process that was given up for dead writes after all; and they tell whoever
comes next what the table has. Their index begins with the mark of the batch's results, by which those of another copy
of the checkpoint are known.

What is asked of the database before a batch is asked only where this process has not written the batch before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from plait.errors import SinkError
from plait.faults import reach
from plait.option_values import COUNT, NAME
from plait.query.model import SinkSpec
from plait.sinks.kind import Known, Note, ResultColumn, Results, Sink, SinkKind
from plait.sinks.options import SinkProblem, accepting, option_of
from plait.sinks.staging import Publication
from plait.sinks.storable import AS_TEXT, Atomic, SparkType, is_same_in_arrow
from plait.spelling import folded, quoted

PREFIX: Final = "jdbc:postgresql:"
IDENTITY: Final = ("plait_checkpoint", "plait_query", "plait_batch", "plait_index")
_DRIVER: Final = "org.postgresql.Driver"


class Jdbc(SinkKind):
    """A table of a PostgreSQL database. It is made, with its unique index, where it is not there."""

    name = "jdbc"
    options = (*accepting(NAME, "url", "dbtable", "user", "password"), *accepting(COUNT, "batchsize", "queryTimeout"))
    required = ("url", "dbtable")
    examples = MappingProxyType({"url": f"url '{PREFIX}//host/database'", "dbtable": "dbtable 'results'"})
    by_name = True

    def problems(self, spec: SinkSpec) -> list[SinkProblem]:
        """Refuse other databases."""
        url, problems = option_of(spec.options, "url"), super().problems(spec)
        if url and not url.startswith(PREFIX):
            message = f"url is '{url}'; this sink writes to PostgreSQL: {PREFIX}//host:port/database"
            problems.append(SinkProblem(message=message, option="url"))
        return problems

    def column_problems(self, spec: SinkSpec, columns: Sequence[ResultColumn]) -> list[SinkProblem]:
        """Look at types, and for names that are the sink's own."""
        message = "column '{}' has the name of one that a sink jdbc adds; give it another one with AS"
        own = (
            SinkProblem(message=message.format(name), column=place)
            for place, (name, _) in enumerate(columns)
            if name is not None and folded(name) in IDENTITY
        )
        return [*super().column_problems(spec, columns), *own]

    def type_problem(self, type_: SparkType) -> str | None:
        """Refuse what is no value of a column."""
        if not isinstance(type_, Atomic):
            return "write to_json(...) of it"
        return None if is_same_in_arrow(type_) else AS_TEXT

    def connectors(self, spec: SinkSpec) -> tuple[str, ...]:
        """Return the name of the driver's."""
        return ("postgresql",)

    def remembers(self, spec: SinkSpec) -> bool:
        """Tell that the table says which batches it has."""
        return True

    def deliver(self, sink: Sink, results: Results) -> tuple[Publication, ...]:
        """Write the batch, unless the table has it."""
        table = self._table(sink.spec, results)
        known = f"{results.query}\n{sorted(table.options.items())}"
        wrote_before = results.connections.pop(known, None) is not None
        if wrote_before or not table.has_batch():
            try:
                table.write()
            except Exception:
                if not table.has_batch():  # else a process that was given up for dead has written it
                    raise
        results.connections[known] = Known()
        return ()

    def has(self, sink: Sink, results: Results) -> bool:
        """Ask the database for rows of the batch."""
        return self._table(sink.spec, results).has_rows()

    def place(self, spec: SinkSpec) -> str:
        """Return the table."""
        return option_of(spec.options, "dbtable") or ""

    def _table(self, spec: SinkSpec, results: Results) -> _Table:
        return _Table(options={**dict(spec.options), "driver": _DRIVER}, name=self.place(spec), results=results)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """A table, and the results that are to be in it. `options`: of Spark's reader and writer."""

    options: Mapping[str, str]
    name: str
    results: Results

    def has_batch(self) -> bool:
        """Tell whether the results are there. Raises SinkError where that cannot be made sure, or is contradictory."""
        results = self.results
        if not self._ask(f"to_regclass({_text(self.name)}) IS NOT NULL")[0]:
            return False
        newest = f"(SELECT max(plait_batch) FROM {self.name} WHERE {self._mine})"
        is_unique, last, last_mark, mark = self._ask(
            f"EXISTS ({_UNIQUE.format(table=_text(self.name))})",
            newest,
            self._mark_of(newest),
            self._mark_of(str(results.batch)),
        )
        if not is_unique:
            raise SinkError(
                f"query '{results.query}': table {self.name} may have a row twice, for want of an index; make one: "
                f"{self._index}"
            )
        place = f"table {self.name}"
        advice = (
            "Go on with the one that has written them; or delete what it has not done: "
            f"DELETE FROM {self.name} WHERE {self._mine} AND plait_batch >= {results.batch}"
        )
        results.require_known(None if last is None else Note(batch=last, mark=last_mark), place, advice)
        if mark not in (None, results.mark):
            raise results.unknown(last, place, advice)
        return mark is not None

    def has_rows(self) -> bool:
        """Tell whether the results are there, whatever else is."""
        found = f"FROM pg_attribute WHERE attrelid = to_regclass({_text(self.name)})"
        (columns,) = self._ask(f"(SELECT count(*) {found} AND attname IN ({', '.join(map(_text, IDENTITY))}))")
        if columns < len(IDENTITY):
            return False
        return bool(self._ask(self._mark_of(str(self.results.batch)))[0] == self.results.mark)

    def write(self) -> None:
        """Write the rows in one transaction."""
        results = self.results
        identity = {
            "plait_checkpoint": quoted(results.checkpoint),
            "plait_query": quoted(results.query),
            "plait_batch": f"{results.batch}L",
            "plait_index": f"concat({quoted(results.mark + '-')}, CAST(monotonically_increasing_id() AS STRING))",
        }
        rows = results.rows.coalesce(1).selectExpr("*", *(f"{sql} AS {name}" for name, sql in identity.items()))
        options = {**self.options, "isolationLevel": "READ_COMMITTED", "createTableOptions": f"; {self._index}"}
        rows.write.format("jdbc").options(**options).mode("append").save()
        reach("written")

    @property
    def _mine(self) -> str:
        return f"plait_checkpoint = {_text(self.results.checkpoint)} AND plait_query = {_text(self.results.query)}"

    def _mark_of(self, batch: str) -> str:
        """Return SQL for the mark of a batch, null if the table has no row of it."""
        mark = f"SELECT split_part(min(plait_index), '-', 1) FROM {self.name}"
        return f"({mark} WHERE {self._mine} AND plait_batch = {batch})"

    @property
    def _index(self) -> str:
        return f"CREATE UNIQUE INDEX ON {self.name} ({', '.join(IDENTITY)})"

    def _ask(self, *columns: str) -> Any:
        """Return what the database answers: one row with these columns."""
        query = f"SELECT {', '.join(f'{sql} AS c{place}' for place, sql in enumerate(columns))}"
        options = {name: value for name, value in self.options.items() if folded(name) != "dbtable"}
        reader = self.results.rows.sparkSession.read.format("jdbc").options(**options).option("query", query)
        return reader.load().collect()[0]


_UNIQUE: Final = """SELECT 1 FROM pg_index i WHERE i.indrelid = to_regclass({table}) AND i.indisunique AND i.indisvalid
AND i.indpred IS NULL AND i.indexprs IS NULL AND NOT EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = i.indrelid
AND a.attnum = ANY(i.indkey) AND a.attname NOT IN ('plait_checkpoint', 'plait_query', 'plait_batch', 'plait_index'))"""


def _text(value: str) -> str:
    """Return a text as PostgreSQL reads it."""
    return "'" + value.replace("'", "''") + "'"


__all__ = ["IDENTITY", "PREFIX", "Jdbc"]
