"""Who needs what: the probe orders of every query, and whom it shares their steps and stores with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from plait.plan.explain.costs import total
from plait.plan.model import Member, Output, Plan, Step
from plait.plan.traversals import endings, fillings, intermediates, path_members, probes, units_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedStep:
    """One step of a probe order; `others`: the other queries that need it, sorted."""

    step: Step
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOrder:
    """A probe order in the aliases of its query. A unit of several aliases is an intermediate store.

    `path` are the relations by position, `output` how the query takes what the order ends in.
    """

    units: tuple[tuple[str, ...], ...]
    steps: tuple[SharedStep, ...]
    path: tuple[Member, ...]
    output: Output

    @property
    def aliases(self) -> tuple[str, ...]:
        """The relations one by one."""
        return tuple(alias for unit in self.units for alias in unit)

    @property
    def probe_tuples_per_s(self) -> float | None:
        """Return the estimate for all steps, shared or not; None if any step's is unknown."""
        return total(shared.step.estimate.probe_tuples_per_s for shared in self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreUse:
    """An intermediate store: the edges that fill it, those that probe it, and the queries that could not do without."""

    filled_by: tuple[str, ...]
    probed_by: tuple[str, ...]
    queries: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """Everything about who needs what in a plan. `needs`: the queries behind every edge."""

    needs: Mapping[str, frozenset[str]]
    orders: Mapping[str, tuple[QueryOrder, ...]]
    stores: Mapping[str, StoreUse]


def sharing_of(plan: Plan) -> Sharing:
    """Find out who needs what."""
    needs, users = _needs(plan)
    return Sharing(needs=needs, orders=_orders(plan, needs), stores=_uses(plan, users))


def _needs(plan: Plan) -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
    """Return the queries behind every edge, and behind every intermediate store.

    A step is needed by the queries that end at it or after it, and by those that need an intermediate store filled
    there. What fills a store may itself probe intermediate stores, always smaller ones, so the largest come first.
    """
    stores = [store.id for store, _ in intermediates(plan)]
    users: dict[str, frozenset[str]] = {store: frozenset() for store in stores}
    needs = _behind(plan, users)
    for store in reversed(stores):
        probing = (step.edge for _, step in probes(plan) if step.member.store == store)
        users[store] = frozenset[str]().union(*(needs[edge] for edge in probing))
        needs = _behind(plan, users)
    return needs, users


def _behind(plan: Plan, users: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    all_behind: dict[str, frozenset[str]] = {}

    def visit(step: Step) -> frozenset[str]:
        behind = frozenset(output.query for output in step.outputs)
        behind = behind.union(*(users[fill.store] for fill in step.fills), *(visit(child) for child in step.children))
        all_behind[step.edge] = behind
        return behind

    for tree in plan.trees:
        for step in tree.children:
            visit(step)
    return all_behind


def _orders(plan: Plan, needs: Mapping[str, frozenset[str]]) -> dict[str, tuple[QueryOrder, ...]]:
    orders_of: dict[str, list[QueryOrder]] = {query: [] for query in plan.queries}
    for start, steps, output in endings(plan):
        orders_of[output.query].append(
            QueryOrder(
                units=units_of(steps, output.aliases),
                steps=tuple(
                    SharedStep(step=step, others=tuple(sorted(needs[step.edge] - {output.query}))) for step in steps
                ),
                path=path_members(start, steps),
                output=output,
            )
        )
    return {query: tuple(sorted(orders, key=lambda order: order.aliases)) for query, orders in orders_of.items()}


def _uses(plan: Plan, users: Mapping[str, frozenset[str]]) -> dict[str, StoreUse]:
    filled = [(fill.store, steps[-1].edge) for _, steps, fill in fillings(plan)]
    probed = [(step.member.store, step.edge) for _, step in probes(plan)]
    return {
        store: StoreUse(
            filled_by=tuple(sorted(edge for name, edge in filled if name == store)),
            probed_by=tuple(sorted(edge for name, edge in probed if name == store)),
            queries=tuple(sorted(queries)),
        )
        for store, queries in users.items()
    }
