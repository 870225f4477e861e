"""Where others may write."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.sql.script.allowed_paths import path_problem, read_allowed_paths
from plait.sql.script.set_options import checked_option


def test_paths_are_seen_from_the_script_and_keep_their_case() -> None:
    name, value = checked_option("PLAIT.allow_paths", " Out , /data/x,s3://Bucket/a ")
    assert name == "plait.allow_paths"
    assert read_allowed_paths(value, "/scripts") == ("/scripts/Out", "/data/x", "s3://Bucket/a")


@pytest.mark.parametrize("path", ["{0}/out", "{0}/out/a/b", "{0}/new/../out/a", "s3://b/r/x", "S3://b/r"])
def test_what_lies_below_an_allowed_path_may_be_written(tmp_path: Path, path: str) -> None:
    assert path_problem(path.format(tmp_path), [f"{tmp_path}/out", "s3://b/r"]) is None


@pytest.mark.parametrize(
    "path",
    [
        "{0}",
        "{0}/outer",
        "{0}/out/../x",
        "{0}/link/x",
        "/",
        "s3://b/rest",
        "s3://b/r/../x",
        "s3://b/r//x",
        "s3://b",
        "s3a://b/r/x",
        "s3://b.evil/r/x",
        "file:{0}/out/x",
        "{0}/out/a:b",
    ],
)
def test_what_lies_elsewhere_may_not(tmp_path: Path, path: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to("/tmp")
    problem = path_problem(path.format(tmp_path), [f"{tmp_path}/out", "s3://b/r"])
    assert problem is not None
    assert "SET plait.allow_paths" in problem


def test_nothing_may_be_written_where_nothing_is_allowed(tmp_path: Path) -> None:
    assert path_problem(str(tmp_path), ()) is not None


@pytest.mark.parametrize(
    "path", ["/out/%2e%2e", "/out/a*", "/out/{a,b}", "/out/a\nb", "/out/a?b", "/out/a#b", "/out/a\\b"]
)
def test_signs_that_somebody_takes_for_something_else_are_refused(path: str) -> None:
    assert "characters" in (path_problem(path, ["/out"]) or "")
