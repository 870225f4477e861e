"""What a plan costs, whichever strategy made it: what `dppick` minimizes, of steps as they are in the plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.join_sizes import MemberSizes
from plait.optimizer.options import ProbeCosts
from plait.optimizer.pick.best_order import StepCost
from plait.optimizer.pick.set_sizes import SetSizes
from plait.optimizer.pick.step_costs import Joined, Probe, step_cost
from plait.plan.conditions import Joining, in_order, joining
from plait.plan.model import KeyColumn, Member, Place, Plan, ProbeTree, Step, is_routed
from plait.plan.traversals import conditions_on, path_members
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
    return sum(edge.cost(costs) for edge in edge_costs(plan, statistics, costs))


def edge_costs(plan: Plan, statistics: Statistics, costs: ProbeCosts) -> Iterator[EdgeCost]:
    """Yield the cost of every step, parents first."""
    cardinality = Cardinality(statistics=statistics)
    members = MemberSizes(stores=plan.stores, cardinality=cardinality)
    for tree in plan.trees:
        arriving = {"": members.rows(tree.start) * cardinality.pace(members.of(tree.start))}
        for steps in _ways(tree):
            joins = _pairs(plan, tree.start, steps)
            path = path_members(tree.start, steps)
            sizes = SetSizes(path, [members.of(member) for member in path], joins, cardinality)
            before, edge = 1, ""
            for step in steps:
                if step.edge not in arriving:
                    probe = _probe(plan, step, before, sizes, joins, members, path)
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


def _ways(tree: ProbeTree) -> Iterator[tuple[Step, ...]]:
    """Yield the paths of a tree from its start to each of its ends."""
    for steps, step in tree.walk():
        if not step.children:
            yield (*steps, step)


def _pairs(plan: Plan, start: Member, steps: tuple[Step, ...]) -> dict[tuple[int, int], Joining]:
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


def _probe(
    plan: Plan,
    step: Step,
    before: int,
    sizes: SetSizes,
    joins: dict[tuple[int, int], Joining],
    members: MemberSizes,
    path: tuple[Member, ...],
) -> Probe:
    """Return the step that adds relations to the first `before` of a path."""
    store, after = plan.store(step.member.store), before + len(step.members)
    joined, unit = (1 << before) - 1, (1 << after) - (1 << before)
    return Probe(
        rows=sizes.size(unit),
        joins=tuple(
            Joined(left=members.of(path[left]), right=members.of(path[right]), place=right - before, on=on)
            for (left, right), on in joins.items()
            if left < before <= right < after
        ),
        copies=1 if is_routed(store, step) else store.parallelism,
        growth=sizes.growth(joined, unit),
    )


__all__ = ["EdgeCost", "edge_costs", "plan_cost"]
