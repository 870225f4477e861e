"""Say why a query that had input has no result, as far as the counters tell.

The causes are asked for from the input on: whether anything has arrived, whether it could be used, whether the
selection leaves any of it, whether the keys are NULL; only then which step of the probe orders finds no partner, and
whether keys or event times are why. The first cause that holds for certain is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from plait.plan.explain import wording
from plait.plan.explain.predicate_wording import join_wording
from plait.plan.model import Member, Plan, Step
from plait.plan.relations import selection_of
from plait.plan.traversals import endings, path_members
from plait.query.model import Query, Relation
from plait.query.partners import kept_alone
from plait.runtime.losses.counts import EdgeFlow
from plait.runtime.losses.times import event_time_text
from plait.spelling import plural
from plait.state.model import SourceProgress
from plait.stats.sketch import SKETCH_SIZE


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known: the plan in force, all that ever arrived by stream, and what flowed along its edges in this
    run.
    """

    plan: Plan
    progress: Mapping[str, SourceProgress]
    flows: Mapping[str, EdgeFlow]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Miss:
    """A step that tuples took and none came out of."""

    path: tuple[Member, ...]
    step: Step
    sent: int


def hints_for(
    queries: Iterable[Query], results: Mapping[str, int], arrived: frozenset[str], evidence: Evidence
) -> tuple[tuple[str, str], ...]:
    """Return (query, hint) for those without a result that read a stream on which something `arrived`."""
    silent = [
        query
        for query in queries
        if not results.get(query.name) and any(relation.source in arrived for relation in query.relations)
    ]
    if not silent:
        return ()
    misses = _misses(evidence)
    hints = ((query.name, _why(query, evidence, misses.get(query.name, ()))) for query in silent)
    return tuple((name, hint) for name, hint in hints if hint is not None)


def _why(query: Query, evidence: Evidence, misses: Iterable[_Miss]) -> str | None:
    is_kept_alone = bool(kept_alone(query))
    for relation in query.relations:
        reason = None if relation.is_table else _silent(relation, evidence)
        if reason is None and not (relation.is_table or is_kept_alone):
            reason = _unusable(relation, evidence)
        if reason is not None:
            return f"no result: {reason}"
    if is_kept_alone:
        return (
            "no result yet: a row without a partner comes once the watermark has passed the last moment at which one "
            "could come; a run with --available-now --close says that nothing more will come"
        )
    # Of orders that end at different steps the one that came furthest tells most: an earlier end may only mean that
    # the partners came later.
    missed = max(misses, key=lambda miss: (len(miss.path), miss.sent), default=None)
    if missed is None and query.aggregation is not None:
        return (
            "no result yet: no window of its event time is over, or HAVING leaves none of their groups; a run with "
            "--available-now --close says that nothing more will come"
        )
    return None if missed is None else f"no result: {_partnerless(missed, evidence)}"


def _silent(relation: Relation, evidence: Evidence) -> str | None:
    """Tell that nothing has arrived on a relation; None if something has."""
    seen = evidence.progress.get(relation.source)
    is_silent = seen is None or seen.rows == 0
    return f"nothing has arrived on stream {wording.name(relation.source)} yet" if is_silent else None


def _unusable(relation: Relation, evidence: Evidence) -> str | None:
    """Return why no row of a relation that ever arrived can meet others; None if some can."""
    stream, alias, seen = (
        wording.name(relation.source),
        wording.name(relation.alias),
        evidence.progress[relation.source],
    )
    in_time = seen.rows - seen.bad - seen.late
    if in_time <= 0:
        fates = [f"{count:,} {fate}" for count, fate in ((seen.bad, "bad"), (seen.late, "late")) if count]
        return f"all rows of stream {stream} are lost: {', '.join(fates)}"
    selection = selection_of(relation)
    kept = dict(seen.kept).get(selection.sql)
    if kept == 0:
        wanted = wording.selection(selection).removeprefix(" where ")
        return f"none of the {in_time:,} rows of {alias} in time satisfies {wanted}"
    key = None if kept is None else _null_key(relation, kept, seen, evidence.plan)
    if key is None:
        return None
    return f"{wording.sql(key, alias)} is NULL in all {kept:,} rows of {alias}, and equals nothing"


def _null_key(relation: Relation, kept: int, seen: SourceProgress, plan: Plan) -> str | None:
    """Return a key that is NULL in every row the relation's selection keeps.

    Rows with NULL are counted whichever selection wants them. That says something about this relation only if all that
    want the key are the same.
    """
    nulls = {key.key: key.rows for key in seen.null_keys_by}
    mine = selection_of(relation)
    for store in plan.stores:
        if store.source != relation.source:
            continue
        for key in store.keys:
            wanting = {need.selection for need in store.requirements if key.name in need.keys}
            if wanting == {mine} and nulls.get(key.expression.sql, 0) >= kept:
                return key.expression.sql
    return None


def _misses(evidence: Evidence) -> dict[str, list[_Miss]]:
    """Return by query the first step of each of its probe orders that all tuples ended at."""
    by_query: dict[str, list[_Miss]] = {}
    for start, steps, output in endings(evidence.plan):
        for place, step in enumerate(steps):
            flow = evidence.flows.get(step.edge)
            if flow is None or flow.sent == 0:
                break
            if flow.matched == 0:
                miss = _Miss(path=path_members(start, steps[:place]), step=step, sent=flow.sent)
                by_query.setdefault(output.query, []).append(miss)
                break
    return by_query


def _partnerless(miss: _Miss, evidence: Evidence) -> str:
    plan = evidence.plan
    target = wording.member_text(miss.step.member, plan.store(miss.step.member.store))
    condition = join_wording(plan, miss.path, miss.step)
    text = f"{plural(miss.sent, 'tuple')} looked for partners in {target}"
    text += f" with {condition}" if condition else ""
    return "; ".join((f"{text} and found none", *_causes(miss, evidence)))


def _causes(miss: _Miss, evidence: Evidence) -> Iterator[str]:
    """Yield what the sketches of keys and the ranges of event times say about it."""
    plan, step = evidence.plan, miss.step
    target = plan.store(step.member.store)
    theirs = evidence.progress.get(target.source or "")
    for equality in step.equalities:
        own_store = plan.store(miss.path[equality.left.at or 0].store)
        ours = evidence.progress.get(own_store.source or "")
        if ours is None or theirs is None:
            continue
        left, right = (
            dict(known.sketch).get(place.name, ()) for known, place in ((ours, equality.left), (theirs, equality.right))
        )
        if left and right and not set(left) & set(right):
            sampled = " among those sampled" if max(len(left), len(right)) >= SKETCH_SIZE else ""
            yield f"the keys have no value in common{sampled}"
            return
    for member in miss.path:
        ours = evidence.progress.get(plan.store(member.store).source or "")
        if ours is not None and theirs is not None:
            yield from _apart(member, ours, step.member, theirs)
            yield from _apart(step.member, theirs, member, ours)


def _apart(old: Member, before: SourceProgress, new: Member, after: SourceProgress) -> Iterator[str]:
    """Tell that all event times of one stream are older than its window allows for any row of the other."""
    if before.tau_max is None or after.tau_min is None or old.window_us is None:
        return
    if after.tau_min - before.tau_max > old.window_us:
        yield (
            f"event times of {wording.name(before.source)} end at {event_time_text(before.tau_max)}, those of "
            f"{wording.name(after.source)} begin at {event_time_text(after.tau_min)}: further apart than the window of "
            f"{wording.duration(old.window_us)}"
        )
