"""The type of an expression over one source, as the front end writes them, where declared columns tell it."""

from __future__ import annotations

from plait.errors import SqlError
from plait.query.model import Source, SourceExpression
from plait.sql.expression_binder import ExpressionBinder
from plait.sql.inference import inferred_type
from plait.sql.scope import BoundRelation, Scope
from plait.sql.text import SourceText, scan
from plait.sql.tokens import tokenize


def type_over(source: Source, expression: SourceExpression) -> str | None:
    """Return the type of an expression over the source's columns, None where only Spark knows it."""
    if source.schema is None:
        return None
    text = SourceText(text=expression.sql)
    masked = scan(text.text).masked
    problems: list[SqlError] = []
    binder = ExpressionBinder(text, masked, problems, is_function=lambda name: True)
    tokens = tokenize(text, masked, 0, len(masked))
    bound = binder.bind(binder.parse(tokens), tokens, Scope.of(BoundRelation(alias="", source=source)))
    return None if bound is None or problems else inferred_type(bound)
