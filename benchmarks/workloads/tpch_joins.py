"""`tpch-joins`: the joins of seven TPC-H queries over streamed tables, each query alone and all seven at once.

All eight tables are streams: rows arrive in the order of their keys, every table evenly over the same 200 seconds of
event time. The full history counts, so nothing may be forgotten: an order of the first second meets a customer of the
last one. What is kept of each query, and what not, is said in `benchmarks.workloads.tpch_cores`.

Paper 002 (MultiStream) measures queries 2, 3 and 5 in this way, without selections and at scale factors 1 to 20;
SASPAR (paper 001) runs these queries among others, with windows.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.workloads.joins import QuerySet
from benchmarks.workloads.model import Case, Request, Workload, alone_and_together
from benchmarks.workloads.tpch_cores import core_queries
from benchmarks.workloads.tpch_data import TpchInput, prepare_tpch, read_streams

FILES = 10


def cases(request: Request) -> Iterator[Case]:
    """Yield for each scale factor a case for each query, then one for all of them."""
    for scale in request.sizes:
        wanted = TpchInput(scale=scale, files=request.files or FILES)
        data = prepare_tpch(wanted, request.directory)
        streams = read_streams(data)
        queries = core_queries(streams)
        for name, asked in alone_and_together(queries):
            yield Case(
                name=f"{name}, scale {scale:g}",
                questions=QuerySet.over(streams, asked),
                data=data,
                files=wanted.files,
                span_s=wanted.span_s,
                size=scale,
            )


WORKLOAD = Workload(
    name="tpch-joins",
    summary="the joins of TPC-H Q2, Q3, Q5, Q7, Q8, Q9 and Q10, full history, one by one and together",
    source="TPC-H; papers 001 and 002",
    unit="scale factor",
    sizes=(0.02,),
    cases=cases,
)
