"""EXPLAIN as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from typing_extensions import assert_never

from plait.plan.explain import wording
from plait.plan.explain.closings import Closing, lines
from plait.plan.explain.costs import expected_cost
from plait.plan.explain.explanation import Explanation
from plait.plan.explain.groups import Group, groups_of
from plait.plan.explain.predicate_wording import join_wording, joined
from plait.plan.explain.run_counts import off_by
from plait.plan.explain.sharing import QueryOrder, Sharing, sharing_of
from plait.plan.explain.summary import summary
from plait.plan.explain.wording import Pace, pace_for
from plait.plan.model import Member, Plan, ProbeTree, Step, Store
from plait.plan.relations import store_name
from plait.plan.rules import Arrive, Keep, Probe, Receive, Rule, rules
from plait.plan.traversals import kept_stores

_NAMED = 6
"""How many queries are named where a step or store serves many."""

_REASONS = 12
"""How many reasons to keep a row are told of a store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A line with lines below it."""

    text: str
    below: tuple[Branch, ...] = ()


def to_text(shown: Explanation) -> str:
    """Return the explanation as indented text."""
    text = _Text(shown)
    sections = (
        Branch(text="Queries", below=tuple(text.query(query) for query in shown.part.queries)),
        Branch(text="Closing", below=tuple(map(_closing, shown.closings))),
        Branch(text="Groups", below=tuple(map(text.group, groups_of(shown.part)))),
        Branch(text="Stores", below=tuple(text.store(store) for store in shown.part.stores)),
        Branch(text="Probe trees", below=tuple(text.tree(tree) for tree in shown.part.trees)),
        Branch(text="Rules", below=tuple(_rules(shown.part))),
    )
    written = list(summary(shown))
    for section in sections:
        if section.below:
            written += ["", section.text, *_draw(section.below)]
    return "\n".join(written) + "\n"


def _draw(branches: Iterable[Branch], indent: str = "") -> Iterator[str]:
    listed = list(branches)
    for branch in listed:
        last = branch is listed[-1]
        yield f"{indent}{'└─' if last else '├─'} {branch.text}"
        yield from _draw(branch.below, indent + ("   " if last else "│  "))


class _Text:
    """Words for the parts of one explanation."""

    def __init__(self, shown: Explanation) -> None:
        self.plan: Plan = shown.plan
        self.starts = {tree.start for tree in shown.part.trees}
        self.sharing: Sharing = sharing_of(shown.plan)
        self.pace: Pace = pace_for(expected_cost(shown.plan).probe_tuples_per_s)
        self.kept = kept_stores(shown.plan)
        self.expected = {estimate.store: estimate for estimate in shown.plan.stored}
        self.edges = {} if shown.measured is None else shown.measured.by_edge
        self.counts = {} if shown.measured is None else shown.measured.by_store

    def group(self, group: Group) -> Branch:
        """Return who shares relations that are wider than some of them take them."""
        members = (wording.member_text(member, self.plan.store(member.store)) for member in group.members)
        return Branch(
            text=f"{wording.some(group.queries, _NAMED)} share", below=tuple(Branch(text=text) for text in members)
        )

    def store(self, store: Store) -> Branch:
        """Return what a store keeps, for whom, and how it is reached."""
        kept = store.id in self.kept
        kind = "table" if store.is_table else f"stream, {wording.window(store.window_us)}"
        if not kept:
            kind = "stream, passed through since no step probes it"
        if store.intermediate is not None:
            filling = " that is being filled" if store.id in self.plan.coming else ""
            kind = f"intermediate result{filling}, {wording.window(store.window_us)}"
        of = "" if store.source in (None, store.id) else f" of {wording.name(store.source or '')}"
        facts = [
            ("keeps" if kept else "passes", self._keeps(store)),
            *self._uses(store),
            ("rows", self._rows(store)),
            ("columns", [wording.columns(store)] if store.columns else []),
            ("keys", [", ".join(wording.key(key, store) for key in store.keys)] if store.keys else []),
            ("indexes", ["; ".join(wording.keys(store, index) for index in store.indexes)] if store.indexes else []),
        ]
        return Branch(
            text=f"{store_name(store.id)}: {kind}{of}, {wording.placement(store)}",
            below=tuple(Branch(text=f"{label:<8}{text}") for label, texts in facts for text in texts),
        )

    def _keeps(self, store: Store) -> list[str]:
        if store.intermediate is not None:
            return [joined(store.intermediate, self.plan)]
        told = [wording.requirement(store, need) for need in store.requirements[:_REASONS]]
        more = len(self.plan.store(store.id).requirements) - len(told)
        return [*told, f"and for {more:,} reasons more"] if more else told

    def _uses(self, store: Store) -> Iterator[tuple[str, list[str]]]:
        use = self.sharing.stores.get(store.id)
        if use is not None:
            yield "filled", [f"by {', '.join(use.filled_by)}"]
            yield "probed", [f"by {', '.join(use.probed_by)}"] if use.probed_by else []
            yield "used", [f"by {wording.some(use.queries, _NAMED)}"] if use.queries else []

    def _rows(self, store: Store) -> list[str]:
        expected, counted = self.expected.get(store.id), self.counts.get(store.id)
        parts = []
        if expected is not None:
            parts.append(
                f"{wording.estimated_count(expected.rows)} expected ({wording.estimated_size(expected.bytes)})"
            )
        if counted is not None:
            parts.append(f"{wording.estimated_count(counted.rows)} measured ({wording.estimated_size(counted.bytes)})")
            ratio = off_by(counted.rows, None if expected is None else expected.rows)
            parts += [] if ratio is None else [wording.times(ratio)]
        return [", ".join(parts)] if parts else []

    def tree(self, tree: ProbeTree) -> Branch:
        """Return all that begins with the arrival of one relation."""
        return Branch(
            text=wording.member_text(tree.start, self.plan.store(tree.start.store))
            + _ends(wording.taker(output, (tree.start,)) for output in tree.outputs),
            below=tuple(self._step((tree.start,), step) for step in tree.children),
        )

    def _step(self, path: tuple[Member, ...], step: Step) -> Branch:
        reach = wording.sent_to(self.plan.store(step.member.store), step)
        return Branch(
            text=f"{step.edge}: {_probe(self.plan, path, step)}, in {reach}; {self._flow(step)}"
            + _ends((wording.taker(output, (*path, *step.members)) for output in step.outputs), counted=step.is_counted)
            + _kept(fill.store for fill in step.fills),
            below=tuple(self._step((*path, *step.members), child) for child in step.children),
        )

    def _flow(self, step: Step) -> str:
        expected = step.estimate.probe_tuples_per_s
        sent = self.pace.rate(expected, "probe tuples")
        counted = self.edges.get(step.edge)
        if counted is not None:
            ratio = off_by(counted, expected)
            sent += f" (measured {self.pace.count(counted)}{'' if ratio is None else ', ' + wording.times(ratio)})"
        return f"{sent}, {self.pace.rate(step.estimate.results_per_s, 'results')}"

    def query(self, query: str) -> Branch:
        """Return the probe orders of a query."""
        return Branch(text=query, below=tuple(map(self._order, self._orders(query))))

    def _orders(self, query: str) -> list[QueryOrder]:
        return [order for order in self.sharing.orders[query] if order.path[0] in self.starts]

    def _order(self, order: QueryOrder) -> Branch:
        cost = self.pace.rate(order.probe_tuples_per_s, "probe tuples") if order.steps else "a result by itself"
        filters = wording.limits(order.output, order.path)
        return Branch(
            text=f"{' → '.join('⋈'.join(unit) for unit in order.units)}: {cost}",
            below=(
                *(Branch(text=text) for shared in order.steps for text in self._shared(shared.step, shared.others)),
                *((Branch(text=f"splits off at the end: {filters}"),) if filters else ()),
            ),
        )

    def _shared(self, step: Step, others: tuple[str, ...]) -> Iterator[str]:
        if others:
            yield f"{step.edge} shared with {wording.some(others, _NAMED)}"
        if step.parts:
            yield f"{step.edge} reads intermediate store {store_name(step.member.store)}"


def _closing(closing: Closing) -> Branch:
    """Return what of a query comes by the watermark."""
    return Branch(text=closing.query, below=tuple(Branch(text=line) for line in lines(closing)))


def _probe(plan: Plan, path: tuple[Member, ...], step: Step | Probe) -> str:
    """Return whom a step probes and on what."""
    store = plan.store(step.member.store)
    condition = join_wording(plan, path, step)
    target = wording.member_text(step.member, store)
    return f"{target} on {condition}" if condition else f"{target}, every row"


def _ends(queries: Iterable[str], *, counted: bool = False) -> str:
    names = ", ".join(queries)
    return f" ⇒ {'counted for ' if counted else ''}{names}" if names else ""


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
            return f"on arrival of {wording.member_text(rule.member, store)}: {_then(rule.send, rule.emit)}"
        case Probe():
            return f"from {rule.edge}: probe {_probe(plan, rule.path, rule)}; {_then(rule.send, rule.emit, rule.keep)}"
        case _:
            assert_never(rule)


def _then(send: tuple[str, ...], emit: tuple[str, ...], keep: tuple[str, ...] = ()) -> str:
    parts = [f"keep in {', '.join(map(store_name, keep))}"] if keep else []
    parts += [f"send to {', '.join(send)}"] if send else []
    parts += [f"emit to {', '.join(emit)}"] if emit else []
    return "; ".join(parts)
