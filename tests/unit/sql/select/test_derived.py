"""Which queries' groups others can read, what these see of them, and what is said where they cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.query.model import Column, Stream
from plait.query.origin import UNTOLD
from plait.sql import check_script, load_script
from plait.sql.script.check import Script
from plait.sql.select.derived import HOW, derived_stream
from tests.unit.sql.reading import SOURCES, bound

STREAM = """
CREATE STREAM o (ts TIMESTAMP, k BIGINT, v DOUBLE, d DATE) USING parquet OPTIONS (path 'in') TIMESTAMP BY ts
  WINDOW INTERVAL 1 MINUTE;
"""
MINUTES = """
CREATE QUERY m INTO noop AS
  SELECT window.start, window.end AS until, k, count(*) AS n, avg(v) AS mean FROM o GROUP BY window(ts, '1 minute'), k;
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path)


def said(script: str) -> list[str]:
    return [str(problem) for problem in check_script(STREAM + script)]


def loaded(script: str) -> Script:
    return load_script(STREAM + script)


def test_groups_are_a_stream_by_the_end_of_their_windows_with_the_types_that_are_plain() -> None:
    script = loaded(MINUTES + "CREATE QUERY q INTO noop AS SELECT p.until, p.n FROM m p WHERE p.n > 2;")
    (stream,) = script.derived
    assert (stream.name, stream.time, stream.window_us, stream.connector) == ("m", "until", None, None)
    types = {column.name: column.type for column in stream.schema or ()}
    assert types == {"start": "timestamp", "until": "timestamp", "k": "bigint", "n": "bigint", "mean": "double"}
    assert script.queries[1].relations[0].source == "m"
    assert script.read == (*script.sources, stream)


def test_groups_that_nobody_reads_are_no_stream() -> None:
    assert loaded(MINUTES).derived == ()


@pytest.mark.parametrize(
    ("aggregate", "type_"),
    [
        ("sum(qty)", "bigint"),
        ("min(city)", "string"),
        ("count(DISTINCT cust)", "bigint"),
        ("count(*) FILTER (WHERE cust > 1)", "bigint"),
        ("sum(qty) + 1", UNTOLD),
        ("median(qty)", UNTOLD),
    ],
)
def test_the_type_of_an_aggregate_is_told_where_it_is_plain(aggregate: str, type_: str) -> None:
    select = f"SELECT window.end AS e, {aggregate} AS a FROM orders o JOIN items i ON o.id = i.oid"
    stream = derived_stream(bound(f"{select} GROUP BY window(o.ts, '1 minute')"), SOURCES)
    assert stream is not None
    assert stream.schema is not None
    assert stream.schema[1] == Column(name="a", type=type_)


def test_what_says_the_same_in_other_words_is_the_same_stream_and_other_groups_are_another() -> None:
    def identity(select: str) -> str | None:
        stream = derived_stream(bound(select), SOURCES)
        assert isinstance(stream, Stream)
        return stream.derived

    first = "SELECT window.end AS e, count(*) AS n FROM orders o GROUP BY window(o.ts, '1 minute')"
    assert identity(first) == identity(first.replace(" FROM", "\n  from")) != identity(first.replace("1 m", "2 m"))


@pytest.mark.parametrize(
    "select",
    [
        "SELECT window.start AS s, count(*) AS n FROM o GROUP BY window(ts, '1 minute')",
        "SELECT window.end AS e, count(*) FROM o GROUP BY window(ts, '1 minute')",
        "SELECT window.end AS e, k AS E, count(*) AS n FROM o GROUP BY window(ts, '1 minute'), k",
    ],
)
def test_groups_without_an_end_or_names_cannot_be_read(select: str) -> None:
    (problem,) = said(f"CREATE QUERY m INTO noop AS {select};\nCREATE QUERY q INTO noop AS SELECT p.n FROM m p;")
    assert problem.endswith(f"'m' groups, and cannot be read so: {HOW}")
    assert problem.startswith("4:")


def test_a_view_that_groups_is_refused_with_the_advice_to_make_it_a_query() -> None:
    view = "SELECT window.end AS e, count(*) AS n FROM o GROUP BY window(ts, '1 minute')"
    (problem,) = said(f"CREATE VIEW m AS {view};\nCREATE QUERY q INTO noop AS SELECT p.n FROM m p;")
    assert HOW in problem
    (problem,) = said(f"CREATE QUERY q INTO noop AS SELECT p.n FROM ({view}) p;")
    assert HOW in problem


def test_mistakes_in_a_query_over_groups_have_their_places() -> None:
    problems = said(
        MINUTES
        + "CREATE QUERY q INTO noop AS\n  SELECT p.nn FROM m p;\n"
        + "CREATE QUERY r INTO noop AS\n  SELECT window.end AS e FROM m p GROUP BY window(p.start, '1 hour');"
    )
    assert problems == [
        "8:10: 'p' has no column 'nn'; did you mean 'n'?",
        "10:51: Plait does not run window() of anything but the time column of a stream: write window(p.until, ...), "
        "after whose time 'm' is read",
    ]


def test_queries_over_the_groups_of_one_with_a_mistake_are_not_blamed_for_it() -> None:
    script = """
        CREATE QUERY m INTO noop AS
          SELECT window.end AS until, max_by(k, ts) AS n FROM o GROUP BY window(ts, '5 minutes');
        CREATE QUERY q INTO noop AS SELECT until, n FROM m WHERE n > 1;
        CREATE QUERY r INTO noop AS
          SELECT window.end AS until, max(n) AS n FROM m GROUP BY window(until, '1 hour');
        CREATE QUERY s INTO noop AS SELECT until FROM r;"""
    (problem,) = said(script)
    assert "max_by()" in problem


def test_a_query_stands_before_those_that_read_its_groups() -> None:
    (problem,) = said("CREATE QUERY q INTO noop AS SELECT p.n FROM m p;" + MINUTES)
    assert "there is no stream or table 'm'" in problem


def test_a_query_whose_groups_are_read_cannot_be_dropped() -> None:
    reader = "CREATE QUERY q INTO noop AS SELECT p.n FROM m p;\n"
    (problem,) = said(f"{MINUTES}{reader}DROP QUERY m;")
    assert problem == "8:1: query 'm' is read by query 'q', which joins or groups its groups; drop 'q' first"
    assert said(f"{MINUTES}{reader}DROP QUERY q;\nDROP QUERY m;") == []


def test_groups_that_are_joined_without_a_window_are_warned_of() -> None:
    join = "AS SELECT p.n, o.v FROM m p JOIN o ON p.k = o.k;"
    (warning,) = loaded(f"{MINUTES}CREATE QUERY q INTO noop {join}").warnings
    assert str(warning).startswith(
        "7:29: query 'q' joins the groups of query 'm' with streams and gives them no WINDOW"
    )
    for window in ("INTERVAL 1 HOUR", "UNBOUNDED"):
        assert loaded(f"{MINUTES}CREATE QUERY q INTO noop WINDOW (p {window}) {join}").warnings == ()


def test_groups_that_are_joined_with_no_stream_are_not_kept_and_others_for_ever_unless_a_window_is_said() -> None:
    def windows(select: str, clause: str = "") -> list[int | None]:
        query = loaded(f"{MINUTES}CREATE QUERY q INTO noop {clause} AS {select};").queries[1]
        return [relation.window_us for relation in query.relations]

    assert windows("SELECT p.n FROM m p WHERE p.n > 1") == [0]
    assert windows("SELECT window.end AS e FROM m p GROUP BY window(p.until, '1 hour')") == [0]
    assert windows("SELECT p.n FROM m p JOIN o ON p.k = o.k") == [None, 60_000_000]
    assert windows("SELECT p.n FROM m p JOIN m q ON p.k = q.k", "WINDOW (p INTERVAL 1 SECOND)") == [1_000_000, None]


def test_views_read_groups_and_queries_read_such_views() -> None:
    script = loaded(
        MINUTES
        + "CREATE VIEW many AS SELECT until, k, n FROM m WHERE n > 2;\n"
        + "CREATE QUERY q INTO noop AS\n"
        + "SELECT window.end AS e, sum(v.n) AS n FROM many v GROUP BY window(v.until, '1 hour');"
    )
    assert [relation.source for relation in script.queries[1].relations] == ["m"]
