"""Who needs what in a plan."""

from __future__ import annotations

from plait.optimizer.assemble.build import build
from plait.optimizer.examples import example_options, example_query, example_statistics
from plait.optimizer.probe_orders import ProbeOrder
from plait.plan.explain import explain
from plait.plan.explain.sharing import sharing_of
from plait.plan.model import Plan
from plait.plan.validate import validate

OPTIONS = example_options("ilp")
Q = example_query("q", "r.a = s.a", "s.b = t.b")
P = example_query("p", "s.b = t.b", "t.c = u.c")


def order(query: str, *units: str, fills: bool = False) -> ProbeOrder:
    return ProbeOrder(query=query, units=tuple(tuple(unit) for unit in units), fills=fills)


def made() -> Plan:
    """Only r reads s⋈t, for q, whose own orders from s and t go another way than those that fill the store."""
    orders = (
        order("q", "r", "st"),
        order("q", "s", "r", "t"),
        order("q", "t", "s", "r"),
        order("q", "s", "t", fills=True),
        order("q", "t", "s", fills=True),
        order("p", "s", "t", "u"),
        order("p", "t", "u", "s"),
        order("p", "u", "t", "s"),
    )
    found = build((Q, P), orders, example_statistics(OPTIONS), OPTIONS)
    validate(found, (Q, P))
    return found


def test_steps_that_fill_a_store_are_needed_by_those_who_read_it() -> None:
    found = sharing_of(made())
    assert found.needs["s→t"] == {"p", "q"}, "p takes the step itself, q reads what it fills"
    assert found.needs["s→t→u"] == {"p"}
    assert found.needs["t→s"] == {"q"}
    steps = {shared.step.edge: shared.others for each in found.orders["p"] for shared in each.steps}
    assert steps["s→t"] == ("q",)
    assert steps["s→t→u"] == ()


def test_a_store_says_who_fills_reads_and_needs_it() -> None:
    plan = made()
    (store,) = [store.id for store in plan.stores if store.intermediate is not None]
    use = sharing_of(plan).stores[store]
    assert (use.filled_by, use.probed_by, use.queries) == (("s→t", "t→s"), (f"r→{store}",), ("q",))


def test_orders_name_intermediate_stores_as_one_unit() -> None:
    found = sharing_of(made())
    assert [each.units for each in found.orders["q"]] == [
        (("r",), ("s", "t")),
        (("s",), ("r",), ("t",)),
        (("t",), ("s",), ("r",)),
    ]
    assert "r → s⋈t: " in explain(made())


def test_lists_of_many_queries_are_cut_short_in_text() -> None:
    queries = tuple(example_query(f"q{number:02}", "r.a = s.a") for number in range(12))
    orders = tuple(order(query.name, *units) for query in queries for units in (("r", "s"), ("s", "r")))
    text = explain(build(queries, orders, example_statistics(OPTIONS), OPTIONS))
    assert "r→s shared with q01, q02, q03, q04, q05, q06 and 5 more" in text
