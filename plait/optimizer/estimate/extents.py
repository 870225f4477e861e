"""How many rows and distinct keys the members of a plan stand for, those of intermediate stores included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from plait.errors import InvalidPlanError
from plait.optimizer.estimate.cardinality import Cardinality, Extent
from plait.optimizer.estimate.cost import join_size
from plait.plan.conditions import Between, Checked, Conditions, Spanned, together
from plait.plan.model import Intermediate, KeyColumn, Member, Step, Store
from plait.plan.walks import conditions_in, conditions_of_step


def extent_of(store: Store, window_us: int | None) -> Extent:
    """Return the extent of the store of a source."""
    if store.source is None:
        raise InvalidPlanError(f"store '{store.id}' is an intermediate result; expected the store of a source")
    return Extent(source=store.source, is_table=store.is_table, window_us=window_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extents:
    """What the members of a plan stand for."""

    stores: tuple[Store, ...]
    cardinality: Cardinality

    def store(self, store_id: str) -> Store:
        """Return the store with this id."""
        return next(store for store in self.stores if store.id == store_id)

    def of(self, member: Member) -> Extent:
        """Return the extent of a relation."""
        return extent_of(self.store(member.store), member.window_us)

    def rows(self, member: Member) -> float:
        """Return |R| after its selection."""
        return self.cardinality.selected_rows(self.of(member), member.selection)

    def streams(self, members: Iterable[Member]) -> int:
        """Return how many of these relations are streams."""
        return sum(not self.store(member.store).is_table for member in members)

    def endless(self, members: Iterable[Member]) -> int:
        """Return how many of these relations are streams that are kept for ever."""
        return sum(member.window_us is None and not self.store(member.store).is_table for member in members)

    def pace(self, member: Member) -> float:
        """Return how many times per second a stream brings as many rows as its extent counts."""
        return self.cardinality.pace(self.of(member))

    def _selectivities(self, conditions: Conditions, members: Sequence[Member]) -> Iterator[float]:
        """Yield the selectivity between each two of `members` that `conditions` (by place among them) compare."""
        found: dict[tuple[int, int], list[Between]] = {}
        for pair in conditions.equalities:
            (left, mine), (right, theirs) = sorted(pair)
            keys = ((self._key(members[left], mine), self._key(members[right], theirs)),)
            found.setdefault((left, right), []).append(Between(keys=keys))
        for bound in conditions.bounds:
            (left, mine), (right, theirs) = bound.left, bound.right
            span = Spanned(
                left=self._key(members[left], mine),
                right=self._key(members[right], theirs),
                low=bound.low,
                high=bound.high,
            )
            found.setdefault((left, right), []).append(Between(spans=(span,)))
        for holds in conditions.formulas:
            left, right = sorted({place for place, _ in holds.operands})
            operands = tuple((place == left, name) for place, name in holds.operands)
            checked = Checked(formula=holds.formula, operands=operands)
            found.setdefault((left, right), []).append(Between(checks=(checked,)))
        for (left, right), parts in sorted(found.items(), key=lambda item: item[0]):
            yield self.cardinality.between(self.of(members[left]), self.of(members[right]), together(parts))

    def _key(self, member: Member, name: str) -> KeyColumn:
        return self.store(member.store).key(name)

    def size(self, intermediate: Intermediate) -> float:
        """Return |⋈ parts|."""
        parts = intermediate.parts
        return join_size((self.rows(part) for part in parts), self._selectivities(conditions_in(intermediate), parts))

    def added_rows(self, step: Step) -> float:
        """Return the rows of what a step probes."""
        found = self.store(step.member.store).intermediate
        return self.rows(step.member) if found is None else self.size(found)

    def selectivities(self, path: tuple[Member, ...], step: Step) -> Iterable[float]:
        """Return the selectivities between the relations of `path` and those that a step adds."""
        found = conditions_of_step(self.store(step.member.store), step, len(path))
        return self._selectivities(found, (*path, *step.members))
