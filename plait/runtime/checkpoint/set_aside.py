"""Which queries are set aside: what they compute fails for some row, and all others go on without them.

A query stays aside over restarts, until another has its name or somebody asks for it again. What it had found stays,
and what it has kept waits, as of a query that is left out of a run. `plait.runtime.setting_aside` acts by what is noted
here; a file that cannot be read ends no run: the query is tried once more then, and fails as before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Final

from plait.runtime.outputs.binding import Binding
from plait.runtime.outputs.shape import encoded_sink
from plait.state.storage import Storage

FILE: Final = "set-aside.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """A query that is set aside, by its `definition`, and why. `batch`: the first that goes without it."""

    query: str
    definition: str
    reason: str
    batch: int

    @property
    def text(self) -> str:
        """What the user is told."""
        return (
            f"query '{self.query}' is set aside from batch {self.batch} on: {self.reason}. What it has found stays, "
            f"and all others go on. Mend it, and give it its name again; or have it tried once more as it is, with "
            f"--retry {self.query} (in Python engine.retry('{self.query}'))"
        )


def definition_of(binding: Binding) -> str:
    """Return what tells a query from another one of its name."""
    query = binding.query
    windows = [[relation.alias, relation.window_us] for relation in query.relations]
    document = json.dumps([query.text, windows, encoded_sink(binding.sink.spec)])
    return hashlib.sha256(document.encode()).hexdigest()[:16]


def read_set_aside(storage: Storage) -> tuple[SetAside, ...]:
    """Return the queries that are set aside."""
    if not storage.exists(FILE):
        return ()
    try:
        document = json.loads(storage.read_bytes(FILE))
        return tuple(
            SetAside(
                query=str(each["query"]),
                definition=str(each["definition"]),
                reason=str(each["reason"]),
                batch=int(each["batch"]),
            )
            for each in document["queries"]
        )
    except (ValueError, KeyError, TypeError):
        return ()


def note_set_aside(storage: Storage, aside: Iterable[SetAside]) -> None:
    """Note which queries are set aside, in the place of what was noted before."""
    listed = sorted(aside, key=lambda each: each.query)
    if not listed and not storage.exists(FILE):
        return
    document = json.dumps({"queries": [asdict(each) for each in listed]}, indent=1, ensure_ascii=False)
    storage.write_file(FILE, document.encode(), durable=True)


__all__ = ["FILE", "SetAside", "definition_of", "note_set_aside", "read_set_aside"]
