"""Expressions with their references resolved, and how they are written down."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import TypeAlias

from plait.query.model import ColumnRef, JoinedExpression, Operand, SourceExpression
from plait.sql.expressions.parsing import Reference
from plait.sql.expressions.scope import Meaning
from plait.sql.expressions.structs import rows_of_fields
from plait.sql.lexis.names import backquoted
from plait.sql.lexis.tokens import Token, depths, rendered, without_outer_parentheses

_Naming: TypeAlias = Callable[[ColumnRef], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundExpression:
    """Tokens of an expression, and what each reference in them means, in order of appearance."""

    text: str
    tokens: tuple[Token, ...]
    meanings: tuple[tuple[Reference, Meaning], ...]

    @property
    def relations(self) -> tuple[str, ...]:
        """The aliases it refers to, in order of appearance."""
        return tuple(dict.fromkeys(column.relation for _, meaning in self.meanings for column in meaning.columns))

    @property
    def is_column(self) -> bool:
        """Whether it is a column, or a field of one, and nothing else."""
        names = all(token.is_symbol(".") != (index % 2 == 0) for index, token in enumerate(self.tokens))
        return names and bool(self.meanings) and self.meanings[0][0].start == self.tokens[0].start

    @property
    def is_whole_column(self) -> bool:
        """Whether it is a column, perhaps in parentheses, and no field of one."""
        inner = self.part(without_outer_parentheses(self.tokens))
        return inner.is_column and inner.meanings[0][1].used == len(inner.meanings[0][0].parts)

    @property
    def column_type(self) -> str | None:
        """The type, if it is a column whose type is known."""
        whole = self.is_column and self.meanings[0][0].ends[-1] == self.tokens[-1].end
        return self.meanings[0][1].type if whole else None

    def part(self, tokens: Sequence[Token]) -> BoundExpression:
        """Return a part of this expression."""
        starts = {token.start for token in tokens}
        meanings = tuple((reference, meaning) for reference, meaning in self.meanings if reference.start in starts)
        return BoundExpression(text=self.text, tokens=tuple(tokens), meanings=meanings)

    def as_written(self) -> str:
        """Return the user's text."""
        return rendered(self.text, self.tokens, {})

    def qualified(self) -> str:
        """Write it with the relation before each column, whatever the user has left out."""
        names = {
            reference.start: (
                reference.ends[meaning.used - 1],
                f"{backquoted(meaning.column.relation)}.{backquoted(meaning.column.column)}",
            )
            for reference, meaning in self.meanings
        }
        return rendered(self.text, self.tokens, names)

    def over_source(self) -> SourceExpression:
        """Write it over the columns of the one relation it refers to."""
        columns = tuple(dict.fromkeys(meaning.column.column for _, meaning in self.meanings))
        return SourceExpression(sql=self._rendered(lambda column: column.column), columns=columns)

    def over_join(self, replaced: Mapping[int, tuple[int, str]] = MappingProxyType({})) -> JoinedExpression:
        """Write it over the joined row. `replaced`: what else is put otherwise, by where it starts, with its end."""
        columns = tuple(dict.fromkeys(column for _, meaning in self.meanings for column in meaning.columns))
        return JoinedExpression(sql=self._rendered(lambda column: column.name, replaced), columns=columns)

    def _rendered(self, name: _Naming, replaced: Mapping[int, tuple[int, str]] = MappingProxyType({})) -> str:
        replacements = {
            reference.start: (reference.ends[meaning.used - 1], _written(meaning, name))
            for reference, meaning in self.meanings
        }
        for argument in chain.from_iterable(rows_of_fields(self.tokens)):
            part = self.part(argument) if argument else self
            alias = backquoted(part.meanings[0][0].parts[-1]) if part.is_whole_column else ""
            new = _written(part.meanings[0][1], name) if part.is_whole_column else ""
            if new != alias:
                replacements[argument[0].start] = (argument[-1].end, f"{new} AS {alias}")
        replacements |= replaced
        return rendered(self.text, self.tokens, replacements)


def _written(meaning: Meaning, name: _Naming) -> str:
    columns = [backquoted(name(column)) for column in meaning.columns]
    return columns[0] if len(columns) == 1 else f"coalesce({', '.join(columns)})"


def operand(expression: BoundExpression) -> Operand:
    """Return an expression over one relation as an operand, without parentheses around it unless it is a row."""
    inner = without_outer_parentheses(expression.tokens)
    is_row = any(not depth and token.is_symbol(",") for _, depth, token in depths(inner))
    whole = expression if is_row else expression.part(inner)
    return Operand(relation=expression.relations[0], expression=whole.over_source())


def column_of_source(column: ColumnRef) -> SourceExpression:
    """Return a bare column as an expression over its source."""
    return SourceExpression(sql=backquoted(column.column), columns=(column.column,))


def column_of_join(column: ColumnRef, otherwise: ColumnRef | None = None) -> JoinedExpression:
    """Return a bare column as an expression over the joined row. `otherwise`: what it means where it is NULL."""
    if otherwise is None:
        return JoinedExpression(sql=backquoted(column.name), columns=(column,))
    columns = (column, otherwise)
    return JoinedExpression(sql=f"coalesce({', '.join(backquoted(each.name) for each in columns)})", columns=columns)
