"""A CREATE QUERY that comes from somebody else than who wrote the script, through the service.

It may ask what it likes of the streams and tables there are, with Spark's own functions. What it may not: write where
the script does not allow it, learn about the machine or the session, read files through functions, and keep a batch
from ending by what one call makes or matches. Whoever needs that puts the query into the script.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from plait.errors import NotAllowedError, PlacedError, SqlError
from plait.sql.expressions.functions import BARE_FUNCTIONS
from plait.sql.expressions.spark_functions import BUILT_IN, NOT_CALLED
from plait.sql.lexis.names import folded
from plait.sql.lexis.regular_expressions import like_problem, pattern_problem
from plait.sql.lexis.text import SourceText, scan
from plait.sql.lexis.tokens import Token, depths, tokenize
from plait.sql.script.allowed_paths import path_problem
from plait.sql.script.reading import parse_script
from plait.sql.script.sinks import sink_problems
from plait.sql.statements import CreateQuery, place_of

MOST_TOKENS: Final = 3000
DEEPEST: Final = 40
"""Parentheses within each other: reading them takes more the deeper they are."""

_FILE_SINKS: Final = frozenset({"parquet", "csv", "json"})
_SINKS: Final = _FILE_SINKS | {"noop"}
_OPTIONS: Final = frozenset({"path", "partitionby", "compression", "header", "sep", "delimiter", "nullvalue"})

_LARGE: Final = "repeat space lpad rpad sequence array_repeat array_insert format_string printf randstr"
_FILES: Final = """
    from_protobuf to_protobuf from_avro to_avro schema_of_avro from_xml to_xml schema_of_xml xpath xpath_boolean
    xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short xpath_string python_worker_logs range
"""
_SESSION: Final = """
    current_user session_user user version current_catalog current_database current_schema current_path collations
    sql_keywords java_method reflect try_reflect input_file_name input_file_block_start input_file_block_length
    identifier
"""
_VARIABLE: Final = "${"
_SESSION_TOLD: Final = "it tells of the machine or the session, or calls what is in them"
_FAILING: Final = "raise_error assert_true"
_REFUSED: Final = {
    **dict.fromkeys(_LARGE.split(), "it can make values of any size"),
    **dict.fromkeys(_FILES.split(), "it can read what is no stream or table of the script"),
    **dict.fromkeys(_SESSION.split(), _SESSION_TOLD),
    **dict.fromkeys(_FAILING.split(), "it is there to fail"),
}
_PATTERN_IN_SECOND: Final = """
    regexp_like regexp_count regexp_extract regexp_extract_all regexp_instr regexp_replace regexp_substr split
"""
_PATTERNS_AFTER_FIRST: Final = frozenset({"str_to_map"})
_REGULAR: Final = frozenset({"RLIKE", "REGEXP"})
_LIKE: Final = frozenset({"LIKE", "ILIKE"})
_LISTS: Final = frozenset({"ANY", "SOME", "ALL"})
_ONE_TEXT: Final = "its pattern has to be one text, such as 'a%', so that it can be looked at"

Judge: TypeAlias = Callable[[str], str | None]
"""Says what is wrong with a pattern."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """What the script allows. `base`: the directory that relative paths are seen from."""

    allowed_paths: tuple[str, ...] = ()
    base: str = "."


def read_remote_query(text: str, allowed: Remote) -> CreateQuery:
    """Read the text of one CREATE QUERY. Raises SqlError for what cannot be read or is another statement, and
    NotAllowedError for what has to stand in the script.
    """
    queries = read_remote_queries(text, allowed)
    if len(queries) != 1:
        raise SqlError("expected the text of one CREATE QUERY", line=1, column=1)
    return queries[0]


def read_remote_queries(text: str, allowed: Remote) -> tuple[CreateQuery, ...]:
    """Read the texts of several, each followed by ``;``. Raises as `read_remote_query` does."""
    source = SourceText(text=text)
    scanned = scan(text)
    pieces = [tokenize(source, scanned.masked, start, end) for start, end in scanned.statements]
    for tokens in pieces:
        _refuse_size(source, tokens)
        _refuse_variables(source, scanned.masked, tokens)
    statements = parse_script(text, base=allowed.base)
    queries = tuple(each for each in statements if isinstance(each, CreateQuery))
    if len(queries) != len(statements) or len(queries) != len(pieces):
        raise SqlError("expected CREATE QUERY; other statements belong into the script", line=1, column=1)
    for tokens, query in zip(pieces, queries, strict=True):
        for problem in (*_sink_problems(query, allowed), *_call_problems(source, tokens)):
            raise problem
        for message, (line, column), kind in sink_problems(query):
            raise kind(message, line=line, column=column)
    return queries


def refuse_remote_condition(row: str) -> None:
    """Raise SqlError or NotAllowedError for a condition that no query from outside could have in its WHERE."""
    read_remote_query(f"CREATE QUERY why INTO noop AS SELECT x.x FROM x WHERE ({row}\n)", Remote())


def _refuse_size(source: SourceText, tokens: Sequence[Token]) -> None:
    if len(tokens) > MOST_TOKENS:
        raise source.error(f"a query may have at most {MOST_TOKENS} words and symbols, this one has {len(tokens)}", 0)
    for _, depth, token in depths(tokens):
        if depth > DEEPEST:
            raise source.error(f"more than {DEEPEST} parentheses lie within each other; write it flatter", token.start)


def _refuse_variables(source: SourceText, masked: str, tokens: Sequence[Token]) -> None:
    """Refuse what Spark replaces before it reads an expression, within texts too: ``${env:NAME}``, ``${spark...}``."""
    for token in tokens:
        if _VARIABLE in token.value or _VARIABLE in masked[token.start : token.end + 1]:
            raise _refused(source, token, "Spark would put a setting or a variable of the machine in its place")


def _sink_problems(statement: CreateQuery, allowed: Remote) -> Iterator[PlacedError]:
    sink, (line, column) = statement.sink, place_of(statement, "sink")
    if sink.format not in _SINKS:
        message = f"the sink '{sink.format}' has to stand in the script; over the network there are {_listed(_SINKS)}"
        yield NotAllowedError(message, line=line, column=column)
        return
    for name, value in sink.options:
        line, column = place_of(statement, f"option {folded(name)}")
        if folded(name) not in _OPTIONS:
            message = f"the option '{name}' has to stand in the script; over the network there are {_listed(_OPTIONS)}"
            yield NotAllowedError(message, line=line, column=column)
        problem = path_problem(value, allowed.allowed_paths) if folded(name) == "path" else None
        if problem is not None:
            message = f"query '{statement.name}' cannot write to '{value}': {problem}"
            yield NotAllowedError(message, line=line, column=column)


def _listed(words: Iterable[str]) -> str:
    return ", ".join(sorted(words))


def _call_problems(source: SourceText, tokens: Sequence[Token]) -> Iterator[PlacedError]:
    """Yield which calls and patterns are not allowed. What is called is looked at word by word, so that nothing depends
    on what a parser makes of it.
    """
    select = next((index for index, token in enumerate(tokens) if token.keyword == "AS"), len(tokens))
    for index in range(select + 1, len(tokens)):
        token = tokens[index]
        is_called = token.kind in ("word", "quoted") and index + 1 < len(tokens) and tokens[index + 1].is_symbol("(")
        operator = _operator_of(token)
        if token.keyword == "USING" and not (index + 1 < len(tokens) and tokens[index + 1].is_symbol("(")):
            yield _refused(source, token, "it would start a program; columns to join by stand in parentheses")
        if operator is not None:
            yield from _problems_of_operator(source, tokens, index, operator)
        elif is_called:
            yield from _problems_of_call(source, tokens, index)
        elif token.kind == "word" and folded(token.value) in BARE_FUNCTIONS and not tokens[index - 1].is_symbol("."):
            yield _refused(source, token, f"{_SESSION_TOLD}; a column is named with its relation, o.{token.value}")


def _operator_of(token: Token) -> Judge | None:
    """Return what judges the pattern that follows, None if the word calls for none."""
    words = set(token.keyword.split())
    if words & _REGULAR:
        return pattern_problem
    return like_problem if words & _LIKE else None


def _problems_of_call(source: SourceText, tokens: Sequence[Token], index: int) -> Iterator[PlacedError]:
    token, name = tokens[index], folded(tokens[index].value)
    if tokens[index - 1].is_symbol("."):
        yield _refused(source, token, "a function is called by its name alone")
    elif name in _REFUSED:
        yield _refused(source, token, _REFUSED[name])
    elif not (set(token.keyword.split()) & NOT_CALLED) and name not in BUILT_IN and tokens[index - 1].keyword != "WITH":
        yield _refused(source, token, "Spark has no such function of its own")
    elif name in _PATTERN_IN_SECOND.split():
        yield from _pattern_problems(source, _arguments(tokens, index + 1)[1:2], token, pattern_problem)
    elif name in _PATTERNS_AFTER_FIRST:
        yield from _pattern_problems(source, _arguments(tokens, index + 1)[1:], token, pattern_problem)


def _problems_of_operator(
    source: SourceText, tokens: Sequence[Token], index: int, judge: Judge
) -> Iterator[PlacedError]:
    """Look at what stands after LIKE, RLIKE or REGEXP: one text, or several after ANY, SOME or ALL. They are functions,
    too, of a text and a pattern.
    """
    after = index + 1
    is_list = bool(set(tokens[index].keyword.split()) & _LISTS)
    if not is_list and after < len(tokens) and tokens[after].keyword in _LISTS:
        is_list, after = True, after + 1
    if after < len(tokens) and tokens[after].is_symbol("("):
        arguments = _arguments(tokens, after)
        is_call = not is_list and len(arguments) > 1
        yield from _pattern_problems(source, arguments[1:2] if is_call else arguments, tokens[index], judge)
        end = after + 1 + sum(len(argument) for argument in arguments) + len(arguments) - 1
        if not is_call and not is_list and not _ends_operand(tokens, end + 1):
            yield _refused(source, tokens[index], _ONE_TEXT)
        return
    is_single = _ends_operand(tokens, after + 1)
    pattern = tuple(tokens[after : after + 1]) if is_single else tuple(tokens[after : after + 2])
    yield from _pattern_problems(source, [pattern], tokens[index], judge)


def _ends_operand(tokens: Sequence[Token], index: int) -> bool:
    """Tell whether an operand is over before this token: no operator goes on with it."""
    if index >= len(tokens):
        return True
    return tokens[index].kind in ("word", "quoted") or tokens[index].is_symbol(")", ",", ";")


def _pattern_problems(
    source: SourceText, patterns: Iterable[Sequence[Token]], token: Token, judge: Judge
) -> Iterator[PlacedError]:
    for pattern in patterns:
        if len(pattern) != 1 or pattern[0].kind != "string":
            yield _refused(source, token, _ONE_TEXT)
            continue
        problem = judge(pattern[0].value)
        if problem is not None:
            yield _refused(source, pattern[0], f"matching it may take for ever: {problem}")


def _arguments(tokens: Sequence[Token], opening: int) -> list[tuple[Token, ...]]:
    """Return the arguments in the parentheses that open there."""
    arguments: list[tuple[Token, ...]] = []
    current: list[Token] = []
    for _, depth, token in depths(tokens[opening:]):
        if depth == 0 and token.is_symbol(")"):
            break
        if depth == 1 and token.is_symbol(","):
            arguments.append(tuple(current))
            current = []
        elif not (depth == 0 and token.is_symbol("(")):
            current.append(token)
    return [*arguments, tuple(current)]


def _refused(source: SourceText, token: Token, why: str) -> NotAllowedError:
    shown = source.text[token.start : token.end][:60]
    message = f"{shown} is not let in over the network: {why}. Put the query into the script if it needs that"
    return source.error(message, token.start, NotAllowedError)


__all__ = ["Remote", "read_remote_queries", "read_remote_query", "refuse_remote_condition"]
