"""What an expression refers to. sqlglot parses it; only the places of the column references are taken from the tree.

The user's text is never regenerated: a round trip through a SQL printer changes meaning in corners (casts, intervals,
functions that are renamed), while replacing the spans of the references cannot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from plait.errors import SqlError, UnsupportedQueryError
from plait.sql.expressions.functions import BARE_FUNCTIONS, PARSER_KEYWORDS
from plait.sql.lexis.names import folded
from plait.sql.lexis.text import SourceText
from plait.sql.lexis.tokens import Token
from plait.sql.lexis.written_types import cast_types, without_collations


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A reference as written, ``o.addr.city``; `ends` has the end of each part. `is_bare`: a function if no column."""

    parts: tuple[str, ...]
    start: int
    ends: tuple[int, ...]
    is_bare: bool = False

    def moved(self, by: int) -> Reference:
        """Return the same so much farther on."""
        ends = tuple(end + by for end in self.ends)
        return Reference(parts=self.parts, start=self.start + by, ends=ends, is_bare=self.is_bare)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """References in order of appearance, and the implicit alias (``a.x total``) if the expression ends in one."""

    references: tuple[Reference, ...]
    alias: Token | None = None


_MOST_READ: Final = 1 << 12
_READ: Final[dict[tuple[str, tuple[int, ...]], tuple[tuple[Reference, ...], bool]]] = {}
"""The references of expressions read lately, counted from where each starts, and whether it ends in an alias; by its
text and where its tokens end. Queries are alike, and the parser takes most of the time in which one is bound.
"""


def parse_expression(source: SourceText, masked: str, tokens: Sequence[Token]) -> Parsed:
    """Find the references of an expression. Raises SqlError if it is none, or something Spark would expand."""
    start = tokens[0].start
    key = masked[start : tokens[-1].end], tuple(token.end - start for token in tokens)
    known = _READ.get(key)
    if known is None:
        parsed = _parsed(source, masked, tokens)
        known = tuple(reference.moved(-start) for reference in parsed.references), parsed.alias is not None
        if len(_READ) >= _MOST_READ:
            _READ.clear()
        _READ[key] = known
    references, has_alias = known
    return Parsed(
        references=tuple(reference.moved(start) for reference in references), alias=tokens[-1] if has_alias else None
    )


def _parsed(source: SourceText, masked: str, tokens: Sequence[Token]) -> Parsed:
    start = tokens[0].start
    for _ in cast_types(source, masked, tokens):
        pass  # a type that Spark does not have is refused where it stands
    _refuse_paths(source, tokens)
    tree = _tree(source, _for_parser(masked, tokens), tokens)
    for node in tree.find_all(exp.Placeholder, exp.Parameter, exp.SessionParameter):
        raise source.error(
            f"Plait does not know the value of the parameter '{node.sql()}'; write the value "
            "(and for a field of a JSON or variant column use get_json_object or variant_get)",
            _first(tokens, ":", "?", "@"),
            UnsupportedQueryError,
        )
    alias = _alias(tree, start, tokens)
    inside = tokens[:-1] if alias else tokens
    columns = {reference.start: reference for reference in _columns(source, tree, start)}
    for reference in _bare_functions(inside):
        if reference.start in columns or folded(reference.parts[0]) in PARSER_KEYWORDS:
            columns[reference.start] = reference
    return Parsed(references=tuple(columns[key] for key in sorted(columns)), alias=alias)


def _refuse_paths(source: SourceText, tokens: Sequence[Token]) -> None:
    """Refuse ``a.x:f``, which only Spark's own parser reads. Raises SqlError."""
    for before, colon, name in zip(tokens, tokens[1:], tokens[2:], strict=False):
        ends_operand = before.kind in ("word", "quoted") or before.is_symbol(")", "]")
        if colon.is_symbol(":") and ends_operand and name.kind in ("word", "quoted"):
            raise source.error(
                f"Plait does not read the path ':{name.value}' into a VARIANT; write "
                f"variant_get(..., '$.{name.value}', 'int') with the type it has",
                colon.start,
                UnsupportedQueryError,
            )


def _for_parser(masked: str, tokens: Sequence[Token]) -> str:
    """Return the text with what sqlglot cannot read put otherwise, every reference where it was."""
    text = without_collations(masked, tokens)
    for first, second, third in zip(tokens, tokens[1:], tokens[2:], strict=False):
        shift = first.is_symbol(">") and second.is_symbol(">") and third.is_symbol(">")
        if shift and first.end == second.start and second.end == third.start:
            text = f"{text[: first.start]} / {text[third.end :]}"
    return text


def _tree(source: SourceText, masked: str, tokens: Sequence[Token]) -> exp.Expr:
    text = masked[tokens[0].start : tokens[-1].end]
    try:
        tree = sqlglot.parse_one(text, dialect="spark", into=exp.Expr)
    except ParseError as problem:
        raise _syntax_error(source, text, tokens, problem) from problem
    except TokenError as problem:
        raise source.error(f"cannot be read as SQL: {problem}", tokens[0].start) from problem
    if isinstance(tree, exp.Command):
        raise source.error(f"'{tokens[0].value}' cannot start an expression; put a name in backquotes", tokens[0].start)
    if isinstance(tree, exp.Aliases):
        raise source.error("several names for one expression; give each expression one name", tokens[-1].start)
    return tree


def _syntax_error(source: SourceText, text: str, tokens: Sequence[Token], problem: ParseError) -> SqlError:
    """Point at the token sqlglot stopped at: it counts lines and columns to the end of a token."""
    details = problem.errors[0] if problem.errors else {}
    line, column = details.get("line"), details.get("col")
    at = tokens[0]
    if isinstance(line, int) and isinstance(column, int):
        line_start = sum(len(before) for before in text.splitlines(keepends=True)[: line - 1])
        last = tokens[0].start + line_start + column - 1
        at = next((token for token in tokens if token.start <= last < token.end), tokens[-1])
    message = f"cannot read the expression at '{source.text[at.start : at.end]}'"
    missing = "Required keyword" in str(details.get("description")) or at is tokens[-1]
    advice = "something is missing before or after it" if missing else "an operator or comma may be missing before it"
    return source.error(f"{message}; {advice}, or a name needs backquotes", at.start)


def _alias(tree: exp.Expr, start: int, tokens: Sequence[Token]) -> Token | None:
    if not isinstance(tree, exp.Alias):
        return None
    name = tree.args.get("alias")
    offset = name.meta.get("start") if isinstance(name, exp.Identifier) else None
    last = tokens[-1]
    return last if offset is not None and last.start == start + offset else None


def _columns(source: SourceText, tree: exp.Expr, start: int) -> Iterator[Reference]:
    for column in tree.find_all(exp.Column):
        if _is_lambda_variable(column):
            continue
        places = [_span(part, start) for part in column.parts]
        known = [place for place in places if place is not None]
        if len(known) < len(places) and len(known) < 2:
            raise source.error(f"cannot read the reference '{column.sql('spark')}'; put its parts in backquotes", start)
        yield Reference(
            parts=tuple(part.name for part in column.parts), start=known[0][0], ends=tuple(end for _, end in known)
        )
    for star in (each for each in tree.find_all(exp.Star) if not isinstance(each.parent, exp.Count)):
        message = "'*' inside an expression is not supported; list the columns instead"
        raise source.error(message, start + int(star.meta.get("start", 0)), UnsupportedQueryError)


def _span(part: exp.Expr, start: int) -> tuple[int, int] | None:
    first, last = part.meta.get("start"), part.meta.get("end")
    return None if first is None or last is None else (start + int(first), start + int(last) + 1)


def _is_lambda_variable(column: exp.Column) -> bool:
    """Tell whether an enclosing lambda binds the name; sqlglot itself minds upper and lower case, Spark does not."""
    name = folded(column.parts[0].name)
    scope = column.find_ancestor(exp.Lambda)
    while scope is not None:
        if any(folded(parameter.name) == name for parameter in scope.expressions):
            return True
        scope = scope.find_ancestor(exp.Lambda)
    return False


def _bare_functions(tokens: Sequence[Token]) -> Iterator[Reference]:
    for index, token in enumerate(tokens):
        before_name = index > 0 and (tokens[index - 1].is_symbol(".") or tokens[index - 1].keyword == "AS")
        called = index + 1 < len(tokens) and tokens[index + 1].is_symbol("(", ".")
        if token.keyword.lower() in BARE_FUNCTIONS | PARSER_KEYWORDS and not before_name and not called:
            yield Reference(parts=(token.value,), start=token.start, ends=(token.end,), is_bare=True)


def _first(tokens: Sequence[Token], *symbols: str) -> int:
    return next((token.start for token in tokens if token.is_symbol(*symbols)), tokens[0].start)
