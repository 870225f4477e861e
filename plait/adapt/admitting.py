"""Watch what the shares of a batch come to, and say when they should be settled anew.

Shares are settled when Spark's query starts, from what waits then. They may turn out wrong: sizes were assumed, or a
stream sends much more than when there was a backlog to share with. Settling them anew takes a look at the
folders and a restart of Spark's query, about a second; so it is done if it saves more than that, or if batches
are much larger than they may be. They serve until the first backlog ends: from there on a stream that had hardly a
share, because its rows were all later, holds the others' watermark back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from plait.adapt.admission import Share, Waiting

_TOO_LARGE: Final = 2.0
"""A batch of so many times the rows it may have is too large."""
_TOO_SMALL: Final = 0.5
_LATER: Final = 1.5
"""Rows are estimates: a backlog that has not ended yet is looked at again after so many times as many."""
_IN_A_ROW: Final = 3
_SMALLER: Final = 1.5
_SAVED_BATCHES: Final = 5
"""A restart takes about as long as the fixed costs of so many batches."""


@dataclass(slots=True)
class Watch:
    """What the batches since the last look have come to. It looks again after twice as many if a look was in vain.
    `level_rows`: how many rows are taken until the first backlog ends, None if no other goes on from there.
    """

    batch_rows: int
    shares: tuple[Share, ...]
    level_rows: float | None = None
    _taken: int = 0
    _patience: int = _IN_A_ROW
    _held_back: int = 0
    _too_large: int = 0

    def batch_done(self, rows: Mapping[str, int]) -> bool:
        """Tell whether to look again, after a batch that took so many rows of each stream: it was much too large, or
        streams had to wait though there was room, several times in a row; or the first backlog has ended.
        """
        self._taken += sum(rows.get(share.source, 0) for share in self.shares)
        is_past = self.level_rows is not None and self._taken >= self.level_rows
        total = sum(rows.values())
        is_full = any(rows.get(share.source, 0) >= share.rows / 2 for share in self.shares)
        self._too_large = self._too_large + 1 if total > _TOO_LARGE * self.batch_rows else 0
        self._held_back = self._held_back + 1 if is_full and total < _TOO_SMALL * self.batch_rows else 0
        # One batch that is too large is a reason; but once looked at in vain, so are only more of them.
        enough = max(self._patience // _IN_A_ROW, 1)
        return bool(self.shares) and (is_past or self._too_large >= enough or self._held_back >= self._patience)

    def settled(self, waiting: Sequence[Waiting], then: tuple[Share, ...]) -> bool:
        """Take note of a look and what the shares would be; tell whether these are worth a restart."""
        is_worth = self._is_worth(waiting, then)
        self._held_back = self._too_large = 0
        if self.level_rows is not None and self._taken >= self.level_rows:
            self.level_rows = _LATER * max(self._taken, self.batch_rows)
            return is_worth
        self._patience = _IN_A_ROW if is_worth else 2 * self._patience
        return is_worth

    def _is_worth(self, waiting: Sequence[Waiting], then: tuple[Share, ...]) -> bool:
        now = {share.source: share for share in self.shares}
        if self._too_large:
            pairs = ((now[share.source], share) for share in then if share.source in now)
            return any(_steps(waiting, was) > _SMALLER * _steps(waiting, new) for was, new in pairs)
        return _batches(waiting, self.shares) - _batches(waiting, then) >= _SAVED_BATCHES


def _steps(waiting: Sequence[Waiting], share: Share) -> float:
    """Return how much a batch takes with this share, in its unit: no less than a file."""
    (stream,) = (stream for stream in waiting if stream.source == share.source)
    least = stream.bytes / stream.files if stream.files and share.unit == "bytes" else 1.0
    return max(share.value, least)


def _batches(waiting: Sequence[Waiting], shares: Sequence[Share]) -> float:
    """Return how many batches all that waits takes."""
    sizes = {stream.source: stream.bytes if stream.unit == "bytes" else stream.rows for stream in waiting}
    return max((sizes[share.source] / _steps(waiting, share) for share in shares), default=0.0)


__all__ = ["Watch"]
