"""Tokens of the masked text. Boundaries are sqlglot's (Spark dialect); values and kinds are ours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from sqlglot import TokenType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError

from plait.sql.lexis.text import SourceText, scan

Kind: TypeAlias = Literal["word", "quoted", "string", "number", "symbol"]

_WORD = re.compile(r"\w+(?:\s+\w+)*")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token at ``[start, end)``. `value`: the name or string it stands for; `keyword`: a bare word in upper case,
    blanks made single, '' for anything else.
    """

    kind: Kind
    value: str
    start: int
    end: int
    keyword: str = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        # Asked for a dozen times of every token.
        object.__setattr__(self, "keyword", _keyword(self.value) if self.kind == "word" else "")

    def is_symbol(self, *symbols: str) -> bool:
        """Tell whether this is one of these symbols."""
        return self.kind == "symbol" and self.value in symbols


@lru_cache(maxsize=1 << 12)
def _keyword(word: str) -> str:
    return " ".join(word.upper().split())


def tokenize(source: SourceText, masked: str, start: int, end: int) -> tuple[Token, ...]:
    """Split ``masked[start:end]`` into tokens; offsets count from the start of the whole text."""
    try:
        written = Spark().tokenize(masked[start:end])
    except TokenError as problem:
        offset = start + len(masked[start:end]) - len(masked[start:end].lstrip())
        raise source.error(f"cannot be read as SQL: {problem}", offset) from problem
    tokens: list[Token] = []
    for token in written:
        first, last = start + token.start, start + token.end + 1
        if tokens and first < tokens[-1].end:
            continue  # sqlglot expands ``5L`` into a cast, three tokens over the same text
        raw = masked[first:last]
        kind = _kind(token.token_type, raw)
        if kind == "word" and (raw[0].isdigit() or not raw.isascii()):
            raise source.error(f"a name like '{raw}' must stand in backquotes: `{raw}`", first)
        tokens.append(Token(kind=kind, value=_value(token.token_type, raw), start=first, end=last))
    return tuple(tokens)


def tokens_of(text: str) -> tuple[Token, ...]:
    """Return the tokens of a text that was read before, and is no part of a file."""
    return tokenize(SourceText(text=text), scan(text).masked, 0, len(text))


def _kind(kind: TokenType, raw: str) -> Kind:
    if kind == TokenType.IDENTIFIER:
        return "quoted"
    if kind in (TokenType.STRING, TokenType.RAW_STRING):
        return "string"
    if kind == TokenType.NUMBER:
        return "number"
    return "word" if raw.isidentifier() or _WORD.fullmatch(raw) else "symbol"


def _value(kind: TokenType, raw: str) -> str:
    if kind == TokenType.IDENTIFIER:
        return raw[1:-1].replace("``", "`")
    if kind == TokenType.RAW_STRING:
        return raw[2:-1]
    return _unescaped(raw[1:-1]) if kind == TokenType.STRING else raw


def _unescaped(text: str) -> str:
    """Apply Spark's escapes; an unknown one stands for its character."""

    def replacement(match: re.Match[str]) -> str:
        short, long, octal, character = match.groups()
        if short or long:
            return chr(int(short or long, 16))
        return chr(int(octal, 8)) if octal else _ESCAPED.get(character, character)

    return _ESCAPE.sub(replacement, text)


def depths(tokens: Sequence[Token]) -> Iterator[tuple[int, int, Token]]:
    """Yield (index, depth, token); brackets and CASE ... END open a level, and belong to the level outside."""
    depth = 0
    for index, token in enumerate(tokens):
        if token.kind == "symbol":
            if token.value in _CLOSING:
                depth -= 1
            yield index, depth, token
            if token.value in _OPENING:
                depth += 1
        elif token.keyword in _ENCLOSING and not (index > 0 and tokens[index - 1].is_symbol(".")):
            if token.keyword == "END" and depth:
                depth -= 1
            yield index, depth, token
            if token.keyword == "CASE":
                depth += 1
        else:
            yield index, depth, token


_OPENING: Final = frozenset("([{")
_CLOSING: Final = frozenset(")]}")
_ENCLOSING: Final = frozenset(("CASE", "END"))


def split(tokens: Sequence[Token], at: Iterable[int]) -> list[tuple[Token, ...]]:
    """Cut before and after each of these indexes, leaving the tokens there out."""
    pieces, start = [], 0
    for index in (*at, len(tokens)):
        pieces.append(tuple(tokens[start:index]))
        start = index + 1
    return pieces


def without_outer_parentheses(tokens: Sequence[Token]) -> tuple[Token, ...]:
    """Drop parentheses that enclose everything: ``((a = b))`` → ``a = b``."""
    inner = tuple(tokens)
    while len(inner) > 2 and inner[0].is_symbol("(") and inner[-1].is_symbol(")"):
        closes = next(index for index, depth, token in depths(inner) if depth == 0 and token.is_symbol(")"))
        if closes != len(inner) - 1:
            break
        inner = inner[1:-1]
    return inner


def rendered(text: str, tokens: Sequence[Token], replacements: dict[int, tuple[int, str]]) -> str:
    """Return the tokens' own text, every gap one blank, with some spans replaced: ``{start: (end, text)}``."""
    pieces: list[str] = []
    covered = previous_end = -1
    for token in tokens:
        if token.start < covered:
            continue
        if previous_end >= 0 and token.start > previous_end:
            pieces.append(" ")
        covered, replacement = replacements.get(token.start, (token.end, None))
        pieces.append(text[token.start : token.end] if replacement is None else replacement)
        previous_end = covered
    return "".join(pieces)
