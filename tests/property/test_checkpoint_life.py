"""What queries get that are added or changed on an old checkpoint, of streams that come, go and come back.

Times are whole seconds, windows 30 seconds unless a stream says otherwise.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from plait.operators.close.lacking import Lacking, with_forgotten
from plait.state.model import SourceProgress
from tests.property.checkpoint_life import SECOND_US, Life, stream

A = stream("a", "ts timestamp, s string, x bigint, n int, d date")
B = stream("b", "ts timestamp, id bigint, y bigint, t string, d date")
STREAMS = [A, B]
DAY = date(2026, 1, 2)


def a(second: int, s: str | None = "5", x: int | None = 7, n: int | None = 3, d: date | None = DAY) -> tuple[Any, ...]:
    return (second, s, x, n, d)


def b(second: int, id: int | None = 5, y: int = 1, t: str = "5", d: date | None = DAY) -> tuple[Any, ...]:
    return (second, id, y, t, d)


@pytest.fixture(params=["local", "shuffled"])
def life(tmp_path: Path, request: pytest.FixtureRequest) -> Life:
    return Life(tmp_path, shuffled=request.param == "shuffled")


# What is stored serves a changed query as far as it goes: (query before, query after, what a row of b then adds).
CHANGED = {
    "a key of another type": (
        "SELECT a.s, b.id FROM a JOIN b ON a.s = b.t",
        "SELECT a.s, b.id FROM a JOIN b ON try_cast(a.s AS BIGINT) = b.id",
        ("5", 5),
    ),
    "a column that was only a key": (
        "SELECT b.y FROM a JOIN b ON a.x = b.id + 2",
        "SELECT a.x, b.y FROM a JOIN b ON a.x = b.id + 2",
        (7, 1),
    ),
    "a column that was a key in a wider type": (
        "SELECT b.y FROM a JOIN b ON a.n = b.id - 2",
        "SELECT a.n + 1, b.y FROM a JOIN b ON a.n = b.id - 2",
        (4, 1),
    ),
    "a text that was only a key": (
        "SELECT b.y FROM a JOIN b ON a.s = b.t",
        "SELECT a.s, b.y FROM a JOIN b ON a.s = b.t",
        ("5", 1),
    ),
    "a date that was only a key": (
        "SELECT b.y FROM a JOIN b ON a.d = b.d",
        "SELECT year(a.d), b.y FROM a JOIN b ON a.d = b.d",
        (2026, 1),
    ),
    "event time": (
        "SELECT b.y FROM a JOIN b ON a.x = b.id + 2",
        "SELECT hour(a.ts), b.y FROM a JOIN b ON a.x = b.id + 2",
        (0, 1),
    ),
    "a selection on a key": (
        "SELECT b.y FROM a JOIN b ON a.x = b.id + 2",
        "SELECT b.y FROM a JOIN b ON a.x = b.id + 2 WHERE a.x > 6",
        (1,),
    ),
    "a key computed from a column that is selected by": (
        "SELECT a.x, b.id, b.y FROM a JOIN b ON a.s = b.t WHERE a.x > 3",
        "SELECT b.y FROM a JOIN b ON a.x + 1 = b.id + 3 WHERE a.x > 3",
        (1,),
    ),
}


@pytest.mark.parametrize("dead_letter", [None, "/letters"], ids=["", "dead letters"])
@pytest.mark.parametrize("case", CHANGED)
def test_a_changed_query_uses_everything_that_is_stored(tmp_path: Path, case: str, dead_letter: str | None) -> None:
    before, after, row = CHANGED[case]
    streams = [replace(each, dead_letter=dead_letter) for each in STREAMS]
    life = Life(tmp_path)
    assert life.run(streams, {"q": before}, {"a": [a(0)], "b": [b(0)]}).results["q"].total() == 1
    ran = life.run(streams, {"q": after}, {"b": [b(4)]})
    assert ran.results["q"] == Counter([row])
    assert ran.lacking == ()


def test_what_one_query_cannot_have_does_not_keep_another_from_what_it_can(life: Life) -> None:
    old = "SELECT a.s, b.id FROM a JOIN b ON a.s = b.t"
    life.run(STREAMS, {"old": old}, {"a": [a(0)], "b": [b(0)]})
    ran = life.run(
        STREAMS,
        {
            "old": old,
            "computed": "SELECT b.id FROM a JOIN b ON try_cast(a.s AS BIGINT) = b.id",
            "missing": "SELECT a.x, b.id FROM a JOIN b ON a.s = b.t",
            "by_a_missing_key": "SELECT a.s FROM a JOIN b ON a.x = b.id + 2",
            "selected_by_a_missing_column": "SELECT a.s FROM a JOIN b ON a.s = b.t WHERE a.n > 0",
        },
        {"a": [a(3)], "b": [b(4)]},
    )
    # Of a's rows the one of the first run counts only where nothing is missing in it, b's first row likewise.
    assert ran.results == {
        "old": Counter({("5", 5): 3}),
        "computed": Counter({(5,): 3}),
        "missing": Counter({(7, 5): 2}),
        "by_a_missing_key": Counter({("5",): 2}),
        "selected_by_a_missing_column": Counter({("5",): 2}),
    }
    assert [(each.query, each.stream, each.columns, each.rows) for each in ran.lacking] == [
        ("by_a_missing_key", "a", ("x",), 1),
        ("missing", "a", ("x",), 1),
        ("selected_by_a_missing_column", "a", ("n > 0",), 1),
    ]


def test_a_query_keeps_its_results_when_a_new_one_needs_more_in_a_step_they_share(life: Life) -> None:
    old = "SELECT a.s, b.id FROM a JOIN b ON a.x = b.id + 2"
    life.run(STREAMS, {"old": old}, {"a": [a(0)], "b": [b(0)]})
    ran = life.run(
        STREAMS, {"old": old, "new": "SELECT a.s, b.y FROM a JOIN b ON a.x = b.id + 2"}, {"a": [a(4)], "b": [b(4)]}
    )
    assert ran.results == {"old": Counter({("5", 5): 3}), "new": Counter({("5", 1): 2})}
    assert ran.lacking == (Lacking(query="new", stream="b", columns=("y",), rows=1, until_us=30 * SECOND_US),)


@pytest.mark.parametrize("strategy", ["ilp", "bushy"])
def test_intermediate_stores_keep_what_serves_a_query_though_another_lacks_columns_of_it(
    tmp_path: Path, strategy: str
) -> None:
    streams = [*STREAMS, stream("c", "ts timestamp, k bigint")]
    old = "SELECT a.s, b.id, c.k FROM a, b, c WHERE a.x = b.id + 2 AND b.id = c.k"
    new = "SELECT a.s, b.y, c.k FROM a, b, c WHERE a.x = b.id + 2 AND b.id = c.k"
    life = Life(tmp_path, strategy=strategy)
    life.run(streams, {"old": old}, {"a": [a(0)], "b": [b(0)], "c": [(0, 5)]})
    rows = {"a": [a(1)], "b": [b(2)], "c": [(4, 5)]}
    ran = life.run(streams, {"old": old, "new": new}, rows, {"c": [(5, 5)]}, storage_rows=1e6, store_weight=0.0)
    # 2 rows of a, 2 of b, 3 of c; of the 12 triples one was a result in the first run.
    assert ran.results["old"] == Counter({("5", 5, 5): 11})
    # Without the first row of b: 2 x 1 x 3.
    assert ran.results["new"] == Counter({("5", 1, 5): 6})


UNSTORED = {
    "rows outside the selections of their day": (
        {"q": "SELECT a.x FROM a JOIN b ON a.x = b.id WHERE a.x > 10"},
        "SELECT a.x FROM a JOIN b ON a.x = b.id",
        2,
    ),
    "rows with a NULL key": (
        {"q": "SELECT a.x FROM a JOIN b ON a.s = b.t"},
        "SELECT a.x FROM a JOIN b ON a.x = b.id",
        1,
    ),
    "rows of a stream that nothing was joined with": (
        {"q": "SELECT a.x FROM a", "r": "SELECT b.y FROM b"},
        "SELECT a.x FROM a JOIN b ON a.x = b.id",
        3,
    ),
}


def test_a_query_of_one_stream_lacks_none_of_the_rows_that_came_before_it(tmp_path: Path) -> None:
    life = Life(tmp_path)
    query = {"one": "SELECT a.x FROM a WHERE a.x > 5"}
    life.run(STREAMS, query, {"a": [a(0, x=5), a(1, x=6)], "b": [b(0)]})
    for queries in (query, {"one": "SELECT a.s FROM a", "two": "SELECT a.x FROM a"}):
        ran = life.run(STREAMS, queries, {"a": [a(2, x=12)], "b": [b(2)]})
        assert (ran.lacking, ran.lacking_at_end) == ((), ())


@pytest.mark.parametrize("case", UNSTORED)
def test_rows_that_were_not_stored_are_counted_until_they_no_longer_matter(tmp_path: Path, case: str) -> None:
    queries, added, unstored = UNSTORED[case]
    life = Life(tmp_path)
    life.run(STREAMS, queries, {"a": [a(0, x=5), a(1, s=None, x=6), a(2, x=12)], "b": [b(0, id=99)]})
    ran = life.run(STREAMS, {**queries, "new": added}, {"a": [a(3, x=20)], "b": [b(3, id=20)]})
    assert ran.results["new"] == Counter([(20,)])
    lacking = [each for each in ran.lacking if (each.query, each.stream, each.columns) == ("new", "a", ())]
    until = 1 if unstored < 3 else 2
    assert lacking == [Lacking(query="new", stream="a", columns=(), rows=unstored, until_us=(until + 30) * SECOND_US)]
    later = life.run(STREAMS, {**queries, "new": added}, {"a": [a(33)], "b": [b(33)]})
    assert [each for each in later.lacking if each.query == "new" and not each.columns] != []
    assert later.lacking_at_end == ()


@pytest.mark.parametrize("case", UNSTORED)
def test_a_stream_that_keeps_all_lacks_nothing(tmp_path: Path, case: str) -> None:
    queries, added, _ = UNSTORED[case]
    streams = [replace(each, keep="all") for each in STREAMS]
    life = Life(tmp_path)
    life.run(streams, queries, {"a": [a(0, x=5), a(1, s=None, x=6), a(2, x=12)], "b": [b(0, id=99)]})
    ran = life.run(streams, {**queries, "new": added}, {"b": [b(3, id=5), b(3, id=6), b(3, id=12)]})
    assert ran.results["new"] == Counter([(5,), (6,), (12,)])
    assert ran.lacking == ()


def test_a_query_over_rows_that_its_predecessor_stored_lacks_nothing(tmp_path: Path) -> None:
    life = Life(tmp_path)
    old = "SELECT a.x FROM a JOIN b ON a.x = b.id WHERE a.x > 10"
    life.run(STREAMS, {"old": old}, {"a": [a(0, x=5), a(1, x=12)], "b": [b(0, id=99)]})
    narrower = "SELECT a.x FROM a JOIN b ON a.x = b.id WHERE a.x > 10 AND a.x < 20"
    ran = life.run(STREAMS, {"new": narrower}, {"b": [b(3, id=12)]})
    assert (ran.results["new"], ran.lacking) == (Counter([(12,)]), ())


def test_rows_that_went_before_a_query_with_a_longer_window_came_are_counted_until_they_no_longer_matter(
    tmp_path: Path,
) -> None:
    short = [replace(each, window_us=10 * SECOND_US) for each in STREAMS]
    query = {"q": "SELECT a.x FROM a JOIN b ON a.x = b.id"}
    life = Life(tmp_path)
    life.run(short, query, {"a": [a(0), a(1)], "b": [b(0)]}, *({"a": [a(at)], "b": [b(at)]} for at in (15, 24)))
    assert life.run(short, query).lacking == ()
    ran = life.run(STREAMS, query, {"a": [a(31)], "b": [b(31)]}, {"a": [a(32)], "b": [b(32)]})
    # At 24 s the rows of the first batch are gone, those of 15 s are not.
    assert [(each.stream, each.rows, each.until_us, each.forgotten) for each in ran.lacking] == [
        ("a", 2, 31 * SECOND_US, True),
        ("b", 1, 30 * SECOND_US, True),
    ]
    assert "up to 2 rows of 'a' that query 'q' might need are gone" in ran.lacking[0].text
    assert ran.lacking_at_end == ()


def test_what_is_remembered_of_rows_that_went_has_a_bound_and_stays_even() -> None:
    progress = SourceProgress(source="a")
    for second in range(1000):
        progress = with_forgotten(progress, 1, second)
    assert sum(each.rows for each in progress.forgotten) == 1000
    assert len(progress.forgotten) == 16
    assert max(each.rows for each in progress.forgotten) < 200
    assert [each.tau_max_us for each in progress.forgotten] == sorted(each.tau_max_us for each in progress.forgotten)


def test_rows_that_a_rewritten_bucket_leaves_out_count_as_not_stored(tmp_path: Path) -> None:
    wide = "SELECT a.x FROM a JOIN b ON a.x = b.id"
    life = Life(tmp_path)
    life.run(STREAMS, {"wide": wide}, {"a": [a(0, x=5), a(1, x=12)], "b": [b(0, id=99)]})
    life.run(STREAMS, {"narrow": f"{wide} WHERE a.x > 10"}, {"b": [b(2, id=99)]})
    ran = life.run(STREAMS, {"wide": wide}, {"b": [b(3, id=5), b(3, id=12)]})
    missed = sum(each.rows for each in ran.lacking)
    assert ran.results["wide"].total() + missed == 2


# -- streams that come and go ------------------------------------------------------------------------------------------

AB = "SELECT a.x, b.y FROM a JOIN b ON a.x = b.id"
BC = "SELECT b.y, c.k FROM b JOIN c ON b.id = c.k"
C = stream("c", "ts timestamp, k bigint")


def test_a_stream_that_is_left_out_for_a_run_keeps_its_rows(life: Life) -> None:
    both = {"ab": AB, "bc": BC}
    life.run([A, B, C], both, {"a": [a(second, x=5) for second in range(10)], "b": [b(0)], "c": [(0, 5)]})
    life.run([B, C], {"bc": BC}, {"b": [b(1, y=2)]})
    ran = life.run([A, B, C], both, {"b": [b(9, y=3)]})
    assert ran.results == {"ab": Counter({(5, 3): 10}), "bc": Counter({(3, 5): 1})}


def test_a_stream_whose_only_query_is_dropped_keeps_its_rows(life: Life) -> None:
    life.run([A, B, C], {"ab": AB, "bc": BC}, {"a": [a(0, x=5)], "b": [b(0)], "c": [(0, 5)]})
    life.run([A, B, C], {"bc": BC}, {"b": [b(1)]})
    ran = life.run([A, B, C], {"ab": AB, "bc": BC}, {"b": [b(9, y=3)]})
    assert ran.results["ab"] == Counter({(5, 3): 1})


def test_a_stream_that_is_only_passed_through_for_a_run_keeps_its_earlier_rows_and_the_others_are_missed(
    life: Life,
) -> None:
    life.run([A, B, C], {"ab": AB, "bc": BC}, {"a": [a(0, x=5)], "b": [b(0)], "c": [(0, 5)]})
    life.run([A, B, C], {"alone": "SELECT a.s FROM a", "bc": BC}, {"a": [a(1, x=5)], "b": [b(1)], "c": [(1, 5)]})
    ran = life.run([A, B, C], {"ab": AB, "bc": BC}, {"b": [b(9, y=3)]})
    assert ran.results["ab"] == Counter({(5, 3): 1})
    assert [each for each in ran.lacking if each.stream == "a"] == [
        Lacking(query="ab", stream="a", columns=(), rows=1, until_us=31 * SECOND_US)
    ]


def test_what_a_stream_left_behind_expires_with_its_window(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.run([A, B, C], {"ab": AB, "bc": BC}, {"a": [a(0, x=5)], "b": [b(0)], "c": [(0, 5)]})
    life.run([B, C], {"bc": BC}, {"b": [b(30)], "c": [(30, 5)]})
    assert any(bucket.store == "a" for bucket in _manifest(life).buckets)
    life.run([B, C], {"bc": BC}, {"b": [b(31)], "c": [(31, 5)]})
    assert not any(bucket.store == "a" for bucket in _manifest(life).buckets)
    assert all(found.store != "a" for found in _manifest(life).windows)


def test_what_a_stream_without_a_window_left_behind_stays_until_it_is_read_with_one(tmp_path: Path) -> None:
    endless = [replace(each, window_us=None) for each in (A, B, C)]
    life = Life(tmp_path)
    life.run(endless, {"ab": AB, "bc": BC}, {"a": [a(0, x=5)], "b": [b(0)], "c": [(0, 5)]})
    life.run(endless[1:], {"bc": BC}, {"b": [b(900)], "c": [(900, 5)]})
    assert any(bucket.store == "a" for bucket in _manifest(life).buckets)
    life.run([replace(A, keep="all"), *endless[1:]], {"bc": BC}, {"a": [a(901)], "b": [b(901)], "c": [(901, 5)]})
    assert [bucket.tau_min for bucket in _manifest(life).buckets if bucket.store == "a"] == [901 * SECOND_US]


def test_a_renamed_stream_is_another_one_and_leaves_the_old_rows_alone(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.run([A, B], {"ab": AB}, {"a": [a(0, x=5)], "b": [b(0)]})
    renamed = replace(A, name="z")
    ran = life.run([renamed, B], {"ab": AB.replace("a.", "z.").replace("FROM a", "FROM z")}, {"b": [b(3, y=2)]})
    assert ran.results["ab"] == Counter()
    back = life.run([A, B], {"ab": AB}, {"b": [b(4, y=3)]})
    assert back.results["ab"] == Counter({(5, 3): 1})


def test_rows_of_a_stream_that_comes_later_are_not_late_by_what_others_had_sent_before(life: Life) -> None:
    streams = [replace(each, window_us=200 * SECOND_US) for each in (A, B, C)]
    life.run(streams[:2], {"ab": AB}, {"a": [a(100, x=5)], "b": [b(100)]})
    ran = life.run(
        streams,
        {"ab": AB, "bc": BC},
        {"c": [(second, 5) for second in range(20)]},
        {"a": [a(99, x=5)], "b": [b(99, y=2), b(101, y=3)]},
        {"c": [(18, 5), (19, 5)]},
    )
    assert ran.late == Counter({"a": 1, "b": 1, "c": 1})
    # c's rows meet the row of b that was stored; later b's one row in time meets c's; c's last row meets both.
    assert ran.results["bc"] == Counter({(1, 5): 20 + 1, (3, 5): 20 + 1})
    assert ran.results["ab"] == Counter({(5, 3): 1})


def test_a_stream_that_comes_back_goes_on_where_it_was(life: Life) -> None:
    life.run([A, B, C], {"ab": AB, "bc": BC}, {"a": [a(10, x=5)], "b": [b(10)], "c": [(10, 5)]})
    life.run([B, C], {"bc": BC}, {"b": [b(35)], "c": [(35, 5)]})
    ran = life.run([A, B, C], {"ab": AB, "bc": BC}, {"a": [a(9, x=5), a(11, x=5), a(36, x=5)]})
    assert ran.late == Counter({"a": 1, "b": 0, "c": 0})
    assert ran.results["ab"] == Counter({(5, 1): 1 + 2 + 1})


def _manifest(life: Life) -> Any:
    assert life.manifest is not None
    return life.manifest
