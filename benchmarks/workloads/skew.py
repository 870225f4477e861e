"""`skew`: three streams in a chain, of which the first has Zipf keys; the sizes are the exponents, 0 (uniform) to 2.

The keys of c1 follow Zipf's law: the i-th most frequent has a share in proportion to 1 / i^exponent (at exponent 2
three rows in five have the same key). In c2 and c3 every key has equally many rows. So a row of c2 has on average as
many partners at every exponent, and the number of results hardly depends on it: what differs in time is due to skew,
not to the size of the answer. With skew on both sides, results alone would grow a thousandfold.

Which keys are the frequent ones is random. Windows of 10 seconds; ten rows a key in each stream of the whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.workloads.case import Case, Request, Workload
from benchmarks.workloads.chains import chain_query, chain_streams
from benchmarks.workloads.joins import QuerySet
from benchmarks.workloads.stored import Made, generator, keep, table, uniform_times
from plait.errors import OptionError

FORMAT = 1
"""Raise it when the same request gives other rows than before."""

FILES = 10
SPAN_S = 200
WINDOW_S = 10
ROWS_PER_KEY = 10
STREAMS = chain_streams(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class SkewInput:
    """`rows` of each of the three streams; keys of the first by Zipf's law."""

    exponent: float
    rows: int = 100_000
    files: int = FILES
    seed: int = 7

    def __post_init__(self) -> None:
        if not 0 <= self.exponent <= 2:
            raise OptionError(f"expected a Zipf exponent from 0 to 2, found {self.exponent:g}")

    @property
    def name(self) -> str:
        """A directory name that no other input has."""
        return f"skew-{self.exponent:g}-{self.rows}-rows-{self.files}-files-{SPAN_S}-s-seed-{self.seed}-v{FORMAT}"

    @property
    def keys(self) -> int:
        """The number of different keys."""
        return max(1, self.rows // ROWS_PER_KEY)


def make_streams(wanted: SkewInput) -> Iterator[Made]:
    """Yield the streams."""
    for stream in STREAMS:
        random = generator(wanted.seed, stream.name)
        columns: dict[str, object] = {"ts": uniform_times(random, wanted.rows, SPAN_S), "nr": range(wanted.rows)}
        for column in stream.columns[2:]:
            draw = zipf_keys if stream.name == "c1" else even_keys
            columns[column.name] = draw(wanted, random)
        yield stream, table(stream, columns)


def zipf_keys(wanted: SkewInput, random: np.random.Generator) -> NDArray[np.int64]:
    """Return random keys whose frequencies follow Zipf's law."""
    weights = np.arange(1.0, wanted.keys + 1) ** -wanted.exponent
    ranks = np.searchsorted(np.cumsum(weights) / weights.sum(), random.random(wanted.rows), side="right")
    names = random.permutation(wanted.keys)
    return names[np.minimum(ranks, wanted.keys - 1)]


def even_keys(wanted: SkewInput, random: np.random.Generator) -> NDArray[np.int64]:
    """Return keys in random order of which each occurs equally often."""
    return random.permutation(np.arange(wanted.rows) % wanted.keys)


def cases(request: Request) -> Iterator[Case]:
    """Yield a case for each exponent."""
    for size in request.sizes:
        wanted = SkewInput(exponent=size, files=request.files or FILES, seed=request.seed)
        yield Case(
            name=f"exponent {size:g}",
            questions=QuerySet(streams=STREAMS, queries=(chain_query("skewed", STREAMS, WINDOW_S),)),
            data=keep(request.directory / wanted.name, make_streams(wanted), wanted.files, SPAN_S),
            files=wanted.files,
            span_s=SPAN_S,
            size=size,
        )


WORKLOAD = Workload(
    name="skew",
    summary="three streams in a chain, the first with Zipf keys",
    source="own",
    unit="Zipf exponent",
    sizes=(0.0, 1.0, 2.0),
    cases=cases,
    grows=False,
)
