"""Intermediate stores by content: what a subset of a query's relations becomes inside a plan."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import combinations

from plait.optimizer.assemble.naming import StoreName
from plait.optimizer.join_graph import Matching, matching
from plait.plan.conditions import between
from plait.plan.model import (
    Intermediate,
    Joined,
    JoinedCheck,
    JoinedSpan,
    KeyColumn,
    Member,
    ValueColumn,
    part_column,
)
from plait.plan.relations import member_name, operands_of, ordinal_of, selection_of, window_of
from plait.query.model import Query

_DIGEST_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset:
    """Some relations of a query, as the parts of an intermediate store: by (store, ordinal), aliases beside them."""

    query: Query
    aliases: tuple[str, ...]
    intermediate: Intermediate

    @classmethod
    def of(cls, query: Query, aliases: Collection[str], store_name: StoreName) -> Subset:
        """Return the subset with these aliases, given in any order."""
        ordered = sorted(
            aliases,
            key=lambda alias: (store_name(query.name, query.relation(alias).source), ordinal_of(query, alias)),
        )
        return cls(query=query, aliases=tuple(ordered), intermediate=_intermediate(query, ordered, store_name))

    @property
    def store(self) -> str:
        """The id of the store: its parts, and a digest of everything that tells it from others over the same parts."""
        name = "⋈".join(member_name(part) for part in self.intermediate.parts)
        content = repr(
            [
                [(part.store, part.ordinal, part.selection.sql, part.window_us) for part in self.intermediate.parts],
                [(pair.left, pair.left_key, pair.right, pair.right_key) for pair in self.intermediate.joined],
                *map(repr, (*self.intermediate.spans, *self.intermediate.checks)),
            ]
        )
        return f"{name}~{blake2b(content.encode(), digest_size=_DIGEST_BYTES).hexdigest()}"

    def key(self, alias: str, key: KeyColumn) -> KeyColumn:
        """Return a key of one of the relations as a key of the intermediate store."""
        return replace(key, part=self.aliases.index(alias))

    def column(self, alias: str, name: str) -> str:
        """Return the name of a column of one of the relations in the intermediate store."""
        return part_column(self.aliases.index(alias), name)

    def outer_keys(self, others: Collection[str]) -> tuple[KeyColumn, ...]:
        """Return the keys by which the subset is joined with `others`, relations of the query outside it."""
        return tuple(
            self.key(alias, mine)
            for alias in self.aliases
            for other in others
            for mine in between(self.query, other, alias).keys_of_right
        )

    def outer_operands(self, others: Collection[str]) -> Iterator[str | ValueColumn]:
        """Yield what formulas read of the subset that also concern one of `others`."""
        for part, alias in enumerate(self.aliases):
            for operand in operands_of(self.query, alias, others):
                yield part_column(part, operand) if isinstance(operand, str) else replace(operand, part=part)

    def matching(self, joined: tuple[str, ...]) -> Matching:
        """Return what joins a probe path (aliases by position) with the subset."""
        return matching(self.query, joined, self.aliases, self.column)


def _intermediate(query: Query, ordered: Sequence[str], store_name: StoreName) -> Intermediate:
    pairs = [
        (left, right, between(query, ordered[left], ordered[right]))
        for left, right in combinations(range(len(ordered)), 2)
    ]
    return Intermediate(
        parts=tuple(member_of(query, alias, store_name, among=ordered) for alias in ordered),
        joined=tuple(
            Joined(left=left, left_key=mine.name, right=right, right_key=theirs.name)
            for left, right, found in pairs
            for mine, theirs in found.keys
        ),
        spans=tuple(
            JoinedSpan(
                left=left,
                left_key=span.left.name,
                right=right,
                right_key=span.right.name,
                low=span.low,
                high=span.high,
            )
            for left, right, found in pairs
            for span in found.spans
        ),
        checks=tuple(
            JoinedCheck(
                formula=check.formula,
                operands=tuple((left if is_left else right, name) for is_left, name in check.operands),
            )
            for left, right, found in pairs
            for check in found.checks
        ),
    )


def member_of(query: Query, alias: str, store_name: StoreName, *, among: Collection[str] | None = None) -> Member:
    """Return a relation of a query as a member; its ordinal counts occurrences `among` some aliases, default all."""
    relation = query.relation(alias)
    counted = [other.alias for other in query.relations if among is None or other.alias in among]
    same = [other for other in counted if query.relation(other).source == relation.source]
    return Member(
        store=store_name(query.name, relation.source),
        ordinal=same.index(alias),
        selection=selection_of(relation),
        window_us=window_of(relation),
    )
