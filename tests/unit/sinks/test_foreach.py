"""Functions of the user's that get results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from plait import sinks
from plait.errors import SinkError
from plait.sinks.kind import Results
from plait.sinks.kinds import kind_of

TABLE = pa.table({"id": [1, 2]})


def results(rows: Any) -> Results:
    return Results(query="q", batch=7, checkpoint="0123456789abcdef", tasks=1, rows=rows, kept={})


@pytest.mark.parametrize(("maker", "is_arrow"), [(sinks.foreach, False), (sinks.foreach_arrow, True)])
def test_a_function_gets_the_rows_in_its_form_and_the_batch(maker: Callable[..., Any], is_arrow: bool) -> None:
    calls: list[tuple[Any, int]] = []
    sink = maker(lambda *given: calls.append(given))
    assert kind_of(sink.spec).takes_arrow == is_arrow
    assert kind_of(sink.spec).deliver(sink, results(TABLE)) == ()
    assert calls == [(TABLE, 7)]


@pytest.mark.parametrize("maker", [sinks.foreach, sinks.foreach_arrow])
def test_what_a_function_raises_is_the_failure_of_its_sink(maker: Callable[..., Any]) -> None:
    def refuse(rows: Any, batch: int) -> None:
        raise ValueError("not now")

    sink = maker(refuse)
    with pytest.raises(SinkError, match=f"query 'q': its {maker.__name__} function raised ValueError: not now"):
        kind_of(sink.spec).deliver(sink, results(TABLE))
