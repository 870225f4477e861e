"""How EXPLAIN words what joins two relations."""

from __future__ import annotations

import re

from plait.plan.explain.wording import described, duration, sql
from plait.plan.model import Formula, Intermediate, Member, Plan, Step, Store
from plait.plan.relations import member_name
from plait.plan.rules import Probe
from plait.plan.walks import split_part

_OPERAND = re.compile(r"`(\d+)`")


def joining(plan: Plan, path: tuple[Member, ...], step: Step | Probe) -> str:
    """Return all that a step requires of what it finds, empty for a cross join."""
    probed = plan.store(step.member.store)

    def known(position: int, name: str) -> str:
        return _named(plan.store(path[position].store), name, path[position])

    def found(name: str) -> str:
        part, _ = split_part(probed, name)
        return _named(probed, name, step.members[part])

    shown = [f"{known(match.position, match.probe_key)} = {found(match.store_key)}" for match in step.matches]
    for span in step.spans:
        kind = probed.key(span.store_key).type
        shown.append(_bounded(known(span.position, span.probe_key), found(span.store_key), span.low, span.high, kind))
    for check in step.checks:
        operands = [found(name) if position is None else known(position, name) for position, name in check.operands]
        shown.append(_formula(check.formula, operands))
    return " and ".join(shown)


def joined(shown: Intermediate, plan: Plan) -> str:
    """Return the join that an intermediate store keeps."""
    parts = [described(part, plan.store(part.store)) for part in shown.parts]

    def side(part: int, name: str) -> str:
        member = shown.parts[part]
        return _named(plan.store(member.store), name, member)

    found = [f"{side(pair.left, pair.left_key)} = {side(pair.right, pair.right_key)}" for pair in shown.joined]
    for span in shown.spans:
        kind = plan.store(shown.parts[span.left].store).key(span.left_key).type
        left, right = side(span.left, span.left_key), side(span.right, span.right_key)
        found.append(_bounded(left, right, span.low, span.high, kind))
    for check in shown.checks:
        found.append(_formula(check.formula, [side(part, name) for part, name in check.operands]))
    return f"{' ⋈ '.join(parts)} on {' and '.join(found)}"


def _named(store: Store, name: str, member: Member) -> str:
    """Return a key, value or column of a store as the expression it is, with the relation it belongs to."""
    columns = {key.name: key.expression.sql for key in store.keys}
    columns.update((value.name, value.expression.sql) for value in store.values)
    _, own = split_part(store, name)
    text = columns.get(name, "`" + own.replace("`", "``") + "`")
    return sql(text, member_name(member))


def _bounded(left: str, right: str, low: float | None, high: float | None, kind: str) -> str:
    """Return ``low ≤ right − left ≤ high`` as people write it: bounds around the one that is known."""
    if low is not None and low == high:
        return f"{right} = {_moved(left, low, kind)}"
    if low is None:
        return f"{right} <= {_moved(left, high or 0, kind)}"
    if high is None:
        return f"{right} >= {_moved(left, low, kind)}"
    return f"{right} between {_moved(left, low, kind)} and {_moved(left, high, kind)}"


def _moved(text: str, offset: float, kind: str) -> str:
    if offset == 0:
        return text
    size = abs(offset)
    shown = duration(int(size)) if kind == "timestamp" else f"{size:g}" if kind == "double" else f"{size:.0f}"
    unit = " d" if kind == "date" else ""
    return f"{text} {'-' if offset < 0 else '+'} {shown}{unit}"


def _formula(formula: Formula, operands: list[str]) -> str:
    return _OPERAND.sub(lambda found: operands[int(found.group(1))], formula.text)
