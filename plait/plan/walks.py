"""Ways through a plan that several readers of it share."""

from __future__ import annotations

from collections.abc import Iterator

from plait.plan.model import Member, Output, Plan, Step


def members(plan: Plan) -> Iterator[Member]:
    """Yield every member, once per place where it stands."""
    for tree in plan.trees:
        yield tree.start
        yield from (step.member for _, step in tree.walk())


def probes(plan: Plan) -> Iterator[tuple[tuple[Member, ...], Step]]:
    """Yield (members by position, step that probes next) for every step."""
    for tree in plan.trees:
        for path, step in tree.walk():
            yield (tree.start, *(before.member for before in path)), step


def kept_stores(plan: Plan) -> frozenset[str]:
    """Return the ids of the stores whose tuples somebody may ask for: those that are probed and those that keep all."""
    probed = {step.member.store for _, step in probes(plan)}
    return frozenset(store.id for store in plan.stores if store.id in probed or store.keeps_all)


def endings(plan: Plan) -> Iterator[tuple[Member, tuple[Step, ...], Output]]:
    """Yield (starting member, steps, output) for every probe order of every query."""
    for tree in plan.trees:
        yield from ((tree.start, (), output) for output in tree.outputs)
        for path, step in tree.walk():
            yield from ((tree.start, (*path, step), output) for output in step.outputs)


def queries_behind(step: Step) -> frozenset[str]:
    """Return the queries that need this step: those that end at it or after it."""
    behind = frozenset(output.query for output in step.outputs)
    return behind.union(*(queries_behind(child) for child in step.children))


def probe_tuples_estimate(plan: Plan) -> float | None:
    """Return the estimated probe tuples of the whole plan; None if any step's is unknown."""
    estimates = [step.estimate.probe_tuples for _, step in probes(plan)]
    known = [estimate for estimate in estimates if estimate is not None]
    return sum(known) if len(known) == len(estimates) else None
