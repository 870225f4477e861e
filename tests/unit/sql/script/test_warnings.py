"""A stream that is kept for ever because nobody gave it a window is told of; one that was meant to be is not."""

import pytest

from plait.sql import load_script

SOURCES = """CREATE STREAM a (k INT, ts TIMESTAMP) USING mine TIMESTAMP BY ts;
CREATE STREAM b (k INT, ts TIMESTAMP) USING mine TIMESTAMP BY ts WINDOW INTERVAL 1 HOUR;
CREATE STREAM c (k INT, ms BIGINT) USING mine TIMESTAMP BY timestamp_millis(ms) WINDOW UNBOUNDED;
CREATE TABLE t (k INT) USING csv OPTIONS (path 't.csv');
"""


def warned(select: str, windows: str = "") -> list[str]:
    script = f"{SOURCES}CREATE QUERY q INTO noop {windows} AS {select}"
    sources = script.replace("USING csv OPTIONS (path 't.csv')", "USING com.example.Source")
    return [str(warning) for warning in load_script(sources, file="s.sql").warnings]


def test_a_forgotten_window_is_told_with_its_place_and_what_to_write() -> None:
    (told,) = warned("SELECT 1 FROM a JOIN b ON a.k = b.k")
    assert told.startswith("s.sql:1:1: stream 'a' has no WINDOW and query 'q' joins it with streams")
    assert "WINDOW UNBOUNDED if that is meant" in told


def test_a_stream_is_told_of_once() -> None:
    assert len(warned("SELECT 1 FROM a x JOIN a y ON x.k = y.k")) == 1


@pytest.mark.parametrize(
    ("select", "windows"),
    [
        ("SELECT 1 FROM a", ""),
        ("SELECT 1 FROM a JOIN t ON a.k = t.k", ""),
        ("SELECT 1 FROM b JOIN c ON b.k = c.k", ""),
        ("SELECT 1 FROM a JOIN b ON a.k = b.k", "WINDOW (a INTERVAL 5 SECONDS)"),
        ("SELECT 1 FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 MINUTES", ""),
        (
            "SELECT 1 FROM a JOIN c ON timestamp_millis(c.ms) BETWEEN a.ts - INTERVAL 1 DAY AND a.ts + INTERVAL 1 DAY",
            "",
        ),
    ],
)
def test_what_is_bounded_or_not_kept_or_meant_is_not_told_of(select: str, windows: str) -> None:
    assert warned(select, windows) == []
