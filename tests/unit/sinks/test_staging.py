"""Where staged files lie, on file systems of every kind, and that a missing one is noticed before the commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.errors import SinkError
from plait.sinks.staging import Publication, locate, publish, require_staged, stage


@pytest.fixture(params=["path", "file uri", "arrow file system", "fsspec"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    match request.param:
        case "path":
            return str(tmp_path / "o u t")
        case "file uri":
            return (tmp_path / "o u t").as_uri()
        case "arrow file system":
            return f"mock:///{tmp_path.name}/out"
        case _:
            pytest.importorskip("fsspec")
            return f"memory://{tmp_path.name}/out"


def test_a_staged_file_is_seen_before_and_after_it_is_published(directory: str) -> None:
    staged = stage(directory, "a%20b-1.parquet")
    with staged.filesystem.open_output_stream(staged.path) as stream:
        stream.write(b"rows")
    require_staged([staged.publication])
    publish([staged.publication, staged.publication])
    filesystem, final = locate(staged.publication.final)
    with filesystem.open_input_stream(final) as stream:
        assert stream.read() == b"rows"


def test_a_staged_file_that_only_a_worker_sees_is_noticed(directory: str) -> None:
    publication = stage(directory, "1.parquet").publication
    with pytest.raises(SinkError, match="is not shared: what a task wrote there on its worker is not there"):
        require_staged([publication])


def test_an_unknown_kind_of_address_is_refused() -> None:
    with pytest.raises(SinkError, match=r"cannot write to 'nosuch://x/_staging/f': .*install fsspec"):
        stage("nosuch://x", "f")


def test_a_file_that_cannot_be_published_keeps_no_other_back_and_is_published_later(tmp_path: Path) -> None:
    names = {"a": "batch/part-0", "b": "0.json", "c": "1.json"}
    publications = []
    for folder, name in names.items():
        staged = tmp_path / folder / "_staging" / name
        staged.parent.mkdir(parents=True)
        staged.write_text(folder)
        publications.append(Publication(staged=str(staged), final=str(tmp_path / folder / "out.json")))
    in_the_way = [tmp_path / folder / "out.json" / "something" for folder in "ac"]
    for path in in_the_way:
        path.mkdir(parents=True)
    failed = publish(publications)
    assert [each.publication for each in failed] == [publications[0], publications[2]]
    assert failed[0].reason.startswith(f"cannot publish '{tmp_path}/a/out.json': ")
    assert [failed[0].is_in(each) for each in (str(tmp_path / "a"), str(tmp_path / "b"), None)] == [True, False, False]
    assert (tmp_path / "b" / "out.json").read_text() == "b"
    for path in in_the_way:
        path.rmdir()
        path.parent.rmdir()
    assert publish(publications) == ()
    assert [(tmp_path / folder / "out.json").read_text() for folder in names] == ["a", "b", "c"]
    assert not (tmp_path / "a" / "_staging" / "batch").exists()


def test_a_file_that_is_nowhere_to_be_seen_is_not_published_unless_an_earlier_run_may_have_done_it(
    tmp_path: Path,
) -> None:
    staged = stage(str(tmp_path / "mounted"), "1.parquet")
    with staged.filesystem.open_output_stream(staged.path) as stream:
        stream.write(b"rows")
    (tmp_path / "mounted").rename(tmp_path / "unmounted")
    assert publish([staged.publication], may_be_out=True) == ()
    (failed,) = publish([staged.publication])
    assert failed.publication == staged.publication
    assert "it is not there, and " in failed.reason
    assert "is not mounted, mount it" in failed.reason
    (tmp_path / "unmounted").rename(tmp_path / "mounted")
    assert publish([staged.publication]) == publish([staged.publication]) == ()
    assert (tmp_path / "mounted" / "1.parquet").read_bytes() == b"rows"
