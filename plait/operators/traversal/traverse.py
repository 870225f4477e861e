"""Traverse probe trees: depth first in one task (local edges), or one step at a time between tasks (shuffled edges).

Both call the same `route` and `probe_partition`, give the same results and count the same probe tuples. A local one
keeps at most one piece of partial results per level of the tree. A shuffled one sends pieces as `Message`s: the columns
still needed, in an Arrow batch, to the partition that holds the next store. Where tables have sent rows to the
partitions that want them, first steps are taken there, and nothing is sent for them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from plait.errors import Failure, PredicateError
from plait.operators.column_names import TAU
from plait.operators.failing import failure_of_step
from plait.operators.probe.counted_matches import count_partition, looking_up, ranges_of
from plait.operators.probe.demand import Demand, Demands, output_columns
from plait.operators.probe.layers import Met, Tables, met_where_sent
from plait.operators.probe.partials import Partials, Rows, filtered, start_partials
from plait.operators.probe.probing import (
    Counts,
    Matched,
    ProbeContext,
    copies_of,
    probe_partition,
    route,
    send,
    with_keys,
)
from plait.operators.probe.reader import Reader
from plait.operators.probe.selections import answers, selection_words, with_selections
from plait.operators.probe.together import Together, joined_stores
from plait.operators.probe.verifying import Verifier
from plait.operators.reports import ProbeReport
from plait.operators.traversal.abreast import Abreast
from plait.operators.traversal.adding import Adding
from plait.operators.traversal.counted_rows import Counting
from plait.operators.traversal.filling import Filler
from plait.operators.traversal.gatherer import alike
from plait.operators.traversal.messages import Message, decode_partials, payloads
from plait.operators.traversal.probe_task import ProbeTask, Start
from plait.operators.traversal.results import Gathered, ResultWriter
from plait.plan.model import Output, ProbeTree, ResidualFilter, Step
from plait.plan.traversals import path_members
from plait.sinks.delivery import Delivery, Gathering
from plait.state.buckets import OpenBucket
from plait.state.model import Bucket


class Traversal:
    """Carries out one task's share of a batch."""

    def __init__(
        self, context: ProbeContext, deliveries: Mapping[str, Delivery], name: str, demands: Demands | None = None
    ) -> None:
        self._reader = Reader(context.storage, context.readings)
        self._context = replace(context, reader=self._reader)
        if context.readings:
            self._context = replace(self._context, buckets=self._all_seen(context.buckets))
            if context.tables is not None:
                copies = self._all_seen(context.tables.copies)
                self._context = replace(self._context, tables=replace(context.tables, copies=copies))
        self._started = time.thread_time()
        self._counts = Counts()
        self._results = ResultWriter(deliveries, context.storage, context.batch, name)
        self._filler = Filler(context.storage, context.kept_as, name)
        self._demands = Demands() if demands is None else demands
        self._deliveries = deliveries
        self._gathers = any(isinstance(delivery, Gathering) for delivery in deliveries.values())
        self._alike: dict[int, tuple[tuple[Output, ...], ...]] = {}
        self._countings: dict[str, tuple[Counting, ...]] = {}
        self._shuffled_rows = self._shuffled_bytes = 0
        self._failures: dict[Failure, None] = {}
        self._ahead: Abreast | None = None

    def _all_seen(self, stores: Mapping[str, tuple[Bucket, ...]]) -> dict[str, tuple[Bucket, ...]]:
        return {store: self._reader.all_seen(buckets) for store, buckets in stores.items()}

    def demand(self, number: int) -> Demand:
        """Return the demand of tree `number`, computed once."""
        return self._demands.of(number, self._context.plan, self._context.wanted)

    def run_local(self, task: ProbeTask) -> ProbeReport:
        """Traverse every tree of the task to its leaves."""
        ahead = Abreast.of(task, self._context, self._reader, self._demands.flat(self._context.plan))
        starts = self._put_together(task, ahead)
        if ahead is not None:
            self._ahead = ahead
            self._go_abreast(ahead)
        for number, bucket, start, stop in starts:
            for partials in self._starting(number, bucket, start, stop, task.every):
                for step in self._context.plan.trees[number].children:
                    self._descend(number, step, partials)
        return self.report()

    def _go_abreast(self, ahead: Abreast) -> None:
        """Take steps side by side, and do by itself what is to be done at single ones."""
        for reached in ahead.levels():
            for step, probed, matched, matches in reached.counted():
                copies = copies_of(step, self._context.plan)
                self._counts.add(step.edge, probe_tuples=probed * copies, matched=matched, matches=matches)
            for place in reached.ending():
                number, come = reached.tree(place), reached.step(place)
                partials = ahead.partials(reached, place, self.demand(number))
                if come is None:
                    self._answer(self._context.plan.trees[number].outputs, partials)
                else:
                    self._end(come, partials)
                for step in reached.left.get(place, ()):
                    self._descend(number, step, partials)

    def _put_together(self, task: ProbeTask, ahead: Abreast | None) -> tuple[Start, ...]:
        """Let small buckets be read as one from now on; return what to start with, but for what goes `ahead`."""
        plan, together = self._context.plan, Together(self._reader)
        taken = frozenset[int]() if ahead is None else ahead.taken
        trees = dict.fromkeys(number for number, *_ in task.starts if number not in taken)
        steps = {number: Counter(step.member.store for step in plan.trees[number].steps()) for number in trees}
        starts: list[Start] = []
        lookups = Counter[str]() if ahead is None else ahead.left_lookups()
        for number in trees:
            mine = (start for start in task.starts if start[0] == number)
            pieces = [(number, self._reader.seen(bucket), low, high) for _, bucket, low, high in mine]
            whole = [bucket for _, bucket, low, high in pieces if (low, high) == (0, bucket.rows) and task.every == 1]
            joined = [(number, bucket, 0, bucket.rows) for bucket in together.join(whole, steps[number].total())]
            joined += [(number, bucket, low, high) for _, bucket, low, high in pieces if bucket not in whole]
            starts += joined
            for store, count in steps[number].items():
                lookups[store] += count * len(joined)
        buckets = joined_stores(self._context.buckets, together, self._context.batch, lookups)
        self._context = replace(self._context, buckets=buckets, together=together, tables=None)
        return tuple(starts)

    def _descend(self, number: int, step: Step, partials: Partials) -> None:
        if not partials.supply(self.demand(number).probing[step.edge]):
            return
        for partition, sent in self._routed(step, partials):
            for extended in self._probe(number, step, sent, partition):
                for child in step.children:
                    self._descend(number, child, extended)

    def _routed(self, step: Step, partials: Partials) -> Iterator[tuple[int | None, Partials]]:
        """Yield what probes which partition; None: all of them at once."""
        together = self._context.together
        if together is None or step.member.store not in together.whole:
            yield from route(partials, step, self._context.plan)
            return
        present, _ = with_keys(partials, step)
        if present.count:
            yield None, present

    def start_messages(self, task: ProbeTask) -> Iterator[Message]:
        """Yield what the starting relations of the task send over their first edges."""
        for number, bucket, start, stop in task.starts:
            seen, children = self._reader.seen(bucket), self._context.plan.trees[number].children
            for partials in self._starting(number, seen, start, stop):
                if self._context.tables is None:
                    yield from self._messages(number, children, partials)
                for child in children if self._context.tables is not None else ():
                    yield from self._first_step(number, child, partials, seen)

    def receive(self, message: Message) -> Iterator[Message]:
        """Probe with a message's partial results and yield what goes on from there."""
        number, step, before = self._find_edge(message.edge)
        partials = decode_partials(message.payload, len(path_members(self._context.plan.trees[number].start, before)))
        for extended in self._probe(number, step, partials, message.partition, message.layers):
            yield from self._messages(number, step.children, extended)

    def _first_step(self, number: int, step: Step, partials: Partials, bucket: Bucket) -> Iterator[Message]:
        """Yield what comes of starting tuples that meet rows where tables have sent both, and messages with the others
        but of copies.
        """
        if not partials.supply(self.demand(number).probing[step.edge]):
            return
        tables = self._context.tables
        assert tables is not None, "without tables nothing has been sent anywhere"
        present, _ = with_keys(partials, step)
        layer, met = tables.layer_of(bucket), None
        if layer in tables.layers_of(step.member.store) and layer:
            start = self._context.plan.trees[number].start
            met = met_where_sent(present, start, step, bucket, tables.generations[layer - 1])
        if met is not None and met.here.any():
            here = present.at(np.flatnonzero(met.here).astype(np.int32))
            for extended in self._probe(number, step, here, bucket.partition, 1 << layer):
                yield from self._messages(number, step.children, extended)
        if not bucket.is_copy:
            yield from self._sent_on(number, step, present, tables, {} if met is None else {layer: met})

    def _sent_on(
        self, number: int, step: Step, present: Partials, tables: Tables, met: Mapping[int, Met]
    ) -> Iterator[Message]:
        """Yield messages with partial results that have what the step looks up by, and count those as the plan does:
        in how many partitions tables have them look tells nothing of the data.
        """
        if not present.count:
            return
        self._counts.add(step.edge, probe_tuples=present.count * copies_of(step, self._context.plan))
        for partition, layers, sent in send(present, step, self._context, tables, met):
            yield from self._sent(number, step, partition, layers, sent)

    def _sent(self, number: int, step: Step, partition: int, layers: int, sent: Partials) -> Iterator[Message]:
        self._shuffled_rows += sent.count
        for payload in payloads(sent, self.demand(number).along[step.edge]):
            self._shuffled_bytes += len(payload)
            yield Message(edge=step.edge, partition=partition, payload=payload, layers=layers)

    def _messages(self, number: int, children: tuple[Step, ...], partials: Partials) -> Iterator[Message]:
        for child in children:
            if not partials.supply(self.demand(number).probing[child.edge]):
                continue
            if self._context.tables is not None:
                present, _ = with_keys(partials, child)
                yield from self._sent_on(number, child, present, self._context.tables, {})
                continue
            for partition, sent in route(partials, child, self._context.plan):
                yield from self._sent(number, child, partition, 1, sent)

    def _find_edge(self, edge: str) -> tuple[int, Step, tuple[Step, ...]]:
        for number, tree in enumerate(self._context.plan.trees):
            for path, step in tree.walk():
                if step.edge == edge:
                    return number, step, path
        raise KeyError(edge)

    def _starting(self, number: int, bucket: Bucket, start: int, stop: int, every: int = 1) -> Iterator[Partials]:
        """Yield the starting tuples in pieces, after answering the queries that need no join."""
        tree = self._context.plan.trees[number]
        needed = self.demand(number).after[""][0]
        if not answers(bucket, tree.start, ()):
            return
        opened = self._context.open(bucket)
        partials = _starting_tuples(opened, tree, needed, range(start, stop, every))
        for low in range(0, partials.count, self._context.capacity):
            piece = partials.slice(low, low + self._context.capacity)
            if not bucket.is_copy:
                self._answer(tree.outputs, piece)
            yield piece
        if not opened.is_copied:  # of those that are, once when all is done
            opened.require_untouched()

    def _answer(self, outputs: tuple[Output, ...], partials: Partials) -> None:
        """Add results to the queries that are complete, except those that need what these tuples do not carry."""
        taken: dict[tuple[ResidualFilter, ...], Gathered] = {}
        for same in self._taking(outputs):
            output = same[0]
            if partials.supply(output_columns(output, self._context.wanted)):
                own = taken.get(output.residual_filters)
                if own is None:
                    own = taken[output.residual_filters] = Gathered(filtered(partials, output))
                self._results.add(same, own)

    def _taking(self, outputs: tuple[Output, ...]) -> tuple[tuple[Output, ...], ...]:
        """Return the outputs of a point of the plan, those together that keep the same."""
        known = self._alike.get(id(outputs))
        if known is None:
            same = alike(outputs, self._deliveries) if self._gathers else tuple((output,) for output in outputs)
            known = self._alike[id(outputs)] = same
        return known

    def _probe(
        self, number: int, step: Step, partials: Partials, partition: int | None, layers: int = 1
    ) -> Iterator[Partials]:
        tree = self._context.plan.trees[number]
        if self._context.tables is None:
            copies = copies_of(step, self._context.plan) if partition is None else 1
            self._counts.add(step.edge, probe_tuples=partials.count * copies)
        if step.is_counted and self._results.can_count(step.outputs):
            self._count(tree, step, partials, partition, layers)
            return
        matched = Matched.none_of(partials)
        try:
            for extended in probe_partition(
                partials, step, tree, partition, self._context, self.demand(number), matched, layers
            ):
                self._counts.add(step.edge, matches=extended.count)
                self._end(step, extended)
                if step.children:
                    yield extended
        except PredicateError as error:
            if error.predicate is None:
                raise
            self._failures[failure_of_step(error, self._context.plan, tree, step.edge)] = None
        self._counts.add(step.edge, matched=matched.count)

    def _end(self, step: Step, extended: Partials) -> None:
        """Give what a step has found to those who take it as it is."""
        self._answer(step.outputs, extended)
        for fill in step.fills:
            self._filler.add(fill, self._context.plan.store(fill.store), extended)

    def _count(self, tree: ProbeTree, step: Step, partials: Partials, partition: int | None, layers: int) -> None:
        """Let partial results probe a store whose rows are only counted, once for each way to cut panes."""
        if step.edge not in self._countings:
            same = ((outputs, self._results.takers(outputs)) for outputs in self._taking(step.outputs))
            self._countings[step.edge] = tuple(Counting.of(*each) for each in same)
        keys, verifier = looking_up(partials, step, self._context)
        added, others = list[Adding](), list[Counting]()
        compares = bool(verifier.equalities) or self._context.tables is not None  # row by row
        for counting in self._countings[step.edge]:
            adding = None if compares else Adding.of(counting, partials, keys)
            others += [counting] if adding is None else []
            added += [] if adding is None else [adding]
        found = [self._add_up(adding, tree, step, partials, partition, verifier) for adding in added]
        for panes in dict.fromkeys(each.panes for each in others):
            matched, matches = Matched.none_of(partials), 0
            for met in count_partition(partials, step, tree, partition, self._context, panes, matched, layers):
                matches += int(met.weights.sum())
                for counting in (each for each in others if each.panes == panes):
                    self._results.add_counted(counting, met)
            found.append((matches, matched))
        matches, matched = found[0]  # the other ways have found the same
        self._counts.add(step.edge, matches=matches, matched=matched.count)

    def _add_up(
        self,
        adding: Adding,
        tree: ProbeTree,
        step: Step,
        partials: Partials,
        partition: int | None,
        verifier: Verifier,
    ) -> tuple[int, Matched]:
        """Let partial results probe a store whose rows are counted and added up; return how many they have met, and
        which have met any.
        """
        matched, matches = Matched.none_of(partials), 0
        for ranges, _ in ranges_of(adding.keys, verifier, step, tree, partition, self._context):
            for sums, rows in adding.sums(ranges):
                matched.rows[adding.matched(sums)] = True
                matches += int(sums.counts.sum())
                if rows is not None:
                    self._results.add_weighed(adding.counting, rows)
        return matches, matched

    def report(self) -> ProbeReport:
        """Close the result files and return the account."""
        for read in (self._context.together, self._ahead):
            if read is not None:
                read.require_untouched()
        results, buckets = self._results.finish(), self._filler.finish()
        return ProbeReport(
            probe_tuples=tuple(sorted(self._counts.probe_tuples.items())),
            matched=tuple(sorted(self._counts.matched.items())),
            matches=tuple(sorted(self._counts.matches.items())),
            results=results,
            failures=(*self._failures, *self._results.failures),
            buckets=buckets,
            shuffled_bytes=self._shuffled_bytes,
            shuffled_rows=self._shuffled_rows,
            seconds=time.thread_time() - self._started,
        )


def _starting_tuples(opened: OpenBucket, tree: ProbeTree, needed: tuple[str, ...], chosen: range) -> Partials:
    bits, mask = selection_words(opened, tree.start)
    rows: Rows | None = None
    if bits is not None or chosen != range(opened.bucket.rows):
        rows = np.arange(chosen.start, chosen.stop, chosen.step, dtype=np.int32)
    if bits is not None and rows is not None:
        rows = rows[(bits[rows] & mask) != 0]
    return start_partials(with_selections(opened, needed), opened.int64(TAU), tree.start.window_us, rows)


__all__ = ["Traversal"]
