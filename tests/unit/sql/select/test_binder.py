from dataclasses import replace

import pytest

from plait.errors import SqlError, UnsupportedQueryError
from plait.query.model import ColumnRef, JoinedExpression, Operand, OutputColumn, SinkSpec, SourceExpression
from plait.query.predicates import Equality
from plait.sql import bind_query
from plait.sql.expressions.scope import SchemaUnknownError
from plait.sql.select.binder import bind_statement
from plait.sql.statements import CreateQuery
from tests.unit.sql.reading import SOURCES, bound, equalities, output, selections, stream


def test_a_query_is_split_into_relations_selections_equalities_and_output() -> None:
    query = bound(
        "SELECT o.id, i.qty * 2 AS twice FROM orders o JOIN items i ON o.id = i.oid WHERE qty > 5 AND o.city = 'Rome'",
        sink="parquet",
    )
    assert [(found.alias, found.source, found.is_table, found.window_us) for found in query.relations] == [
        ("o", "orders", False, 30_000_000),
        ("i", "items", False, None),
    ]
    assert selections(query) == {"i": ["`qty` > 5"], "o": ["`city` = 'Rome'"]}
    key = SourceExpression(sql="`id`", columns=("id",))
    assert query.equalities == (
        Equality(
            left=Operand(relation="o", expression=key),
            right=Operand(relation="i", expression=SourceExpression(sql="`oid`", columns=("oid",))),
        ),
    )
    assert query.output == (
        OutputColumn(
            name="id", expression=JoinedExpression(sql="`o.id`", columns=(ColumnRef(relation="o", column="id"),))
        ),
        OutputColumn(
            name="twice",
            expression=JoinedExpression(sql="`i.qty` * 2", columns=(ColumnRef(relation="i", column="qty"),)),
        ),
    )
    assert (query.name, query.sink) == ("q", SinkSpec(format="parquet"))


@pytest.mark.parametrize(
    ("join", "expected"),
    [
        ("orders o, items i WHERE o.id = i.oid", ["o.`id` = i.`oid`"]),
        ("orders o JOIN items i ON i.oid == o.id", ["i.`oid` = o.`id`"]),
        ("orders o INNER JOIN items i ON (o.id = i.oid)", ["o.`id` = i.`oid`"]),
        ("orders o JOIN items i WHERE o.id = i.oid", ["o.`id` = i.`oid`"]),
        ("orders o CROSS JOIN items i WHERE o.id = i.oid", ["o.`id` = i.`oid`"]),
        ("orders o JOIN items i ON ((o.id = i.oid) AND (o.city = i.sku))", ["o.`id` = i.`oid`", "o.`city` = i.`sku`"]),
        ("orders o JOIN nation USING (cust, CITY)", ["o.`cust` = nation.`cust`", "o.`city` = nation.`city`"]),
        ("orders o NATURAL JOIN nation n", ["o.`cust` = n.`cust`", "o.`city` = n.`city`"]),
        ("orders a JOIN orders b USING (id) JOIN items i ON i.oid = b.id", ["a.`id` = b.`id`", "i.`oid` = b.`id`"]),
        ("orders o JOIN items i ON lower(o.city) = sku", ["o.lower(`city`) = i.`sku`"]),
        ("orders o JOIN items i ON o.id + 1 = i.oid", ["o.`id` + 1 = i.`oid`"]),
        ("orders o JOIN items i ON o.id=-i.oid", ["o.`id` = i.-`oid`"]),
        ("orders o JOIN items i ON (o.id + o.cust) % 7 = (i.oid)", ["o.(`id` + `cust`) % 7 = i.`oid`"]),
        ("orders o JOIN items i ON o.addr.zip = i.tags[0]", ["o.`addr`.zip = i.`tags`[0]"]),
        ("orders o JOIN items i ON o.id = i.oid AND o.id = i.oid", ["o.`id` = i.`oid`"]),
        ("orders a, orders b WHERE a.id = b.cust", ["a.`id` = b.`cust`"]),
        (
            "orders o JOIN items i ON left(o.city, 1) = sku JOIN nation n ON right(n.cust, 2) = i.sku",
            [
                "o.left(`city`, 1) = i.`sku`",
                "n.right(`cust`, 2) = i.`sku`",
            ],
        ),
    ],
)
def test_every_way_to_write_an_equi_join_gives_its_equalities(join: str, expected: list[str]) -> None:
    assert equalities(bound(f"SELECT 1 FROM {join}")) == expected


def test_a_using_chain_compares_with_the_column_that_is_visible() -> None:
    query = bound("SELECT cust FROM orders a JOIN orders b USING (id, cust) JOIN nation n USING (cust)")
    assert equalities(query) == ["a.`id` = b.`id`", "a.`cust` = b.`cust`", "a.`cust` = n.`cust`"]
    assert output(query) == [("cust", "`a.cust`")]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("o.id BETWEEN 1 AND 2 AND o.cust = 1", ["`id` BETWEEN 1 AND 2", "`cust` = 1"]),
        ("o.id NOT BETWEEN 1 AND 2 OR o.cust = 1 AND flag", ["`id` NOT BETWEEN 1 AND 2 OR `cust` = 1 AND `flag`"]),
        ("(o.id = 1 AND (flag AND NOT o.flag))", ["`id` = 1", "`flag`", "NOT `flag`"]),
        (
            "CASE WHEN o.id = 1 AND flag THEN TRUE END AND id = 2",
            ["CASE WHEN `id` = 1 AND `flag` THEN TRUE END", "`id` = 2"],
        ),
        ("(o.id = 1) AND (o.cust = 2 OR o.cust = 3)", ["`id` = 1", "`cust` = 2 OR `cust` = 3"]),
        (
            "o.city IN ('a AND b', 'c') AND o.city LIKE '% AND %'",
            ["`city` IN ('a AND b', 'c')", "`city` LIKE '% AND %'"],
        ),
        ("o.id=1   AND\n\to.cust  =\n2", ["`id`=1", "`cust` = 2"]),
        ("o.id = /* here */ 1 -- why\n AND flag", ["`id` = 1", "`flag`"]),
        ("TRUE AND 1 = 1 AND flag AND flag", ["`flag`"]),
        (
            "city IS NOT NULL AND ts > DATE'2024-01-01' - INTERVAL 1 DAY",
            ["`city` IS NOT NULL", "`ts` > DATE'2024-01-01' - INTERVAL 1 DAY"],
        ),
        ("1 = 2", ["1 = 2"]),
        ("exists(array(1), x -> x = o.id AND flag)", ["exists(array(1), x -> x = `id` AND `flag`)"]),
    ],
)
def test_conditions_on_one_relation_are_cut_at_each_and_that_is_one(condition: str, expected: list[str]) -> None:
    assert selections(bound(f"SELECT id FROM orders o WHERE {condition}")) == {"o": expected}


def test_equal_conditions_have_equal_text_whatever_the_alias_spelling_or_comments() -> None:
    one = bound("SELECT 1 FROM orders o WHERE o.id > 5 AND lower(o.city)='x'")
    other = bound("SELECT 1 FROM ORDERS t WHERE T.ID /* ! */ >\n 5 AND lower(CITY)='x'")
    assert one.relations[0].selections == other.relations[0].selections


def test_columns_come_out_as_the_schema_spells_them_and_output_names_as_the_query_does() -> None:
    query = bound("SELECT O.ID, Addr.city, o.addr.CITY AS c, CUST + 1, o.cust total FROM orders o")
    assert output(query) == [
        ("ID", "`o.id`"),
        ("city", "`o.addr`.city"),
        ("c", "`o.addr`.CITY"),
        (None, "`o.cust` + 1"),
        ("total", "`o.cust`"),
    ]


def test_odd_identifiers_are_quoted_wherever_they_go() -> None:
    query = bound("SELECT `we.ird`, t.`tick``et`, `größe`, t.`order` AS `a``b`, user FROM odd t WHERE `we.ird` = 1")
    assert output(query) == [
        ("we.ird", "`t.we.ird`"),
        ("tick`et", "`t.tick``et`"),
        ("größe", "`t.größe`"),
        ("a`b", "`t.order`"),
        ("user", "`t.user`"),
    ]
    assert query.relations[0].selections == (SourceExpression(sql="`we.ird` = 1", columns=("we.ird",)),)


def test_strings_keep_their_text_whatever_looks_like_sql_in_them() -> None:
    query = bound("SELECT 'o.id -- {x}; /*' AS s, \"it's\" AS d, r'\\d' FROM orders o WHERE o.city = 'a''b; -- o.id'")
    assert output(query) == [("s", "'o.id -- {x}; /*'"), ("d", '"it\'s"'), (None, "r'\\d'")]
    assert selections(query) == {"o": ["`city` = 'a''b; -- o.id'"]}


def test_spark_text_names_sources_doubles_braces_and_keeps_aliases() -> None:
    query = bound("SELECT '{}' FROM Orders, items AS `i t` JOIN `nation` n ON n.code = `i t`.oid WHERE id = oid;")
    assert query.spark_text == (
        "SELECT '{{}}' FROM {orders} AS `orders`, {items} AS `i t` JOIN {nation} n ON n.code = `i t`.oid WHERE id = oid"
    )
    assert query.text == "SELECT '{}' FROM Orders, items AS `i t` JOIN `nation` n ON n.code = `i t`.oid WHERE id = oid"
    assert [relation.alias for relation in query.relations] == ["orders", "i t", "n"]


def test_a_star_lists_the_columns_in_from_order_and_keeps_equal_names() -> None:
    names = [name for name, _ in output(bound("SELECT *, n.code FROM nation n JOIN items i ON n.code = i.oid"))]
    assert names == ["cust", "city", "code", "oid", "sku", "qty", "tags", "ts", "code"]


def test_the_column_of_using_comes_first_and_once() -> None:
    query = bound("SELECT * FROM orders o JOIN nation n USING (city)")
    assert [sql for _, sql in output(query)] == [
        *("`o.city`", "`o.id`", "`o.cust`", "`o.addr`", "`o.flag`", "`o.ts`"),
        *("`n.cust`", "`n.code`"),
    ]
    qualified = bound("SELECT n.*, city, n.city FROM orders o JOIN nation n USING (city)")
    assert output(qualified) == [
        *(("city", "`n.city`"), ("cust", "`n.cust`"), ("code", "`n.code`")),
        *(("city", "`o.city`"), ("city", "`n.city`")),
    ]


def test_files_cannot_store_two_columns_of_one_name_but_memory_can() -> None:
    select = "SELECT o.id, i.oid AS ID FROM orders o JOIN items i ON o.id = i.oid"
    assert len(bound(select, sink="memory").output) == 2
    for sink in ("parquet", "csv", "json"):
        with pytest.raises(SqlError, match=r"two output columns are called 'ID'.*add an alias: i\.oid AS another_name"):
            bound(select, sink=sink)


def test_lambda_variables_are_no_columns_and_hide_columns_of_their_name() -> None:
    query = bound("SELECT transform(tags, Sku -> concat(sku, qty)) FROM items")
    assert output(query) == [(None, "transform(`items.tags`, Sku -> concat(sku, `items.qty`))")]


def test_a_struct_keeps_the_names_of_its_fields() -> None:
    query = bound("SELECT struct(o.City, (o.id), o.addr.zip, id + 1, o.id AS k), (cust, 1) FROM orders o")
    assert [sql for _, sql in output(query)] == [
        "struct(`o.city` AS `City`, `o.id` AS `id`, `o.addr`.zip, `o.id` + 1, `o.id` AS k)",
        "(`o.cust` AS `cust`, 1)",
    ]
    assert selections(bound("SELECT 1 FROM orders o WHERE (o.id) IN (o.cust, 2)")) == {"o": ["(`id`) IN (`cust`, 2)"]}


def test_a_column_is_preferred_to_a_function_of_its_name() -> None:
    assert output(bound("SELECT user, upper(USER) FROM odd")) == [("user", "`odd.user`"), (None, "upper(`odd.user`)")]
    assert output(bound("SELECT current_user, USER FROM orders")) == [(None, "current_user"), (None, "USER")]
    taken = {"t": stream("t", "current_date INT, current_role INT, now INT")}
    query = bind_query(
        name="q", select="SELECT current_date + current_role + now FROM t", sink=SinkSpec(format="noop"), sources=taken
    )
    assert output(query) == [(None, "`t.current_date` + `t.current_role` + `t.now`")]


def test_a_lambda_variable_hides_even_a_column_called_like_a_function() -> None:
    assert output(bound("SELECT transform(array(1), user -> user + 1) FROM odd")) == [
        (None, "transform(array(1), user -> user + 1)")
    ]


def test_a_source_that_spark_could_not_be_handed_by_name_is_refused() -> None:
    with pytest.raises(SqlError, match="letters, digits and underscores"):
        bind_query(
            name="q",
            select="SELECT 1 FROM `a.b`",
            sink=SinkSpec(format="noop"),
            sources={"a.b": stream("a.b", "k INT")},
        )


def test_a_window_of_no_length_is_refused() -> None:
    with pytest.raises(SqlError, match="longer than zero"):
        bound("SELECT 1 FROM orders o", windows={"o": 0})


def test_windows_are_the_streams_unless_the_query_says_otherwise() -> None:
    query = bound(
        "SELECT 1 FROM orders a, orders b, items i, nation n WHERE a.id = b.id AND a.id = i.oid AND n.code = a.id",
        windows={"B": None, "i": 5_000_000},
    )
    assert [relation.window_us for relation in query.relations] == [30_000_000, None, 5_000_000, None]


@pytest.mark.parametrize(("alias", "says"), [("x", "no relation of the query"), ("n", "a table, which has no window")])
def test_a_window_can_only_be_given_to_a_stream_of_the_query(alias: str, says: str) -> None:
    with pytest.raises(SqlError, match=says):
        bound("SELECT 1 FROM orders o JOIN nation n ON o.id = n.code", windows={alias: 1})


def test_a_cross_join_that_is_asked_for_is_allowed() -> None:
    assert bound("SELECT 1 FROM orders o CROSS JOIN items i").equalities == ()
    three = bound("SELECT 1 FROM orders o CROSS JOIN items i JOIN nation n ON n.code = i.oid")
    assert equalities(three) == ["n.`code` = i.`oid`"]


def test_unconnected_halves_are_named() -> None:
    with pytest.raises(SqlError, match="nothing joins 'o' and 'n' with 'i' and 'x'"):
        bound("SELECT 1 FROM orders o, nation n, items i, items x WHERE o.id = n.code AND i.oid = x.oid")


def test_a_relation_whose_columns_are_unknown_is_taken_on_trust() -> None:
    query = bound("SELECT u.a, u.b.c, o.id FROM unseen u JOIN orders o ON u.k = o.id WHERE u.x > 1")
    assert output(query) == [("a", "`u.a`"), ("c", "`u.b`.c"), ("id", "`o.id`")]
    assert output(bound("SELECT anything FROM unseen")) == [("anything", "`unseen.anything`")]
    assert equalities(bound("SELECT 1 FROM unseen u JOIN orders o USING (id)")) == ["u.`id` = o.`id`"]


@pytest.mark.parametrize(
    "select",
    [
        "SELECT * FROM unseen",
        "SELECT u.* FROM unseen u",
        "SELECT 1 FROM unseen u NATURAL JOIN orders",
        "SELECT who FROM unseen u JOIN unseen v ON u.k = v.k",
    ],
)
def test_what_needs_unknown_columns_says_so(select: str) -> None:
    with pytest.raises(SchemaUnknownError, match="not known yet"):
        bound(select)


@pytest.mark.parametrize(
    "condition", ["o.id = i.oid = TRUE", "o.id = i.oid IS NULL", "NOT o.id = i.oid", "!o.id = i.oid"]
)
def test_what_spark_reads_differently_is_no_equality(condition: str) -> None:
    query = bound(f"SELECT 1 FROM orders o JOIN items i ON {condition}")
    assert (len(query.equalities), len(query.residuals)) == (0, 1)


def test_a_key_that_cannot_be_one_is_refused_even_if_the_other_side_is_unknown() -> None:
    with pytest.raises(SqlError, match=r"i\.tags has type array<string>, which cannot be a join key"):
        bound("SELECT 1 FROM unseen u JOIN items i ON u.k = i.tags")


def test_a_reference_that_cannot_be_followed_is_refused_rather_than_left_alone() -> None:
    with pytest.raises(SqlError, match=r"cannot tell what 'o\.' means here"):
        bound("SELECT o.city() FROM orders o")


def test_numbers_with_a_type_are_one_piece() -> None:
    assert output(bound("SELECT 5L*id, 1.5BD + 2D, 3S FROM orders o"))[0] == (None, "5L*`o.id`")


def test_every_mistake_of_a_query_is_found_in_order() -> None:
    select = "SELECT o.nope,\n  rand(), x.y\nFROM orders o JOIN items i ON o.id = i.oidd\n"
    select += "WHERE extract(DAY FROM o.ts - i.ts) = 1"
    statement = CreateQuery(
        name="q",
        sink=SinkSpec(format="memory"),
        windows=(),
        select=select,
        select_line=10,
        select_column=5,
        line=9,
        column=1,
    )
    query, problems = bind_statement(statement, SOURCES, file="a.sql")
    assert query is None
    assert [(problem.line, problem.column) for problem in problems] == [(10, 12), (11, 3), (11, 11), (12, 38), (13, 7)]
    assert [type(problem) for problem in problems].count(UnsupportedQueryError) == 2
    assert all(problem.file == "a.sql" for problem in problems)


def test_positions_count_from_where_the_text_starts() -> None:
    with pytest.raises(SqlError) as caught:
        bind_query(
            name="q",
            select="SELECT nope\nFROM orders",
            sink=SinkSpec(format="memory"),
            sources=SOURCES,
            file="f.sql",
            line=3,
            column=20,
        )
    assert (caught.value.file, caught.value.line, caught.value.column) == ("f.sql", 3, 27)
    assert str(caught.value).startswith("f.sql:3:27: there is no column 'nope'")


def test_eight_relations_are_joined_and_a_ninth_is_refused() -> None:
    def chain(count: int) -> str:
        relations = ", ".join(f"orders r{position}" for position in range(count))
        return f"SELECT 1 FROM {relations} WHERE " + " AND ".join(
            f"r{position}.id = r{position + 1}.id" for position in range(count - 1)
        )

    assert len(bound(chain(8)).relations) == 8
    with pytest.raises(UnsupportedQueryError, match="more than 8 relations"):
        bound(chain(9))


def test_sources_are_found_whatever_case_they_are_written_in() -> None:
    sources = {"Orders": replace(SOURCES["orders"], name="Orders")}
    query = bind_query(name="q", select="SELECT ORDERS.id FROM orders", sink=SinkSpec(format="noop"), sources=sources)
    assert (query.relations[0].alias, query.relations[0].source) == ("Orders", "Orders")
    assert query.spark_text == "SELECT ORDERS.id FROM {Orders} AS `Orders`"


@pytest.mark.parametrize(
    ("select", "column"),
    [("a.*, b.id", 8), ("*", 8), ("CAST(a.age AS STRING)", 13), ("a.age", 8), ("array(a.age)", 14), ("a.other", 8)],
)
def test_columns_whose_rows_no_store_can_hold_are_refused_where_they_are_read(select: str, column: int) -> None:
    sources = {
        "a": stream("a", "id INT, age INTERVAL YEAR TO MONTH, other INTERVAL, ts TIMESTAMP"),
        "b": stream("b", "id INT, ts TIMESTAMP"),
    }
    query = f"SELECT {select} FROM a JOIN b ON a.id = b.id"
    with pytest.raises(
        UnsupportedQueryError, match=r"a\.(age|other) has type interval.*kept.*cast it to a string"
    ) as error:
        bind_query(name="q", select=query, sink=SinkSpec(format="memory"), sources=sources, windows=None)
    assert error.value.column == column


@pytest.mark.parametrize("sink", ["noop", "console", "memory", "json"])
@pytest.mark.parametrize(
    ("select", "written", "column"),
    [
        ("a.*, b.id", "a.at", 8),
        ("*", "a.at", 8),
        ("a.at", "a.at", 8),
        ("b.id, a.all", "a.all", 14),
        ("a.s.t", "a.s.t", 8),
    ],
)
def test_times_of_day_are_refused_where_they_are_read_also_within_others_and_behind_a_star(
    select: str, written: str, column: int, sink: str
) -> None:
    sources = {
        "a": stream("a", "id INT, at TIME(6), all ARRAY<TIME(3)>, s STRUCT<t: MAP<STRING, TIME(6)>>, ts TIMESTAMP"),
        "b": stream("b", "id INT, ts TIMESTAMP"),
    }
    query = f"SELECT {select} FROM a JOIN b ON a.id = b.id"
    options = (("path", "out"),) if sink == "json" else ()
    with pytest.raises(UnsupportedQueryError, match=rf"'{written}' has type .*time\([36]\).*, which results") as error:
        bind_query(name="q", select=query, sink=SinkSpec(format=sink, options=options), sources=sources)
    assert error.value.column == column
    assert "CAST(... AS STRING)" in str(error.value)
