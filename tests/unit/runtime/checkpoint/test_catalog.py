"""What the catalog refuses."""

import pytest

from plait.errors import CheckpointError
from plait.runtime.checkpoint.catalog import Catalog, refuse_other_streams


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
