"""EXPLAIN as JSON: the plan by name, for programs that show or compare plans.

It is not what checkpoints hold (`plait.plan.codec` is): it repeats what can be derived and rounds estimates.
"""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from plait.plan.explain.sharing import orders_of
from plait.plan.model import KeyMatch, Member, Output, Plan, ProbeTree, Step, Store, is_routed
from plait.plan.rules import Arrive, Keep, Probe, Receive, Rule, rules
from plait.plan.walks import kept_stores, probe_tuples_estimate

Json: TypeAlias = dict[str, Any]


def to_json(plan: Plan) -> str:
    """Return the plan as indented JSON."""
    return json.dumps(_plan(plan), ensure_ascii=False, indent=2) + "\n"


def _plan(plan: Plan) -> Json:
    kept = kept_stores(plan)
    return {
        "strategy": plan.strategy,
        "estimate": {
            "probe_tuples": _rounded(probe_tuples_estimate(plan)),
            "stored_rows": _rounded(plan.stored_rows_estimate),
        },
        "streams_by_rank": list(plan.ranks),
        "stores": [_store(store, store.id in kept) for store in plan.stores],
        "trees": [_tree(plan, tree) for tree in plan.trees],
        "rules": [
            {"store": of_store.store, "rules": [_rule(rule) for rule in of_store.rules]} for of_store in rules(plan)
        ],
        "queries": [_query(plan, query) for query in plan.queries],
    }


def _store(store: Store, kept: bool) -> Json:
    return {
        "id": store.id,
        "source": store.source,
        "kind": "table" if store.is_table else "stream" if store.intermediate is None else "intermediate",
        "parts": [] if store.intermediate is None else [_member(part) for part in store.intermediate.parts],
        "window_us": store.window_us,
        "kept": kept,
        "parallelism": store.parallelism,
        "partition_by": list(store.partition_by),
        "columns": list(store.columns),
        "keys": [
            {"name": key.name, "expression": key.expression.sql, "type": key.type, "is_exact": key.is_exact}
            for key in store.keys
        ],
        "indexes": [list(index) for index in store.indexes],
        "requirements": [
            {"selection": need.selection.sql, "keys_not_null": list(need.keys)} for need in store.requirements
        ],
    }


def _member(member: Member) -> Json:
    return {
        "store": member.store,
        "ordinal": member.ordinal,
        "selection": member.selection.sql,
        "window_us": member.window_us,
    }


def _tree(plan: Plan, tree: ProbeTree) -> Json:
    return {
        "start": _member(tree.start),
        "outputs": [_output(output) for output in tree.outputs],
        "steps": [_step(plan, step) for step in tree.children],
    }


def _step(plan: Plan, step: Step) -> Json:
    store = plan.store(step.member.store)
    return {
        "edge": step.edge,
        "member": _member(step.member),
        "parts": [_member(part) for part in step.parts],
        "matches": _matches(step.matches),
        "routed": is_routed(store, step),
        "estimate": {
            "probe_tuples": _rounded(step.estimate.probe_tuples),
            "results": _rounded(step.estimate.results),
        },
        "outputs": [_output(output) for output in step.outputs],
        "fills": [fill.store for fill in step.fills],
        "steps": [_step(plan, child) for child in step.children],
    }


def _matches(matches: tuple[KeyMatch, ...]) -> list[Json]:
    return [
        {"position": match.position, "probe_key": match.probe_key, "store_key": match.store_key} for match in matches
    ]


def _output(output: Output) -> Json:
    return {
        "query": output.query,
        "positions": dict(output.positions),
        "only": [
            {
                "position": narrowing.position,
                "selection": None if narrowing.selection is None else narrowing.selection.sql,
                "window_us": narrowing.window_us,
            }
            for narrowing in output.narrowings
        ],
    }


def _rule(rule: Rule) -> Json:
    match rule:
        case Keep():
            return {"kind": "keep"}
        case Receive():
            return {"kind": "receive", "edge": rule.edge}
        case Arrive():
            return {
                "kind": "arrive",
                "member": _member(rule.member),
                "send": list(rule.send),
                "emit": list(rule.emit),
            }
        case Probe():
            return {
                "kind": "probe",
                "edge": rule.edge,
                "matches": _matches(rule.matches),
                "send": list(rule.send),
                "emit": list(rule.emit),
                "keep": list(rule.keep),
            }


def _query(plan: Plan, query: str) -> Json:
    return {
        "name": query,
        "orders": [
            {
                "relations": list(order.aliases),
                "steps": [{"edge": shared.step.edge, "shared_with": list(shared.others)} for shared in order.steps],
            }
            for order in orders_of(plan, query)
        ],
    }


def _rounded(number: float | None) -> float | None:
    """Return six significant digits: more would be noise, and would differ where sums are taken in another order."""
    return None if number is None else float(f"{number:.6g}")
