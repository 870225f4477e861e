"""`drift`: a chain of four streams whose selectivities change places in the middle of the run.

Within the window of 10 seconds a row of c1 agrees with about ten of c2 in the first half and with one in ten in the
second; between c3 and c4 it is the other way round; between c2 and c3 it is always one. So rows of c2 had better look
for c3 and c4 before c1 in the first half, and for c1 first in the second: whatever order is fixed at the start sends
ten times too many tuples in one half. Results come at the same rate in both.

It is paper 000's experiment on adaptation (the chain R(a), S(a, b), T(b, c), U(c), of which every S suddenly finds a
hundred partners in R and none in T), with partners left on both sides, so that there is something to compare.
Keys are uniform. The keys of the two halves differ, so results across the change are few.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.workloads.case import Case, Request, Workload
from benchmarks.workloads.chains import chain_query, chain_streams
from benchmarks.workloads.data import FIRST_US
from benchmarks.workloads.joins import QuerySet
from benchmarks.workloads.stored import Made, generator, keep, table, uniform_times

FORMAT = 1
"""Raise it when the same request gives other rows than before."""

FILES = 20
SPAN_S = 200
WINDOW_S = 10
PARTNERS: Mapping[str, tuple[float, float]] = {"k1": (10.0, 0.1), "k2": (1.0, 1.0), "k3": (0.1, 10.0)}
"""Partners of a row within the window, in the first and in the second half of the span, by key."""

STREAMS = chain_streams(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftInput:
    """`rows` of each of the four streams."""

    rows: int
    files: int = FILES
    seed: int = 7

    @property
    def name(self) -> str:
        """A directory name that no other input has."""
        return f"drift-{self.rows}-rows-{self.files}-files-{SPAN_S}-s-seed-{self.seed}-v{FORMAT}"

    def keys(self, partners: float) -> int:
        """Return how many values a key has for a row to have so many partners, up to the window older or younger."""
        return max(1, round(self.rows * 2 * WINDOW_S / SPAN_S / partners))


def make_streams(wanted: DriftInput) -> Iterator[Made]:
    """Yield the streams."""
    for stream in STREAMS:
        random = generator(wanted.seed, stream.name)
        taus = uniform_times(random, wanted.rows, SPAN_S)
        columns: dict[str, object] = {"ts": taus, "nr": range(wanted.rows)}
        for column in stream.columns[2:]:
            columns[column.name] = _changing(wanted, taus, PARTNERS[column.name], random)
        yield stream, table(stream, columns)


def _changing(
    wanted: DriftInput, taus: NDArray[np.int64], partners: tuple[float, float], random: np.random.Generator
) -> NDArray[np.int64]:
    first, second = (wanted.keys(each) for each in partners)
    is_late = taus - FIRST_US >= SPAN_S * 1_000_000 // 2
    early_keys, late_keys = random.integers(0, first, len(taus)), first + random.integers(0, second, len(taus))
    return np.where(is_late, late_keys, early_keys)


def cases(request: Request) -> Iterator[Case]:
    """Yield a case for each number of rows."""
    for size in request.sizes:
        wanted = DriftInput(rows=int(size), files=request.files or FILES, seed=request.seed)
        yield Case(
            name=f"{wanted.rows:,} rows a stream",
            questions=QuerySet(streams=STREAMS, queries=(chain_query("drifting", STREAMS, WINDOW_S),)),
            data=keep(request.directory / wanted.name, make_streams(wanted), wanted.files, SPAN_S),
            files=wanted.files,
            span_s=SPAN_S,
            size=size,
        )


WORKLOAD = Workload(
    name="drift",
    summary="a chain of four streams whose selectivities change places in mid-run",
    source="after paper 000, section VII.B",
    unit="rows a stream",
    sizes=(100_000,),
    cases=cases,
)
