"""Which plans were taken back, so that a process that starts anew does not try them again.

It is advice: a file that is gone or damaged ends no run, and results do not depend on it.
"""

from __future__ import annotations

import json
from typing import Final, TypeAlias

from plait.adapt.planning import probing_only
from plait.adapt.reconsidering import identity
from plait.errors import CheckpointError
from plait.plan.coverage import computes
from plait.plan.model import Plan
from plait.query.model import Query
from plait.runtime.checkpoint.observed import read_plan
from plait.state.model import Manifest
from plait.state.storage import Storage

FILE: Final = "taken-back.json"
MOST_REMEMBERED: Final = 32
"""So many plans are remembered, the last ones."""

Refused: TypeAlias = tuple[tuple[str, int], ...]
"""Plans by their identity, and the cycle until which they are not taken again."""


def read_taken_back(storage: Storage) -> Refused:
    """Return the plans that were taken back; none if that cannot be read."""
    if not storage.exists(FILE):
        return ()
    try:
        document = json.loads(storage.read_bytes(FILE))
        return tuple((str(plan), int(until)) for plan, until in document["plans"])
    except (ValueError, KeyError, TypeError):
        return ()


def note_taken_back(storage: Storage, refused: Refused) -> None:
    """Remember plans that were taken back, in the place of those noted before."""
    storage.write_file(FILE, json.dumps({"plans": [list(each) for each in refused[-MOST_REMEMBERED:]]}).encode())


def unless_taken_back(storage: Storage, manifest: Manifest | None, plan: Plan, queries: tuple[Query, ...]) -> Plan:
    """Return the plan to start with: the one given, unless that was taken back not long ago and the one that was in
    force answers the same queries.
    """
    if manifest is None:
        return plan
    until = dict(read_taken_back(storage)).get(identity(plan))
    if until is None or until < manifest.cycles.number:
        return plan
    try:
        former = read_plan(storage, manifest.plan)
    except CheckpointError:  # of another version, which no start should fail for
        return plan
    if former is None or (former.strategy, former.ranks) != (plan.strategy, plan.ranks):
        return plan
    keeps_the_same = probing_only(former, plan) is not None
    return former if keeps_the_same and computes(former, queries) else plan


__all__ = ["FILE", "MOST_REMEMBERED", "Refused", "note_taken_back", "read_taken_back", "unless_taken_back"]
