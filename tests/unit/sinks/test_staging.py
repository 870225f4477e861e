"""Where staged files lie, on file systems of every kind, and that a missing one is noticed before the commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.errors import SinkError
from plait.sinks.staging import filesystem_of, publish, require_staged, stage


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
    filesystem, final = filesystem_of(staged.publication.final)
    with filesystem.open_input_stream(final) as stream:
        assert stream.read() == b"rows"


def test_a_staged_file_that_only_a_worker_sees_is_noticed(directory: str) -> None:
    publication = stage(directory, "1.parquet").publication
    with pytest.raises(SinkError, match="is not shared: what a task wrote there on its worker is not there"):
        require_staged([publication])


def test_an_unknown_kind_of_address_is_refused() -> None:
    with pytest.raises(SinkError, match=r"cannot write to 'nosuch://x/_staging/f': .*install fsspec"):
        stage("nosuch://x", "f")
