"""The operators of expressions as closed sets of words, in upper case."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

Comparison: TypeAlias = Literal["=", "==", "<=>", "<", "<=", ">", ">=", "<>", "!="]
Bitwise: TypeAlias = Literal["|", "^", "&"]
Shift: TypeAlias = Literal["<<", ">>", ">>>"]
Additive: TypeAlias = Literal["+", "-"]
Arithmetic: TypeAlias = Literal["+", "-", "*", "/", "%", "DIV"]
Binary: TypeAlias = Arithmetic | Bitwise | Shift | Literal["||"]
"""What makes a value of two values."""

Connective: TypeAlias = Literal["AND", "OR", "NOT"]
PredicateWord: TypeAlias = Literal["BETWEEN", "IN", "LIKE", "ILIKE", "RLIKE"]
NegatedWord: TypeAlias = Literal["NOT BETWEEN", "NOT IN", "NOT LIKE", "NOT ILIKE", "NOT RLIKE"]
ConstantTest: TypeAlias = Literal["IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE"]

Kind: TypeAlias = (
    Comparison
    | Binary
    | Connective
    | PredicateWord
    | NegatedWord
    | ConstantTest
    | Literal["IS DISTINCT", "SIGN", "CAST", "CASE", "CALL"]
)
"""What an operation is; ``IS DISTINCT`` also with NOT, which its text tells."""

LEVELS: Final[tuple[tuple[Comparison | Binary, ...], ...]] = (
    ("=", "==", "<=>", "<", "<=", ">", ">=", "<>", "!="),
    ("|",),
    ("^",),
    ("&",),
    ("<<", ">>", ">>>"),
    ("+", "-", "||"),
    ("*", "/", "%", "DIV"),
)
"""From what binds least."""

OPERATORS: Final[Mapping[str, Comparison | Binary]] = MappingProxyType(
    {operator: operator for level in LEVELS for operator in level}
)
PREDICATES: Final[Mapping[str, PredicateWord]] = MappingProxyType(
    {"BETWEEN": "BETWEEN", "IN": "IN", "LIKE": "LIKE", "ILIKE": "ILIKE", "RLIKE": "RLIKE", "REGEXP": "RLIKE"}
)
"""By the word they are written with."""

NEGATED: Final[Mapping[PredicateWord, NegatedWord]] = MappingProxyType(
    {
        "BETWEEN": "NOT BETWEEN",
        "IN": "NOT IN",
        "LIKE": "NOT LIKE",
        "ILIKE": "NOT ILIKE",
        "RLIKE": "NOT RLIKE",
    }
)
CONSTANT_TESTS: Final[Mapping[tuple[str, ...], ConstantTest]] = MappingProxyType(
    {
        ("NULL",): "IS NULL",
        ("UNKNOWN",): "IS NULL",
        ("TRUE",): "IS TRUE",
        ("FALSE",): "IS FALSE",
        ("NOT", "NULL"): "IS NOT NULL",
        ("NOT", "UNKNOWN"): "IS NOT NULL",
        ("NOT", "TRUE"): "IS NOT TRUE",
        ("NOT", "FALSE"): "IS NOT FALSE",
    }
)
"""By the words after IS."""
