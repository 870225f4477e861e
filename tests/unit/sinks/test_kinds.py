"""The table of sinks: complete, and closed."""

from typing import get_args

import pyarrow as pa
import pytest

from plait import sinks
from plait.errors import SinkError
from plait.query.model import ColumnRef, SinkSpec
from plait.sinks.delivery import Direct, Discarded, Projection, Spooled
from plait.sinks.kind import SinkName
from plait.sinks.kinds import KINDS, format_problem, kind_of

COLUMN = ColumnRef(relation="a", column="x")
SCHEMA = pa.schema([("x", pa.int64())])
PICKED = Projection(query="q", checkpoint="0123456789abcdef", joined=(COLUMN,), made=(0,), schema=SCHEMA)
COMPUTED = Projection(query="q", checkpoint="0123456789abcdef", joined=(COLUMN,), made=None, schema=SCHEMA)


def test_every_sink_stands_in_the_table_under_its_own_name_and_has_a_function() -> None:
    assert set(KINDS) == set(get_args(SinkName))
    assert all(kind.name == name for name, kind in KINDS.items())
    assert set(KINDS) == set(sinks.__all__) - {"Sink"}


def test_a_sink_of_no_known_kind_is_never_written() -> None:
    with pytest.raises(SinkError, match="'orc' is not a sink"):
        kind_of(SinkSpec(format="orc"))
    assert "did you mean 'parquet'" in str(format_problem("parqet"))


@pytest.mark.parametrize("name", sorted(KINDS))
def test_results_that_take_an_expression_are_spooled_for_spark(name: SinkName) -> None:
    spec = SinkSpec(format=name, options=(("path", "/out"),))
    assert KINDS[name].delivery(spec, COMPUTED) == Spooled(query="q", columns=(COLUMN,))


def test_results_that_need_no_spark_are_written_or_discarded_by_the_tasks_where_the_sink_allows() -> None:
    delivered = {
        name: KINDS[name].delivery(SinkSpec(format=name, options=(("path", "/out"),)), PICKED) for name in KINDS
    }
    assert {name for name, how in delivered.items() if isinstance(how, Direct)} == {"parquet"}
    assert {name for name, how in delivered.items() if isinstance(how, Discarded)} == {"noop"}
