"""What the catalog refuses."""

import pytest

from plait.errors import CheckpointError
from plait.runtime.checkpoint.catalog import Catalog, KnownSource, refuse_names_of_sources, refuse_other_streams


@pytest.mark.parametrize("now", [("b", "a"), ("a", "b", "c"), ("b",), ()])
def test_streams_without_names_are_read_as_they_were_begun_because_offsets_are_by_place(now: tuple[str, ...]) -> None:
    before = Catalog(named=False, read=("a", "b"))
    with pytest.raises(CheckpointError, match="read 'a', 'b': expected the same in this order, found") as refused:
        refuse_other_streams(before, Catalog(named=False, read=now))
    assert "open_session()" in str(refused.value)
    refuse_other_streams(before, Catalog(named=False, read=("a", "b")))
    refuse_other_streams(Catalog(named=True, read=("a", "b")), Catalog(named=True, read=now))
    refuse_other_streams(None, Catalog(named=False, read=now))
    refuse_other_streams(Catalog(named=False), Catalog(named=False, read=now))  # of an earlier version


def test_groups_are_not_read_under_the_name_of_a_stream_of_before() -> None:
    before = Catalog(named=True, sources=(KnownSource(name="hours", time="ts", columns=()),))
    with pytest.raises(CheckpointError, match=r"query 'hours', whose groups.*Give the query another name"):
        refuse_names_of_sources(before, ["days", "hours"])
    refuse_names_of_sources(before, ["days"])
    refuse_names_of_sources(None, ["hours"])
