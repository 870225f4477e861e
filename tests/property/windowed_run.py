"""Run random queries that group by windows of event time, or sessions, with the product's own operators.

DuckDB computes what Spark would: groups that cannot be made without it, and what tells sessions apart where that is
computed.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import sqlglot
from sqlglot import exp

from plait.operators.close import final_groups as final_groups_module
from plait.operators.close import groups
from plait.operators.close.closing import Closed
from plait.operators.close.final_groups import final_groups
from plait.operators.close.groups import GroupedQuery, Over, close_windows
from plait.operators.close.parting import Int64s, part_sessions
from plait.operators.probe.probing import ProbeContext
from plait.operators.reports import ProbeReport, ResultFile
from plait.operators.traversal.gatherer import as_one
from plait.operators.traversal.probe_task import ProbeTask
from plait.operators.traversal.session_rows import codes_of, sessions_of
from plait.query.model import Aggregation, ColumnRef, Query, with_countable
from plait.query.time_windows import SessionWindow, TimeWindow
from plait.sinks.delivery import Delivery, Gathering
from plait.spelling import backquoted
from plait.sql.select.finishing import finishing_of
from plait.sql.select.folding import Folding, folding_of
from plait.sql.select.why_pairs import countable
from plait.state.buckets import close_others
from plait.state.gathered import folder_of, microseconds, read_gathered
from plait.state.model import GatheredRows, Manifest, OpenGroups
from plait.state.storage import Storage
from tests.oracle.compare import table_rows
from tests.oracle.duckdb_oracle import load
from tests.oracle.translate import connection, rendered
from tests.property.case import Case
from tests.property.direct import DirectRun
from tests.property.front_end import from_text
from tests.property.running import _MEMORY
from tests.property.windowed import Rows


@dataclass(slots=True)
class Written:
    """What was written of each query, by batch. `counted`: results of which no pairs were made; `shared`: how often
    queries kept the same files; `made`: how often groups were made of partial aggregates as a batch does, and not by
    what stands in for Spark, and how often of sessions; `stale`: rows of sessions that waited after those had been
    written.
    """

    groups: dict[str, dict[int, Rows]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    left: int = 0
    counted: int = 0
    shared: int = 0
    made: int = 0
    sessions_made: int = 0
    stale: int = 0


class WindowedRun(DirectRun):
    """A run of a case with queries that group, until the end of its input. DuckDB computes the groups."""

    written: Written

    def run_to_end(self) -> Written:
        """Run all batches, and the one that ends the input; pairs are made of all matches in one case of five."""
        self.written = Written()
        if self.case.seed % 5:
            self.queries = tuple(map(self._counting, self.queries))
        self.run()
        manifest, closed, certain = self.end()
        closed = self._with_final(self.case.batches, manifest, closed, certain)
        self.written.left = sum(len(groups.files) for groups in closed.groups)
        return self.written

    def _deliveries(self) -> dict[str, Delivery]:
        plain, grouped = super()._deliveries(), {query.name: query for query in self._grouped()}
        return {
            name: delivery if name not in grouped else self._gathering(grouped[name])
            for name, delivery in plain.items()
        }

    def _counting(self, query: Query) -> Query:
        folding = self._folding(query)
        if folding is None:
            return query
        return with_countable(query, countable(query, folding.fold, self._types(query)))

    def _probe(self, tasks: tuple[ProbeTask, ...], context: ProbeContext) -> tuple[ProbeReport, ...]:
        reports = super()._probe(tasks, context)
        counted = {step.edge for tree in context.plan.trees for step in tree.steps() if step.is_counted}
        self.written.counted += sum(n for report in reports for edge, n in report.matches if edge in counted)
        kept = [{query: file.gathered for query, file in _by_query(report)} for report in reports]
        self.written.shared += sum(len(set(files.values())) < len(files) for files in kept)
        return reports

    def _grouped(self) -> list[Query]:
        return [query for query in self.queries if query.aggregation is not None]

    def _gathering(self, query: Query) -> Gathering:
        columns, folding = self.wanted[query.name], self._folding(query)
        return Gathering(
            query=query.name,
            columns=columns,
            time=columns[0],
            folder=folder_of(query.name),
            fold=None if folding is None else folding.fold,
        )

    def _folding(self, query: Query) -> Folding | None:
        """Return how rows are kept; of one case in three as they are."""
        if self.case.seed % 3 == 0 or query.aggregation is None:
            return None
        return folding_of(query.aggregation, self._types(query))

    def _types(self, query: Query) -> dict[ColumnRef, str]:
        """Return the Spark types of the columns of the joined row."""
        sources = {relation.alias: self.case.source(relation.source) for relation in query.relations}
        kinds = {
            ref: next(column.kind for column in sources[ref.relation].columns if column.name == ref.column)
            for ref in self.wanted[query.name]
        }
        return {ref: kind.spark.lower() for ref, kind in kinds.items()}

    def _with_final(self, batch: int, before: Manifest, closed: Closed, probed: tuple[ProbeReport, ...]) -> Closed:
        queries = {query.name: self._grouped_query(query, query.aggregation) for query in self._grouped()}
        name = f"{batch}-a{next(self._attempts)}"
        windows = close_windows(self.storage, before, probed, queries.values(), closed.watermark_us, name)
        windows = part_sessions(self.storage, windows, queries.values(), self._codes, name)
        self._check_waiting(windows.waiting, queries)
        for query in self._grouped():
            over = windows.over.get(query.name)
            if over is not None and query.aggregation is not None:
                table = self._groups(query, query.aggregation, over)
                made = self._made(query, query.aggregation, queries[query.name], over, table)
                self.written.made += made is not None
                self.written.sessions_made += made is not None and over.sessions is not None
                rows = table_rows(table if made is None else made)
                self.written.groups[query.name][batch] = [(*map(_us, row[:2]), *row[2:]) for row in rows]
        return replace(closed, groups=windows.waiting)

    def _grouped_query(self, query: Query, aggregation: Aggregation | None) -> GroupedQuery:
        assert aggregation is not None
        time, fold = self.wanted[query.name][0].name, self._gathering(query).fold
        columns = {backquoted(ref.name): ref.name for ref in self.wanted[query.name]}
        is_plain = columns.keys() >= {*aggregation.keys}
        return GroupedQuery(
            query=query.name,
            identity="1",
            window=aggregation.window,
            time=time,
            fold=fold,
            keys=tuple(columns[key] for key in aggregation.keys) if is_plain else None,
        )

    def _codes(self, query: GroupedQuery, files: Sequence[GatheredRows]) -> Int64s:
        """Return what tells rows apart whose sessions are of something that is computed, as DuckDB computes it."""
        aggregation = next(each.aggregation for each in self.queries if each.name == query.query)
        assert aggregation is not None
        rows = pa.concat_tables(pa.Table.from_batches([part]) for part in read_gathered(self.storage, files))
        numbers = pa.array(range(rows.num_rows))
        load(connection(), {"#windowed": rows.append_column("#number", numbers)})
        code = f"dense_rank() OVER (ORDER BY {', '.join(aggregation.keys)}) AS c"
        tree = sqlglot.parse_one(f"SELECT {code} FROM `#windowed` ORDER BY `#number`", dialect="spark")
        for name in tree.find_all(exp.Identifier):
            name.set("quoted", True)
        found = connection().sql(rendered(tree)).to_arrow_table().column(0).to_numpy()
        return found.astype(np.int64)

    def _check_waiting(self, waiting: Sequence[OpenGroups], queries: Mapping[str, GroupedQuery]) -> None:
        """Count the rows of sessions that wait although those are over."""
        for groups_of in waiting:
            query, until = queries[groups_of.query], groups_of.over_until_us
            if until is None or not isinstance(query.window, SessionWindow) or not groups_of.files:
                continue
            rows = as_one(list(read_gathered(self.storage, groups_of.files)))
            if query.keys is None:
                codes = self._codes(query, groups_of.files)
            else:
                codes = codes_of(map(rows.column, query.keys), rows.num_rows)
            ends = sessions_of(rows, query.time, codes, query.window.gap_us)[1]
            self.written.stale += int((ends <= until).sum())

    def _made(
        self, query: Query, aggregation: Aggregation, grouped: GroupedQuery, over: Over, found: pa.Table
    ) -> pa.Table | None:
        """Return the groups as a batch makes them without Spark, None if it does not. `found`: the same groups."""
        folding = self._folding(query)
        if folding is None:
            return None
        types = [_SPARK_TYPES.get(str(type_), folding.kept[0][1]) for type_ in found.schema.types]
        how = finishing_of(aggregation, folding, types, time_zone="UTC")
        if how is None:
            return None
        parts = [over.sessions.rows] if over.sessions is not None else list(read_gathered(self.storage, over.files))
        groups = final_groups(parts, grouped, how, over)
        return pa.Table.from_batches([groups])

    def _groups(self, query: Query, aggregation: Aggregation, over: Over) -> pa.Table:
        folding = self._folding(query)
        window = aggregation.window
        if isinstance(window, SessionWindow):
            rows = _in_sessions(over)
        else:
            parts = [pa.Table.from_batches([part]) for part in read_gathered(self.storage, over.files)]
            rows = _windowed(pa.concat_tables(parts), window, over)
        load(connection(), {"#windowed": rows})
        tree = sqlglot.parse_one((folding or aggregation).sql.format(rows="`#windowed`"), dialect="spark")
        for name in tree.find_all(exp.Identifier):
            name.set("quoted", True)
        return connection().sql(rendered(tree)).to_arrow_table()


_SPARK_TYPES = {
    "int64": "bigint",
    "int32": "int",
    "int16": "smallint",
    "int8": "tinyint",
    "string": "string",
    "bool": "boolean",
    "double": "double",
}
"""What Spark calls types of groups; all others are those of event times."""


def _by_query(report: ProbeReport) -> list[tuple[str, ResultFile]]:
    return [(file.query, file) for file in report.results if file.gathered]


def _us(value: Any) -> int:
    return int(pa.scalar(value, pa.timestamp("us")).cast(pa.int64()).as_py())


def _in_sessions(over: Over) -> pa.Table:
    """Return the rows of sessions that are over, with these in column ``session_window``."""
    assert over.sessions is not None
    bounds = [pa.array(each).cast(pa.timestamp("us")) for each in (over.sessions.begins, over.sessions.ends)]
    struct = pa.StructArray.from_arrays(bounds, names=["start", "end"])
    return pa.Table.from_batches([over.sessions.rows]).append_column("session_window", struct)


def _windowed(rows: pa.Table, window: TimeWindow, over: Over) -> pa.Table:
    """Return the rows once for each window they belong to and that is over, with that in column ``window``."""
    taus = microseconds(rows.column(f"{window.relation}.{window.column}").combine_chunks()).to_numpy()
    pieces = []
    for back in itertools.count():
        begins = (
            (taus - window.start_us) // window.slide_us * window.slide_us + window.start_us - back * window.slide_us
        )
        ends = begins + window.size_us
        if back * window.slide_us >= window.size_us:
            break
        taken = (ends > taus) & (ends <= over.until_us)
        if over.after_us is not None:
            taken &= ends > over.after_us
        places = np.flatnonzero(taken)
        bounds = [pa.array(each[places]).cast(pa.timestamp("us")) for each in (begins, ends)]
        struct = pa.StructArray.from_arrays(bounds, names=["start", "end"])
        pieces.append(rows.take(pa.array(places)).append_column("window", struct))
    return pa.concat_tables(pieces)


def run_windowed(case: Case) -> Written:
    """Run a case with few files or many, to the end of its input, and leave nothing of it behind."""
    directory = tempfile.mkdtemp(prefix="plait-windowed-", dir=_MEMORY if _MEMORY.is_dir() else None)
    try:
        sources, queries = from_text(case)
        most_windows = patch.object(final_groups_module, "MOST_WINDOWS", case.seed % 4 * 2)
        with patch.object(groups, "MOST_FILES", (16, 1, 2)[case.seed % 3]), most_windows:
            return WindowedRun(case, sources, queries, directory).run_to_end()
    finally:
        close_others(Storage.open(directory), ())
        shutil.rmtree(directory)
