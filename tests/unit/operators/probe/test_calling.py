"""A note lies there for as long as a registered predicate is called."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from plait.operators.probe.calling import FOLDER, forget_calls, left_behind, noted
from plait.state.storage import Storage

ROWS = pa.array([True, False])


class Ended(BaseException):
    """Ends the process, as far as a note is concerned."""


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage.open(str(tmp_path / "state"))


def test_a_call_that_returns_leaves_nothing_behind(storage: Storage) -> None:
    seen = list[tuple[str, ...]]()

    def looks(rows: pa.Array) -> pa.Array:
        seen.append(left_behind(storage))
        return rows

    assert noted({"looks": looks}, storage)["looks"](ROWS) is ROWS
    assert (seen, left_behind(storage)) == ([("looks",)], ())


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_a_call_that_raises_leaves_nothing_behind(storage: Storage, error: type[BaseException]) -> None:
    def fails(rows: pa.Array) -> pa.Array:
        raise error

    with pytest.raises(error):
        noted({"fails": fails}, storage)["fails"](ROWS)
    assert left_behind(storage) == ()


def test_a_call_that_ends_its_process_leaves_its_name_until_it_is_forgotten(storage: Storage) -> None:
    def ends(rows: pa.Array) -> pa.Array:
        raise Ended

    for name in ("a/b.c", "other"):
        with pytest.raises(Ended):
            noted({name: ends}, storage)[name](ROWS)
    assert left_behind(storage) == ("a/b.c", "other")
    assert {note.suffix for note in Path(storage.uri, FOLDER).iterdir()} == {f".{os.getpid()}"}
    forget_calls(storage)
    assert left_behind(storage) == ()


def test_where_no_note_can_lie_the_function_is_called_all_the_same(storage: Storage, tmp_path: Path) -> None:
    remote, predicates = Storage.open("memory://checkpoint"), {"same": lambda rows: rows}
    assert noted(predicates, remote) is predicates
    assert left_behind(remote) == ()
    Path(storage.uri).mkdir(exist_ok=True)
    Path(storage.uri, FOLDER).write_text("in the way")
    assert noted(predicates, storage)["same"](ROWS) is ROWS
    assert left_behind(storage) == ()
