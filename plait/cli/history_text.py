"""`plait explain --history`: which plan was in force when, why, and what it brought."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from plait.cli.output.figures import filled_share
from plait.spelling import plural

if TYPE_CHECKING:
    from plait.runtime.checkpoint.plan_history import Entry


def history_json(entries: Sequence[Entry]) -> str:
    """Return the epochs as one JSON object."""
    return json.dumps({"epochs": [entry.as_json() for entry in entries]}, indent=2) + "\n"


def history_text(entries: Sequence[Entry]) -> str:
    """Return the epochs, oldest first, each with why it began and what it brought; probe orders where they changed."""
    if not entries:
        return "No plan has been noted in this checkpoint yet: it is as old as the first run of this version.\n"
    lines, before = [f"{plural(len(entries), 'epoch')}, oldest first"], frozenset[str]()
    for entry in entries:
        lines += ["", *_lines(entry, before)]
        before = frozenset(entry.orders)
    return "\n".join(lines) + "\n"


def _lines(entry: Entry, before: frozenset[str]) -> Iterator[str]:
    since = datetime.fromtimestamp(entry.clock_ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    yield f"epoch {entry.epoch} from batch {entry.batch}, {since}, strategy {entry.strategy}: {_why(entry.change)}"
    if entry.change is not None:
        yield f"  {_forecast(entry.change)}"
        yield from (f"  {text}" for text in entry.change["changes"])
    yield from (f"  {_filling(store, entry.left)}" for store in entry.filling)
    if entry.outcome is not None:
        yield f"  {_brought(entry.outcome)}"
    yield from (f"  order {order}" for order in entry.orders if order not in before)


def _why(change: dict[str, Any] | None) -> str:
    if change is None:
        return "a run began"
    words = {
        "cheaper": "forecast to be cheaper",
        "turned out worse": "back to the plan before, as the change turned out worse",
        "storage budget": "the storage budget was broken",
        "indexed": "indexes that it waited for are built",
        "filled": "intermediate stores that it waited for are filled",
    }
    restart = ", by a restart of Spark's query" if change.get("restart") else ""
    return words.get(change["reason"], str(change["reason"])) + restart


def _filling(store: str, left: dict[str, list[int]] | None) -> str:
    """Say of a store that it comes, and how far it is if that is known."""
    text = f"{store} is filled first; until then queries are answered as before"
    if left is None or store not in left:
        return text
    rows = left[store]
    return f"{text}: {filled_share(*rows):.0%} of {plural(rows[1], 'row')} taken so far"


def _forecast(change: dict[str, Any]) -> str:
    if change["reason"] in ("indexed", "filled"):
        return "as the change before it has said"
    if change.get("indexing"):
        sorted_first = f"{plural(change['indexing'], 'row')} are sorted by other keys first"
        return f"{_forecast({**change, 'indexing': 0})}; {sorted_first}"
    if change["gain"] is None:
        return "what it costs is unknown"
    text = f"forecast {change['cost_before']:,.0f} → {change['cost_after']:,.0f} a second ({_saves(change['gain'])})"
    if change["horizon_s"] is not None:
        text += f"; the change costs {change['change_cost']:,.0f}, to be earned in {change['horizon_s']:,.0f} s"
    if change.get("delay_s"):
        text += f", and saves nothing for about {change['delay_s']:,.0f} s"
    return text


def _brought(outcome: dict[str, Any]) -> str:
    text = f"measured {outcome['measured']:,.0f} a second where {outcome['forecast']:,.0f} was forecast"
    if outcome["before"] is not None and outcome["gain"] is not None:
        text += f"; the plan before would cost {outcome['before']:,.0f} ({_saves(outcome['gain'])})"
    return text + ("; taken back" if outcome["taken_back"] else "")


def _saves(gain: float) -> str:
    return f"saves {gain:.0%}" if gain >= 0 else f"costs {-gain:.0%} more"


__all__ = ["history_json", "history_text"]
