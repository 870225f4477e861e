"""`nexmark-joins`: Nexmark's Q3, Q4, Q8, Q9, Q20 and Q23 over append-only streams, each alone and all six at once.

What each asks, and how it departs from Nexmark, is said in `benchmarks.workloads.nexmark`; the events are made by
`benchmarks.workloads.nexmark_data`, 1 person to 3 auctions to 46 bids.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.workloads.case import Case, Request, Workload, alone_and_together
from benchmarks.workloads.joins import QuerySet
from benchmarks.workloads.nexmark import QUERIES, STREAMS
from benchmarks.workloads.nexmark_data import NexmarkInput, make_streams
from benchmarks.workloads.stored import keep

FILES = 10


def cases(request: Request) -> Iterator[Case]:
    """Yield for each number of events a case for each query, then one for all of them."""
    for size in request.sizes:
        wanted = NexmarkInput(events=int(size), files=request.files or FILES, seed=request.seed)
        data = keep(request.directory / wanted.name, make_streams(wanted), wanted.files, wanted.span_s)
        for name, asked in alone_and_together(QUERIES):
            yield Case(
                name=f"{name}, {wanted.events:,} events",
                questions=QuerySet.over(STREAMS, asked),
                data=data,
                files=wanted.files,
                span_s=wanted.span_s,
                size=size,
            )


WORKLOAD = Workload(
    name="nexmark-joins",
    summary="six joins of Nexmark over append-only windows, one by one and together",
    source="Nexmark, Flink edition",
    unit="events",
    sizes=(500_000,),
    cases=cases,
)
