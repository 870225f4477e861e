"""The WHERE clause: conditions on the joined row, and what it looks for in relations of its own."""

from __future__ import annotations

from collections.abc import Sequence

from plait.sql.expressions.expression_binder import ExpressionBinder
from plait.sql.expressions.scope import Scope
from plait.sql.lexis.names import backquoted, doubled
from plait.sql.lexis.tokens import Token
from plait.sql.predicates.sorting import Predicates
from plait.sql.select.from_clause import BoundJoin, FromClause
from plait.sql.select.output import without_alias
from plait.sql.select.syntax import SelectSyntax
from plait.sql.select.where_tests import WhereSyntax, WhereTest


def bind_where(
    syntax: SelectSyntax,
    written: WhereSyntax,
    tokens: Sequence[Token],
    clause: FromClause,
    expressions: ExpressionBinder,
    where: Predicates,
) -> tuple[Predicates, dict[int, tuple[int, str]]]:
    """Bind WHERE into `where`; what it asks of relations that it looks into belongs to their joins. Return with it
    where Spark is told something else: the start of a piece of text, its end, and what stands in its place.
    """
    joins = {join.syntax: join for join in clause.joins}
    for conjunct in written.conditions:
        condition = expressions.bind_condition(conjunct, clause.scope)
        if condition is not None:
            where.add(condition)
    asked = [_bind_test(test, joins[test.relation], clause, expressions) for test in written.tests]
    if not asked or syntax.where is None:
        return where, {}
    before = max(token.start for token in tokens if token.end <= syntax.where[0].start)
    edits = {before: (before + len("WHERE"), f"{''.join(asked)} WHERE")}
    return where, edits | {test.tokens[0].start: (test.tokens[-1].end, "TRUE") for test in written.tests}


def _bind_test(test: WhereTest, join: BoundJoin, clause: FromClause, expressions: ExpressionBinder) -> str:
    """Bind what WHERE looks for in a relation; return the join that says the same, which is what Spark is told: in
    subqueries it wants no streams.
    """
    inner = Scope.of(next(each for each in clause.relations if each.alias == join.alias))
    scope, asked = clause.scope.around(inner), []
    for item in test.listed:
        if not item[-1].is_symbol("*"):
            written, _ = without_alias(item, expressions)
            expressions.bind(expressions.parse(written), written, scope)
    for conjunct in test.conditions:
        condition = expressions.bind_condition(conjunct, scope)
        if condition is not None:
            join.predicates.add(condition)
            asked.append(join.predicates.rewritten.get(conjunct[0].start, (0, condition.qualified()))[1])
    if test.compared is not None:
        left = expressions.bind_condition(test.compared[0], clause.scope)
        right = expressions.bind_condition(test.compared[1], inner)
        if left is not None and right is not None:
            join.predicates.add_equality(left, right, test.relation.at)
            asked.append(f"({left.qualified()}) = ({right.qualified()})")
    source = inner.relations[0].source.name
    conditions = doubled(" AND ".join(f"({each})" for each in asked) or "TRUE")
    words = test.relation.join.upper()
    return f" LEFT {words} JOIN {{{source}}} AS {backquoted(join.alias)} ON {conditions}"
