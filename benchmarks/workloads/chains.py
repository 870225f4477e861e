"""`chains`: joins of five streams in a chain, of low, medium and high selectivity, after paper 002 (custom-LMH).

A name gives the selectivity of each join from left to right. In the paper they are 10^-8 (low), 10^-6 (medium) and
10^-5 (high) with 10^6 rows a stream; what matters is how many partners a row has in the next stream: 0.01, 1 and 10.
With other numbers of rows, medium and high keep their partners; keys are uniform, so partners are rows by keys.

It departs from the paper in two places:

- Low means 0.1 partners. With 0.01, five streams of 10^6 rows have no result, and an answer that is empty anyway is no
  check of anything.
- HHHH has 10,000 results for every row of the full history. It is asked within a tenth of the span, where a row has
  about two partners, and a result comes of about five. All others count the full history, as in the paper.

Mixtures show what order costs: HLLH and LHHL have equally many results but meet the many partners at the ends, or in
the middle. Event times are uniform over 200 seconds and know nothing of the keys.

Each stream is joined with the next: ``c1.k1 = c2.k1``, ``c2.k2 = c3.k2`` and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.workloads.case import Case, Request, Workload
from benchmarks.workloads.joins import Join, JoinQuery, JoinStream, OutputOf, QuerySet
from benchmarks.workloads.stored import Made, generator, keep, table, uniform_times
from plait.query.model import Column


def chain_streams(length: int) -> tuple[JoinStream, ...]:
    """Return the streams: event time ``ts``, row number ``nr``, and the keys shared with the neighbours."""
    return tuple(
        JoinStream(
            name=f"c{place}",
            time="ts",
            columns=(
                Column(name="ts", type="timestamp"),
                *(Column(name=name, type="bigint") for name in ("nr", *_keys(place, length))),
            ),
        )
        for place in range(1, length + 1)
    )


def _keys(place: int, length: int) -> tuple[str, ...]:
    return tuple(f"k{key}" for key in (place - 1, place) if 1 <= key < length)


def chain_query(name: str, streams: Sequence[JoinStream], window_s: int | None) -> JoinQuery:
    """Return the join of all the streams, from the first to the last; it selects every time and row number."""
    relations = tuple(stream.name for stream in streams)
    return JoinQuery(
        name=name,
        relations=relations,
        joins=tuple(
            Join(left=f"c{key}", right=f"c{key + 1}", columns=((f"k{key}", f"k{key}"),))
            for key in range(1, len(relations))
        ),
        outputs=tuple(
            OutputOf(relation=relation, column=column, type=kind)
            for relation in relations
            for column, kind in (("ts", "timestamp"), ("nr", "bigint"))
        ),
        window_s=window_s,
    )


FORMAT = 1
"""Raise it when the same request gives other rows than before."""

PARTNERS: Mapping[str, float] = {"L": 0.1, "M": 1.0, "H": 10.0}
"""Rows of the next stream that a row agrees with, by letter."""

FILES = 10
SPAN_S = 200
WINDOWS_S: Mapping[str, int | None] = {"LLLL": None, "MMMM": None, "HLLH": None, "LHHL": None, "HHHH": SPAN_S // 10}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainInput:
    """`rows` of each of the streams of a chain; `letters` are the selectivities of its joins."""

    letters: str
    rows: int
    files: int = FILES
    seed: int = 7

    @property
    def name(self) -> str:
        """A directory name that no other input has."""
        return f"chain-{self.letters}-{self.rows}-rows-{self.files}-files-{SPAN_S}-s-seed-{self.seed}-v{FORMAT}"

    def keys(self, join: int) -> int:
        """Return how many values the key of a join has, counted from 1."""
        return max(1, round(self.rows / PARTNERS[self.letters[join - 1]]))


def make_streams(wanted: ChainInput) -> Iterator[Made]:
    """Yield the streams of a chain."""
    for stream in chain_streams(len(wanted.letters) + 1):
        random = generator(wanted.seed, stream.name)
        columns: dict[str, object] = {
            "ts": uniform_times(random, wanted.rows, SPAN_S),
            "nr": range(wanted.rows),
        }
        for column in stream.columns[2:]:
            columns[column.name] = random.integers(0, wanted.keys(int(column.name[1:])), wanted.rows)
        yield stream, table(stream, columns)


def cases(request: Request) -> Iterator[Case]:
    """Yield for each number of rows a case for each chain."""
    for size in request.sizes:
        for letters, window_s in WINDOWS_S.items():
            wanted = ChainInput(letters=letters, rows=int(size), files=request.files or FILES, seed=request.seed)
            data = keep(request.directory / wanted.name, make_streams(wanted), wanted.files, SPAN_S)
            streams = chain_streams(len(letters) + 1)
            yield Case(
                name=f"{letters}, {wanted.rows:,} rows a stream",
                questions=QuerySet(streams=streams, queries=(chain_query(letters.lower(), streams, window_s),)),
                data=data,
                files=wanted.files,
                span_s=SPAN_S,
                size=size,
            )


WORKLOAD = Workload(
    name="chains",
    summary="five streams in a chain with low, medium and high selectivities",
    source="paper 002, section V (custom-LMH)",
    unit="rows a stream",
    sizes=(50_000,),
    cases=cases,
)
