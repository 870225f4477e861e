"""The front end against Spark: the same columns, the same names, the same results, and the same functions refused.

A bound query is evaluated naively from its parts (selections, equalities, theta predicates, output) over a cross
product; Spark runs the user's own text. They must agree.
"""

import re
from collections import Counter
from collections.abc import Mapping

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from plait.query.model import Column, Operand, Query, SinkSpec, Source, Stream, Table
from plait.query.types import resolve_types
from plait.runtime.outputs.plain_queries import plain_output
from plait.sql import bind_query
from plait.sql.expressions.expression_binder import ExpressionBinder
from plait.sql.expressions.functions import REFUSED
from plait.sql.expressions.inference import RESULTS, inferred_type
from plait.sql.expressions.scope import BoundRelation, Scope
from plait.sql.expressions.spark_functions import BUILT_IN
from plait.sql.lexis.ddl import parse_columns
from plait.sql.lexis.literals import INTERVAL
from plait.sql.lexis.names import backquoted
from plait.sql.lexis.text import SourceText
from plait.sql.lexis.tokens import tokenize
from tests.unit.sql.reading import cursor_over

pytestmark = pytest.mark.spark

SCHEMAS = {
    "orders": "(id BIGINT, cust INT, city STRING, qty DECIMAL(10,2), addr STRUCT<City: STRING, Zip: INT>, "
    "`we.ird` INT, ts TIMESTAMP, user STRING)",
    "items": "(oid INT, sku STRING, Qty INT, tags ARRAY<STRING>, ts TIMESTAMP, `order` STRING)",
    "nation": "(cust STRING, city STRING, `sel``ect` INT, attrs MAP<STRING, INT>)",
}
SCHEMA_COLUMNS = {name: parse_columns(cursor_over(ddl)) for name, ddl in SCHEMAS.items()}
ROWS = {
    "orders": """VALUES
        (1L, 10, 'Rome', 1.50BD, named_struct('City', 'x', 'Zip', 1), 1, TIMESTAMP'2024-01-01 00:00:01', 'ann'),
        (2L, 20, 'oslo', 2.00BD, named_struct('City', 'y', 'Zip', 2), 2, TIMESTAMP'2024-01-01 00:00:02', 'bob'),
        (2L, NULL, NULL, 2.00BD, NULL, NULL, TIMESTAMP'2024-01-01 00:00:03', NULL),
        (3L, 30, 'it''s -- {a};', 7.00BD, named_struct('City', 'x', 'Zip', NULL), 3, TIMESTAMP'2024-01-01', 'ann')""",
    "items": """VALUES
        (1, 'a', 1, array('rome', 'x'), TIMESTAMP'2024-01-01 00:00:01', 'o1'),
        (2, 'b', 2, array('oslo'), TIMESTAMP'2024-01-01 00:00:05', 'o2'),
        (2, 'B', 20, NULL, TIMESTAMP'2024-01-01 00:00:06', NULL),
        (NULL, 'c', 3, array(), TIMESTAMP'2024-01-01 00:00:07', 'o3')""",
    "nation": """VALUES ('10', 'rome', 1, map('a', 1)), ('20', 'Oslo', 2, map('b', 2)), ('30', NULL, 3, NULL)""",
}

QUERIES = (
    "SELECT id FROM orders",
    "SELECT * FROM orders o, items i WHERE o.id = i.oid",
    "SELECT o.*, i.sku FROM orders o JOIN items i ON o.id = i.oid",
    "SELECT ID, o.Id AS Other, O.addr.CITY, addr.zip, `we.ird` + 1, o.`we.ird` w FROM orders AS o WHERE addr.Zip > 0",
    "SELECT * FROM orders JOIN nation USING (cust)",
    "SELECT nation.*, orders.* FROM orders JOIN nation USING (CUST)",
    "SELECT n.*, cust, n.cust, o.cust FROM orders o JOIN nation n USING (cust, city)",
    "SELECT * FROM orders JOIN nation USING (cust) JOIN items ON id = oid",
    "SELECT b.*, c.*, a.* FROM orders a JOIN orders b USING (cust, id) JOIN nation c USING (cust)",
    "SELECT city, a.id FROM orders a JOIN nation b USING (city)",
    "SELECT * FROM orders NATURAL JOIN nation",
    "SELECT * FROM orders a, items i JOIN nation n ON a.cust = n.cust WHERE a.id = i.oid",
    "SELECT a.id, b.id FROM orders a JOIN orders b ON a.id = b.id",
    "SELECT n.city, o.city FROM orders o JOIN nation n ON lower(o.city) = lower(n.city)",
    "SELECT o.id FROM orders o JOIN items i ON o.id + 1 = i.oid + 1 AND (o.qty = i.qty)",
    "SELECT i.sku, o.qty FROM orders o JOIN items i ON o.qty = i.Qty",
    "SELECT i.sku FROM orders o JOIN items i ON ((o.id = i.oid) AND ((i.qty BETWEEN 1 AND 5) AND NOT o.city IS NULL))",
    "SELECT o.id FROM orders o JOIN items i ON o.id = i.oid WHERE sku IN ('a', 'b') OR i.qty > 1 AND sku LIKE 'B%'",
    "SELECT o.id FROM orders o JOIN items i ON o.id = i.oid AND CASE WHEN o.city = 'Rome' AND o.id = 1 THEN TRUE END",
    "SELECT o.city FROM orders o WHERE o.city = 'it''s -- {a};' -- a comment; with 'quotes' and {braces}\n",
    "SELECT /* first; */ o.id, '{x}' AS brace, \"dq;--\" FROM orders o /* nested /* one */ */ WHERE o.id = /* 5 */ 2",
    "SELECT o.id k, `n`.`sel``ect` FROM orders o CROSS JOIN nation n",
    "SELECT o.id FROM orders o CROSS JOIN nation n ON o.cust = n.cust",
    "SELECT transform(i.tags, t -> concat(t, i.sku)) AS x, filter(tags, (T, n) -> t <> 'x' AND n >= 0) FROM items i",
    "SELECT i.tags[0], i.`order`, n.attrs['a'], n.attrs.a FROM items i JOIN nation n ON n.attrs['b'] = i.oid",
    "SELECT cast(o.ts AS DATE) d, o.ts + INTERVAL 1 HOUR, date_trunc('DAY', ts), extract(HOUR FROM o.ts) FROM orders o",
    "SELECT o.id::STRING || 'x', try_cast(city AS INT), 5L * id, struct(o.id AS i, city) s, user FROM orders o",
    "SELECT to_json(struct(o.City, (o.id), o.addr.zip, id + 1)), to_json((City, 1)), struct(struct(id)) FROM orders o",
    "SELECT o.id FROM orders o JOIN nation n ON to_json(struct(o.CITY)) = to_json(struct(n.city AS CITY))",
    "SELECT o.user, upper(user), current_user() = current_user FROM orders o",
    "SELECT 1, 'x', NULL AS n, TRUE, o.id IS NULL, o.id FROM orders o WHERE 1 = 1 AND TRUE",
    "SELECT o.id FROM orders o WHERE 1 = 2",
    "SELECT dateadd(DAY, 1, o.ts), timestampdiff(SECOND, o.ts, i.ts) FROM orders o, items i WHERE id = oid",
    "SELECT o.id FROM orders o, items i WHERE o.id & 3 = i.oid AND o.id = abs(- i.oid)",
    "SELECT `ö`.id AS `größe`, `ö`.city AS `a b`, `ö`.cust FROM orders `ö` WHERE `ö`.city <> '日本'",
    "SELECT ALL o . id, o\n.\ncust FROM orders o;",
    "SELECT if(o.id = 1, o.city, NULL), coalesce(o.city, 'none'), o.id % 2 = 0 AS even FROM orders o WHERE o.id != 3",
    "SELECT o.id, i.sku FROM orders o JOIN items i ON o.id < i.qty AND i.ts >= o.ts",
    "SELECT o.id, i.sku FROM orders o, items i WHERE i.ts BETWEEN o.ts AND o.ts + INTERVAL 4 SECONDS",
    "SELECT o.id, i.sku FROM orders o, items i WHERE NOT o.id = i.oid OR o.city IS NULL AND i.qty > o.cust",
    "SELECT o.id, i.sku FROM orders o, items i WHERE o.id = i.oid IS NOT NULL",
    "SELECT o.id, i.sku FROM orders o, items i WHERE o.id - i.oid * 2 + i.qty & 3 ^ o.cust | 1 = o.id % 5 + i.qty",
    "SELECT o.id, i.sku FROM orders o, items i WHERE - o.id - i.oid < -2 - 1 AND o.id << i.oid + 1 > i.qty DIV 2",
    "SELECT o.id, i.sku FROM orders o, items i WHERE o.id NOT IN (i.oid, i.qty + o.id, 7) OR i.sku LIKE lower(o.user)",
    "SELECT o.id, i.sku FROM orders o, items i WHERE CASE WHEN o.id > i.oid THEN i.sku ELSE o.user END > 'ann'",
    "SELECT o.id, i.sku FROM orders o, items i WHERE CASE o.id WHEN i.oid THEN 1 ELSE i.qty END BETWEEN 1 AND o.id",
    "SELECT o.id, i.sku FROM orders o, items i WHERE (o.id + i.oid)::STRING || i.sku <> '2b' AND !(o.id > i.oid)",
    "SELECT o.id, i.sku FROM orders o, items i WHERE o.addr.zip IS DISTINCT FROM i.qty AND get(i.tags, 0) < o.city",
    "SELECT o.id, i.sku, n.city FROM orders o, items i, nation n WHERE o.id BETWEEN i.oid AND n.`sel``ect`",
    "SELECT o.id, i.sku FROM orders o JOIN items i ON (o.id, o.city) = (i.oid, i.sku)",
    "SELECT o.id, n.city FROM orders o JOIN nation n ON (o.city, o.id) <=> (n.city, n.`sel``ect`) AND o.id IS NOT NULL",
    "SELECT a.id, b.id FROM orders a JOIN orders b ON struct(a.cust, a.city, (a.id, a.qty)) = (b.cust, b.city, (2, 2))",
    "SELECT o.id FROM orders o WHERE o.city IS DISTINCT FROM 'oslo' AND o.id >>> 1 = 1 AND (o.id, o.cust) = (2L, NULL)",
    "SELECT o.city IS NOT DISTINCT FROM 'x' AS d, o.id >>> 1, o.city::STRING COLLATE UNICODE_CI = 'ROME' FROM orders o",
    "SELECT CAST(o.id AS VARCHAR(3)), CAST(o.ts AS TIMESTAMP WITHOUT TIME ZONE) FROM orders o "
    "WHERE CAST(o.city AS STRING COLLATE UTF8_LCASE) = 'ROME'",
    "SELECT left(o.city, 2) l FROM orders o JOIN nation n ON left(o.city, 1) = left(upper(n.city), 1) WHERE n.cust > 0",
)


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> dict[str, DataFrame]:
    return {name: typed(spark.sql(ROWS[name]), columns) for name, columns in SCHEMA_COLUMNS.items()}


def typed(rows: DataFrame, columns: tuple[Column, ...]) -> DataFrame:
    """Name and type the columns of VALUES, and keep the rows, so that they are not made anew for each query."""
    casts = (
        f"CAST({raw} AS {column.type}) AS {backquoted(column.name)}"
        for raw, column in zip(rows.columns, columns, strict=True)
    )
    return rows.selectExpr(*casts).localCheckpoint()


def sources() -> dict[str, Source]:
    streams = {name: Stream(name=name, time="ts", schema=SCHEMA_COLUMNS[name]) for name in ("orders", "items")}
    return {**streams, "nation": Table(name="nation", schema=SCHEMA_COLUMNS["nation"])}


def evaluated(query: Query, frames: Mapping[str, DataFrame]) -> DataFrame:
    """Evaluate a bound query from its parts."""
    joined: DataFrame | None = None
    for relation in query.relations:
        frame = frames[relation.source]
        for selection in relation.selections:
            frame = frame.where(selection.sql)
        keys = [
            f"CAST({side.expression.sql} AS {side.type}) AS `key {side.relation} {position}`"
            for position, equality in enumerate(query.equalities)
            for side in (equality.left, equality.right)
            if side.relation == relation.alias
        ]
        keys += [
            f"({operand.expression.sql}) AS `theta {position} {place}`"
            for position, theta in enumerate(query.residuals)
            for place, operand in enumerate(theta.operands)
            if operand.relation == relation.alias
        ]
        columns = [f"{backquoted(name)} AS {backquoted(f'{relation.alias}.{name}')}" for name in frame.columns]
        frame = frame.selectExpr(*columns, *keys)
        joined = frame if joined is None else joined.crossJoin(frame)
    assert joined is not None
    for position, equality in enumerate(query.equalities):
        joined = joined.where(f"`key {equality.left.relation} {position}` = `key {equality.right.relation} {position}`")
    for position, theta in enumerate(query.residuals):
        joined = joined.where(re.sub(r"`(\d+)`", rf"`theta {position} \1`", theta.text))
    return joined.selectExpr(
        *(f"{column.expression.sql} AS c{position}" for position, column in enumerate(query.output))
    )


@pytest.mark.parametrize("select", QUERIES)
def test_a_bound_query_means_what_spark_makes_of_its_text(select: str, frames: dict[str, DataFrame]) -> None:
    query = bind_query(name="q", select=select, sink=SinkSpec(format="memory"), sources=sources())

    def type_of(operand: Operand) -> str:
        frame = frames[query.relation(operand.relation).source]
        return str(frame.selectExpr(operand.expression.sql).schema[0].dataType.simpleString())

    spark = frames["orders"].sparkSession
    expected = spark.sql(query.spark_text, **{relation.source: frames[relation.source] for relation in query.relations})
    assert len(query.output) == len(expected.columns)
    names = [column.name or name for column, name in zip(query.output, expected.columns, strict=True)]
    assert names == expected.columns
    found = evaluated(resolve_types(query, type_of), frames)
    assert types(found) == types(expected)
    assert Counter(map(str, found.collect())) == Counter(map(str, expected.toDF(*found.columns).collect()))


PLAIN = (
    "SELECT O.ID, i.sku `a b`, I.`ORDER` FROM orders o JOIN items i ON o.id = i.oid WHERE o.cust > 5 AND i.sku = 'a'",
    "SELECT o.ts, i.Qty q, tags FROM orders o, items i WHERE o.id = i.oid AND i.qty IN (1, 2) AND o.city IS NOT NULL",
    "SELECT * FROM orders o JOIN items i ON o.city = i.sku AND i.qty BETWEEN -1 AND 99999999999 AND NOT o.cust <=> 1",
    "SELECT o.qty FROM orders o JOIN nation n ON o.cust = n.cust WHERE o.qty <= 1.5 AND (o.cust = 1 OR o.cust > 10)",
    "SELECT o.cust, attrs FROM orders o, nation n WHERE o.city = n.city AND o.ts > TIMESTAMP'2024-01-01 00:00:01'",
    "SELECT a.`we.ird`, b.addr FROM orders a JOIN orders b ON a.qty = b.qty WHERE 3 >= a.cust AND a.city <> NULL",
)


def test_what_is_known_of_plain_queries_without_asking_spark_is_what_it_says(frames: dict[str, DataFrame]) -> None:
    spark, schemas = frames["orders"].sparkSession, {name: frame.schema for name, frame in frames.items()}
    found = {}
    for select in (*QUERIES, *PLAIN):
        query = bind_query(name="q", select=select, sink=SinkSpec(format="memory"), sources=sources())
        plain = plain_output(query, schemas)
        if plain is not None:
            found[select] = plain
            read = {relation.source: frames[relation.source] for relation in query.relations}
            assert plain == spark.sql(query.spark_text, **read).schema, select
    assert found.keys() >= set(PLAIN)


def test_spark_looks_at_the_arguments_of_registered_predicates(frames: dict[str, DataFrame]) -> None:
    spark = frames["orders"].sparkSession

    def analyzed(condition: str) -> list[str]:
        select = f"SELECT o.id, i.sku FROM orders o JOIN items i ON o.cust > 1 AND {condition}"
        sink = SinkSpec(format="memory")
        query = bind_query(name="q", select=select, sink=sink, sources=sources(), predicates=("near",))
        return spark.sql(query.spark_text, orders=frames["orders"], items=frames["items"]).columns

    assert analyzed("near(o.city, upper(i.sku))") == ["id", "sku"]
    with pytest.raises(AnalysisException, match="WRONG_NUM_ARGS"):
        analyzed("near(o.city, length(i.sku, 1))")


def types(frame: DataFrame) -> list[str]:
    return [field.dataType.simpleString() for field in frame.schema.fields]


def test_columns_declared_in_a_script_are_typed_as_spark_types_them(frames: dict[str, DataFrame]) -> None:
    for name, source in sources().items():
        found = {column.name: column.type.replace("`", "") for column in source.schema or ()}
        assert found == {field.name: field.dataType.simpleString() for field in frames[name].schema.fields}


def test_every_aggregate_window_and_generator_function_of_spark_is_refused(spark: SparkSession) -> None:
    registry = spark._jsparkSession.sessionState().functionRegistry()
    names = [registry.listFunction().apply(index) for index in range(registry.listFunction().size())]
    kinds = {name.funcName(): registry.lookupFunction(name).get().getGroup() for name in names}
    refused = {name for name, kind in kinds.items() if kind in ("agg_funcs", "window_funcs", "generator_funcs")}
    assert refused - REFUSED.keys() == set()


def test_the_list_of_functions_is_sparks(spark: SparkSession) -> None:
    listed = {row[0] for row in spark.sql("SHOW FUNCTIONS").collect()}
    assert {name for name in listed if name.isidentifier()} - BUILT_IN == set()
    by_grammar = {"identifier", "timestampadd", "timestampdiff", "try_cast"}
    assert BUILT_IN - listed == by_grammar


EXAMPLES = {
    "'a'": (
        "ascii base64 bigint bin binary bit_length boolean btrim char char_length character_length chr "
        "concat_ws cos crc32 date date_from_unix_date day dayname dayofmonth dayofweek dayofyear double exp "
        "float format_string from_unixtime hash hex hour initcap int is_valid_utf8 isnan isnotnull isnull last_day "
        "lcase length ln log10 log2 lower ltrim luhn_check md5 minute month monthname octet_length printf quarter "
        "rtrim sha1 sin smallint soundex space sqrt string tan timestamp tinyint to_date to_timestamp "
        "to_timestamp_ltz to_timestamp_ntz to_unix_timestamp trim try_to_date try_to_timestamp typeof ucase "
        "unix_timestamp upper url_decode url_encode weekday weekofyear xxhash64 year"
    ),
    "'a', 'b'": (
        "contains date_diff date_format date_trunc datediff endswith equal_null from_utc_timestamp "
        "get_json_object ilike instr levenshtein like locate months_between next_day position pow power "
        "regexp regexp_extract regexp_like regexp_substr repeat replace rlike sha2 startswith to_utc_timestamp trunc"
    ),
    "array(1)": ("array_size cardinality size to_json"),
    "2024, 1, 1, 0, 0, 0": ("make_timestamp make_timestamp_ltz make_timestamp_ntz try_make_timestamp_ntz"),
    "2024, 1, 1": ("make_date regexp_replace substring_index translate"),
    "TIMESTAMP'2024-01-01 00:00:00'": ("unix_micros unix_millis unix_seconds"),
    "1": (
        "make_dt_interval make_interval make_ym_interval try_make_interval timestamp_micros timestamp_millis "
        "timestamp_seconds"
    ),
    "array(1), x -> x > 1": ("exists forall"),
    "1.5BD, '999'": ("format_number to_char to_varchar"),
    "'a', 'b', 1": ("split_part"),
    "parse_json('1')": ("is_variant_null"),
    "map('a', 1), 'a'": ("map_contains_key"),
    "array(1), array(2)": ("arrays_overlap"),
    "array(1), 1": ("array_contains"),
    "DATE'2024-01-01'": ("unix_date"),
}
"""Arguments, and the functions to call with them."""


def test_functions_give_the_types_the_front_end_thinks_they_give(spark: SparkSession) -> None:
    calls = [(name, f"{name}({arguments})") for arguments, names in EXAMPLES.items() for name in names.split()]
    schema = spark.range(1).selectExpr(*(f"{call} AS {name}" for name, call in calls)).schema
    assert {field.name: field.dataType.simpleString() for field in schema} == RESULTS


EXPRESSIONS = (
    "o.id + 1",
    "o.cust * 2 - o.id",
    "o.id / 2",
    "o.id DIV 2",
    "-o.cust",
    "o.city || 'x'",
    "o.ts + INTERVAL 1 HOUR",
    "CAST(o.ts AS DATE) + 1",
    "o.id = 1",
    "NOT o.id = 1 AND o.city LIKE 'x'",
    "o.city IS NOT NULL",
    "o.id::STRING",
    "try_cast(o.city AS DECIMAL(10, 2))",
    "CAST(o.city AS STRING COLLATE UNICODE_CI)",
    "o.addr.zip",
    "CASE WHEN o.id = 1 THEN 'x' ELSE o.city END",
    "coalesce(o.city, 'x')",
    "if(o.id = 1, o.ts, NULL)",
    "nullif(o.id, 0)",
    "1.5",
    "5L",
    "'x'",
    "o.cust + 1.5F",
    "o.id % o.cust",
    "INTERVAL '1' YEAR",
    "INTERVAL 3 MONTHS",
    "INTERVAL '1-2' YEAR TO MONTH",
    "INTERVAL 1 HOUR",
)


_DAY_TIME = re.compile(r"interval (?:day|hour|minute|second)(?: to (?:hour|minute|second))?")
"""Spark has a type for each choice of units; what is inferred says only that the interval has a fixed length."""


def test_types_are_inferred_as_spark_types_them(frames: dict[str, DataFrame]) -> None:
    spark = frames["orders"].sparkSession
    scope = Scope.of(BoundRelation(alias="o", source=sources()["orders"]))
    for expression in EXPRESSIONS:
        text = SourceText(text=expression)
        tokens = tokenize(text, expression, 0, len(expression))
        binder = ExpressionBinder(text, expression, [])
        bound = binder.bind(binder.parse(tokens), tokens, scope)
        assert bound is not None
        schema = spark.sql(f"SELECT {expression} FROM {{orders}} o", orders=frames["orders"]).schema
        assert inferred_type(bound) == _DAY_TIME.sub(INTERVAL, schema[0].dataType.simpleString()), expression
