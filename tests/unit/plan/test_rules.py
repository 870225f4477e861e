from __future__ import annotations

from plait.plan.rules import Arrive, Keep, Probe, rules
from tests.unit.optimizer.queries import planned, query

QUERIES = (
    query("p", {"r": "r", "s": "s", "t": "t"}, ["r.a = s.a", "s.b = t.b"]),
    query("q", {"r": "r", "s": "s"}, ["r.a = s.a"]),
    query("single", {"t": "t"}),
)


def test_a_store_keeps_then_sends_what_arrives_then_probes_what_comes_in() -> None:
    made = planned(QUERIES, "fixed")
    of_s = next(of_store for of_store in rules(made) if of_store.store == "s").rules
    keep, arrive, *probes = of_s
    assert isinstance(keep, Keep)
    assert keep.requirements == made.store("s").requirements
    assert isinstance(arrive, Arrive)
    assert (arrive.send, arrive.emit) == (("s→r",), ())
    assert [(rule.edge, rule.send, rule.emit) for rule in probes if isinstance(rule, Probe)] == [
        ("r→s", ("r→s→t",), ("q",)),
        ("t→s", ("t→s→r",), ()),
    ]


def test_a_query_over_one_stream_is_emitted_on_arrival() -> None:
    of_t = next(of_store for of_store in rules(planned(QUERIES, "fixed")) if of_store.store == "t").rules
    arrive = of_t[1]
    assert isinstance(arrive, Arrive)
    assert (arrive.send, arrive.emit) == (("t→s",), ("single",))


def test_a_table_keeps_and_probes_but_nothing_arrives() -> None:
    made = planned((query("q", {"r": "r", "n": "n"}, ["r.a = n.a"], tables={"n"}),))
    of_n = next(of_store for of_store in rules(made) if of_store.store == "n").rules
    assert [type(rule) for rule in of_n] == [Keep, Probe]


def test_every_edge_has_exactly_one_probe_rule_at_the_store_it_leads_to() -> None:
    made = planned(QUERIES)
    found = {
        rule.edge: of_store.store for of_store in rules(made) for rule in of_store.rules if isinstance(rule, Probe)
    }
    assert found == {step.edge: step.member.store for tree in made.trees for _, step in tree.walk()}
