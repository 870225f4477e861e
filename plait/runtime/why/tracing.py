"""One row of a query followed along its joins: until one finds nothing for it, something is still to come, or there is
a result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from plait.plan.explain import wording
from plait.query.model import JoinStep, Operand, Query, relations_of
from plait.query.partners import KEEPS_RIGHT, TESTS
from plait.query.predicates import Conjunction
from plait.runtime.why.findings import Finding, Trace
from plait.runtime.why.meeting_rows import Joined, Looked, begun_with, bounds, conditions_on, extended, holding, look
from plait.runtime.why.outcomes import came, certain_or_waits, named, of_groups, of_row, unmet, waiting, worded
from plait.runtime.why.row_frames import RelationFrame
from plait.runtime.why.standing import Standing

FrameOf = Callable[[str, "str | None"], RelationFrame]
"""Returns the rows of a relation, by alias; of those that satisfy a condition, if one is given."""


@dataclass(slots=True, kw_only=True)
class Tracer:
    """Follows rows of one query. `order`: in which the relations are joined, by the alias of the first; without it in
    any in which each is joined with one before.
    """

    spark: SparkSession
    query: Query
    standing: Standing
    frame_of: FrameOf
    order: Mapping[str, Sequence[str]] = field(default_factory=dict)
    found: list[Finding] = field(default_factory=list)

    def trace(self, alias: str, condition: str, shown: str) -> Trace:
        """Return what is found about the row of a relation that satisfies `condition` (Spark SQL over its columns); of
        several, about the first one. `shown`: the condition as the user wrote it.
        """
        self.found = []
        start = self.frame_of(alias, condition)
        rows = start.frame.limit(1)
        read = rows.toArrow().to_pylist()
        finding, takes_part = of_row(self.query, start, read[0] if read else None, shown, self.standing)
        self.found.append(finding)
        if takes_part:
            self._follow(begun_with(self.spark, start, self.spark.createDataFrame(rows.toArrow(), rows.schema)), alias)
        return Trace(query=self.query.name, alias=alias, row=shown, findings=tuple(self.found))

    def _follow(self, joined: Joined, start: str) -> None:
        """Follow the row to where it ends, and say of a result what has become of it."""
        whole = self._joined(joined, start) if self.query.joins else self._in_order(joined, start)
        if whole is None:
            return
        batch = bounds(self.spark, whole)["arrived"] or 0
        finding = came(self.query, batch, self.standing)
        groups = None if finding.kind != "came" else self._groups(whole)
        self.found.append(finding if groups is None else groups)

    def _groups(self, whole: Joined) -> Finding | None:
        aggregation = self.query.aggregation
        timed = None if aggregation is None else whole.of(aggregation.window.relation)
        if timed is None:
            return None
        text = f"SELECT min({timed.column('tau')}) AS tau FROM {{rows}} x"
        row = self.spark.sql(text, rows=whole.frame).toArrow().to_pylist()[0]
        return of_groups(self.query, row["tau"], self.standing)

    # -- inner joins -------------------------------------------------------------------------------------------------

    def _in_order(self, joined: Joined, start: str) -> Joined | None:
        """Return the row with all others it meets; None, and why, if one relation has none for it."""
        for alias in self._order(start):
            after = self._inner(joined, alias, None)
            if after is None:
                return None
            joined = after
        return joined

    def _order(self, start: str) -> list[str]:
        """Return the other relations in the order in which the row meets them."""
        known = [each.alias for each in self.query.relations]
        planned = [alias for alias in self.order.get(start, ()) if alias != start]
        if sorted([start, *planned]) == sorted(known):
            return planned
        left, placed = [alias for alias in known if alias != start], [start]
        while left:
            linked = (alias for alias in left if any(self.query.between(alias, other) for other in placed))
            placed.append(next(linked, left[0]))
            left.remove(placed[-1])
        return placed[1:]

    def _inner(self, joined: Joined, alias: str, step: JoinStep | None) -> Joined | None:
        other = self.frame_of(alias, None)
        on, selected = self._on(joined, other, step), self._selected(other)
        looked = look(self.spark, joined, other, on, selected)
        if looked.within:
            self._meets(other, looked)
            return extended(self.spark, joined, other, on, selected)
        self._misses(joined, other, looked, step)
        self._may_come(joined, other)
        return None

    def _on(self, joined: Joined, other: RelationFrame, step: JoinStep | None) -> list[str]:
        conditions = () if step is None else step.conditions
        return conditions_on(joined, other, self._predicates(step), conditions)

    def _predicates(self, step: JoinStep | None) -> Conjunction[Operand]:
        return self.query.predicates if step is None else step.predicates

    def _selected(self, other: RelationFrame) -> list[str]:
        return [] if self.query.joins else [other.selection(each) for each in other.relation.selections]

    def _meets(self, other: RelationFrame, looked: Looked, more: str = "") -> None:
        alias, of = other.relation.alias, named(other.relation)
        rows = "a row" if looked.within == 1 else f"{looked.within:,} rows"
        text = f"{alias}: it meets {rows} of {of}{more}"
        self.found.append(Finding(kind="met", relation=alias, text=text, facts=(("rows", looked.within),)))

    def _misses(self, joined: Joined, other: RelationFrame, looked: Looked, step: JoinStep | None) -> None:
        alias, placed = other.relation.alias, {each.relation.alias for each in joined.placed}
        pairs = [(each, set(relations_of(each))) for each in self._predicates(step)]
        asked = [each for each, both in pairs if alias in both and both - {alias} <= placed]
        conditions = () if step is None else step.conditions
        texts = [worded(asked)] if asked else []
        texts += [
            wording.sql(each.expression.sql, each.relation) for each in conditions if each.relation in {alias, *placed}
        ]
        self.found.append(unmet(joined, other, looked, " and ".join(texts)))

    def _may_come(self, joined: Joined, other: RelationFrame) -> None:
        """Say whether something may still come that the row meets."""
        finding = waiting(other, self._closes(joined), self.standing)
        self.found += [] if finding is None else [finding]

    def _closes(self, joined: Joined) -> int:
        return bounds(self.spark, joined)["closes"] or 0

    # -- joins that keep rows without a partner, or only test for one ------------------------------------------------

    def _joined(self, joined: Joined, start: str) -> Joined | None:
        """Return the row as the joins leave it, one after the other; None, and why, if one leaves nothing, or it is not
        certain yet, or is as it is without a relation.
        """
        at = next((place for place, step in enumerate(self.query.joins) if step.alias == start), None)
        if at is not None:
            left = self._left_part(joined, start, self.query.joins[at])
            if left is None:
                return None
            joined = left
        lacking: list[str] = []
        for place, step in enumerate(self.query.joins):
            if joined.of(step.alias) is not None or (at is not None and place < at):
                continue
            after = self._after(joined, step, lacking)
            if after is None:
                return None
            joined = after
        if not lacking:
            return joined
        self.found.append(certain_or_waits(self._closes(joined), self.standing, _without(lacking)))
        return None

    def _left_part(self, joined: Joined, start: str, step: JoinStep) -> Joined | None:
        """Return a row of an added relation with what it meets of those before; None, and why, if it meets nothing, or
        its relation is only tested.
        """
        linked = [alias for each in step.predicates for alias in relations_of(each) if start in relations_of(each)]
        aliases = [alias for alias in dict.fromkeys(linked) if alias != start] or [self.query.relations[0].alias]
        for alias in aliases:
            other = self.frame_of(alias, None)
            on = self._on(joined, other, step)
            looked = look(self.spark, joined, other, on, [])
            if not looked.within:
                self._misses(joined, other, looked, step)
                if step.kind in KEEPS_RIGHT:
                    self.found.append(certain_or_waits(self._closes(joined), self.standing, _without([alias])))
                else:
                    self._may_come(joined, other)
                return None
            self._meets(other, looked)
            joined = extended(self.spark, joined, other, on, [])
        if step.kind not in TESTS:
            return joined
        what = "lets in the row it meets" if step.kind == "semi" else "keeps out the row it meets"
        text = f"rows of {start} are in no result themselves: this one {what}"
        self.found.append(Finding(kind="has partner", relation=start, text=text))
        return None

    def _after(self, joined: Joined, step: JoinStep, lacking: list[str]) -> Joined | None:
        """Return what one join leaves of the row; None, and why, if nothing. `lacking`: the relations that it turns out
        to be without, as far as that is not decided at once.
        """
        if step.kind is None:
            return self._where(joined, step)
        if step.kind in ("inner", "right"):
            return self._inner(joined, step.alias, step)
        other = self.frame_of(step.alias, None)
        on = self._on(joined, other, step)
        looked = look(self.spark, joined, other, on, [])
        if looked.within and step.kind == "anti":
            text = f"{step.alias}: a row of {named(other.relation)} meets it, which keeps it out of the results"
            self.found.append(Finding(kind="has partner", relation=step.alias, text=text))
            return None
        if looked.within:
            self._meets(other, looked, ", which lets it in" if step.kind == "semi" else "")
            return joined if step.kind == "semi" else extended(self.spark, joined, other, on, [])
        self._misses(joined, other, looked, step)
        if step.kind == "semi":
            self._may_come(joined, other)
            return None
        if not other.relation.is_table:
            lacking.append(step.alias)
        return joined

    def _where(self, joined: Joined, step: JoinStep) -> Joined | None:
        """Return the rows of which a condition in WHERE holds, on whatever relations have a row."""
        texts, wanted = [], []
        for condition in step.conditions:
            frame = joined.of(condition.relation)
            wanted.append(wording.sql(condition.expression.sql, condition.relation))
            texts.append(str(condition.holds_of_nothing) if frame is None else frame.selection(condition.expression))
        left = holding(joined, texts)
        if bounds(self.spark, left)["rows"]:
            return left
        self.found.append(Finding(kind="where false", text=f"{' and '.join(wanted)} is not true of it"))
        return None


def _without(aliases: Sequence[str]) -> str:
    return f"without a row of {' and '.join(aliases)}"


__all__ = ["FrameOf", "Tracer"]
