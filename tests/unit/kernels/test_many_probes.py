"""Steps side by side find what each finds by itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from plait.kernels import many_probes as kernel
from plait.kernels.compiled import Int64s
from plait.kernels.many_probes import NONE, Columns, Joined
from plait.kernels.matching import iter_matches

STORED, PARTIALS, STEPS, KEYS, SPAN = 40, 12, 30, 6, 50
MOST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Steps of random windows and selections into one store, which all begin with partial results of their own."""

    key: Int64s
    tau: Int64s
    word: Int64s
    own: Int64s
    newest: Int64s
    high: Int64s
    windows: Int64s
    masks: Int64s

    @classmethod
    def of(cls, seed: int) -> Drawn:
        random = np.random.default_rng(seed)
        newest = random.integers(0, SPAN, STEPS * PARTIALS)
        return cls(
            key=random.integers(0, KEYS, STORED),
            tau=random.integers(0, SPAN, STORED),
            word=random.integers(0, 8, STORED),
            own=random.integers(0, KEYS, STEPS * PARTIALS),
            newest=newest,
            high=newest + random.integers(0, SPAN, STEPS * PARTIALS),
            windows=random.integers(0, SPAN, STEPS),
            masks=random.integers(1, 8, STEPS),
        )

    @property
    def order(self) -> Int64s:
        return np.lexsort((self.tau, self.key)).astype(np.int64)

    def columns(self) -> Columns:
        """The partial results' keys, then the store's τ and words; none of its rows has arrived with this batch."""
        order = self.order
        return Columns(
            values=np.concatenate((self.own, self.tau, self.word)),
            flags=np.zeros(STORED, np.uint8),
            index_key=self.key[order],
            index_tau=self.tau[order],
            index_row=order.astype(np.int32),
        )

    def steps(self) -> Int64s:
        steps = np.zeros((kernel.STEP_FIELDS, STEPS), np.int64)
        steps[kernel.BEGIN], steps[kernel.END] = (
            np.arange(STEPS) * PARTIALS,
            np.arange(1, STEPS + 1) * PARTIALS,
        )
        steps[kernel.EQUAL], steps[kernel.EQUAL_END] = np.arange(STEPS), np.arange(1, STEPS + 1)
        steps[kernel.LENGTH], steps[kernel.TIMED], steps[kernel.FINDS] = STORED, 1, 1
        steps[kernel.WINDOW], steps[kernel.UNTIL] = self.windows, NONE
        steps[kernel.WORD], steps[kernel.MASK] = len(self.own) + STORED, self.masks
        return steps

    def equalities(self) -> Int64s:
        equalities = np.zeros((kernel.EQUALITY_FIELDS, STEPS), np.int64)
        equalities[kernel.VALID] = NONE
        return equalities

    def joined(self) -> Joined:
        rows = np.arange(len(self.own), dtype=np.int32).reshape(1, -1)
        ends = np.arange(1, STEPS + 1) * PARTIALS
        return Joined(ends=ends, rows=rows, newest=self.newest, high=self.high)

    def alone(self, step: int) -> list[tuple[int, int]]:
        """Return what a step finds by itself, as (partial result, row)."""
        mine = np.arange(step * PARTIALS, (step + 1) * PARTIALS)
        mine = mine[np.argsort(self.own[mine], kind="stable")]
        order = self.order
        found = iter_matches(
            probe_key=self.own[mine],
            probe_low=self.newest[mine] - self.windows[step],
            probe_high=self.high[mine],
            index_key=self.key[order],
            index_tau=self.tau[order],
            index_row=order.astype(np.int32),
            bits=self.word,
            mask=int(self.masks[step]),
        )
        return sorted(
            (int(mine[probe]), int(row)) for probes, rows in found for probe, row in zip(probes, rows, strict=True)
        )


@pytest.mark.parametrize("seed", range(5))
def test_steps_side_by_side_find_what_each_finds_by_itself(seed: int) -> None:
    drawn = Drawn.of(seed)
    met = kernel.find_abreast(drawn.steps(), drawn.equalities(), drawn.joined(), drawn.columns(), 1 << 20)
    assert met is not None
    joined, found = met.joined, 0
    for step, (begin, end) in enumerate(zip(joined.begins, joined.ends, strict=True)):
        parents, rows = joined.rows[0, begin:end], joined.rows[1, begin:end]
        expected = drawn.alone(step)
        assert sorted(zip(parents.tolist(), rows.tolist(), strict=True)) == expected
        assert met.probed[step] == PARTIALS
        assert met.matched[step] == len({partial for partial, _ in expected})
        latest = drawn.tau[rows] + drawn.windows[step]
        assert joined.newest[begin:end].tolist() == np.maximum(drawn.newest[parents], drawn.tau[rows]).tolist()
        assert joined.high[begin:end].tolist() == np.minimum(drawn.high[parents], latest).tolist()
        found += len(expected)
    assert found > STEPS


def test_more_matches_than_there_is_room_for_at_first_are_all_found_and_more_than_the_capacity_none() -> None:
    drawn = Drawn.of(1)
    steps = drawn.steps()
    steps[kernel.WORD], steps[kernel.WINDOW] = NONE, NONE
    high = np.full(len(drawn.high), MOST)
    joined = Joined(ends=drawn.joined().ends, rows=drawn.joined().rows, newest=drawn.newest, high=high)
    expected = sum(int((drawn.key == own).sum()) for own in drawn.own)
    met = kernel.find_abreast(steps, drawn.equalities(), joined, drawn.columns(), expected)
    assert met is not None
    assert len(met.joined.newest) == expected
    assert met.joined.high.tolist() == [MOST] * expected
    assert kernel.find_abreast(steps, drawn.equalities(), joined, drawn.columns(), expected - 1) is None


def test_a_partial_result_without_a_key_is_not_sent_and_one_with_two_keys_that_differ_finds_nothing() -> None:
    drawn = Drawn.of(2)
    steps, equalities = drawn.steps()[:, :2], np.zeros((kernel.EQUALITY_FIELDS, 3), np.int64)
    steps[kernel.BEGIN], steps[kernel.END] = 0, 1
    steps[kernel.WORD], steps[kernel.WINDOW] = NONE, NONE
    steps[kernel.EQUAL], steps[kernel.EQUAL_END] = [0, 1], [1, 3]
    equalities[kernel.COLUMN] = [0, 0, 1]
    equalities[kernel.VALID] = [0, NONE, NONE]
    columns = drawn.columns()._replace(values=np.array([drawn.key[0], drawn.key[0] + 1, *drawn.own], np.int64))
    columns = columns._replace(flags=np.zeros(STORED, np.uint8))
    met = kernel.find_abreast(steps, equalities, drawn.joined(), columns, 1 << 20)
    assert met is not None
    assert met.probed.tolist() == [0, 1]
    assert met.matched.tolist() == [0, 0]


def test_rows_that_have_not_arrived_before_and_those_that_can_join_nothing_any_more_are_not_found() -> None:
    values = np.array([5, 0, 0, 0, 9, 20, 20], np.int64)  # the key; τ of three stored rows; until when each can join
    columns = Columns(
        values=values,
        flags=np.array([0, 0, 1], np.uint8),
        index_key=np.array([5, 5, 5], np.int64),
        index_tau=np.array([0, 0, 0], np.int64),
        index_row=np.array([0, 1, 2], np.int32),
    )
    steps = np.zeros((kernel.STEP_FIELDS, 2), np.int64)
    steps[kernel.END], steps[kernel.EQUAL_END], steps[kernel.LENGTH], steps[kernel.TIMED] = (
        1,
        1,
        3,
        1,
    )
    steps[kernel.WINDOW], steps[kernel.UNTIL], steps[kernel.WORD], steps[kernel.FINDS] = (
        NONE,
        4,
        NONE,
        [1, 3],
    )
    joined = Joined(
        ends=np.array([1]), rows=np.zeros((1, 1), np.int32), newest=np.array([10]), high=np.array([MOST], np.int64)
    )
    met = kernel.find_abreast(steps, np.array([[0], [0], [NONE]], np.int64), joined, columns, 10)
    assert met is not None
    assert met.joined.ends.tolist() == [1, 3]
    assert met.joined.rows[1].tolist() == [1, 1, 2]
    assert met.joined.high.tolist() == [20, 20, 20]


def test_only_selected_rows_are_started_with() -> None:
    columns = Columns(
        values=np.array([1, 2, 3, 10, 11, MOST - 1], np.int64),
        flags=np.zeros(0, np.uint8),
        index_key=np.zeros(0, np.int64),
        index_tau=np.zeros(0, np.int64),
        index_row=np.zeros(0, np.int32),
    )
    starts = np.array([[0, 0], [3, 3], [0, NONE], [1, 0], [3, 3], [5, NONE]], np.int64)
    joined = kernel.start_abreast(starts, columns)
    assert joined.ends.tolist() == [2, 5]
    assert joined.rows[0].tolist() == [0, 2, 0, 1, 2]
    assert joined.newest.tolist() == [10, MOST - 1, 10, 11, MOST - 1]
    assert joined.high.tolist() == [15, MOST, MOST, MOST, MOST]
