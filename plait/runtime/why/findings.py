"""What is found out about a row, one after the other, the last one being the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Literal, TypeAlias

from plait.plan.explain.wording import duration

FindingKind: TypeAlias = Literal[
    "not arrived",
    "not read yet",
    "bad row",
    "late",
    "selection false",
    "null key",
    "no partner",
    "partner not read",
    "partner late",
    "partner not selected",
    "outside window",
    "has partner",
    "where false",
    "waits",
    "met",
    "certain",
    "came",
    "before the query",
    "window open",
    "window over",
    "set aside",
    "not delivered",
]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing found. `relation`: the alias it is about; `facts`: the numbers in the text, for programs."""

    kind: FindingKind
    text: str
    relation: str | None = None
    facts: tuple[tuple[str, int | str | None], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {"kind": self.kind, "relation": self.relation, "text": self.text, **dict(self.facts)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What was found about a row of `query`: of relation `alias` that satisfies `row`. `notes`: what may
    have been otherwise, because it cannot be seen any more.
    """

    query: str
    alias: str
    row: str
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    @property
    def answer(self) -> Finding:
        """Why there is no result of it, or since when there is one."""
        return self.findings[-1]

    def as_json(self) -> Mapping[str, Any]:
        """Return it as one JSON object."""
        found = [finding.as_json() for finding in self.findings]
        told = {"query": self.query, "relation": self.alias, "row": self.row, "answer": found[-1], "findings": found}
        return told | ({"notes": list(self.notes)} if self.notes else {})

    def as_text(self) -> str:
        """Return it for people: what was found, a line each."""
        return text_of(self.as_json())


def text_of(told: Mapping[str, Any]) -> str:
    """Return for people what a trace says as plain values: what was found, a line each."""
    lines = [f"query {told['query']}, row {told['row']}", *(f"  {each['text']}" for each in told["findings"])]
    lines += [f"  but {note}" for note in told.get("notes", ())]
    return "\n".join(lines) + "\n"


def moment(us: int) -> str:
    """Return an event time as people write it.

    >>> moment(1_767_261_600_000_000), moment(1_500)
    ('2026-01-01 10:00:00', '1970-01-01 00:00:00.001500')
    """
    try:
        return (_EPOCH + timedelta(microseconds=us)).replace(tzinfo=None).isoformat(" ")
    except OverflowError:
        return f"{us} us"


def length(us: int) -> str:
    """Return a length of time in words."""
    return duration(us)


__all__ = ["Finding", "FindingKind", "Trace", "length", "moment", "text_of"]
