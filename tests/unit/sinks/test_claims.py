"""Whose results a directory holds, and what may be done to it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.fs as pafs
import pytest

from plait.errors import SinkError
from plait.query.model import SinkSpec
from plait.sinks import claims, staging
from plait.sinks.claims import MARKER, Claim, Owner, file_name, read_owners
from plait.sinks.kinds.json import Json

OURS, THEIRS = "a" * 32, "b" * 32


def claim(
    query: str = "q",
    checkpoint: str = OURS,
    *,
    adopts: bool = False,
    batch: int = -1,
    waiting: frozenset[int] = frozenset(),
) -> Claim:
    owner = Owner(checkpoint=checkpoint, place=f"/checkpoints/{checkpoint[:1]}", query=query)
    return Claim(owner=owner, adopts=adopts, batch=batch, waiting=waiting)


def spec(folder: Path, **options: str) -> SinkSpec:
    return SinkSpec(format="json", options=(("path", str(folder)), *options.items()))


def start(folder: Path, by: Claim, **options: str) -> None:
    """Do what a run does with a sink before its first batch."""
    place = Json().claimed(spec(folder, **options), by)
    place.refuse()
    place.take()
    place.recover()


def publish(folder: Path, query: str, batch: int, checkpoint: str = OURS, unique: str = "00000") -> Path:
    path = folder / f"{file_name(query, batch, unique, checkpoint[:8])}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    return path


def data(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and not path.name.startswith(("_", ".")))


def test_a_new_or_empty_folder_is_marked_and_the_same_query_goes_on(tmp_path: Path) -> None:
    start(tmp_path / "out", claim())
    kept = publish(tmp_path / "out", "q", 0)
    start(tmp_path / "out", claim(batch=0))
    assert read_owners(str(tmp_path / "out")) == (claim().owner,)
    assert data(tmp_path / "out") == [kept.name]


@pytest.mark.parametrize(
    ("by", "says"),
    [
        (claim(checkpoint=THEIRS), r"results of another checkpoint \(query 'q', /checkpoints/a\)"),
        (claim("renamed"), "holds results of query 'q' of this checkpoint"),
        (claim("renamed", THEIRS), "results of another checkpoint"),
    ],
)
def test_results_of_others_are_refused_before_anything_is_written(tmp_path: Path, by: Claim, says: str) -> None:
    start(tmp_path, claim())
    publish(tmp_path, "q", 0)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*")}
    with pytest.raises(SinkError, match=says) as raised:
        start(tmp_path, by)
    assert "existing 'append'" in str(raised.value)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*")} == before


def test_a_checkpoint_that_has_moved_goes_on_and_a_copy_of_one_that_is_there_is_refused(tmp_path: Path) -> None:
    out, was, now = tmp_path / "out", tmp_path / "was", tmp_path / "now"

    def lying_in(place: Path, batch: int) -> Claim:
        return Claim(owner=Owner(checkpoint=OURS, place=str(place), query="q"), batch=batch)

    was.mkdir()
    start(out, lying_in(was, -1))
    kept, undone = publish(out, "q", 0), publish(out, "q", 1)
    with pytest.raises(SinkError, match=f"holds results of this checkpoint as it lies in '{was}'"):
        start(out, lying_in(now, 0))
    assert data(out) == [kept.name, undone.name]
    was.rename(now)
    start(out, lying_in(now, 0))
    assert data(out) == [kept.name]


def test_files_without_a_marker_are_refused_except_where_an_earlier_version_wrote_them(tmp_path: Path) -> None:
    (tmp_path / "q-00000000-00000.json").write_text("{}")
    with pytest.raises(SinkError, match=r"holds files that are not its results \('q-00000000-00000.json'\)"):
        start(tmp_path, claim())
    start(tmp_path, claim(adopts=True, batch=0))
    assert data(tmp_path) == ["q-00000000-00000.json"]
    start(tmp_path, claim(batch=0))


@pytest.mark.parametrize("existing", [{}, {"existing": "append"}, {"existing": "overwrite"}])
def test_a_deleted_marker_is_written_again_by_the_checkpoint_whose_results_these_are(
    tmp_path: Path, existing: dict[str, str]
) -> None:
    start(tmp_path, claim(), **existing)
    kept = publish(tmp_path, "q", 0)
    in_partition = publish(tmp_path / "_a=1", "q", 0)
    undone = publish(tmp_path, "q", 1)
    (tmp_path / MARKER).unlink()
    for by in (claim(query="r"), claim(checkpoint=THEIRS)):
        with pytest.raises(SinkError, match=r"holds files that are not its results"):
            start(tmp_path, by)
    start(tmp_path, claim(batch=0), **existing)
    assert read_owners(str(tmp_path)) == (claim().owner,)
    assert data(tmp_path) == sorted((kept.name, in_partition.name))
    assert not undone.exists()


def test_a_deleted_marker_beside_results_of_others_too_leaves_the_folder_to_nobody(tmp_path: Path) -> None:
    publish(tmp_path, "q", 0)
    publish(tmp_path, "q", 0, THEIRS)
    with pytest.raises(SinkError, match=r"holds files that are not its results"):
        start(tmp_path, claim(batch=0))


def test_hidden_files_are_nobodys_results(tmp_path: Path) -> None:
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / ".part.crc").write_text("")
    start(tmp_path, claim())


def test_a_checkpoint_that_was_moved_does_not_empty_its_own_folder(tmp_path: Path) -> None:
    start(tmp_path, claim(), existing="overwrite")
    kept = publish(tmp_path, "q", 0)
    moved = Claim(owner=Owner(checkpoint=OURS, place="/elsewhere", query="q"), batch=0)
    start(tmp_path, moved, existing="overwrite")
    assert data(tmp_path) == [kept.name]


def test_append_keeps_what_is_there_and_goes_on_by_itself_later(tmp_path: Path) -> None:
    start(tmp_path, claim())
    old = publish(tmp_path, "q", 7)
    start(tmp_path, claim(checkpoint=THEIRS), existing="append")
    new = publish(tmp_path, "q", 7, THEIRS)
    start(tmp_path, claim(checkpoint=THEIRS, batch=7))
    start(tmp_path, claim(batch=7))
    assert data(tmp_path) == sorted([old.name, new.name])


def test_overwrite_empties_the_folder_once(tmp_path: Path) -> None:
    start(tmp_path, claim())
    publish(tmp_path / "region=EU", "q", 7)
    start(tmp_path, claim(checkpoint=THEIRS), existing="Overwrite")
    assert data(tmp_path) == []
    kept = publish(tmp_path, "q", 0, THEIRS)
    start(tmp_path, claim(checkpoint=THEIRS, batch=0), existing="overwrite")
    assert data(tmp_path) == [kept.name]


def test_a_run_that_died_while_it_emptied_or_marked_a_folder_starts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path, claim())
    publish(tmp_path, "q", 7)

    for dies_at in ("empty", "empty", "mark"):

        def reach(point: str, dies_at: str = dies_at) -> None:
            if point == dies_at:
                raise RuntimeError(point)

        monkeypatch.setattr(claims, "reach", reach)
        with pytest.raises(RuntimeError, match=dies_at):
            start(tmp_path, claim(checkpoint=THEIRS), existing="overwrite")
    monkeypatch.undo()
    start(tmp_path, claim(checkpoint=THEIRS), existing="overwrite")
    assert read_owners(str(tmp_path)) == (claim(checkpoint=THEIRS).owner,)


def test_results_that_a_restored_checkpoint_has_not_done_are_removed_and_no_others(tmp_path: Path) -> None:
    start(tmp_path, claim())
    start(tmp_path, claim(checkpoint=THEIRS), existing="append")
    start(tmp_path, claim("other"), existing="append")
    kept = [
        publish(tmp_path, "q", 5),
        publish(tmp_path, "q", 4, unique="0123456789ab"),
        publish(tmp_path, "q", 9, THEIRS),
        publish(tmp_path, "q-00000009", 3),
        publish(tmp_path / "k=1", "q", 0),
    ]
    for batch in (6, 7, 123_456_789):
        publish(tmp_path, "q", batch)
    publish(tmp_path, "q", 8, unique="0123456789ab")
    publish(tmp_path / "k=1", "q", 6)
    publish(tmp_path, "other", 6)
    publish(tmp_path, "q", 4)  # spooled: the restored checkpoint has yet to deliver it
    start(tmp_path, claim(batch=5, waiting=frozenset({4})))
    assert data(tmp_path) == sorted(path.name for path in kept)


def test_files_named_as_earlier_versions_did_are_ours_only_in_a_folder_of_ours_alone(tmp_path: Path) -> None:
    for folder in (tmp_path / "alone", tmp_path / "shared"):
        start(folder, claim())
        (folder / "q-00000009-00000.json").write_text("{}")
    start(tmp_path / "shared", claim(checkpoint=THEIRS), existing="append")
    for folder in (tmp_path / "alone", tmp_path / "shared"):
        start(folder, claim(batch=5))
    assert data(tmp_path / "alone") == []
    assert data(tmp_path / "shared") == ["q-00000009-00000.json"]


def test_what_others_have_staged_is_left_alone(tmp_path: Path) -> None:
    start(tmp_path, claim())
    for checkpoint in (OURS, THEIRS):
        staged = tmp_path / staging.STAGING / f"q-00000001-{checkpoint[:8]}"
        staged.mkdir(parents=True)
        (staged / "part-0.json").write_text("{}")
        (tmp_path / staging.STAGING / f"q-00000001-0123456789ab-{checkpoint[:8]}.parquet").write_text("")
    start(tmp_path, claim())
    left = sorted(path.name for path in (tmp_path / staging.STAGING).iterdir())
    assert left == [f"q-00000001-0123456789ab-{THEIRS[:8]}.parquet", f"q-00000001-{THEIRS[:8]}"]


def test_a_marker_that_cannot_be_read_is_not_taken_for_none(tmp_path: Path) -> None:
    for text in ("{", '{"format": 2, "owners": []}', '{"format": 1}'):
        (tmp_path / MARKER).write_text(text)
        with pytest.raises(SinkError, match=r"cannot be read: .*delete it together with the results"):
            start(tmp_path, claim())


def test_a_remote_folder_is_marked_and_cleared_as_a_local_one_is() -> None:
    folder = "memory://bucket/claims"
    remote = SinkSpec(format="json", options=(("path", folder),))
    filesystem, root = staging.locate(folder)
    for by in (claim(), claim(batch=0)):
        place = Json().claimed(remote, by)
        place.refuse()
        place.take()
        for batch in (0, 1):
            name = f"{root}/k=a%2Fb/{file_name('q', batch, '00000', OURS[:8])}.json"
            filesystem.create_dir(f"{root}/k=a%2Fb")
            with filesystem.open_output_stream(name) as stream:
                stream.write(b"{}")
        place.recover()
    with pytest.raises(SinkError, match="another checkpoint"):
        Json().claimed(remote, claim(checkpoint=THEIRS)).refuse()
    left = [
        info.base_name for info in filesystem.get_file_info(pafs.FileSelector(root, recursive=True)) if info.is_file
    ]
    assert sorted(left) == [MARKER, f"{file_name('q', 0, '00000', OURS[:8])}.json"]


def test_dead_letters_of_later_batches_are_removed_by_the_checkpoint_that_wrote_them(tmp_path: Path) -> None:
    for stream, batch, checkpoint in (("s", 4, OURS), ("s", 5, OURS), ("s", 6, THEIRS), ("t", 6, OURS)):
        publish(tmp_path, stream, batch, checkpoint, unique="0123456789ab")
    claims.remove_later(str(tmp_path), "s", OURS[:8], 4)
    assert sorted(name[:10] for name in data(tmp_path)) == ["s-00000004", "s-00000006", "t-00000006"]
