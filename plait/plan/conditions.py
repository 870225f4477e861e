"""What joins two relations, by content: equal keys, bounded differences, and formulas that must hold.

Relations are named by whatever tells them apart where the question is asked: by alias in a query, by position on a
path, by part in an intermediate store. Only their order matters, so that one condition is written in one way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from plait.plan.model import Formula, KeyColumn
from plait.plan.relations import key_of, operand_name, span_keys
from plait.query.graph import QueryGraph
from plait.query.model import Order, Query, Theta, order_of

Place: TypeAlias = tuple[Any, str]
"""(relation, name of one of its columns or keys)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """``low ≤ right − left ≤ high``; `left` is the smaller place."""

    left: Place
    right: Place
    low: float | None
    high: float | None
    order: Order

    @classmethod
    def of(cls, left: Place, right: Place, low: float | None, high: float | None, order: Order) -> Bound:
        """Return the bound, turned around if need be."""
        if left <= right:
            return cls(left=left, right=right, low=low, high=high, order=order)
        return cls(left=right, right=left, low=negated(high), high=negated(low), order=order)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holds:
    """`formula` holds of these columns."""

    formula: Formula
    operands: tuple[Place, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """All that joins some relations; in canonical order, each once."""

    equalities: frozenset[frozenset[Place]] = frozenset()
    bounds: frozenset[Bound] = frozenset()
    formulas: frozenset[Holds] = frozenset()

    def __or__(self, other: Conditions) -> Conditions:
        return Conditions(
            equalities=self.equalities | other.equalities,
            bounds=self.bounds | other.bounds,
            formulas=self.formulas | other.formulas,
        )

    def renamed(self, rename: Callable[[Any], Any]) -> Conditions:
        """Return the same conditions with other names of the relations."""
        return Conditions(
            equalities=frozenset(frozenset((rename(place), name) for place, name in pair) for pair in self.equalities),
            bounds=frozenset(
                Bound.of(
                    (rename(each.left[0]), each.left[1]),
                    (rename(each.right[0]), each.right[1]),
                    each.low,
                    each.high,
                    each.order,
                )
                for each in self.bounds
            ),
            formulas=frozenset(
                Holds(formula=each.formula, operands=tuple((rename(place), name) for place, name in each.operands))
                for each in self.formulas
            ),
        )

    def __str__(self) -> str:
        shown = [" = ".join(sorted(f"{place}.{name}" for place, name in pair)) for pair in self.equalities]
        shown += [f"{each.low} <= {each.right} - {each.left} <= {each.high}" for each in self.bounds]
        shown += [f"{each.formula.sql} of {each.operands}" for each in self.formulas]
        return " and ".join(sorted(shown)) or "nothing"


def negated(bound: float | None) -> float | None:
    """Return the bound of the opposite difference."""
    return None if bound is None else -bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Spanned:
    """``low ≤ right − left ≤ high`` between keys of two relations."""

    left: KeyColumn
    right: KeyColumn
    low: float | None
    high: float | None
    order: Order = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A formula over columns of two relations: for each operand whether it is the left one's, and the column."""

    formula: Formula
    operands: tuple[tuple[bool, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """What joins two relations of a query, `left` and `right`. A `span` may be implied by a formula."""

    keys: tuple[tuple[KeyColumn, KeyColumn], ...] = ()
    spans: tuple[Spanned, ...] = ()
    checks: tuple[Checked, ...] = ()

    def sorted(self) -> Between:
        """Return the same, in canonical order."""
        return Between(
            keys=tuple(sorted(self.keys, key=lambda pair: (pair[0].name, pair[1].name))),
            spans=tuple(sorted(self.spans, key=_span_order)),
            checks=tuple(sorted(self.checks, key=_check_order)),
        )

    @property
    def keys_of_right(self) -> tuple[KeyColumn, ...]:
        """The keys by which the right one is found."""
        return (*(theirs for _, theirs in self.keys), *(span.right for span in self.spans))


def together(parts: Iterable[Between]) -> Between:
    """Return all conditions of several that join the same relations."""
    found = list(parts)
    return Between(
        keys=tuple(key for part in found for key in part.keys),
        spans=tuple(span for part in found for span in part.spans),
        checks=tuple(check for part in found for check in part.checks),
    ).sorted()


def measured_names(joined: Between) -> tuple[tuple[str, str], ...]:
    """Return what each condition is measured as, seen from the left and from the right relation.

    An equality has the names of its keys. A bound is named from either side by how far the other key may be, a formula
    by what it reads.
    """
    names = [(mine.name, theirs.name) for mine, theirs in joined.keys]
    for span in joined.spans:
        seen = f"{span.left.name} {span.low}:{span.high}"
        names.append((seen, f"{span.right.name} {negated(span.high)}:{negated(span.low)}"))
    for check in joined.checks:
        text = f"{check.formula.sql} {[name for _, name in check.operands]}"
        names.append((text, text))
    return tuple(names)


def between(query: Query, left: str, right: str) -> Between:
    """Return what joins two relations, each condition once, in an order free of aliases."""
    graph = QueryGraph.of(query)
    pairs = {}
    for equality in graph.between((left,), right):
        sides = {operand.relation: key_of(operand, equality) for operand in (equality.left, equality.right)}
        pairs[sides[left].name, sides[right].name] = (sides[left], sides[right])
    thetas = graph.thetas_between((left,), right)
    return Between(
        keys=tuple(pairs[names] for names in sorted(pairs)),
        spans=_spans(thetas, left),
        checks=tuple(sorted({_check(theta, left) for theta in thetas if not theta.is_span}, key=_check_order)),
    )


def _spans(thetas: Iterable[Theta], left: str) -> tuple[Spanned, ...]:
    """Return the bounds, those on one pair of keys combined; two-sided ones first: they find the fewest tuples."""
    found: dict[tuple[str, str], Spanned] = {}
    for theta in thetas:
        if theta.span is None:
            continue
        mine, theirs = span_keys(theta.span)
        low, high = theta.span.low, theta.span.high
        if theta.span.left.relation != left:
            mine, theirs, low, high = theirs, mine, negated(high), negated(low)
        known = found.get((mine.name, theirs.name))
        if known is not None:
            low = max((bound for bound in (low, known.low) if bound is not None), default=None)
            high = min((bound for bound in (high, known.high) if bound is not None), default=None)
        found[mine.name, theirs.name] = Spanned(
            left=mine, right=theirs, low=low, high=high, order=order_of(theta.span.type)
        )
    return tuple(sorted(found.values(), key=_span_order))


def _span_order(span: Spanned) -> tuple[object, ...]:
    return (span.low is None) + (span.high is None), span.left.name, span.right.name


def _check(theta: Theta, left: str) -> Checked:
    return Checked(
        formula=Formula(
            sql=theta.function or theta.evaluated or theta.sql,
            text=theta.sql,
            is_function=theta.function is not None,
        ),
        operands=tuple(
            (operand.relation == left, operand_name(theta, number)) for number, operand in enumerate(theta.operands)
        ),
    )


def _check_order(check: Checked) -> tuple[object, ...]:
    return check.formula.sql, check.formula.is_function, check.operands


def conditions_of(query: Query) -> Conditions:
    """Return all that joins the relations of a query, by alias."""
    found = Conditions()
    aliases = [relation.alias for relation in query.relations]
    for number, left in enumerate(aliases):
        for right in aliases[number + 1 :]:
            found |= placed(between(query, left, right), left, right)
    return found


def placed(joined: Between, left: Any, right: Any) -> Conditions:
    """Return what joins two relations under these names."""
    return Conditions(
        equalities=frozenset(frozenset(((left, mine.name), (right, theirs.name))) for mine, theirs in joined.keys),
        bounds=frozenset(
            Bound.of((left, span.left.name), (right, span.right.name), span.low, span.high, span.order)
            for span in joined.spans
        ),
        formulas=frozenset(
            Holds(
                formula=check.formula,
                operands=tuple((left if is_left else right, name) for is_left, name in check.operands),
            )
            for check in joined.checks
        ),
    )
