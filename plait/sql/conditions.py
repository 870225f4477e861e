"""Conditions: cut into conjuncts, and equalities into their sides.

Cutting follows Spark's grammar, not sqlglot's, because the two differ in precedence: Spark reads ``a = b IS NULL`` as
``(a = b) IS NULL``. So an equality is only what cannot be read otherwise: one comparison at bracket level zero and no
other predicate beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from plait.sql.operations import bare_words
from plait.sql.tokens import Token, depths, split, without_outer_parentheses

Tokens: TypeAlias = tuple[Token, ...]

COMPARISONS: Final = ("=", "==", "<=>", "<", "<=", ">", ">=", "<>", "!=", "!<", "!>")
_PREDICATES: Final = ("NOT", "IS", "IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "EXISTS", "OR", "AND")


def conjuncts(condition: Sequence[Token]) -> Iterator[Tokens]:
    """Yield the parts of a condition that all must hold: ``a AND (b AND c)`` → a, b, c. The AND of BETWEEN is none."""
    tokens = without_outer_parentheses(condition)
    cuts: list[int] = []
    betweens = 0
    for index, word in bare_words(tokens):
        if word == "OR":
            yield tokens
            return
        if word == "BETWEEN":
            betweens += 1
        elif word == "AND" and betweens:
            betweens -= 1
        elif word == "AND":
            cuts.append(index)
    if not cuts:
        yield tokens
        return
    pieces = split(tokens, cuts)
    if not all(pieces):
        yield tokens  # a stray AND, which the parser of expressions reports where it stands
        return
    for piece in pieces:
        yield from conjuncts(piece)


def equality_sides(tokens: Sequence[Token]) -> tuple[Tokens, Tokens] | None:
    """Return the sides of ``left = right``, None if the conjunct is anything else."""
    signs = [index for index, depth, token in depths(tokens) if depth == 0 and token.is_symbol(*COMPARISONS, "!")]
    predicates = any(word in _PREDICATES for _, word in bare_words(tokens))
    if predicates or len(signs) != 1 or not tokens[signs[0]].is_symbol("=", "=="):
        return None
    left, right = (without_outer_parentheses(side) for side in split(tokens, signs))
    return (left, right) if left and right else None
