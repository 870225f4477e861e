"""The shape of a SELECT: its items, relations and conditions as token slices, and by name what Plait does not run.

Expressions are not looked into here. Clauses are found at bracket level zero, so what a function or CASE contains
cannot be mistaken for one; a word after a dot or AS is a name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from plait.errors import SqlError, UnsupportedQueryError
from plait.sql.lexis import foreign
from plait.sql.lexis.cursor import Cursor
from plait.sql.lexis.tokens import Token, depths, split
from plait.sql.select.refused_clauses import CLAUSES

JoinKind: TypeAlias = Literal["first", "comma", "inner", "cross", "left", "right", "full", "semi", "anti"]
Tokens: TypeAlias = tuple[Token, ...]
_Ends: TypeAlias = Callable[[Sequence[Token], int], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationSyntax:
    """An entry of FROM. `alias` None: it goes by its source's name. At most one of `on`, `using`, `natural`. `at`:
    where its join begins, or it itself; `in_where`: WHERE looks into it. `inner`: the SELECT in parentheses that it is;
    `source` is then a name that nobody else has.
    """

    source: Token
    alias: Token | None
    join: JoinKind
    at: Token
    on: Tokens | None = None
    using: Tokens | None = None
    natural: bool = False
    in_where: bool = False
    inner: Tokens | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectSyntax:
    """``SELECT [DISTINCT] items FROM relations WHERE where GROUP BY groups HAVING having``. `at`: where its first
    clause about groups stands, None if there is none.
    """

    items: tuple[Tokens, ...]
    relations: tuple[RelationSyntax, ...]
    where: Tokens | None
    is_distinct: bool = False
    groups: tuple[Tokens, ...] = ()
    having: Tokens | None = None
    at: Token | None = None


_JOINS: Final = ("JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "OUTER", "SEMI", "ANTI", "NATURAL")
_KINDS: Final[Mapping[tuple[str, ...], JoinKind]] = {
    (): "inner",
    ("INNER",): "inner",
    ("CROSS",): "cross",
    ("LEFT",): "left",
    ("LEFT", "OUTER"): "left",
    ("RIGHT",): "right",
    ("RIGHT", "OUTER"): "right",
    ("FULL",): "full",
    ("FULL", "OUTER"): "full",
    ("SEMI",): "semi",
    ("LEFT", "SEMI"): "semi",
    ("ANTI",): "anti",
    ("LEFT", "ANTI"): "anti",
}
_NO_ALIAS: Final = frozenset({*CLAUSES, *_JOINS, "ON", "USING", "WHERE", "FROM", "SELECT", "FOR", "AS"})


def parse_select(cursor: Cursor) -> SelectSyntax:
    """Read a whole SELECT. Raises SqlError, or UnsupportedQueryError for what Plait does not run."""
    at = cursor.token
    is_distinct = _read_select_keyword(cursor)
    items = _read_items(cursor)
    cursor.expect_word("FROM")
    relations = _read_relations(cursor)
    where = None
    if cursor.take_word("WHERE"):
        where = _until(cursor, lambda tokens, index: _is_clause(tokens, index) or tokens[index].keyword == "WHERE")
        if not where:
            raise cursor.expected("a condition after WHERE")
    by = cursor.token
    groups = _read_groups(cursor)
    having = None
    if groups and cursor.take_word("HAVING"):
        having = _until(cursor, lambda tokens, index: _is_clause(tokens, index) or tokens[index].keyword == "WHERE")
        if not having:
            raise cursor.expected("a condition after HAVING")
    if cursor.token is not None:
        raise _refused_clause(cursor)
    return SelectSyntax(
        items=items,
        relations=relations,
        where=where,
        is_distinct=is_distinct,
        groups=groups,
        having=having,
        at=by if groups else at if is_distinct else None,
    )


def _read_groups(cursor: Cursor) -> tuple[Tokens, ...]:
    """Read GROUP BY and what it groups by; nothing if it is not there."""
    if not cursor.take_word("GROUP BY"):
        return ()
    tokens = _until(cursor, lambda tokens, index: _is_clause(tokens, index) or tokens[index].keyword == "WHERE")
    if [token.keyword for token in tokens] == ["ALL"]:
        raise _refused(cursor, "GROUP BY ALL: list what to group by", tokens[0])
    groups = split(tokens, [index for index, depth, token in depths(tokens) if depth == 0 and token.is_symbol(",")])
    if not all(groups):
        raise cursor.error(
            "an expression of GROUP BY is missing; remove the superfluous comma, or GROUP BY", cursor.token
        )
    return tuple(groups)


def refuse_subqueries(cursor: Cursor, tokens: Sequence[Token]) -> None:
    """Raise UnsupportedQueryError for a subquery."""
    for before, token, following in zip((None, *tokens), tokens, tokens[1:], strict=False):
        if not token.is_symbol("(") or (before is not None and foreign.table_function(before) is not None):
            continue
        if following.keyword in ("SELECT", "WITH", "VALUES", "FROM", "TABLE"):
            raise _refused(
                cursor,
                "a subquery: join its relations in this query, or make it a view: CREATE VIEW name AS",
                following,
            )


def _read_select_keyword(cursor: Cursor) -> bool:
    """Read SELECT and what may stand between it and its list; tell whether that is DISTINCT."""
    if cursor.at_word("WITH"):
        raise _refused(
            cursor,
            "WITH: write the query without it, and each part as a view: CREATE VIEW name AS SELECT ...",
            cursor.token,
        )
    if cursor.at_symbol("("):
        raise _refused(cursor, "parentheses around a SELECT: leave them out", cursor.token)
    if cursor.at_word("FROM"):
        raise _refused(cursor, "FROM before SELECT: write SELECT ... FROM ...", cursor.token)
    cursor.expect_word("SELECT")
    if cursor.take_word("DISTINCT"):
        return True
    answer = foreign.after_select(cursor.rest())
    if answer is not None:
        raise _refused(cursor, answer, cursor.token)
    following = cursor.ahead(1)
    if cursor.at_word("ALL") and following is not None and not following.is_symbol(",", "."):
        cursor.advance()
    return False


def _read_items(cursor: Cursor) -> tuple[Tokens, ...]:
    tokens = _until(cursor, _ends_items)
    if cursor.token is None:
        raise cursor.error("the query has no FROM; name the streams and tables it reads: SELECT ... FROM orders o")
    if not cursor.at_word("FROM"):
        raise _refused_clause(cursor)
    commas = [index for index, depth, token in depths(tokens) if depth == 0 and token.is_symbol(",")]
    items = split(tokens, commas)
    for position, item in enumerate(items):
        if not item:
            if len(items) == 1:
                raise cursor.error("the SELECT list is empty; say which columns to write: SELECT o.id FROM ...")
            comma = tokens[commas[max(position - 1, 0)]]
            raise cursor.error("an item of the SELECT list is missing; remove the superfluous comma", comma)
    return tuple(items)


def _read_relations(cursor: Cursor) -> tuple[RelationSyntax, ...]:
    relations = [_read_relation(cursor, "first", natural=False)]
    while cursor.token is not None and not cursor.at_word("WHERE", *CLAUSES) and foreign.in_query(cursor) is None:
        if cursor.take_symbol(","):
            relations.append(_read_relation(cursor, "comma", natural=False))
            continue
        if not cursor.at_word(*_JOINS):
            raise cursor.expected("JOIN, ',', WHERE or the end of the query")
        at = cursor.token
        natural = cursor.take_word("NATURAL")
        kind = _read_join(cursor)
        relations.append(replace(_read_relation(cursor, kind, natural=natural), at=at))
    return tuple(relations)


def _read_join(cursor: Cursor) -> JoinKind:
    first = cursor.token
    words = []
    while cursor.at_word(*_JOINS) and not cursor.at_word("JOIN"):
        words.append(cursor.advance().keyword)
    cursor.expect_word("JOIN")
    kind = _KINDS.get(tuple(words))
    if kind is None:
        message = (
            f"there is no {' '.join(words)} JOIN; write LEFT, RIGHT or FULL [OUTER] JOIN, or LEFT SEMI or ANTI JOIN"
        )
        raise cursor.error(message, first)
    return kind


def _read_relation(cursor: Cursor, kind: JoinKind, *, natural: bool) -> RelationSyntax:
    if cursor.at_word("LATERAL"):
        raise _refused_clause(cursor)
    following, inner = cursor.ahead(1), None
    if cursor.at_symbol("(") and following is not None and following.keyword in ("SELECT", "WITH"):
        inner = enclosed_tokens(cursor)
        source = Token(kind="quoted", value=f"subquery{inner[0].start}", start=inner[0].start, end=inner[-1].end)
    else:
        source = _read_source(cursor)
    if cursor.at_word("FOR") or (cursor.at_word("TIMESTAMP", "VERSION") and _at_as_of(cursor)):
        raise _refused(
            cursor,
            "AS OF: a stream's rows are joined as far apart as WINDOW allows (of several that match, all are "
            "results); another version of a table is read with an option of CREATE TABLE",
            cursor.token,
        )
    _refuse_join_window(cursor)
    alias = _read_alias(cursor)
    _refuse_join_window(cursor)
    on, using = _read_criteria(cursor, natural=natural, is_join=kind not in ("first", "comma"))
    return RelationSyntax(
        source=source, alias=alias, join=kind, at=source, on=on, using=using, natural=natural, inner=inner
    )


def _read_source(cursor: Cursor) -> Token:
    """Read the name of a stream, table or view."""
    if cursor.at_symbol("("):
        raise _refused(cursor, "parentheses in FROM: list the joins one after the other without them", cursor.token)
    if cursor.at_word(*_NO_ALIAS):
        raise cursor.expected("the name of a stream or table")
    source = cursor.name("the name of a stream or table")
    if cursor.at_symbol("."):
        raise cursor.error("the name of a stream or table has one part only; leave out the '.' and what precedes it")
    if cursor.at_symbol("("):
        named = cursor.ahead(1) if source.keyword == "TABLE" else source
        answer = foreign.table_function(named) if named else None
        if answer is not None:
            raise _refused(cursor, answer, source)
        raise _refused(cursor, f"the table function {source.value}: create a stream or table and read that", source)
    return source


def enclosed_tokens(cursor: Cursor) -> Tokens:
    """Read what stands in parentheses, of which the first comes next."""
    tokens = cursor.rest()
    closing = next((index for index, depth, _ in depths(tokens) if index and depth == 0), None)
    if closing is None:
        raise cursor.error("'(' is never closed; add its other half")
    if closing == 1:
        raise cursor.error("the parentheses are empty; write SELECT ... FROM ... in them")
    for _ in range(closing + 1):
        cursor.advance()
    return tokens[1:closing]


def _refuse_join_window(cursor: Cursor) -> None:
    answer = foreign.join_window(cursor)
    if answer is not None:
        raise _refused(cursor, answer, cursor.token)


def _at_as_of(cursor: Cursor) -> bool:
    following, last = cursor.ahead(1), cursor.ahead(2)
    return following is not None and last is not None and (following.keyword, last.keyword) == ("AS", "OF")


def _read_alias(cursor: Cursor) -> Token | None:
    alias = None
    if cursor.take_word("AS"):
        alias = cursor.name("an alias after AS")
    elif _at_alias(cursor):
        alias = cursor.advance()
    if alias is not None and cursor.at_symbol("("):
        raise _refused(
            cursor, "new column names in FROM: give them in the SELECT list (expression AS name)", cursor.token
        )
    return alias


def _at_alias(cursor: Cursor) -> bool:
    token = cursor.token
    if token is None or token.kind not in ("word", "quoted"):
        return False
    return token.keyword not in _NO_ALIAS and not foreign.starts_foreign_clause(cursor.rest(), 0)


def _read_criteria(cursor: Cursor, *, natural: bool, is_join: bool) -> tuple[Tokens | None, Tokens | None]:
    if not cursor.at_word("ON", "USING"):
        return None, None
    if natural or not is_join:
        why = (
            "a NATURAL JOIN compares all columns of equal name already" if natural else "there is no JOIN it belongs to"
        )
        raise cursor.error(f"{cursor.found()} does not fit here: {why}; remove it, or write JOIN ... ON")
    if cursor.take_word("ON"):
        on = _until(cursor, _ends_condition)
        if not on:
            raise cursor.expected("a condition after ON")
        return on, None
    cursor.advance()
    cursor.expect_symbol("(", " after USING: USING (column)")
    columns = [cursor.name("the name of a column both sides have")]
    while cursor.take_symbol(","):
        columns.append(cursor.name("the name of a column both sides have"))
    cursor.expect_symbol(")", " or ',' after a column of USING")
    return None, tuple(columns)


def _until(cursor: Cursor, ends: _Ends) -> Tokens:
    """Read up to the first token at bracket level zero that is no name and where `ends` holds."""
    tokens = cursor.rest()
    taken = len(tokens)
    for index, depth, token in depths(tokens):
        if depth < 0:
            raise cursor.error("this ')' closes nothing; remove it", token)
        is_name = index > 0 and (tokens[index - 1].is_symbol(".") or tokens[index - 1].keyword == "AS")
        if depth == 0 and not is_name and ends(tokens, index):
            taken = index
            break
    else:
        _refuse_open_bracket(cursor, tokens)
    for _ in range(taken):
        cursor.advance()
    return tokens[:taken]


def _refuse_open_bracket(cursor: Cursor, tokens: Sequence[Token]) -> None:
    openers: list[Token] = []
    for _, depth, token in depths(tokens):
        del openers[max(depth, 0) :]
        if token.is_symbol("(", "[") or token.keyword == "CASE":
            openers.append(token)
    if openers:
        closer = "END" if openers[-1].keyword == "CASE" else "its other half"
        raise cursor.error(f"'{openers[-1].value}' is never closed; add {closer}", openers[-1])


def _ends_condition(tokens: Sequence[Token], index: int) -> bool:
    token = tokens[index]
    if token.keyword in ("LEFT", "RIGHT"):
        return not (index + 1 < len(tokens) and tokens[index + 1].is_symbol("("))
    return token.is_symbol(",") or token.keyword in ("WHERE", "ON", "USING", *_JOINS) or _is_clause(tokens, index)


def _is_clause(tokens: Sequence[Token], index: int) -> bool:
    word = tokens[index].keyword
    called = index + 1 < len(tokens) and tokens[index + 1].is_symbol("(") and word not in ("GROUP BY", "HAVING")
    if foreign.starts_foreign_clause(tokens, index):
        return True
    if word == "OFFSET":  # also what Kafka calls the place of a record
        return index + 1 < len(tokens) and tokens[index + 1].kind == "number"
    return (word in CLAUSES and not called) or tokens[index].is_symbol("|>")


def _ends_items(tokens: Sequence[Token], index: int) -> bool:
    """Tell whether the SELECT list ends here; the FROM of ``IS [NOT] DISTINCT FROM`` ends nothing."""
    before = [token.keyword for token in tokens[max(index - 2, 0) : index]]
    is_comparison = before in (["IS", "DISTINCT"], ["NOT", "DISTINCT"])
    return (tokens[index].keyword == "FROM" and not is_comparison) or _is_set_operation(tokens, index)


def _is_set_operation(tokens: Sequence[Token], index: int) -> bool:
    following = tokens[index + 1].keyword if index + 1 < len(tokens) else ""
    return tokens[index].keyword in ("UNION", "EXCEPT", "MINUS", "INTERSECT") and following in (
        "SELECT",
        "ALL",
        "DISTINCT",
    )


def _refused_clause(cursor: Cursor) -> SqlError:
    token = cursor.token
    answer = foreign.in_query(cursor) or foreign.window_clause(cursor)
    if answer is not None:
        return _refused(cursor, answer, token)
    if token is not None and token.keyword in CLAUSES:
        return _refused(cursor, CLAUSES[token.keyword], token)
    if token is not None and token.is_symbol("|>"):
        return _refused(cursor, "the pipe syntax |>: write one SELECT", token)
    return cursor.expected("the end of the query")


def _refused(cursor: Cursor, what: str, at: Token | None) -> UnsupportedQueryError:
    return cursor.error(f"Plait does not run {what}", at, UnsupportedQueryError)
