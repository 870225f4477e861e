"""Which files of a stream's folder are not read, for reasons that are certain."""

from __future__ import annotations

import pytest

from plait.runtime.admission.stream_files import ListedFile
from plait.runtime.losses.skipped import skipped

DAY_MS = 86_400_000
NOW_MS = 1_767_225_600_000


def said(*files: tuple[str, int], read: tuple[str, ...] = ("new.csv",), **options: str) -> list[str]:
    """Return what is said of files changed so many days ago; those `read` were read as they are."""
    aged = (*files, ("new.csv", 0))
    listed = [ListedFile(name=name, changed_ms=NOW_MS - days * DAY_MS, bytes=9) for name, days in aged]
    known = {each.name: each.changed_ms for each in listed if each.name in read}
    return [notice.text for notice in skipped("s", listed, known, options)]


def test_a_file_more_than_a_week_older_than_the_newest_is_named() -> None:
    (text,) = said(("old.csv", 10), ("older.csv", 20))
    assert text == (
        "stream 's': 2 files, such as 'old.csv', not read, being older than the newest one by more than maxFileAge '7d'"
    )


def test_a_file_that_has_not_had_its_turn_is_not_named() -> None:
    assert said(("waiting.csv", 6)) == []
    assert said(("waiting.csv", 10), maxfileage="30d") == []
    assert said(("waiting.csv", 10), maxfileage="a while") == []


def test_an_old_file_that_was_read_in_its_time_is_not_named() -> None:
    assert said(("old.csv", 10), read=("new.csv", "old.csv")) == []


@pytest.mark.parametrize("name", ["_c.csv", ".c.csv"])
def test_names_that_count_as_hidden_are_named_but_markers_and_hidden_folders_are_not(name: str) -> None:
    (text,) = said((name, 0), ("_SUCCESS", 0), (".a.csv.crc", 0), ("_staging/0/part.csv", 0))
    assert f"1 file, such as '{name}', not read because names that begin with _ or . are hidden" in text


def test_sub_folders_are_named_unless_they_are_read() -> None:
    (text,) = said(("sub/a.csv", 0))
    assert text.endswith("OPTIONS (recursiveFileLookup 'true') reads them")
    assert said(("sub/a.csv", 0), recursivefilelookup="true") == []
    assert said(("day=1/a.csv", 0), read=("new.csv", "day=1/a.csv")) == []


def test_files_the_user_filters_out_are_not_named() -> None:
    assert said(("notes.txt", 10), pathglobfilter="*.csv") == []
    assert len(said(("old.csv", 10), pathglobfilter="*.csv")) == 1


def test_a_file_that_has_grown_since_it_was_read_is_named() -> None:
    grown = ListedFile(name="a.csv", changed_ms=NOW_MS + 5000, bytes=9)
    (notice,) = skipped("s", [grown], {"a.csv": NOW_MS}, {})
    assert "1 file, such as 'a.csv', changed after being read: Spark reads a file once" in notice.text
