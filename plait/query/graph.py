"""The join graph of a query: relations are nodes, two are neighbours if a predicate compares them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from plait.query.masks import connected_levels, positions
from plait.query.model import Operand, Query, relations_of
from plait.query.predicates import Conjunction


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryGraph:
    """Aliases in FROM order, and the predicates between them.

    >>> from plait.query.model import Operand, SourceExpression
    >>> from plait.query.predicates import Equality
    >>> key = SourceExpression(sql="`k`", columns=("k",))
    >>> def equality(left, right):
    ...     return Equality(left=Operand(relation=left, expression=key), right=Operand(relation=right, expression=key))
    >>> graph = QueryGraph(aliases=("r", "s", "t"), predicates=(equality("r", "s"), equality("s", "t")))
    >>> graph.neighbours("r"), graph.shape
    (('s',), 'chain')
    >>> [sorted(subset) for subset in graph.connected_subsets()]
    [['r'], ['s'], ['t'], ['r', 's'], ['s', 't'], ['r', 's', 't']]
    """

    aliases: tuple[str, ...]
    predicates: Conjunction[Operand]
    _pairs: tuple[tuple[str, ...], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_pairs", tuple(relations_of(predicate) for predicate in self.predicates))

    @classmethod
    def of(cls, query: Query) -> QueryGraph:
        """Return the graph of this query."""
        aliases = tuple(relation.alias for relation in query.relations)
        return cls(aliases=aliases, predicates=query.predicates)

    def neighbours(self, alias: str) -> tuple[str, ...]:
        """Return the relations compared with this one, in FROM order."""
        return self.neighbours_of((alias,))

    def neighbours_of(self, joined: Collection[str]) -> tuple[str, ...]:
        """Return the relations outside `joined` that are compared with one inside, in FROM order."""
        near = set()
        for left, right in self._pairs:
            if (left in joined) != (right in joined):
                near.add(right if left in joined else left)
        return tuple(alias for alias in self.aliases if alias in near)

    def between(self, joined: Collection[str], alias: str) -> Conjunction[Operand]:
        """Return the predicates between `alias` and the relations in `joined`."""
        pairs = zip(self.predicates, self._pairs, strict=True)
        return tuple(predicate for predicate, pair in pairs if _connects(pair, joined, alias))

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Return the neighbouring pairs, each once, in FROM order."""
        return tuple(
            (left, right)
            for position, left in enumerate(self.aliases)
            for right in self.aliases[position + 1 :]
            if right in self.neighbours(left)
        )

    @property
    def components(self) -> tuple[frozenset[str], ...]:
        """Return the connected parts, in FROM order; more than one only where a CROSS JOIN says so."""
        parts: list[frozenset[str]] = []
        for alias in self.aliases:
            if not any(alias in part for part in parts):
                parts.append(self._reachable(alias, frozenset(self.aliases)))
        return tuple(parts)

    def is_connected(self, subset: Collection[str]) -> bool:
        """Tell whether the relations of a non-empty subset reach each other inside it."""
        inside = frozenset(subset)
        return bool(inside) and self._reachable(min(inside), inside) == inside

    def connected_subsets(self) -> Iterator[frozenset[str]]:
        """Yield every connected subset once, smaller ones first, in FROM order. At most 2ⁿ of them; n is at most 8."""
        place = {alias: position for position, alias in enumerate(self.aliases)}
        near = [sum(1 << place[other] for other in self.neighbours(alias)) for alias in self.aliases]
        for level in connected_levels(near):
            for members in sorted(map(positions, level)):
                yield frozenset(self.aliases[position] for position in members)

    @property
    def shape(self) -> str:
        """Name the shape: single, chain, star, cycle, clique, tree, cyclic or disconnected."""
        count, degrees = len(self.aliases), sorted(len(self.neighbours(alias)) for alias in self.aliases)
        if len(self.components) > 1:
            return "disconnected"
        if count == 1:
            return "single"
        if sum(degrees) == 2 * (count - 1):
            return "chain" if degrees[-1] <= 2 else "star" if degrees[-1] == count - 1 else "tree"
        if degrees[0] == count - 1:
            return "clique"
        return "cycle" if degrees[-1] == 2 else "cyclic"

    def _reachable(self, start: str, inside: frozenset[str]) -> frozenset[str]:
        reached = frozenset((start,))
        while grown := inside.intersection(self.neighbours_of(reached)):
            reached |= grown
        return reached


def _connects(pair: tuple[str, ...], joined: Collection[str], alias: str) -> bool:
    left, right = pair
    return (left == alias and right in joined) or (right == alias and left in joined)
