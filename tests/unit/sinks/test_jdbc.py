"""Which batches in a table of a database a checkpoint knows of."""

from __future__ import annotations

from typing import Any

import pytest

from plait.errors import SinkError
from plait.query.model import SinkSpec
from plait.sinks.kind import Results, Sink
from plait.sinks.kinds import jdbc

SINK = Sink(spec=SinkSpec(format="jdbc", options=(("url", "jdbc:postgresql://h/d"), ("dbtable", "t"))))


class Table:
    """What the database answers of a query in table ``t``, and whether it was written to."""

    def __init__(self, patch: pytest.MonkeyPatch, last: int | None, last_mark: str | None, mark: str | None) -> None:
        self.is_written = False

        def ask(table: Any, *columns: str) -> tuple[Any, ...]:
            return (True,) if len(columns) == 1 else (True, last, last_mark, mark)

        def write(table: Any) -> None:
            self.is_written = True

        patch.setattr(jdbc._Table, "_ask", ask)
        patch.setattr(jdbc._Table, "write", write)

    def take(self, come_to: int) -> bool:
        """Offer batch 4, which waits with 5; tell whether it was written."""
        marks = {4: "m4", 5: "m5"}
        results = Results(
            query="q", batch=4, checkpoint="c", tasks=1, rows=None, kept={}, last=come_to, mark="m4", marks=marks
        )
        jdbc.Jdbc().deliver(SINK, results)
        return self.is_written


@pytest.mark.parametrize(
    ("last", "last_mark", "mark", "is_written"),
    [
        (None, None, None, True),
        (3, "m3", None, True),
        (4, "m4", "m4", False),
        (5, "m5", "m4", False),
    ],
)
def test_a_batch_is_written_unless_the_table_has_it(
    last: int | None, last_mark: str | None, mark: str | None, is_written: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Table(monkeypatch, last, last_mark, mark).take(5) == is_written


@pytest.mark.parametrize(("last", "last_mark", "mark"), [(6, "x6", None), (5, "x5", None), (4, "x4", "x4")])
@pytest.mark.parametrize("come_to", [5, 6, 9])
def test_a_table_that_knows_more_than_the_checkpoint_is_refused_however_far_that_comes(
    last: int, last_mark: str, mark: str | None, come_to: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table(monkeypatch, last, last_mark, mark)
    with pytest.raises(SinkError, match="restored from a backup, or a copy"):
        table.take(come_to)
    assert not table.is_written


@pytest.mark.parametrize(
    ("columns", "mark", "has_it"),
    [(0, "m4", False), (3, "m4", False), (4, None, False), (4, "x4", False), (4, "m4", True)],
)
def test_a_table_is_asked_for_a_batch_by_its_mark_if_it_is_one_of_plait(
    columns: int, mark: str | None, has_it: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [(columns,), (mark,)]
    monkeypatch.setattr(jdbc._Table, "_ask", lambda table, *sqls: answers.pop(0))
    results = Results(query="q", batch=4, checkpoint="c", tasks=1, rows=None, kept={}, last=5, mark="m4")
    assert jdbc.Jdbc().has(SINK, results) == has_it
