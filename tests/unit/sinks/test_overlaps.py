"""What is written wants a place of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.sinks.overlaps import Place, Role, overlap


def place(role: Role, path: object, owner: str = "query 'q'") -> Place:
    return Place(owner=owner, role=role, path=str(path))


@pytest.mark.parametrize(
    ("sink", "source"),
    [
        ("in", "in"),
        ("in/out", "in"),
        ("out", "out/in"),
        ("in/../in", "in"),
        ("in/./", "in/"),
        ("link", "in"),
        ("link/out", "in"),
        ("file:{base}/in", "in"),
        ("file://{base}/a%20b", "a b"),
        ("in", "in/*.csv"),
        ("in/out", "*"),
        ("in/out/deep", "in/*"),
        ("in/b", "in/{a,b}"),
        ("in/b", "{in,out}/[a-c]"),
        ("in/b", "in/[^a]"),
    ],
)
def test_a_sink_in_what_is_read_or_around_it_is_refused(tmp_path: Path, sink: str, source: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "link").symlink_to("in")
    sink_path = sink.replace("{base}", str(tmp_path)) if "{base}" in sink else str(tmp_path / sink)
    reads = place("source", tmp_path / source, "stream 's'")
    assert "which stream 's' reads; give each" in str(overlap(place("sink", sink_path), [reads])).replace(
        "what", "which"
    )
    assert "query 'q' writes to; give each" in str(overlap(reads, [place("sink", sink_path)]))


@pytest.mark.parametrize(
    ("sink", "source"),
    [
        ("out", "in"),
        ("in2", "in"),
        ("in", "in2"),
        ("in/out", "in/*.csv"),
        ("out", "in/*"),
        ("in/c", "in/{a,b}"),
        ("in/a", "in/[^a]"),
        ("s3://bucket/in", "in"),
    ],
)
def test_a_sink_beside_what_is_read_is_fine(tmp_path: Path, sink: str, source: str) -> None:
    sink_path = sink if "://" in sink else str(tmp_path / sink)
    assert overlap(place("sink", sink_path), [place("source", tmp_path / source)]) is None


def test_addresses_of_one_store_are_compared_whatever_hadoop_calls_it() -> None:
    assert overlap(place("sink", "s3a://bucket/x/y"), [place("source", "s3://bucket/x/")]) is not None
    assert overlap(place("sink", "s3a://other/x/y"), [place("source", "s3://bucket/x")]) is None


@pytest.mark.parametrize(
    ("one", "other", "is_refused"),
    [
        ("sink", "sink", True),
        ("sink", "dead letters", True),
        ("sink", "checkpoint", True),
        ("dead letters", "source", True),
        ("dead letters", "checkpoint", True),
        ("dead letters", "dead letters", False),
        ("source", "source", False),
        ("source", "checkpoint", False),
        ("cleaned source", "source", True),
        ("cleaned source", "cleaned source", True),
        ("cleaned source", "checkpoint", False),
        ("cleaned source", "sink", True),
        ("archive", "source", True),
        ("archive", "dead letters", True),
        ("archive", "checkpoint", True),
        ("archive", "archive", False),
    ],
)
def test_what_is_written_must_not_share_a_directory(one: Role, other: Role, is_refused: bool) -> None:
    for first, second in (("/a", "/a"), ("/a", "/a/b"), ("/a/b", "/a")):
        assert (overlap(place(one, first), [place(other, second)]) is not None) == is_refused
        assert (overlap(place(other, first), [place(one, second)]) is not None) == is_refused


def test_the_message_says_which_holds_which() -> None:
    other = place("sink", "/out", "query 'a'")
    assert overlap(place("sink", "/out"), [other]) == (
        "'/out' is what query 'a' writes to; give each a directory of its own"
    )
    assert overlap(place("dead letters", "/out/x"), [other]) == (
        "'/out/x' lies inside '/out', which query 'a' writes to; give each a directory of its own"
    )
    assert overlap(place("sink", "/"), [place("checkpoint", "/c", "the checkpoint")]) == (
        "'/' holds '/c', where the checkpoint is; give each a directory of its own"
    )
