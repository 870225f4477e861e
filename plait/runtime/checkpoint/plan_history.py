"""Which plan was in force when, why, and what it brought: kept in the checkpoint for people, read by nobody else.

An epoch is noted before its first batch: one that a kill keeps from its first batch is followed by another. Queries
come and go one by one, so of the probe orders a file has those that an epoch has more than the one before, and those
that it has no longer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from plait.adapt.decision import Change, Outcome
from plait.errors import CheckpointError, OptionError
from plait.plan.coming import settled_id
from plait.plan.model import Plan
from plait.plan.traversals import endings
from plait.runtime.checkpoint.catalog import read_catalog
from plait.runtime.checkpoint.epoch import Epoch
from plait.state.fillings import left_rows
from plait.state.manifest import ManifestLog
from plait.state.model import Manifest
from plait.state.place import state_of
from plait.state.storage import Storage
from plait.version import __version__

FILE: Final = "plan-history.json"
MOST_ENTRIES: Final = 500
"""So many epochs are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An epoch: the first `batch` it governs, when by the clock, and its probe orders, as ``query: r s t``. `change` is
    that of the plan before, None where a run began with it; `outcome` what it was found to have brought: both as plain
    values. `filling`: the intermediate stores that were to be filled first, and `left` of how many rows how many are
    still to be taken, by store, as long as that goes on.
    """

    epoch: int
    plan: str
    strategy: str
    batch: int
    clock_ms: int
    orders: tuple[str, ...]
    change: dict[str, Any] | None = None
    outcome: dict[str, Any] | None = None
    filling: tuple[str, ...] = ()
    left: dict[str, list[int]] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "epoch": self.epoch,
            "plan": self.plan,
            "strategy": self.strategy,
            "batch": self.batch,
            "clock_ms": self.clock_ms,
            "orders": list(self.orders),
            "change": self.change,
            "outcome": self.outcome,
            "filling": list(self.filling),
            "left": self.left,
        }


def entry_of(epoch: Epoch, batch: int, clock_ms: int, change: Change | None) -> Entry:
    """Return what is noted of an epoch that begins with this batch."""
    return Entry(
        epoch=epoch.number,
        plan=epoch.plan_id,
        strategy=epoch.plan.strategy,
        batch=batch,
        clock_ms=clock_ms,
        orders=order_texts(epoch.plan),
        change=None if change is None else change.as_json(),
        filling=() if epoch.way is None else tuple(sorted(epoch.way.lacking)),
    )


def order_texts(plan: Plan) -> tuple[str, ...]:
    """Return the probe orders of a plan, by query."""
    return tuple(sorted(f"{output.query}: {' '.join(output.aliases)}" for _, _, output in endings(plan)))


def read_history(storage: Storage) -> tuple[Entry, ...]:
    """Return the epochs, oldest first. Raises CheckpointError if what is there cannot be read."""
    try:
        entries, orders = [], set[str]()
        for noted in _read(storage):
            _go_on(orders, noted)
            known = {name: value for name, value in noted.items() if name not in ("more", "less")}
            filling = tuple(noted.get("filling", ()))
            entries.append(Entry(**{**known, "orders": tuple(sorted(orders)), "filling": filling}))
        return tuple(entries)
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"'{storage.name(FILE)}' is not a history of plans that this version reads ({error}); delete it to begin "
            "another, nothing else depends on it"
        ) from error


def _read(storage: Storage) -> list[dict[str, Any]]:
    """Return the epochs as they are noted."""
    if not storage.exists(FILE):
        return []
    epochs = json.loads(storage.read_bytes(FILE))["epochs"]
    if not isinstance(epochs, list):
        raise TypeError(f"expected a list of epochs, found {type(epochs).__name__}")
    return epochs


def _go_on(orders: set[str], noted: Mapping[str, Any]) -> None:
    """Make the probe orders of an epoch of those of the one noted before it."""
    if "orders" in noted:
        orders.clear()
        orders.update(noted["orders"])
    else:
        orders.difference_update(noted["less"])
        orders.update(noted["more"])


def history_of(checkpoint: str) -> tuple[Entry, ...]:
    """Return the epochs of a checkpoint. Raises OptionError if it is none."""
    storage = state_of(checkpoint)
    if read_catalog(storage, __version__) is None:
        raise OptionError(f"there is no Plait checkpoint at '{checkpoint}'; name the one that a run was given")
    entries = read_history(storage)
    return (*entries[:-1], _with_what_is_left(entries[-1], ManifestLog(storage).latest())) if entries else ()


def _with_what_is_left(entry: Entry, manifest: Manifest | None) -> Entry:
    """Return the last epoch with how far the stores are that it fills."""
    if manifest is None or not entry.filling:
        return entry
    left = left_rows(manifest.fillings, manifest.buckets)
    known = {settled_id(each.store): [left[each.store], each.rows] for each in manifest.fillings}
    return replace(entry, left={store: known[store] for store in entry.filling if store in known})


def note_epoch(storage: Storage, entry: Entry) -> None:
    """Add an epoch; of others that were to begin with the same batch none has come to anything."""
    noted = [other for other in _known(storage) if other["batch"] < entry.batch]
    added = entry.as_json()
    if noted:
        before, orders = _orders_of_last(noted), set(added.pop("orders"))
        added |= {"more": sorted(orders - before), "less": sorted(before - orders)}
    _write(storage, [*noted, added])


def note_outcome(storage: Storage, epoch: int, outcome: Outcome) -> None:
    """Add what an epoch has brought."""
    brought = {"outcome": outcome.as_json()}
    _write(storage, [noted | brought if noted["epoch"] == epoch else noted for noted in _known(storage)])


def _known(storage: Storage) -> list[dict[str, Any]]:
    """Return the epochs as noted so far; none if they cannot be read, for which no run should end."""
    try:
        noted = _read(storage)
        _orders_of_last(noted)
        return noted if all({"batch", "epoch"} <= each.keys() for each in noted) else []
    except (ValueError, KeyError, TypeError):
        return []


def _orders_of_last(noted: Iterable[Mapping[str, Any]]) -> set[str]:
    orders = set[str]()
    for each in noted:
        _go_on(orders, each)
    return orders


def _write(storage: Storage, noted: list[dict[str, Any]]) -> None:
    kept = noted[-MOST_ENTRIES:]
    if len(kept) < len(noted):
        orders = _orders_of_last(noted[: len(noted) - len(kept) + 1])
        whole = {name: value for name, value in kept[0].items() if name not in ("more", "less")}
        kept = [whole | {"orders": sorted(orders)}, *kept[1:]]
    lines = ",\n".join(json.dumps(each) for each in kept)
    storage.write_file(FILE, f'{{"epochs": [\n{lines}\n]}}\n'.encode())


__all__ = [
    "FILE",
    "MOST_ENTRIES",
    "Entry",
    "entry_of",
    "history_of",
    "note_epoch",
    "note_outcome",
    "order_texts",
    "read_history",
]
