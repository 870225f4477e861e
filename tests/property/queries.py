"""Random join queries: a join graph first, then one of the many ways to write it in Spark SQL."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.property.case import CaseQuery, CaseSource, Windows, quoted
from tests.property.expressions import (
    DATES,
    DECIMALS,
    INSTANTS,
    INTEGERS,
    Expression,
    apply,
    column,
    derived,
    drawn_by_kind,
    either,
    equal,
    equality,
    fields,
    greater,
    literal,
)
from tests.property.thetas import random_theta
from tests.property.values import BY_NAME, CALENDAR, NESTED, SPANS, TEXTS_OF_OTHERS, may_meet

Ref = Callable[[str, str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Thetas:
    """How often a theta predicate stands in the place of an equality, and beside one."""

    instead: float
    beside: float


_RARELY_MIXED = TEXTS_OF_OTHERS | DECIMALS | {"big", "point"}
"""Kinds that meet another one only if they are not mostly given one of their own."""

NO_THETAS = Thetas(instead=0.0, beside=0.0)
CROSS_ROWS = 4
"""A source this small may be joined by CROSS JOIN."""


@dataclass(slots=True, kw_only=True)
class _Draft:
    """A query being made. `edges`: (lower position, higher position, condition, USING column or None)."""

    rng: random.Random
    aliases: list[str]
    sources: list[CaseSource]
    edges: list[tuple[int, int, Expression, str | None]] = field(default_factory=list)
    selections: list[tuple[int, Expression]] = field(default_factory=list)
    cross: set[int] = field(default_factory=set)

    def columns(self, position: int) -> list[Expression]:
        found = self.sources[position].columns
        return [column(self.aliases[position], item.name, item.kind.name, item.kind.small) for item in found]


def random_query(
    rng: random.Random,
    name: str,
    sources: tuple[CaseSource, ...],
    relations: int,
    spans_us: list[int],
    thetas: Thetas = NO_THETAS,
) -> CaseQuery:
    """Return a query over `relations` relations, at least one of them a stream."""
    draft = _Draft(rng=rng, aliases=[], sources=_choose_sources(rng, sources, relations))
    draft.aliases = _choose_aliases(rng, draft.sources)
    _connect(draft)
    _add_thetas(draft, thetas, spans_us)
    for position in range(relations):
        for _ in range(rng.choice((0, 0, 1, 1, 2)) if relations < 4 else rng.choice((0, 0, 0, 1))):
            draft.selections.append((position, random_selection(rng, draft.columns(position))))
    return _Writer(draft, name, _choose_windows(draft, spans_us)).query()


def _add_thetas(draft: _Draft, thetas: Thetas, spans_us: list[int]) -> None:
    """Put theta predicates in the place of some equalities, and beside some."""
    rng, edges = draft.rng, []
    for low, high, condition, using in draft.edges:
        instead = rng.random() < thetas.instead
        if not instead:
            edges.append((low, high, condition, using))
        if instead or rng.random() < thetas.beside:
            for _ in range(rng.choice((1, 1, 1, 2))):
                times = [_time_of(draft, position) for position in (low, high)]
                both = (times[0], times[1]) if times[0] is not None and times[1] is not None else None
                theta = random_theta(rng, draft.columns(low), draft.columns(high), both, spans_us)
                edges.append((low, high, theta, None))
    draft.edges = edges


def _time_of(draft: _Draft, position: int) -> Expression | None:
    time = draft.sources[position].time
    return None if time is None else next(each for each in draft.columns(position) if each.columns[0][1] == time)


def _choose_sources(rng: random.Random, sources: tuple[CaseSource, ...], relations: int) -> list[CaseSource]:
    pool = list(sources)
    if rng.random() < 0.6:
        rng.shuffle(pool)
        chosen = (pool * relations)[:relations]
    else:
        chosen = [rng.choice(pool) for _ in range(relations)]
    if all(source.is_table for source in chosen):
        chosen[rng.randrange(relations)] = next(source for source in sources if not source.is_table)
    rng.shuffle(chosen)
    return chosen


def _choose_aliases(rng: random.Random, sources: list[CaseSource]) -> list[str]:
    names = [source.name for source in sources]
    short = rng.random() < 0.8 or len(set(names)) < len(names)
    return (
        [f"{'abcdefgh'[n]}" if rng.random() < 0.5 else f"{name}_{n}" for n, name in enumerate(names)]
        if short
        else names
    )


def _choose_windows(draft: _Draft, spans_us: list[int]) -> Windows:
    rng = draft.rng
    pairs = zip(draft.aliases, draft.sources, strict=True)
    streams = [alias for alias, source in pairs if not source.is_table]
    return tuple((alias, rng.choice([None, *spans_us])) for alias in streams if rng.random() < 0.35)


def _connect(draft: _Draft) -> None:
    """Draw the join graph: a spanning tree of some shape, then edges that close cycles."""
    rng, count = draft.rng, len(draft.sources)
    shape = rng.choice(("chain", "star", "tree", "cycle", "clique"))
    if shape == "clique" and rng.random() < 0.5 and _same_key_clique(draft):
        return
    for position in range(1, count):
        if draft.sources[position].rows.num_rows <= CROSS_ROWS and rng.random() < 0.4:
            draft.cross.add(position)
            continue
        earlier = [other for other in range(position) if other not in draft.cross] or [0]
        partner = {"chain": earlier[-1], "cycle": earlier[-1], "star": earlier[0]}.get(shape, rng.choice(earlier))
        _add_edge(draft, partner, position)
        if rng.random() < 0.15:
            _add_edge(draft, partner, position)
    inner = [position for position in range(count) if position not in draft.cross]
    if shape == "cycle" and len(inner) > 2:
        _add_edge(draft, inner[0], inner[-1])
    if shape == "clique":
        for low, high in [(low, high) for low in inner for high in inner if low < high]:
            if rng.random() < 0.5 and not any(edge[:2] == (low, high) for edge in draft.edges):
                _add_edge(draft, low, high)


def _same_key_clique(draft: _Draft) -> bool:
    """Join everything on the column ``k`` that every source has, each pair or just enough pairs."""
    every = draft.rng.random() < 0.5
    keys = [draft.columns(position)[0] for position in range(len(draft.sources))]
    for high in range(1, len(keys)):
        for low in range(high) if every else [draft.rng.randrange(high)]:
            draft.edges.append((low, high, _oriented(draft.rng, keys[low], keys[high]), None))
    return True


def _oriented(rng: random.Random, left: Expression, right: Expression) -> Expression:
    return equality(left, right) if rng.random() < 0.5 else equality(right, left)


def _add_edge(draft: _Draft, low: int, high: int) -> None:
    """Join two relations on some pair of comparable columns or of functions of them."""
    rng = draft.rng
    left, right = draft.columns(low), draft.columns(high)
    if rng.random() < 0.5:
        using = left[0].columns[0][1]
        draft.edges.append((low, high, equality(left[0], right[0]), using))
        return
    left, right = ([found for each in side for found in _comparable(rng, each)] for side in (left, right))
    pairs = [(a, b) for a in left for b in right if may_meet(a.kind, b.kind)]
    a, b = drawn_by_kind(rng, [pair for pair in pairs if _is_likely(draft, low, high, pair)] or pairs)
    if a.kind != b.kind and rng.random() < (0.2 if {a.kind, b.kind} & _RARELY_MIXED else 0.7):
        a, b = rng.choice([(a, b) for a, b in pairs if a.kind == b.kind] or pairs)
    decimals = [(a, b) for a, b in pairs if a.kind != b.kind and {a.kind, b.kind} <= DECIMALS | {"big", "point"}]
    if a.kind in DECIMALS and decimals:
        a, b = rng.choice(decimals)
    if rng.random() < (0.7 if a.kind == "s" else 0.3):
        a, b = _matching_functions(rng, a, b)
    draft.edges.append((low, high, _oriented(rng, a, b), None))


def _comparable(rng: random.Random, operand: Expression) -> list[Expression]:
    """Return the column, or of a nested one what is in it."""
    return [make() for make in fields(operand)] if operand.kind in NESTED else [operand]


def _is_likely(draft: _Draft, low: int, high: int, pair: tuple[Expression, Expression]) -> bool:
    """Tell whether the two columns often meet: event times do with each other only; truth values are poor keys."""
    names = [(position, item.columns[0][1]) for position, item in zip((low, high), pair, strict=True)]
    timed = sum(name == draft.sources[position].time for position, name in names)
    return timed != 1 and (pair[0].kind != "b" or draft.rng.random() < 0.1)


def _matching_functions(rng: random.Random, a: Expression, b: Expression) -> tuple[Expression, Expression]:
    """Wrap one or both sides in a function, keeping them comparable."""
    for _ in range(8):
        left = derived(a, rng) if rng.random() < 0.7 else a
        right = derived(b, rng) if rng.random() < 0.4 else b
        if may_meet(left.kind, right.kind) and (left is not a or right is not b):
            return left, right
    return a, b


def random_selection(rng: random.Random, columns: list[Expression]) -> Expression:
    """Return a condition on one relation that usually keeps most rows."""
    operand = rng.choice(columns)
    if rng.random() < 0.15:
        operand = derived(operand, rng)
    kind = operand.kind
    choices = [
        lambda: apply("{0} IS NOT NULL", lambda v: v is not None, operand, kind="b", strict=False),
        lambda: _reflexive(operand),
    ]
    if rng.random() < 0.1:
        choices.append(lambda: apply("{0} IS NULL", lambda v: v is None, operand, kind="b", strict=False))
    if kind in INTEGERS | DECIMALS | frozenset({"f", "r", "big", "point", "ntext"}):
        choices += [
            lambda: apply("{0} > 1", lambda v: greater(v, 1), operand, kind="b"),
            lambda: apply("{0} <= 7", lambda v: not greater(v, 7), operand, kind="b"),
            lambda: apply(
                "{0} BETWEEN -1 AND 8", lambda v: not greater(-1, v) and not greater(v, 8), operand, kind="b"
            ),
            lambda: apply("{0} NOT IN (1, 3)", lambda v: not equal(v, 1) and not equal(v, 3), operand, kind="b"),
            lambda: apply("NOT ({0} = 2)", lambda v: not equal(v, 2), operand, kind="b"),
        ]
    if kind == "s":
        choices += [
            lambda: apply("{0} LIKE '%b%' OR {0} < 'z'", lambda v: "b" in v or v.encode() < b"z", operand, kind="b"),
            lambda: apply("{0} <> ''", lambda v: v != "", operand, kind="b"),
            lambda: apply(
                "{0} IN ('a', 'A', 'It\\'s', '1', 'é')", lambda v: v in ("a", "A", "It's", "1", "é"), operand, kind="b"
            ),
        ]
    if kind in DATES:
        choices.append(
            lambda: apply("{0} >= DATE '2024-02-28'", lambda v: v.isoformat() >= "2024-02-28", operand, kind="b")
        )
    if kind in INSTANTS:
        choices.append(
            lambda: apply(
                f"{{0}} < {rng.choice(('TIMESTAMP', 'TIMESTAMP_NTZ'))} '2024-03-02 12:00:00'",
                lambda v: v.isoformat() < "2024-03-02T12",
                operand,
                kind="b",
            )
        )
    if kind == "dtext":
        choices.append(
            lambda: apply("{0} < DATE '2024-03-05'", lambda v: v < "2024-03-05", operand, kind="b"),
        )
    if kind == "v":
        choices.append(lambda: apply("{0} <> X'61'", lambda v: v != b"a", operand, kind="b"))
    if kind in SPANS:
        day = 86_400_000_000
        choices.append(lambda: apply(f"{{0}} <= INTERVAL {day} MICROSECONDS", lambda v: v <= day, operand, kind="b"))
    if kind in CALENDAR:
        choices.append(lambda: apply("{0} > INTERVAL 3 MONTHS", lambda v: v > 3, operand, kind="b"))
    if kind in NESTED:
        choices.append(lambda: random_selection(rng, [make() for make in fields(operand)]))
    if kind == "b":
        choices.append(lambda: operand)
    first = rng.choice(choices)()
    if rng.random() < 0.15:
        return apply("({0} OR {1})", either, first, random_selection(rng, columns), kind="b", strict=False)
    return first


def _reflexive(operand: Expression) -> Expression:
    return apply("{0} = {1}", equal, operand, operand, kind="b")


class _Writer:
    """Writes a draft as SQL."""

    def __init__(self, draft: _Draft, name: str, windows: Windows) -> None:
        self.draft, self.name, self.windows, self.rng = draft, name, windows, draft.rng
        self.merged = {0}
        self.using: str | None = None
        self.shout = self.rng.random() < 0.1
        self.bare = self.rng.random() < 0.3
        counts: dict[str, int] = {}
        for source in draft.sources:
            for item in source.columns:
                counts[item.name.lower()] = counts.get(item.name.lower(), 0) + 1
        self.unique = {found for found, count in counts.items() if count == 1}

    def ref(self, alias: str, name: str) -> str:
        """Write one column reference: qualified or bare, in the user's or in capital letters."""
        text = quoted(name)
        if self.shout and text == name:
            text = text.upper()
        if self.bare and name.lower() in self.unique and self.rng.random() < 0.7:
            return text
        if name == self.using and len(self.merged) == len(self.draft.sources) and self.rng.random() < 0.5:
            return text
        return f"{alias.upper() if self.shout else alias}.{text}"

    def query(self) -> CaseQuery:
        draft, rng = self.draft, self.rng
        text, where = self._from()
        select, projection, star = self._select()
        lines = [f"SELECT {select}", f"FROM {text}"]
        if where:
            rng.shuffle(where)
            if len(where) > 1 and rng.random() < 0.2:
                where[:2] = [f"({where[0]} {rng.choice(('AND', 'and'))} {where[1]})"]
            lines.append("WHERE " + " AND ".join(where))
        if rng.random() < 0.05:
            lines.insert(1, "-- it's a comment; not the end\n")
        conditions = [edge[2] for edge in draft.edges] + [selection for _, selection in draft.selections]
        return CaseQuery(
            name=self.name,
            sql=rng.choice((" ", "\n  ")).join(lines),
            relations=tuple((alias, source.name) for alias, source in zip(draft.aliases, draft.sources, strict=True)),
            windows=self.windows,
            conditions=tuple(conditions),
            projection=projection,
            star=star,
        )

    def _relation(self, position: int) -> str:
        alias, source = self.draft.aliases[position], self.draft.sources[position].name
        return source if alias == source else f"{source} {'AS ' if self.rng.random() < 0.3 else ''}{alias}"

    def _condition(self, expression: Expression) -> str:
        text = expression.sql(self.ref)
        return f"({text})" if " OR " in text or self.rng.random() < 0.1 else text

    def _from(self) -> tuple[str, list[str]]:
        """Return the FROM clause and the conditions left for WHERE."""
        draft, rng = self.draft, self.rng
        commas_from = 1 if rng.random() < 0.35 else rng.randrange(1, len(draft.sources) + 3)
        text, where = self._relation(0), []
        pending = [[edge for edge in draft.edges if edge[1] == position] for position in range(len(draft.sources))]
        selections = [[self._condition(s) for p, s in draft.selections if p == n] for n in range(len(draft.sources))]
        where += selections[0]
        for position in range(1, len(draft.sources)):
            relation, edges = self._relation(position), pending[position]
            if position in draft.cross:
                text += f" CROSS JOIN {relation}"
                where += selections[position] + [self._condition(edge[2]) for edge in edges]
            elif position >= commas_from and not any(
                later in draft.cross for later in range(position + 1, len(draft.sources))
            ):
                text += f", {relation}"
                commas_from = position
                where += selections[position] + [self._condition(edge[2]) for edge in edges]
            else:
                joined, rest = self._join(position, relation, edges, selections[position])
                text += joined
                where += rest
        return text, where

    def _join(
        self, position: int, relation: str, edges: list[tuple[int, int, Expression, str | None]], selections: list[str]
    ) -> tuple[str, list[str]]:
        """Return one JOIN with USING or ON, and the conditions left for WHERE."""
        rng = self.rng
        kind = rng.choice(("JOIN", "JOIN", "INNER JOIN", "join"))
        names = {edge[3] for edge in edges if edge[3] is not None}
        if len(self.merged) == position and len(edges) == 1 and names and rng.random() < 0.7:
            (using,) = names
            self.using = using
            self.merged.add(position)
            return f" {kind} {relation} USING ({quoted(using)})", selections
        conditions = [self._condition(edge[2]) for edge in edges]
        rng.shuffle(conditions)
        kept = rng.randrange(1, len(conditions) + 1)
        on, rest = conditions[:kept], conditions[kept:]
        (on if rng.random() < 0.3 else rest).extend(selections)
        return f" {kind} {relation} ON {' AND '.join(on)}", rest

    def _select(self) -> tuple[str, tuple[Expression, ...], tuple[tuple[str, str], ...]]:
        """Return the select list, its columns written out, and the order of a bare star where dialects differ."""
        draft, rng = self.draft, self.rng
        columns = [draft.columns(position) for position in range(len(draft.sources))]
        every = [item for found in columns for item in found if BY_NAME[item.kind].is_kept]
        if rng.random() < 0.2 and all(BY_NAME[item.kind].is_kept for found in columns for item in found):
            merged = [item for item in every if self._is_merged(*item.columns[0])]
            expanded = merged[:1] + [item for item in every if not self._is_merged(*item.columns[0])]
            return "*", tuple(expanded), tuple(item.columns[0] for item in expanded)
        texts, projection = [], []
        for number in range(rng.randrange(1, 6)):
            position = rng.randrange(len(draft.sources))
            if rng.random() < 0.1 and all(BY_NAME[item.kind].is_kept for item in columns[position]):
                texts.append(f"{draft.aliases[position]}.*")
                projection += columns[position]
                continue
            item = self._output(every)
            alias = rng.choice(("", f" AS c{number}", f" c{number}", " AS dup"))
            texts.append(item.sql(self.ref) + alias)
            projection.append(item)
        return ", ".join(texts), tuple(projection), ()

    def _is_merged(self, alias: str, name: str) -> bool:
        return name == self.using and self.draft.aliases.index(alias) in self.merged

    def _output(self, every: list[Expression]) -> Expression:
        rng = self.rng
        item = rng.choice(every)
        roll = rng.random()
        if roll < 0.6:
            return item
        if roll < 0.75:
            return derived(item, rng)
        if roll < 0.8:
            return literal("1", 1, "i")
        other = rng.choice([found for found in every if found.kind == item.kind])
        if item.kind in "il":
            return apply("{0} + {1}", lambda a, b: a + b, item, other, kind=item.kind)
        if item.kind == "s":
            return apply("{0} || {1}", lambda a, b: a + b, item, other, kind=item.kind)
        return apply(
            "coalesce({0}, {1})", lambda a, b: b if a is None else a, item, other, kind=item.kind, strict=False
        )
