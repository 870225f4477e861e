"""Random queries with outer, semi and anti joins over the sources of random cases."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from tests.property.case import Case, CaseQuery, CaseSource, quoted
from tests.property.cases import random_case
from tests.property.expressions import Expression, apply, column, drawn_by_kind, equality
from tests.property.queries import random_selection
from tests.property.thetas import random_theta
from tests.property.values import BY_NAME, may_meet

KINDS = ("left", "left", "left", "right", "full", "inner", "semi", "anti")
_WORDS = {
    "inner": ("JOIN", "INNER JOIN"),
    "left": ("LEFT JOIN", "LEFT OUTER JOIN"),
    "right": ("RIGHT JOIN", "RIGHT OUTER JOIN"),
    "full": ("FULL JOIN", "FULL OUTER JOIN"),
    "semi": ("LEFT SEMI JOIN", "SEMI JOIN"),
    "anti": ("LEFT ANTI JOIN", "ANTI JOIN"),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrawnJoin:
    """One join of a query: what it adds, and all that its ON asks."""

    kind: str
    alias: str
    source: str
    on: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OuterQuery(CaseQuery):
    """A query whose joins are not all inner ones, join by join from the second relation on."""

    joins: tuple[DrawnJoin, ...]
    where: tuple[Expression, ...]


def outer_case(seed: int, *, late: bool = False, relations: int | None = None) -> Case:
    """Return the case of a seed: sources and a way to run them as `random_case` draws them, and other queries."""
    given = random_case(seed, late=late, rows_scale=0.6, queries=1)
    rng = random.Random(f"{seed} {late} outer")
    count = rng.choice((1, 1, 2))
    sources = tuple(with_nulls(rng, source) for source in given.sources)
    largest = relations or rng.choice((2, 2, 2, 3, 3, 4))
    queries = tuple(_Draft(rng, f"q{number}", sources, largest if not number else 2).query() for number in range(count))
    return replace(given, sources=sources, queries=queries)


def with_nulls(rng: random.Random, source: CaseSource) -> CaseSource:
    """Return the source with its key column NULL here and there."""
    if source.rows.num_rows == 0 or rng.random() < 0.5:
        return source
    key = source.rows.column("k").to_pylist()
    values = [None if rng.random() < 0.15 else value for value in key]
    place = source.rows.column_names.index("k")
    field = source.rows.schema.field("k")
    import pyarrow as pa

    return replace(source, rows=source.rows.set_column(place, field, pa.array(values, field.type)))


@dataclass(slots=True)
class _Draft:
    rng: random.Random
    name: str
    sources: tuple[CaseSource, ...]
    relations: int
    chosen: dict[str, CaseSource] = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)

    def query(self) -> OuterQuery:
        rng = self.rng
        streams = [source for source in self.sources if not source.is_table]
        first = rng.choice(streams)
        self.chosen, self.shown = {"a": first}, ["a"]
        joins: list[DrawnJoin] = []
        while len(joins) < self.relations - 1:
            joins.append(self._join("bcdefgh"[len(joins)]))
        if all(join.kind == "inner" for join in joins):
            joins[0] = replace(joins[0], kind="left")
        where = [self._selection(alias) for alias in self.shown if rng.random() < 0.2]
        projection = self._projection()
        return OuterQuery(
            name=self.name,
            sql=self._sql(joins, where, projection),
            relations=tuple((alias, source.name) for alias, source in self.chosen.items()),
            windows=self._windows(),
            conditions=(),
            projection=projection,
            joins=tuple(joins),
            where=tuple(where),
        )

    def _join(self, alias: str) -> DrawnJoin:
        rng = self.rng
        source, kind = rng.choice(self.sources), rng.choice(KINDS)
        if source.is_table and kind in ("right", "full"):
            kind = "left"
        partner = rng.choice(self.shown)
        self.chosen[alias] = source
        on = [self._predicate(partner, alias)]
        if rng.random() < 0.25:
            on.append(self._predicate(rng.choice(self.shown), alias))
        for other in (alias, rng.choice(self.shown)):
            if rng.random() < 0.2:
                on.append(self._selection(other))
        if kind not in ("semi", "anti"):
            self.shown.append(alias)
        return DrawnJoin(kind=kind, alias=alias, source=source.name, on=tuple(on))

    def columns(self, alias: str) -> list[Expression]:
        return [column(alias, each.name, each.kind.name, each.kind.small) for each in self.chosen[alias].columns]

    def _predicate(self, left: str, right: str) -> Expression:
        rng, ours, theirs = self.rng, self.columns(left), self.columns(right)
        if rng.random() < 0.5:
            return equality(ours[0], theirs[0])
        if rng.random() < 0.5:
            theta = random_theta(rng, ours, theirs, None, [1])
            return equality(ours[0], theirs[0]) if theta.label in ("registered", "alternatives") else theta
        pairs = [(a, b) for a in ours for b in theirs if may_meet(a.kind, b.kind)]
        return equality(*drawn_by_kind(rng, pairs))

    def _selection(self, alias: str) -> Expression:
        rng = self.rng
        columns = [each for each in self.columns(alias) if BY_NAME[each.kind].group is not None]
        if rng.random() < 0.25:
            return apply("{0} IS NULL", lambda v: v is None, rng.choice(columns), kind="b", strict=False)
        return random_selection(rng, columns)

    def _windows(self) -> tuple[tuple[str, int | None], ...]:
        spans = [1]
        for source in self.chosen.values():
            if not source.is_table:
                taus = [tau for tau in source.taus() if tau is not None]
                spans.append(max(taus, default=0) - min(taus, default=0))
        span = max(spans)
        choices = [1, span // 8, span // 4, span // 2, span, 2 * span + 10]
        return tuple(
            (alias, max(1, self.rng.choice(choices))) for alias, source in self.chosen.items() if not source.is_table
        )

    def _projection(self) -> tuple[Expression, ...]:
        every = [item for alias in self.shown for item in self.columns(alias) if BY_NAME[item.kind].is_kept]
        times = [
            next(item for item in self.columns(alias) if item.columns[0][1] == self.chosen[alias].time)
            for alias in self.shown
            if not self.chosen[alias].is_table
        ]
        return (*times, *(self.rng.choice(every) for _ in range(self.rng.randrange(1, 4))))

    def _sql(self, joins: list[DrawnJoin], where: list[Expression], projection: tuple[Expression, ...]) -> str:
        def ref(alias: str, name: str) -> str:
            return f"{alias}.{quoted(name)}"

        def all_of(conditions: tuple[Expression, ...] | list[Expression]) -> str:
            return " AND ".join(f"({each.sql(ref)})" for each in conditions)

        text, asked = f"{self.chosen['a'].name} a", [f"({each.sql(ref)})" for each in where]
        for number, join in enumerate(joins):
            is_last = all(later.kind in ("semi", "anti") for later in joins[number:])
            if (join.kind in ("semi", "anti") and is_last and self.rng.random() < 0.5) or asked[len(where) :]:
                words = "EXISTS" if join.kind == "semi" else "NOT EXISTS"
                asked.append(f"{words} (SELECT 1 FROM {join.source} {join.alias} WHERE {all_of(join.on)})")
            else:
                text += f" {self.rng.choice(_WORDS[join.kind])} {join.source} {join.alias} ON {all_of(join.on)}"
        select = ", ".join(f"{each.sql(ref)} AS c{number}" for number, each in enumerate(projection))
        return f"SELECT {select} FROM {text}" + (f" WHERE {' AND '.join(asked)}" if asked else "")


__all__ = ["DrawnJoin", "OuterQuery", "outer_case", "with_nulls"]
