"""What a workload is: named cases, each with questions and the files of their streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from benchmarks.workloads.joins import JoinQuery, QuerySet


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Questions to ask, and where their data is, in `files` files a stream, one a batch, in order of event time.

    `size`: how large it is, in the workload's unit. File f of every stream holds the rows of the f-th of `files` equal
    slices of `span_s` seconds of event time, so no row comes late.
    """

    name: str
    questions: QuerySet
    data: Path
    files: int
    span_s: float = 0.0
    size: float = 0.0

    @property
    def question(self) -> str:
        """The first part of its name, which says what is asked; the rest says of how much."""
        return self.name.partition(", ")[0]

    @property
    def live_name(self) -> str:
        """Its name over streams that arrive at a fixed rate, of which there are as many rows as that takes."""
        return "live" if self.question == self.name else f"{self.question}, live"


def alone_and_together(queries: tuple[JoinQuery, ...]) -> Iterator[tuple[str, tuple[JoinQuery, ...]]]:
    """Yield the name and the queries of a case for each query, then of one for all of them."""
    for query in queries:
        yield query.name, (query,)
    yield "all", queries


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """For which cases the user asks: the sizes, the seed of the data, how many files a stream, and where data is kept
    between runs. `files` None: the workload's own choice. `variants`: ``usual``, or ``plain`` or ``all`` where a
    workload has more cases of a size than usually make sense.
    """

    sizes: tuple[float, ...]
    directory: Path
    seed: int = 7
    files: int | None = None
    variants: str = "usual"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A workload. `unit`: what its sizes count; `sizes`: those that finish in a few minutes on two cores. `grows`:
    twice the size has twice the rows, over the same event time.

    `cases` prepares the data of a request, unless they are there, and yields its cases.
    """

    name: str
    summary: str
    source: str
    unit: str
    sizes: tuple[float, ...]
    cases: Callable[[Request], Iterator[Case]]
    grows: bool = True

    def grown(self, request: Request, case: Case, factor: float, *, files: int) -> Case:
        """Return a case of a request over about `factor` times as many rows in so many files; it must grow."""
        same = (each.name for each in self.cases(replace(request, sizes=(case.size,))))
        place = next(place for place, name in enumerate(same) if name == case.name)
        size = float(f"{factor * case.size:.3g}")
        return next(islice(self.cases(replace(request, sizes=(size,), files=files)), place, None))
