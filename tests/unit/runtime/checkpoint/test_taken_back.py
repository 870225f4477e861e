"""A plan that was taken back is not tried again by a process that starts anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from plait.adapt.reconsidering import identity
from plait.optimizer.examples import example_options, example_query, example_statistics
from plait.optimizer.planner import plan
from plait.plan.codec import encode
from plait.plan.model import Plan
from plait.runtime.checkpoint.taken_back import (
    FILE,
    MOST_REMEMBERED,
    note_taken_back,
    read_taken_back,
    unless_taken_back,
)
from plait.state.model import Manifest
from plait.state.storage import Storage
from plait.stats.cycles import Cycles

QUERIES = (example_query("q", "r.a = s.a", "s.b = t.b"),)
BEFORE = Manifest(batch=7, watermark_us=None, plan="1-a", cycles=Cycles(number=20))


def made(*rates: tuple[str, float], strategy: str = "dppick") -> Plan:
    options = replace(example_options(strategy, *rates), storage_rows=0)  # type: ignore[arg-type]
    return plan(QUERIES, example_statistics(options), options)


FORMER = made(("r", 1.0), ("s", 100.0), ("t", 500.0))
WANTED = made(("r", 500.0), ("s", 100.0), ("t", 1.0))


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    opened = Storage.open(str(tmp_path))
    opened.write_file("plans/1-a.json", encode(FORMER).encode())
    return opened


def test_a_start_goes_on_with_the_plan_in_force_where_the_other_was_taken_back(storage: Storage) -> None:
    assert identity(FORMER) != identity(WANTED)
    assert unless_taken_back(storage, BEFORE, WANTED, QUERIES) is WANTED
    note_taken_back(storage, ((identity(WANTED), 20),))
    assert unless_taken_back(storage, BEFORE, WANTED, QUERIES) == FORMER
    later = replace(BEFORE, cycles=Cycles(number=21))
    assert unless_taken_back(storage, later, WANTED, QUERIES) is WANTED
    assert unless_taken_back(storage, None, WANTED, QUERIES) is WANTED


def test_the_plan_in_force_does_not_serve_other_queries_or_another_strategy(storage: Storage) -> None:
    note_taken_back(storage, ((identity(WANTED), 99),))
    others = (example_query("q", "r.a = s.a", "s.a = t.a"),)
    assert unless_taken_back(storage, BEFORE, WANTED, others) is WANTED
    other_strategy = replace(WANTED, strategy="ilp")
    assert unless_taken_back(storage, BEFORE, other_strategy, QUERIES) is other_strategy
    other_ranks = replace(WANTED, ranks=("t", "s", "r"))
    assert unless_taken_back(storage, BEFORE, other_ranks, QUERIES) is other_ranks
    gone = replace(BEFORE, plan="none")
    assert unless_taken_back(storage, gone, WANTED, QUERIES) is WANTED


def test_no_more_than_so_many_are_remembered_and_damage_ends_no_start(storage: Storage) -> None:
    noted = tuple((str(number), number) for number in range(MOST_REMEMBERED + 3))
    note_taken_back(storage, noted)
    assert read_taken_back(storage) == noted[3:]
    for damage in (b"{", b"[]", b'{"plans": [1]}', b'{"plans": [["a", "b"]]}'):
        storage.write_file(FILE, damage)
        assert read_taken_back(storage) == ()
