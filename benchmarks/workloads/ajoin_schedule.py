"""When queries come and go: the two scenarios of paper 004 (AJoin, section 7), as plain data.

- SC1, "n q/s m qp": n queries are created every second until m run side by side; none ends.
- SC2, "n q / m s": every m seconds the n queries that run are deleted and n others created.

The paper gives SC1 by example ("create one query per second until there are 20 parallel queries") and refers for SC2
to AStream (Karimov et al., 2019): queries are created and deleted in batches, fewer run at a time than in SC1 and more
change. A batch takes effect at a whole second, as the paper's client sends its requests once a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from benchmarks.workloads.joins import JoinQuery
from plait.errors import OptionError


@dataclass(frozen=True, slots=True, kw_only=True)
class Sc1:
    """Create `per_second` queries every second until `parallel` run; or every so many seconds."""

    per_second: int
    parallel: int
    every_s: int = 1

    def __post_init__(self) -> None:
        _require(1 <= self.per_second <= self.parallel and self.every_s >= 1, self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sc2:
    """Replace all `batch` queries every `every_s` seconds, for `seconds`."""

    batch: int
    every_s: int
    seconds: int

    def __post_init__(self) -> None:
        _require(self.batch >= 1 and 1 <= self.every_s <= self.seconds, self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What happens `second` seconds after the start: first the named queries are deleted, then others created."""

    second: int
    create: tuple[JoinQuery, ...] = ()
    delete: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """All changes in order of time."""

    changes: tuple[Change, ...]

    def running_at(self, second: float) -> tuple[str, ...]:
        """Return the names of the queries that run at a time, in the order in which they were created."""
        running: dict[str, None] = {}
        for change in self.changes:
            if change.second > second:
                break
            for name in change.delete:
                del running[name]
            running.update(dict.fromkeys(query.name for query in change.create))
        return tuple(running)

    @property
    def queries(self) -> tuple[JoinQuery, ...]:
        """Every query that is ever created."""
        return tuple(query for change in self.changes for query in change.create)


def schedule(scenario: Sc1 | Sc2, queries: Iterable[JoinQuery]) -> Schedule:
    """Return when which of the queries are created and deleted. Raises OptionError if there are too few of them."""
    drawn = iter(queries)
    match scenario:
        case Sc1():
            return Schedule(changes=tuple(_growing(scenario, drawn)))
        case Sc2():
            return Schedule(changes=tuple(_replacing(scenario, drawn)))


def _growing(scenario: Sc1, drawn: Iterator[JoinQuery]) -> Iterator[Change]:
    for second, running in enumerate(range(0, scenario.parallel, scenario.per_second)):
        count = min(scenario.per_second, scenario.parallel - running)
        yield Change(second=second * scenario.every_s, create=_take(drawn, count))


def _replacing(scenario: Sc2, drawn: Iterator[JoinQuery]) -> Iterator[Change]:
    running: tuple[JoinQuery, ...] = ()
    for second in range(0, scenario.seconds, scenario.every_s):
        created = _take(drawn, scenario.batch)
        yield Change(second=second, create=created, delete=tuple(query.name for query in running))
        running = created


def _take(drawn: Iterator[JoinQuery], count: int) -> tuple[JoinQuery, ...]:
    taken = tuple(islice(drawn, count))
    if len(taken) < count:
        raise OptionError(f"the schedule creates {count} queries at once, found only {len(taken)} more")
    return taken


def _require(holds: bool, scenario: Sc1 | Sc2) -> None:
    if not holds:
        raise OptionError(f"expected positive numbers, batches no larger than the whole; found {scenario}")
