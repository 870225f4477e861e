"""From a question about a row to the answer, with all it takes: the sources, the last manifest, the plan in force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from plait.errors import OptionError
from plait.plan.model import Plan
from plait.plan.traversals import endings
from plait.query.model import Query, Source, Stream
from plait.runtime.why.evidence import bars_of, read_again
from plait.runtime.why.findings import Trace
from plait.runtime.why.question import read_question
from plait.runtime.why.row_frames import BATCH, RelationFrame, relation_frame
from plait.runtime.why.standing import standing_of
from plait.runtime.why.tracing import Tracer
from plait.spelling import backquoted, did_you_mean
from plait.state.model import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """What questions are answered from. `queries`: all that batches answer; `manifest`: the state after the last batch,
    None before the first; `plan`: the one in force, if it is known; `set_aside`: queries that are, and why; `since`:
    the first batches of queries, as far as they are known.
    """

    spark: SparkSession
    checkpoint: str
    sources: Mapping[str, Source]
    queries: Mapping[str, Query]
    manifest: Manifest | None
    plan: Plan | None
    clock_ms: int
    set_aside: Mapping[str, str]
    since: Mapping[str, int]

    def answer(self, name: str, row: str) -> Trace:
        """Return what has become of a row. Raises OptionError for a query or relation that there is not, and for a
        source that cannot be read once more.
        """
        query = self.queries.get(name)
        if query is None:
            raise OptionError(f"there is no query '{name}'{did_you_mean(name, self.queries)}")
        question = read_question(query, self.sources, row)
        standing = standing_of(
            query,
            self._streams(),
            self.manifest,
            self.clock_ms,
            set_aside=self.set_aside.get(name),
            since=self.since.get(name),
        )
        tables = {each.source for each in query.relations if each.is_table}
        asked = {
            **{each.name: each for each in self._streams()},
            **{name: self.sources[name] for name in sorted(tables)},
        }
        read = {name: read_again(self.spark, source, self.checkpoint) for name, source in asked.items()}
        rows = {
            name: each.rows if name in tables else _finished(each.rows, standing.spark_batch)
            for name, each in read.items()
        }
        bars = bars_of(self.spark, self._streams(), rows)

        def frame_of(alias: str, where: str | None) -> RelationFrame:
            source = self.sources[query.relation(alias).source]
            return relation_frame(query, alias, source, rows[source.name], bars.get(source.name, {}), where)

        tracer = Tracer(spark=self.spark, query=query, standing=standing, frame_of=frame_of, order=self._orders(name))
        trace = tracer.trace(question.alias, question.condition, question.shown)
        return replace(trace, notes=tuple(each.note for each in read.values() if each.note is not None))

    def _streams(self) -> list[Stream]:
        """Return the streams that take part: those that some query reads."""
        read = {relation.source for query in self.queries.values() for relation in query.relations}
        return [source for name, source in self.sources.items() if isinstance(source, Stream) and name in read]

    def _orders(self, name: str) -> dict[str, tuple[str, ...]]:
        """Return the probe orders of a query in the plan, by the relation that begins."""
        outputs = [] if self.plan is None else [output for _, _, output in endings(self.plan)]
        return {output.aliases[0]: tuple(output.aliases) for output in outputs if output.query == name}


def _finished(frame: DataFrame, last: int) -> DataFrame:
    """Return the rows of a stream. What a batch after the `last` one has only begun to read is not read yet."""
    names = [backquoted(name) for name in frame.columns if name != BATCH]
    return frame.selectExpr(*names, f"CASE WHEN {BATCH} <= {last} THEN {BATCH} END AS {BATCH}")


__all__ = ["Inquiry"]
