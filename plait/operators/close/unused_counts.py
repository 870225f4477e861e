"""What of the counts by key, selection and edge is let go, so that the manifest does not grow with every query that was
ever here.

A count is of use while the plan in force compares its key, looks for its selection or has its edge; of a stream's keys
and selections also while a stored bucket has them, whose rows a later plan may go on with. What is counted of a whole
stream or query (rows, late, bad, results) is never touched.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from plait.plan.model import Plan
from plait.plan.relations import source_of
from plait.plan.traversals import probes
from plait.state.model import Bucket, Layout, SourceProgress


@dataclass(slots=True)
class _Use:
    """What is used of one source: names of keys, their SQL, texts of selections."""

    keys: set[str] = field(default_factory=set)
    expressions: set[str] = field(default_factory=set)
    selections: set[str] = field(default_factory=set)


def without_unused(
    progress: Iterable[SourceProgress], plan: Plan, stored: Iterable[Bucket]
) -> tuple[SourceProgress, ...]:
    """Return the progress of the sources without counts by key or selection that neither the plan nor `stored` uses."""
    uses = {known.source: _Use() for known in progress}
    for store in plan.stores:
        if store.source in uses:
            use = uses[store.source]
            use.keys |= {key.name for key in store.keys}
            use.expressions |= {key.expression.sql for key in store.keys}
            for need in store.requirements:
                use.keys |= set(need.keys)
                use.selections.add(need.selection.sql)
    layouts: dict[str, set[Layout]] = {}
    for bucket in stored:
        layouts.setdefault(bucket.store, set()).add(bucket.layout)
    for name, kept in layouts.items():
        source = name if name in uses else source_of(name)
        for layout in kept if source in uses else ():
            uses[source].keys |= set(layout.keys)
            uses[source].selections |= set(layout.selections)
    return tuple(_used(known, uses[known.source]) for known in progress)


def _used(known: SourceProgress, use: _Use) -> SourceProgress:
    return replace(
        known,
        sketch=tuple(each for each in known.sketch if each[0] in use.keys),
        kept=tuple(each for each in known.kept if each[0] in use.selections),
        null_keys_by=tuple(each for each in known.null_keys_by if each.key in use.expressions),
    )


def edges_of(plan: Plan) -> frozenset[str]:
    """Return the edges of a plan."""
    return frozenset(step.edge for _, step in probes(plan))


__all__ = ["edges_of", "without_unused"]
