"""The join graph of a query: relations are nodes, two are neighbours if a predicate compares them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from plait.query.masks import connected_levels, positions


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryGraph:
    """Aliases in FROM order, and the pairs of them that predicates compare.

    >>> graph = QueryGraph(aliases=("r", "s", "t"), pairs=(("r", "s"), ("s", "t")))
    >>> graph.neighbours("r"), graph.shape
    (('s',), 'chain')
    >>> [sorted(subset) for subset in graph.connected_subsets()]
    [['r'], ['s'], ['t'], ['r', 's'], ['s', 't'], ['r', 's', 't']]
    """

    aliases: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    _near: Mapping[str, frozenset[str]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        near: dict[str, set[str]] = {alias: set() for alias in self.aliases}
        for left, right in self.pairs:
            near[left].add(right)
            near[right].add(left)
        object.__setattr__(self, "_near", {alias: frozenset(others) for alias, others in near.items()})

    def neighbours(self, alias: str) -> tuple[str, ...]:
        """Return the relations compared with this one, in FROM order."""
        return self.neighbours_of((alias,))

    def neighbours_of(self, joined: Collection[str]) -> tuple[str, ...]:
        """Return the relations outside `joined` that are compared with one inside, in FROM order."""
        near = frozenset[str]().union(*(self._near[alias] for alias in joined))
        return tuple(alias for alias in self.aliases if alias in near and alias not in joined)

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
