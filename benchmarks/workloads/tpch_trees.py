"""The joins inside TPC-H queries 2, 3 and 5, as paper 002 takes them: nothing selected, nothing aggregated."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from benchmarks.workloads.joins import Join, JoinQuery, OutputOf
from benchmarks.workloads.tpch_schema import KEY_JOINS, row_column

_SAME_NATION = Join(left="customer", right="supplier", columns=(("c_nationkey", "s_nationkey"),))

_RELATIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "q2": ("part", "partsupp", "supplier", "nation", "region"),
        "q3": ("customer", "orders", "lineitem"),
        "q5": ("customer", "orders", "lineitem", "supplier", "nation", "region"),
    }
)
_LEFT_OUT = {"q5": frozenset((frozenset(("customer", "nation")),))}


def tree_queries() -> tuple[JoinQuery, ...]:
    """Return the three queries; each selects the number of every row it joins."""
    return tuple(_query(name, relations) for name, relations in _RELATIONS.items())


def _query(name: str, relations: tuple[str, ...]) -> JoinQuery:
    joins = tuple(
        join
        for join in KEY_JOINS
        if join.relations <= set(relations) and join.relations not in _LEFT_OUT.get(name, frozenset())
    )
    return JoinQuery(
        name=name,
        relations=relations,
        joins=(*joins, _SAME_NATION) if name == "q5" else joins,
        outputs=tuple(
            OutputOf(relation=relation, column=row_column(relation), type="bigint") for relation in relations
        ),
    )
