"""EXPLAIN as a Mermaid flowchart: one box per probe tree, cylinders for stores, arrows to the queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from plait.plan.explain import wording
from plait.plan.model import Output, Plan, ProbeTree, Step, is_routed
from plait.plan.relations import member_name

_ENTITIES = str.maketrans({character: f"#{ord(character)};" for character in '#"`<>&;\\|'} | {"\n": " "})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    """A node that has been drawn, and what goes on from it."""

    id: str
    outputs: tuple[Output, ...]
    children: tuple[Step, ...]


def to_mermaid(plan: Plan) -> str:
    """Return the plan as a Mermaid flowchart."""
    lines = ["flowchart LR"]
    for position, query in enumerate(plan.queries):
        lines.append(f"  q{position}([{_label(query)}])")
    for position, tree in enumerate(plan.trees):
        lines += _tree(plan, f"t{position}", tree)
    if not plan.queries:
        lines.append(f"  q0([{_label('no queries')}])")
    return "\n".join(lines) + "\n"


def _tree(plan: Plan, prefix: str, tree: ProbeTree) -> Iterator[str]:
    start = _Node(id=f"{prefix}n0", outputs=tree.outputs, children=tree.children)
    nodes = [start]
    yield f"  subgraph {prefix}[{_label('arriving: ' + member_name(tree.start))}]"
    yield f"    {start.id}[{_label(wording.described(tree.start, plan.store(tree.start.store)))}]"
    waiting = [start]
    while waiting:
        parent = waiting.pop(0)
        for step in parent.children:
            node = _Node(id=f"{prefix}n{len(nodes)}", outputs=step.outputs, children=step.children)
            nodes.append(node)
            waiting.append(node)
            yield f"    {node.id}[({_label(*_target(plan, step))})]"
            yield f"    {parent.id} -->|{_label(step.edge, wording.flow(step.estimate))}| {node.id}"
    yield "  end"
    for node in nodes:
        yield from (f"  {node.id} --> q{plan.queries.index(output.query)}" for output in node.outputs)


def _target(plan: Plan, step: Step) -> tuple[str, str]:
    store = plan.store(step.member.store)
    on = wording.keys(store, tuple(sorted({match.store_key for match in step.matches}))) or "every row"
    reach = "one partition" if is_routed(store, step) else f"all {wording.plural(store.parallelism, 'partition')}"
    return member_name(step.member) + wording.selection(step.member.selection), f"on {on}, {reach}"


def _label(*lines: str) -> str:
    """Return a quoted label; what Mermaid would read as syntax or Markdown becomes an entity code."""
    return '"' + "<br/>".join(line.translate(_ENTITIES) for line in lines) + '"'
