"""`plait run --watch`: a script that is saved while it runs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from plait.cli.execution import Choices, settle
from plait.cli.script import read_script_file
from plait.cli.watching import Watch
from plait.errors import OptionError, SqlError

SOURCES = """SET plait.batch_rows = 1000;
CREATE STREAM orders (id BIGINT, word STRING, ts TIMESTAMP) USING mine TIMESTAMP BY ts WINDOW INTERVAL 30 SECONDS;
CREATE STREAM items (id BIGINT, word STRING, ts TIMESTAMP) USING mine TIMESTAMP BY ts WINDOW INTERVAL 30 SECONDS;
"""
ONE = "CREATE QUERY one INTO noop AS SELECT o.id FROM orders o JOIN items i ON o.id = i.id;\n"
TWO = "CREATE QUERY two INTO noop AS SELECT i.id FROM orders o JOIN items i ON o.id = i.id;\n"


class Remembering:
    """Stands in for an engine: holds the texts and windows of queries, and refuses those that say so."""

    def __init__(self) -> None:
        self.held: dict[str, Any] = {"one": "as it began", "over http": "from somebody"}
        self.dropped = list[str]()

    def queries(self) -> dict[str, Any]:
        return dict(self.held)

    def rehearse(self, dropped: Iterable[str]) -> Remembering:
        assert set(dropped) <= self.held.keys()
        return self

    def read(self, name: str, select: str, **_: Any) -> None:
        if "refused" in select:
            raise SqlError("refused by Spark")

    def query(self, name: str, select: str, **more: Any) -> None:
        assert name not in self.held
        if "unknown" in select:
            raise SqlError("Spark does not know it")
        self.held[name] = (select, more["windows"])

    def replace(self, name: str, select: str, **more: Any) -> None:
        assert name in self.held
        self.held[name] = (select, more["windows"])

    def drop(self, name: str) -> None:
        del self.held[name]
        self.dropped.append(name)


class Saved:
    """A script that runs, and is saved again."""

    def __init__(self, folder: Path) -> None:
        self.file, self.engine, self.said = folder / "a.sql", Remembering(), list[str]()
        self.file.write_text(SOURCES + ONE)
        script = read_script_file(self.file)
        engine: Any = self.engine
        self.watch = Watch(engine, script, script.load(), lambda text, _: text.load(), self.said.append)

    def save(self, text: str) -> None:
        self.file.write_text(text)
        seconds = self.file.stat().st_mtime + 1 + len(self.said)
        os.utime(self.file, (seconds, seconds))
        self.watch.look()


@pytest.fixture
def saved(tmp_path: Path) -> Saved:
    return Saved(tmp_path)


def test_as_long_as_the_script_is_not_saved_nothing_is_done(saved: Saved) -> None:
    saved.watch.look()
    saved.save(SOURCES + ONE)
    assert saved.said == []
    assert saved.engine.held["one"] == "as it began"


def test_what_differs_is_added_replaced_and_dropped_and_other_queries_stay(saved: Saved) -> None:
    saved.save(SOURCES + ONE + TWO)
    text = "SELECT i.id FROM orders o JOIN items i ON o.id = i.id"
    windows = {"o": "30000000 microseconds", "i": "30000000 microseconds"}
    assert saved.engine.held == {"one": "as it began", "over http": "from somebody", "two": (text, windows)}
    saved.save(SOURCES + TWO.replace("AS SELECT", "WINDOW (o UNBOUNDED) AS SELECT"))
    assert saved.engine.held == {"over http": "from somebody", "two": (text, {**windows, "o": None})}
    assert saved.said[1].endswith("was saved: 1 query added or replaced, 1 dropped")


def test_who_reads_groups_is_dropped_before_who_makes_them(saved: Saved) -> None:
    saved.save(
        f"""{SOURCES}{ONE}
        CREATE QUERY hours INTO noop AS
            SELECT window.end AS until, count(*) AS n FROM orders o GROUP BY window(o.ts, '1 hour');
        CREATE QUERY days INTO noop AS
            SELECT window.end AS until, sum(h.n) AS n FROM hours h GROUP BY window(h.until, '1 day');
        """
    )
    saved.save(SOURCES + ONE)
    assert saved.engine.dropped == ["days", "hours"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (SOURCES + ONE + TWO.replace("i.id;", "i.idd;"), "did you mean 'id'"),
        (SOURCES + ONE + "CREATE QUERY", "query"),
        (SOURCES.replace("30 SECONDS", "31 SECONDS", 1) + TWO, "start the run again"),
        (SOURCES.replace("1000", "2000") + TWO, "start it again"),
        (SOURCES + TWO.replace("SELECT i.id", "SELECT i.id AS refused"), "refused by Spark"),
    ],
)
def test_a_script_that_is_wrong_changes_nothing_and_the_next_one_is_applied(saved: Saved, text: str, why: str) -> None:
    saved.save(text)
    assert sorted(saved.engine.held) == ["one", "over http"]
    assert "is not applied, so the run goes on as before" in saved.said[0]
    assert why in saved.said[0]
    saved.save(SOURCES + ONE + TWO)
    assert sorted(saved.engine.held) == ["one", "over http", "two"]


def test_a_query_that_spark_alone_refuses_keeps_no_other_from_being_applied(saved: Saved) -> None:
    saved.save(SOURCES + TWO + TWO.replace("two", "three").replace("SELECT i.id", "SELECT i.id AS unknown"))
    assert sorted(saved.engine.held) == ["over http", "two"]
    assert "query three is refused" in saved.said[0]
    assert saved.said[1].endswith("1 query added or replaced, 1 dropped")


def test_a_script_that_an_editor_has_taken_away_for_a_moment_is_waited_for(saved: Saved) -> None:
    saved.file.unlink()
    saved.watch.look()
    assert saved.said == []
    saved.save(SOURCES + TWO)
    assert sorted(saved.engine.held) == ["over http", "two"]


def test_watching_and_ending_at_once_do_not_go_together(saved: Saved) -> None:
    with pytest.raises(OptionError, match="leave one out"):
        settle(read_script_file(saved.file), Choices(watch=True, available_now=True))
    assert settle(read_script_file(saved.file), Choices(watch=True)).watches
