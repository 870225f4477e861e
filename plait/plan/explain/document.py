"""EXPLAIN as JSON: the plan by name, for programs that show or compare plans.

It is not what checkpoints hold (`plait.plan.codec` is): it repeats what can be derived and rounds estimates.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, TypeAlias

from typing_extensions import assert_never

from plait.plan.expected import Solution
from plait.plan.explain import closings
from plait.plan.explain.costs import Comparison, PlanCost, expected_cost
from plait.plan.explain.explanation import Explanation
from plait.plan.explain.groups import groups_of
from plait.plan.explain.run_counts import Measured
from plait.plan.explain.sharing import Sharing, sharing_of
from plait.plan.model import Member, Output, Plan, Probed, ProbeTree, Step, Store, is_routed
from plait.plan.rules import Arrive, Keep, Probe, Receive, Rule, rules
from plait.plan.traversals import kept_stores, probe_tuples_estimate
from plait.query.predicates import Band, Conjunction, Equality, by_kind

Json: TypeAlias = dict[str, Any]


def to_json(shown: Explanation) -> str:
    """Return the explanation as indented JSON."""
    return json.dumps(_document(shown), ensure_ascii=False, indent=2) + "\n"


def _document(shown: Explanation) -> Json:
    plan, part = shown.plan, shown.part
    sharing, starts = sharing_of(plan), {tree.start for tree in part.trees}
    kept = kept_stores(plan)
    return {
        "strategy": plan.strategy,
        "notes": list(shown.notes),
        "solution": None if plan.solution is None else _solution(plan.solution),
        "estimate": {
            "probe_tuples": rounded(probe_tuples_estimate(plan)),
            "stored_rows": rounded(plan.stored_rows_estimate),
            **cost_document(expected_cost(plan)),
        },
        "comparison": None if shown.comparison is None else _comparison(shown.comparison),
        "measured": None if shown.measured is None else _measured(shown.measured),
        "closing": [closings.document(closing) for closing in shown.closings],
        "streams_by_rank": list(plan.ranks),
        "groups": [
            {"queries": list(group.queries), "relations": [_member(member) for member in group.members]}
            for group in groups_of(part)
        ],
        "stores": [_store(plan, store, store.id in kept, sharing) for store in part.stores],
        "trees": [_tree(plan, tree, sharing) for tree in part.trees],
        "rules": [
            {"store": of_store.store, "rules": [_rule(rule) for rule in of_store.rules]} for of_store in rules(part)
        ],
        "queries": [_query(query, sharing, starts) for query in part.queries],
    }


def _solution(solution: Solution) -> Json:
    return {
        "solver": solution.solver,
        "objective": rounded(solution.objective),
        "bound": rounded(solution.bound),
        "gap": rounded(solution.gap),
    }


def cost_document(cost: PlanCost) -> Json:
    """Return what a plan costs."""
    return {
        "probe_tuples_per_s": rounded(cost.probe_tuples_per_s),
        "stored_rows": rounded(cost.stored_rows),
        "stored_bytes": rounded(cost.stored_bytes),
        "steps": cost.steps,
        "stores": cost.stores,
        "intermediate_stores": cost.intermediates,
    }


def _comparison(comparison: Comparison) -> Json:
    return {
        "plans": [{"strategy": other.strategy, **cost_document(other)} for other in comparison.others],
        "assumed": list(comparison.assumed),
    }


def _measured(measured: Measured) -> Json:
    return {
        "batch": measured.batch,
        "batches": measured.batches,
        "probe_tuples_per_s": rounded(measured.probe_tuples_per_s),
        "sampled_tuples": measured.sampled,
        "edges": {
            count.edge: {
                "probe_tuples": count.probe_tuples,
                "event_time_us": count.span_us,
                "probe_tuples_per_s": rounded(count.per_s),
            }
            for count in measured.edges
        },
        "stores": {count.store: {"rows": count.rows, "bytes": count.bytes} for count in measured.stores},
    }


def _store(plan: Plan, store: Store, kept: bool, sharing: Sharing) -> Json:
    use = sharing.stores.get(store.id)
    expected = next((estimate for estimate in plan.stored if estimate.store == store.id), None)
    return {
        "id": store.id,
        "source": store.source,
        "kind": "table" if store.is_table else "stream" if store.intermediate is None else "intermediate",
        "parts": [] if store.intermediate is None else [_member(part) for part in store.intermediate.parts],
        "window_us": store.window_us,
        "kept": kept,
        "coming": store.id in plan.coming,
        "filled_by": [] if use is None else list(use.filled_by),
        "used_by": [] if use is None else list(use.queries),
        "estimate": {
            "rows": None if expected is None else rounded(expected.rows),
            "bytes": None if expected is None else rounded(expected.bytes),
        },
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


def _tree(plan: Plan, tree: ProbeTree, sharing: Sharing) -> Json:
    return {
        "start": _member(tree.start),
        "outputs": [_output(output) for output in tree.outputs],
        "steps": [_step(plan, step, sharing) for step in tree.children],
    }


def _step(plan: Plan, step: Step, sharing: Sharing) -> Json:
    store = plan.store(step.member.store)
    return {
        "edge": step.edge,
        "member": _member(step.member),
        "parts": [_member(part) for part in step.parts],
        **_predicates(step.predicates),
        "routed": is_routed(store, step),
        "estimate": {
            "probe_tuples": rounded(step.estimate.probe_tuples),
            "results": rounded(step.estimate.results),
            "probe_tuples_per_s": rounded(step.estimate.probe_tuples_per_s),
            "results_per_s": rounded(step.estimate.results_per_s),
        },
        "queries": sorted(sharing.needs[step.edge]),
        "counted": step.is_counted,
        "outputs": [_output(output) for output in step.outputs],
        "fills": [fill.store for fill in step.fills],
        "steps": [_step(plan, child, sharing) for child in step.children],
    }


def _predicates(predicates: Conjunction[Probed]) -> Json:
    kinds = by_kind(predicates)
    return {
        "equalities": [_sides(equality) for equality in kinds.equalities],
        "bands": [{**_sides(band), "low": band.low, "high": band.high} for band in kinds.bands],
        "residuals": [
            {
                "predicate": residual.text,
                "operands": [{"position": place.at, "column": place.name} for place in residual.operands],
            }
            for residual in kinds.residuals
        ],
    }


def _sides(predicate: Equality[Probed] | Band[Probed]) -> Json:
    return {
        "position": predicate.left.at,
        "probe_key": predicate.left.name,
        "store_key": predicate.right.name,
    }


def _output(output: Output) -> Json:
    return {
        "query": output.query,
        "positions": dict(output.positions),
        "only": [
            {
                "position": residual.position,
                "selection": None if residual.selection is None else residual.selection.sql,
                "window_us": residual.window_us,
            }
            for residual in output.residual_filters
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
                **_predicates(rule.predicates),
                "send": list(rule.send),
                "emit": list(rule.emit),
                "keep": list(rule.keep),
            }
        case _:
            assert_never(rule)


def _query(query: str, sharing: Sharing, starts: Collection[Member]) -> Json:
    return {
        "name": query,
        "orders": [
            {
                "relations": list(order.aliases),
                "units": [list(unit) for unit in order.units],
                "estimate": {"probe_tuples_per_s": rounded(order.probe_tuples_per_s)},
                "steps": [{"edge": shared.step.edge, "shared_with": list(shared.others)} for shared in order.steps],
            }
            for order in sharing.orders[query]
            if order.path[0] in starts
        ],
    }


def rounded(number: float | None) -> float | None:
    """Return six significant digits: more would be noise, and would differ where sums are taken in another order."""
    return None if number is None else float(f"{number:.6g}")
