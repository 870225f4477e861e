"""Run probe tasks on Spark: whole trees in one stage, or one stage a step with a shuffle between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from plait.operators.probe.probing import ProbeContext
from plait.operators.reports import ProbeReport
from plait.operators.traversal.traverse import ProbeTask
from plait.runtime.settings import Routing
from plait.runtime.spark.tasks import MESSAGE, REPORT, probe_local, probe_receive, probe_start, reports
from plait.sinks.delivery import Delivery, Discarded, Spooled

Deliveries = Mapping[str, Delivery]

"""How partial results get to the partition they probe: the task maps its buckets, or Spark carries them there."""


@dataclass(frozen=True, slots=True)
class Prober:
    """Carries out probe tasks."""

    spark: SparkSession
    routing: Routing

    def run(
        self, tasks: tuple[ProbeTask, ...], context: ProbeContext, deliveries: Deliveries
    ) -> tuple[ProbeReport, ...]:
        """Return the tasks' reports. Results that a sink refused come as spooled files with the reason of the
        refusal.
        """
        if not tasks:
            return ()
        probed = self._probe(tasks, context, deliveries)
        refused = {file.query: file.failure for report in probed for file in report.results if file.failure is not None}
        return self._spool_refused(tasks, context, deliveries, probed, refused) if refused else probed

    def _probe(
        self, tasks: tuple[ProbeTask, ...], context: ProbeContext, deliveries: Deliveries
    ) -> tuple[ProbeReport, ...]:
        numbers = self.spark.range(0, len(tasks), 1, len(tasks))
        if self.routing == "local":
            return reports(numbers.mapInArrow(probe_local(tasks, context, deliveries), REPORT).collect())
        frame = numbers.mapInArrow(probe_start(tasks, context, deliveries), MESSAGE)
        parts = max(store.parallelism for store in context.plan.stores)
        depth = max((len(path) + 1 for tree in context.plan.trees for path, _ in tree.walk()), default=0)
        for _ in range(depth):
            frame = frame.repartitionById(parts, frame["partition"]).mapInArrow(
                probe_receive(context, deliveries), MESSAGE
            )
        return reports(frame.selectExpr("payload AS report").collect())

    def _spool_refused(
        self,
        tasks: tuple[ProbeTask, ...],
        context: ProbeContext,
        deliveries: Deliveries,
        probed: tuple[ProbeReport, ...],
        refused: Mapping[str, str | None],
    ) -> tuple[ProbeReport, ...]:
        """Probe again for the queries whose sink refused, this time into the checkpoint; their results are not lost."""
        again: dict[str, Delivery] = {
            name: (Spooled if name in refused else Discarded)(query=name, columns=context.wanted[name])
            for name in deliveries
        }
        kept = tuple(
            replace(report, results=tuple(file for file in report.results if file.query not in refused))
            for report in probed
        )
        files = tuple(
            replace(file, failure=refused[file.query])
            for report in self._probe(tasks, context, again)
            for file in report.results
            if file.query in refused
        )
        return (*kept, ProbeReport(results=files))
