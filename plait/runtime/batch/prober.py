"""Carry out probe tasks: in the driver where that is quicker, else on Spark, whole trees in one stage or one stage a
step with a shuffle between.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from plait.operators.failing import require_computed
from plait.operators.probe.demand import Demands
from plait.operators.probe.probing import ProbeContext
from plait.operators.reports import LEFT_TO_SPARK, ProbeReport
from plait.operators.traversal.driving import Paces, as_one, is_quicker_here, work_of
from plait.operators.traversal.probe_task import ProbeTask
from plait.operators.traversal.traverse import Traversal
from plait.runtime.settings import Routing
from plait.runtime.spark.packing import Packer
from plait.runtime.spark.tasks import MESSAGE, REPORT, keep_open, probe_local, probe_receive, probe_start, reports
from plait.sinks.delivery import Delivery, Discarded, Spooled

Deliveries = Mapping[str, Delivery]


@dataclass(frozen=True, slots=True)
class Prober:
    """Carries out probe tasks, of which `slots` run at a time. With local routing the driver may do it instead.

    Queries whose results DuckDB could not compute once are left to Spark from then on.
    """

    spark: SparkSession
    routing: Routing
    slots: int = 1
    _paces: Paces = field(default_factory=Paces)
    _left_to_spark: set[str] = field(default_factory=set)
    _demands: Demands = field(default_factory=Demands)
    _packer: Packer = field(default_factory=Packer)

    def run(
        self, tasks: tuple[ProbeTask, ...], context: ProbeContext, deliveries: Deliveries
    ) -> tuple[ProbeReport, ...]:
        """Return the tasks' reports. Results that a sink refused come as spooled files with the reason of the
        refusal, those that only Spark can compute as spooled files with none. Raises ComputationError, for all that
        cannot be computed.
        """
        if not tasks:
            return ()
        spooled = {name: Spooled(query=name, columns=context.wanted[name]) for name in self._left_to_spark}
        deliveries = {name: spooled.get(name, delivery) for name, delivery in deliveries.items()}
        probed = self._probe(tasks, context, deliveries)
        require_computed(probed)
        refused: dict[str, str] = {}
        for file in (file for report in probed for file in report.results):
            if file.failure is not None:
                refused[file.query] = refused.get(file.query) or file.failure
        self._left_to_spark.update(query for query, failure in refused.items() if failure == LEFT_TO_SPARK)
        return self._spool_refused(tasks, context, deliveries, probed, refused) if refused else probed

    def _probe(
        self, tasks: tuple[ProbeTask, ...], context: ProbeContext, deliveries: Deliveries
    ) -> tuple[ProbeReport, ...]:
        work, pace = work_of(tasks, context), self._paces.find(tasks, context.plan)
        if self.routing == "local":  # also where tasks probe: the driver may have for earlier batches
            keep_open(context)
        if self.routing == "local" and is_quicker_here(work, pace, self.slots):
            traversal = Traversal(context, deliveries, uuid.uuid4().hex[:12], self._demands)
            reports: tuple[ProbeReport, ...] = (traversal.run_local(as_one(tasks)),)
        else:
            reports = self._probe_in_tasks(tasks, context, deliveries)
        self._paces.note(tasks, context.plan, work.rows, reports)
        return reports

    def _probe_in_tasks(
        self, tasks: tuple[ProbeTask, ...], context: ProbeContext, deliveries: Deliveries
    ) -> tuple[ProbeReport, ...]:
        numbers = self.spark.range(0, len(tasks), 1, len(tasks))
        shipment = self._packer.pack(context, deliveries)
        if self.routing == "local":
            return reports(numbers.mapInArrow(probe_local(tasks, shipment), REPORT).collect())
        frame = numbers.mapInArrow(probe_start(tasks, shipment), MESSAGE)
        parts = max(store.parallelism for store in context.plan.stores)
        parts = parts if context.tables is None else max(parts, context.tables.partitions)
        depth = max((len(path) + 1 for tree in context.plan.trees for path, _ in tree.walk()), default=0)
        for _ in range(depth):
            frame = frame.repartitionById(parts, frame["partition"]).mapInArrow(probe_receive(shipment), MESSAGE)
        return reports(frame.selectExpr("payload AS report").collect())

    def _spool_refused(
        self,
        tasks: tuple[ProbeTask, ...],
        context: ProbeContext,
        deliveries: Deliveries,
        probed: tuple[ProbeReport, ...],
        refused: Mapping[str, str],
    ) -> tuple[ProbeReport, ...]:
        """Probe again for these queries, this time into the checkpoint; their results are not lost."""
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
