"""Join predicates that are no equality: what concerns one relation alone is cut out, for Spark to compute.

``upper(a.name) LIKE concat('%', b.pat)`` → operands ``upper(`name`)`` of a and ``concat('%', `pat`)`` of b, and the
text ``(`0` LIKE `1`)``. Operands are as large as Spark's grammar allows, so the text holds only what needs both
relations. They are computed for every row that passes its selections, also where CASE or OR would not come to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from plait.errors import SqlError, UnsupportedQueryError
from plait.query.model import Operand
from plait.query.predicates import Residual
from plait.sql.expressions.bound import BoundExpression, operand
from plait.sql.lexis.operations import Operation, taken_apart
from plait.sql.lexis.text import SourceText
from plait.sql.lexis.tokens import without_outer_parentheses
from plait.sql.predicates.rows import RowTest, row_test

_ADVICE = (
    "compare two expressions of one relation each, or register a predicate in Python with engine.predicate(name, "
    "function)"
)


class ResidualWriter:
    """Writes one join predicate over two relations. Raises UnsupportedQueryError for what cannot be cut."""

    def __init__(self, text: SourceText) -> None:
        self._text = text
        self._operands: dict[Operand, int] = {}
        self.rewritten: dict[int, tuple[int, str]] = {}
        """What Spark is told in the place of pieces of the text: (where they end, what instead) by where they start."""

    def residual(self, written: str) -> Residual[Operand]:
        """Return the predicate that was written, with the operands that were cut out of it."""
        return Residual(operands=tuple(self._operands), sql=written, text=written)

    def call(self, name: str, arguments: Sequence[BoundExpression]) -> Residual[Operand]:
        """Write the call of a registered predicate, whose arguments are operands as they are."""
        for argument in arguments:
            if len(argument.relations) == 1:
                continue
            found, advice = "columns of two relations", "pass these as two arguments"
            if not argument.relations:
                found, advice = "no column", "constants belong into the registered function"
            message = (
                f"each argument of {name}() is computed from one relation, but {argument.as_written()} has {found}"
            )
            raise self._refused(f"{message}; {advice}", argument)
        sql = f"{name}({', '.join(f'`{position}`' for position in range(len(arguments)))})"
        operands = tuple(operand(argument) for argument in arguments)
        return Residual(operands=operands, sql=name, text=sql, is_function=True)

    def written(self, expression: BoundExpression) -> str:
        """Write an expression over the operands, which are cut out of it."""
        if len(expression.relations) == 1:
            return self._column(operand(expression))
        rows = row_test(expression, self._text)
        if rows is not None:
            return self._rows(rows, expression)
        operation = taken_apart(expression.text, expression.tokens)
        if operation is None:
            inner = expression.part(without_outer_parentheses(expression.tokens))
            if expression.relations:
                message = f"Plait cannot compute '{inner.as_written()}' from two relations; {_ADVICE}"
                raise self._refused(message, expression)
            return f"({inner.as_written()})" if len(inner.tokens) > 1 else inner.as_written()
        if operation.kind.endswith("ILIKE"):
            return self._ilike(operation, [expression.part(part) for part in operation.parts])
        parts = [self.written(expression.part(part)) for part in operation.parts]
        pieces = [operation.pieces[0]]
        for part, piece in zip(parts, operation.pieces[1:], strict=True):
            pieces += (part, piece)
        written = "".join(pieces)
        return written if operation.kind in ("CALL", "CAST") else f"({written})"

    def _rows(self, rows: RowTest, whole: BoundExpression) -> str:
        """Write a comparison of rows, and note what Spark is told, which refuses fields of other names and types."""
        written = rows.written(self.written)
        start, end = whole.tokens[0].start, whole.tokens[-1].end
        outside = {at: edit for at, edit in self.rewritten.items() if not start <= at < end}
        self.rewritten = {**outside, start: (end, rows.written(lambda side: f"({side.as_written()})"))}
        return written

    def _column(self, part: Operand) -> str:
        return f"`{self._operands.setdefault(part, len(self._operands))}`"

    def _ilike(self, operation: Operation, parts: Sequence[BoundExpression]) -> str:
        """Write ILIKE as LIKE between lower case texts, as Spark does; which letters there are is Spark's to know."""
        lowered = []
        for part in parts:
            if len(part.relations) == 1:
                side = operand(part)
                expression = replace(side.expression, sql=f"lower({side.expression.sql})")
                lowered.append(self._column(replace(side, expression=expression)))
            else:
                lowered.append(f"lower({self.written(part)})")
        word = operation.kind.replace("ILIKE", "LIKE")
        return f"({lowered[0]} {word} {lowered[1]}{operation.pieces[-1]})"

    def _refused(self, message: str, at: BoundExpression) -> SqlError:
        return self._text.error(message, at.tokens[0].start, UnsupportedQueryError)
