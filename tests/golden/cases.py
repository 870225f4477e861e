"""Query sets and statistics whose EXPLAIN is kept to the letter, and variants for which nothing may change.

What a solver would choose is written out here, so that a better solver changes no file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from plait.optimizer.assemble.covering import cover
from plait.optimizer.probe_orders import ProbeOrder
from plait.plan.expected import Solution
from plait.plan.explain import EdgeCount, Measured, StoreCount
from plait.plan.strategy_names import DEFAULT_STRATEGY
from plait.query.model import Query, Source
from tests.unit.optimizer.queries import equality, query, stream, table


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is planned, how, and in which formats it is kept.

    `orders` and `wide` say what a strategy would otherwise decide, `solution` what its solver would have said.
    """

    queries: tuple[Query, ...]
    sources: tuple[Source, ...]
    strategy: str = DEFAULT_STRATEGY
    parallelism: int = 4
    formats: tuple[str, ...] = ("text",)
    orders: tuple[ProbeOrder, ...] = ()
    wide: tuple[Query, ...] = ()
    solution: Solution | None = None
    measured: Measured | None = None


_PAPER_SOURCES: tuple[Source, ...] = tuple(
    stream(name, rate=10, distinct={"a": 100, "b": 200 / 3, "c": 100}) for name in "rstu"
)
_PAPER_QUERIES = (
    query("q1", {"r": "r", "s": "s", "t": "t"}, ["r.a = s.a", "s.b = t.b"], select=["r.v", "t.v"]),
    query("q2", {"s": "s", "t": "t", "u": "u"}, ["s.b = t.b", "t.c = u.c"], select=["s.v", "u.v"]),
)

_SHOP_SOURCES: tuple[Source, ...] = (
    stream("orders", rate=1_000, distinct={"id": 30_000, "cust": 5_000}, window=30),
    stream("lineitem", rate=4_000, distinct={"oid": 30_000, "part": 2_000}, window=30),
    stream("clicks", rate=20_000, distinct={"cust": 5_000}, window=None, keep="all", columns=("ts", "cust", "page")),
    table("part", rows=2_000),
    table("nation", rows=25, distinct={"id": 25}),
)
_SHOP_QUERIES = (
    query(
        "late",
        {"o": "orders", "l": "lineitem", "p": "part"},
        ["o.id = l.oid", "l.part = p.id"],
        where={"l": ["`qty` > 5"]},
        tables={"part"},
        windows={"o": 30, "l": 30},
        select=["o.id", "l.qty", "p.name"],
    ),
    query(
        "big",
        {"x": "orders", "y": "lineitem"},
        ["x.id = y.oid"],
        where={"y": ["`qty` > 5"]},
        windows={"x": 30, "y": 30},
        select=["x.id"],
    ),
    query(
        "visits",
        {"o": "orders", "c": "clicks", "n": "nation"},
        [equality("o.cust = c.cust", "bigint"), equality("o.lower(`country`) = n.lower(`name`)", "string")],
        tables={"nation"},
        windows={"o": 5, "c": None},
        select=["c.page", "n.name"],
    ),
)


def _order(query: str, *units: str, fills: bool = False) -> ProbeOrder:
    return ProbeOrder(query=query, units=tuple(tuple(unit) for unit in units), fills=fills)


_BY_WAY_OF_ST = (
    _order("q1", "r", "st"),
    _order("q1", "s", "t", "r"),
    _order("q1", "t", "s", "r"),
    _order("q2", "s", "t", "u"),
    _order("q2", "t", "s", "u"),
    _order("q2", "u", "st"),
    _order("q1", "s", "t", fills=True),
    _order("q1", "t", "s", fills=True),
)
_ST = "s⋈t~ea7b2a4c"
_SECOND_US = 1_000_000

_WIDE_SOURCES: tuple[Source, ...] = (
    stream("r", rate=1_000, distinct={"a": 500}, window=60),
    stream("s", rate=1_000, distinct={"a": 500}, window=60),
)
_WIDE_QUERIES = (
    query("all", {"r": "r", "s": "s"}, ["r.a = s.a"], windows={"r": 60, "s": 60}, select=["r.v", "s.v"]),
    query(
        "some", {"r": "r", "s": "s"}, ["r.a = s.a"], where={"s": ["`v` > 5"]}, windows={"r": 5, "s": 60}, select=["r.v"]
    ),
)


def _renamed() -> tuple[Query, ...]:
    """The queries of the shop in another order, with other aliases, other FROM orders and turned equalities."""
    visits = query(
        "visits",
        {"a": "nation", "b": "orders", "z": "clicks"},
        [equality("a.lower(`name`) = b.lower(`country`)", "string"), equality("z.cust = b.cust", "bigint")],
        tables={"nation"},
        windows={"b": 5, "z": None},
        select=["a.name", "z.page"],
    )
    late = query(
        "late",
        {"k": "part", "m": "lineitem", "n": "orders"},
        ["m.part = k.id", "m.oid = n.id"],
        where={"m": ["`qty` > 5"]},
        tables={"part"},
        windows={"m": 30, "n": 30},
        select=["k.name", "m.qty", "n.id"],
    )
    big = query(
        "big",
        {"l": "lineitem", "o": "orders"},
        ["o.id = l.oid"],
        where={"l": ["`qty` > 5"]},
        windows={"o": 30, "l": 30},
        select=["o.id"],
    )
    return visits, late, big


CASES: Mapping[str, Case] = MappingProxyType(
    {
        "paper_shared": Case(
            queries=_PAPER_QUERIES,
            sources=_PAPER_SOURCES,
            strategy="greedy",
            parallelism=1,
            formats=("text", "mermaid"),
        ),
        "paper_independent": Case(
            queries=_PAPER_QUERIES, sources=_PAPER_SOURCES, parallelism=1, strategy="independent"
        ),
        "paper_dppick": Case(queries=_PAPER_QUERIES, sources=_PAPER_SOURCES, parallelism=1, strategy="dppick"),
        "shop_greedy": Case(queries=_SHOP_QUERIES, sources=_SHOP_SOURCES, strategy="greedy"),
        "paper_fixed": Case(queries=_PAPER_QUERIES, sources=_PAPER_SOURCES, parallelism=1, strategy="fixed"),
        "shop": Case(queries=_SHOP_QUERIES, sources=_SHOP_SOURCES, formats=("text", "json", "mermaid")),
        "shop_selectivity": Case(queries=_SHOP_QUERIES, sources=_SHOP_SOURCES, strategy="selectivity"),
        "self_join": Case(
            queries=(
                query(
                    "pairs",
                    {"x": "flights", "y": "flights"},
                    ["x.tail = y.tail", "x.dest = y.origin"],
                    windows={"x": 7_200, "y": 7_200},
                    where={"x": ["`late` > 15"], "y": ["`late` > 15"]},
                    select=["x.tail", "y.late"],
                ),
                query("all", {"f": "flights"}, select=["f.tail"], windows={"f": 7_200}),
            ),
            sources=(stream("flights", rate=0.01),),
            formats=("text", "mermaid"),
        ),
        "cycle": Case(
            queries=(query("tri", {"r": "r", "s": "s", "t": "t"}, ["r.a = s.a", "s.b = t.b", "t.c = r.c"]),),
            sources=_PAPER_SOURCES,
        ),
        "cross": Case(
            queries=(query("threshold", {"r": "r", "s": "s", "n": "limits"}, ["r.a = s.a"], tables={"limits"}),),
            sources=(*_PAPER_SOURCES, table("limits", rows=1)),
        ),
        "odd_names": Case(
            queries=(
                query(
                    'odd "name" `q`',
                    {"a": "my stream", "b": "r→s"},
                    ["a.`the key` = b.k"],
                    where={"a": ["`x` = '`[<#;|>]`'\n AND `y` LIKE \"%\""]},
                    select=["a.the column"],
                ),
            ),
            sources=(stream("my stream"), stream("r→s")),
            formats=("text", "json", "mermaid"),
        ),
        "passed_through": Case(
            queries=(query("big", {"r": "r"}, where={"r": ["`v` > 1"]}, select=["r.v"]),),
            sources=_PAPER_SOURCES,
            formats=("text", "mermaid"),
        ),
        "stored_join": Case(
            queries=_PAPER_QUERIES,
            sources=_PAPER_SOURCES,
            orders=_BY_WAY_OF_ST,
            solution=Solution(solver="highs", objective=700.0, bound=693.0, gap=0.01),
            formats=("text", "json", "mermaid"),
        ),
        "stored_join_measured": Case(
            queries=_PAPER_QUERIES,
            sources=_PAPER_SOURCES,
            orders=_BY_WAY_OF_ST,
            measured=Measured(
                batch=7,
                batches=3,
                sampled=44,
                edges=tuple(
                    EdgeCount(edge=edge, probe_tuples=count, span_us=span_us)
                    for edge, count, span_us in (
                        (f"r→{_ST}", 900, 90 * _SECOND_US),
                        ("s→t", 3_600, 90 * _SECOND_US),
                        ("s→t→r", 0, 90 * _SECOND_US),
                        ("s→t→u", 1_500, 90 * _SECOND_US),
                        ("t→s", 100, None),
                        ("t→s→r", 100, None),
                        ("t→s→u", 100, None),
                        (f"u→{_ST}", 100, 90 * _SECOND_US),
                    )
                ),
                stores=(
                    StoreCount(store="r", rows=110, bytes=2_400),
                    StoreCount(store="s", rows=90, bytes=2_000),
                    StoreCount(store=_ST, rows=2_000_000, bytes=96_000_000),
                    StoreCount(store="t", rows=0, bytes=0),
                    StoreCount(store="u", rows=130, bytes=2_500),
                ),
            ),
            formats=("text", "json"),
        ),
        "split": Case(
            queries=_WIDE_QUERIES,
            sources=_WIDE_SOURCES,
            orders=tuple(_order(name, *pair) for name in ("all", "some") for pair in ("rs", "sr")),
            wide=cover(_WIDE_QUERIES, lambda _, relation: relation.source),
            formats=("text", "json", "mermaid"),
        ),
        "groups": Case(queries=_WIDE_QUERIES, sources=_WIDE_SOURCES, strategy="adhoc"),
        "nothing": Case(queries=(), sources=_PAPER_SOURCES, formats=("text", "json", "mermaid")),
    }
)

UNCHANGED: Mapping[str, Case] = MappingProxyType(
    {"shop": Case(queries=_renamed(), sources=_SHOP_SOURCES)},
)
"""Other ways to ask for a case of the same name: the plan is the same but for aliases."""
