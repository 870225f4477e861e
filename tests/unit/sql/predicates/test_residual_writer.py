"""What the front end makes of join predicates that are no equality."""

import pytest

from plait.errors import SqlError, UnsupportedQueryError
from plait.query.model import Operand, Query, SinkSpec, relations_of
from plait.query.predicates import Residual
from plait.sql import bind_query, check_script
from tests.unit.sql.reading import SOURCES, equalities, selections

CASES = (
    ("o.id <> i.oid", "(`0` <> `1`)", "o.`id`, i.`oid`"),
    ("((o.id) < (i.oid))", "(`0` < `1`)", "o.`id`, i.`oid`"),
    ("abs(o.id - i.oid) < 5", "(abs((`0` - `1`)) < 5)", "o.`id`, i.`oid`"),
    ("upper(o.city) LIKE concat('%', i.sku)", "(`0` LIKE `1`)", "o.upper(`city`), i.concat('%', `sku`)"),
    ("levenshtein(o.city, i.sku) < 3", "(levenshtein(`0`, `1`) < 3)", "o.`city`, i.`sku`"),
    (
        "sqrt(pow(o.id-i.oid,2)+pow(o.cust-i.qty,2)) < 1.5",
        "(sqrt((pow((`0` - `1`), 2) + pow((`2` - `3`), 2))) < 1.5)",
        "o.`id`, i.`oid`, o.`cust`, i.`qty`",
    ),
    ("o.id = i.oid OR o.id = i.qty", "((`0` = `1`) OR (`0` = `2`))", "o.`id`, i.`oid`, i.`qty`"),
    ("o.city IS NULL OR i.oid > o.id", "(`0` OR (`1` > `2`))", "o.`city` IS NULL, i.`oid`, o.`id`"),
    ("o.id + i.oid = 10", "((`0` + `1`) = 10)", "o.`id`, i.`oid`"),
    ("o.id = i.oid + o.cust", "(`0` = (`1` + `2`))", "o.`id`, i.`oid`, o.`cust`"),
    ("NOT (o.id = i.oid AND o.flag)", "(NOT ((`0` = `1`) AND `2`))", "o.`id`, i.`oid`, o.`flag`"),
    ("o.id IN (1, i.oid)", "(`0` IN (1, `1`))", "o.`id`, i.`oid`"),
    ("o.id NOT IN (i.oid)", "(`0` NOT IN (`1`))", "o.`id`, i.`oid`"),
    ("o.id <=> i.oid", "(`0` <=> `1`)", "o.`id`, i.`oid`"),
    ("o.id IS NOT DISTINCT FROM i.oid", "(`0` <=> `1`)", "o.`id`, i.`oid`"),
    ("o.id IS DISTINCT FROM i.oid", "(NOT (`0` <=> `1`))", "o.`id`, i.`oid`"),
    ("o.id NOT BETWEEN i.oid AND 5", "(`0` NOT BETWEEN `1` AND 5)", "o.`id`, i.`oid`"),
    ("CASE WHEN o.id > i.oid THEN o.flag END", "(CASE WHEN (`0` > `1`) THEN `2` END)", "o.`id`, i.`oid`, o.`flag`"),
    ("CASE o.id WHEN i.oid THEN TRUE END", "(CASE `0` WHEN `1` THEN TRUE END)", "o.`id`, i.`oid`"),
    ("(o.id + i.oid)::STRING = 'x'", "(CAST((`0` + `1`) AS STRING) = 'x')", "o.`id`, i.`oid`"),
    ("o.addr.city NOT LIKE i.sku ESCAPE '!'", "(`0` NOT LIKE `1` ESCAPE '!')", "o.`addr`.city, i.`sku`"),
    ("o.city NOT ILIKE i.sku", "(`0` NOT LIKE `1`)", "o.lower(`city`), i.lower(`sku`)"),
    ("concat(o.city, i.sku) ILIKE 'A'", "(lower(concat(`0`, `1`)) LIKE lower('A'))", "o.`city`, i.`sku`"),
    ("concat(o.city, i.sku) REGEXP '^a'", "(concat(`0`, `1`) RLIKE '^a')", "o.`city`, i.`sku`"),
    ("timestampdiff(HOUR, o.ts, i.ts) < 5", "(timestampdiff(HOUR, `0`, `1`) < 5)", "o.`ts`, i.`ts`"),
    ("i.ts - o.ts < INTERVAL 5 MINUTES", "((`0` - `1`) < (INTERVAL 5 MINUTES))", "i.`ts`, o.`ts`"),
)

PRECEDENCE = (
    ("o.id = i.oid IS NULL", "((`0` = `1`) IS NULL)"),
    ("o.id = i.oid = TRUE", "((`0` = `1`) = TRUE)"),
    ("!o.id = i.oid", "(NOT (`0` = `1`))"),
    ("NOT o.id = i.oid OR o.flag", "((NOT (`0` = `1`)) OR `2`)"),
    ("o.id > i.oid OR o.flag AND i.qty = o.id", "((`0` > `1`) OR (`2` AND (`3` = `0`)))"),
    ("o.id | i.oid & o.cust ^ i.qty = 7", "((`0` | ((`1` & `2`) ^ `3`)) = 7)"),
    ("o.id - i.oid - o.cust = 1 + 2 * 3", "(((`0` - `1`) - `2`) = (1 + (2 * 3)))"),
    ("o.id - i.oid * o.cust DIV i.qty = 1", "((`0` - ((`1` * `2`) DIV `3`)) = 1)"),
    ("o.id << i.oid + o.cust > -1", "((`0` << (`1` + `2`)) > (- 1))"),
    ("-(o.id + i.oid) * o.cust = 1", "(((- (`0` + `1`)) * `2`) = 1)"),
    ("o.id BETWEEN i.oid AND 3 OR o.flag", "((`0` BETWEEN `1` AND 3) OR `2`)"),
)


def bound(condition: str, relations: str = "orders o, items i", *, predicates: tuple[str, ...] = ("similar",)) -> Query:
    return bind_query(
        name="q",
        select=f"SELECT 1 FROM {relations} WHERE {condition}",
        sink=SinkSpec(format="memory"),
        sources=SOURCES,
        predicates=predicates,
    )


def operands(theta: Residual[Operand]) -> str:
    return ", ".join(f"{operand.relation}.{operand.expression.sql}" for operand in theta.operands)


@pytest.mark.parametrize(("condition", "sql", "parts"), CASES)
def test_what_concerns_one_relation_is_an_operand(condition: str, sql: str, parts: str) -> None:
    (theta,) = bound(condition).residuals
    assert (theta.text, theta.sql, operands(theta), theta.is_function) == (sql, sql, parts, False)
    assert set(relations_of(theta)) == {"o", "i"}


@pytest.mark.parametrize(("condition", "sql"), PRECEDENCE)
def test_operations_are_taken_apart_as_spark_reads_them(condition: str, sql: str) -> None:
    assert [theta.text for theta in bound(condition).residuals] == [sql]


def test_between_is_two_predicates() -> None:
    query = bound("i.ts BETWEEN o.ts AND o.ts + INTERVAL 5 MINUTES")
    assert [(theta.text, operands(theta)) for theta in query.residuals] == [
        ("(`0` >= `1`)", "i.`ts`, o.`ts`"),
        ("(`0` <= `1`)", "i.`ts`, o.`ts` + INTERVAL 5 MINUTES"),
    ]


def test_a_bound_of_between_may_be_a_selection() -> None:
    query = bound("i.qty + 1 BETWEEN 5 AND o.id + i.oid")
    assert selections(query) == {"i": ["(`qty` + 1) >= (5)"]}
    assert [theta.text for theta in query.residuals] == ["(`0` <= (`1` + `2`))"]


def test_the_bounds_of_between_may_be_of_two_other_relations() -> None:
    query = bound("o.id BETWEEN i.oid AND n.code", "orders o, items i, nation n")
    assert [operands(theta) for theta in query.residuals] == ["o.`id`, i.`oid`", "o.`id`, n.`code`"]


def test_a_predicate_written_twice_is_one() -> None:
    query = bound("o.id < i.oid AND o . id<i.oid AND o.id = i.oid")
    assert (len(query.residuals), equalities(query)) == (1, ["o.`id` = i.`oid`"])


def test_two_relations_over_one_stream_have_operands_of_their_own() -> None:
    (theta,) = bound("a.id < b.id", "orders a, orders b").residuals
    assert operands(theta) == "a.`id`, b.`id`"


def test_a_theta_predicate_connects_relations() -> None:
    assert len(bound("o.id < i.oid AND i.sku = n.city", "orders o, items i, nation n").residuals) == 1
    with pytest.raises(SqlError, match=r"nothing joins 'o' and 'i' with 'n'; add a condition on both"):
        bound("o.id < i.oid", "orders o, items i, nation n")


def test_predicates_over_unknown_columns_are_cut_all_the_same() -> None:
    (theta,) = bound("u.x + o.id > 3", "unseen u, orders o").residuals
    assert (theta.text, operands(theta)) == ("((`0` + `1`) > 3)", "u.`x`, o.`id`")


def test_a_registered_predicate_takes_its_arguments_in_order() -> None:
    query = bound("o.cust > 1 AND (SIMILAR(upper(i.sku), o.city, i.sku))")
    (theta,) = query.residuals
    assert (theta.is_function, theta.sql, operands(theta)) == (True, "similar", "i.upper(`sku`), o.`city`, i.`sku`")
    assert query.spark_text == (
        "SELECT 1 FROM {orders} o, {items} i WHERE o.cust > 1 AND ((upper(i.sku), o.city, i.sku) IS NOT NULL)"
    )


def test_an_argument_given_twice_stays_twice() -> None:
    (theta,) = bound("similar(o.city, o.city, i.sku)").residuals
    assert (theta.text, operands(theta)) == ("similar(`0`, `1`, `2`)", "o.`city`, o.`city`, i.`sku`")


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("NOT similar(o.city, i.sku)", "register its opposite"),
        ("o.id = i.oid AND if(similar(o.city, i.sku), TRUE, FALSE)", "a condition of its own"),
        ("similar(o.city, i.sku, 5)", "constants belong into the registered function"),
        ("similar(concat(o.city, i.sku), i.sku)", "columns of two relations"),
        ("o.id = i.oid AND similar(o.city, o.city)", "joins two relations"),
        ("transform(i.tags, t -> concat(t, o.city)) = i.tags", "engine.predicate"),
        ("trim(BOTH 'x' FROM concat(o.city, i.sku)) = 'a'", "from two relations"),
        ("(o.id, i.oid) < (1, 2)", "between rows; compare the fields"),
    ],
)
def test_what_cannot_be_cut_is_refused_with_advice(condition: str, says: str) -> None:
    with pytest.raises(UnsupportedQueryError, match=says):
        bound(condition)


def test_a_function_that_nobody_has_is_refused_unless_spark_is_said_to_have_it() -> None:
    with pytest.raises(SqlError, match=r"there is no function similar\(\): Spark has none of this name"):
        bound("similar(o.city, i.sku)", predicates=())
    select = "SELECT mine(o.city) FROM orders o"
    sink = SinkSpec(format="noop")
    asked: list[str] = []
    bind_query(name="q", select=select, sink=sink, sources=SOURCES, is_function=lambda name: not asked.append(name))
    assert asked == ["mine"]


def test_a_script_is_told_what_is_refused_where_the_types_are_declared() -> None:
    sources = "CREATE STREAM {} (ts TIMESTAMP, x DOUBLE) USING mine TIMESTAMP BY ts;"
    script = sources.format("a") + sources.format("b") + "CREATE QUERY q INTO noop AS SELECT 1 FROM a JOIN b ON {}"
    assert "round() of 1 arguments" in check_script(script.format("round(a.x - b.x) = 2"))[0].message
    assert not check_script(script.format("abs(a.x - b.x) < 2"))


def test_scripts_may_call_registered_predicates() -> None:
    script = (
        "CREATE STREAM a USING rate TIMESTAMP BY timestamp; CREATE STREAM b USING rate TIMESTAMP BY timestamp;"
        "CREATE QUERY q INTO memory AS SELECT 1 FROM a JOIN b ON near(a.value, 'x', b.value)"
    )
    (problem,) = check_script(script)
    assert "there is no function near()" in problem.message
    (problem,) = check_script(script, predicates=("near",))
    assert "but 'x' has no column" in problem.message
