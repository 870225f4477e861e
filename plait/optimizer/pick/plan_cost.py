"""What a plan costs, whichever strategy made it: what `dppick` minimizes, of steps as they are in the plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.join_sizes import MemberSizes, join_size
from plait.optimizer.options import ProbeCosts
from plait.optimizer.pick.best_order import StepCost
from plait.optimizer.pick.step_costs import Joined, Probe, step_cost
from plait.plan.conditions import in_order, joining
from plait.plan.model import KeyColumn, Member, Place, Plan, Step, is_routed
from plait.plan.step_names import StepName, named_steps
from plait.plan.traversals import conditions_of_step, path_members
from plait.query.predicates import Predicate, operands_of
from plait.stats.model import Statistics


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeCost:
    """What a step of a plan is forecast to cost: `tuples` come in per second of event time, and each costs `step`."""

    edge: str
    tuples: float
    step: StepCost
    keeps: int

    def cost(self, costs: ProbeCosts) -> float:
        """Return its cost per second, with keeping what it fills intermediate stores with."""
        return self.tuples * (self.step.price + self.keeps * self.step.growth * costs.keep)


def plan_cost(plan: Plan, statistics: Statistics, costs: ProbeCosts) -> float:
    """Return what a plan costs per second of event time, in the unit of `costs`."""
    return sum(edge.cost(costs) for edge in edge_costs(plan, statistics, costs))


def edge_costs(plan: Plan, statistics: Statistics, costs: ProbeCosts) -> Iterator[EdgeCost]:
    """Yield the cost of every step, parents first."""
    cardinality = Cardinality(statistics=statistics)
    sizes = MemberSizes(stores=plan.stores, cardinality=cardinality)
    measured = {StepName(step.before, step.after): step.matching * step.matches for step in statistics.steps}
    names = dict(named_steps(plan)) if measured else {}
    for tree in plan.trees:
        arriving = {"": sizes.rows(tree.start) * cardinality.pace(sizes.of(tree.start))}
        for steps, step in tree.walk():
            path = path_members(tree.start, steps)
            growth = measured.get(names[step.edge]) if measured else None
            probe = _probe(path, step, plan, sizes, growth)
            cost = step_cost(probe, cardinality, costs)
            tuples = arriving[steps[-1].edge if steps else ""]
            arriving[step.edge] = tuples * cost.growth
            yield EdgeCost(edge=step.edge, tuples=tuples, step=cost, keeps=len(step.fills))


def _probe(path: tuple[Member, ...], step: Step, plan: Plan, sizes: MemberSizes, growth: float | None) -> Probe:
    store, members = plan.store(step.member.store), (*path, *step.members)
    rows = sizes.added_rows(step)
    if growth is None:
        required = conditions_of_step(store, step, len(path))
        growth = join_size((rows,), sizes.selectivities(required, members).values())
    return Probe(
        rows=rows,
        joins=tuple(_joins(path, step, plan, sizes, members)),
        copies=1 if is_routed(store, step) else store.parallelism,
        growth=growth,
    )


def _joins(
    path: tuple[Member, ...], step: Step, plan: Plan, sizes: MemberSizes, members: tuple[Member, ...]
) -> Iterator[Joined]:
    pairs: dict[tuple[int, int], list[Predicate[Place[int]]]] = {}
    for predicate in conditions_of_step(plan.store(step.member.store), step, len(path)):
        left, right = sorted({place.at for place in operands_of(predicate)})
        pairs.setdefault((left, right), []).append(predicate)

    def key(place: Place[int]) -> KeyColumn:
        return plan.store(members[place.at].store).key(place.name)

    for (left, right), parts in sorted(pairs.items(), key=lambda item: item[0]):
        yield Joined(
            left=sizes.of(members[left]),
            right=sizes.of(members[right]),
            place=right - len(path),
            on=in_order(joining(each, left, key) for each in parts),
        )


__all__ = ["EdgeCost", "edge_costs", "plan_cost"]
