"""`tpch-joins`: the joins of seven TPC-H queries over streamed tables, each query alone and all seven at once.

All eight tables are streams: rows arrive in the order of their keys, every table evenly over the same 200 seconds of
event time. The full history counts, so nothing may be forgotten: an order of the first second meets a customer of the
last one.

Paper 002 (MultiStream) measures queries 2, 3 and 5 in this way, without selections and at scale factors 1 to 20;
SASPAR (paper 001) runs these queries among others, with windows.

The queries are 2, 3, 5, 7, 8, 9 and 10, with their selections and without their aggregation. What is kept of a query:
all equalities between two relations, and the conditions on one relation with the parameters of the specification's
validation run (TPC-H 2.4). What is not:

- sums, subqueries, GROUP BY, ORDER BY and LIMIT: each result is one combination of rows, which the query would add up;
  query 2 gives all suppliers of a part, not the cheapest ones;
- LIKE (query 2: types of brass; query 9: green parts), which not every engine compared has in its filters.

In query 7 the two nations are FRANCE and GERMANY in either order. That is written as: each is one of them, and they
differ. Nation occurs twice in queries 7 and 8, as ``n1`` and ``n2``.

Each query gives the row numbers and the event times of its members and the columns that TPC-H computes with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from benchmarks.workloads.case import Case, Request, Workload, alone_and_together
from benchmarks.workloads.joins import Join, JoinQuery, JoinStream, OutputOf, QuerySet
from benchmarks.workloads.tpch_data import TpchInput, prepare_tpch, read_streams
from benchmarks.workloads.tpch_schema import row_column, time_column


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """A query in short: `relations` in FROM order; `equal`: ``relation.column = relation.column``; `values`:
    ``relation.column`` to select besides numbers and times.
    """

    name: str
    relations: tuple[str, ...]
    equal: tuple[str, ...]
    selections: tuple[tuple[str, str], ...] = ()
    conditions: tuple[str, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    values: tuple[str, ...] = ()


_NATIONS = (("n1", "nation"), ("n2", "nation"))

CORES: tuple[Core, ...] = (
    Core(
        name="q2",
        relations=("part", "partsupp", "supplier", "nation", "region"),
        equal=(
            "part.p_partkey = partsupp.ps_partkey",
            "supplier.s_suppkey = partsupp.ps_suppkey",
            "supplier.s_nationkey = nation.n_nationkey",
            "nation.n_regionkey = region.r_regionkey",
        ),
        selections=(("part", "part.p_size = 15"), ("region", "region.r_name = 'EUROPE'")),
        values=("supplier.s_acctbal", "supplier.s_name", "nation.n_name", "partsupp.ps_supplycost"),
    ),
    Core(
        name="q3",
        relations=("customer", "orders", "lineitem"),
        equal=("customer.c_custkey = orders.o_custkey", "lineitem.l_orderkey = orders.o_orderkey"),
        selections=(
            ("customer", "customer.c_mktsegment = 'BUILDING'"),
            ("orders", "orders.o_orderdate < DATE '1995-03-15'"),
            ("lineitem", "lineitem.l_shipdate > DATE '1995-03-15'"),
        ),
        values=("orders.o_orderdate", "orders.o_shippriority", "lineitem.l_extendedprice", "lineitem.l_discount"),
    ),
    Core(
        name="q5",
        relations=("customer", "orders", "lineitem", "supplier", "nation", "region"),
        equal=(
            "customer.c_custkey = orders.o_custkey",
            "lineitem.l_orderkey = orders.o_orderkey",
            "lineitem.l_suppkey = supplier.s_suppkey",
            "customer.c_nationkey = supplier.s_nationkey",
            "supplier.s_nationkey = nation.n_nationkey",
            "nation.n_regionkey = region.r_regionkey",
        ),
        selections=(
            ("region", "region.r_name = 'ASIA'"),
            ("orders", "orders.o_orderdate >= DATE '1994-01-01' AND orders.o_orderdate < DATE '1995-01-01'"),
        ),
        values=("nation.n_name", "lineitem.l_extendedprice", "lineitem.l_discount"),
    ),
    Core(
        name="q7",
        relations=("supplier", "lineitem", "orders", "customer", "n1", "n2"),
        equal=(
            "supplier.s_suppkey = lineitem.l_suppkey",
            "orders.o_orderkey = lineitem.l_orderkey",
            "customer.c_custkey = orders.o_custkey",
            "supplier.s_nationkey = n1.n_nationkey",
            "customer.c_nationkey = n2.n_nationkey",
        ),
        selections=(
            ("n1", "n1.n_name = 'FRANCE' OR n1.n_name = 'GERMANY'"),
            ("n2", "n2.n_name = 'FRANCE' OR n2.n_name = 'GERMANY'"),
            ("lineitem", "lineitem.l_shipdate >= DATE '1995-01-01' AND lineitem.l_shipdate <= DATE '1996-12-31'"),
        ),
        conditions=("n1.n_nationkey <> n2.n_nationkey",),
        aliases=_NATIONS,
        values=(
            "n1.n_name",
            "n2.n_name",
            "lineitem.l_shipdate",
            "lineitem.l_extendedprice",
            "lineitem.l_discount",
        ),
    ),
    Core(
        name="q8",
        relations=("part", "lineitem", "supplier", "orders", "customer", "n1", "region", "n2"),
        equal=(
            "part.p_partkey = lineitem.l_partkey",
            "supplier.s_suppkey = lineitem.l_suppkey",
            "lineitem.l_orderkey = orders.o_orderkey",
            "orders.o_custkey = customer.c_custkey",
            "customer.c_nationkey = n1.n_nationkey",
            "n1.n_regionkey = region.r_regionkey",
            "supplier.s_nationkey = n2.n_nationkey",
        ),
        selections=(
            ("region", "region.r_name = 'AMERICA'"),
            ("orders", "orders.o_orderdate >= DATE '1995-01-01' AND orders.o_orderdate <= DATE '1996-12-31'"),
            ("part", "part.p_type = 'ECONOMY ANODIZED STEEL'"),
        ),
        aliases=_NATIONS,
        values=("orders.o_orderdate", "lineitem.l_extendedprice", "lineitem.l_discount", "n2.n_name"),
    ),
    Core(
        name="q9",
        relations=("part", "partsupp", "lineitem", "supplier", "orders", "nation"),
        equal=(
            "part.p_partkey = partsupp.ps_partkey",
            "part.p_partkey = lineitem.l_partkey",
            "partsupp.ps_partkey = lineitem.l_partkey",
            "partsupp.ps_suppkey = lineitem.l_suppkey",
            "supplier.s_suppkey = lineitem.l_suppkey",
            "orders.o_orderkey = lineitem.l_orderkey",
            "supplier.s_nationkey = nation.n_nationkey",
        ),
        values=(
            "nation.n_name",
            "orders.o_orderdate",
            "lineitem.l_extendedprice",
            "lineitem.l_discount",
            "lineitem.l_quantity",
            "partsupp.ps_supplycost",
        ),
    ),
    Core(
        name="q10",
        relations=("customer", "orders", "lineitem", "nation"),
        equal=(
            "customer.c_custkey = orders.o_custkey",
            "lineitem.l_orderkey = orders.o_orderkey",
            "customer.c_nationkey = nation.n_nationkey",
        ),
        selections=(
            ("orders", "orders.o_orderdate >= DATE '1993-10-01' AND orders.o_orderdate < DATE '1994-01-01'"),
            ("lineitem", "lineitem.l_returnflag = 'R'"),
        ),
        values=("customer.c_name", "customer.c_acctbal", "nation.n_name", "lineitem.l_extendedprice"),
    ),
)


def core_queries(streams: Iterable[JoinStream]) -> tuple[JoinQuery, ...]:
    """Return the seven queries over TPC-H's streams, which know the types of their columns."""
    types = {(stream.name, column.name): column.type for stream in streams for column in stream.columns}
    return tuple(_query(core, types) for core in CORES)


def _query(core: Core, types: dict[tuple[str, str], str]) -> JoinQuery:
    stream_of = dict(core.aliases)
    wanted = [
        (relation, column(stream_of.get(relation, relation)))
        for relation in core.relations
        for column in (row_column, time_column)
    ]
    wanted += [_split(value) for value in core.values]
    return JoinQuery(
        name=core.name,
        relations=core.relations,
        joins=_joins(core.equal),
        outputs=tuple(
            OutputOf(relation=relation, column=column, type=types[stream_of.get(relation, relation), column])
            for relation, column in wanted
        ),
        selections=core.selections,
        conditions=core.conditions,
        aliases=core.aliases,
    )


def _joins(equalities: Iterable[str]) -> tuple[Join, ...]:
    """Return one join for each pair of relations, with all its pairs of columns."""
    pairs: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for equality in equalities:
        (left, mine), (right, theirs) = map(_split, equality.split(" = "))
        pairs.setdefault((left, right), []).append((mine, theirs))
    return tuple(Join(left=left, right=right, columns=tuple(columns)) for (left, right), columns in pairs.items())


def _split(qualified: str) -> tuple[str, str]:
    relation, _, column = qualified.partition(".")
    return relation, column


FILES = 10


def cases(request: Request) -> Iterator[Case]:
    """Yield for each scale factor a case for each query, then one for all of them."""
    for scale in request.sizes:
        wanted = TpchInput(scale=scale, files=request.files or FILES)
        data = prepare_tpch(wanted, request.directory)
        streams = read_streams(data)
        queries = core_queries(streams)
        for name, asked in alone_and_together(queries):
            yield Case(
                name=f"{name}, scale {scale:g}",
                questions=QuerySet.over(streams, asked),
                data=data,
                files=wanted.files,
                span_s=wanted.span_s,
                size=scale,
            )


WORKLOAD = Workload(
    name="tpch-joins",
    summary="the joins of TPC-H Q2, Q3, Q5, Q7, Q8, Q9 and Q10, full history, one by one and together",
    source="TPC-H; papers 001 and 002",
    unit="scale factor",
    sizes=(0.02,),
    cases=cases,
)
