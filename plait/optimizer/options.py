"""What a plan is made for, besides queries and statistics."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from plait.errors import OptionError
from plait.plan.strategy_names import StrategyName
from plait.query.model import Source, Stream

_MOST_PARTITIONS = 10_000

BUDGETED: Final[frozenset[StrategyName]] = frozenset({"ilp", "bushy", "chain", "dppick"})
"""The strategies that choose intermediate stores within a budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeCosts:
    """What probing costs, in nanoseconds of one core, by the strategy `dppick`; ``python -m benchmarks costs`` measures
    it. A look-up among κ keys costs ``query · (query_base + log₂(1 + κ))``, a pair that the index finds `match`, a
    row that an intermediate store keeps `keep`, and an intermediate store by itself `store` in every batch, for its
    files and another phase.
    """

    query: float = 15.0
    query_base: float = 0.0
    match: float = 15.0
    keep: float = 200.0
    store: float = 4e6

    def of_stores(self, count: int, batch_s: float | None) -> float:
        """Return what intermediate stores cost by themselves per second of event time; `batch_s` None: a batch is
        taken to bring a second.
        """
        return count * self.store / (batch_s or 1.0)


PROBE_COSTS: Final = ProbeCosts()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """Strategy, sources, degree of parallelism, and what `ilp` may spend.

    `sources` in catalog order, which is the order of the stream ranks. `parallelism` partitions per store, overridden
    per source by `parallelism_by_source`. With `task_rows`, the rows one task is to hold, sources without a number of
    their own get as many partitions as what they keep asks for (`plait.optimizer.partitions`). All stores together may
    keep `storage_rows` or `storage_bytes`, None for any number (the strategies of `BUDGETED`); inputs are kept in any
    case, and of what they leave, intermediate stores are planned to take `storage_share` at most.
    `ilp` minimizes `probe_weight` per probe tuple plus `store_weight` per row of an intermediate store, and is content
    within `gap` of the least possible, or after `time_limit_s`. `dppick` minimizes `costs`. Raises OptionError for a
    parallelism below one or of an unknown source, and for negative limits and weights.
    """

    strategy: StrategyName
    sources: tuple[Source, ...]
    parallelism: int
    parallelism_by_source: tuple[tuple[str, int], ...] = ()
    task_rows: float | None = None
    storage_rows: float | None = None
    storage_bytes: float | None = None
    storage_share: float = 1.0
    probe_weight: float = 1.0
    store_weight: float = 0.0
    time_limit_s: float = 10.0
    gap: float = 0.01
    costs: ProbeCosts = PROBE_COSTS

    def __post_init__(self) -> None:
        known = {source.name for source in self.sources}
        for name, count in self.parallelism_by_source:
            if name not in known:
                raise OptionError(
                    f"parallelism is set for source '{name}', which does not exist; the sources are {_listed(known)}"
                )
            _check_parallelism(f"parallelism of source '{name}'", count)
        _check_parallelism("parallelism", self.parallelism)
        for what in (
            "storage_rows",
            "storage_bytes",
            "storage_share",
            "probe_weight",
            "store_weight",
            "time_limit_s",
            "gap",
        ):
            value = getattr(self, what)
            if value is not None and not value >= 0:
                raise OptionError(f"{what} is {value}; expected a number of at least 0")
        if self.task_rows is not None and not self.task_rows >= 1:
            raise OptionError(f"task_rows is {self.task_rows}; expected a number of at least 1")
        if self.storage_rows is not None and self.storage_bytes is not None:
            raise OptionError("both storage_rows and storage_bytes are set; give the budget in one of them")

    def parallelism_of(self, source: str) -> int:
        """Return the number of partitions of a store over this source."""
        return dict(self.parallelism_by_source).get(source, self.parallelism)

    def partitions_of_join(self, sources: Iterable[str], rows: float) -> int:
        """Return the number of partitions of a store that keeps `rows` of a join of these sources."""
        if self.task_rows is None:
            return max(self.parallelism_of(source) for source in sources)
        return partitions(rows, self.task_rows)

    def source(self, name: str, *, reader: str) -> Source:
        """Return the source with this name; `reader` is the query to blame when there is none."""
        for source in self.sources:
            if source.name == name:
                return source
        known = {source.name for source in self.sources}
        raise OptionError(f"query '{reader}' reads '{name}', which is not a source; the sources are {_listed(known)}")

    @property
    def at_random(self) -> frozenset[str]:
        """Return the sources whose tuples are placed at random."""
        return frozenset(
            source.name for source in self.sources if isinstance(source, Stream) and source.placement == "random"
        )

    @property
    def ranks(self) -> tuple[str, ...]:
        """Return the stream names by rank."""
        return tuple(source.name for source in self.sources if isinstance(source, Stream))


def partitions(rows: float, task_rows: float) -> int:
    """Return N(S): how many tasks it takes to hold a store's rows (paper 002, section V.C)."""
    return max(1, min(math.ceil(rows / task_rows), _MOST_PARTITIONS))


def _check_parallelism(what: str, count: int) -> None:
    if count < 1:
        raise OptionError(f"{what} is {count}; expected a whole number of at least 1")


def _listed(names: set[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names)) or "none"
