"""How many rows and distinct keys the members of a plan stand for, those of intermediate stores included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from plait.errors import InvalidPlanError
from plait.optimizer.cardinality import Cardinality, Extent, Operand
from plait.optimizer.cost import join_size
from plait.plan.conditions import Place
from plait.plan.model import Intermediate, Member, Step, Store
from plait.plan.walks import split_part


def extent_of(store: Store, window_us: int | None) -> Extent:
    """Return the extent of the store of a source."""
    if store.source is None:
        raise InvalidPlanError(f"store '{store.id}' is an intermediate result; expected the store of a source")
    return Extent(source=store.source, is_table=store.is_table, window_us=window_us)


@dataclass(slots=True)
class _Thetas:
    """Theta predicates between two relations."""

    spans: list[tuple[float | None, float | None]] = field(default_factory=list)
    formulas: int = 0


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

    def _operand(self, member: Member, name: str) -> Operand:
        return self.of(member), self.store(member.store).key(name)

    def _joins(self, equalities: Iterable[tuple[Place, Place]], members: Sequence[Member]) -> Iterator[float]:
        """Yield the selectivity between each two of `members` that `equalities` (by place among them) compare."""
        between: dict[tuple[int, int], list[tuple[Operand, Operand]]] = {}
        for (left, left_key), (right, right_key) in equalities:
            pair = self._operand(members[left], left_key), self._operand(members[right], right_key)
            between.setdefault((left, right), []).append(pair)
        return (self.cardinality.join(pairs) for pairs in between.values())

    def size(self, intermediate: Intermediate) -> float:
        """Return |⋈ parts|."""
        parts = intermediate.parts
        equal = self._joins(
            (((pair.left, pair.left_key), (pair.right, pair.right_key)) for pair in intermediate.joined), parts
        )
        thetas: dict[tuple[int, ...], _Thetas] = {}
        for span in intermediate.spans:
            thetas.setdefault((span.left, span.right), _Thetas()).spans.append((span.low, span.high))
        for check in intermediate.checks:
            pair = tuple(sorted({part for part, _ in check.operands}))
            thetas.setdefault(pair, _Thetas()).formulas += 1
        return join_size((self.rows(part) for part in parts), (*equal, *self._thetas(thetas)))

    def _thetas(self, between: Mapping[tuple[int, ...], _Thetas]) -> Iterator[float]:
        return (self.cardinality.theta(found.spans, found.formulas) for _, found in sorted(between.items()))

    def added_rows(self, step: Step) -> float:
        """Return the rows of what a step probes."""
        found = self.store(step.member.store).intermediate
        return self.rows(step.member) if found is None else self.size(found)

    def selectivities(self, path: tuple[Member, ...], step: Step) -> Iterable[float]:
        """Return the selectivities between the relations of `path` and those that a step adds."""
        store = self.store(step.member.store)
        found = []
        for match in step.matches:
            part, name = split_part(store, match.store_key)
            found.append(((match.position, match.probe_key), (len(path) + part, name)))
        thetas: dict[tuple[int, ...], _Thetas] = {}
        for span in step.spans:
            pair = (span.position, len(path) + split_part(store, span.store_key)[0])
            thetas.setdefault(pair, _Thetas()).spans.append((span.low, span.high))
        for check in step.checks:
            places = {len(path) + split_part(store, name)[0] if at is None else at for at, name in check.operands}
            thetas.setdefault(tuple(sorted(places)), _Thetas()).formulas += 1
        return (*self._joins(found, (*path, *step.members)), *self._thetas(thetas))
