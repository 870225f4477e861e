"""Paper 003's join (dpPick, section 5.1): customers and what was returned by catalog, store and web, by address.

The paper writes ``SELECT *`` over customer, catalog_returns, store_returns and web_returns where c_current_addr_sk
equals cr_refunded_addr_sk, sr_addr_sk and wr_refunded_addr_sk, over the full history, from all 24 initial orders.
Here an order is that of FROM, and each relation is joined with the first one: equal keys are equal to each other, so
that is the same join, and every order can be asked without a cross product.

Only the columns below are streamed and selected, instead of all 89: number, time and key of each row, who and what.
Returned goods without an address join with nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations

from benchmarks.workloads.joins import Join, JoinQuery, JoinStream, OutputOf
from plait.query.model import Column

ADDRESSES: Mapping[str, str] = {
    "customer": "c_current_addr_sk",
    "catalog_returns": "cr_refunded_addr_sk",
    "store_returns": "sr_addr_sk",
    "web_returns": "wr_refunded_addr_sk",
}
"""The key by relation."""

GENERATED: Mapping[str, Mapping[str, str]] = {
    "customer": {"c_current_addr_sk": "int", "c_customer_sk": "int", "c_birth_year": "int"},
    "catalog_returns": {
        "cr_refunded_addr_sk": "int",
        "cr_item_sk": "int",
        "cr_order_number": "bigint",
        "cr_return_amount": "decimal(7,2)",
    },
    "store_returns": {
        "sr_addr_sk": "int",
        "sr_item_sk": "int",
        "sr_ticket_number": "bigint",
        "sr_return_amt": "decimal(7,2)",
    },
    "web_returns": {
        "wr_refunded_addr_sk": "int",
        "wr_item_sk": "int",
        "wr_order_number": "bigint",
        "wr_return_amt": "decimal(7,2)",
    },
}
"""Type by column by relation, without event time and row number."""

SHORT: Mapping[str, str] = {"customer": "Cu", "catalog_returns": "Cr", "store_returns": "Sr", "web_returns": "Wr"}
"""The paper's names."""

USUAL = ("SrCuWrCr", "CrWrSrCu", "WrCuCrSr", "CuWrCrSr")
"""The order in which the paper writes the query; the two from which dpPick gains most; the one from which it loses."""


def time_column(relation: str) -> str:
    """Return the name of the event time that a relation gets as a stream."""
    return f"{_prefix(relation)}_ts"


def row_column(relation: str) -> str:
    """Return the name of the row number that a relation gets as a stream."""
    return f"{_prefix(relation)}_nr"


def _prefix(relation: str) -> str:
    return ADDRESSES[relation].partition("_")[0]


STREAMS: tuple[JoinStream, ...] = tuple(
    JoinStream(
        name=relation,
        time=time_column(relation),
        columns=(
            Column(name=time_column(relation), type="timestamp"),
            Column(name=row_column(relation), type="bigint"),
            *(Column(name=name, type=kind) for name, kind in columns.items()),
        ),
    )
    for relation, columns in GENERATED.items()
)

ORDERS: Mapping[str, tuple[str, ...]] = {
    "".join(SHORT[relation] for relation in order): order for order in permutations(ADDRESSES)
}
"""All orders of the relations by the paper's names."""


def returns_query(order: str) -> JoinQuery:
    """Return the query with its relations in this order.

    >>> returns_query("SrCuWrCr").joins[0].sql
    'store_returns.sr_addr_sk = customer.c_current_addr_sk'
    """
    first, *others = ORDERS[order]
    columns = {stream.name: stream.columns for stream in STREAMS}
    return JoinQuery(
        name=order.lower(),
        relations=ORDERS[order],
        joins=tuple(Join(left=first, right=other, columns=((ADDRESSES[first], ADDRESSES[other]),)) for other in others),
        outputs=tuple(
            OutputOf(relation=relation, column=column.name, type=column.type)
            for relation in ADDRESSES
            for column in columns[relation]
        ),
    )
