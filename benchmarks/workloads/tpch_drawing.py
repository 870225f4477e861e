"""Random join queries over TPC-H, drawn as paper 000 (section VII.A) draws them.

"Using these potential joins, we construct queries by selecting a random relation and then randomly adding joins until
the desired query size is reached." The potential joins are those of primary with foreign keys, and those of any two
columns of compatible type that have values in common: ``l_linestatus = o_orderstatus`` (nearly every pair of rows
agrees) as well as ``c_custkey = n_nationkey`` (hardly any).

What the paper leaves open is settled here by rules, so that nobody has to choose a seed:

- Every relation occurs once in a query. A join is added with equal chances as a key join or as one of the others, if
  there are both, then with equal chances among those of its kind. Drawn without regard to kind, key joins would be one
  in twenty.
- A query is rejected if the full history of it, or of any connected part of it, has more than `most_rows` rows, so
  that every system can compute it in whatever order; if it has no result; or if an equal one has been drawn already.
- A workload is drawn again, from where the random numbers have got to, if fewer than half of the queries have a join
  in common with another one, or if the overlap of their inputs is smaller than `overlap`: the rows that all queries
  read, each by itself, against the rows there are. The paper's queries are lost, but it reports the memory of queries
  that share nothing against queries that share their stores, which without selections is this very number.

Relations are written in the order that makes the fewest rows on the way: what a user who knows the data would write,
and what serves a system that does as it is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from random import Random

from benchmarks.workloads.joins import Join, JoinQuery, JoinStream, OutputOf
from plait.errors import OptionError

_MOST_DRAWS = 10_000

CountRows = Callable[[Iterable[str], Iterable[Join]], float]
"""(relations, joins that connect them without a cycle) → rows of the join."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinPool:
    """Potential joins. `key_joins`: primary with foreign keys; `value_joins`: other columns with values in common."""

    relations: tuple[str, ...]
    key_joins: tuple[Join, ...]
    value_joins: tuple[Join, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The workload to draw: so many queries of `smallest` to `largest` relations; `most_rows` of any part of one;
    `overlap` of their inputs at least.
    """

    queries: int
    smallest: int
    largest: int
    most_rows: float
    overlap: float = 1.0
    window_s: int | None = None

    def __post_init__(self) -> None:
        if self.queries < 1 or not 2 <= self.smallest <= self.largest:
            raise OptionError(
                f"expected at least one query of two or more relations, found {self.queries} queries of "
                f"{self.smallest} to {self.largest}"
            )


def draw_workload(
    wanted: Wanted, pool: JoinPool, streams: Iterable[JoinStream], count_rows: CountRows, seed: int
) -> tuple[JoinQuery, ...]:
    """Return the workload of this seed: queries ``q1``, ``q2`` and so on, of all columns of their relations.

    Raises OptionError if the rules leave too little to draw.
    """
    by_name = {stream.name: stream for stream in streams}
    draws = _Draws(wanted, pool, count_rows, Random(seed))
    while True:
        drawn = draws.workload()
        sharing = sum(_shares_a_join(joins, drawn) for joins in drawn)
        if 2 * sharing >= len(drawn) and draws.overlap(drawn) >= wanted.overlap:
            break
    return tuple(
        _query(f"q{number}", joins, draws.rows, by_name, wanted.window_s) for number, joins in enumerate(drawn, start=1)
    )


class _Draws:
    """Draws queries, each as its set of joins, and remembers the sizes it had to count."""

    def __init__(self, wanted: Wanted, pool: JoinPool, count_rows: CountRows, random: Random) -> None:
        self._wanted, self._pool, self._count_rows, self._random = wanted, pool, count_rows, random
        self._counted: dict[frozenset[Join], float] = {}
        self._left = _MOST_DRAWS

    def workload(self) -> tuple[frozenset[Join], ...]:
        """Return as many different acceptable queries as wanted."""
        found: dict[frozenset[Join], None] = {}
        while len(found) < self._wanted.queries:
            size = self._random.randint(self._wanted.smallest, self._wanted.largest)
            joins = self._joins(size)
            if joins not in found and self._is_acceptable(joins):
                found[joins] = None
        return tuple(found)

    def _joins(self, size: int) -> frozenset[Join]:
        """Select a random relation and add random joins until `size` relations are reached."""
        self._left -= 1
        if self._left < 0:
            raise OptionError(
                f"{_MOST_DRAWS:,} random queries did not give {self._wanted.queries} of at most "
                f"{self._wanted.most_rows:,.0f} rows with joins in common and an overlap of {self._wanted.overlap:g}; "
                "allow more rows or less overlap, or ask for fewer queries"
            )
        reached, joins = {self._random.choice(self._pool.relations)}, []
        while len(reached) < size:
            kinds = [_leaving(reached, self._pool.key_joins), _leaving(reached, self._pool.value_joins)]
            possible = [kind for kind in kinds if kind]
            if not possible:
                break
            join = self._random.choice(self._random.choice(possible))
            joins.append(join)
            reached |= join.relations
        return frozenset(joins)

    def _is_acceptable(self, joins: frozenset[Join]) -> bool:
        if len(joins) + 1 < self._wanted.smallest or self.rows(joins) == 0:
            return False
        return all(self.rows(part) <= self._wanted.most_rows for part in _connected_parts(joins))

    def overlap(self, drawn: Iterable[frozenset[Join]]) -> float:
        """Return the rows that all queries read, each by itself, against the rows there are."""
        read = [relation for joins in drawn for relation in _relations(joins)]
        rows = {relation: self._count_rows((relation,), ()) for relation in read}
        return sum(rows[relation] for relation in read) / max(sum(rows.values()), 1.0)

    def rows(self, joins: frozenset[Join]) -> float:
        """Return the rows of a connected join, counted once."""
        if joins not in self._counted:
            self._counted[joins] = self._count_rows(_relations(joins), _sorted(joins))
        return self._counted[joins]


def _leaving(reached: set[str], joins: Sequence[Join]) -> list[Join]:
    """Return the joins that lead from what is reached to something new."""
    return [join for join in joins if len(join.relations & reached) == 1]


def _shares_a_join(joins: frozenset[Join], drawn: Iterable[frozenset[Join]]) -> bool:
    return any(joins & other for other in drawn if other != joins)


def _connected_parts(joins: frozenset[Join]) -> list[frozenset[Join]]:
    """Return the connected subsets of a query's joins, which form a tree, smaller ones first."""
    return [
        frozenset(part)
        for size in range(1, len(joins) + 1)
        for part in combinations(_sorted(joins), size)
        if _meet(part)
    ]


def _sorted(joins: Iterable[Join]) -> list[Join]:
    return sorted(joins, key=lambda join: join.sql)


def _meet(part: Sequence[Join]) -> bool:
    """Tell whether joins of a tree are connected: n of them then reach n + 1 relations, otherwise more."""
    return len(_relations(part)) == len(part) + 1


def _relations(joins: Iterable[Join]) -> list[str]:
    return sorted({relation for join in joins for relation in join.relations})


def _query(
    name: str,
    joins: frozenset[Join],
    rows: Callable[[frozenset[Join]], float],
    streams: dict[str, JoinStream],
    window_s: int | None,
) -> JoinQuery:
    order = _cheapest_order(joins, rows)
    outputs = tuple(
        OutputOf(relation=relation, column=column.name, type=column.type)
        for relation in order
        for column in streams[relation].columns
    )
    return JoinQuery(name=name, relations=order, joins=tuple(_sorted(joins)), outputs=outputs, window_s=window_s)


def _cheapest_order(joins: frozenset[Join], rows: Callable[[frozenset[Join]], float]) -> tuple[str, ...]:
    """Return the relations in the order whose joins along the way have the fewest rows; ties by name."""
    relations = _relations(joins)
    best: dict[frozenset[str], tuple[float, tuple[str, ...]]] = {
        frozenset((relation,)): (0.0, (relation,)) for relation in relations
    }
    for size in range(1, len(relations)):
        for reached in [subset for subset in best if len(subset) == size]:
            cost, order = best[reached]
            for join in _leaving(set(reached), _sorted(joins)):
                wider = reached | join.relations
                inside = frozenset(join for join in joins if join.relations <= wider)
                (added,) = wider - reached
                longer = (cost + rows(inside), (*order, added))
                best[wider] = min(best.get(wider, longer), longer)
    return best[frozenset(relations)][1]


def with_window(queries: Iterable[JoinQuery], window_s: int | None) -> tuple[JoinQuery, ...]:
    """Return the same queries with another window."""
    return tuple(replace(query, window_s=window_s) for query in queries)
