"""Queries that come together with those whose groups they read: previewed, and saved in a script that is watched."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import plait
from plait.cli.script import read_script_file
from plait.cli.watching import Watch
from plait.errors import OptionError, SqlError
from plait.runtime.previewing import Wanted
from tests.property.derived import Made, Place, random_place
from tests.property.standin import frames
from tests.property.test_derived_changes import FIVES, MANY, TENS, counted

MORE = Made(name="more", text="SELECT until, k, n FROM tens WHERE n > 1", oracle="", kind="selected", needs=("tens",))
OTHER = counted("fives", "b", "ts", 5)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with pytest.MonkeyPatch.context() as patch:
        frames.install(patch.setattr)
        made = random_place(tmp_path, 5)
        made.queries = (FIVES,)
        made.arrive()
        yield made


def wanted(query: Made) -> Wanted:
    return Wanted(name=query.name, select=query.text, sink=plait.sinks.noop())


def test_a_query_is_previewed_together_with_those_that_are_to_read_its_groups(place: Place) -> None:
    engine = place.engine()
    told = engine.preview([wanted(TENS), wanted(MORE)])
    assert sorted(told["added"]) == ["more", "tens"]
    assert told["after"] is not None
    assert sorted(engine.queries()) == ["fives"]
    assert "tens" not in engine.sources()
    with pytest.raises(SqlError, match="tens"):
        engine.preview([wanted(MORE), wanted(TENS)])


def test_a_preview_refuses_to_replace_what_others_read_unless_they_are_dropped(place: Place) -> None:
    place.queries = (FIVES, TENS)
    engine = place.engine()
    with pytest.raises(OptionError, match="query 'fives' is read by query 'tens'"):
        engine.preview([wanted(OTHER)])
    many = Made(name="many", text=MANY, oracle="", kind="selected", needs=("fives",))
    assert sorted(engine.preview([wanted(OTHER), wanted(many)], ["tens"])["added"]) == ["fives", "many"]
    assert sorted(engine.queries()) == ["fives", "tens"]


def test_no_query_takes_the_place_of_the_one_whose_groups_it_reads(place: Place) -> None:
    engine = place.engine()
    own = counted("fives", "fives", "until", 10)
    with pytest.raises(OptionError, match="query 'fives' would read its own groups"):
        engine.replace("fives", own.text, sink=plait.sinks.noop())
    assert engine.queries()["fives"].text == FIVES.text


def test_a_script_is_saved_with_a_query_and_those_that_read_its_groups(place: Place) -> None:
    file, said = place.folder / "a.sql", list[str]()
    file.write_text(place.script())
    engine, script = place.engine(), read_script_file(file)
    watch = Watch(engine, script, script.load(), lambda text, _: text.load(), said.append)

    def save(*queries: Made) -> None:
        place.queries = queries
        file.write_text(place.script())
        seconds = file.stat().st_mtime + 1 + len(said)
        os.utime(file, (seconds, seconds))
        watch.look()

    save(FIVES, TENS, MORE)
    assert sorted(engine.queries()) == ["fives", "more", "tens"]
    assert said[0].endswith("was saved: 2 queries added or replaced, 0 dropped")
    before = engine.queries()
    save(OTHER, TENS, MORE)
    assert "is not applied" in said[1]
    assert "query 'fives' is read by query 'tens'" in said[1]
    assert engine.queries() == before
    save(OTHER)
    assert sorted(engine.queries()) == ["fives"]
    assert engine.queries()["fives"] != before["fives"]
