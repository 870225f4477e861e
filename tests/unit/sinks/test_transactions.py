"""What the broker's note says of a batch."""

from __future__ import annotations

import pytest

from plait.errors import SinkError
from plait.sinks.transactions import Note, is_there
from tests.kafka.sending import results


@pytest.mark.parametrize(
    ("last", "is_sent"),
    [
        (None, False),
        (Note(batch=3, mark="m3"), False),
        (Note(batch=4, mark="m4"), True),
        (Note(batch=5, mark="anything"), True),
    ],
)
def test_a_batch_is_there_if_the_note_has_come_to_it(last: Note | None, is_sent: bool) -> None:
    assert is_there(last, results(4, last=5), "t") == is_sent


@pytest.mark.parametrize("last", [Note(batch=6, mark="m6"), Note(batch=4, mark="n4")])
def test_a_topic_that_knows_more_than_the_checkpoint_is_refused(last: Note) -> None:
    with pytest.raises(SinkError, match="restored from a backup, or a copy"):
        is_there(last, results(4, last=5), "t")
