"""Queries whose expressions fail for some row are set aside alone: what they had found stays, and others miss nothing.

Each query pairs equal values, and computes something beside that overflows from some value on. So what each has to find
is known: all pairs of the batches before the first in which it fails. ``PLAIT_CASES=500`` draws more cases,
``PLAIT_SEED=7`` others.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import plait
from plait import faults
from plait.errors import ComputationError, OptionError, PlaitError, PredicateError
from plait.operators.probe.calling import FOLDER
from plait.runtime.checkpoint.set_aside import FILE
from plait.runtime.engine import Engine, QueryHandle
from plait.sql import load_script
from tests.property.life_running import Killed
from tests.property.standin.frames import WorkerEnded
from tests.property.standin.session import Session
from tests.property.test_undelivered import JOIN, Place, place

__all__ = ["place"]

CASES = int(os.environ.get("PLAIT_CASES", "12"))
SEED = int(os.environ.get("PLAIT_SEED", "0"))
LARGEST = 2**63 - 1
KEEP = "OPTIONS (path '{{0}}/{0}', maxFilesPerTrigger '1') TIMESTAMP BY ts WINDOW INTERVAL 100 SECONDS;"
SCRIPT = "".join(
    f"CREATE STREAM {name} (ts TIMESTAMP, k BIGINT, v BIGINT) USING parquet {KEEP.format(name)}" for name in "ab"
)
NEVER = 10_000
"""A value that does not arrive."""

KINDS = ("selection", "key", "residual", "function", "worker")
POINTS = ("stored", "probed", "closed", "delivered", "committed", "published")


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, what it computes, and the largest value for which it can."""

    name: str
    kind: str
    last: int

    @property
    def select(self) -> str:
        """Return its text. A multiple of a value overflows from the one after the last on."""
        once, twice = LARGEST // self.last, LARGEST // self.last**2
        match self.kind:
            case "selection":
                return f"{JOIN} WHERE a.v * {once} % 7 >= 0"
            case "key":
                return f"SELECT a.k, b.v FROM a JOIN b ON a.v * {once} = b.v * {once}"
            case "residual":
                return f"{JOIN} AND a.v * b.v * {twice} % 7 >= 0"
            case "worker":
                return f"{JOIN} AND lives_up_to_{self.last}(a.v, b.v)"
            case _:
                return f"{JOIN} AND up_to_{self.last}(a.v, b.v)"

    def results(self, batches: list[list[int]]) -> list[int]:
        """Return what it finds: nothing any more from the batch on in which it fails."""
        found = list[int]()
        for values in batches:
            if max(values) > self.last:
                break
            found += values
        return sorted(found)


def function(last: int) -> Any:
    """Return a predicate that fails beyond a value."""

    def up_to(left: pa.Array, right: pa.Array) -> pa.Array:
        if pc.max(left).as_py() > last:
            raise ValueError(f"beyond {last}")
        return pc.equal(left, right)

    return up_to


def deadly(last: int) -> Any:
    """Return a predicate that ends its worker beyond a value."""

    def lives_up_to(left: pa.Array, right: pa.Array) -> pa.Array:
        if pc.max(left).as_py() > last:
            raise WorkerEnded
        return pc.equal(left, right)

    return lives_up_to


def opened(place: Place, queries: list[Asked], **options: str) -> tuple[Engine, Session]:
    """Return an engine on the checkpoint, with these queries, and its session."""
    session = Session()
    engine = plait.Engine(session, checkpoint=str(place.folder / "checkpoint"))  # type: ignore[arg-type]
    for name, value in options.items():
        engine.set_option(f"plait.{name}", value)
    engine.load(load_script(SCRIPT.format(place.folder)))
    for last in {each.last for each in queries if each.kind == "function"}:
        engine.predicate(f"up_to_{last}", function(last))
    for last in {each.last for each in queries if each.kind == "worker"}:
        engine.predicate(f"lives_up_to_{last}", deadly(last))
    for each in queries:
        engine.query(each.name, each.select, sink=plait.sinks.parquet(str(place.folder / each.name)))
    return engine, session


def found(place: Place, query: str) -> list[int]:
    """Return what is in the sink of a query."""
    return sorted(v for file in (place.folder / query).glob("*.parquet") for v in pq.read_table(file)["v"].to_pylist())


def aside(engine: Engine) -> dict[str, str]:
    """Return which queries are set aside, and why."""
    told: dict[str, str] = engine.status()["set_aside"]
    return told


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with every start of the streaming query."""
    seen: list[int] = []
    start = Engine._start_streaming

    def counted(self: Engine, *told: Any) -> Any:
        seen.append(len(seen))
        return start(self, *told)

    monkeypatch.setattr(Engine, "_start_streaming", counted)
    return seen


def test_a_query_whose_selection_fails_is_set_aside_and_another_keeps_its_results(place: Place) -> None:
    for values in ((1, 2), (3, 9), (4,)):
        place.arrive(*values)
    steady, failing = Asked("steady", "selection", NEVER), Asked("failing", "selection", 5)
    engine, _ = opened(place, [steady, failing])
    summary = engine.run_available()
    assert found(place, "steady") == [1, 2, 3, 4, 9]
    assert found(place, "failing") == [1, 2]
    (told,) = summary.set_aside
    assert told[0] == "failing"
    assert "for some row of 'a'" in told[1]
    (warning,) = (each for each in summary.warnings if each.kind == "query set aside")
    assert (warning.of, summary.batches) == ("failing", 3)
    assert "from batch 1 on" in warning.text
    assert "--retry failing" in warning.text


def test_queries_that_fail_together_are_found_together(place: Place, starts: list[int]) -> None:
    place.arrive(1)
    place.arrive(9)
    kinds = ("selection", "key")
    failing = [Asked(f"{kind}{last}", kind, last) for kind in kinds for last in range(2, 8)]
    engine, _ = opened(place, [Asked("steady", "key", NEVER), *failing])
    engine.run_available()
    assert sorted(aside(engine)) == sorted(each.name for each in failing)
    assert len(starts) == 3  # the run, to find out which, and without them
    assert found(place, "steady") == [1, 9]


def test_predicates_that_fail_together_take_one_more_start(place: Place, starts: list[int]) -> None:
    place.arrive(1)
    place.arrive(9)
    failing = [Asked(f"{kind}{last}", kind, last) for kind in ("residual", "function") for last in range(2, 8)]
    engine, _ = opened(place, [Asked("steady", "key", NEVER), *failing])
    engine.run_available()
    assert sorted(aside(engine)) == sorted(each.name for each in failing)
    assert len(starts) == 2
    assert {found(place, each.name) == [1] for each in failing} == {True}


def test_a_function_that_ends_its_worker_sets_aside_the_queries_alone_that_call_it(
    place: Place, starts: list[int]
) -> None:
    place.arrive(1)
    place.arrive(9)
    others = [Asked("steady", "worker", NEVER), Asked("calm", "function", NEVER)]
    engine, _ = opened(place, [*others, Asked("deadly", "worker", 5), Asked("twin", "worker", 5)])
    summary = engine.run_available()
    assert sorted(aside(engine)) == ["deadly", "twin"]
    assert aside(engine)["twin"].startswith("predicate 'lives_up_to_5' ended the Python worker that called it")
    assert [found(place, name) for name in ("steady", "calm", "deadly", "twin")] == [[1, 9], [1, 9], [1], [1]]
    assert (len(starts), summary.batches) == (2, 2)


def test_where_several_workers_end_with_the_job_one_at_a_time_tells_whose_function_it_was(
    place: Place, starts: list[int]
) -> None:
    place.arrive(1)
    place.arrive(9)
    notes, calls, slots = place.folder / "checkpoint" / "plait" / FOLDER, list[str](), list[int]()

    def ends(left: pa.Array, right: pa.Array) -> pa.Array:
        if pc.max(left).as_py() > 5:
            if not calls:  # another worker is in the middle of another function when the job is given up
                (notes / "up_to_50.77").touch()
            calls.append("ends")
            raise WorkerEnded
        return pc.equal(left, right)

    engine, session = opened(place, [Asked("steady", "selection", NEVER), Asked("calm", "function", 50)])
    engine.predicate("ends", ends)
    engine.query("deadly", f"{JOIN} AND ends(a.v, b.v)", sink=plait.sinks.parquet(str(place.folder / "deadly")))
    session.boundary = lambda batch, done: slots.append(engine._asked().settings.slots)
    engine.run_available()
    assert list(aside(engine)) == ["deadly"]
    assert [found(place, name) for name in ("steady", "calm", "deadly")] == [[1, 9], [1, 9], [1]]
    assert (len(calls), len(starts)) == (2, 3)
    assert slots[:4] == [2, 2, 1, 2]  # before each attempt of a batch


def test_the_last_query_that_is_left_ends_the_run(place: Place) -> None:
    place.arrive(9)
    engine, _ = opened(place, [Asked("failing", "residual", 5)])
    with pytest.raises(PredicateError, match="cannot be computed"):
        engine.run_available()
    assert aside(engine) == {}


def test_a_query_stays_aside_until_it_is_asked_for_again(place: Place) -> None:
    both = [Asked("steady", "selection", NEVER), Asked("failing", "residual", 5)]
    place.arrive(1)
    place.arrive(9)
    opened(place, both)[0].run_available()
    place.arrive(2)
    later, _ = opened(place, both)
    summary = later.run_available()
    assert ([query for query, _ in summary.set_aside], found(place, "failing")) == (["failing"], [1])
    place.arrive(3)
    again, _ = opened(place, both)
    with pytest.raises(OptionError, match="'steady' is not set aside"):
        again.retry("steady")
    handle = again.retry("failing")
    again.run_available()
    assert handle.active_since == 3
    assert (aside(again), found(place, "failing"), found(place, "steady")) == ({}, [1, 3], [1, 2, 3, 9])


def test_another_query_of_its_name_takes_its_place(place: Place) -> None:
    steady = Asked("steady", "selection", NEVER)
    place.arrive(1)
    place.arrive(9)
    opened(place, [steady, Asked("failing", "residual", 5)])[0].run_available()
    place.arrive(7)
    mended, _ = opened(place, [steady, Asked("failing", "residual", 50)])
    mended.run_available()
    assert (aside(mended), found(place, "failing")) == ({}, [1, 7])


def test_a_query_that_runs_already_can_be_replaced_or_tried_again(place: Place) -> None:
    for value in (1, 9, 2, 3, 8):
        place.arrive(value)
    engine, session = opened(place, [Asked("steady", "selection", NEVER), Asked("failing", "residual", 5)])
    told, handles = list[str | None](), list[QueryHandle]()

    def boundary(batch: int, done: bool) -> None:
        run = engine._run
        assert run is not None
        if batch == 2 and not told:
            told.append(aside(engine)["failing"])
            handle = engine.retry("failing")
            run.settle()
            told.append(handle.set_aside)
        if batch == 3 and not handles:
            sink = plait.sinks.parquet(str(place.folder / "failing"))
            handles.append(engine.replace("failing", Asked("failing", "key", 50).select, sink=sink))
            run.settle()

    session.boundary = boundary
    engine.run_available()
    assert told[1:] == [None]
    assert [each.active_since for each in handles] == [3]
    assert found(place, "failing") == [1, 2, 3, 8]
    assert found(place, "steady") == [1, 2, 3, 8, 9]
    assert aside(engine) == {}


def test_a_query_that_fails_on_stored_rows_is_refused_and_the_one_it_was_to_replace_goes_on(place: Place) -> None:
    for value in (1, 9, 2):
        place.arrive(value)
    engine, session = opened(place, [Asked("steady", "selection", NEVER), Asked("changing", "residual", 50)])
    handles = list[QueryHandle]()

    def boundary(batch: int, done: bool) -> None:
        if batch == 2 and not handles:
            sink = plait.sinks.parquet(str(place.folder / "changing"))
            handles.append(engine.replace("changing", Asked("changing", "key", 5).select, sink=sink))
            assert engine._run is not None
            engine._run.settle()

    session.boundary = boundary
    engine.run_available()
    with pytest.raises(ComputationError, match="for some row of"):
        handles[0].wait_active(0)
    assert (found(place, "changing"), aside(engine)) == ([1, 2, 9], {})


def test_a_handle_tells_that_its_query_is_set_aside(place: Place) -> None:
    place.arrive(9)
    engine, _ = opened(place, [Asked("steady", "selection", NEVER)])
    handle = engine.query("failing", Asked("failing", "residual", 5).select, sink=plait.sinks.memory())
    assert handle.set_aside is None
    engine.run_available()
    assert "query 'failing' is set aside from batch 0 on" in (handle.set_aside or "")
    with pytest.raises(ComputationError, match="set aside"):
        handle.wait_active(0)
    assert len(handle.results()) == 0


def test_a_run_without_another_query_says_why_all_are_set_aside(place: Place) -> None:
    place.arrive(9)
    failing = Asked("failing", "residual", 5)
    opened(place, [Asked("steady", "selection", NEVER), failing])[0].run_available()
    with pytest.raises(OptionError, match="no query is left to run; query 'failing' is set aside"):
        opened(place, [failing])[0].run_available()


def test_what_cannot_be_read_of_those_set_aside_has_them_tried_once_more(place: Place) -> None:
    place.arrive(9)
    both = [Asked("steady", "selection", NEVER), Asked("failing", "residual", 5)]
    opened(place, both)[0].run_available()
    (place.folder / "checkpoint" / "plait" / FILE).write_text(json.dumps({"queries": [{}]}))
    place.arrive(9)
    engine, _ = opened(place, both)
    engine.run_available()
    assert list(aside(engine)) == ["failing"]


def test_rows_without_a_partner_that_cannot_be_told_at_the_end_set_their_query_aside(place: Place) -> None:
    for values in ((1, 2), (9,)):
        place.arrive(*values)
    engine, _ = opened(place, [Asked("steady", "selection", NEVER)])
    product = f"a.v * b.v * {LARGEST // 25} % 7 >= 0"
    lonely = {"fails": f"a.k = b.k AND {product}", "lonely": "a.k = b.k + 1"}
    for name, condition in lonely.items():
        select = f"SELECT a.k, a.v FROM a LEFT ANTI JOIN b ON {condition}"
        engine.query(name, select, sink=plait.sinks.parquet(str(place.folder / name)))
    summary = engine.run_available(close=True)
    assert [query for query, _ in summary.set_aside] == ["fails"]
    assert (found(place, "steady"), found(place, "lonely")) == ([1, 2, 9], [1, 9])
    with pytest.raises(OptionError, match="has ended"):
        opened(place, [Asked("steady", "selection", NEVER)])[0].run_available()


def test_a_table_whose_rows_cannot_be_computed_for_a_query_sets_it_aside(place: Place) -> None:
    place.arrive(1, 2)
    rows = pa.table({"n": pa.array([1, 9], pa.int64())})
    (place.folder / "t").mkdir()
    pq.write_table(rows, place.folder / "t" / "all.parquet")
    engine, _ = opened(place, [Asked("steady", "selection", NEVER)])
    table = "CREATE TABLE t (n BIGINT) USING parquet OPTIONS (path '{0}/t');"
    engine.load(load_script((SCRIPT + table).format(place.folder)))
    for name, last in (("fails", 5), ("fits", 50)):
        select = f"SELECT a.k, a.v FROM a JOIN t ON a.v * {LARGEST // last} = t.n * {LARGEST // last}"
        engine.query(name, select, sink=plait.sinks.parquet(str(place.folder / name)))
    engine.run_available()
    assert list(aside(engine)) == ["fails"]
    assert (found(place, "steady"), found(place, "fits")) == ([1, 2], [1])


@pytest.mark.parametrize("number", range(CASES))
def test_random_queries_that_fail_at_random_batches_take_nothing_from_others_whatever_is_killed(
    place: Place, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(1000 * SEED + number)
    values = random.sample(range(1, 40), 20)
    batches = [[values.pop() for _ in range(random.randint(1, 4))] for _ in range(random.randint(2, 5))]
    queries = [
        Asked(f"q{place}", random.choice(KINDS), random.choice((3, 10, 20, 30, NEVER)))
        for place in range(random.randint(2, 8))
    ]
    queries.append(Asked("steady", random.choice(KINDS), NEVER))
    kills = [(random.choice(POINTS), random.randint(1, 3)) for _ in range(random.randint(0, 3))]
    options = {"strategy": random.choice(("dppick", "greedy", "adhoc")), "routing": random.choice(("local", "shuffle"))}
    together = random.randint(1, len(batches))
    for arriving in (batches[:together], *([each] for each in batches[together:])):
        for each in arriving:
            place.arrive(*each)
        while True:
            kill = kills.pop() if kills else None
            _arm(monkeypatch, kill)
            try:
                opened(place, queries, **options)[0].run_available()
            except (Killed, PlaitError):
                if kill is None:
                    raise
                continue
            break
    for each in queries:
        assert found(place, each.name) == each.results(batches), each


def _arm(patch: pytest.MonkeyPatch, kill: tuple[str, int] | None) -> None:
    def die(*_: object) -> None:
        raise Killed

    faults._reached.clear()
    environment = {} if kill is None else {"PLAIT_FAULT": f"{kill[0]}:{kill[1]}"}
    patch.setattr(faults, "os", SimpleNamespace(environ=environment, kill=die, getpid=os.getpid))


def test_files_of_the_checkpoint_tell_who_is_set_aside(place: Place, tmp_path: Path) -> None:
    place.arrive(9)
    opened(place, [Asked("steady", "selection", NEVER), Asked("failing", "residual", 5)])[0].run_available()
    (noted,) = json.loads((tmp_path / "checkpoint" / "plait" / FILE).read_text())["queries"]
    assert (noted["query"], noted["batch"]) == ("failing", 0)


def test_explain_shows_how_a_query_that_is_set_aside_would_be_answered_and_why_it_is_not(place: Place) -> None:
    place.arrive(9)
    engine, _ = opened(place, [Asked("steady", "selection", NEVER), Asked("failing", "residual", 5)])
    engine.run_available()
    for queries in (("failing",), ("steady", "failing")):
        text = " ".join(engine.explain(queries=queries).split())
        assert "query 'failing' is set aside from batch 0 on" in text
        assert "would be answered by itself, not what is in force" in text
        assert "a.v * b.v" in text
    assert "set aside" not in engine.explain(queries="steady")
    with pytest.raises(OptionError, match="no query 'other'"):
        engine.explain(queries=("failing", "other"))
