"""Say what bounds a batch: Plait, an option of the user's, or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from plait.adapt.admission import Basis, Share, Unit, Waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What bounds the rows that a batch takes of one stream. `rows`: about how many, None if that is not known.

    `option` is the user's own, with `by` ``user``; `value` and `unit` are what Plait told the reader.
    """

    source: str
    by: Literal["plait", "user", "nobody"]
    rows: float | None = None
    option: str | None = None
    value: int | None = None
    unit: Unit | None = None
    basis: Basis | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as one JSON object."""
        return {
            "stream": self.source,
            "by": self.by,
            "rows": None if self.rows is None else round(self.rows),
            "option": self.option,
            "value": self.value,
            "unit": self.unit,
            "basis": self.basis,
        }

    @property
    def text(self) -> str:
        """The bound in words."""
        about = "" if self.rows is None else f" about {self.rows:,.0f}"
        match self.by:
            case "plait":
                guess = ", at a guess" if self.basis == "assumed" else ""
                return f"{self.source}{about} ({self.value:,} {self.unit}{guess})"
            case "user":
                return f"{self.source}{about} ({self.option})"
            case "nobody":
                return f"{self.source} whatever there is (its reader cannot be bounded)"


def bounds_of(waiting: Sequence[Waiting], shares: Iterable[Share]) -> tuple[Bound, ...]:
    """Return what bounds each of the streams."""
    settled = {share.source: share for share in shares}
    return tuple(_bound(stream, settled.get(stream.source)) for stream in waiting)


def _bound(stream: Waiting, share: Share | None) -> Bound:
    if stream.own is not None:
        return Bound(source=stream.source, by="user", rows=stream.own_rows, option=stream.own)
    if share is None:
        return Bound(source=stream.source, by="nobody")
    return Bound(
        source=stream.source,
        by="plait",
        rows=share.rows,
        value=share.value,
        unit=share.unit,
        basis=share.basis,
    )


def bounds_text(batch_rows: int | None, bounds: Sequence[Bound]) -> str:
    """Return what bounds a batch, in a sentence."""
    if batch_rows is None:
        return "A batch takes whatever there is (plait.batch_rows is off)"
    streams = "; ".join(bound.text for bound in bounds)
    return f"A batch takes about {batch_rows:,} rows at most (plait.batch_rows): of {streams}"


__all__ = ["Bound", "bounds_of", "bounds_text"]
