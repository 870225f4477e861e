"""Of hundreds of queries a status says what is asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plait.runtime.status import part_of
from tests.unit.sql.reading import bound

QUERIES = (
    replace(bound("SELECT o.id FROM orders o JOIN items i ON o.id = i.oid"), name="pairs"),
    replace(bound("SELECT o.id FROM orders o"), name="alone"),
    replace(bound("SELECT i.sku FROM items i"), name="other"),
)


def told(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, 1)


STATUS: dict[str, Any] = {
    "running": True,
    "queries": ["alone", "other", "pairs"],
    "streams": ["items", "orders"],
    "lacking": [{"query": "pairs", "stream": "items"}, {"query": "pairs", "stream": "orders"}],
    "bounds": [{"stream": "items"}, {"stream": "orders"}],
    "last_batch": {
        "results": told("alone", "other", "pairs"),
        "failing": told("other"),
        "outside_selections": {},
        "sources": told("items", "orders"),
        "lacking": [],
        "rows_in": 7,
    },
    "totals": {"queries": told("alone", "other", "pairs"), "failing": {}, "sources": told("items"), "lacking": []},
}


def test_all_is_told_where_nothing_is_asked_for() -> None:
    assert part_of(STATUS, QUERIES, (), ()) == STATUS


def test_of_a_query_its_streams_are_told_too() -> None:
    part = part_of(STATUS, QUERIES, ("alone",), ())
    assert (part["queries"], part["streams"], part["lacking"]) == (["alone"], ["orders"], [])
    assert part["bounds"] == [{"stream": "orders"}]
    assert (part["last_batch"]["results"], part["last_batch"]["sources"]) == (told("alone"), told("orders"))
    assert (part["last_batch"]["failing"], part["last_batch"]["rows_in"], part["running"]) == ({}, 7, True)
    assert (part["totals"]["queries"], part["totals"]["sources"]) == (told("alone"), {})


@pytest.mark.parametrize(("names", "shown"), [((), ["other", "pairs"]), (("pairs", "alone"), ["pairs"])])
def test_of_a_stream_the_queries_that_read_it_are_told(names: tuple[str, ...], shown: list[str]) -> None:
    part = part_of(STATUS, QUERIES, names, ("items",))
    assert (part["queries"], part["streams"]) == (shown, ["items"])
    assert part["lacking"] == [{"query": "pairs", "stream": "items"}]


def test_a_status_before_the_first_batch_has_none() -> None:
    assert part_of({**STATUS, "last_batch": None}, QUERIES, ("alone",), ())["last_batch"] is None
