"""`python -m benchmarks sending`: rows and bytes that shared partitioning sends, counted over the same rows.

The 14 TPC-H queries of paper 001 with windows, in sets of 1, 2, 4, 8 and 14, and 1 to 2,000 queries of `ajoin`:
against each operator partitioning by itself, and against Spark's chains, which do not send again what lies by the key
already. Nothing runs but DuckDB, which counts what is joined, and the optimizer.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, islice

from rich.console import Console
from rich.table import Table

from benchmarks.arguments import numbers, parser, positive
from benchmarks.figures import count, size, write_json
from benchmarks.simulator.feeds import AjoinFeeds, TpchFeeds, width
from benchmarks.simulator.sending import Feed, Sent, choose, seconds, sent_alone, sent_shared
from benchmarks.surroundings import surroundings
from benchmarks.workloads.ajoin_queries import AjoinWanted, draw_queries
from benchmarks.workloads.tpch_data import TpchInput, prepare_tpch
from benchmarks.workloads.tpch_windows import chains, refused
from plait.optimizer.partitioning import TableOptions

_BYTES_PER_S = 125_000_000.0
"""A gigabit a second into each node."""

_LARGEST_SHARE = 1 / 3
_LARGEST_BALANCE = 1.2
_MOST = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What a set of queries sends; `gap`: how far the tables may be from the best ones for the sample."""

    workload: str
    queries: int
    alone: Sent
    in_place: Sent
    shared: Sent
    gap: float
    seconds_alone: float
    seconds_shared: float

    @property
    def rows(self) -> float:
        """Rows sent, by those of each operator by itself."""
        return self.shared.rows / self.alone.rows if self.alone.rows else 1.0

    @property
    def bytes(self) -> float:
        """Bytes sent, by those of each operator by itself."""
        return self.shared.bytes / self.alone.bytes if self.alone.bytes else 1.0


def compare(workload: str, queries: int, feeds: Sequence[Feed], partitions: int, nodes: int, budget: float) -> Compared:
    """Count what a set of queries sends in each of the three ways."""
    widths = {column: width(column) for feed in feeds for column in feed.columns}
    tables = choose(feeds, partitions, TableOptions(seconds=budget))
    each, shared = sent_alone(feeds, widths, partitions), sent_shared(feeds, widths, tables)
    return Compared(
        workload=workload,
        queries=queries,
        alone=each,
        in_place=sent_alone(feeds, widths, partitions, in_place=True),
        shared=shared,
        gap=tables.bound_gap,
        seconds_alone=seconds(each, nodes, _BYTES_PER_S),
        seconds_shared=seconds(shared, nodes, _BYTES_PER_S),
    )


def main(arguments: list[str]) -> int:
    """Run the benchmark; 1 if 14 TPC-H queries send more than a third, or fill a partition by 1.2 times the mean."""
    options = _arguments(arguments)
    console = Console(width=130)
    found = []
    for each in chain(_tpch(options, console), _ajoin(options)):
        found.append(each)
        console.print(_line(each), highlight=False)
    console.print(table(found))
    if options.json is not None:
        document = {"benchmark": "sending", **surroundings(), "found": [asdict(each) for each in found]}
        write_json(options.json, document)
    return 1 if any(is_missed(each) for each in found) else 0


def is_missed(found: Compared) -> bool:
    """Tell whether a set of queries misses its target."""
    if found.queries == 1:
        return abs(found.rows - 1) > 0.02
    is_all = found.workload == "tpch" and found.queries == _MOST
    return found.shared.balance > _LARGEST_BALANCE or (is_all and max(found.rows, found.bytes) > _LARGEST_SHARE)


def _arguments(arguments: list[str]) -> argparse.Namespace:
    made = parser("sending", "Rows and bytes sent by shared partitioning, by counts.")
    made.add_argument("--scale", type=float, default=0.02, help="TPC-H scale factor")
    made.add_argument("--partitions", type=positive, default=16, help="partitions of every operator")
    made.add_argument("--nodes", type=positive, default=4, help="nodes that they lie on")
    made.add_argument("--tpch", type=numbers, default="1,2,4,8,14", help="numbers of TPC-H queries")
    made.add_argument("--ajoin", type=numbers, default="1,5,20,100,500,2000", help="numbers of ajoin queries")
    made.add_argument("--seconds", type=float, default=4.0, help="time budget of the optimizer")
    return made.parse_args(arguments)


def _tpch(options: argparse.Namespace, console: Console) -> Iterator[Compared]:
    data = prepare_tpch(TpchInput(scale=options.scale), options.dir)
    for name, reason in refused(data).items():
        console.print(f"Plait does not run {name}: {reason}", highlight=False)
    for queries in options.tpch:
        feeds = TpchFeeds(data, options.cores).read(chains(queries))
        yield compare("tpch", queries, feeds, options.partitions, options.nodes, options.seconds)


def _ajoin(options: argparse.Namespace) -> Iterator[Compared]:
    feeds = AjoinFeeds(seed=options.seed)
    for queries in options.ajoin:
        drawn = tuple(islice(draw_queries(AjoinWanted(), options.seed), queries))
        yield compare("ajoin", queries, feeds.read(drawn), options.partitions, options.nodes, options.seconds)


def _line(found: Compared) -> str:
    return (
        f"{found.workload} {found.queries}: rows {found.rows:.3f}, bytes {found.bytes:.3f} of each operator by itself"
    )


def table(found: Sequence[Compared]) -> Table:
    """Return a table for people: a line a set of queries."""
    made = Table(title="What is sent: each operator by itself, Spark's chains, shared tables", box=None)
    names = ("workload", "queries", "alone", "Spark", "shared", "rows", "bytes", "alone", "shared")
    for name in (*names, "balance", "alone's", "throughput", "gap"):
        made.add_column(name, justify="right")
    for each in found:
        made.add_row(
            each.workload,
            str(each.queries),
            count(each.alone.rows),
            count(each.in_place.rows),
            count(each.shared.rows),
            f"{each.rows:.3f}",
            f"{each.bytes:.3f}",
            size(each.alone.bytes),
            size(each.shared.bytes),
            f"{each.shared.balance:.3f}",
            f"{each.alone.balance:.3f}",
            f"{each.seconds_alone / each.seconds_shared:.2f}x",
            f"{each.gap:.1%}",
        )
    return made
