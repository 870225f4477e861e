"""The history of plans says which was in force when, why, and what it brought, and ends no run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from plait.adapt.decision import Change, Outcome
from plait.cli.history_plot import history_mermaid
from plait.cli.history_text import history_json, history_text
from plait.errors import CheckpointError, OptionError
from plait.optimizer.examples import example_options, example_query, example_statistics
from plait.optimizer.planner import plan
from plait.runtime.checkpoint.epoch import Epoch
from plait.runtime.checkpoint.plan_history import (
    FILE,
    MOST_ENTRIES,
    Entry,
    entry_of,
    history_of,
    note_epoch,
    note_outcome,
    read_history,
)
from plait.state.storage import Storage

OPTIONS = example_options("greedy")
EPOCH = Epoch(
    number=1,
    plan=plan((example_query("q", "r.a = s.a", "s.b = t.b"),), example_statistics(OPTIONS), OPTIONS),
    plan_id="1-a",
    bindings={},
    streams=(),
)
CHANGE = Change(reason="cheaper", changes=(), cost_before=100.0, cost_after=75.0, change_cost=50.0, horizon_s=30.0)
OUTCOME = Outcome(forecast=75.0, measured=80.0, before=100.0, taken_back=False)


def noted(storage: Storage) -> tuple[Entry, ...]:
    note_epoch(storage, entry_of(EPOCH, 0, 0, None))
    note_epoch(storage, entry_of(replace(EPOCH, number=2), 7, 60_000, CHANGE))
    note_outcome(storage, 2, OUTCOME)
    return read_history(storage)


def test_it_says_why_plans_came_and_what_they_brought(tmp_path: Path) -> None:
    entries = noted(Storage.open(str(tmp_path)))
    text = history_text(entries)
    assert text.splitlines()[0] == "2 epochs, oldest first"
    assert "epoch 1 from batch 0, 1970-01-01 00:00:00 UTC, strategy greedy: a run began" in text
    assert "epoch 2 from batch 7, 1970-01-01 00:01:00 UTC, strategy greedy: forecast to be cheaper" in text
    assert "forecast 100 → 75 a second (saves 25%); the change costs 50, to be earned in 30 s" in text
    assert "measured 80 a second where 75 was forecast; the plan before would cost 100 (saves 20%)" in text
    assert text.count("order q: ") == 3  # said once, as the second plan has the same
    found = json.loads(history_json(entries))["epochs"]
    assert [entry["batch"] for entry in found] == [0, 7]
    assert found[1]["change"]["gain"] == 0.25
    assert found[1]["outcome"]["measured"] == 80.0
    assert found[0]["orders"] == list(entries[0].orders)


def test_a_chart_has_a_bar_for_each_epoch_from_its_beginning_to_that_of_the_next(tmp_path: Path) -> None:
    entries = noted(Storage.open(str(tmp_path)))
    assert history_mermaid(entries).splitlines()[4:] == [
        "  section epoch 1",
        "    batch 0 greedy – a run began :active, e1, 0, 60000",
        "  section epoch 2",
        "    batch 7 greedy – cheaper – forecast saves 25% – measured saves 20% :done, e2, 60000, 61000",
    ]
    back = replace(entries[1], outcome={**(entries[1].outcome or {}), "taken_back": True})
    assert ":crit, e2" in history_mermaid((entries[0], back))
    strange = replace(entries[1], strategy="a:b;c#d,e")
    assert "batch 7 a b c d e – cheaper" in history_mermaid((strange,))


def test_an_epoch_that_never_had_a_batch_gives_way_to_the_next(tmp_path: Path) -> None:
    storage = Storage.open(str(tmp_path))
    noted(storage)
    note_epoch(storage, entry_of(replace(EPOCH, number=3), 7, 70_000, None))
    assert [entry.epoch for entry in read_history(storage)] == [1, 3]


def test_a_file_has_the_orders_of_queries_that_come_and_go_once(tmp_path: Path) -> None:
    storage, entry = Storage.open(str(tmp_path)), entry_of(EPOCH, 0, 0, None)
    orders = [("q: r s", "p: r s"), ("q: r s",), ("q: r s", "x: s t"), ("q: s r", "x: s t")]
    for number, each in enumerate(orders):
        note_epoch(storage, replace(entry, epoch=number, batch=number, orders=each))
    text = storage.read_bytes(FILE).decode()
    assert [text.count(each) for each in ("q: r s", "p: r s", "x: s t")] == [2, 2, 1]
    assert [kept.orders for kept in read_history(storage)] == [tuple(sorted(each)) for each in orders]


def test_a_history_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    storage, entry = Storage.open(str(tmp_path)), entry_of(EPOCH, 0, 0, None)
    storage.write_file(FILE, json.dumps({"epochs": [entry.as_json()]}).encode())
    note_epoch(storage, replace(entry, epoch=2, batch=1))
    assert [kept.orders for kept in read_history(storage)] == [entry.orders] * 2


def test_it_is_bounded(tmp_path: Path) -> None:
    storage = Storage.open(str(tmp_path))
    for number in range(MOST_ENTRIES + 3):
        note_epoch(storage, entry_of(replace(EPOCH, number=number), number, 0, None))
    kept = read_history(storage)
    assert (len(kept), kept[-1].epoch) == (MOST_ENTRIES, MOST_ENTRIES + 2)
    assert kept[0].orders == kept[-1].orders == entry_of(EPOCH, 0, 0, None).orders


def test_one_that_cannot_be_read_ends_no_run_but_is_named_where_it_is_asked_for(tmp_path: Path) -> None:
    storage = Storage.open(str(tmp_path))
    storage.write_file(FILE, b'{"epochs": [{"epoch": 1}]}')
    with pytest.raises(CheckpointError, match="delete it to begin another, nothing else depends on it"):
        read_history(storage)
    note_epoch(storage, entry_of(EPOCH, 0, 0, None))
    assert [entry.epoch for entry in read_history(storage)] == [1]


def test_where_there_is_no_checkpoint_that_is_said_and_where_there_is_no_history_too(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="there is no Plait checkpoint at"):
        history_of(str(tmp_path / "nowhere"))
    assert history_text(()).startswith("No plan has been noted in this checkpoint yet")
