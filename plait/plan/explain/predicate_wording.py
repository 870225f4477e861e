"""How EXPLAIN words what joins two relations."""

from __future__ import annotations

import re
from dataclasses import dataclass

from typing_extensions import assert_never

from plait.plan.explain.wording import duration, member_text, sql
from plait.plan.model import Intermediate, KeyColumn, Member, Place, Plan, Probed, Step, Store, ValueColumn
from plait.plan.relations import member_name
from plait.plan.rules import Probe
from plait.plan.traversals import split_part
from plait.query.predicates import Band, Equality, Predicate, Residual, mapped
from plait.spelling import backquoted

_OPERAND = re.compile(r"`(\d+)`")


def join_wording(plan: Plan, path: tuple[Member, ...], step: Step | Probe) -> str:
    """Return all that a step requires of what it finds, empty for a cross join."""
    probed = plan.store(step.member.store)

    def side(place: Probed) -> _Side:
        if place.at is not None:
            return _side(plan.store(path[place.at].store), place.name, path[place.at])
        part, _ = split_part(probed, place.name)
        return _side(probed, place.name, step.members[part])

    return " and ".join(_worded(mapped(predicate, side)) for predicate in step.predicates)


def joined(shown: Intermediate, plan: Plan) -> str:
    """Return the join that an intermediate store keeps."""
    parts = [member_text(part, plan.store(part.store)) for part in shown.parts]

    def side(place: Place[int]) -> _Side:
        member = shown.parts[place.at]
        return _side(plan.store(member.store), place.name, member)

    worded = [_worded(mapped(predicate, side)) for predicate in shown.predicates]
    return f"{' ⋈ '.join(parts)} on {' and '.join(worded)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """An operand in words, and the type it is compared as."""

    text: str
    type: str


def _side(store: Store, name: str, member: Member) -> _Side:
    """Return a key, value or column of a store as the expression it is, with the relation it belongs to."""
    computed: dict[str, KeyColumn | ValueColumn] = {key.name: key for key in store.keys}
    computed.update((value.name, value) for value in store.values)
    if name in computed:
        return _Side(text=sql(computed[name].expression.sql, member_name(member)), type=computed[name].type)
    _, own = split_part(store, name)
    return _Side(text=sql(backquoted(own), member_name(member)), type="")


def _worded(predicate: Predicate[_Side]) -> str:
    match predicate:
        case Equality():
            return f"{predicate.left.text} = {predicate.right.text}"
        case Band():
            return _bounded(predicate)
        case Residual():
            return _OPERAND.sub(lambda match: predicate.operands[int(match.group(1))].text, predicate.text)
        case _:
            assert_never(predicate)


def _bounded(band: Band[_Side]) -> str:
    """Return ``low ≤ right − left ≤ high`` as people write it: bounds around the one that is known."""
    right, low, high = band.right.text, band.low, band.high
    if low is not None and low == high:
        return f"{right} = {_moved(band.left, low)}"
    if low is None:
        return f"{right} <= {_moved(band.left, high or 0)}"
    if high is None:
        return f"{right} >= {_moved(band.left, low)}"
    return f"{right} between {_moved(band.left, low)} and {_moved(band.left, high)}"


def _moved(side: _Side, offset: float) -> str:
    if offset == 0:
        return side.text
    size = abs(offset)
    is_time = side.type in ("timestamp", "timestamp_ntz")
    shown = duration(int(size)) if is_time else f"{size:g}" if side.type == "double" else f"{size:.0f}"
    unit = " d" if side.type == "date" else ""
    return f"{side.text} {'-' if offset < 0 else '+'} {shown}{unit}"
