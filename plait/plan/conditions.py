"""What joins the relations of a query, a path or an intermediate store, by content.

Only the order of what tells the relations apart matters, so that one predicate is written in one way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from typing_extensions import assert_never

from plait.plan.model import KeyColumn, Place
from plait.plan.relations import key_of, operand_name
from plait.query.model import Operand, Query
from plait.query.predicates import (
    At,
    Band,
    Conjunction,
    Equality,
    Predicate,
    Residual,
    mapped,
    negated,
    with_sides,
)
from plait.query.remembering import remembered

Conditions: TypeAlias = frozenset[Predicate[Place[Any]]]
"""All that joins some relations, equalities and bands with the smaller place on their left."""

Joined: TypeAlias = Equality[KeyColumn] | Band[KeyColumn] | Residual[Place[bool]]
Joining: TypeAlias = tuple[Joined, ...]
"""What joins two relations, the left and the right one, in canonical order: their keys, and for each operand of what no
key decides whether it is the left one's, and its column. A band may be implied by a residual predicate.
"""


def conditions(predicates: Iterable[Predicate[Place[At]]]) -> Conditions:
    """Return these predicates, each once, turned around if need be."""
    return frozenset(map(_turned, predicates))


def _turned(predicate: Predicate[Place[At]]) -> Predicate[Place[At]]:
    match predicate:
        case Equality():
            left, right = sorted((predicate.left, predicate.right))
            return Equality(left=left, right=right)
        case Band():
            return predicate if predicate.left <= predicate.right else predicate.turned()
        case Residual():
            return predicate
        case _:
            assert_never(predicate)


def renamed(predicates: Conditions, rename: Callable[[Any], Any]) -> Conditions:
    """Return the same conditions with other names of the relations."""
    return conditions(mapped(each, lambda place: Place(rename(place.at), place.name)) for each in predicates)


def conditions_text(predicates: Conditions) -> str:
    """Return conditions for people."""
    return " and ".join(sorted(map(_shown, predicates))) or "nothing"


def _shown(predicate: Predicate[Place[Any]]) -> str:
    places = mapped(predicate, lambda place: f"{place.at}.{place.name}")
    match places:
        case Equality():
            return f"{places.left} = {places.right}"
        case Band():
            return f"{places.low} <= {places.right} - {places.left} <= {places.high}"
        case Residual():
            return f"{places.sql} of {places.operands}"
        case _:
            assert_never(places)


def in_order(predicates: Iterable[Joined]) -> Joining:
    """Return predicates in canonical order; among bands the two-sided ones first, which find the fewest tuples."""
    return tuple(sorted(predicates, key=_order))


def _order(predicate: Joined) -> tuple[Any, ...]:
    match predicate:
        case Equality():
            return 0, predicate.left.name, predicate.right.name
        case Band():
            return 1, (predicate.low is None) + (predicate.high is None), predicate.left.name, predicate.right.name
        case Residual():
            return 2, predicate.sql, predicate.is_function, predicate.operands
        case _:
            assert_never(predicate)


def measured_name(predicate: Joined) -> tuple[str, str]:
    """Return what a predicate is measured as, seen from the left and from the right relation.

    An equality has the names of its keys. A band is named from either side by how far the other key may be, a residual
    predicate by what it reads.
    """
    match predicate:
        case Equality():
            return predicate.left.name, predicate.right.name
        case Band():
            seen = f"{predicate.left.name} {predicate.low}:{predicate.high}"
            return seen, f"{predicate.right.name} {negated(predicate.high)}:{negated(predicate.low)}"
        case Residual():
            text = f"{predicate.sql} {[operand.name for operand in predicate.operands]}"
            return text, text
        case _:
            assert_never(predicate)


def key_pairs(joined: Joining) -> tuple[tuple[KeyColumn, KeyColumn], ...]:
    """Return the keys that must be equal: of the left relation, of the right one."""
    return tuple((each.left, each.right) for each in joined if isinstance(each, Equality))


def keys_of_right(joined: Joining) -> tuple[KeyColumn, ...]:
    """Return the keys by which the right relation is found."""
    return tuple(each.right for each in joined if not isinstance(each, Residual))


def between(query: Query, left: str, right: str) -> Joining:
    """Return what joins two relations, each predicate once, bands on one pair of keys combined, in an order free of
    aliases.
    """
    return joined_by(query.between(left, right), left, right)


@remembered(1 << 12)  # planning asks about the same few pairs of relations at every step
def joined_by(predicates: Conjunction[Operand], left: str, right: str) -> Joining:
    """Return what these predicates between two relations join them by, as `between` does."""
    joining: dict[object, Joined] = {}
    for predicate in predicates:
        match predicate:
            case Equality():
                sides = {side.relation: key_of(side) for side in (predicate.left, predicate.right)}
                joining[sides[left].name, sides[right].name] = Equality(left=sides[left], right=sides[right])
            case Band():
                band = predicate if predicate.left.relation == left else predicate.turned()
                keys = key_of(band.left, band.order), key_of(band.right, band.order)
                pair = "band", keys[0].name, keys[1].name
                known = joining.get(pair)
                keyed = with_sides(band, *keys)
                joining[pair] = keyed.within(known) if isinstance(keyed, Band) and isinstance(known, Band) else keyed
            case Residual():
                residual = predicate.moved(lambda operand: Place(operand.relation == left, operand_name(operand)))
                joining[residual] = residual
            case _:
                assert_never(predicate)
    return in_order(joining.values())


def turned(joined: Joining) -> Joining:
    """Return what joins two relations as it is seen from the other one."""

    def turn(predicate: Joined) -> Joined:
        match predicate:
            case Equality():
                return Equality(left=predicate.right, right=predicate.left)
            case Band():
                return predicate.turned()
            case Residual():
                return predicate.moved(lambda place: Place(not place.at, place.name))
            case _:
                assert_never(predicate)

    return in_order(map(turn, joined))


def conditions_of(query: Query) -> Conditions:
    """Return all that joins the relations of a query, by alias."""
    aliases = [relation.alias for relation in query.relations]
    return conditions(
        predicate
        for number, left in enumerate(aliases)
        for right in aliases[number + 1 :]
        for predicate in placed(between(query, left, right), left, right)
    )


def placed(joined: Joining, left: At, right: At) -> Conjunction[Place[At]]:
    """Return what joins two relations with these at the places of their operands."""
    turned: list[Predicate[Place[At]]] = []
    for predicate in joined:
        match predicate:
            case Equality() | Band():
                turned.append(
                    with_sides(predicate, Place(left, predicate.left.name), Place(right, predicate.right.name))
                )
            case Residual():
                turned.append(predicate.moved(lambda operand: Place(left if operand.at else right, operand.name)))
            case _:
                assert_never(predicate)
    return tuple(turned)


def joining(predicate: Predicate[Place[At]], left: At, key: Callable[[Place[At]], KeyColumn]) -> Joined:
    """Return a predicate as what joins the relation at `left` with another one, given the keys that places name."""
    match predicate:
        case Equality() | Band():
            return with_sides(predicate, key(predicate.left), key(predicate.right))
        case Residual():
            return predicate.moved(lambda place: Place(place.at == left, place.name))
        case _:
            assert_never(predicate)
