"""What a start says of windows of event time that were open when a query last ran."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from plait.plan.model import Plan
from plait.runtime.checkpoint.catalog import Catalog
from plait.runtime.checkpoint.notices import notices
from plait.state.model import GatheredRows, Manifest, OpenGroups, QueryProgress

KEPT = GatheredRows(path="f", rows=3, bytes=1, tau_min=0, tau_max=1, checksum="")


def told(
    groupings: Mapping[str, str | None], *queries: QueryProgress, dropped: str = "", files: int = 2
) -> list[tuple[str, str]]:
    """Return the notices where `q` has gathered rows. `groupings`: what those of today's queries mean, by query."""
    groups = OpenGroups(query="q", identity="i", over_until_us=5, files=(KEPT,) * files)
    manifest = Manifest(batch=6, watermark_us=None, plan="p", queries=queries, groups=(groups,))
    plan = Plan(strategy="greedy", queries=tuple(groupings), ranks=(), stores=(), trees=())
    now: dict[str, Any] = {
        name: None if identity is None else SimpleNamespace(identity=identity) for name, identity in groupings.items()
    }
    gone = frozenset({dropped} - {""})
    found = notices(Catalog(), Catalog(), manifest, plan, frozenset(), gone, now)
    assert all(notice.of == "q" and notice.is_of_start for notice in found)
    return [(notice.kind, notice.text) for notice in found]


HERE, AWAY = QueryProgress(query="q"), QueryProgress(query="q", left=4)


def test_a_query_that_goes_on_with_its_windows_is_not_worth_a_word() -> None:
    assert told({"q": "i"}, HERE) == []


def test_rows_of_a_query_that_is_left_out_wait() -> None:
    for known in ((HERE,), (AWAY,), ()):
        ((kind, text),) = told({"r": None}, *known)
        assert kind == "windows waiting"
        assert text.startswith("query 'q' is left out, and 6 rows that it has kept for windows of event time")
    assert told({}, AWAY, files=0) == []


def test_rows_of_a_query_that_was_dropped_are_deleted() -> None:
    ((kind, text),) = told({}, HERE, dropped="q")
    assert (kind, text[:56]) == ("windows waiting", "query 'q' was dropped, and with it 6 rows that it has ke")


def test_a_query_that_was_replaced_goes_on_if_it_groups_the_same_rows() -> None:
    assert told({"q": "i"}, HERE, dropped="q") == []
    ((kind, _),) = told({"q": "another"}, HERE, dropped="q")
    assert kind == "windows begun anew"


@pytest.mark.parametrize("known", [(AWAY,), ()])
@pytest.mark.parametrize("files", [0, 2])
def test_windows_of_a_query_that_comes_back_lack_what_came_meanwhile(
    known: tuple[QueryProgress, ...], files: int
) -> None:
    ((kind, text),) = told({"q": "i"}, *known, files=files)
    assert kind == "windows incomplete"
    assert "those that were open while it was left out lack the results of what came meanwhile" in text


@pytest.mark.parametrize("identity", ["another", None])
def test_rows_that_a_changed_query_cannot_use_are_let_go_with_a_word(identity: str | None) -> None:
    for known in (HERE, AWAY):
        ((kind, text),) = told({"q": identity}, known)
        assert (kind, "6 rows that were kept" in text) == ("windows begun anew", True)
    assert told({"q": identity}, HERE, files=0) == []
