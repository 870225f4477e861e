"""Sinks that remember which batches they have get every batch once: whatever dies when, whatever they refuse meanwhile,
and also if their query is gone by the time the next run asks.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from plait.errors import PlaitError, SinkError
from plait.query.model import SinkSpec
from plait.runtime.batch import handing_over, microbatch
from plait.sinks import kinds
from plait.sinks.kind import Results, Sink, SinkKind
from plait.sinks.options import accepting, option_of
from plait.sinks.staging import Publication
from plait.state.manifest import ManifestLog
from plait.state.storage import Storage
from tests.property.standin import frames
from tests.property.test_undelivered import JOIN, SCRIPT, SHY, Place

QUERY = f"CREATE QUERY told INTO console AS {JOIN};"
POINTS = ("stored", "probed", "closed", "delivered", "settle", "committed", "published")
DEATHS = ("before the store has it", "after the store has it")


class Death(BaseException):
    """Ends a run as a kill does: nothing that is not written down is known any more."""


class Store(SinkKind):
    """Remembers what it has, as a broker or a database does. `fate`: what becomes of the next batch; `then`: of the one
    after it.
    """

    name = "console"
    options = accepting(kinds.KINDS["console"].options[0].values, "rows")

    def __init__(self) -> None:
        self.holds: dict[tuple[str | None, str, str], dict[int, tuple[str, list[int]]]] = {}
        self.fate: str | None = None
        self.then: str | None = None

    def remembers(self, spec: SinkSpec) -> bool:
        return True

    def deliver(self, sink: Sink, results: Results) -> tuple[Publication, ...]:
        fate, self.fate, self.then = self.fate, self.then, None
        if fate == "refused":
            raise SinkError("not now")
        if fate == DEATHS[0]:
            raise Death
        known = self.holds.setdefault((self.place(sink.spec), results.checkpoint, results.query), {})
        assert results.batch <= results.last
        assert results.marks[results.batch] == results.mark
        if known and max(known) >= results.batch:
            assert results.marks[max(known)] == known[max(known)][0]
        if results.batch not in known:
            assert not known or max(known) < results.batch
            known[results.batch] = results.mark, [v for part in results.parts for v in part.toArrow()["v"].to_pylist()]
        assert known[results.batch][0] == results.mark
        if fate == DEATHS[1]:
            raise Death
        if fate == "answer lost":
            raise SinkError("no answer in time")
        return ()

    def has(self, sink: Sink, results: Results) -> bool:
        if self.fate == "away":
            raise SinkError("nobody there")
        known = self.holds.get((self.place(sink.spec), results.checkpoint, results.query), {})
        return known.get(results.batch, ("", []))[0] == results.mark

    def place(self, spec: SinkSpec) -> str | None:
        return option_of(spec.options, "rows")

    @property
    def values(self) -> list[int]:
        return sorted(v for known in self.holds.values() for _, values in known.values() for v in values)


class Killing(Place):
    """Dies at a point if it is told to, and then notes nothing."""

    def arm(self, patch: pytest.MonkeyPatch, point: str | None) -> None:
        left = random.Random(f"{point} {self.files}").randrange(1, 3)

        def reach(here: str) -> None:
            nonlocal left
            left -= here == point
            if here == point and left == 0:
                raise Death

        for module in (microbatch, handing_over):
            patch.setattr(module, "reach", reach)
        ends: Callable[..., None] = handing_over.Handover.close if point is None else lambda self, log: None
        patch.setattr(handing_over.Handover, "close", ends)

    def survive(self, text: str) -> bool:
        """Run, and tell whether that ended well."""
        try:
            self.run(text)
        except (Death, PlaitError):
            return False
        return True


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store in the place of the console, and no Spark."""
    frames.install(monkeypatch.setattr)
    store = Store()
    known = {str(name): kind for name, kind in kinds.KINDS.items()}
    monkeypatch.setattr(kinds, "_BY_NAME", {**known, "console": store})
    return store


@pytest.mark.parametrize("seed", range(8))
def test_a_store_that_remembers_has_each_result_once(
    seed: int, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, place = random.Random(seed), Killing(tmp_path)
    place.arrive(0)
    count = 1
    for _ in range(6):
        fate = chance.choice((None, None, "refused", *DEATHS, *POINTS))
        with monkeypatch.context() as patch:
            place.arm(patch, None if fate is None or fate == "refused" else fate)
            store.fate = fate if fate == "refused" or fate in DEATHS else None
            has_read_all = place.survive(SCRIPT + QUERY) or fate in ("committed", "published")
        store.fate = None
        if has_read_all and chance.random() < 0.4:  # it is left out of a run that has nothing to read
            assert place.survive(SCRIPT)
        new = range(count, count + chance.randrange(3))
        count += len(new)
        if new:
            place.arrive(*new)
    assert place.survive(SCRIPT + QUERY)
    assert place.survive(SCRIPT + QUERY)
    assert store.values == list(range(count))


def test_what_is_in_doubt_is_settled_without_its_query(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Killing(tmp_path)
    place.arrive(1, 2)
    with monkeypatch.context() as patch:
        place.arm(patch, "committed")
        assert not place.survive(SCRIPT + QUERY)
    assert store.values == []
    assert place.survive(SCRIPT)
    assert store.values == [1, 2]


def test_a_run_that_ends_well_leaves_nothing_in_doubt(store: Store, tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.arrive(1)
    place.run(SCRIPT + QUERY)
    last = ManifestLog(Storage.open(str(tmp_path / "checkpoint" / "plait"))).latest()
    assert last is not None
    assert last.undelivered == ()
    assert store.values == [1]


def test_what_waits_for_another_sink_comes_in_order_after_the_commit(store: Store, tmp_path: Path) -> None:
    place = Place(tmp_path)
    for value in (1, 2, 3):
        place.fail_to_deliver(value)
    place.arrive(4)
    place.run(SCRIPT + SHY.replace("INTO parquet OPTIONS (path '{0}/shy')", "INTO console"))
    assert store.values == [1, 2, 3, 4]


def moved(sink: str) -> str:
    return SCRIPT + SHY.replace("parquet OPTIONS (path '{0}/shy')", sink)


HERE, THERE = "console OPTIONS (rows '1')", "console OPTIONS (rows '2')"


def leave_in_doubt(place: Killing, store: Store, fate: str) -> None:
    """Let the second attempt at the first batch end so, after a manifest says why the one before it failed."""
    place.arrive(1)
    store.fate = "refused"
    assert place.survive(moved(HERE))
    place.arrive(2)
    store.fate, store.then = "refused", fate
    with pytest.MonkeyPatch.context() as patch:
        place.arm(patch, None)
        assert place.survive(moved(HERE)) == (fate not in DEATHS)
    place.arrive(3)


@pytest.mark.parametrize("fate", ["refused", "answer lost", *DEATHS])
@pytest.mark.parametrize("today", [THERE, "parquet OPTIONS (path '{0}/shy')"])
def test_what_a_former_sink_may_have_taken_comes_to_another_one_only_if_it_has_not(
    fate: str, today: str, store: Store, tmp_path: Path
) -> None:
    place = Killing(tmp_path)
    leave_in_doubt(place, store, fate)
    assert store.values == ([] if fate in ("refused", DEATHS[0]) else [1])
    place.run(moved(today))
    assert sorted(store.values + place.delivered()) == [1, 2, 3]


def test_what_a_former_sink_may_have_taken_waits_until_that_answers(store: Store, tmp_path: Path) -> None:
    place = Killing(tmp_path)
    leave_in_doubt(place, store, "answer lost")
    store.fate = "away"
    ((query, reason),) = place.run(moved(THERE)).summary().failing
    assert (query, store.values) == ("shy", [1])
    assert "1 results of batch 0 were found for console '1', and may be there" in reason
    assert "nobody there" in reason
    store.fate = None
    assert place.run(moved(THERE)).summary().failing == ()
    assert store.values == [1, 2, 3]


@pytest.mark.parametrize("fate", ["refused", "answer lost", *DEATHS])
@pytest.mark.parametrize("first", [HERE, "parquet OPTIONS (path '{0}/shy')"])
@pytest.mark.parametrize("last", ["console OPTIONS (rows '3')", HERE, "parquet OPTIONS (path '{0}/other')"])
def test_what_two_former_sinks_may_have_taken_comes_to_a_third_only_if_neither_has(
    first: str, fate: str, last: str, store: Store, tmp_path: Path
) -> None:
    place = Killing(tmp_path)
    if first == HERE:
        leave_in_doubt(place, store, "refused")
    else:
        place.fail_to_deliver(1)
        place.arrive(2, 3)
    store.fate, store.then = fate, fate
    with pytest.MonkeyPatch.context() as patch:
        place.arm(patch, None)
        place.survive(moved(THERE))
    assert store.values == ([] if fate in ("refused", DEATHS[0]) else [1])
    store.fate = store.then = None
    place.arrive(4)
    place.run(moved(last))
    assert sorted(store.values + place.delivered() + place.delivered("other")) == [1, 2, 3, 4]
