"""Queries over groups that come and go, fail, end and are refused: on the stand-in for Spark."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import plait
from plait.errors import CheckpointError, OptionError, PlaitError, SqlError
from plait.runtime.batch import closing_groups
from plait.state.manifest import ManifestLog
from plait.state.model import END_OF_TIME_US, Manifest
from plait.state.place import state_of
from tests.property.derived import Made, Place, Read, only, random_place, rows_in
from tests.property.standin import frames
from tests.property.standin.session import Session
from tests.property.test_requests_within import Asking, hooks
from tests.property.test_undecided_kills import Deaths

__all__ = ["hooks"]

COUNTED = "SELECT window.end AS until, k, count(*) AS n FROM {} GROUP BY window({}, '{} seconds'), k"


def over(seconds: int, read: str, time: str) -> str:
    """Return what DuckDB is asked for those groups."""
    size = seconds * 1_000_000
    return f"SELECT {time} // {size} * {size} + {size} AS until, k, count(*) AS n FROM {read} GROUP BY ALL"


def counted(name: str, read: str, time: str, seconds: int) -> Made:
    return Made(
        name=name,
        text=COUNTED.format(read, time, seconds),
        oracle=over(seconds, read, time),
        kind="counted",
        needs=(read,),
        read=Read(name=name, time="until", key="k", value="n"),
    )


FIVES = counted("fives", "a", "ts", 5)
TENS = counted("tens", "fives", "until", 10)
MANY = "SELECT until, k, n FROM fives WHERE n > 1"
QUERIES = (FIVES, TENS, Made(name="many", text=MANY, oracle=MANY, kind="selected", needs=("fives",)))


@pytest.fixture
def deaths() -> Iterator[Deaths]:
    with pytest.MonkeyPatch.context() as patch:
        frames.install(patch.setattr)
        yield Deaths(patch)


@pytest.fixture
def place(tmp_path: Path, deaths: Deaths) -> Place:
    made = random_place(tmp_path, 5)
    made.queries = QUERIES
    return made


def manifest_of(place: Place) -> Manifest:
    manifest = ManifestLog(state_of(str(place.folder / "checkpoint"))).latest()
    assert manifest is not None
    return manifest


def batches(place: Place, query: str) -> dict[int, Counter[tuple[Any, ...]]]:
    """Return what each batch has written of a query."""
    found: dict[int, Counter[tuple[Any, ...]]] = {}
    folder = place.folder / "out" / query
    for file in sorted(folder.glob("*.parquet")):
        match = re.match(rf"{query}-(\d+)-", file.name)
        assert match is not None
        alone = folder / "alone"
        alone.mkdir(exist_ok=True)
        (alone / file.name).write_bytes(file.read_bytes())
        found.setdefault(int(match[1]), Counter()).update(rows_in(alone))
        (alone / file.name).unlink()
    return found


def test_groups_arrive_with_the_batch_after_the_one_that_wrote_them(place: Place) -> None:
    for _ in range(5):
        place.arrive()
    place.engine().run_available()
    written = batches(place, "fives")
    taken = batches(place, "many")
    assert written
    assert taken == {
        batch + 1: Counter({row: count for row, count in rows.items() if row[2] > 1}) for batch, rows in written.items()
    }
    assert not any(made.files for made in manifest_of(place).made)


def test_windows_over_groups_are_over_once_all_groups_in_them_have_arrived(place: Place) -> None:
    for _ in range(5):
        place.arrive()
    place.engine().run_available()
    written, closed = batches(place, "fives"), batches(place, "tens")
    assert closed
    for batch, rows in closed.items():
        ends = [row[0] for earlier, groups in written.items() if earlier < batch for row in groups]
        assert max(row[0] for row in rows) <= max(ends)


def test_windows_over_groups_are_over_although_no_group_comes_that_says_so(place: Place) -> None:
    place.queries = (replace(FIVES, text=FIVES.text + " HAVING count(*) > 1"), QUERIES[1])
    place.arrive(seconds=5, keys=1)
    for second in (7, 40):  # windows of one row alone, of which there is no group
        place.seconds = second
        place.arrive(rows=1, seconds=1)
    place.engine().run_available()
    assert {row[0] for row in rows_in(place.folder / "out" / "fives")} == {5_000_000}
    assert {row[0] for row in rows_in(place.folder / "out" / "tens")} == {10_000_000}
    assert manifest_of(place).unfed == 1


def test_the_input_ends_level_by_level(place: Place) -> None:
    for _ in range(3):
        place.arrive()
    place.engine().run_available(close=True)
    manifest = manifest_of(place)
    assert manifest.ended
    assert (manifest.batch, manifest.unfed) == (4, 2)
    assert place.found() == place.wanted()
    with pytest.raises(OptionError, match="has ended"):
        place.engine().run_available()


def test_an_end_that_was_cut_short_goes_on_without_reading_more(place: Place, deaths: Deaths) -> None:
    place.queries = (*QUERIES, counted("twenties", "tens", "until", 20))
    for _ in range(2):
        place.arrive()
    deaths.arm("committed", 3)  # the first batch of the end
    with pytest.raises(PlaitError):
        place.engine().run_available(close=True)
    deaths.arm(None, 1)
    assert not manifest_of(place).ended
    assert manifest_of(place).watermark_us == END_OF_TIME_US
    wanted = place.wanted()
    place.arrive()
    with pytest.raises(OptionError, match="has ended, and results wait; run it with --available-now"):
        place.engine().start()
    place.engine().run_available()
    assert manifest_of(place).ended
    assert place.found() == wanted


def test_an_end_that_was_cut_short_stays_one_although_a_stream_has_never_sent_anything(
    place: Place, deaths: Deaths
) -> None:
    place.queries = (*QUERIES, Made(name="others", text="SELECT id FROM b", oracle="", kind="", needs=("b",)))
    (place.folder / "b").mkdir()
    place.arrive(streams="a")
    deaths.arm("committed", 2)  # the first batch of the end
    with pytest.raises(PlaitError):
        place.engine().run_available(close=True)
    deaths.arm(None, 1)
    place.arrive()
    place.engine().run_available()
    manifest = manifest_of(place)
    assert manifest.ended
    assert {known.source: known.rows for known in manifest.sources if known.source in ("a", "b")} == {"a": 12, "b": 0}


def test_a_query_whose_groups_are_read_is_neither_dropped_nor_replaced(place: Place) -> None:
    place.arrive()
    engine = place.engine()
    for change in (
        lambda: engine.drop("fives"),
        lambda: engine.replace("fives", FIVES.text, sink=plait.sinks.noop()),
    ):
        with pytest.raises(OptionError, match=r"query 'fives' is read by query 'tens'.*drop 'tens' first"):
            change()
    for name in ("tens", "many", "fives"):
        engine.drop(name)


def test_a_program_asks_over_groups_as_a_script_does(place: Place) -> None:
    place.queries = (FIVES,)
    for _ in range(3):
        place.arrive()
    engine = place.engine()
    many = engine.query("many", MANY, sink=plait.sinks.memory())
    select = "SELECT f.n, b.id FROM fives f JOIN b ON f.k = b.k"
    engine.query("joined", select, sink=plait.sinks.memory(), windows={"f": "10 seconds"})
    engine.query(
        "nameless", "SELECT window.end AS e, count(*) FROM a GROUP BY window(ts, '5 seconds')", sink=plait.sinks.noop()
    )
    with pytest.raises(SqlError, match=r"'nameless' groups, and cannot be read so: .*window\.end"):
        engine.query("no", "SELECT n.e FROM nameless n", sink=plait.sinks.noop())
    engine.run_available(close=True)
    assert sorted(many.results()["n"].to_pylist()) == sorted(
        row[2] for row in rows_in(place.folder / "out" / "fives") if row[2] > 1
    )
    assert len(engine.results("joined"))


def test_other_groups_under_the_name_of_those_that_are_read_are_refused(place: Place) -> None:
    place.arrive()
    place.engine().run_available()
    other = Place(
        place.folder,
        place.rng,
        (counted("fives", "b", "ts", 5), *QUERIES[1:]),
        files=place.files,
        seconds=place.seconds,
    )
    with pytest.raises(CheckpointError, match="query 'fives' was another one when its groups were last read"):
        other.engine().run_available()
    only(other, {"fives"}).engine().run_available()
    other.arrive()
    other.engine().run_available()


def test_what_was_gathered_of_other_groups_is_let_go(place: Place) -> None:
    place.queries = QUERIES[:2]
    for _ in range(4):
        place.arrive()
    place.engine().run_available()
    assert next(groups for groups in manifest_of(place).groups if groups.query == "tens").files
    fives = replace(FIVES, text=FIVES.text.replace("FROM a", "FROM a WHERE id > 4"))
    place.queries = (fives,)
    place.arrive()
    place.engine().run_available()
    before = rows_in(place.folder / "out" / "tens")
    place.queries = (fives, QUERIES[1], replace(QUERIES[1], name="again"))
    for _ in range(2):
        place.arrive()
    place.engine().run_available(close=True)
    assert rows_in(place.folder / "out" / "tens") - before == rows_in(place.folder / "out" / "again") != Counter()


def test_a_query_over_groups_that_comes_later_sees_those_that_are_written_from_then_on(place: Place) -> None:
    for _ in range(3):
        place.arrive()
    only(place, {"fives"}).engine().run_available()
    before = sum(batches(place, "fives").values(), Counter[tuple[Any, ...]]())
    assert before
    for _ in range(2):
        place.arrive()
    place.engine().run_available(close=True)
    later = rows_in(place.folder / "out" / "fives") - before
    assert rows_in(place.folder / "out" / "many") == Counter({row: n for row, n in later.items() if row[2] > 1})


def test_groups_that_nobody_reads_any_more_are_not_kept(place: Place) -> None:
    joined = Made(
        name="joined",
        text="SELECT f.n, b.id FROM fives f JOIN b ON f.k = b.k",
        oracle="",
        kind="join",
        needs=("fives", "b"),
        windows=(("f", 30),),
    )
    place.queries = (FIVES, joined)
    for _ in range(3):
        place.arrive()
    place.engine().run_available()
    assert "fives" in {bucket.store for bucket in manifest_of(place).buckets}
    place.arrive()
    only(place, {"fives"}).engine().run_available()
    assert manifest_of(place).made == ()
    assert "fives" not in {bucket.store for bucket in manifest_of(place).buckets}


def test_groups_are_forgotten_once_nothing_can_join_them(place: Place) -> None:
    joined = Made(
        name="joined",
        text="SELECT f.n AS n, b.id AS id FROM fives f JOIN b ON f.k = b.k",
        oracle="SELECT f.n, b.id FROM fives f JOIN b ON f.k = b.k AND b.ts - f.until <= 5000000 "
        "AND f.until - b.ts <= 10000000",
        kind="join",
        needs=("fives", "b"),
        windows=(("f", 5),),
    )
    place.queries = (FIVES, joined, *QUERIES[1:])
    for _ in range(12):
        place.arrive()
    place.engine().run_available()
    stored = [bucket for bucket in manifest_of(place).buckets if bucket.store == "fives"]
    assert stored
    assert sum(bucket.rows for bucket in stored) * 2 < rows_in(place.folder / "out" / "fives").total()
    place.engine().run_available(close=True)
    assert place.found() == place.wanted()


def test_a_query_over_groups_begins_while_the_engine_runs(place: Place) -> None:
    place.queries = (FIVES,)
    for _ in range(5):
        place.arrive()
    session, handles = Session(), list[plait.runtime.declarations.QueryHandle]()
    engine = place.engine(session)

    def boundary(batch: int, done: bool) -> None:
        if batch == 2 and not handles:
            handles.append(engine.query("many", MANY, sink=plait.sinks.memory()))
            assert engine._run is not None
            engine._run.settle()

    session.boundary = boundary
    engine.run_available(close=True)
    since = handles[0].active_since
    assert since == 2
    later = [row for batch, rows in batches(place, "fives").items() if batch >= since for row in rows.elements()]
    assert sorted(handles[0].results()["n"].to_pylist()) == sorted(row[2] for row in later if row[2] > 1)


def test_all_queries_make_room_for_others_of_their_names_while_the_engine_runs(place: Place) -> None:
    place.queries = QUERIES[:2]
    for _ in range(6):
        place.arrive()
    session, handles = Session(), list[plait.runtime.declarations.QueryHandle]()
    engine = place.engine(session)

    def boundary(batch: int, done: bool) -> None:
        if batch == 3 and not handles:
            engine.drop("tens")
            engine.drop("fives")
            text = FIVES.text.replace("FROM a", "FROM a WHERE id > 4")
            handles.append(engine.query("fives", text, sink=plait.sinks.memory()))
            handles.append(engine.query("tens", TENS.text, sink=plait.sinks.memory()))
            assert engine._run is not None
            engine._run.settle()

    session.boundary = boundary
    engine.run_available(close=True)
    fives, tens = (handle.results() for handle in handles)
    assert manifest_of(place).ended
    assert len(fives) == sum(tens["n"].to_pylist()) > 0


def test_groups_that_a_batch_has_taken_in_are_not_those_of_the_query_that_comes_within_it(
    place: Place, hooks: dict[str, Any]
) -> None:
    place.queries = (FIVES, QUERIES[2])
    for _ in range(6):
        place.arrive()
    text, handles = FIVES.text.replace("count(*)", "100 + count(*)"), list[plait.runtime.declarations.QueryHandle]()

    def ask(engine: plait.Engine) -> None:
        engine.drop("many")
        engine.replace("fives", text, sink=plait.sinks.memory())
        handles.append(engine.query("many", MANY, sink=plait.sinks.memory()))

    engine = place.engine()
    hooks["stored"] = Asking(engine, ask, 3)
    engine.run_available()
    assert handles[0].active_since == 4
    found = handles[0].results()["n"].to_pylist()
    assert found
    assert min(found) > 100


def test_queries_over_the_groups_of_one_that_fails_are_set_aside_with_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closing_groups, "is_of_data", lambda text: True)  # DuckDB says it in its own words
    failing = (
        "SELECT window.end AS until, k, sum(9223372036854775807 * id) AS n FROM a GROUP BY window(ts, '5 seconds'), k"
    )
    beside = counted("beside", "b", "ts", 5)
    place.queries = (
        beside,
        Made(name="fives", text=failing, oracle="", kind="failing", needs=("a",)),
        *QUERIES[1:],
    )
    for _ in range(3):
        place.arrive()
    engine = place.engine()
    engine.run_available(close=True)
    aside = engine.status()["set_aside"]
    assert sorted(aside) == ["fives", "many", "tens"]
    assert aside["tens"] == "it reads the groups of query 'fives', which is set aside"
    only_beside = only(place, {"beside"})
    assert only_beside.found() == only_beside.wanted()


def test_a_query_that_fails_for_a_group_is_set_aside_alone(place: Place) -> None:
    failing = "SELECT n FROM fives WHERE (9223372036854775807 * n) % 2 = 1"
    place.queries = (*QUERIES, Made(name="bad", text=failing, oracle="", kind="failing", needs=("fives",)))
    for _ in range(4):
        place.arrive(keys=1)
    engine = place.engine()
    engine.run_available(close=True)
    assert list(engine.status()["set_aside"]) == ["bad"]
    place.queries = QUERIES
    assert place.found() == place.wanted()


def test_a_query_over_groups_is_not_tried_again_before_the_one_that_it_reads(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closing_groups, "is_of_data", lambda text: True)
    failing = FIVES.text.replace("count(*)", "sum(9223372036854775807 * id)")
    place.queries = (counted("beside", "b", "ts", 5), replace(FIVES, text=failing), *QUERIES[1:])
    for _ in range(3):
        place.arrive()
    place.engine().run_available()
    engine = place.engine()
    engine.run_available()
    with pytest.raises(OptionError, match="query 'tens' reads the groups of query 'fives', which is set aside"):
        engine.retry("tens")
    engine.retry("fives")
    engine.retry("tens")
    assert sorted(engine.status()["set_aside"]) == ["many"]
