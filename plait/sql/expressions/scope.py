"""Which columns a query can see, and which one a name means: Spark's rules.

A scope is the row after some joins. USING and NATURAL merge two columns into one that is seen first; the other stays
reachable through its relation (`hidden`). Names do not mind upper and lower case; they come out as in the schema.

A relation whose columns are not known yet takes part as far as it can: a qualified name is taken on trust.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from plait.errors import SqlError
from plait.query.model import Column, ColumnRef, Source
from plait.query.origin import UNTOLD
from plait.sql.lexis.ddl import struct_fields
from plait.sql.lexis.names import did_you_mean, folded

Complain = Callable[[str], SqlError]


class SchemaUnknownError(SqlError):
    """A name cannot be resolved before Spark has been asked for the columns of a source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundRelation:
    """A relation and the source behind it."""

    alias: str
    source: Source

    def column(self, name: str) -> Column | None:
        """Return the column with this name, None if there is none or nobody knows."""
        return next((column for column in self.source.schema or () if folded(column.name) == folded(name)), None)

    @property
    def columns(self) -> tuple[ColumnRef, ...]:
        """The columns that are known."""
        return tuple(ColumnRef(relation=self.alias, column=column.name) for column in self.source.schema or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What a reference means: the column, how many of its parts name it, and its type if known (fields followed).
    `otherwise`: what it means where that is NULL, for a column that FULL JOIN ... USING has merged.
    """

    column: ColumnRef
    used: int
    type: str | None
    otherwise: ColumnRef | None = None

    @property
    def columns(self) -> tuple[ColumnRef, ...]:
        """The columns it is made of, the first that is not NULL counts."""
        return (self.column,) if self.otherwise is None else (self.column, self.otherwise)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The row after joining `relations`. `coalesced`: visible columns that stand for hidden ones where they are NULL,
    because either side may have no row.
    """

    relations: tuple[BoundRelation, ...] = ()
    visible: tuple[ColumnRef, ...] = ()
    hidden: tuple[ColumnRef, ...] = ()
    coalesced: tuple[tuple[ColumnRef, ColumnRef], ...] = ()

    @classmethod
    def of(cls, relation: BoundRelation) -> Scope:
        """Return the scope of one relation."""
        return cls(relations=(relation,), visible=relation.columns)

    def joined(self, other: Scope) -> Scope:
        """Return the scope after a plain join."""
        return Scope(
            relations=self.relations + other.relations,
            visible=self.visible + other.visible,
            hidden=self.hidden + other.hidden,
            coalesced=self.coalesced + other.coalesced,
        )

    def around(self, inner: Scope) -> Scope:
        """Return the scope of a subquery over `inner` in WHERE: its own columns come before those around it."""
        outer = tuple(column for column in self.visible if not inner.named(column.column))
        return replace(self.joined(inner), visible=inner.visible + outer)

    def merged(
        self,
        other: Scope,
        pairs: Sequence[tuple[ColumnRef, ColumnRef]],
        *,
        shows_right: bool = False,
        coalesces: bool = False,
    ) -> Scope:
        """Return the scope after a join that merges pairs of columns: the left ones come first, the right ones hide;
        `shows_right`: the other way round, because the left ones may be NULL; `coalesces`: either may.
        """
        left, right = tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)
        rest = [column for column in self.visible if column not in left]
        rest += [column for column in other.visible if column not in right]
        shown, hidden = (right, left) if shows_right else (left, right)
        return Scope(
            relations=self.relations + other.relations,
            visible=(*shown, *rest),
            hidden=hidden + self.hidden + other.hidden,
            coalesced=(*self.coalesced, *other.coalesced, *(pairs if coalesces else ())),
        )

    def otherwise(self, column: ColumnRef) -> ColumnRef | None:
        """Return what a visible column stands for where it is NULL."""
        return dict(self.coalesced).get(column)

    def relation(self, alias: str) -> BoundRelation | None:
        """Return the relation with this alias."""
        return next((relation for relation in self.relations if folded(relation.alias) == folded(alias)), None)

    def star(self, alias: str | None) -> tuple[ColumnRef, ...]:
        """Return what ``*`` or ``alias.*`` stands for."""
        if alias is None:
            return self.visible
        return tuple(column for column in self.hidden + self.visible if folded(column.relation) == folded(alias))

    def named(self, name: str) -> tuple[ColumnRef, ...]:
        """Return the visible columns with this name."""
        return tuple(column for column in self.visible if folded(column.column) == folded(name))

    @property
    def unknown(self) -> tuple[BoundRelation, ...]:
        """The relations whose columns are not known yet."""
        return tuple(relation for relation in self.relations if relation.source.schema is None)

    def resolve(self, parts: Sequence[str], complain: Complain) -> Meaning:
        """Find what a name means. ``a.b`` is column b of relation a if there is one, else field b of a column a."""
        relation = self.relation(parts[0]) if len(parts) > 1 else None
        if relation is not None:
            if relation.source.schema is None:
                return Meaning(column=ColumnRef(relation=relation.alias, column=parts[1]), used=2, type=None)
            if relation.column(parts[1]) is not None:
                return self._meaning(relation, parts, 2, complain)
        column = self.unqualified(parts[0], complain)
        if column is None:
            raise complain(self._unknown_name(parts, relation))
        owner = self.relation(column.relation)
        assert owner is not None
        meaning = self._meaning(owner, (column.relation, column.column, *parts[1:]), 2, complain, offset=-1)
        otherwise = self.otherwise(column)
        return meaning if otherwise is None else replace(meaning, type=None, otherwise=otherwise)

    def unqualified(self, name: str, complain: Complain) -> ColumnRef | None:
        """Find the one visible column with this name, None if there is none."""
        columns = self.named(name)
        if len(columns) > 1:
            options = " or ".join(f"{column.relation}.{column.column}" for column in columns)
            raise complain(f"'{name}' is ambiguous: it could be {options}; write which one is meant")
        if columns:
            return columns[0]
        if len(self.unknown) > 1:
            names = " or ".join(f"'{relation.alias}'" for relation in self.unknown)
            error = complain(
                f"'{name}' could be a column of {names}, whose columns are not known yet; write the relation before it"
            )
            raise SchemaUnknownError(error.message, line=error.line, column=error.column, file=error.file)
        return ColumnRef(relation=self.unknown[0].alias, column=name) if self.unknown else None

    def _meaning(
        self, relation: BoundRelation, parts: Sequence[str], used: int, complain: Complain, offset: int = 0
    ) -> Meaning:
        column = relation.column(parts[1])
        reference = ColumnRef(relation=relation.alias, column=column.name if column else parts[1])
        type_ = _follow(column.type, parts[used:], parts[1], complain) if column and column.type != UNTOLD else None
        return Meaning(column=reference, used=used + offset, type=type_)

    def _unknown_name(self, parts: Sequence[str], relation: BoundRelation | None) -> str:
        if relation is not None:
            columns = [column.name for column in relation.source.schema or ()]
            return f"'{relation.alias}' has no column '{parts[1]}'{did_you_mean(parts[1], columns)}"
        if len(parts) > 1:
            behind = [other.alias for other in self.relations if folded(other.source.name) == folded(parts[0])]
            if behind:
                return f"'{parts[0]}' is called '{behind[0]}' in this query; write {behind[0]}.{parts[1]}"
            hint = did_you_mean(parts[0], [other.alias for other in self.relations])
            return f"there is no relation or column '{parts[0]}' here{hint}"
        return f"there is no column '{parts[0]}'{did_you_mean(parts[0], (column.column for column in self.visible))}"


def _follow(type_: str, fields: Iterable[str], name: str, complain: Complain) -> str | None:
    """Return the type of a field of a field; None where only Spark knows (maps, arrays, variants)."""
    current: str | None = type_
    for field in fields:
        if current is None or current.startswith(("array<", "map<", "variant")):
            return None
        known = struct_fields(current)
        if known is None and current.startswith("struct<"):
            return None
        if known is None:
            raise complain(f"'{name}' has type {current} and no fields, so '{field}' means nothing; remove it")
        match = next((each for each in known if folded(each.name) == folded(field)), None)
        if match is None:
            raise complain(f"'{name}' has no field '{field}'{did_you_mean(field, (each.name for each in known))}")
        name, current = f"{name}.{match.name}", match.type
    return current
