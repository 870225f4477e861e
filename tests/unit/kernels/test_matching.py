from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.kernels.compiled import Int32s, Int64s
from plait.kernels.matching import iter_cross, iter_matches, iter_ranges
from tests.unit.kernels import reference

KEYS = st.one_of(st.integers(0, 4), st.sampled_from((-(2**63), -1, 7, 2**63 - 1)))
TAUS = st.integers(0, 12)


@dataclass(frozen=True, kw_only=True)
class Case:
    probes: list[tuple[int, int, int]]
    rows: list[tuple[int, int, int, int]]
    tests: tuple[bool, bool, bool, bool, bool]
    mask: int
    capacity: int

    def arrays(self) -> tuple[Int64s, Int64s]:
        return np.array(self.probes, np.int64).reshape(-1, 3).T, np.array(self.rows, np.int64).reshape(-1, 4).T

    def expected(self, *, keys: bool = True) -> list[tuple[int, int]]:
        low, high, tau, row, bits = self.tests
        probes = [(k if keys else 0, a if low else None, b if high else None) for k, a, b in self.probes]
        rows = [
            (k if keys else 0, t if tau else None, r if row and keys else at, b if bits else None)
            for at, (k, t, r, b) in enumerate(self.rows)
        ]
        if bits:  # the query-set word belongs to the row, not to the index position
            words = {r: b for _, _, r, b in self.rows} if row and keys else dict(enumerate(w for *_, w in self.rows))
            rows = [(k, t, r, words[r]) for k, t, r, _ in rows]
        return list(reference.matches(probes, rows, self.mask))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rows = draw(st.lists(st.tuples(KEYS, TAUS), max_size=25))
    places = draw(st.permutations(range(len(rows))))
    words = draw(st.lists(st.integers(0, 7), min_size=len(rows), max_size=len(rows)))
    spans = draw(st.lists(st.tuples(KEYS, TAUS, TAUS), max_size=15))
    return Case(
        probes=sorted(spans, key=lambda probe: probe[0]),
        rows=[(k, t, places[at], words[at]) for at, (k, t) in enumerate(sorted(rows))],
        tests=draw(st.tuples(*[st.booleans()] * 5)),
        mask=draw(st.sampled_from((1, 2, 4))),
        capacity=draw(st.sampled_from((1, 2, 3, 7, 1 << 20))),
    )


def pairs(blocks: Iterator[tuple[Int32s, Int32s]], capacity: int) -> list[tuple[int, int]]:
    found = []
    for probes, rows in blocks:
        assert probes.dtype == rows.dtype == np.int32
        assert 1 <= len(probes) == len(rows) <= capacity
        found += list(zip(probes.tolist(), rows.tolist(), strict=True))
    return found


@settings(deadline=None)
@given(cases())
def test_matches_equal_a_nested_loop(case: Case) -> None:
    (probe_key, low, high), (key, tau, row, words) = case.arrays()
    by_row = np.zeros(len(row), np.int64)
    by_row[row] = words
    has_low, has_high, has_tau, has_row, has_bits = case.tests
    found = iter_matches(
        probe_key=probe_key,
        probe_low=low if has_low else None,
        probe_high=high if has_high else None,
        index_key=key,
        index_tau=tau if has_tau else None,
        index_row=row.astype(np.int32) if has_row else None,
        bits=None if not has_bits else by_row if has_row else words,
        mask=case.mask,
        capacity=case.capacity,
    )
    assert pairs(found, case.capacity) == case.expected()


@settings(deadline=None)
@given(cases())
def test_cross_joins_equal_a_nested_loop(case: Case) -> None:
    (_, low, high), (_, tau, _, words) = case.arrays()
    has_low, has_high, has_tau, _, has_bits = case.tests
    found = iter_cross(
        probe_low=low if has_low else None,
        probe_high=high if has_high else None,
        probe_count=len(low),
        tau=tau if has_tau else None,
        row_count=len(tau),
        bits=words if has_bits else None,
        mask=case.mask,
        capacity=case.capacity,
    )
    assert pairs(found, case.capacity) == case.expected(keys=False)


def matched(probe_key: Int64s, index_key: Int64s, **given_arrays: object) -> Iterator[tuple[Int32s, Int32s]]:
    arguments: dict[str, object] = {
        "probe_low": None,
        "probe_high": None,
        "index_tau": None,
        "index_row": None,
        "bits": None,
        "mask": 0,
        **given_arrays,
    }
    return iter_matches(probe_key=probe_key, index_key=index_key, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(("probes", "rows"), [(20_000, 50_000), (3, 50_000), (50_000, 3)])
def test_long_inputs_match_as_a_lookup_does(probes: int, rows: int) -> None:
    random = np.random.default_rng(probes)
    probe_key, key = np.sort(random.integers(0, 60_000, probes)), np.sort(random.integers(0, 60_000, rows))
    tau = random.integers(0, 1000, rows)
    order = np.lexsort((tau, key))
    tau = tau[order]
    low = random.integers(0, 1000, probes)
    found = np.concatenate(
        [
            np.stack(block)
            for block in matched(probe_key, key, probe_low=low, probe_high=low + 300, index_tau=tau, capacity=1000)
        ],
        axis=1,
    )
    first, last = np.searchsorted(key, probe_key, "left"), np.searchsorted(key, probe_key, "right")
    probe = np.repeat(np.arange(probes), last - first)
    row = np.concatenate([np.arange(a, b) for a, b in zip(first, last, strict=True)])
    holds = (low[probe] <= tau[row]) & (tau[row] <= low[probe] + 300)
    np.testing.assert_array_equal(found, np.stack((probe[holds], row[holds])))


def test_a_hot_key_streams_in_bounded_blocks_and_resumes_inside_its_run() -> None:
    probes, rows, capacity = 3000, 4000, 1 << 16
    at, total = 0, 0
    blocks = matched(np.zeros(probes, np.int64), np.zeros(rows, np.int64), capacity=capacity)
    for probe, row in blocks:
        assert len(probe) <= capacity
        pair = np.arange(at, at + len(probe))
        np.testing.assert_array_equal(probe, pair // rows)
        np.testing.assert_array_equal(row, pair % rows)
        at += len(probe)
        total += 1
    assert at == probes * rows
    assert total <= at // capacity + 5


def test_nothing_is_computed_before_it_is_asked_for() -> None:
    hot = np.zeros(1_000_000, np.int64)
    probe, row = next(matched(hot, hot, capacity=10))
    assert probe.tolist() == [0] * 10
    assert row.tolist() == list(range(10))


def test_blocks_already_yielded_are_not_overwritten() -> None:
    kept = list(matched(np.zeros(10, np.int64), np.zeros(10, np.int64), capacity=4))
    assert [pair for probe, row in kept for pair in zip(probe.tolist(), row.tolist(), strict=True)] == [
        (i, j) for i in range(10) for j in range(10)
    ]


@pytest.mark.parametrize("empty_side", ["probes", "rows", "both"])
def test_empty_inputs_have_no_matches(empty_side: str) -> None:
    none, some = np.zeros(0, np.int64), np.zeros(2, np.int64)
    probes, rows = (none if empty_side != "rows" else some), (none if empty_side != "probes" else some)
    assert list(matched(probes, rows, index_tau=rows, probe_low=probes, probe_high=probes)) == []


def test_both_ends_of_the_window_belong_to_it() -> None:
    one = np.array([5], np.int64)
    assert len(list(matched(one, one, index_tau=one, probe_low=one, probe_high=one))) == 1


def test_the_63rd_bit_is_a_query_like_any_other() -> None:
    words = np.array([1 << 62, 1], np.int64)
    same = np.zeros(2, np.int64)
    ((_, row),) = matched(same[:1], same, bits=words, mask=1 << 62)
    assert row.tolist() == [0]


def test_a_block_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="capacity is 0"):
        next(matched(np.zeros(1, np.int64), np.zeros(1, np.int64), capacity=0))


@settings(deadline=None)
@given(cases(), st.sampled_from((None, (1, 0), (3, 1), (5, -7))))
def test_ranges_hold_the_matches_and_reach_over_no_bound_of_a_pane(case: Case, panes: tuple[int, int] | None) -> None:
    (probe_key, low, high), (key, tau, _, _) = case.arrays()
    has_low, has_high, has_tau, *_ = case.tests
    has_tau |= panes is not None
    bounds = low if has_low else None, high if has_high else None
    found: list[tuple[int, int]] = []
    length, start = panes or (1 << 40, 0)
    for probes, begins, ends in iter_ranges(
        probe_key=probe_key,
        probe_low=bounds[0],
        probe_high=bounds[1],
        index_key=key,
        index_tau=tau if has_tau else None,
        panes=panes,
        capacity=case.capacity,
    ):
        assert 1 <= len(probes) == len(begins) == len(ends) <= case.capacity
        for probe, begin, end in zip(probes.tolist(), begins.tolist(), ends.tolist(), strict=True):
            assert begin < end
            assert len({(each - start) // length for each in tau[begin:end].tolist()}) == 1
            found += [(probe, row) for row in range(begin, end)]
    plain = replace(case, tests=(has_low, has_high, has_tau, False, False))
    assert found == plain.expected()


def test_a_probe_has_one_range_for_each_pane_however_many_rows_match() -> None:
    keys, taus = np.zeros(10_000, np.int64), np.arange(10_000)
    (block,) = iter_ranges(
        probe_key=np.zeros(3, np.int64),
        probe_low=np.array([0, 500, 9_999]),
        probe_high=np.array([9_999, 1_500, 20_000]),
        index_key=keys,
        index_tau=taus,
        panes=(1_000, 0),
    )
    assert [len(each) for each in block] == [10 + 2 + 1] * 3
