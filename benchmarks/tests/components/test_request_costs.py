"""The benchmark of requests adds queries as an engine does, and measures each piece for each query."""

from __future__ import annotations

from itertools import islice

from benchmarks.components.request_costs import PIECES, Meter, measured
from benchmarks.components.request_pieces import begun, deployed
from benchmarks.workloads.ajoin_queries import AjoinWanted, draw_queries
from plait.plan.validate import validate


def test_each_piece_takes_something_of_every_query() -> None:
    found = measured(3, batch=1, times=1, strategy="dppick", seed=7)
    assert found.running == 3
    assert all(found.milliseconds[piece] > 0 for piece in PIECES)
    assert all(found.calls[piece] >= 1 for piece in PIECES)


def test_what_is_deployed_runs_beside_what_ran() -> None:
    drawn = draw_queries(AjoinWanted(), 7)
    before = begun(tuple(islice(drawn, 4)), "dppick")
    after = deployed(before, tuple(islice(drawn, 2)), Meter())
    assert len(after.former.queries) == 6
    validate(after.former.plan, after.former.queries)
    assert {name: spec.selections for name, spec in after.specs.items()} == {
        store.source: tuple(selection.sql for selection in store.selections) for store in after.former.plan.stores
    }
