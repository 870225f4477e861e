"""What a run tells its user beside results and counts: all of it goes one way, whatever finds it.

A notice is either found when a run starts (`AT_START`: how it goes on from what the checkpoint has), in the script, or
while it goes on (what is probably not meant). The engine gathers all; each is in the next batch's event, in the summary
and in the status, under ``warnings``. Those of a start can also be asked for before a batch has come, which may take
long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

StartKind: TypeAlias = Literal[
    "stream read again",
    "rows not needed",
    "stream renamed",
    "results undelivered",
    "results taken",
    "query not filled",
    "query to be filled",
    "rows lacking",
    "windows waiting",
    "windows incomplete",
    "windows begun anew",
]
NoticeKind: TypeAlias = (
    StartKind
    | Literal[
        "no window",
        "query set aside",
        "event times",
        "table changed",
        "table read in part",
        "output changed",
        "files not read",
        "hidden files",
    ]
)

AT_START: Final[frozenset[NoticeKind]] = frozenset(get_args(StartKind))
"""Told once in a run, however often it starts anew: the counts in them change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something the user should know. `of`: the stream, table or query it is about."""

    kind: NoticeKind
    of: str
    text: str

    @property
    def is_of_start(self) -> bool:
        """Whether it says how a run goes on from what there was."""
        return self.kind in AT_START

    def as_json(self) -> dict[str, str]:
        """Return the notice as a JSON object."""
        return {"kind": self.kind, "of": self.of, "text": self.text}


__all__ = ["AT_START", "Notice", "NoticeKind", "StartKind"]
