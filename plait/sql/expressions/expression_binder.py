"""Resolving the names of one expression; every mistake in it is noted, not only the first."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Final

from plait.errors import SqlError, UnsupportedQueryError
from plait.sql.expressions.bound import BoundExpression
from plait.sql.expressions.functions import (
    GROUPED,
    ORDERED,
    REFUSED,
    IsFunction,
    reads_clock,
    refused_calls,
    unknown_calls,
)
from plait.sql.expressions.parsing import Parsed, Reference, parse_expression
from plait.sql.expressions.scope import Meaning, Scope
from plait.sql.expressions.time_patterns import wrong_patterns
from plait.sql.lexis.names import folded
from plait.sql.lexis.operations import named_call
from plait.sql.lexis.text import SourceText
from plait.sql.lexis.tokens import Token, without_outer_parentheses

_MISPLACED: Final = (
    "the registered predicate {0}() here: call it in WHERE or ON as a condition of its own, not inside an expression; "
    "register its opposite for NOT {0}(...)"
)


class ExpressionBinder:
    """Binds the expressions of one query; `problems` is shared with whoever else looks at that query."""

    def __init__(
        self,
        text: SourceText,
        masked: str,
        problems: list[SqlError],
        registered: Sequence[str] = (),
        is_function: IsFunction | None = None,
    ) -> None:
        self.text, self.masked, self.problems = text, masked, problems
        self.registered_calls: list[Sequence[Token]] = []
        self._registered, self._is_function = registered, is_function

    def report(self, message: str, at: Token, kind: type[SqlError] = SqlError) -> None:
        """Note a mistake."""
        self.problems.append(self.text.error(message, at.start, kind))

    def bind_condition(self, tokens: Sequence[Token], scope: Scope) -> BoundExpression | None:
        """Bind a conjunct; None if it is wrong. It may be the call of a registered predicate."""
        call = without_outer_parentheses(tokens) if named_call(tokens, self._registered) else ()
        if call:
            self.registered_calls.append(call)
        parsed = self.parse(tokens, call=call[0] if call else None, is_condition=True)
        if parsed is not None and parsed.alias is not None:
            self.report(f"expected AND, OR or the end of the condition before '{parsed.alias.value}'", parsed.alias)
            return None
        return self.bind(parsed, tokens, scope)

    def parse(
        self, tokens: Sequence[Token], *, call: Token | None = None, is_condition: bool = False, groups: bool = False
    ) -> Parsed | None:
        """Parse an expression; None if it is none, or calls a function that Plait does not run.

        `call`: the one token that may name a registered predicate; `groups`: it may aggregate.
        """
        refused = [refusal for refusal in refused_calls(tokens, is_condition=is_condition) if refusal[0] is not call]
        if groups:
            refused = [refusal for refusal in refused if refusal[0].value.lower() not in GROUPED | ORDERED]
        refused += [(token, _MISPLACED.format(token.value)) for token in self._misplaced(tokens, call)]
        for token, what in refused:
            self.report(f"Plait does not run {what}", token, UnsupportedQueryError)
        wrong = [*unknown_calls(tokens, self._registered, self._is_function), *wrong_patterns(tokens)]
        for token, message in wrong:
            self.report(message, token)
        if refused or wrong:
            return None
        try:
            return parse_expression(self.text, self.masked, tokens)
        except SqlError as problem:
            self.problems.append(problem)
            return None

    def _misplaced(self, tokens: Sequence[Token], call: Token | None) -> Iterator[Token]:
        names = [name.lower() for name in self._registered]
        for token, following in pairwise(tokens):
            if token.value.lower() in names and following.is_symbol("(") and token is not call:
                yield token

    def bind(
        self, parsed: Parsed | None, tokens: Sequence[Token], scope: Scope, given: Collection[str] = ()
    ) -> BoundExpression | None:
        """Resolve the references of a parsed expression, which `tokens` are all of, without its alias. `given`: names,
        folded, that are no columns of the scope and stay as they are.
        """
        if parsed is None:
            return None
        before = len(self.problems)
        references = [reference for reference in parsed.references if folded(reference.parts[0]) not in given]
        meant = [(reference, self._meaning(reference, scope)) for reference in references]
        meanings = tuple((reference, meaning) for reference, meaning in meant if meaning is not None)
        self._refuse_unseen(tokens, parsed, scope)
        if len(self.problems) > before:
            return None
        return BoundExpression(text=self.masked, tokens=tuple(tokens), meanings=meanings)

    def _meaning(self, reference: Reference, scope: Scope) -> Meaning | None:
        def complain(message: str) -> SqlError:
            return self.text.error(message, reference.start)

        if reference.is_bare and not scope.named(reference.parts[0]):
            name = reference.parts[0].lower()
            if reads_clock(name):
                message = f"Plait does not run {REFUSED[name].format(name)}"
                self.problems.append(self.text.error(message, reference.start, UnsupportedQueryError))
            return None
        try:
            return scope.resolve(reference.parts, complain)
        except SqlError as problem:
            self.problems.append(problem)
            return None

    def _refuse_unseen(self, tokens: Sequence[Token], parsed: Parsed, scope: Scope) -> None:
        """Refuse ``alias.`` that no reference covers: the parser took it for something else, so it stays unresolved."""
        spans = [(reference.start, reference.ends[-1]) for reference in parsed.references]
        for index, token in enumerate(tokens[:-1]):
            names_relation = token.kind in ("word", "quoted") and scope.relation(token.value) is not None
            starts = index == 0 or not tokens[index - 1].is_symbol(".")
            covered = any(start <= token.start < end for start, end in spans)
            if names_relation and starts and tokens[index + 1].is_symbol(".") and not covered:
                self.report(
                    f"cannot tell what '{folded(token.value)}.' means here; give the relation another alias", token
                )
