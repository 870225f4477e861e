"""EXPLAIN as a Mermaid flowchart: one box per probe tree, cylinders for stores, arrows to the queries.

Intermediate stores stand beside the trees; dotted arrows lead to them from where they are filled, and from them to the
steps that read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from plait.plan.explain import predicate_wording, wording
from plait.plan.explain.costs import expected_cost
from plait.plan.explain.explanation import Explanation
from plait.plan.explain.wording import Pace, pace_for
from plait.plan.model import Fill, Output, Plan, ProbeTree, Step, Store
from plait.plan.relations import member_name, store_name

_ENTITIES = str.maketrans({character: f"#{ord(character)};" for character in '#"`<>&;\\|'} | {"\n": " "})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    """A node that has been drawn, and what goes on from it. `store`: the intermediate store it reads, if it does."""

    id: str
    outputs: tuple[Output, ...]
    children: tuple[Step, ...]
    fills: tuple[Fill, ...] = ()
    store: str | None = None


def to_mermaid(shown: Explanation) -> str:
    """Return the plan as a Mermaid flowchart."""
    plan = shown.part
    pace = pace_for(expected_cost(shown.plan).probe_tuples_per_s)
    stores = {store.id: f"s{number}" for number, store in enumerate(_intermediates(plan))}
    lines = ["flowchart LR"]
    for position, query in enumerate(plan.queries):
        lines.append(f"  q{position}([{_label(query)}])")
    for store in _intermediates(plan):
        lines.append(f"  {stores[store.id]}[({_label(*_kept(plan, store))})]")
    for position, tree in enumerate(plan.trees):
        lines += _tree(plan, f"t{position}", tree, pace, stores)
    if not plan.queries:
        lines.append(f"  q0([{_label('no queries')}])")
    return "\n".join(lines) + "\n"


def _intermediates(plan: Plan) -> list[Store]:
    return [store for store in plan.stores if store.intermediate is not None]


def _kept(plan: Plan, store: Store) -> tuple[str, ...]:
    joined = "" if store.intermediate is None else predicate_wording.joined(store.intermediate, plan)
    rows = next((estimate.rows for estimate in plan.stored if estimate.store == store.id), None)
    return store_name(store.id), joined, f"{wording.estimated_count(rows)} rows"


def _tree(plan: Plan, prefix: str, tree: ProbeTree, pace: Pace, stores: Mapping[str, str]) -> Iterator[str]:
    start = _Node(id=f"{prefix}n0", outputs=tree.outputs, children=tree.children)
    nodes = [start]
    yield f"  subgraph {prefix}[{_label('arriving: ' + member_name(tree.start))}]"
    yield f"    {start.id}[{_label(wording.member_text(tree.start, plan.store(tree.start.store)))}]"
    waiting = [start]
    while waiting:
        parent = waiting.pop(0)
        for step in parent.children:
            node = _Node(
                id=f"{prefix}n{len(nodes)}",
                outputs=step.outputs,
                children=step.children,
                fills=step.fills,
                store=step.member.store if step.parts else None,
            )
            nodes.append(node)
            waiting.append(node)
            yield f"    {node.id}[({_label(*_target(plan, step))})]"
            yield f"    {parent.id} -->|{_label(step.edge, *_flow(step, pace))}| {node.id}"
    yield "  end"
    for node in nodes:
        yield from (f"  {node.id} --> q{plan.queries.index(output.query)}" for output in node.outputs)
        yield from (f"  {node.id} -.->|{_label('kept')}| {stores[fill.store]}" for fill in node.fills)
        if node.store is not None:
            yield f"  {stores[node.store]} -.->|{_label('read')}| {node.id}"


def _target(plan: Plan, step: Step) -> tuple[str, str]:
    store = plan.store(step.member.store)
    on = wording.keys(store, step.index) or ("a residual predicate" if step.predicates else "every row")
    probed = member_name(step.member) + wording.selection(step.member.selection)
    return probed, f"on {on}, {wording.sent_to(store, step)}"


def _flow(step: Step, pace: Pace) -> tuple[str, str]:
    estimate = step.estimate
    return pace.rate(estimate.probe_tuples_per_s, "probe tuples"), pace.rate(estimate.results_per_s, "results")


def _label(*lines: str) -> str:
    """Return a quoted label; what Mermaid would read as syntax or Markdown becomes an entity code."""
    return '"' + "<br/>".join(line.translate(_ENTITIES) for line in lines) + '"'
