"""What the broker's note says of a batch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.errors import SinkError
from plait.sinks.kind import Note
from plait.sinks.transactions import is_there
from tests.kafka.sending import results


@pytest.mark.parametrize(
    ("last", "is_sent"),
    [
        (None, False),
        (Note(batch=3, mark="m3"), False),
        (Note(batch=4, mark="m4"), True),
        (Note(batch=5, mark="m5"), True),
    ],
)
def test_a_batch_is_there_if_the_note_has_come_to_it(last: Note | None, is_sent: bool) -> None:
    assert is_there(last, replace(results(4, last=5), marks={4: "m4", 5: "m5"}), "t") == is_sent


@pytest.mark.parametrize("last", [Note(batch=6, mark="m6"), Note(batch=5, mark="n5"), Note(batch=4, mark="n4")])
@pytest.mark.parametrize("come_to", [5, 6, 9])
def test_a_topic_that_knows_more_than_the_checkpoint_is_refused_however_far_that_comes(
    last: Note, come_to: int
) -> None:
    with pytest.raises(SinkError, match="restored from a backup, or a copy"):
        is_there(last, replace(results(4, last=come_to), marks={4: "m4", 5: "m5"}), "t")
