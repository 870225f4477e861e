"""What a plan costs, whichever strategy made it: what `dppick` minimizes, of steps as they are in the plan."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.join_sizes import MemberSizes
from plait.optimizer.options import ProbeCosts
from plait.optimizer.pick.best_order import StepCost
from plait.optimizer.pick.set_sizes import Pairs, SetSizes
from plait.optimizer.pick.step_costs import Joined, Probe, step_cost
from plait.plan.conditions import Joining, in_order, joining, turned
from plait.plan.model import KeyColumn, Member, Place, Plan, ProbeTree, Step, is_routed
from plait.plan.traversals import conditions_on, intermediates, path_members
from plait.query.masks import Mask
from plait.query.predicates import Predicate, operands_of
from plait.stats.model import Statistics


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeCost:
    """What a step of a plan is forecast to cost: `tuples` come in per second of event time, and each costs `step`.
    `copies`: how many partitions each is sent to; `fills`: how many intermediate stores keep what it finds; `answers`:
    whether what it finds are results of a query, which every plan finds.
    """

    edge: str
    tuples: float
    step: StepCost
    copies: int
    fills: int
    answers: bool

    def cost(self, costs: ProbeCosts) -> float:
        """Return its cost per second, with keeping what it fills intermediate stores with."""
        return self.tuples * (self.step.price + self.fills * self.step.growth * costs.keep)


def plan_cost(plan: Plan, statistics: Statistics, costs: ProbeCosts) -> float:
    """Return what a plan costs per second of event time, in the unit of `costs`."""
    steps = sum(edge.cost(costs) for edge in edge_costs(plan, statistics, costs))
    return steps + costs.of_stores(len(intermediates(plan)), statistics.batch_s)


def edge_costs(plan: Plan, statistics: Statistics, costs: ProbeCosts) -> Iterator[EdgeCost]:
    """Yield the cost of every step, parents first."""
    cardinality = Cardinality(statistics=statistics)
    members = MemberSizes(stores=plan.stores, cardinality=cardinality)
    sizes: dict[_Relations, SetSizes] = {}
    for tree, ways in _ways_of(plan):
        arriving = {"": members.rows(tree.start) * cardinality.pace(members.of(tree.start))}
        for way in ways:
            of = sizes.get(way.relations)
            if of is None:
                relations = way.relations
                of = sizes[relations] = SetSizes(
                    relations.members,
                    [members.of(each) for each in relations.members],
                    [plan.rank(each) for each in relations.members],
                    relations.pairs,
                    cardinality,
                )
            before, edge = 1, ""
            for step in way.steps:
                if step.edge not in arriving:
                    probe = _probe(plan, step, before, of, members, way)
                    cost = step_cost(probe, cardinality, costs)
                    yield EdgeCost(
                        edge=step.edge,
                        tuples=arriving[edge],
                        step=cost,
                        copies=probe.copies,
                        fills=len(step.fills),
                        answers=bool(step.outputs),
                    )
                    arriving[step.edge] = arriving[edge] * cost.growth
                before, edge = before + len(step.members), step.edge


@dataclass(frozen=True, slots=True, eq=False)
class _Relations:
    """The relations of a path in an order that does not depend on it, and what joins them: one for all paths over the
    same.
    """

    members: tuple[Member, ...]
    pairs: Pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """A path of a tree from its start to one of its ends. `places`: of its relations among `relations`; `joins`: what
    joins two of them, by their positions on the path.
    """

    steps: tuple[Step, ...]
    path: tuple[Member, ...]
    relations: _Relations
    places: tuple[int, ...]
    joins: Pairs

    def mask(self, first: int, after: int) -> Mask:
        """Return the set of the relations from one position on the path up to another."""
        return sum(1 << place for place in self.places[first:after])


@lru_cache(maxsize=8)  # plans are weighed again and again, on other statistics
def _ways_of(plan: Plan) -> tuple[tuple[ProbeTree, tuple[_Way, ...]], ...]:
    known: dict[Hashable, _Relations] = {}
    return tuple((tree, tuple(_way(plan, tree.start, steps, known) for steps in _ends(tree))) for tree in plan.trees)


def _ends(tree: ProbeTree) -> Iterator[tuple[Step, ...]]:
    """Yield the paths of a tree from its start to each of its ends."""
    for steps, step in tree.walk():
        if not step.children:
            yield (*steps, step)


def _way(plan: Plan, start: Member, steps: tuple[Step, ...], known: dict[Hashable, _Relations]) -> _Way:
    path, joins = path_members(start, steps), _pairs(plan, start, steps)
    ordered = sorted(range(len(path)), key=lambda position: path[position].order)
    places = [0] * len(path)
    for place, position in enumerate(ordered):
        places[position] = place
    pairs: dict[tuple[int, int], Joining] = {}
    for (left, right), on in joins.items():
        one, other = places[left], places[right]
        pairs[min(one, other), max(one, other)] = on if one < other else turned(on)
    relations = _Relations(tuple(path[position] for position in ordered), pairs)
    content = relations.members, tuple(sorted(pairs.items(), key=lambda item: item[0]))
    return _Way(
        steps=steps, path=path, relations=known.setdefault(content, relations), places=tuple(places), joins=joins
    )


def _pairs(plan: Plan, start: Member, steps: tuple[Step, ...]) -> Pairs:
    """Return what joins the relations of a path, by their positions."""
    path = path_members(start, steps)
    between: dict[tuple[int, int], list[Predicate[Place[int]]]] = {}
    for predicate in conditions_on(plan, steps):
        left, right = sorted({place.at for place in operands_of(predicate)})
        between.setdefault((left, right), []).append(predicate)

    def key(place: Place[int]) -> KeyColumn:
        return plan.store(path[place.at].store).key(place.name)

    return {
        (left, right): in_order(joining(each, left, key) for each in parts)
        for (left, right), parts in sorted(between.items(), key=lambda item: item[0])
    }


def _probe(plan: Plan, step: Step, before: int, sizes: SetSizes, members: MemberSizes, way: _Way) -> Probe:
    """Return the step that adds relations to the first `before` of a path."""
    store, after = plan.store(step.member.store), before + len(step.members)
    joined, unit, start = way.mask(0, before), way.mask(before, after), way.mask(0, 1) & sizes.origins
    return Probe(
        rows=sizes.size(unit),
        joins=tuple(
            Joined(left=members.of(way.path[left]), right=members.of(way.path[right]), place=right - before, on=on)
            for (left, right), on in way.joins.items()
            if left < before <= right < after
        ),
        copies=1 if is_routed(store, step) else store.parallelism,
        growth=sizes.growth(joined, unit, start),
    )


__all__ = ["EdgeCost", "edge_costs", "plan_cost"]
