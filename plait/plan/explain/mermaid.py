"""EXPLAIN as a Mermaid flowchart: one box per probe tree, cylinders for stores, arrows to the queries.

Intermediate stores stand beside the trees; dotted arrows lead to them from where they are filled, and from them to the
steps that read them. What comes of a query by the watermark is a hexagon: rows that wait for it lead there by dotted
arrows, results that become groups by others, and from it one leads to the query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from plait.plan.explain import predicate_wording, wording
from plait.plan.explain.closings import Closing, lines
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
    closings = {closing.query: closing for closing in shown.closings}
    drawn = ["flowchart LR"]
    for position, query in enumerate(plan.queries):
        drawn.append(f"  q{position}([{_label(query)}])")
        if query in closings:
            drawn.append(f"  c{position}{{{{{_label(*lines(closings[query]))}}}}}")
            drawn.append(f"  c{position} --> q{position}")
    for store in _intermediates(plan):
        drawn.append(f"  {stores[store.id]}[({_label(*_kept(plan, store))})]")
    for position, tree in enumerate(plan.trees):
        drawn += _tree(plan, f"t{position}", tree, pace, stores, closings)
    if not plan.queries:
        drawn.append(f"  q0([{_label('no queries')}])")
    return "\n".join(drawn) + "\n"


def _intermediates(plan: Plan) -> list[Store]:
    return [store for store in plan.stores if store.intermediate is not None]


def _kept(plan: Plan, store: Store) -> tuple[str, ...]:
    joined = "" if store.intermediate is None else predicate_wording.joined(store.intermediate, plan)
    rows = next((estimate.rows for estimate in plan.stored if estimate.store == store.id), None)
    return store_name(store.id), joined, f"{wording.estimated_count(rows)} rows"


def _tree(
    plan: Plan,
    prefix: str,
    tree: ProbeTree,
    pace: Pace,
    stores: Mapping[str, str],
    closings: Mapping[str, Closing],
) -> Iterator[str]:
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
        yield from (f"  {node.id} {_result(plan, output, closings)}" for output in node.outputs)
        yield from (f"  {node.id} -.->|{_label('kept')}| {stores[fill.store]}" for fill in node.fills)
        if node.store is not None:
            yield f"  {stores[node.store]} -.->|{_label('read')}| {node.id}"
    for position in sorted({plan.queries.index(query) for query in _served(tree) if _waits(closings.get(query))}):
        yield f"  {start.id} -.->|{_label('waits')}| c{position}"


def _served(tree: ProbeTree) -> Iterator[str]:
    """Yield the queries in which rows of the starting relation take part."""
    yield from (output.query for output in tree.outputs)
    yield from (output.query for step in tree.steps() for output in step.outputs)


def _waits(closing: Closing | None) -> bool:
    return closing is not None and bool(closing.decided)


def _result(plan: Plan, output: Output, closings: Mapping[str, Closing]) -> str:
    """Return where results go: into groups of their query, or to it; where they only tell that a row has a match they
    come by the watermark too.
    """
    position, closing = plan.queries.index(output.query), closings.get(output.query)
    is_waiting = closing is not None and (closing.groups is not None or closing.only)
    return f"--> c{position}" if is_waiting else f"--> q{position}"


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
