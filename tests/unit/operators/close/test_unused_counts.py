"""What the manifest remembers of queries that come and go: no more than of those that are there."""

from __future__ import annotations

from dataclasses import replace

from plait.operators.close.closing import close
from plait.operators.close.next_manifest import next_manifest
from plait.operators.close.unused_counts import edges_of
from plait.operators.reports import IngestReport, ProbeReport
from plait.plan.model import Plan
from plait.plan.traversals import probes
from plait.query.model import Stream
from plait.state.manifest import encode
from plait.state.model import Bucket, Layout, Manifest, NullKey
from plait.stats.cycles import COUNTED, MOST_SERIES, NOTHING_COUNTED
from tests.unit.optimizer.queries import SECOND_US, planned, query, stream, table
from tests.unit.state.builders import described

LIVE = query("live", {"r": "r", "s": "s"}, ["r.a = s.a"])
SOURCES = (stream("r", rate=2), stream("s", rate=3), table("n"))
STREAMS = tuple(source for source in SOURCES if isinstance(source, Stream))
ALONE = planned((LIVE,), sources=SOURCES)


def beside(number: int) -> Plan:
    """Return the plan for the query that stays and one that does not, with keys, selections and edges of its own."""
    conditions = [f"r.k{number} = s.k{number}", f"s.m{number} = n.m{number}"]
    passing = query(f"q{number}", {"r": "r", "s": "s", "n": "n"}, conditions, tables={"n"})
    return planned((LIVE, passing), sources=SOURCES)


def batch(previous: Manifest | None, plan: Plan, number: int, buckets: tuple[Bucket, ...] = ()) -> Manifest:
    """Return the manifest after a batch in which everything that a plan counts has counted something."""
    ingested = tuple(
        IngestReport(
            source=store.source,
            rows=5,
            late=1,
            tau_min=number * SECOND_US,
            tau_max=number * SECOND_US,
            sketches=tuple((key.name, tuple(range(256))) for key in store.keys),
            kept=tuple((selection, 4) for selection in sorted({need.selection.sql for need in store.requirements})),
            null_keys_by=tuple(NullKey(key=key.expression.sql, rows=1) for key in store.keys),
            buckets=buckets if store.source == "r" else (),
        )
        for store in plan.stores
        if store.source is not None and not store.is_table
    )
    probed = (ProbeReport(probe_tuples=tuple((step.edge, 7) for _, step in probes(plan))),)
    return next_manifest(
        previous,
        close(previous, plan, STREAMS, ingested, probed, 1000 * number),
        plan=plan,
        plan_id=f"{number}-plan",
        batch=number,
        ingested=ingested,
        probed=probed,
        publications=(),
        undelivered=(),
    )


def test_a_manifest_does_not_grow_with_queries_that_came_and_went() -> None:
    before = alone = batch(None, ALONE, 0)
    for number in range(1, 201):
        before = batch(batch(before, beside(number), 2 * number - 1), ALONE, 2 * number)
        alone = batch(batch(alone, ALONE, 2 * number - 1), ALONE, 2 * number)
    # What plans may depend on again, the cycles, has a bound of its own.
    assert all(len(before.cycles.of(kind)) <= MOST_SERIES for kind in COUNTED)
    # Edges are counted for as long as they are in force.
    assert [edge for edge, _ in before.probe_tuples] == sorted(edges_of(ALONE))
    rest, rest_alone = (encode(replace(each, cycles=NOTHING_COUNTED, probe_tuples=())) for each in (before, alone))
    assert rest == rest_alone
    # And what is counted of what stays is all there.
    assert [(found.rows, found.late) for found in before.sources] == [(5 * 401, 401)] * 2
    assert [[rows for _, rows in found.kept] for found in before.sources] == [[4 * 401]] * 2
    assert [[key.rows for key in found.null_keys_by] for found in before.sources] == [[401]] * 2
    assert [found.query for found in before.queries] == ["live"]


def test_keys_and_selections_of_stored_rows_stay_counted() -> None:
    passing = beside(1)
    name = next(key.name for store in passing.stores for key in store.keys if key.expression.sql == "`k1`")
    layout = Layout(columns=(), keys=(name,), values=(), selections=("",), has_tau=True)
    held = described(store="r", tau_min=SECOND_US, tau_max=SECOND_US, batch_min=1, batch_max=1, layout=layout)
    after = batch(batch(None, passing, 1, (held,)), ALONE, 2)
    keys = {found.source: [key for key, _ in found.sketch] for found in after.sources}
    assert name in keys["r"]
    assert name not in keys["s"]
