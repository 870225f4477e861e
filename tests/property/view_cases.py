"""Random views and a query over them, as Plait's SQL, and as DuckDB's with the views as subqueries of their own."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tests.oracle.translate import to_duckdb
from tests.property.case import Case, CaseQuery, CaseSource, CaseView, interval, quoted
from tests.property.cases import random_case
from tests.property.expressions import Expression, apply, column, derived, equality
from tests.property.outer_cases import with_nulls
from tests.property.queries import random_selection

_SHOWN = frozenset({"i", "l", "s"})
_KINDS = ("inner", "inner", "inner", "left", "left", "right", "full", "semi", "anti")
_WORDS = {
    "inner": "JOIN",
    "cross": "CROSS JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
    "semi": "SEMI JOIN",
    "anti": "ANTI JOIN",
}
_TESTS = ("semi", "anti")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrawnRelation:
    """A source or view under an alias, and how it is joined; `kind` of the first one means nothing."""

    kind: str
    alias: str
    of: str
    on: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrawnSelect:
    """A SELECT. `windows`: of its relations, where they have others than by themselves."""

    relations: tuple[DrawnRelation, ...]
    where: tuple[Expression, ...]
    columns: tuple[tuple[str, Expression], ...]
    windows: tuple[tuple[str, int], ...]

    def sql(self, rng: random.Random, within: Mapping[str, str]) -> str:
        """Return it as Plait reads it. `within`: the texts of views that are written where they are read."""

        def ref(alias: str, name: str) -> str:
            return f"{alias}.{quoted(name)}"

        def all_of(conditions: tuple[Expression, ...]) -> str:
            return " AND ".join(f"({each.sql(ref)})" for each in conditions) or "TRUE"

        def relation(each: DrawnRelation) -> str:
            return f"({within[each.of]}) {each.alias}" if each.of in within else f"{each.of} {each.alias}"

        asked = [f"({each.sql(ref)})" for each in self.where]
        first, text, tests = self.relations[0], "", list[str]()
        for number, each in enumerate(self.relations[1:], 1):
            is_last = all(later.kind in _TESTS for later in self.relations[number:])
            if is_last and (tests or rng.random() < 0.5):
                word = "EXISTS" if each.kind == "semi" else "NOT EXISTS"
                tests.append(f"{word} (SELECT 1 FROM {relation(each)} WHERE {all_of(each.on)})")
            else:
                word = f"LEFT {_WORDS[each.kind]}" if each.kind in _TESTS else _WORDS[each.kind]
                shared = _shared(each) if number == 1 and rng.random() < 0.5 else None
                criteria = f"ON {all_of(each.on)}" if shared is None else f"USING ({quoted(shared)})"
                text += f" {word} {relation(each)} {criteria}"
        shown = ", ".join(f"{each.sql(ref)} AS {name}" for name, each in self.columns)
        where = f" WHERE {' AND '.join((*asked, *tests))}" if asked or tests else ""
        return f"SELECT {shown} FROM {relation(first)}{text}{where}"

    def clause(self) -> str:
        """Return the WINDOW clause."""
        windows = ", ".join(f"{alias} {interval(us)}" for alias, us in self.windows)
        return f" WINDOW ({windows})" if windows else ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ViewCase:
    """Sources, views over them and over each other, and a query over these."""

    case: Case
    views: Mapping[str, DrawnSelect]
    query: DrawnSelect

    def oracle_sql(self) -> str:
        """Return the query for DuckDB, each view a subquery that shows the event times of its members too."""
        return self._written(self.query, None)[0]

    def _written(self, select: DrawnSelect, forced: int | None) -> tuple[str, list[tuple[str, int | None]]]:
        """Return a SELECT, and (how an event time of it is called, its window) for each member that it shows. `forced`:
        the window of all members.
        """
        text, members = "", list[tuple[str, int | None]]()
        for number, each in enumerate(select.relations):
            window = forced if forced is not None else dict(select.windows).get(each.alias)
            named, own = self._relation(each, window)
            conditions = [*map(_duckdb, each.on), *_within([*members, *own])]
            text += f" {_WORDS[each.kind]} {named} ON {' AND '.join(conditions) or 'TRUE'}" if number else named
            members += [] if each.kind in _TESTS else own
        shown = [f"{_duckdb(each)} AS {name}" for name, each in select.columns]
        taus = [f'{tau} AS "#{number}"' for number, (tau, _) in enumerate(members)]
        where = f" WHERE {' AND '.join(map(_duckdb, select.where))}" if select.where else ""
        sql = f"SELECT {', '.join(shown if select is self.query else (*shown, *taus))} FROM {text}{where}"
        return sql, [(f'"#{number}"', window) for number, (_, window) in enumerate(members)]

    def _relation(self, each: DrawnRelation, window: int | None) -> tuple[str, list[tuple[str, int | None]]]:
        if each.of in self.views:
            inner, taus = self._written(self.views[each.of], window)
            return f"({inner}) {each.alias}", [(f"{each.alias}.{tau}", own) for tau, own in taus]
        source = self.case.source(each.of)
        if source.is_table:
            return f'"{each.of}" {each.alias}', []
        tau = f'epoch_us({each.alias}."{source.time}")'
        return f'"{each.of}" {each.alias}', [(tau, source.window_us if window is None else window)]


def _shared(join: DrawnRelation) -> str | None:
    """Return the column that a join compares, if it is called alike on both sides, and nothing else."""
    names = [name for condition in join.on for _, name in condition.columns]
    is_equality = len(join.on) == 1 and join.on[0].template == "{0} = {1}" and join.kind not in _TESTS
    plain = is_equality and all(side.template is None for side in join.on[0].operands)
    return names[0] if plain and len(names) == 2 and names[0] == names[1] else None


def _duckdb(expression: Expression) -> str:
    return f"({to_duckdb(expression.sql(lambda alias, name: f'{alias}.{quoted(name)}'))})"


def _within(members: list[tuple[str, int | None]]) -> Iterator[str]:
    """Yield that each member is within its window of the newest; one without a row is left out."""
    newest = f"greatest({', '.join(tau for tau, _ in members)})"
    for tau, window in members:
        if window is not None and len(members) > 1:
            yield f"coalesce({newest} - {tau} <= {window}, TRUE)"


def _span_us(source: CaseSource) -> int:
    taus = [] if source.is_table else [tau for tau in source.taus() if tau is not None]
    return max(taus, default=0) - min(taus, default=0)


def view_case(seed: int, *, inner: bool = False) -> ViewCase:
    """Return the case of a seed. `inner`: with inner joins alone."""
    given = random_case(seed, rows_scale=0.5, queries=1)
    rng = random.Random(f"{seed} views")
    sources = tuple(with_nulls(rng, source) for source in given.sources)
    return _Draft(rng, sources, inner=inner).case(given)


@dataclass(slots=True)
class _Draft:
    rng: random.Random
    sources: tuple[CaseSource, ...]
    inner: bool = False
    views: dict[str, DrawnSelect] = field(default_factory=dict)

    def case(self, given: Case) -> ViewCase:
        rng = self.rng
        for number in range(rng.choice((1, 2, 2, 3))):
            self.views[f"v{number}"] = self._select(rng.choice((1, 1, 1, 2, 2)), list(self.views), is_view=True)
        query = self._select(rng.choice((1, 2, 2, 3)), list(self.views), is_view=False)
        within, named = dict[str, str](), dict[str, str]()
        read_by_views = {each.of for view in self.views.values() for each in view.relations}
        views: list[CaseView] = []
        for name, view in self.views.items():
            text, form = view.sql(rng, within), rng.random()
            if form < 0.2 and not view.windows:
                within[name] = text
            elif form < 0.4 and not view.windows and name not in read_by_views:
                named[name] = text
            else:
                views.append(CaseView(name=name, sql=f"{view.clause()} AS {text}"))
        listed = ", ".join(f"{name} AS ({text})" for name, text in named.items())
        asked = CaseQuery(
            name="q0",
            sql=(f"WITH {listed} " if listed else "") + query.sql(rng, within),
            relations=(),
            windows=query.windows,
            conditions=(),
            projection=(),
        )
        case = replace(given, sources=self.sources, queries=(asked,), views=tuple(views))
        return ViewCase(case=case, views=self.views, query=query)

    def _select(self, count: int, views: list[str], *, is_view: bool) -> DrawnSelect:
        rng = self.rng
        streams = [source.name for source in self.sources if not source.is_table]
        names = [source.name for source in self.sources]
        wanted = 0.35 if is_view else 0.8
        first = rng.choice(views) if views and rng.random() < wanted else rng.choice(streams)
        relations, shown = [DrawnRelation(kind="first", alias="a", of=first)], ["a"]
        while len(relations) < count:
            of = rng.choice(views) if views and rng.random() < wanted else rng.choice(names)
            relations.append(self._joined("abcdefgh"[len(relations)], of, relations, shown))
        where = tuple(self._selection(rng.choice(shown), relations) for _ in range(rng.choice((0, 0, 1, 1, 2))))
        columns = tuple(self._columns(shown, relations, is_view=is_view))
        span = max(map(_span_us, self.sources))
        windows = tuple(
            (each.alias, max(1, rng.choice((1, span // 8, span // 4, span // 2, span, 2 * span + 10))))
            for each in relations
            if self._has_stream(each.of) and rng.random() < 0.15
        )
        return DrawnSelect(relations=tuple(relations), where=where, columns=columns, windows=windows)

    def _has_stream(self, of: str) -> bool:
        if of in self.views:
            return any(self._has_stream(each.of) for each in self.views[of].relations)
        return not next(source for source in self.sources if source.name == of).is_table

    def _joined(self, alias: str, of: str, before: list[DrawnRelation], shown: list[str]) -> DrawnRelation:
        rng = self.rng
        kind = "inner" if self.inner else rng.choice(_KINDS)
        added = DrawnRelation(kind=kind, alias=alias, of=of)
        relations, partner = [*before, added], rng.choice(shown)
        on = [self._equality(partner, alias, relations)]
        on += [self._selection(rng.choice((alias, partner)), relations)] if rng.random() < 0.2 else []
        if kind not in _TESTS:
            shown.append(alias)
        return DrawnRelation(kind=kind, alias=alias, of=of, on=tuple(on))

    def columns(self, alias: str, relations: list[DrawnRelation]) -> list[Expression]:
        """Return the columns of a relation that may be read."""
        of = next(each.of for each in relations if each.alias == alias)
        if of in self.views:
            return [column(alias, name, each.kind, each.small) for name, each in self.views[of].columns]
        source = next(source for source in self.sources if source.name == of)
        return [
            column(alias, each.name, each.kind.name, each.kind.small)
            for number, each in enumerate(source.columns)
            if not number or each.kind.name in _SHOWN or each.name == source.time
        ]

    def _equality(self, left: str, right: str, relations: list[DrawnRelation]) -> Expression:
        ours, theirs = self.columns(left, relations), self.columns(right, relations)
        pairs = [(a, b) for a in ours for b in theirs if a.kind == b.kind]
        return equality(*self.rng.choice(pairs)) if pairs and self.rng.random() < 0.4 else equality(ours[0], theirs[0])

    def _selection(self, alias: str, relations: list[DrawnRelation]) -> Expression:
        readable = self.columns(alias, relations)
        if self.rng.random() < 0.2:
            return apply("{0} IS NULL", lambda v: v is None, self.rng.choice(readable), kind="b", strict=False)
        return random_selection(self.rng, readable)

    def _columns(
        self, shown: list[str], relations: list[DrawnRelation], *, is_view: bool
    ) -> Iterator[tuple[str, Expression]]:
        rng = self.rng
        every = [each for alias in shown for each in self.columns(alias, relations)]
        yield "k" if is_view else "c0", self.columns(rng.choice(shown), relations)[0]
        for number in range(1, rng.choice((2, 3, 4))):
            chosen = rng.choice(every)
            computed = chosen.kind in _SHOWN and rng.random() < 0.5
            yield f"c{number}", self._computed(chosen) if computed else chosen

    def _computed(self, operand: Expression) -> Expression:
        """Return a function of a column, often one that is not NULL where the column is."""
        if self.rng.random() < 0.6:
            return derived(operand, self.rng)
        default = "'none'" if operand.kind == "s" else "7"
        return apply(f"coalesce({{0}}, {default})", lambda v: v, operand, kind=operand.kind, strict=False)


__all__ = ["DrawnRelation", "DrawnSelect", "ViewCase", "view_case"]
