"""`ajoin`: many random queries over ten streams of six uniform attributes, after paper 004 (AJoin, section 7).

Sizes count queries; all are there from the start. Usually they are of 2 to 5 relations, mixed, half similar to the
pattern of their size, with a selection on each relation; variants ``plain`` adds
plain queries: joins of two without selections, as in section 7.1 of the paper; ``all`` also each number of relations by
itself.
How queries are drawn is said in `ajoin_queries`; how they come and go, in `ajoin_schedule`.

The paper loads a cluster as fast as it goes. Here each stream has 200 rows a second of event time for a minute, so
that a row meets about one partner in the windows of 1 to 3 seconds; every stream has a generator of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from benchmarks.workloads.ajoin_queries import ATTRIBUTES, LARGEST_VALUE, SIZES, STREAMS, AjoinWanted, draw_queries
from benchmarks.workloads.case import Case, Request, Workload
from benchmarks.workloads.joins import QuerySet
from benchmarks.workloads.stored import Made, generator, keep, table, uniform_times

FORMAT = 1
"""Raise it when the same request gives other rows than before."""

FILES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class AjoinInput:
    """The ten streams, of `rows` each."""

    rows: int = 12_000
    span_s: int = 60
    files: int = FILES
    seed: int = 7

    @property
    def name(self) -> str:
        """A directory name that no other input has."""
        return f"ajoin-{self.rows}-rows-{self.files}-files-{self.span_s}-s-seed-{self.seed}-v{FORMAT}"

    def wanted(self, sizes: tuple[int, ...], *, selections: bool = True) -> AjoinWanted:
        """Return queries of these numbers of relations for this input."""
        return AjoinWanted(sizes=sizes, rows_per_s=self.rows / self.span_s, span_s=self.span_s, selections=selections)


def make_streams(wanted: AjoinInput) -> Iterator[Made]:
    """Yield the streams."""
    for stream in STREAMS:
        random = generator(wanted.seed, stream.name)
        columns: dict[str, object] = {
            "ts": uniform_times(random, wanted.rows, wanted.span_s),
            "nr": range(wanted.rows),
            **{f"a{number}": random.integers(0, LARGEST_VALUE + 1, wanted.rows) for number in range(ATTRIBUTES)},
        }
        yield stream, table(stream, columns)


def cases(request: Request) -> Iterator[Case]:
    """Yield a case for each number of queries, or five."""
    wanted = AjoinInput(files=request.files or FILES, seed=request.seed)
    data = keep(request.directory / wanted.name, make_streams(wanted), wanted.files, wanted.span_s)
    mixtures = {("", "2- to 5-way"): wanted.wanted(SIZES)}
    if request.variants == "all":
        mixtures |= {("", f"{size}-way"): wanted.wanted((size,)) for size in SIZES}
    if request.variants in ("plain", "all"):
        mixtures |= {("plain ", "2-way"): wanted.wanted((2,), selections=False)}
    for size in request.sizes:
        for (kind, mixture), of in mixtures.items():
            queries = tuple(islice(draw_queries(of, request.seed), int(size)))
            yield Case(
                name=f"{len(queries)} {kind}{'query' if len(queries) == 1 else 'queries'}, {mixture}",
                questions=QuerySet.over(STREAMS, queries),
                data=data,
                files=wanted.files,
                span_s=wanted.span_s,
                size=size,
            )


WORKLOAD = Workload(
    name="ajoin",
    summary="many similar 2- to 5-way joins with selections and windows of 1 to 3 seconds",
    source="paper 004, section 7",
    unit="queries",
    sizes=(1, 20, 100),
    cases=cases,
    grows=False,
)
