"""EXPLAIN as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from plait.plan.explain import wording
from plait.plan.explain.sharing import QueryOrder, orders_of
from plait.plan.model import Member, Plan, ProbeTree, Step, Store, is_routed
from plait.plan.relations import store_name
from plait.plan.rules import Arrive, Keep, Probe, Receive, Rule, rules
from plait.plan.walks import kept_stores, probe_tuples_estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A line with lines below it."""

    text: str
    below: tuple[Branch, ...] = ()


def to_text(plan: Plan) -> str:
    """Return the plan as indented text."""
    summary = [
        f"Plan by strategy '{plan.strategy}': {wording.plural(len(plan.queries), 'query', 'queries')}, "
        f"{wording.plural(len(plan.stores), 'store')}, {wording.plural(len(plan.trees), 'probe tree')}",
        f"Expected: {wording.count(probe_tuples_estimate(plan))} probe tuples per window, "
        f"{wording.count(plan.stored_rows_estimate)} stored rows",
    ]
    kept = kept_stores(plan)
    sections = (
        Branch(text="Stores", below=tuple(_store(plan, store, store.id in kept) for store in plan.stores)),
        Branch(text="Probe trees", below=tuple(_tree(plan, tree) for tree in plan.trees)),
        Branch(text="Rules", below=tuple(_rules(plan))),
        Branch(text="Queries", below=tuple(_query(plan, query) for query in plan.queries)),
    )
    lines = list(summary)
    for section in sections:
        if section.below:
            lines += ["", section.text, *_draw(section.below)]
    return "\n".join(lines) + "\n"


def _draw(branches: Iterable[Branch], indent: str = "") -> Iterator[str]:
    listed = list(branches)
    for branch in listed:
        last = branch is listed[-1]
        yield f"{indent}{'└─' if last else '├─'} {branch.text}"
        yield from _draw(branch.below, indent + ("   " if last else "│  "))


def _store(plan: Plan, store: Store, kept: bool) -> Branch:
    kind = "table" if store.is_table else f"stream, {wording.window(store.window_us)}"
    if not kept:
        kind = "stream, passed through since no step probes it"
    if store.intermediate is not None:
        kind = f"intermediate result, {wording.window(store.window_us)}"
    of = "" if store.source in (None, store.id) else f" of {wording.name(store.source or '')}"
    keeps = [wording.requirement(store, need) for need in store.requirements]
    if store.intermediate is not None:
        keeps = [wording.joined(store.intermediate, plan)]
    facts = [
        ("keeps" if kept else "passes", keeps),
        ("columns", [", ".join(wording.name(column) for column in store.columns)] if store.columns else []),
        ("keys", [", ".join(wording.key(key, store) for key in store.keys)] if store.keys else []),
        ("indexes", ["; ".join(wording.keys(store, index) for index in store.indexes)] if store.indexes else []),
    ]
    return Branch(
        text=f"{store_name(store.id)}: {kind}{of}, {wording.placement(store)}",
        below=tuple(Branch(text=f"{label:<8}{text}") for label, texts in facts for text in texts),
    )


def _tree(plan: Plan, tree: ProbeTree) -> Branch:
    return Branch(
        text=wording.described(tree.start, plan.store(tree.start.store))
        + _ends(wording.taker(output, (tree.start,)) for output in tree.outputs),
        below=tuple(_step(plan, (tree.start,), step) for step in tree.children),
    )


def _step(plan: Plan, path: tuple[Member, ...], step: Step) -> Branch:
    store = plan.store(step.member.store)
    return Branch(
        text=f"{step.edge}: {_probe(plan, path, step)}, in {_reach(store, step)}; {wording.flow(step.estimate)}"
        + _ends(wording.taker(output, (*path, *step.members)) for output in step.outputs)
        + _kept(fill.store for fill in step.fills),
        below=tuple(_step(plan, (*path, *step.members), child) for child in step.children),
    )


def _probe(plan: Plan, path: tuple[Member, ...], step: Step | Probe) -> str:
    """Return whom a step probes and on what."""
    store = plan.store(step.member.store)
    stores = tuple(plan.store(member.store) for member in path)
    equalities = " and ".join(wording.match(path, stores, store, step.members, match) for match in step.matches)
    target = wording.described(step.member, store)
    return f"{target} on {equalities}" if equalities else f"{target}, every row"


def _reach(store: Store, step: Step) -> str:
    return "one partition" if is_routed(store, step) else f"all {wording.plural(store.parallelism, 'partition')}"


def _ends(queries: Iterable[str]) -> str:
    names = ", ".join(queries)
    return f" ⇒ {names}" if names else ""


def _kept(stores: Iterable[str]) -> str:
    names = ", ".join(map(store_name, stores))
    return f" ⇒ kept in {names}" if names else ""


def _rules(plan: Plan) -> Iterator[Branch]:
    for of_store in rules(plan):
        store = plan.store(of_store.store)
        yield Branch(
            text=store_name(of_store.store),
            below=tuple(Branch(text=_rule(plan, store, rule)) for rule in of_store.rules),
        )


def _rule(plan: Plan, store: Store, rule: Rule) -> str:
    match rule:
        case Keep():
            return "keep what arrives and meets a requirement"
        case Receive():
            return f"from {rule.edge}: keep what was found"
        case Arrive():
            return f"on arrival of {wording.described(rule.member, store)}: {_then(rule.send, rule.emit)}"
        case Probe():
            return f"from {rule.edge}: probe {_probe(plan, rule.path, rule)}; {_then(rule.send, rule.emit, rule.keep)}"


def _then(send: tuple[str, ...], emit: tuple[str, ...], keep: tuple[str, ...] = ()) -> str:
    parts = [f"keep in {', '.join(map(store_name, keep))}"] if keep else []
    parts += [f"send to {', '.join(send)}"] if send else []
    parts += [f"emit to {', '.join(emit)}"] if emit else []
    return "; ".join(parts)


def _query(plan: Plan, query: str) -> Branch:
    return Branch(text=query, below=tuple(_order(order) for order in orders_of(plan, query)))


def _order(order: QueryOrder) -> Branch:
    cost = f"{wording.count(order.probe_tuples)} probe tuples" if order.steps else "a result by itself"
    return Branch(
        text=f"{' → '.join(order.aliases)}: {cost}",
        below=tuple(
            Branch(text=f"{shared.step.edge} shared with {', '.join(shared.others)}")
            for shared in order.steps
            if shared.others
        ),
    )
