"""What a query refers to."""

from __future__ import annotations

from collections.abc import Iterator

from plait.query.model import Query


def columns_of(query: Query) -> Iterator[tuple[str, str]]:
    """Yield (source, column) for every column the query reads, in order of appearance, repeated ones too."""
    for relation in query.relations:
        for selection in relation.selections:
            yield from ((relation.source, column) for column in selection.columns)
    operands = [side for equality in query.equalities for side in (equality.left, equality.right)]
    operands += [operand for theta in query.thetas for operand in theta.operands]
    for operand in operands:
        source = query.relation(operand.relation).source
        yield from ((source, column) for column in operand.expression.columns)
    for output in query.output:
        yield from ((query.relation(ref.relation).source, ref.column) for ref in output.expression.columns)
