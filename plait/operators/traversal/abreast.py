"""Take many steps side by side: level by level all steps of all trees at once, where each has little to do.

With hundreds of queries a batch of some hundred rows takes thousands of steps with a dozen tuples each. To take one by
itself is half a millisecond of interpreted code around microseconds of work. What is found, and what is counted, is the
same either way; only where results end, or a step has to be taken by itself, partial results get a form of their own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from plait.kernels import many_probes as kernel
from plait.kernels.compiled import Int64s
from plait.kernels.many_probes import NONE, Columns, Joined, Met
from plait.operators.column_names import SELECTED
from plait.operators.probe.demand import Demand
from plait.operators.probe.flat_trees import FlatTrees, Level, Place
from plait.operators.probe.partials import Partials, Position
from plait.operators.probe.pools import Pool, Where, stored_rows
from plait.operators.probe.probing import ProbeContext
from plait.operators.probe.reader import Reader
from plait.operators.traversal.probe_task import ProbeTask, Start
from plait.plan.model import Step

_STARTED_SHARE: Final = 16
"""Trees start together with so small a share of the partial results that are held at once."""

_ROWS_A_STEP: Final = 500
"""A step by itself takes as long as to start with, or to copy and index, so many rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """How far the trees have come: the partial results of each place, from `begins` up to `ends`. A place is a step of
    the `level`; None: a tree, with what it starts with. `left`: what is to be taken by itself from a place on; `met`:
    what the steps have counted.
    """

    level: Level | None
    begins: Int64s
    ends: Int64s
    joined: Joined
    is_end: NDArray[np.bool_]
    left: Mapping[int, tuple[Step, ...]]
    met: Met | None = None

    def ending(self) -> list[int]:
        """Return the places where something is to be done with what has been found."""
        return np.flatnonzero(self.is_end & (self.ends > self.begins)).tolist()

    def tree(self, place: int) -> int:
        """Return the number of a place's tree."""
        return place if self.level is None else int(self.level.tree[place])

    def step(self, place: int) -> Step | None:
        """Return the step that has come to a place, None at a start."""
        return None if self.level is None else self.level.steps[place].step

    def counted(self) -> Iterator[tuple[Step, int, int, int]]:
        """Yield each step that was taken: tuples it was taken with, those that matched anything, and matches."""
        if self.level is None or self.met is None:
            return
        taken = np.flatnonzero(self.met.probed)
        counts = (counts[taken].tolist() for counts in (self.met.probed, self.met.matched, self.ends - self.begins))
        for place, probed, matched, matches in zip(taken.tolist(), *counts, strict=True):
            yield self.level.steps[place].step, probed, matched, matches


class Abreast:
    """Trees of a task that are taken side by side. `taken`: their numbers."""

    def __init__(self, flat: FlatTrees, pool: Pool, starts: tuple[Start, ...], capacity: int) -> None:
        self._flat, self._pool, self._capacity = flat, pool, capacity
        self._starts = sorted(starts, key=lambda start: start[0])
        self.taken = frozenset(number for number, *_ in starts)
        self._where: Where = pool.where(flat.numbers)
        self._columns: Columns = pool.columns()

    @classmethod
    def of(cls, task: ProbeTask, context: ProbeContext, reader: Reader, flat: FlatTrees) -> Abreast | None:
        """Return what of a task is better taken side by side, None if nothing is."""
        by_tree: dict[int, list[Start]] = defaultdict(list)
        for number, bucket, start, stop in task.starts if task.every == 1 else ():
            by_tree[number].append((number, reader.seen(bucket), start, stop))
        steps = sum(len(level) for number in by_tree for level in flat.trees[number].levels)
        if not by_tree or steps < context.abreast_steps:
            return None
        names = frozenset[str]().union(*(flat.trees[number].stores for number in by_tree))
        stored = {name: context.buckets[name] for name in names if context.buckets.get(name)}
        copied = sum(bucket.rows for buckets in stored.values() for bucket in buckets)
        started = sum(stop - start for starts in by_tree.values() for *_, start, stop in starts)
        if context.abreast_steps and copied + started > _ROWS_A_STEP * steps:
            return None
        rows = {name: stored_rows(buckets, reader, context.batch) for name, buckets in stored.items()}
        stores = {name: each for name, each in rows.items() if each is not None}
        pool = Pool(stores, (name for name in names if name in stores or name not in rows))
        chosen: list[Start] = []
        for number, starts in by_tree.items():
            own = stores.get(flat.trees[number].tree.start.store)
            known = () if own is None else own.begins
            if flat.trees[number].stores <= pool.names and all(bucket.path in known for _, bucket, *_ in starts):
                chosen += starts
        return cls(flat, pool, tuple(chosen), context.capacity) if chosen else None

    def levels(self) -> Iterator[Reached]:
        """Yield how far the trees have come, level by level, some trees after the others where they have many rows: so
        that few have to go on by themselves because all together find too much.
        """
        most, some, rows = self._capacity // _STARTED_SHARE, list[Start](), 0
        for start in self._starts:
            count = start[3] - start[2]
            if some and rows + count > most and start[0] != some[-1][0]:
                yield from self._levels_of(some)
                some, rows = [], 0
            some.append(start)
            rows += count
        yield from self._levels_of(some)

    def _levels_of(self, starts: list[Start]) -> Iterator[Reached]:
        reached: Reached | None = self._started(starts)
        for level in self._flat.levels:
            following = None if reached is None else self._next(reached, level)
            if reached is None:
                return
            yield reached if following is not None else _with_all_left(reached, self._flat)
            reached = following
        if reached is not None:
            yield reached

    def partials(self, reached: Reached, place: int, demand: Demand) -> Partials:
        """Return the partial results of a place."""
        begin, end = int(reached.begins[place]), int(reached.ends[place])
        step = reached.step(place)
        if reached.level is None:
            path: tuple[Place, ...] = (Place(0, self._flat.starts.members[place].store),)
        else:
            path = reached.level.steps[place].path
        needed = demand.after["" if step is None else step.edge]
        joined = reached.joined
        positions = (
            Position(
                block=self._pool.block(member, tuple(name for name in names if name.startswith(SELECTED))),
                index=joined.rows[member.unit, begin:end],
            )
            for member, names in zip(path, needed, strict=True)
        )
        return Partials(
            count=end - begin,
            positions=tuple(positions),
            newest=joined.newest[begin:end],
            high=joined.high[begin:end],
        )

    def left_lookups(self) -> Counter[str]:
        """Return how often the steps that are taken by themselves look into each store."""
        return sum((self._flat.trees[number].left_lookups() for number in self.taken), Counter[str]())

    def require_untouched(self) -> None:
        """Raise `CheckpointError` if what was read has been written to meanwhile."""
        self._pool.require_untouched()

    def _started(self, chosen: list[Start]) -> Reached:
        trees, where = self._flat.starts, self._where
        numbers = np.array([number for number, *_ in chosen], np.int64)
        starts = np.empty((kernel.START_FIELDS, len(numbers)), np.int64)
        for place, (number, bucket, start, stop) in enumerate(chosen):
            first = self._pool.stores[trees.members[number].store].begins[bucket.path]
            starts[kernel.START, place], starts[kernel.STOP, place] = first + start, first + stop
        selection = trees.selection[numbers]
        starts[kernel.START_WORD], starts[kernel.START_MASK] = where.word[selection], where.mask[selection]
        starts[kernel.STOP] = np.where(where.mask[selection] == 0, starts[kernel.START], starts[kernel.STOP])
        starts[kernel.START_TAU] = where.column[trees.tau[numbers]]
        starts[kernel.START_WINDOW] = trees.window[numbers]
        joined = kernel.start_abreast(starts, self._columns)
        begins, ends = np.zeros((2, len(trees.members)), np.int64)
        # Of a tree with several starts the first says where it begins, the last where it ends.
        begins[numbers[::-1]], ends[numbers] = joined.begins[::-1], joined.ends
        is_end = np.array([bool(each.tree.outputs) for each in self._flat.trees], np.bool_)
        is_end[list(trees.left)] = True
        return Reached(level=None, begins=begins, ends=ends, joined=joined, is_end=is_end, left=trees.left)

    def _next(self, reached: Reached, level: Level) -> Reached | None:
        """Take the steps of a level; None if they find too much to be held at once."""
        where, steps = self._where, np.empty((kernel.STEP_FIELDS, len(level.steps)), np.int64)
        columns = where.column[level.reads[1]]
        # What rows lack that a step reads, no query needs that is there: they are of a time before it.
        can_read = np.minimum.reduceat(columns, level.equal[:-1]) != NONE
        steps[kernel.BEGIN] = reached.begins[level.before]
        steps[kernel.END] = np.where(can_read, reached.ends[level.before], steps[kernel.BEGIN])
        steps[kernel.EQUAL], steps[kernel.EQUAL_END] = level.equal[:-1], level.equal[1:]
        steps[kernel.INDEX] = where.index[level.index]
        steps[kernel.WORD], steps[kernel.MASK] = where.word[level.selection], where.mask[level.selection]
        steps[kernel.LENGTH] = np.where(steps[kernel.MASK] == 0, 0, where.length[level.index])
        steps[kernel.WINDOW], steps[kernel.TIMED], steps[kernel.FINDS] = level.window, level.timed, level.finds
        steps[kernel.UNTIL] = np.where(level.until == NONE, NONE, where.column[level.until])
        steps[kernel.ARRIVED] = where.arrived[level.store]
        equalities = np.stack((level.reads[0], columns, where.valid[level.reads[1]]))
        met = kernel.find_abreast(steps, equalities, reached.joined, self._columns, self._capacity)
        if met is None:
            return None
        joined = met.joined
        return Reached(
            level=level,
            begins=joined.begins,
            ends=joined.ends,
            joined=joined,
            is_end=level.ends,
            left=level.left,
            met=met,
        )


def _with_all_left(reached: Reached, flat: FlatTrees) -> Reached:
    """Return the same where every place goes on by itself."""
    if reached.level is None:
        children = [each.tree.children for each in flat.trees]
    else:
        children = [each.step.children for each in reached.level.steps]
    left = {place: steps for place, steps in enumerate(children) if steps}
    is_end = reached.is_end.copy()
    is_end[list(left)] = True
    return replace(reached, is_end=is_end, left=left)


__all__ = ["Abreast", "Reached"]
