"""What the next cycle will be like comes from the series, from the averages where these are silent, and from what was
declared before both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from plait.adapt.forecast import FEWEST_PROBES, Outlook, forecast
from plait.optimizer.examples import example_options
from plait.query.model import DeclaredStatistics, Stream, Table
from plait.state.model import Manifest, SourceProgress
from plait.stats.cycles import Cycles, Series, SeriesKind, from_totals
from tests.unit.state.builders import described, layout

KEY = "#k bigint `a`"
SECOND = 1_000_000
LAST = Outlook(trends=False)


def series(kind: SeriesKind, name: Sequence[str], *counts: Sequence[int]) -> Series:
    return Series(kind=kind, name=tuple(name), counts=tuple(map(tuple, counts)), earlier=tuple(0 for _ in counts))


def manifest(*found: Series, cycles: int = 20) -> Manifest:
    progress = tuple(SourceProgress(source=name, rows=10_000, tau_min=0, tau_max=1_000 * SECOND) for name in ("r", "s"))
    kept = Cycles(number=cycles, batches=(1,) * cycles, seconds=(10.0,) * cycles, series=found)
    return Manifest(batch=0, watermark_us=None, plan="p", sources=progress, cycles=kept)


def test_rates_go_on_along_their_trend() -> None:
    rows = [1_000 + 100 * cycle for cycle in range(20)]
    seen = manifest(series("source", ["r"], rows, [10 * SECOND] * 20))
    rates = {source.source: source.rate_rows_per_s for source in forecast((), seen).sources}
    assert rates["r"] == pytest.approx(300.0, rel=1e-3)
    assert rates["s"] == pytest.approx(10.0, rel=1e-3)  # the average of all rows
    assert forecast((), seen, LAST).of("r").rate_rows_per_s == pytest.approx(290.0)
    assert forecast((), seen, Outlook(ahead=6)).of("r").rate_rows_per_s == pytest.approx(350.0, rel=1e-3)


def test_a_declared_rate_stays() -> None:
    declared = Stream(name="r", time="ts", window_us=SECOND, declared=DeclaredStatistics(rate_rows_per_s=7.0))
    seen = manifest(series("source", ["r"], [500] * 20, [SECOND] * 20))
    assert forecast((declared,), seen).of("r").rate_rows_per_s == 7.0


def test_a_selectivity_that_has_changed_is_forgotten_where_an_average_would_not_forget() -> None:
    pairs, matches = [100_000] * 20, [10_000] * 10 + [100] * 10
    seen = manifest(series("join", ["r", KEY, "s", KEY], pairs, matches))
    found = forecast((), seen).selectivity(("r", KEY), ("s", KEY))
    assert found == pytest.approx(0.001, rel=0.2)


def test_a_predicate_that_seldom_holds_is_not_taken_never_to_hold_for_some_cycles_without_a_match() -> None:
    matches = [0, 5, 0, 0, 5] * 8 + [0] * 4
    seen = manifest(series("join", ["r", KEY, "s", KEY], [10_000] * 44, matches), cycles=44)
    for trends in (False, True):
        told = forecast((), seen, Outlook(trends=trends)).selectivity(("r", KEY), ("s", KEY))
        assert told == pytest.approx(2e-4, rel=0.35)
    # Of a frequent one the same silence says that something has changed.
    seen = manifest(series("join", ["r", KEY, "s", KEY], [10_000] * 44, [500] * 40 + [0] * 4), cycles=44)
    assert forecast((), seen).selectivity(("r", KEY), ("s", KEY)) < 1e-3


def test_cycles_that_compared_too_few_pairs_are_put_together_and_none_at_all_leave_the_average() -> None:
    seen = manifest(series("join", ["r", KEY, "s", KEY], [100_000] * 15 + [10] * 5, [1_000] * 15 + [5] * 5))
    last = forecast((), seen, Outlook(trends=False)).selectivity(("r", KEY), ("s", KEY))
    assert last == pytest.approx(1_025 / 100_050)
    old = manifest(from_totals("join", ("r", KEY, "s", KEY), (1_000_000, 500)))
    assert forecast((), old).selectivity(("r", KEY), ("s", KEY)) == pytest.approx(0.0005, rel=0.01)


def test_a_predicate_that_never_held_is_rare_not_impossible() -> None:
    seen = manifest(series("join", ["r", KEY, "s", KEY], [100_000] * 20, [0] * 20))
    assert forecast((), seen).selectivity(("r", KEY), ("s", KEY)) == pytest.approx(0.5 / 2_000_000)


def test_of_steps_the_share_that_matches_dies_down_and_the_matches_go_on() -> None:
    probes = [1_000] * 20
    matched = [100 + 20 * cycle for cycle in range(20)]
    matches = [count * (2 + cycle) for cycle, count in enumerate(matched)]
    (step,) = forecast((), manifest(series("step", ["r", "r⋈s"], probes, matched, matches))).steps
    assert 0.48 < step.matching <= 0.5
    assert step.matches == pytest.approx(22.0, rel=1e-3)
    assert (step.before, step.after) == ("r", "r⋈s")


def test_shares_stay_between_none_and_all_and_a_match_has_a_partner() -> None:
    falling = [max(1_000 - 100 * cycle, 0) for cycle in range(20)]
    (step,) = forecast((), manifest(series("step", ["r", "r⋈s"], [1_000] * 20, falling, falling))).steps
    assert 0.0 <= step.matching < 0.01
    assert step.matches == 1.0


def test_steps_that_were_not_taken_of_late_have_their_average_and_rare_ones_are_unknown() -> None:
    known = manifest(
        from_totals("step", ("r", "r⋈s"), (1_000, 250, 500)),
        from_totals("step", ("s", "r⋈s"), (FEWEST_PROBES - 1, 1, 1)),
    )
    (step,) = forecast((), known).steps
    assert (step.matching, step.matches) == (0.25, 2.0)


def test_without_a_manifest_only_what_is_declared_is_known() -> None:
    options = example_options("greedy")
    assert forecast(options.sources, None).steps == ()
    assert forecast(options.sources, None).of("r").rate_rows_per_s == 100.0


def test_of_a_table_that_a_query_wants_whole_the_rows_that_were_read_are_known_unless_declared() -> None:
    whole, some = (replace(layout(has_tau=False), selections=each) for each in (("`x` > 0", "true"), ("`x` > 0",)))
    stored = (("whole", whole, 5), ("whole", whole, 11), ("some", some, 7), ("said", whole, 16), ("stream", whole, 3))
    buckets = tuple(described(store=store, layout=shape, rows=rows) for store, shape, rows in stored)
    said = Table(name="said", declared=DeclaredStatistics(rows=20.0))
    sources = (Table(name="whole"), Table(name="some"), said, Stream(name="stream", time="ts"))
    found = forecast(sources, replace(manifest(), buckets=buckets))
    assert [found.of(source.name).rows for source in sources] == [16.0, None, 20.0, None]
    assert found.of("r").rows == 10_000.0


def test_where_every_query_has_a_store_of_a_table_the_fullest_one_tells_its_rows() -> None:
    whole = replace(layout(has_tau=False), selections=("true",))
    buckets = tuple(described(store=f"{query}/t", layout=whole, rows=rows) for query, rows in (("p", 9), ("q", 8)))
    assert forecast((Table(name="t"),), replace(manifest(), buckets=buckets)).of("t").rows == 9.0


def test_a_little_of_each_of_many_cycles_says_as_much_as_a_lot_of_one() -> None:
    few = FEWEST_PROBES // 3
    seen = manifest(series("step", ["r", "r⋈s"], [few] * 20, [few // 2] * 20, [few] * 20))
    (step,) = forecast((), seen).steps
    assert (step.matching, step.matches) == (pytest.approx(0.5), pytest.approx(2.0))
    assert forecast((), manifest(series("step", ["r", "r⋈s"], [few] * 20, [0] * 20, [0] * 20))).steps[0].matching > 0.0


def test_a_lot_of_long_ago_does_not_become_new_by_a_little_of_today() -> None:
    few = FEWEST_PROBES // 4
    probes, matched = [1_000, *[0] * 17, few, few], [900] + [0] * 19
    (step,) = forecast((), manifest(series("step", ["r", "r⋈s"], probes, matched, matched))).steps
    # What was counted on average 18.7 cycles ago, when it comes to as many probes as make a measurement.
    assert step.weight < 901 * 0.6**18


def test_what_was_counted_long_ago_weighs_less() -> None:
    def counted(*probes: int) -> Manifest:
        return manifest(series("step", ["r", "r⋈s"], probes, [each // 2 for each in probes], probes))

    lately, long_ago = counted(*[0] * 10, *[100] * 10), counted(*[100] * 10, *[0] * 10)
    new, old = (forecast((), each).steps[0].weight for each in (lately, long_ago))
    assert new == pytest.approx(101.0)
    assert old == pytest.approx(new * 0.6**10)
    # A thousand matches still say more five cycles later than a guess, which weighs as much as 30.
    sampled = counted(*[0] * 14, 1_000, *[0] * 5)
    assert forecast((), sampled).steps[0].weight > 30
