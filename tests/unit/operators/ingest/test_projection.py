import pyarrow as pa

from plait.operators.close.restoring import raw_columns
from plait.operators.ingest.badrows import bad_masks
from plait.operators.ingest.projection import ingest_spec, key_sql, tau_sql, value_sql
from plait.plan.model import KeyColumn, ValueColumn
from plait.query.model import Column, SourceExpression, Stream
from plait.state.model import Bucket, Layout
from tests.oracle.duckdb_oracle import load
from tests.oracle.translate import connection, to_duckdb

AGE = SourceExpression(sql="`m`", columns=("m",))
CAST = "CAST((`m`) AS INTERVAL YEAR)"


def test_intervals_of_months_reach_a_task_as_numbers_of_months_and_as_keys() -> None:
    assert (
        value_sql(ValueColumn(expression=AGE, type="interval year")) == f"CAST(CAST({CAST} AS INTERVAL MONTH) AS INT)"
    )
    assert key_sql(KeyColumn(expression=AGE, type="interval year")).endswith(f"ELSE xxhash64({CAST}) END")
    assert KeyColumn(expression=AGE, type="interval year").value_name is None


def test_dead_letters_have_as_text_what_no_task_can_have_otherwise() -> None:
    schema = tuple(
        Column(name=name, type=type_)
        for name, type_ in (
            ("ts", "timestamp"),
            ("m", "interval month"),
            ("l", "array<interval year>"),
            ("d", "interval day"),
        )
    )
    spec = ingest_spec(Stream(name="s", time="ts", schema=schema, dead_letter="dead"), ())
    assert dict(spec.projection)["m"] == "CAST(`m` AS STRING)"
    assert dict(spec.projection)["l"] == "CAST(`l` AS STRING)"
    assert dict(spec.projection)["d"] == "`d`"


def test_a_kept_number_of_months_gives_its_column_back() -> None:
    kept = ValueColumn(expression=AGE, type="interval year to month").name
    layout = Layout(columns=(), keys=(), values=(kept,), selections=(), has_tau=True)
    source = Stream(name="s", time="ts", schema=(Column(name="m", type="interval year to month"),))
    assert raw_columns(bucket(layout), source, lambda name: None) == {
        "m": f"CAST(CAST(`{kept.replace('`', '``')}` AS INTERVAL MONTH) AS interval year to month)"
    }


def bucket(layout: Layout) -> Bucket:
    return Bucket(
        store="s",
        partition=0,
        path="p",
        rows=1,
        bytes=1,
        batch_min=0,
        batch_max=0,
        tau_min=0,
        tau_max=0,
        sort_key=(),
        layout=layout,
        checksum="",
    )


def test_a_date_too_far_away_for_microseconds_is_out_of_range_and_no_failure() -> None:
    stream = Stream(name="s", time="d", schema=(Column(name="d", type="date"),))
    dates = pa.array([0, 1, -106_751_991, 106_751_991, 106_751_992, 2 * 10**8, -2 * 10**8, None], pa.int32())
    load(connection(), {"far": pa.table({"d": dates.cast(pa.date32())})})
    found = connection().sql(f'SELECT {to_duckdb(tau_sql(stream))} AS "#tau" FROM far').to_arrow_table()
    assert found.column(0).to_pylist()[:2] == [0, 86_400_000_000]
    bad = dict(bad_masks(found, ingest_spec(stream, ())))
    assert bad["event time out of range"].tolist() == [False, False, True, True, True, True, True, False]
    assert bad["no event time"].tolist() == [False] * 7 + [True]
