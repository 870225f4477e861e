"""Stores, probe trees and plans.

A plan holds no runtime object, and every identifier in it derives from content, so equal input gives an equal plan,
letter by letter. A probe tree is addressed by *positions*: the starting relation is position 0, the n-th step on the
path adds position n; a step into an intermediate store adds one position for each relation it stands for. Keys are
named columns of the stores (`KeyColumn.name`), int64 in every bucket.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeAlias

from plait.plan.columns import SELECTED, TAU, StoredColumn
from plait.plan.expected import UNKNOWN, Estimate, Solution, StoredEstimate
from plait.query.model import SourceExpression
from plait.query.predicates import At, Band, Conjunction, Equality, Order
from plait.query.remembering import remembered

_EXACT = re.compile(
    r"tinyint|smallint|int|bigint|date|timestamp|timestamp_ntz|float|double|boolean|decimal\((\d+),.*\)|interval .*"
)
_NUMBERED = frozenset({"tinyint", "smallint", "int", "bigint", "date", "timestamp"})

Encoding: TypeAlias = Literal["hash"] | Order
"""What the int64 of a key is. The order of hashes means nothing: they can only be equal or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyColumn:
    """A join attribute of a store: one side of a join predicate cast to the common `type`, as one int64.

    Integers, dates and timestamps are their own key; everything else is Spark's ``xxhash64``. The hash of a fixed-width
    value is a bijection, so only `is_exact` False types (strings, binaries, wide decimals) compare real values after
    the hash matches; these are kept in column `value_name`. `part`: in an intermediate store the relation it belongs
    to, by its place in ``Intermediate.parts``.

    `by_size`: doubles and wall-clock times are not hashed, but an int64 of their order (`plait.plan.relations.key_of`).
    """

    expression: SourceExpression
    type: str
    part: int | None = None
    by_size: bool = False

    @property
    def name(self) -> str:
        """The int64 key column's name in buckets. It tells the encoding, so that no bucket is misread."""
        return _key_name(self.by_size, self.type, self.expression.sql, self.part)

    @property
    def encoding(self) -> Encoding:
        """What the int64 is."""
        if self.by_size and self.type in ("double", "timestamp_ntz"):
            return "double" if self.type == "double" else "integer"
        return "integer" if self.type in _NUMBERED else "hash"

    @property
    def is_exact(self) -> bool:
        """Whether equal int64 keys mean equal values."""
        match = _EXACT.fullmatch(self.type)
        return match is not None and (match.group(1) is None or int(match.group(1)) <= 18)

    @property
    def value_name(self) -> str | None:
        """The column holding the real value, None when the key is exact."""
        return (
            None
            if self.is_exact
            else part_column(self.part, _key(self.by_size, self.type, self.expression.sql).value.name)
        )


def _key(by_size: bool, type_: str, sql: str) -> StoredColumn:
    return StoredColumn(kind="ordered key" if by_size else "key", type=type_, text=sql)


@remembered(1 << 14)  # planning asks for the same few names a million times
def _key_name(by_size: bool, type_: str, sql: str, part: int | None) -> str:
    return part_column(part, _key(by_size, type_, sql).name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueColumn:
    """What Spark computes of a row for a residual predicate; `part` as in `KeyColumn`."""

    expression: SourceExpression
    type: str
    part: int | None = None

    @property
    def name(self) -> str:
        """The column's name in buckets."""
        stored = StoredColumn(kind="value", type=self.type, text=self.expression.sql)
        return part_column(self.part, stored.name)


def part_column(part: int | None, name: str) -> str:
    """Return the name of a relation's column in the buckets of an intermediate store; `part` None: of its own store."""
    return name if part is None else f"{part}:{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The conjuncts a tuple must satisfy to take part as some relation of a query; none: every tuple does.

    Where several queries share a member, `any_of` are their selections (and there are no conjuncts): one must hold.
    """

    conjuncts: tuple[SourceExpression, ...] = ()
    any_of: tuple[Selection, ...] = ()
    _sql: str = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        # Members, stores and trees are looked up and ordered by it, thousands of them with every query that comes.
        if self.any_of:
            sql = " OR ".join(f"({selection.sql})" for selection in self.any_of)
        else:
            sql = " AND ".join(f"({conjunct.sql})" for conjunct in self.conjuncts) or "true"
        object.__setattr__(self, "_sql", sql)

    def __hash__(self) -> int:
        return hash(self._sql)

    def __reduce__(self) -> tuple[Any, ...]:
        return _selection, (self.conjuncts, self.any_of)

    @property
    def sql(self) -> str:
        """The condition as Spark SQL, ``true`` when empty: the selection's identity."""
        return self._sql

    @property
    def alternatives(self) -> tuple[Selection, ...]:
        """The selections of single queries, one of which must hold."""
        return self.any_of or (self,)

    @property
    def column(self) -> str:
        """The name of the column that says of each tuple whether the selection holds, where a plan asks for that."""
        return SELECTED + self.sql


def _selection(conjuncts: tuple[SourceExpression, ...], any_of: tuple[Selection, ...]) -> Selection:
    """Return a selection that was pickled: its text need not travel."""
    return Selection(conjuncts=conjuncts, any_of=any_of)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """Why a store keeps a tuple: the selection holds and none of `keys` (key names) is NULL. One per relation."""

    selection: Selection
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A relation on a probe path, independent of any query's alias.

    `ordinal` counts the occurrences of the same source in a query (FROM order): self-joins have ordinals 0, 1, ... .
    It also settles who is last inside one batch: (position of the source in the catalog, ordinal) is the rank.
    """

    store: str
    ordinal: int
    selection: Selection
    window_us: int | None

    @property
    def order(self) -> tuple[str, int, str, bool, int]:
        """What members are ordered by."""
        return self.store, self.ordinal, self.selection.sql, self.window_us is None, self.window_us or 0


@dataclass(frozen=True, slots=True, order=True)
class Place(Generic[At]):
    """A column of some relation's store, by name. `at` tells the relation: a position on a path, a part, an alias."""

    at: At
    name: str


Probed: TypeAlias = Place[int | None]
"""A column at a position of the path, None for the store that is probed next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intermediate:
    """What an intermediate store keeps: the join of `parts` on `predicates`, whose places are parts.

    Ordinals count occurrences among the parts. That is its identity: queries that join the same things share it.
    """

    parts: tuple[Member, ...]
    predicates: Conjunction[Place[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """The kept tuples of one source, or of one intermediate result.

    A tuple is kept if at least one of `requirements` holds. Bit i of its query-set word says whether ``selections[i]``
    does. `keeps_all`: the stream is registered with ``keep = all``, so its tuples are kept although nobody may probe
    them yet, and where a store `waits` because some of its tuples may have no partner, which is certain only later;
    other stores that no step probes are only passed through. `values` are columns Spark computes for residual
    predicates. `indexes` are tuples of key names, each probed as one (composite) key; buckets are sorted by the first.
    `partition_by` holds key names, () places tuples at random. `window_us` is the largest window over live queries,
    None for unbounded; tables (`is_table`) never expire and have no τ.

    An `intermediate` has no source and no requirements of its own: it is filled by steps that name it in `fills`. Its
    columns and keys are those of its parts (`part_column`); the τ of a tuple is that of its newest part, `window_us`
    the largest window among the parts.
    """

    id: str
    source: str | None
    is_table: bool
    columns: tuple[str, ...]
    keys: tuple[KeyColumn, ...]
    requirements: tuple[Requirement, ...]
    indexes: tuple[tuple[str, ...], ...]
    partition_by: tuple[str, ...]
    parallelism: int
    window_us: int | None
    keeps_all: bool = False
    intermediate: Intermediate | None = None
    values: tuple[ValueColumn, ...] = ()
    waits: bool = False
    _selections: tuple[Selection, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        # Hundreds of queries have as many, and every path that reads the store asks for them.
        distinct = {need.selection for need in self.requirements}
        object.__setattr__(self, "_selections", tuple(sorted(distinct, key=lambda selection: selection.sql)))

    @property
    def selections(self) -> tuple[Selection, ...]:
        """The distinct selections, ordered by text; their position is their bit."""
        return self._selections

    def key(self, name: str) -> KeyColumn:
        """Return the key column with this name."""
        return next(key for key in self.keys if key.name == name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualFilter:
    """At `position` a query takes less than the path carries: only tuples that satisfy `selection` and are at most
    `window_us` older than the newest member of the result. None: in this respect it takes what the path carries.
    """

    position: int
    selection: Selection | None = None
    window_us: int | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the relation, besides the user's, that tell which tuples are taken."""
        told = () if self.selection is None else (self.selection.column,)
        return told if self.window_us is None else (*told, TAU)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A query that is complete at this point of a tree: (alias, position) for each of its relations, by alias.

    `residual_filters`, by position: where the query splits off from others that share the wider steps before.
    `counts`: of the relation at the last position it only wants to know how many rows match, and what they add up to.
    """

    query: str
    positions: tuple[tuple[str, int], ...]
    residual_filters: tuple[ResidualFilter, ...] = ()
    counts: bool = False

    @property
    def aliases(self) -> tuple[str, ...]:
        """The relations in the order of their positions."""
        return tuple(alias for alias, _ in sorted(self.positions, key=lambda place: place[1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """An intermediate store that keeps what has been joined at this point of a tree.

    `positions`: for each part of the store the position on the path.
    """

    store: str
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One arrow of a probe order: what arrives over `edge` probes `member`'s store on all of `predicates`.

    Equalities and bands have the path on their left and the probed store on their right. None at all is an explicit
    cross join. Results go to `outputs`, into the stores of `fills`, and on to `children`. In a step into an
    intermediate store `parts` are the relations it stands for, in the store's order but with the ordinals they have in
    the query; `member` then is the store as a whole.
    """

    edge: str
    member: Member
    predicates: Conjunction[Probed]
    outputs: tuple[Output, ...] = ()
    fills: tuple[Fill, ...] = ()
    children: tuple[Step, ...] = ()
    estimate: Estimate = UNKNOWN
    parts: tuple[Member, ...] = ()

    @property
    def equalities(self) -> tuple[Equality[Probed], ...]:
        """The keys that must be equal."""
        return tuple(predicate for predicate in self.predicates if isinstance(predicate, Equality))

    @property
    def index(self) -> tuple[str, ...]:
        """The keys this step looks up: all that must be equal, else the first that is bounded, else none."""
        equal = tuple(sorted({equality.right.name for equality in self.equalities}))
        return equal or next(((each.right.name,) for each in self.predicates if isinstance(each, Band)), ())

    @property
    def is_counted(self) -> bool:
        """Whether matches are counted instead of made: nobody asks for more, of those who go on from here."""
        asks_for_pairs = self.children or self.fills or not self.outputs
        return not asks_for_pairs and all(output.counts for output in self.outputs)

    @property
    def members(self) -> tuple[Member, ...]:
        """The relations this step adds to the path, one a position."""
        return self.parts or (self.member,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeTree:
    """All probe orders of one starting relation, equal prefixes merged. `outputs`: queries of this relation alone."""

    start: Member
    outputs: tuple[Output, ...] = ()
    children: tuple[Step, ...] = ()

    def steps(self) -> Iterator[Step]:
        """Yield every step, parents first, in canonical order."""
        waiting = list(reversed(self.children))
        while waiting:
            step = waiting.pop()
            yield step
            waiting.extend(reversed(step.children))

    def walk(self) -> Iterator[tuple[tuple[Step, ...], Step]]:
        """Yield (path before, step) for every step, parents first, in canonical order."""

        def visit(path: tuple[Step, ...], steps: tuple[Step, ...]) -> Iterator[tuple[tuple[Step, ...], Step]]:
            for step in steps:
                yield path, step
                yield from visit((*path, step), step.children)

        yield from visit((), self.children)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything the runtime does for all queries. `ranks`: stream names by rank; `queries`: query names, sorted.

    `stored`: what each store that keeps anything is expected to keep, by store. `solution`: how a solver came to it,
    None for a plan without one. `coming`: the intermediate stores that no query reads yet (`plait.plan.coming`).
    """

    strategy: str
    queries: tuple[str, ...]
    ranks: tuple[str, ...]
    stores: tuple[Store, ...]
    trees: tuple[ProbeTree, ...]
    stored_rows_estimate: float | None = None
    stored: tuple[StoredEstimate, ...] = ()
    solution: Solution | None = None
    coming: tuple[str, ...] = ()
    _by_id: Mapping[str, Store] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_id", {store.id: store for store in self.stores})

    def store(self, store_id: str) -> Store:
        """Return the store with this id."""
        return self._by_id[store_id]

    def rank(self, member: Member) -> tuple[int, int]:
        """Return the rank of a stream relation inside one batch; tables come before everything."""
        source = self.store(member.store).source
        return (self.ranks.index(source), member.ordinal) if source in self.ranks else (-1, member.ordinal)


def is_routed(store: Store, step: Step) -> bool:
    """Tell whether a tuple on `step` knows the one partition of `store` to go to (χ = 1); otherwise it goes to all."""
    return bool(store.partition_by) and set(store.partition_by) <= {equality.right.name for equality in step.equalities}
