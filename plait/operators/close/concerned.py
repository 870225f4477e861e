"""Which stored rows of a query with outer, semi and anti joins a batch has to look at: those of the joined rows that it
can have made certain, and all that these meet.

A joined row of this batch has a member whose window has just ended, the watermark having passed the τ + W at which it
**closes**; or some member, or the first partner of a semi join, has just arrived. So the way begins with these rows,
few beside what is stored, and leads by the keys that the joins compare, and the indexes that probes use:

- **up**: each relation is linked with an earlier one by the equalities of its ON. From its rows that close or arrived
  to those of the earlier one that meet them, and so on to the first relation, of which then all rows are known that can
  be in a joined row of this batch;
- **down**: from these to all rows of the others that meet them, join by join. Of a joined row with such a row of the
  first relation nothing is missing then, so what the statement (`certain_sql`) says of it is what it would say over all
  that is stored; and it says nothing of others.

A join without an equality is led over by time alone. Where rows of a right side stay without partners, joined rows need
not have one of the first relation: then the links are followed in both directions for as long as anything new is found,
so that all that could depend on each other is looked at together; and if one of them has no equality, all there is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from plait.operators.close.certain_sql import Span
from plait.operators.close.meeting import Link, link_of, meeting
from plait.operators.close.sides import Chosen, Side, some, united, without
from plait.plan.model import Plan
from plait.query.model import JoinStep, Query
from plait.query.partners import KEEPS_LEFT, KEEPS_RIGHT, TESTS, left_parts

Sides: TypeAlias = Mapping[str, Side]


def look_at_concerned(query: Query, plan: Plan, span: Span, sides: Sides) -> bool:
    """Let each side look at the rows that concern a batch. Return whether each of these is a joined row of this batch
    by itself, so that nothing is left to ask.
    """
    steps = [step for step in query.joins if step.kind is not None]
    if len(steps) == 1:
        is_whole = _of_two(query, plan, span, sides, steps[0])
        return is_whole and len(query.joins) == 1
    links = [link_of(query, step) for step in steps]
    if not any(step.kind in KEEPS_RIGHT for step in steps):
        chosen = _along_joins(plan, sides, links, _begun(query, span, sides, steps))
    elif all(link.equalities for link in links):
        chosen = _connected(plan, sides, links, _begun_anywhere(query, span, sides))
    else:
        chosen = {alias: side.everything() for alias, side in sides.items()}
    for alias, side in sides.items():
        side.look_at(chosen[alias])
    return False


def _of_two(query: Query, plan: Plan, span: Span, sides: Sides, step: JoinStep) -> bool:
    """Let both sides of a join look at what concerns a batch. Return whether all those rows are decided: the ones
    without a partner, of a semi join those with the first one.
    """
    link = link_of(query, step)
    left, right = sides[link.parent], sides[link.alias]
    if step.kind == "semi":
        return _with_first_partner(plan, left, right, link)
    lonely = _deciding(left, right, span) if step.kind != "right" else {}
    lonely_right = _deciding(right, left, span) if step.kind in KEEPS_RIGHT else {}
    theirs = meeting(left, lonely, right, link, plan)
    ours = meeting(right, lonely_right, left, link.turned(), plan)
    if link.is_whole:
        left.look_at(without(lonely, united(theirs.old, theirs.new)))
        right.look_at(without(lonely_right, united(ours.old, ours.new)))
    else:
        left.look_at(united(lonely, ours.found))
        right.look_at(united(lonely_right, theirs.found))
    return link.is_whole


def _deciding(side: Side, other: Side, span: Span) -> Chosen:
    """Return the rows of which it is decided in this batch whether the other relation has a partner for them."""
    return side.fresh() if other.relation.is_table else side.closing(span)


def _with_first_partner(plan: Plan, left: Side, right: Side, link: Link) -> bool:
    turned = link.turned()
    arrived = united(left.fresh(), meeting(right, right.fresh(), left, turned, plan).found)
    theirs = meeting(left, arrived, right, link, plan)
    if link.is_whole:
        either, first = united(theirs.old, theirs.new), without(theirs.new, theirs.old)
        arrived = {place: mask if left.is_fresh[place] else first[place] for place, mask in either.items()}
    left.look_at(arrived)
    right.look_at(theirs.found)
    return link.is_whole


def _along_joins(plan: Plan, sides: Sides, links: Sequence[Link], begun: Mapping[str, Chosen]) -> dict[str, Chosen]:
    """Return what is found up and down the links, where no join keeps rows of its right side."""
    reached = dict(begun)
    for link in reversed(links):
        found = meeting(sides[link.alias], reached[link.alias], sides[link.parent], link.turned(), plan).found
        reached[link.parent] = united(reached[link.parent], found)
    first = next(iter(sides))
    chosen = {first: reached[first]}
    for link in links:
        chosen[link.alias] = meeting(sides[link.parent], chosen[link.parent], sides[link.alias], link, plan).found
    return chosen


def _connected(plan: Plan, sides: Sides, links: Sequence[Link], begun: Mapping[str, Chosen]) -> dict[str, Chosen]:
    """Return all that is found by following the links in both directions for as long as anything new is found."""
    both = [*links, *(link.turned() for link in links)]
    reached, latest = dict(begun), dict(begun)
    while any(latest.values()):
        found: dict[str, Chosen] = {alias: {} for alias in sides}
        for link in both:
            met = meeting(sides[link.parent], latest[link.parent], sides[link.alias], link, plan)
            found[link.alias] = united(found[link.alias], met.found)
        latest = {alias: some(without(those, reached[alias])) for alias, those in found.items()}
        reached = {alias: united(those, latest[alias]) for alias, those in reached.items()}
    return reached


def _begun(query: Query, span: Span, sides: Sides, steps: Sequence[JoinStep]) -> dict[str, Chosen]:
    """Return of each relation the rows that can make a joined row belong to this batch.

    Those that close, if a partner is waited for after the relation has been joined; and where something is decided at
    once, those that have arrived, but for an anti join's, which let nothing in.
    """
    waits = [step.kind in (*KEEPS_LEFT, "anti") and not sides[step.alias].relation.is_table for step in steps]
    last = max((number for number, is_waiting in enumerate(waits) if is_waiting), default=-1)
    is_at_once = any(step.kind != "inner" and not waiting for step, waiting in zip(steps, waits, strict=True))
    begun: dict[str, Chosen] = {}
    relations = [
        (query.relations[0].alias, -1, False),
        *((each.alias, n, each.kind in TESTS) for n, each in enumerate(steps)),
    ]
    for alias, number, is_tested in relations:
        begun[alias] = sides[alias].closing(span) if number < last and not is_tested else {}
        if is_at_once and (number < 0 or steps[number].kind != "anti"):
            begun[alias] = united(begun[alias], sides[alias].fresh())
    return begun


def _begun_anywhere(query: Query, span: Span, sides: Sides) -> dict[str, Chosen]:
    """Return of each relation the rows that can make a joined row belong to this batch, and some more: those that
    close, that have arrived, and of which it is decided whether they stay without a left side.
    """
    begun: dict[str, Chosen] = {alias: united(side.closing(span), side.fresh()) for alias, side in sides.items()}
    for step, part in left_parts(query):
        if step.kind in KEEPS_RIGHT:
            lag = part.lag_us or 0
            decided = sides[step.alias].closing(Span(since_us=span.since_us - lag, last_us=span.last_us - lag))
            begun[step.alias] = united(begun[step.alias], decided)
    return begun


__all__ = ["Sides", "look_at_concerned"]
