"""The 14 TPC-H queries of paper 001 (section V.B) with sliding windows: as Plait's SQL, and as chains of joins.

The chains are what an engine of binary joins carries out: each join has both its inputs sent by its key, and its result
is sent by the key of the next. They begin where selections leave least. Nation and region are tables that every task
has, so what they select is written as a condition on who refers to them. An aggregate of few groups is combined before
it is sent (queries 1 and 6 send next to nothing); one by part or order is not: hardly two rows of a batch are of one.

`SQL` are the same questions as one would ask Plait; `refused` tells which of them it does not run, and why.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.workloads.joins import JoinStream
from benchmarks.workloads.tpch_data import read_streams
from plait.sql.script.check import check_script

WINDOW_S = 20
"""The paper's windows of an hour, at the pace of streams that last 200 seconds."""

SETS = ((1, ("q3",)), (2, ("q1", "q3")), (4, ("q1", "q3", "q4", "q5")))
"""The smaller sets of queries, as in the paper; 8 are the first eight, 14 all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A relation that joins a chain by its `key`, which is equal to `on` among what was joined before (nothing of the
    first). `where`: its selection; `having`: what its aggregate by the same key says of what it is joined to;
    `columns`: what the query needs of it. `is_aggregate`: grouped by key, not joined.
    """

    relation: str
    key: tuple[str, ...]
    on: tuple[str, ...] = ()
    where: str = "true"
    having: str = "true"
    columns: tuple[str, ...] = ()
    is_aggregate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainQuery:
    """The arms of a query in the order of its joins."""

    name: str
    arms: tuple[Arm, ...]

    @property
    def joined(self) -> tuple[Arm, ...]:
        """The arms without aggregates of their own."""
        return tuple(arm for arm in self.arms if not arm.is_aggregate)


def _in(column: str, names: str, by: str = "n_name") -> str:
    places = "nation JOIN region ON n_regionkey = r_regionkey"
    return f"{column} IN (SELECT n_nationkey FROM {places} WHERE {by} IN ({names}))"


_TWO = "'FRANCE', 'GERMANY'"
_PRICE = ("l_extendedprice", "l_discount")

CHAINS: tuple[ChainQuery, ...] = (
    ChainQuery(name="q1", arms=()),
    ChainQuery(
        name="q3",
        arms=(
            Arm(relation="customer", key=("c_custkey",), where="c_mktsegment = 'BUILDING'"),
            Arm(
                relation="orders",
                key=("o_custkey",),
                on=("c_custkey",),
                where="o_orderdate < DATE '1995-03-15'",
                columns=("o_orderkey", "o_orderdate", "o_shippriority"),
            ),
            Arm(
                relation="lineitem",
                key=("l_orderkey",),
                on=("o_orderkey",),
                where="l_shipdate > DATE '1995-03-15'",
                columns=_PRICE,
            ),
        ),
    ),
    ChainQuery(
        name="q4",
        arms=(
            Arm(
                relation="orders",
                key=("o_orderkey",),
                where="o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01'",
                columns=("o_orderpriority",),
            ),
            Arm(relation="lineitem", key=("l_orderkey",), on=("o_orderkey",), where="l_commitdate < l_receiptdate"),
        ),
    ),
    ChainQuery(
        name="q5",
        arms=(
            Arm(
                relation="customer",
                key=("c_custkey",),
                where=_in("c_nationkey", "'ASIA'", "r_name"),
                columns=("c_nationkey",),
            ),
            Arm(
                relation="orders",
                key=("o_custkey",),
                on=("c_custkey",),
                where="o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'",
                columns=("o_orderkey",),
            ),
            Arm(relation="lineitem", key=("l_orderkey",), on=("o_orderkey",), columns=("l_suppkey", *_PRICE)),
            Arm(
                relation="supplier",
                key=("s_suppkey",),
                on=("l_suppkey",),
                where=_in("s_nationkey", "'ASIA'", "r_name"),
                columns=("s_nationkey",),
            ),
        ),
    ),
    ChainQuery(name="q6", arms=()),
    ChainQuery(
        name="q7",
        arms=(
            Arm(relation="supplier", key=("s_suppkey",), where=_in("s_nationkey", _TWO), columns=("s_nationkey",)),
            Arm(
                relation="lineitem",
                key=("l_suppkey",),
                on=("s_suppkey",),
                where="l_shipdate >= DATE '1995-01-01' AND l_shipdate <= DATE '1996-12-31'",
                columns=("l_orderkey", "l_shipdate", *_PRICE),
            ),
            Arm(relation="orders", key=("o_orderkey",), on=("l_orderkey",), columns=("o_custkey",)),
            Arm(
                relation="customer",
                key=("c_custkey",),
                on=("o_custkey",),
                where=_in("c_nationkey", _TWO),
                columns=("c_nationkey",),
            ),
        ),
    ),
    ChainQuery(
        name="q8",
        arms=(
            Arm(relation="part", key=("p_partkey",), where="p_type = 'ECONOMY ANODIZED STEEL'"),
            Arm(
                relation="lineitem",
                key=("l_partkey",),
                on=("p_partkey",),
                columns=("l_orderkey", "l_suppkey", *_PRICE),
            ),
            Arm(
                relation="orders",
                key=("o_orderkey",),
                on=("l_orderkey",),
                where="o_orderdate >= DATE '1995-01-01' AND o_orderdate <= DATE '1996-12-31'",
                columns=("o_custkey", "o_orderdate"),
            ),
            Arm(
                relation="customer",
                key=("c_custkey",),
                on=("o_custkey",),
                where=_in("c_nationkey", "'AMERICA'", "r_name"),
            ),
            Arm(relation="supplier", key=("s_suppkey",), on=("l_suppkey",), columns=("s_nationkey",)),
        ),
    ),
    ChainQuery(
        name="q9",
        arms=(
            Arm(relation="part", key=("p_partkey",), where="p_name LIKE '%green%'"),
            Arm(
                relation="lineitem",
                key=("l_partkey",),
                on=("p_partkey",),
                columns=("l_orderkey", "l_suppkey", "l_quantity", *_PRICE),
            ),
            Arm(
                relation="partsupp",
                key=("ps_partkey", "ps_suppkey"),
                on=("l_partkey", "l_suppkey"),
                columns=("ps_supplycost",),
            ),
            Arm(relation="supplier", key=("s_suppkey",), on=("l_suppkey",), columns=("s_nationkey",)),
            Arm(relation="orders", key=("o_orderkey",), on=("l_orderkey",), columns=("o_orderdate",)),
        ),
    ),
    ChainQuery(
        name="q10",
        arms=(
            Arm(
                relation="orders",
                key=("o_orderkey",),
                where="o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1994-01-01'",
                columns=("o_custkey",),
            ),
            Arm(
                relation="lineitem",
                key=("l_orderkey",),
                on=("o_orderkey",),
                where="l_returnflag = 'R'",
                columns=_PRICE,
            ),
            Arm(
                relation="customer",
                key=("c_custkey",),
                on=("o_custkey",),
                columns=("c_name", "c_acctbal", "c_nationkey"),
            ),
        ),
    ),
    ChainQuery(
        name="q12",
        arms=(
            Arm(
                relation="lineitem",
                key=("l_orderkey",),
                where="l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate "
                "AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01'",
                columns=("l_shipmode",),
            ),
            Arm(relation="orders", key=("o_orderkey",), on=("l_orderkey",), columns=("o_orderpriority",)),
        ),
    ),
    ChainQuery(
        name="q14",
        arms=(
            Arm(
                relation="lineitem",
                key=("l_partkey",),
                where="l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'",
                columns=_PRICE,
            ),
            Arm(relation="part", key=("p_partkey",), on=("l_partkey",), columns=("p_type",)),
        ),
    ),
    ChainQuery(
        name="q17",
        arms=(
            Arm(relation="part", key=("p_partkey",), where="p_brand = 'Brand#23' AND p_container = 'MED BOX'"),
            Arm(
                relation="lineitem",
                key=("l_partkey",),
                on=("p_partkey",),
                columns=("l_quantity", "l_extendedprice"),
            ),
            Arm(relation="lineitem", key=("l_partkey",), columns=("l_quantity",), is_aggregate=True),
        ),
    ),
    ChainQuery(
        name="q18",
        arms=(
            Arm(
                relation="orders",
                key=("o_orderkey",),
                columns=("o_custkey", "o_orderdate", "o_totalprice"),
            ),
            Arm(
                relation="lineitem",
                key=("l_orderkey",),
                on=("o_orderkey",),
                having="o_orderkey IN "
                "(SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 300)",
                columns=("l_quantity",),
            ),
            Arm(relation="customer", key=("c_custkey",), on=("o_custkey",), columns=("c_name",)),
            Arm(relation="lineitem", key=("l_orderkey",), columns=("l_quantity",), is_aggregate=True),
        ),
    ),
    ChainQuery(
        name="q19",
        arms=(
            Arm(
                relation="lineitem",
                key=("l_partkey",),
                where="l_shipmode IN ('AIR', 'REG AIR') AND l_shipinstruct = 'DELIVER IN PERSON'",
                columns=("l_quantity", *_PRICE),
            ),
            Arm(
                relation="part",
                key=("p_partkey",),
                on=("l_partkey",),
                where="p_brand IN ('Brand#12', 'Brand#23', 'Brand#34')",
                columns=("p_brand", "p_container", "p_size"),
            ),
        ),
    ),
)


def chains(count: int) -> tuple[ChainQuery, ...]:
    """Return the set of so many queries: 1, 2 and 4 as in the paper, otherwise the first ones."""
    names = dict(SETS).get(count)
    return CHAINS[:count] if names is None else tuple(chain for chain in CHAINS if chain.name in names)


_SLIDING = "'20 seconds', '2 seconds'"
_REVENUE = "sum(l.l_extendedprice * (1 - l.l_discount)) AS revenue"

SQL: dict[str, str] = {
    "q1": f"""SELECT window.start, l.l_returnflag, l.l_linestatus, sum(l.l_quantity) AS qty, count(*) AS n
        FROM lineitem l WHERE l.l_shipdate <= DATE '1998-09-02'
        GROUP BY window(l.l_ts, {_SLIDING}), l.l_returnflag, l.l_linestatus""",
    "q3": f"""SELECT window.start, o.o_orderkey, o.o_orderdate, {_REVENUE}
        FROM customer c, orders o, lineitem l WHERE c.c_custkey = o.o_custkey AND l.l_orderkey = o.o_orderkey
        AND c.c_mktsegment = 'BUILDING' AND o.o_orderdate < DATE '1995-03-15' AND l.l_shipdate > DATE '1995-03-15'
        GROUP BY window(l.l_ts, {_SLIDING}), o.o_orderkey, o.o_orderdate""",
    "q4": f"""SELECT window.start, o.o_orderpriority, count(*) AS n FROM orders o
        WHERE o.o_orderdate >= DATE '1993-07-01' AND o.o_orderdate < DATE '1993-10-01' AND EXISTS
        (SELECT 1 FROM lineitem l WHERE l.l_orderkey = o.o_orderkey AND l.l_commitdate < l.l_receiptdate)
        GROUP BY window(o.o_ts, {_SLIDING}), o.o_orderpriority""",
    "q5": f"""SELECT window.start, n.n_name, {_REVENUE}
        FROM customer c, orders o, lineitem l, supplier s, nation n, region r WHERE c.c_custkey = o.o_custkey
        AND l.l_orderkey = o.o_orderkey AND l.l_suppkey = s.s_suppkey AND c.c_nationkey = s.s_nationkey
        AND s.s_nationkey = n.n_nationkey AND n.n_regionkey = r.r_regionkey AND r.r_name = 'ASIA'
        AND o.o_orderdate >= DATE '1994-01-01' AND o.o_orderdate < DATE '1995-01-01'
        GROUP BY window(l.l_ts, {_SLIDING}), n.n_name""",
    "q6": f"""SELECT window.start, sum(l.l_extendedprice * l.l_discount) AS revenue FROM lineitem l
        WHERE l.l_shipdate >= DATE '1994-01-01' AND l.l_shipdate < DATE '1995-01-01'
        AND l.l_discount BETWEEN 0.05 AND 0.07 AND l.l_quantity < 24 GROUP BY window(l.l_ts, {_SLIDING})""",
    "q7": f"""SELECT window.start, m.n_name AS supp_nation, n.n_name AS cust_nation, year(l.l_shipdate) AS y, {_REVENUE}
        FROM supplier s, lineitem l, orders o, customer c, nation m, nation n WHERE s.s_suppkey = l.l_suppkey
        AND o.o_orderkey = l.l_orderkey AND c.c_custkey = o.o_custkey AND s.s_nationkey = m.n_nationkey
        AND c.c_nationkey = n.n_nationkey AND l.l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
        AND ((m.n_name = 'FRANCE' AND n.n_name = 'GERMANY') OR (m.n_name = 'GERMANY' AND n.n_name = 'FRANCE'))
        GROUP BY window(l.l_ts, {_SLIDING}), m.n_name, n.n_name, year(l.l_shipdate)""",
    "q8": f"""SELECT window.start, year(o.o_orderdate) AS y, {_REVENUE},
        sum(CASE WHEN m.n_name = 'BRAZIL' THEN l.l_extendedprice * (1 - l.l_discount) ELSE 0 END) AS of_brazil
        FROM part p, supplier s, lineitem l, orders o, customer c, nation n, nation m, region r
        WHERE p.p_partkey = l.l_partkey AND s.s_suppkey = l.l_suppkey AND l.l_orderkey = o.o_orderkey
        AND o.o_custkey = c.c_custkey AND c.c_nationkey = n.n_nationkey AND n.n_regionkey = r.r_regionkey
        AND r.r_name = 'AMERICA' AND s.s_nationkey = m.n_nationkey AND p.p_type = 'ECONOMY ANODIZED STEEL'
        AND o.o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
        GROUP BY window(l.l_ts, {_SLIDING}), year(o.o_orderdate)""",
    "q9": f"""SELECT window.start, n.n_name, year(o.o_orderdate) AS y,
        sum(l.l_extendedprice * (1 - l.l_discount) - ps.ps_supplycost * l.l_quantity) AS profit
        FROM part p, supplier s, lineitem l, partsupp ps, orders o, nation n WHERE s.s_suppkey = l.l_suppkey
        AND ps.ps_suppkey = l.l_suppkey AND ps.ps_partkey = l.l_partkey AND p.p_partkey = l.l_partkey
        AND o.o_orderkey = l.l_orderkey AND s.s_nationkey = n.n_nationkey AND p.p_name LIKE '%green%'
        GROUP BY window(l.l_ts, {_SLIDING}), n.n_name, year(o.o_orderdate)""",
    "q10": f"""SELECT window.start, c.c_custkey, c.c_name, n.n_name, {_REVENUE}
        FROM customer c, orders o, lineitem l, nation n WHERE c.c_custkey = o.o_custkey
        AND l.l_orderkey = o.o_orderkey AND o.o_orderdate >= DATE '1993-10-01' AND o.o_orderdate < DATE '1994-01-01'
        AND l.l_returnflag = 'R' AND c.c_nationkey = n.n_nationkey
        GROUP BY window(l.l_ts, {_SLIDING}), c.c_custkey, c.c_name, n.n_name""",
    "q12": f"""SELECT window.start, l.l_shipmode,
        sum(CASE WHEN o.o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS high
        FROM orders o, lineitem l WHERE o.o_orderkey = l.l_orderkey AND l.l_shipmode IN ('MAIL', 'SHIP')
        AND l.l_commitdate < l.l_receiptdate AND l.l_shipdate < l.l_commitdate
        AND l.l_receiptdate >= DATE '1994-01-01' AND l.l_receiptdate < DATE '1995-01-01'
        GROUP BY window(l.l_ts, {_SLIDING}), l.l_shipmode""",
    "q14": f"""SELECT window.start,
        sum(CASE WHEN p.p_type LIKE 'PROMO%' THEN l.l_extendedprice * (1 - l.l_discount) ELSE 0 END) AS promo,
        {_REVENUE} FROM lineitem l, part p WHERE l.l_partkey = p.p_partkey
        AND l.l_shipdate >= DATE '1995-09-01' AND l.l_shipdate < DATE '1995-10-01'
        GROUP BY window(l.l_ts, {_SLIDING})""",
    "q17": f"""SELECT window.start, sum(l.l_extendedprice) / 7 AS yearly FROM lineitem l, part p
        WHERE p.p_partkey = l.l_partkey AND p.p_brand = 'Brand#23' AND p.p_container = 'MED BOX'
        AND l.l_quantity < (SELECT 0.2 * avg(i.l_quantity) FROM lineitem i WHERE i.l_partkey = p.p_partkey)
        GROUP BY window(l.l_ts, {_SLIDING})""",
    "q18": f"""SELECT window.start, c.c_name, o.o_orderkey, o.o_totalprice, sum(l.l_quantity) AS qty
        FROM customer c, orders o, lineitem l WHERE o.o_orderkey IN
        (SELECT i.l_orderkey FROM lineitem i GROUP BY i.l_orderkey HAVING sum(i.l_quantity) > 300)
        AND c.c_custkey = o.o_custkey AND o.o_orderkey = l.l_orderkey
        GROUP BY window(l.l_ts, {_SLIDING}), c.c_name, o.o_orderkey, o.o_totalprice""",
    "q19": f"""SELECT window.start, {_REVENUE} FROM lineitem l, part p WHERE p.p_partkey = l.l_partkey
        AND l.l_shipmode IN ('AIR', 'REG AIR') AND l.l_shipinstruct = 'DELIVER IN PERSON'
        AND ((p.p_brand = 'Brand#12' AND l.l_quantity BETWEEN 1 AND 11 AND p.p_size BETWEEN 1 AND 5)
        OR (p.p_brand = 'Brand#23' AND l.l_quantity BETWEEN 10 AND 20 AND p.p_size BETWEEN 1 AND 10)
        OR (p.p_brand = 'Brand#34' AND l.l_quantity BETWEEN 20 AND 30 AND p.p_size BETWEEN 1 AND 15))
        GROUP BY window(l.l_ts, {_SLIDING})""",
}


def refused(directory: Path) -> dict[str, str]:
    """Return why Plait does not run a query, by name, for those of the 14 that it does not; of prepared streams."""
    declared = "\n".join(_declaration(stream) for stream in read_streams(directory))
    found = {}
    for name, sql in SQL.items():
        mistakes = check_script(f"{declared}\nCREATE QUERY {name} INTO noop AS {sql};\n", base=str(directory))
        if mistakes:
            found[name] = str(mistakes[0])
    return found


def _declaration(stream: JoinStream) -> str:
    if stream.name in ("nation", "region"):
        return f"CREATE TABLE {stream.name} ({stream.ddl}) USING parquet OPTIONS (path '{stream.name}');"
    return (
        f"CREATE STREAM {stream.name} ({stream.ddl}) USING parquet OPTIONS (path '{stream.name}') "
        f"TIMESTAMP BY {stream.time} WINDOW INTERVAL {WINDOW_S} SECONDS DELAY INTERVAL 2 SECONDS;"
    )
