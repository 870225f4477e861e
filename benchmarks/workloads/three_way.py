"""`three-way`: three streams in a chain within 30 seconds; keys uniform, ten rows a key in each stream.

The join is ra = sa, sb = tb.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.workloads.case import Case, Request, Workload
from benchmarks.workloads.data import Workload as ThreeWayData
from benchmarks.workloads.data import prepare
from benchmarks.workloads.joins import Join, JoinQuery, OutputOf, QuerySet
from benchmarks.workloads.triples_random import STREAMS

WINDOW_S = 30
_OUTPUTS = {"r": ("ts", "rv"), "s": ("ts", "sa", "sb", "sv"), "t": ("ts", "tv")}

THREE_WAY = QuerySet(
    streams=STREAMS,
    queries=(
        JoinQuery(
            name="triples",
            relations=("r", "s", "t"),
            joins=(
                Join(left="r", right="s", columns=(("ra", "sa"),)),
                Join(left="s", right="t", columns=(("sb", "tb"),)),
            ),
            outputs=tuple(
                OutputOf(relation=relation, column=column, type="timestamp" if column == "ts" else "bigint")
                for relation, columns in _OUTPUTS.items()
                for column in columns
            ),
            window_s=WINDOW_S,
        ),
    ),
)


def cases(request: Request) -> Iterator[Case]:
    """Yield one case a size."""
    for size in request.sizes:
        data = ThreeWayData(rows=int(size), seed=request.seed, files=request.files or 20)
        yield Case(
            name=f"{data.rows:,} rows a stream",
            questions=THREE_WAY,
            data=prepare(data, request.directory),
            files=data.files,
            span_s=data.span_s,
            size=size,
        )


WORKLOAD = Workload(
    name="three-way",
    summary="one windowed join of three streams with uniform keys",
    source="own",
    unit="rows a stream",
    sizes=(300_000,),
    cases=cases,
)
