"""Steps are named by what they join, so that a measurement outlives the plan it was made under."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from plait.optimizer import STRATEGIES, plan
from plait.optimizer.examples import example_options, example_query, example_statistics
from plait.plan import step_names
from plait.plan.conditions import Conditions
from plait.plan.model import Member, Plan
from plait.plan.step_names import named_steps
from plait.query.model import Query, SourceExpression

CHAIN = example_query("q", "r.a = s.a", "s.b = t.b", "t.c = u.c")


def planned(*queries: Query, strategy: str = "fixed") -> Plan:
    options = example_options(strategy)  # type: ignore[arg-type]
    return plan(queries, example_statistics(options), options)


def test_a_step_has_one_name_whichever_relation_began_and_in_whichever_order() -> None:
    names = dict(named_steps(planned(CHAIN)))
    assert names["r→s→t"].before == names["s→r→t"].before
    assert names["r→s→t"] == names["s→r→t"]
    assert names["s→r"] != names["r→s"]
    assert len({name.after for edge, name in names.items() if edge.count("→") == 3}) == 1


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_every_strategy_begins_and_ends_where_the_others_do(strategy: str) -> None:
    names = dict(named_steps(planned(CHAIN, strategy=strategy)))
    whole = {step.after for step in dict(named_steps(planned(CHAIN))).values()} & {
        each.after for each in names.values()
    }
    if strategy == "independent":  # its stores are the query's own
        assert not whole
    else:
        assert any(name.startswith("r⋈s⋈t⋈u~") for name in whole)


def test_aliases_and_the_order_of_from_do_not_matter() -> None:
    mixed = replace(CHAIN, relations=tuple(reversed(CHAIN.relations)))
    assert set(dict(named_steps(planned(mixed))).values()) & set(dict(named_steps(planned(CHAIN))).values())
    assert {each.after for each in dict(named_steps(planned(mixed))).values()} >= {
        dict(named_steps(planned(CHAIN)))["r→s→t→u"].after
    }


def test_windows_selections_and_predicates_tell_steps_apart() -> None:
    plain = example_query("q", "r.a = s.a")
    r, s = plain.relations
    narrower = replace(plain, relations=(replace(r, window_us=5), s))
    selected = replace(plain, relations=(r, replace(s, selections=(SourceExpression(sql="`b` > 1", columns=("b",)),))))
    other = example_query("q", "r.a = s.b")
    names = [dict(named_steps(planned(each)))["r→s"] for each in (plain, narrower, selected, other)]
    assert len(set(names)) == 4


def test_steps_of_trees_that_stay_are_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first, named = planned(CHAIN), list[object]()
    names = dict(named_steps(first))
    naming = step_names.joined_name

    def counted(members: Sequence[Member], joined_on: Conditions) -> str:
        named.append(members[0].store)
        return naming(members, joined_on)

    monkeypatch.setattr(step_names, "joined_name", counted)
    changed = replace(first.trees[0])
    second = replace(first, trees=(changed, *first.trees[1:]))
    assert dict(named_steps(second)) == names
    assert set(named) == {changed.start.store}
    assert dict(named_steps(replace(second))) == names
    assert len(named) == 1 + sum(1 for _ in changed.steps())
