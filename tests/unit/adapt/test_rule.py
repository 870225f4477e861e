"""A plan changes once for every shift of the data that lasts, and not for noise or what swings faster than a cycle."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from plait.adapt.rule import NO_MEMORY, Memory, Outlook, Rule, Verdict, consider

RULE = Rule(horizon_s=30.0)


def decided(
    costs: Sequence[dict[str, float]],
    *,
    rule: Rule = RULE,
    change_cost: float = 0.0,
    told: Callable[[str, float], float] = lambda plan, cost: cost,
) -> list[str]:
    """Return the plan in force after each cycle. `costs`: of each plan in it, `told` as they are forecast; the
    strategy wants the one that is told to be cheapest. What is in force is measured as it is.
    """
    running, before, memory, found = next(iter(costs[0])), None, NO_MEMORY, []
    for cycle, real in enumerate(costs):
        forecast = {plan: cost if plan == running else told(plan, cost) for plan, cost in real.items()}
        wanted = min(forecast, key=lambda plan: forecast[plan])
        verdict, memory = consider(
            Outlook(
                cycle=cycle,
                running=running,
                running_cost=forecast[running],
                wanted=wanted,
                wanted_cost=forecast[wanted],
                change_cost=change_cost,
                measured=real[running],
                before_cost=None if before is None else real[before],
            ),
            rule,
            memory,
        )
        if verdict.action != "keep":
            before, running = running, verdict.plan
        found.append(running)
    return found


def changes(plans: list[str]) -> int:
    return sum(one != other for one, other in pairwise(plans))


@pytest.mark.parametrize(("after", "cycles"), [(95.0, 5), (92.0, 3), (80.0, 2), (10.0, 2)])
def test_a_step_that_lasts_is_followed_once_and_the_sooner_the_larger_it_is_but_never_at_once(
    after: float, cycles: int
) -> None:
    plans = decided([{"a": 100.0, "b": 200.0}] * 5 + [{"a": 100.0, "b": after}] * 20)
    waited = 5 + cycles - 1
    assert (plans[:waited], plans[waited:]) == (["a"] * waited, ["b"] * (25 - waited))


@pytest.mark.parametrize("every", [2, 3, 8])
def test_bursts_of_one_cycle_change_nothing_however_large_they_are(every: int) -> None:
    quiet, burst = {"a": 100.0, "b": 110.0}, {"a": 100_000.0, "b": 110.0}
    assert changes(decided([burst if cycle % every == every - 1 else quiet for cycle in range(100)])) == 0


def test_a_burst_of_one_cycle_takes_no_change_back() -> None:
    quiet, burst = {"a": 100.0, "b": 60.0}, {"a": 100.0, "b": 100_000.0}
    plans = decided([quiet] * 3 + [burst] + [quiet] * 20)
    assert plans.index("b") == 1
    assert changes(plans) == 1


def test_a_ramp_is_followed_once_when_it_has_gone_past_the_margin() -> None:
    plans = decided([{"a": 100.0 + 2 * cycle, "b": 160.0 - 2 * cycle} for cycle in range(60)])
    assert changes(plans) == 1
    assert 15 <= plans.index("b") <= 20


def test_what_swings_from_cycle_to_cycle_changes_nothing() -> None:
    swinging = [{"a": 100.0 + 30 * (-1) ** cycle, "b": 100.0 - 30 * (-1) ** cycle} for cycle in range(100)]
    assert changes(decided(swinging)) == 0


def test_what_swings_within_a_cycle_is_the_same_for_both_and_changes_nothing() -> None:
    assert changes(decided([{"a": 100.0, "b": 99.5}] * 50)) == 0


@pytest.mark.parametrize(("changes", "cycles"), [(0, 1), (1, 2), (2, 4), (3, 6)])
def test_a_gain_that_lasts_is_taken_later_where_plans_were_restless_but_not_missed(changes: int, cycles: int) -> None:
    memory, waited = Memory(changes=tuple(range(changes))), 0
    for cycle in range(3, 40):
        seen = Outlook(cycle=cycle, running="a", running_cost=100.0, wanted="b", wanted_cost=90.0)
        verdict, memory = consider(seen, RULE, memory)
        if verdict.action == "take":
            break
        waited += 1
    assert waited == cycles


@pytest.mark.parametrize("seed", range(20))
def test_noise_does_not_make_equal_plans_change_places(seed: int) -> None:
    rng = random.Random(seed)
    noisy = [{plan: 100.0 * rng.gauss(1.0, 0.03) for plan in "abc"} for _ in range(300)]
    assert changes(decided(noisy)) <= 3


def test_a_small_gain_is_taken_where_there_is_little_noise_and_not_where_there_is_much() -> None:
    def noisy(seed: int, noise: float) -> list[str]:
        rng = random.Random(seed)
        return decided([{"a": 100.0 * rng.gauss(1.0, noise), "b": 98.5 * rng.gauss(1.0, noise)} for _ in range(40)])

    assert all(noisy(seed, 0.002)[-1] == "b" for seed in range(20))
    assert sum(noisy(seed, 0.03)[-1] == "b" for seed in range(20)) <= 10


@pytest.mark.parametrize("seed", range(10))
def test_slow_swings_are_followed_with_at_most_one_change_for_each(seed: int) -> None:
    rng = random.Random(seed)
    swinging = [
        {plan: (100.0 if cycle // 20 % 2 == place else 200.0) * rng.gauss(1.0, 0.03) for place, plan in enumerate("ab")}
        for cycle in range(200)
    ]
    plans = decided(swinging)
    assert changes(plans) <= 9 * 1.1
    best = [min(costs.values()) for costs in swinging]
    assert sum(costs[plan] for costs, plan in zip(swinging, plans, strict=True)) <= 1.1 * sum(best)


def test_a_change_must_earn_what_it_costs_within_the_horizon() -> None:
    costs = [{"a": 100.0, "b": 80.0}] * 10
    assert changes(decided(costs, change_cost=20.0 * RULE.horizon_s)) == 0
    assert changes(decided(costs, change_cost=10.0 * RULE.horizon_s)) == 1


def test_a_change_that_turns_out_worse_is_taken_back_and_remembered() -> None:
    costs = [{"a": 100.0, "b": 150.0}] * 150
    plans = decided(costs, told=lambda plan, cost: cost / 3 if plan == "b" else cost)
    assert plans[:4] == ["a", "b", "b", "a"]
    assert plans[4:60] == ["a"] * 56
    # It is tried again when it has been forgotten, not before.
    assert 2 <= plans.count("b") <= 2 * (1 + 150 // RULE.remember)


def test_a_change_is_not_taken_back_when_everything_has_become_dearer() -> None:
    costs = [{"a": 100.0, "b": 50.0}] * 3 + [{"a": 1_000.0, "b": 500.0}] * 10
    assert decided(costs)[-1] == "b"


def test_a_change_that_is_worse_than_forecast_but_still_gains_stays() -> None:
    costs = [{"a": 100.0, "b": 80.0}] * 20
    plans = decided(costs, told=lambda plan, cost: cost / 2 if plan == "b" else cost)
    assert plans[1] == plans[-1] == "b"


def test_it_says_why() -> None:
    def told(wanted: str, cost: float, memory: Memory = NO_MEMORY) -> Verdict:
        seen = Outlook(cycle=9, running="a", running_cost=100.0, wanted=wanted, wanted_cost=cost)
        return consider(seen, RULE, memory)[0]

    assert told("a", 100.0).why == "it is in force"
    assert told("b", 99.0).why == "gains too little"
    assert told("b", 80.0).why == "has to last"
    lasted = Memory(cycles=1, evidence=0.08)
    assert told("b", 20.0).why == "has to last"
    assert told("b", 20.0, lasted).why == "gains enough"
    assert told("b", 20.0, lasted).gain == 80.0 * RULE.horizon_s
    assert told("b", 20.0, replace(lasted, refused=(("b", 9),))).why == "turned out worse before"
    assert told("b", 20.0, replace(lasted, refused=(("b", 8),))).why == "gains enough"
    restless = replace(lasted, changes=(7, 8, 9))
    assert told("b", 20.0, restless).why == "has to last"
    assert told("b", 20.0, replace(restless, evidence=0.8)).why == "gains enough"


def test_nothing_to_gain_from_a_plan_that_costs_nothing() -> None:
    seen = Outlook(cycle=0, running="a", running_cost=0.0, wanted="b", wanted_cost=0.0)
    assert consider(seen, RULE)[0].action == "keep"


def gaining(shares: Sequence[float], memory: Memory = NO_MEMORY) -> tuple[list[str], Memory]:
    """Return what is done while another plan is to gain such shares of a cost, and what is remembered."""
    actions = []
    for cycle, share in enumerate(shares):
        seen = Outlook(cycle=cycle, running="a", running_cost=100.0, wanted="b", wanted_cost=100.0 * (1 - share))
        verdict, memory = consider(seen, RULE, memory)
        actions.append(verdict.action)
    return actions, memory


def test_a_burst_that_adds_up_to_enough_in_one_cycle_has_to_last_all_the_same() -> None:
    lasted = Memory(evidence=0.12)
    assert gaining([0.9], lasted)[0] == ["keep"]
    assert gaining([0.9, 0.9], lasted)[0] == ["keep", "take"]


def test_a_shift_of_the_data_is_no_noise() -> None:
    quiet = Memory(noise=0.004, usual=0.001)
    _, shifted = gaining([0.6], quiet)
    assert shifted.noise <= quiet.noise * 1.3
    # So a small gain after it is taken as one before it is.
    assert gaining([0.03] * 6, replace(shifted, evidence=0.0, cycles=0))[0].index("take") <= 3


def test_what_gains_a_little_less_than_the_least_is_never_taken_however_even_gains_are() -> None:
    actions, memory = gaining([RULE.least * 1.2] * 400)
    assert set(actions) == {"keep"}
    assert memory.noise > 0


def test_evidence_outlasts_a_cycle_in_which_less_is_gained_but_not_one_in_which_nothing_is() -> None:
    little = gaining([0.01], Memory(evidence=0.1))[1].evidence
    assert 0 < little < 0.1
    assert gaining([-0.01], Memory(evidence=0.1))[1].evidence == 0


def test_what_another_plan_gains_is_measured_from_where_it_begins() -> None:
    actions, memory = gaining([0.6, 0.6])
    assert actions == ["keep", "take"]
    settled = gaining([0.01] * 3, replace(memory, unjudged=None))[1]
    assert settled.noise < memory.noise
