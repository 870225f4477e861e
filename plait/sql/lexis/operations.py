"""Expressions, taken apart one operation at a time by Spark's grammar (SqlBaseParser.g4), not sqlglot's.

From what binds least: OR, AND, NOT, one predicate (BETWEEN, IN, LIKE, IS ...), comparisons, ``|``, ``^``, ``&``,
shifts, ``+ - ||``, ``* / % DIV``, signs, ``::``; operators of one level from left to right.

Conditions are cut into conjuncts, and equalities into their sides, by the same grammar: Spark reads ``a = b IS NULL``
as ``(a = b) IS NULL``. So an equality is only what cannot be read otherwise: one comparison at bracket level zero and
no other predicate beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from plait.sql.lexis.operators import (
    CONSTANT_TESTS,
    LEVELS,
    NEGATED,
    OPERATORS,
    PREDICATES,
    Binary,
    Comparison,
    Connective,
    Kind,
    PredicateWord,
)
from plait.sql.lexis.tokens import Token, depths, rendered, split, without_outer_parentheses

Tokens: TypeAlias = tuple[Token, ...]

_TYPED: Final = frozenset({"cast", "try_cast"})
_CLAUSED: Final = frozenset({"extract", "trim", "substring", "substr", "position", "overlay"})
_CLAUSES: Final = ("FROM", "IN", "PLACING")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation: its `parts`, and the text before, between and after them.

    `kind` is the operator in upper case (``AND``, ``<=``, ``NOT BETWEEN``, ``IS NULL``), ``SIGN``, ``CAST``, ``CASE``,
    or ``CALL`` of the function `name`, in lower case.
    """

    kind: Kind
    parts: tuple[Tokens, ...]
    pieces: tuple[str, ...]
    name: str = ""


def taken_apart(text: str, tokens: Sequence[Token]) -> Operation | None:
    """Return the outermost operation; None for a name, a literal and whatever else has no parts known here."""
    inner = without_outer_parentheses(tokens)
    if len(inner) < 2 or _at_level(inner, ","):
        return None
    for step in (_connective, _predicate, _binary, _sign, _typed_by_colons, _case, _call):
        operation = step(text, inner)
        if operation is not None:
            return operation if all(operation.parts) else None
    return None


def called(tokens: Sequence[Token]) -> tuple[Token, tuple[Tokens, ...]] | None:
    """Return the name and the arguments if all of it is one call ``name(...)``."""
    inner = without_outer_parentheses(tokens)
    if len(inner) < 3 or inner[0].kind not in ("word", "quoted") or not inner[1].is_symbol("("):
        return None
    closes = next((index for index, depth, token in depths(inner) if depth == 0 and token.is_symbol(")")), None)
    if closes != len(inner) - 1:
        return None
    arguments = inner[2:-1]
    return inner[0], tuple(split(arguments, _at_level(arguments, ","))) if arguments else ()


def named_call(tokens: Sequence[Token], names: Sequence[str]) -> tuple[str, tuple[tuple[Token, ...], ...]] | None:
    """Return the registered name, and the arguments, if all of it is a call of one of these names."""
    call = called(tokens)
    if call is None:
        return None
    registered = next((name for name in names if name.lower() == call[0].value.lower()), None)
    return (registered, call[1]) if registered is not None else None


def bare_words(tokens: Sequence[Token]) -> Iterator[tuple[int, str]]:
    """Yield (index, word in upper case) for the bare words outside all brackets, but not for fields."""
    for index, depth, token in depths(tokens):
        if depth == 0 and token.keyword and not (index > 0 and tokens[index - 1].is_symbol(".")):
            yield index, token.keyword


def _connective(text: str, tokens: Tokens) -> Operation | None:
    words = list(bare_words(tokens))
    last: dict[str, int] = {}
    betweens = 0
    for index, word in words:
        if word == "BETWEEN":
            betweens += 1
        elif word == "AND" and betweens:
            betweens -= 1
        elif word in ("AND", "OR"):
            last[word] = index
    connectives: tuple[Connective, ...] = ("OR", "AND")
    for connective in connectives:
        if connective in last:
            return _infix(connective, tokens, last[connective], last[connective] + 1)
    if len(tokens) > 1 and (tokens[0].keyword == "NOT" or tokens[0].is_symbol("!")):
        return Operation(kind="NOT", parts=(tokens[1:],), pieces=("NOT ", ""))
    return None


def _predicate(text: str, tokens: Tokens) -> Operation | None:
    at = next((index for index, word in bare_words(tokens) if index > 0 and (word == "IS" or word in PREDICATES)), None)
    if at is None:
        return None
    negated = tokens[at - 1].keyword == "NOT" or tokens[at - 1].is_symbol("!")
    value, rest = tokens[: at - negated], tokens[at + 1 :]
    if tokens[at].keyword == "IS":
        return _is(value, rest)
    word = PREDICATES[tokens[at].keyword]
    others, between, after = _compared_with(text, word, rest)
    kind: Kind = NEGATED[word] if negated else word
    opening = f" {kind} (" if after == ")" else f" {kind} "
    return Operation(kind=kind, parts=(value, *others), pieces=("", opening, *[between] * (len(others) - 1), after))


def _compared_with(text: str, kind: PredicateWord, rest: Tokens) -> tuple[list[Tokens], str, str]:
    """Return what follows BETWEEN, IN or LIKE: the parts, the text between them, and that after them."""
    words = list(bare_words(rest))
    if kind == "BETWEEN":
        bounds = split(rest, [index for index, word in words if word == "AND"])
        return (bounds if len(bounds) == 2 else [()]), " AND ", ""
    if kind == "IN":
        is_list = len(without_outer_parentheses(rest)) < len(rest)
        listed = rest[1:-1]  # one pair only: ``IN ((x, y))`` lists one row
        return (split(listed, _at_level(listed, ",")) if is_list else [()]), ", ", ")"
    escapes = [index for index, word in words if word == "ESCAPE"]
    pattern, *escape = split(rest, escapes)
    if not rest or rest[0].keyword in ("ANY", "SOME", "ALL") or len(escape) > 1:
        return [()], "", ""
    return [pattern], "", f" ESCAPE {rendered(text, escape[0], {})}" if escape else ""


def _is(value: Tokens, rest: Tokens) -> Operation:
    words = tuple(token.keyword for token in rest)
    if words[:2] == ("DISTINCT", "FROM"):
        return Operation(kind="IS DISTINCT", parts=(value, rest[2:]), pieces=("NOT (", " <=> ", ")"))
    if words[:3] == ("NOT", "DISTINCT", "FROM"):
        return Operation(kind="IS DISTINCT", parts=(value, rest[3:]), pieces=("", " <=> ", ""))
    kind = CONSTANT_TESTS.get(words)
    if kind is None:  # Spark refuses it; an empty part says that nothing else can be made of it either
        return Operation(kind="IS NULL", parts=((),), pieces=("", ""))
    return Operation(kind=kind, parts=(value,), pieces=("", f" {kind}"))


def _binary(text: str, tokens: Tokens) -> Operation | None:
    operators = list(_binary_operators(text, tokens))
    for level in LEVELS:
        of_level = [operator for operator in operators if operator[2] in level]
        if of_level:
            start, end, kind = of_level[-1]
            return _infix(kind, tokens, start, end)
    return None


def _binary_operators(text: str, tokens: Tokens) -> Iterator[tuple[int, int, Comparison | Binary]]:
    """Yield (first token, behind the last token, operator); ``<<``, ``>>`` and ``>>>`` are several tokens."""
    covered = 0
    for index, depth, token in depths(tokens):
        if depth or index < covered or not index or not _ends_operand(tokens, index - 1):
            continue
        covered = index + 1
        if token.is_symbol("<", ">"):
            while covered < len(tokens) and tokens[covered].start == tokens[covered - 1].end:
                if not tokens[covered].is_symbol(token.value):
                    break
                covered += 1
        operator = OPERATORS.get("".join(part.keyword or part.value for part in tokens[index:covered]))
        is_written_out = token.kind == "word" and not _is_field(tokens, index)
        if operator is not None and (token.kind == "symbol" or is_written_out):
            yield index, covered, operator


def _ends_operand(tokens: Tokens, index: int) -> bool:
    token = tokens[index]
    if token.kind == "word":
        return token.keyword not in ("DIV", "INTERVAL") or _is_field(tokens, index)
    return token.kind != "symbol" or token.is_symbol(")", "]", "}")


def _is_field(tokens: Tokens, index: int) -> bool:
    return index > 0 and tokens[index - 1].is_symbol(".")


def _sign(text: str, tokens: Tokens) -> Operation | None:
    if len(tokens) > 1 and tokens[0].is_symbol("-", "+", "~"):
        return Operation(kind="SIGN", parts=(tokens[1:],), pieces=(f"{tokens[0].value} ", ""))
    return None


def _typed_by_colons(text: str, tokens: Tokens) -> Operation | None:
    colons = _at_level(tokens, "::")
    if not colons:
        return None
    return _cast("CAST", text, tokens[: colons[-1]], tokens[colons[-1] + 1 :])


def _cast(name: str, text: str, value: Tokens, type_: Tokens) -> Operation:
    kind = Operation(kind="CAST", parts=(value,), pieces=(f"{name}(", f" AS {rendered(text, type_, {})})"), name=name)
    return kind if type_ else Operation(kind="CAST", parts=((),), pieces=("", ""))


def _case(text: str, tokens: Tokens) -> Operation | None:
    if tokens[0].keyword != "CASE" or tokens[-1].keyword != "END":
        return None
    inner = tokens[1:-1]
    cuts = [index for index, word in bare_words(inner) if word in ("WHEN", "THEN", "ELSE")]
    first, *parts = split(inner, cuts)
    words = [f" {inner[index].keyword} " for index in cuts]
    if first:
        return Operation(kind="CASE", parts=(first, *parts), pieces=("CASE ", *words, " END"))
    return Operation(kind="CASE", parts=tuple(parts), pieces=(f"CASE{words[0] if words else ''}", *words[1:], " END"))


def _call(text: str, tokens: Tokens) -> Operation | None:
    call = called(tokens)
    if call is None:
        return None
    token, arguments = call
    name = token.value.lower()
    if name in _TYPED:
        value = arguments[0] if len(arguments) == 1 else ()
        names_type = [index for index, word in bare_words(value) if word == "AS"]
        return _cast(name.upper(), text, value[: names_type[-1]], value[names_type[-1] + 1 :]) if names_type else None
    has_clauses = any(word in _CLAUSES for argument in arguments for _, word in bare_words(argument))
    if (name in _CLAUSED and has_clauses) or any(_at_level(argument, "->", "=>") for argument in arguments):
        return None
    pieces = (f"{rendered(text, (token,), {})}(", *[", "] * (len(arguments) - 1), ")")
    return Operation(kind="CALL", parts=arguments, pieces=pieces if arguments else (pieces[0] + ")",), name=name)


def _infix(kind: Kind, tokens: Tokens, start: int, end: int) -> Operation:
    return Operation(kind=kind, parts=(tokens[:start], tokens[end:]), pieces=("", f" {kind} ", ""))


def _at_level(tokens: Sequence[Token], *symbols: str) -> list[int]:
    return [index for index, depth, token in depths(tokens) if depth == 0 and token.is_symbol(*symbols)]


COMPARISONS: Final = ("=", "==", "<=>", "<", "<=", ">", ">=", "<>", "!=", "!<", "!>")
_NO_EQUALITY: Final = ("NOT", "IS", "IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "EXISTS", "OR", "AND")


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
    predicates = any(word in _NO_EQUALITY for _, word in bare_words(tokens))
    if predicates or len(signs) != 1 or not tokens[signs[0]].is_symbol("=", "=="):
        return None
    left, right = (without_outer_parentheses(side) for side in split(tokens, signs))
    return (left, right) if left and right else None
