"""Views merged into queries: what the text over streams and tables says, and which queries cannot be said without."""

from __future__ import annotations

import pytest

from plait.errors import SqlError, UnsupportedQueryError
from plait.query.model import Column, Query, SinkSpec, Source, Stream, Table
from plait.sql import bind_query
from plait.sql.expressions.scope import SchemaUnknownError
from plait.sql.lexis.text import SourceText
from plait.sql.select.binder import view_problems
from plait.sql.select.view_parts import View
from plait.sql.statements import WindowOverride

SECOND = 1_000_000


def stream(name: str) -> Stream:
    columns = (
        Column(name="k", type="bigint"),
        Column(name="x", type="int"),
        Column(name="addr", type="struct<city:string>"),
        Column(name="ts", type="timestamp"),
    )
    return Stream(name=name, time="ts", schema=columns, window_us=10 * SECOND)


SOURCES: dict[str, Source] = {
    **{name: stream(name) for name in "abcd"},
    "t": Table(name="t", schema=(Column(name="k", type="bigint"), Column(name="x", type="int"))),
}
VIEWS = {
    "large": "SELECT k, x + 1 AS y, ts FROM a WHERE x > 2",
    "zero": "SELECT k, coalesce(x, 0) AS y FROM b",
    "pairs": "SELECT l.k, l.x, r.x * 2 AS twice, l.ts FROM a l JOIN b r ON l.k = r.k WHERE l.x < r.x",
    "lone": "SELECT a.k, b.x FROM a LEFT JOIN b ON a.k = b.k",
    "sold": "SELECT a.k, b.x FROM a LEFT JOIN b ON a.k = b.k WHERE b.x > 5",
    "known": "SELECT k, coalesce(x, 0) AS y FROM t",
    "nested": "SELECT p.k, p.twice + large.y AS z FROM pairs p JOIN large ON p.k = large.k WHERE large.y > 5",
    "ranked": "SELECT 1 AS one, - 2 AS less, k, ts FROM a",
    "found": "SELECT k, ts FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
}


def bound(select: str, views: dict[str, str] = VIEWS, **windows: int) -> Query:
    known = [View(name=name, text=SourceText(text=text)) for name, text in views.items()]
    return bind_query(
        name="q", select=select, sink=SinkSpec(format="noop"), sources=SOURCES, views=known, windows=dict(windows)
    )


@pytest.mark.parametrize(
    ("select", "merged"),
    [
        (
            "SELECT large.y FROM large WHERE large.k = 3",
            "SELECT (`large`.`x` + 1) AS `y` FROM `a` AS `large` WHERE (`large`.`x` > 2) AND (`large`.`k` = 3)",
        ),
        (
            "SELECT * FROM large v, c WHERE v.k = c.k",
            "SELECT `v`.`k` AS `k`, (`v`.`x` + 1) AS `y`, `v`.`ts` AS `ts`, `c`.`k` AS `k`, `c`.`x` AS `x`, "
            "`c`.`addr` AS `addr`, `c`.`ts` AS `ts` FROM `a` AS `v` JOIN `c` AS `c` WHERE (`v`.`x` > 2) AND "
            "(`v`.`k` = `c`.`k`)",
        ),
        (
            "SELECT v.k FROM c LEFT JOIN large v ON v.k = c.k",
            "SELECT `v`.`k` AS `k` FROM `c` AS `c` LEFT JOIN `a` AS `v` ON (`v`.`x` > 2) AND (`v`.`k` = `c`.`k`)",
        ),
        (
            "SELECT v.k, c.x FROM large v RIGHT JOIN c ON v.k = c.k",
            "SELECT `v`.`k` AS `k`, `c`.`x` AS `x` FROM `a` AS `v` RIGHT JOIN `c` AS `c` ON (`v`.`x` > 2) AND "
            "(`v`.`k` = `c`.`k`)",
        ),
        (
            "SELECT v.k, c.x FROM c RIGHT JOIN large v USING (k)",
            "SELECT `v`.`k` AS `k`, `c`.`x` AS `x` FROM `c` AS `c` RIGHT JOIN `a` AS `v` ON (`c`.`k` = `v`.`k`) WHERE "
            "(`v`.`x` > 2)",
        ),
        (
            "SELECT v.k FROM large v FULL JOIN c ON v.k = c.k",
            "SELECT `v`.`k` AS `k` FROM `a` AS `v` FULL JOIN `c` AS `c` ON (`v`.`x` > 2) AND (`v`.`k` = `c`.`k`) WHERE "
            "(`v`.`ts` IS NULL OR (`v`.`x` > 2))",
        ),
        (
            "SELECT zero.y + 1 AS one, c.k FROM c LEFT JOIN zero ON zero.k = c.k AND zero.y = 0",
            "SELECT (CASE WHEN `zero`.`ts` IS NOT NULL THEN coalesce(`zero`.`x`, 0) END) + 1 AS `one`, `c`.`k` AS `k` "
            "FROM `c` AS `c` LEFT JOIN `b` AS `zero` ON (`zero`.`k` = `c`.`k`) AND ((coalesce(`zero`.`x`, 0)) = 0)",
        ),
        (
            "SELECT p.twice FROM c JOIN pairs p ON p.k = c.k",
            "SELECT (`p_r`.`x` * 2) AS `twice` FROM `c` AS `c` JOIN `a` AS `p_l` ON (`p_l`.`k` = `c`.`k`) JOIN `b` AS "
            "`p_r` ON (`p_l`.`k` = `p_r`.`k`) AND (`p_l`.`x` < `p_r`.`x`)",
        ),
        (
            "SELECT p.k FROM c LEFT JOIN pairs p ON p.k = c.k",
            "SELECT `p_l`.`k` AS `k` FROM `a` AS `p_l` JOIN `b` AS `p_r` ON (`p_l`.`k` = `p_r`.`k`) AND (`p_l`.`x` < "
            "`p_r`.`x`) RIGHT JOIN `c` AS `c` ON (`p_l`.`k` = `c`.`k`)",
        ),
        (
            "SELECT l.k FROM c JOIN lone l ON l.k = c.k",
            "SELECT `l_a`.`k` AS `k` FROM `a` AS `l_a` LEFT JOIN `b` AS `l_b` ON (`l_a`.`k` = `l_b`.`k`) JOIN `c` AS "
            "`c` ON (`l_a`.`k` = `c`.`k`)",
        ),
        (
            "SELECT one.k FROM large one JOIN large other ON one.y = other.y WHERE NOT EXISTS (SELECT 1 FROM zero "
            "WHERE y = one.y)",
            "SELECT `one`.`k` AS `k` FROM `a` AS `one` JOIN `a` AS `other` ON (`other`.`x` > 2) AND ((`one`.`x` + 1) = "
            "(`other`.`x` + 1)) LEFT ANTI JOIN `b` AS `zero` ON ((coalesce(`zero`.`x`, 0)) = (`one`.`x` + 1)) WHERE "
            "(`one`.`x` > 2)",
        ),
        (
            "SELECT n.z FROM nested n",
            "SELECT ((`n_p_r`.`x` * 2) + (`n_large`.`x` + 1)) AS `z` FROM `a` AS `n_p_l` JOIN `b` AS `n_p_r` ON "
            "(`n_p_l`.`k` = `n_p_r`.`k`) JOIN `a` AS `n_large` ON (`n_large`.`x` > 2) AND (`n_p_l`.`k` = "
            "`n_large`.`k`) WHERE (`n_p_l`.`x` < `n_p_r`.`x`) AND ((`n_large`.`x` + 1) > 5)",
        ),
        (
            "SELECT count(*) AS n FROM ranked GROUP BY window(ts, '1 minute'), one, ranked.less, k",
            "SELECT count(*) AS `n` FROM `a` AS `ranked` GROUP BY window(`ranked`.`ts`, '1 minute'), 0 + (1), "
            "0 + (- 2), `ranked`.`k`",
        ),
        (
            "SELECT window(large.ts, '1 minute').start AS w, large.y AS v, count(*) AS n FROM large GROUP BY w, v, k "
            "HAVING n > 1 AND v < 3",
            "SELECT window(`large`.`ts`, '1 minute').start AS `w`, (`large`.`x` + 1) AS `v`, count(*) AS `n` FROM `a` "
            "AS `large` WHERE (`large`.`x` > 2) GROUP BY 1, 2, `large`.`k` HAVING (count(*)) > 1 AND "
            "((`large`.`x` + 1)) < 3",
        ),
        (
            "SELECT f.k FROM found f JOIN c ON f.k = c.k",
            "SELECT `f_a`.`k` AS `k` FROM `a` AS `f_a` LEFT SEMI JOIN `b` AS `f_b` ON (`f_b`.`k` = `f_a`.`k`) JOIN `c` "
            "AS `c` ON (`f_a`.`k` = `c`.`k`)",
        ),
        (
            "SELECT s.x FROM c JOIN d ON c.k = d.k JOIN sold s ON s.k = c.k",
            "SELECT `s_b`.`x` AS `x` FROM `c` AS `c` JOIN `d` AS `d` ON (`c`.`k` = `d`.`k`) JOIN `a` AS `s_a` ON "
            "(`s_a`.`k` = `c`.`k`) JOIN `b` AS `s_b` ON (`s_a`.`k` = `s_b`.`k`) AND (`s_b`.`x` > 5)",
        ),
        (
            "SELECT to_json(struct(large.y, c.addr.city)) AS j FROM large JOIN c ON c.k = large.k",
            "SELECT to_json(struct((`large`.`x` + 1) AS `y`, `c`.`addr`.city)) AS `j` FROM `a` AS `large` JOIN `c` AS "
            "`c` ON (`c`.`k` = `large`.`k`) WHERE (`large`.`x` > 2)",
        ),
    ],
)
def test_a_query_reads_what_its_views_read(select: str, merged: str) -> None:
    assert bound(select).text == merged


@pytest.mark.parametrize(
    ("select", "merged"),
    [
        (
            "SELECT i.y FROM (SELECT k, x + 1 AS y FROM a WHERE x > 2) i JOIN c ON i.k = c.k",
            "SELECT (`i`.`x` + 1) AS `y` FROM `a` AS `i` JOIN `c` AS `c` ON (`i`.`k` = `c`.`k`) WHERE (`i`.`x` > 2)",
        ),
        (
            "WITH a AS (SELECT k, x FROM a WHERE x > 2), b AS (SELECT k FROM a) SELECT a.x FROM a JOIN b ON a.k = b.k",
            "SELECT `a`.`x` AS `x` FROM `a` AS `a` JOIN `a` AS `b` ON (`b`.`x` > 2) AND (`a`.`k` = `b`.`k`) WHERE "
            "(`a`.`x` > 2)",
        ),
        (
            "WITH large AS (SELECT k FROM d) SELECT c.k FROM c, (SELECT k FROM large) l WHERE l.k = c.k AND c.k IN "
            "(SELECT k FROM large)",
            "SELECT `c`.`k` AS `k` FROM `c` AS `c` JOIN `d` AS `l` LEFT SEMI JOIN `d` AS `large` ON (`c`.`k` = "
            "`large`.`k`) WHERE (`l`.`k` = `c`.`k`)",
        ),
    ],
)
def test_what_one_select_names_for_itself_is_a_view_too(select: str, merged: str) -> None:
    assert bound(select).text == merged


def test_a_query_that_reads_no_view_stays_as_it_is() -> None:
    select = "SELECT large.k FROM c large JOIN d ON large.k = d.k"
    assert bound(select).text == select


def test_windows_are_those_of_the_query_then_of_the_view_then_of_the_stream() -> None:
    own = (WindowOverride(alias="l", window_us=3 * SECOND), WindowOverride(alias="r", window_us=4 * SECOND))
    views = [View(name="v", text=SourceText(text=VIEWS["pairs"]), windows=own)]
    query = bind_query(
        name="q",
        select="SELECT one.k FROM v one JOIN v other ON one.k = other.k JOIN c ON one.k = c.k",
        sink=SinkSpec(format="noop"),
        sources=SOURCES,
        views=views,
        windows={"other": 7 * SECOND},
    )
    assert {relation.alias: (relation.window_us or 0) // SECOND for relation in query.relations} == {
        "one_l": 3,
        "one_r": 4,
        "other_l": 7,
        "other_r": 7,
        "c": 10,
    }


def test_no_alias_of_a_view_is_taken_for_one_of_the_query() -> None:
    query = bound("SELECT p_l.x AS `one`, p.k FROM pairs p JOIN c p_l ON p.k = p_l.k")
    assert [relation.alias for relation in query.relations] == ["p_l2", "p_r", "p_l"]
    assert [column.expression.sql for column in query.output] == ["`p_l.x`", "`p_l2.k`"]


@pytest.mark.parametrize(
    ("select", "at", "says"),
    [
        ("SELECT large.nope FROM large", "large.nope", "'large' has no column 'nope'"),
        ("SELECT large.x FROM large", "large.x", "'large' has no column 'x'"),
        ("SELECT addr FROM large", "addr", "there is no column 'addr'"),
        ("SELECT l.k FROM c LEFT JOIN known l ON l.k = c.k WHERE l.y = 2", "l.y", "show the columns it is computed"),
        ("SELECT c.k FROM c JOIN d ON c.k = d.k LEFT JOIN pairs p ON p.k = c.k", "pairs", "put it first, FROM pairs"),
        ("SELECT c.k FROM c LEFT SEMI JOIN pairs p ON p.k = c.k", "pairs", "one for each relation"),
        ("SELECT c.k FROM c WHERE c.k IN (SELECT k FROM pairs)", "pairs", "one for each relation"),
        ("SELECT c.k FROM c JOIN d ON c.k = d.k JOIN lone l ON l.k + d.k = c.k + 1", "(`c`", "by one condition"),
        ("SELECT large.y + 1 FROM large", "large.y", "write AS and a name"),
        ("SELECT count(*) AS n FROM groups", "groups", "'groups' groups, and cannot be read so"),
        (
            "SELECT count(*) AS n FROM large GROUP BY window(large.y, '1 day')",
            "large.y",
            "anything but the time column of a stream",
        ),
    ],
)
def test_what_cannot_be_said_is_refused_where_it_is(select: str, at: str, says: str) -> None:
    views = {**VIEWS, "groups": "SELECT window.start, count(*) AS n FROM a GROUP BY window(a.ts, '1 minute')"}
    with pytest.raises(SqlError) as raised:
        bound(select, views)
    assert says in raised.value.message
    if at in select and "groups" not in select:
        assert (raised.value.line, raised.value.column) == (1, select.index(at) + 1)


def test_mistakes_that_only_the_whole_shows_are_told_where_they_were_written() -> None:
    view = View(
        name="v", text=SourceText(text="SELECT a.k,\n  a.x = b.x AS same FROM a JOIN b ON a.k = b.k", file="f", line=7)
    )
    with pytest.raises(UnsupportedQueryError) as raised:
        bind_query(
            name="q",
            select="SELECT v.k FROM v JOIN c ON v.k = c.k AND v.same = (c.x = 1)",
            sink=SinkSpec(format="noop"),
            sources=SOURCES,
            views=[view],
        )
    assert (raised.value.file, raised.value.line, raised.value.column) == (None, 1, 43)


@pytest.mark.parametrize(
    ("text", "says", "column"),
    [
        ("SELECT k, x + 1 FROM a", "has no name", 11),
        ("SELECT k, x AS K FROM a", "two columns of view 'v' are called 'K'", 11),
        ("SELECT k FROM w", "'v' reads 'w' reads 'v', a circle", 15),
        ("SELECT nope FROM a", "no column 'nope'", 8),
        ("SELECT a.k FROM a, b", "nothing joins", 20),
        ("SELECT DISTINCT k FROM a", "'v' groups, and cannot be read so", 1),
        ("SELECT a.k FROM a JOIN b ON a.k = b.addr", "", 29),
    ],
)
def test_a_view_is_looked_at_by_itself(text: str, says: str, column: int) -> None:
    views = [View(name="v", text=SourceText(text=text)), View(name="w", text=SourceText(text="SELECT k FROM v"))]
    first, *_ = view_problems(views[0], SOURCES, views=views)
    assert says in first.message
    if "circle" not in says:
        assert first.column == column


def test_what_takes_columns_that_are_not_known_yet_waits_for_them() -> None:
    sources = {**SOURCES, "unseen": Stream(name="unseen", time="at", window_us=SECOND)}
    view = View(name="v", text=SourceText(text="SELECT k, coalesce(x, 0) AS y FROM unseen WHERE x > 1"))
    sink = SinkSpec(format="noop")
    plain = bind_query(name="q", select="SELECT v.y FROM v WHERE v.k = 1", sink=sink, sources=sources, views=[view])
    assert [column.expression.sql for column in plain.output] == ["(coalesce(`v.x`, 0))"]
    for select in (
        "SELECT * FROM v JOIN unseen u ON v.k = u.k",
        "SELECT v.y FROM a LEFT JOIN v ON v.k = a.k",
        "SELECT v.k FROM a FULL JOIN v ON v.k = a.k",
    ):
        with pytest.raises(SchemaUnknownError):
            bind_query(name="q", select=select, sink=sink, sources=sources, views=[view])


@pytest.mark.parametrize("select", ["SELECT larg.k FROM larg", "SELECT larg.k FROM larg JOIN lone ON larg.k = lone.k"])
def test_a_view_is_meant_where_a_name_is_almost_one(select: str) -> None:
    with pytest.raises(SqlError, match="there is no stream or table 'larg'; did you mean 'large'"):
        bound(select)


def test_what_a_view_is_called_is_not_looked_at_as_the_name_of_a_query() -> None:
    view = View(name="large ones", text=SourceText(text="SELECT k FROM a"))
    assert view_problems(view, SOURCES, views=[view]) == ()


@pytest.mark.parametrize(
    ("levels", "says"), [(9, "characters, and Plait runs 40,000 at most"), (40, "a column of view 'v10' is too long")]
)
def test_views_that_double_what_they_read_level_by_level_are_refused_soon(levels: int, says: str) -> None:
    views = {"v0": "SELECT k, x, ts FROM a"}
    views |= {f"v{n}": f"SELECT k, x + x AS x, ts FROM v{n - 1}" for n in range(1, levels + 1)}
    with pytest.raises(UnsupportedQueryError, match="compute what is read several times in the stream") as told:
        bound(f"SELECT {', '.join(f'v.x AS x{n}' for n in range(20))} FROM v{levels} v", views)
    assert says in str(told.value)


def test_a_view_may_be_of_tables_alone() -> None:
    views = {"v": "SELECT one.k, other.x FROM t one JOIN t other ON one.k = other.k"}
    assert view_problems(View(name="v", text=SourceText(text=views["v"])), SOURCES, views=()) == ()
    assert [relation.alias for relation in bound("SELECT a.k, v.x FROM a JOIN v ON a.k = v.k", views).relations] == [
        "a",
        "v_one",
        "v_other",
    ]
