"""What a query refers to."""

from __future__ import annotations

from collections.abc import Iterator

from plait.query.model import Query
from plait.query.predicates import operands_of


def columns_of(query: Query) -> Iterator[tuple[str, str]]:
    """Yield (source, column) for every column the query reads, in order of appearance, repeated ones too."""
    for relation in query.relations:
        for selection in relation.selections:
            yield from ((relation.source, column) for column in selection.columns)
    for operand in (operand for predicate in query.predicates for operand in operands_of(predicate)):
        source = query.relation(operand.relation).source
        yield from ((source, column) for column in operand.expression.columns)
    for output in query.output:
        yield from ((query.relation(ref.relation).source, ref.column) for ref in output.expression.columns)
