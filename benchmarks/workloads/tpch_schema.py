"""TPC-H as far as joins go: relations, the prefix of their columns, and their primary and foreign keys."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.workloads.joins import Join

PREFIXES: Mapping[str, str] = {
    "region": "r",
    "nation": "n",
    "supplier": "s",
    "customer": "c",
    "part": "p",
    "partsupp": "ps",
    "orders": "o",
    "lineitem": "l",
}
"""Prefix of the columns by relation, small relations first."""


def _key_join(left: str, right: str, *columns: tuple[str, str]) -> Join:
    return Join(
        left=left,
        right=right,
        columns=tuple((f"{PREFIXES[left]}_{mine}", f"{PREFIXES[right]}_{theirs}") for mine, theirs in columns),
    )


KEY_JOINS: tuple[Join, ...] = (
    _key_join("nation", "region", ("regionkey", "regionkey")),
    _key_join("supplier", "nation", ("nationkey", "nationkey")),
    _key_join("customer", "nation", ("nationkey", "nationkey")),
    _key_join("partsupp", "part", ("partkey", "partkey")),
    _key_join("partsupp", "supplier", ("suppkey", "suppkey")),
    _key_join("orders", "customer", ("custkey", "custkey")),
    _key_join("lineitem", "orders", ("orderkey", "orderkey")),
    _key_join("lineitem", "part", ("partkey", "partkey")),
    _key_join("lineitem", "supplier", ("suppkey", "suppkey")),
    _key_join("lineitem", "partsupp", ("partkey", "partkey"), ("suppkey", "suppkey")),
)
"""Foreign keys with the primary keys they point to (TPC-H specification, 1.4.1)."""


def time_column(relation: str) -> str:
    """Return the name of the event time that a relation gets as a stream."""
    return f"{PREFIXES[relation]}_ts"


def row_column(relation: str) -> str:
    """Return the name of the row number that a relation gets as a stream."""
    return f"{PREFIXES[relation]}_row"


def may_be_joined(column: str) -> bool:
    """Tell whether values of this column may be compared: not free text, nor what makes the relation a stream."""
    return not column.endswith(("_comment", "_ts", "_row"))
