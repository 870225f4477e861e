"""Random queries with outer, semi and anti joins over the sources of random cases."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pyarrow as pa

from tests.property.case import Case, CaseQuery, CaseSource, RunOptions, quoted
from tests.property.cases import random_case
from tests.property.expressions import Expression, apply, column, derived, drawn_by_kind, either, equality, fields
from tests.property.queries import random_selection
from tests.property.registered import REGISTERED
from tests.property.thetas import random_theta
from tests.property.values import BY_NAME, NESTED, may_meet

KINDS = ("left", "left", "left", "right", "full", "inner", "semi", "anti")
TESTS = ("semi", "anti")
_WORDS = {
    "inner": ("JOIN", "INNER JOIN"),
    "left": ("LEFT JOIN", "LEFT OUTER JOIN"),
    "right": ("RIGHT JOIN", "RIGHT OUTER JOIN"),
    "full": ("FULL JOIN", "FULL OUTER JOIN"),
    "semi": ("LEFT SEMI JOIN", "SEMI JOIN"),
    "anti": ("LEFT ANTI JOIN", "ANTI JOIN"),
}
_REFUSED = frozenset(each.name for each in REGISTERED)
_KEY = "k"
"""A column that every source has."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrawnJoin:
    """One join of a query: what it adds, and all that its ON asks. `merges`: it is written with NATURAL or USING, these
    words being all that is said of it.
    """

    kind: str
    alias: str
    source: str
    on: tuple[Expression, ...]
    merges: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OuterQuery(CaseQuery):
    """A query whose joins are not all inner ones, join by join from the second relation on."""

    joins: tuple[DrawnJoin, ...]
    where: tuple[Expression, ...]


def outer_case(seed: int, *, late: bool = False, relations: int | None = None) -> Case:
    """Return the case of a seed: sources and a way to run them as `random_case` draws them, and other queries."""
    given = random_case(seed, late=late, rows_scale=0.6, queries=1)
    given = _shorter(given) if seed % 2 == 0 else given
    rng = random.Random(f"{seed} {late} outer")
    count = rng.choice((1, 1, 1, 2))
    sources = tuple(_emptied(rng, with_nulls(rng, source)) for source in given.sources)
    largest = relations or rng.choice((2, 2, 2, 3, 3, 4))
    queries = tuple(_Draft(rng, f"q{number}", sources, largest if not number else 2).query() for number in range(count))
    read = {name for query in queries for _, name in query.relations}
    sources = tuple(source for source in sources if source.name in read)
    return replace(given, sources=sources, queries=queries, options=_quicker(rng, given.options))


def _shorter(case: Case) -> Case:
    """Return a long case with every two batches made one: nothing becomes late by that. Not of all cases, because what
    is let go too early shows in many batches only.
    """
    if case.batches < 5:
        return case
    batches, options = (case.batches + 1) // 2, case.options
    halved = [frozenset(batch // 2 for batch in each) - {0} for each in (options.restarts, options.compactions)]
    sources = (replace(each, batch_of=tuple(batch // 2 for batch in each.batch_of)) for each in case.sources)
    return replace(case, sources=tuple(sources), batches=batches).with_options(
        strategies=options.strategies[:batches], restarts=halved[0], compactions=halved[1]
    )


def _quicker(rng: random.Random, options: RunOptions) -> RunOptions:
    """Return the way to run a case, mostly with fewer pieces of everything: of inner joins many cases have many."""
    if rng.random() < 0.3:
        return options
    return replace(
        options, block_rows=max(options.block_rows, 16), parallelism=min(options.parallelism, 2), sliced_ingest=1
    )


def with_nulls(rng: random.Random, source: CaseSource) -> CaseSource:
    """Return the source with its key column NULL here and there."""
    if source.rows.num_rows == 0 or rng.random() < 0.5:
        return source
    key = source.rows.column(_KEY).to_pylist()
    values = [None if rng.random() < 0.15 else value for value in key]
    place = source.rows.column_names.index(_KEY)
    field = source.rows.schema.field(_KEY)
    return replace(source, rows=source.rows.set_column(place, field, pa.array(values, field.type)))


def _emptied(rng: random.Random, source: CaseSource) -> CaseSource:
    """Return the source without its rows now and then; a stream mostly with the last of them, so that time passes."""
    roll = rng.random()
    if roll < 0.92 or source.rows.num_rows == 0:
        return source
    kept = 1 if roll < 0.97 and not source.is_table else 0
    first = source.rows.num_rows - kept
    return replace(source, rows=source.rows.slice(first), batch_of=source.batch_of[first:])


@dataclass(slots=True)
class _Draft:
    rng: random.Random
    name: str
    sources: tuple[CaseSource, ...]
    relations: int
    chosen: dict[str, CaseSource] = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)
    merged: dict[str, Expression] = field(default_factory=dict)
    """What the joins so far have merged, by name in lower case, as long as all of them have."""

    def query(self) -> OuterQuery:
        rng = self.rng
        self.chosen, self.shown = {"a": self._first()}, ["a"]
        joins: list[DrawnJoin] = []
        for kind in self._kinds():
            joins.append(self._join("bcdefgh"[len(joins)], kind, is_first=not joins))
        where = [self._selection(alias) for alias in self.shown if rng.random() < 0.2]
        if len(self.shown) > 1 and rng.random() < 0.15:
            where.append(self._predicate(*rng.sample(self.shown, 2)))
        merged = sorted(self.merged) if rng.random() < 0.6 else []
        projection = (*self._projection(), *(self.merged[name] for name in merged))
        return OuterQuery(
            name=self.name,
            sql=self._sql(
                joins, where, projection, {len(projection) - len(merged) + n: m for n, m in enumerate(merged)}
            ),
            relations=tuple((alias, source.name) for alias, source in self.chosen.items()),
            windows=self._windows(),
            conditions=(),
            projection=projection,
            joins=tuple(joins),
            where=tuple(where),
        )

    def _first(self) -> CaseSource:
        """Return what FROM begins with: a stream, or now and then a table."""
        tables = [source for source in self.sources if source.is_table]
        streams = [source for source in self.sources if not source.is_table]
        return self.rng.choice(tables if tables and self.rng.random() < 0.2 else streams)

    def _kinds(self) -> list[str]:
        """Draw the joins. A test before a join that keeps its right side is rare by itself, and worth while."""
        rng, count = self.rng, self.relations - 1
        kinds = [rng.choice(KINDS) for _ in range(count)]
        if count > 1 and rng.random() < 0.2:
            kinds[:2] = [rng.choice(TESTS), rng.choice(("right", "full", "inner"))]
        if count > 2 and rng.random() < 0.3:  # how long the left part waits is a matter of two windows
            kinds[:3] = ["inner", rng.choice(("left", *TESTS)), rng.choice(("right", "full"))]
        if self.chosen["a"].is_table:
            kinds[0] = rng.choice(("right", "inner"))
        if set(kinds) == {"inner"}:
            kinds[-1] = "right" if self.chosen["a"].is_table and count == 1 else "left"
        return kinds

    def _join(self, alias: str, kind: str, *, is_first: bool) -> DrawnJoin:
        rng = self.rng
        streams = [source for source in self.sources if not source.is_table]
        needs_stream = kind in ("right", "full") or all(source.is_table for source in self.chosen.values())
        source = rng.choice(streams if needs_stream else self.sources)
        self.chosen[alias] = source
        merges = self._merging(alias, kind, is_first=is_first)
        if merges is not None:
            return merges
        partner = rng.choice(self.shown)
        on = [self._predicate(partner, alias)]
        if rng.random() < 0.25:
            on.append(self._predicate(rng.choice(self.shown), alias))
        for other in (alias, rng.choice(self.shown)):
            if rng.random() < 0.2:
                on.append(self._selection(other))
        if kind not in TESTS:
            self.shown.append(alias)
            self.merged = {}
        return DrawnJoin(kind=kind, alias=alias, source=source.name, on=tuple(on))

    def _merging(self, alias: str, kind: str, *, is_first: bool) -> DrawnJoin | None:
        """Return a join with USING or NATURAL, None if there is to be none."""
        rng = self.rng
        if rng.random() > 0.2 or not (is_first or _KEY in self.merged):
            return None
        ours = {each.columns[0][1].lower(): each for each in self.columns("a")} if is_first else dict(self.merged)
        theirs = {each.columns[0][1].lower(): each for each in self.columns(alias)}
        common = [name for name in ours if name in theirs]
        is_natural = is_first and rng.random() < 0.5
        names = common if is_natural else [_KEY]
        if any(ours[name].operands or not may_meet(ours[name].kind, theirs[name].kind) for name in names):
            return None
        merged = {name: _shown(kind, ours[name], theirs[name]) for name in names}
        if kind not in TESTS:
            self.shown.append(alias)
            self.merged = {name: each for name, each in merged.items() if each is not None}
        return DrawnJoin(
            kind=kind,
            alias=alias,
            source=self.chosen[alias].name,
            on=tuple(equality(ours[name], theirs[name]) for name in names),
            merges="NATURAL" if is_natural else f"USING ({_KEY})",
        )

    def columns(self, alias: str) -> list[Expression]:
        return [column(alias, each.name, each.kind.name, each.kind.small) for each in self.chosen[alias].columns]

    def _comparable(self, alias: str) -> list[Expression]:
        """Return the columns of a relation, of nested ones what is in them."""
        found = self.columns(alias)
        return [each for one in found for each in ([one] if one.kind not in NESTED else [f() for f in fields(one)])]

    def _predicate(self, left: str, right: str) -> Expression:
        rng, ours, theirs = self.rng, self._comparable(left), self._comparable(right)
        if rng.random() < 0.4:
            return equality(self.columns(left)[0], self.columns(right)[0])
        pairs = [(a, b) for a in ours for b in theirs if may_meet(a.kind, b.kind)]
        one, other = drawn_by_kind(rng, pairs)
        if rng.random() < 0.5:
            among = ([one], [other]) if one.kind == other.kind and rng.random() < 0.7 else (ours, theirs)
            theta = random_theta(rng, *among, None, [1])
            return equality(self.columns(left)[0], self.columns(right)[0]) if theta.label in _REFUSED else theta
        changed = derived(one, rng) if rng.random() < 0.2 else one
        return equality(changed if may_meet(changed.kind, other.kind) else one, other)

    def _selection(self, alias: str) -> Expression:
        rng = self.rng
        columns = self._comparable(alias)
        if rng.random() < 0.25:
            return self._is_null(rng.choice(columns))
        if rng.random() < 0.25:
            parts = [random_selection(rng, columns), rng.choice((self._is_null, self._is_known))(rng.choice(columns))]
            rng.shuffle(parts)
            return apply("({0} OR {1})", either, *parts, kind="b", strict=False)
        return random_selection(rng, columns)

    @staticmethod
    def _is_null(operand: Expression) -> Expression:
        return apply("{0} IS NULL", lambda v: v is None, operand, kind="b", strict=False)

    @staticmethod
    def _is_known(operand: Expression) -> Expression:
        return apply("{0} IS NOT NULL", lambda v: v is not None, operand, kind="b", strict=False)

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

    def _sql(
        self,
        joins: list[DrawnJoin],
        where: list[Expression],
        projection: tuple[Expression, ...],
        merged: dict[int, str],
    ) -> str:
        def ref(alias: str, name: str) -> str:
            return f"{alias}.{quoted(name)}"

        def all_of(conditions: tuple[Expression, ...] | list[Expression]) -> str:
            return " AND ".join(f"({each.sql(ref)})" for each in conditions)

        text, asked = f"{self.chosen['a'].name} a", [f"({each.sql(ref)})" for each in where]
        for number, join in enumerate(joins):
            is_last = all(later.kind in TESTS for later in joins[number:])
            if (is_last and not join.merges and self.rng.random() < 0.5) or asked[len(where) :]:
                words = "EXISTS" if join.kind == "semi" else "NOT EXISTS"
                asked.append(f"{words} (SELECT 1 FROM {join.source} {join.alias} WHERE {all_of(join.on)})")
                continue
            words = self.rng.choice(_WORDS[join.kind])
            if join.merges == "NATURAL":
                text += f" NATURAL {words} {join.source} {join.alias}"
            else:
                text += f" {words} {join.source} {join.alias} {join.merges or f'ON {all_of(join.on)}'}"
        shown = [quoted(merged[n]) if n in merged else each.sql(ref) for n, each in enumerate(projection)]
        select = ", ".join(f"{each} AS c{number}" for number, each in enumerate(shown))
        return f"SELECT {select} FROM {text}" + (f" WHERE {' AND '.join(asked)}" if asked else "")


def _shown(kind: str, ours: Expression, theirs: Expression) -> Expression | None:
    """Return what a merged column is after a join, None if there it has no name of its own."""
    if kind == "right":
        return theirs
    if kind != "full":
        return ours
    if ours.kind != theirs.kind:
        return None
    return apply("coalesce({0}, {1})", lambda a, b: b if a is None else a, ours, theirs, kind=ours.kind, strict=False)


__all__ = ["KINDS", "TESTS", "DrawnJoin", "OuterQuery", "outer_case", "with_nulls"]
