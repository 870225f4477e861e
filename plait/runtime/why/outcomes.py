"""What is said of each way in which a row can fare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from plait.plan.explain import wording
from plait.query.model import Operand, Query, Relation
from plait.query.predicates import Band, Equality, Predicate, operands_of
from plait.query.time_windows import SessionWindow
from plait.runtime.why.findings import Finding, length, moment
from plait.runtime.why.meeting_rows import Joined, Looked
from plait.runtime.why.row_frames import FOR_EVER, RelationFrame, predicate_sql
from plait.runtime.why.standing import Standing


def of_row(
    query: Query, start: RelationFrame, row: Mapping[str, Any] | None, shown: str, standing: Standing
) -> tuple[Finding, bool]:
    """Return what is to say of a row by itself, and whether it takes part in joins."""
    alias, of = start.relation.alias, named(start.relation)
    if row is None:
        text = f"not arrived: there is no row of {of} with {shown} to read, among what was read or waits to be"
        return Finding(kind="not arrived", relation=alias, text=text), False
    tau, batch = row[start.column("tau")], row[start.column("batch")]
    if tau is None:
        text = f"a bad row: it has no event time, so it is joined with nothing; {of} counts it"
        return Finding(kind="bad row", relation=alias, text=text), False
    when = "" if start.relation.is_table else f", event time {moment(tau)}"
    if batch is None or batch > standing.spark_batch:
        text = f"arrived{when}, but no batch that is done has read it: it waits for the next one"
        return Finding(kind="not read yet", relation=alias, text=text), False
    if row[start.column("late")]:
        text = (
            f"late: read by batch {batch}{when}, before the watermark that batch had for {of}; not joined, but counted"
        )
        return Finding(kind="late", relation=alias, text=text), False
    false = [] if query.joins else [each for each in start.selections if not row[start.selection(each)]]
    if false:
        conditions = " and ".join(wording.sql(each.sql, alias) for each in false)
        text = f"read by batch {batch}{when}, but the query does not select it: {conditions} is not true"
        return Finding(kind="selection false", relation=alias, text=text), False
    nulls = [] if query.joins else null_keys(query, start, row)
    if nulls:
        text = f"read by batch {batch}{when}, but {' and '.join(nulls)} is NULL, which equals nothing"
        return Finding(kind="null key", relation=alias, text=text), False
    text = f"arrived with batch {batch}{when}" if not start.relation.is_table else f"it is in {of}"
    return Finding(kind="met", relation=alias, text=text, facts=(("batch", batch), ("tau_us", tau))), True


def null_keys(query: Query, start: RelationFrame, row: Mapping[str, Any]) -> list[str]:
    """Return the keys of a row, in words, that are NULL although results need them."""
    sides = (
        operand
        for predicate in query.predicates
        if isinstance(predicate, Equality | Band)
        for operand in operands_of(predicate)
        if operand.relation == start.relation.alias
    )
    expressions = dict.fromkeys(operand.expression for operand in sides)
    return [wording.sql(each.sql, start.relation.alias) for each in expressions if row[start.operand(each)] is None]


def unmet(joined: Joined, other: RelationFrame, looked: Looked, wanted: str) -> Finding:
    """Say why nothing of a relation is met: none is there, or those that are there cannot be joined."""
    alias, of = other.relation.alias, named(other.relation)
    which = f" with {wanted}" if wanted else ""
    if not looked.met:
        return Finding(kind="no partner", relation=alias, text=f"{alias}: no row of {of}{which}")
    rows = f"{alias}: {looked.met:,} of {of}{which}"
    if not looked.taken:
        text = f"{rows}, but no batch that is done has read any of them yet"
        return Finding(kind="partner not read", relation=alias, text=text)
    if not looked.selected:
        conditions = " and ".join(wording.sql(each.sql, alias) for each in other.relation.selections)
        text = f"{rows}, but the query selects none of them: {conditions} is not true"
        return Finding(kind="partner not selected", relation=alias, text=text)
    if not looked.timely:
        return Finding(kind="partner late", relation=alias, text=f"{rows}, but all of them were late")
    return _outside(joined, other, looked, rows)


def _outside(joined: Joined, other: RelationFrame, looked: Looked, rows: str) -> Finding:
    """Say whose window keeps the nearest row away, and by how much."""
    outside, at = looked.outside_us or 0, looked.at_us or 0
    if looked.is_later:
        streams = (each.relation for each in joined.placed if not each.relation.is_table)
        window, owner = min((each.window_us, each.alias) for each in streams if each.window_us is not None)
        whose = f"comes after the window of {owner} ({length(window)})"
    else:
        window = other.relation.window_us or 0
        owner, whose = other.relation.alias, f"is older than its own window ({length(window)}) allows"
    text = f"{rows}, but the nearest, of {moment(at)}, {whose}, by {length(outside)}"
    facts = (("outside_us", outside), ("window_us", window), ("window_of", owner), ("partner_tau_us", at))
    return Finding(kind="outside window", relation=other.relation.alias, text=text, facts=facts)


def waiting(other: RelationFrame, closes_us: int, standing: Standing) -> Finding | None:
    """Say until when a row of a relation that is met may still come; None if none can."""
    if other.relation.is_table or not standing.may_come(other.relation.source, closes_us):
        return None
    what = f"a row of {named(other.relation)} that it meets may still come"
    return _waits(what, closes_us, standing, other.relation.alias)


def certain_or_waits(closes_us: int, standing: Standing, without: str) -> Finding:
    """Say of a row that stays without a partner when that is certain, or since when it is."""
    if standing.is_over(closes_us):
        facts = (("until_us", closes_us), ("watermark_us", standing.mark_us))
        text = f"there is a result {without}: the watermark has passed {moment(closes_us)}, when that was certain"
        return Finding(kind="certain", text=text, facts=facts)
    return _waits(f"it becomes a result {without} if no partner comes", closes_us, standing, None)


def _waits(what: str, until_us: int, standing: Standing, relation: str | None) -> Finding:
    if until_us >= FOR_EVER:
        return Finding(kind="waits", relation=relation, text=f"{what}, however late: no window bounds it")
    text = f"{what}, until the watermark passes {moment(until_us)}"
    text += "; it has not begun yet" if standing.mark_us is None else f"; it is at {moment(standing.mark_us)}"
    text += "" if standing.holder is None else f", held back by stream {standing.holder}"
    facts = (("until_us", until_us), ("watermark_us", standing.mark_us), ("held_back_by", standing.holder))
    return Finding(kind="waits", relation=relation, text=text, facts=facts)


def came(query: Query, arrived: int, standing: Standing) -> Finding:
    """Say since when there is a result, or why it is not to be seen."""
    facts = (("batch", arrived),)
    if standing.since is not None and arrived < standing.since:
        text = f"all members had arrived with batch {arrived}; the query is answered from batch {standing.since} on"
        return Finding(kind="before the query", text=text, facts=(*facts, ("since", standing.since)))
    if standing.set_aside is not None:
        return Finding(kind="set aside", text=f"the query is set aside: {standing.set_aside}", facts=facts)
    if standing.undelivered is not None:
        text = f"found in batch {arrived}, but the sink does not take results: {standing.undelivered}"
        return Finding(kind="not delivered", text=text, facts=facts)
    return Finding(kind="came", text=f"there is a result: it came with batch {arrived}", facts=facts)


def of_groups(query: Query, tau_us: int, standing: Standing) -> Finding | None:
    """Say when the groups come that a joined row counts in, or since when they are there; None without groups."""
    if query.aggregation is None:
        return None
    window = query.aggregation.window
    if isinstance(window, SessionWindow):
        return _of_session(window, tau_us, standing)
    until = window.last_end(tau_us) + window.lag_us
    if standing.ended or (standing.mark_us is not None and until <= standing.mark_us):
        text = (
            f"its windows of time are over, the last with {moment(window.last_end(tau_us))}: their groups were written "
            "then, those of which HAVING is true"
        )
        return Finding(kind="window over", text=text, facts=(("until_us", until),))
    waits = _waits("it counts in groups that are written when their windows are over, the last", until, standing, None)
    return Finding(kind="window open", text=waits.text, facts=waits.facts)


def _of_session(window: SessionWindow, tau_us: int, standing: Standing) -> Finding:
    """Say the same of a session, which a later row may prolong."""
    until = window.first_end(tau_us) + window.lag_us + 1
    if standing.ended or (standing.mark_us is not None and until <= standing.mark_us):
        later = "" if standing.ended else ", unless a later row has prolonged it"
        text = f"its session is over{later}: it was written then, if HAVING is true of it"
        return Finding(kind="window over", text=text, facts=(("until_us", until),))
    begins = "it counts in a session that is written once that is over, if no later row prolongs it"
    waits = _waits(begins, until, standing, None)
    return Finding(kind="window open", text=waits.text, facts=waits.facts)


def worded(predicates: Sequence[Predicate[Operand]]) -> str:
    """Return predicates in words. Bands that only say of another one what can be looked up are left out."""
    plain = [each for each in predicates if not isinstance(each, Band)] or predicates
    texts = (
        predicate_sql(each, lambda operand: wording.sql(operand.expression.sql, operand.relation)) for each in plain
    )
    return " and ".join(dict.fromkeys(texts))


def named(relation: Relation) -> str:
    """Return what a relation is of."""
    return f"{'table' if relation.is_table else 'stream'} {relation.source}"


__all__ = ["came", "certain_or_waits", "named", "of_groups", "of_row", "unmet", "waiting", "worded"]
