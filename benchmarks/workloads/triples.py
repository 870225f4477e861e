"""`triples`: more and more queries over the three streams of `three-way`, to see how the total grows with their number.

Queries join two or three of the streams on random pairs of columns with random selections and windows; a larger case
asks everything a smaller one does.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from benchmarks.workloads.case import Case, Request, Workload
from benchmarks.workloads.data import Workload as ThreeWayData
from benchmarks.workloads.data import prepare
from benchmarks.workloads.joins import QuerySet
from benchmarks.workloads.triples_random import STREAMS, draw_triples

_ROWS = 100_000


def cases(request: Request) -> Iterator[Case]:
    """Yield one case a number of queries."""
    data = ThreeWayData(rows=_ROWS, files=request.files or 20)
    directory = prepare(data, request.directory)
    for size in request.sizes:
        count = int(size)
        yield Case(
            name=f"{count} {'query' if count == 1 else 'queries'}",
            questions=QuerySet.over(STREAMS, tuple(islice(draw_triples(request.seed), count))),
            data=directory,
            files=data.files,
            span_s=data.span_s,
            size=size,
        )


WORKLOAD = Workload(
    name="triples",
    summary="many random joins of two or three of the streams of three-way",
    source="own, after the curves of papers 000 and 004",
    unit="queries",
    sizes=(1, 5, 20),
    cases=cases,
    grows=False,
)
