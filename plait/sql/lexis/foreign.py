"""Words of other streaming systems (ksqlDB, Flink SQL, RisingWave, Materialize), and what Plait has instead.

Whoever comes from one of them writes its words first. They are no mistakes to be guessed at ("expected JOIN"): each has
an answer. Every answer names the word and says the form to write here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from plait.sql.lexis.cursor import Cursor
from plait.sql.lexis.tokens import Token

_JOIN_WINDOW: Final = (
    "how far apart rows may be is said per relation before AS: CREATE QUERY name INTO ... WINDOW (a INTERVAL 1 MINUTE, "
    "b INTERVAL 1 MINUTE) AS SELECT ..., or for all queries in CREATE STREAM ... WINDOW INTERVAL 1 MINUTE"
)
_LATEST: Final = (
    "of several rows that match, all are results: write JOIN ... ON a.k = b.k AND a.ts >= b.ts, let WINDOW say how far "
    "back to look, and take the latest where the results are read"
)
_LATENESS: Final = (
    "the watermark follows from how late rows may come: leave it out, and write behind the columns USING format "
    "OPTIONS (...) TIMESTAMP BY ts DELAY INTERVAL 5 SECONDS"
)
_CONNECTOR: Final = "write USING and the format, then OPTIONS: USING parquet OPTIONS (path 'in') TIMESTAMP BY ts"
_SINK: Final = (
    "a query and where its results go are one statement: CREATE QUERY name INTO parquet OPTIONS (path 'out') AS SELECT "
    "..."
)
_BUCKETS: Final = (
    "to join within a length of time write CREATE QUERY ... WINDOW (a INTERVAL 10 SECONDS, b INTERVAL 10 SECONDS); for "
    "fixed intervals compare their numbers: unix_seconds(a.ts) DIV 10 = unix_seconds(b.ts) DIV 10"
)

_CREATED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "SINK": _SINK,
        "MATERIALIZED": _SINK,
        "CONTINUOUS": _SINK,
        "PIPELINE": _SINK,
        "STREAMING": "write CREATE STREAM for what arrives over time, CREATE TABLE for what is there from the start",
        "SOURCE": "what arrives over time is CREATE STREAM name USING format OPTIONS (...) TIMESTAMP BY ts, what is "
        "there from the start CREATE TABLE name USING format OPTIONS (...)",
        "EXTERNAL": "every table is; write CREATE TABLE name USING format OPTIONS (...)",
        "TEMPORARY": "nothing outlives the script; write CREATE TABLE, CREATE STREAM or CREATE VIEW",
        "TEMP": "nothing outlives the script; write CREATE TABLE, CREATE STREAM or CREATE VIEW",
        "TYPE": "write the type where a column has it: addr STRUCT<city: STRING>",
        "CONNECTOR": "write USING and the format in CREATE STREAM",
        "FUNCTION": "register a join predicate in Python with engine.predicate(name, function)",
    }
)
"""What other systems CREATE."""

_STATEMENTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "INSERT": _SINK,
        "USE": "names have one part; leave it out",
        "SHOW": "a script says all there is; plait check FILE counts it",
        "DESCRIBE": "a script says all there is; plait explain FILE shows the plan",
        "EXPLAIN": "leave it out, and run plait explain FILE",
        "ALTER": "change the CREATE statement itself; the next run applies the difference",
        "TERMINATE": "write DROP QUERY name, or leave its CREATE QUERY out",
        "PRINT": "write CREATE QUERY name INTO console AS SELECT ...",
    }
)

_CLAUSES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "WATERMARK": _LATENESS,
        "WITH": _CONNECTOR,
        "FORMAT": _CONNECTOR,
        "PARTITIONED BY": "Plait decides how rows are partitioned; leave it out",
        "PARTITION BY": "Plait decides how rows are partitioned; leave it out",
        "PRIMARY KEY": "streams only gain rows, none replaces another; leave it out",
        "LOCATION": "the path is an option: OPTIONS (path 'in')",
        "FROM": _CONNECTOR,
        **dict.fromkeys(("LATENESS", "ALLOWED", "GRACE", "LATE"), "write DELAY INTERVAL 5 SECONDS"),
        "WITHIN": "write WINDOW INTERVAL 1 MINUTE",
        **dict.fromkeys(("RETAIN", "RETENTION", "TTL"), "how long rows are kept follows from WINDOW INTERVAL 1 MINUTE"),
        **dict.fromkeys(("EVENT", "EVENTTIME", "ROWTIME", "ORDER BY"), "write TIMESTAMP BY ts"),
        "IDLE": "it is an option: OPTIONS (idle '30 seconds')",
        "EMIT": "results are always written as they are found, each once; leave it out",
    }
)
"""Clauses of other systems' CREATE STREAM, TABLE or SOURCE."""

_COLUMNS: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        ("WATERMARK", "FOR"): _LATENESS,
        ("PRIMARY KEY", ""): "streams only gain rows, none replaces another; leave it out",
        ("UNIQUE", "("): "leave it out; say how many distinct values there are with OPTIONS ('distinct.column' '50')",
        ("PERIOD", "FOR"): "leave it out; a table does not change while a query runs",
    }
)
"""What stands between columns there: a word, and the one after it ('' for any)."""

_AFTER_TYPE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "(": "only DECIMAL(10,2) and TIME(6) have a size; times have microseconds; leave it out",
        "[": "write ARRAY<BIGINT> for several values",
        "WITH": "write TIMESTAMP for a point in time, TIMESTAMP_NTZ for a wall-clock time",
        "UNSIGNED": "write the next larger type, such as BIGINT for INT UNSIGNED",
        "PRIMARY KEY": _COLUMNS[("PRIMARY KEY", "")],
        "KEY": _COLUMNS[("PRIMARY KEY", "")],
        **dict.fromkeys(("METADATA", "HEADER"), "declare what the files hold, and leave the rest out"),
        **dict.fromkeys(
            ("DEFAULT", "GENERATED"), "declare what the source holds, and write coalesce(x, 0) or the like in queries"
        ),
        **dict.fromkeys(("CHECK", "REFERENCES", "UNIQUE", "CONSTRAINT"), "no source is checked; leave it out"),
    }
)
"""What stands behind a column's type there."""

_TABLE_FUNCTIONS: Final = frozenset({"tumble", "hop", "cumulate", "session"})

FUNCTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("tumble", "hop", "cumulate", "session"), _BUCKETS),
        **dict.fromkeys(
            ("tumble_start", "tumble_end", "hop_start", "hop_end", "session_start", "session_end", "windowstart"),
            "rows are not grouped into windows; " + _BUCKETS,
        ),
        "proctime": "it would depend on when a batch runs; use the time column of a stream instead",
        "rowtime": "use the time column of the stream, the one after TIMESTAMP BY",
        "current_watermark": "it would depend on how rows were cut into batches; late rows are counted and can be kept "
        "with OPTIONS (deadLetter 'path')",
        "safe_cast": "write try_cast(x AS type)",
        "convert": "write cast(x AS type)",
        "iff": "write if(condition, x, y)",
        "strpos": "write instr(text, part)",
        "to_jsonb": "write to_json(x)",
        "stringtotimestamp": "write to_timestamp(x, 'yyyy-MM-dd HH:mm:ss')",
        "parse_timestamp": "write to_timestamp(x, 'yyyy-MM-dd HH:mm:ss')",
        "stringtodate": "write to_date(x, 'yyyy-MM-dd')",
        "extractjsonfield": "write get_json_object(x, '$.field')",
        "json_extract_string": "write get_json_object(x, '$.field')",
        "json_extract_scalar": "write get_json_object(x, '$.field')",
        "epoch_ms": "write timestamp_millis(x)",
        "from_epoch_ms": "write timestamp_millis(x)",
        "array_length": "write size(x) or array_size(x)",
        "latest_by_offset": "rows are not aggregated; results are written as they are found",
        "earliest_by_offset": "rows are not aggregated; results are written as they are found",
    }
)
"""Functions that Spark does not have, in lower case."""

WINDOW_FUNCTIONS: Final = frozenset({"window", "session_window", "window_time"})
"""Spark's, which group rows: in a condition they are meant to join rows of one interval."""

BUCKETS: Final = _BUCKETS
"""What to write in place of ``window(a.ts, ...) = window(b.ts, ...)``."""


def created(word: str) -> str | None:
    """Say what to write for ``CREATE word``, or None."""
    return _answer(f"CREATE {word}", _CREATED.get(word))


def statement(word: str) -> str | None:
    """Say what to write for a statement that begins so, or None."""
    return _answer(word, _STATEMENTS.get(word))


def source_clause(word: str) -> str | None:
    """Say what to write for a clause of CREATE STREAM or CREATE TABLE, or None."""
    return _answer(word, _CLAUSES.get(word))


def between_columns(token: Token | None, following: Token | None) -> str | None:
    """Say what to write for what stands in place of a column's declaration, or None."""
    if token is None:
        return None
    after = "" if following is None else following.keyword or following.value
    for (word, next_word), answer in _COLUMNS.items():
        if token.keyword == word and next_word in ("", after):
            return _answer(f"{word} {next_word}".replace(" (", "").strip(), answer)
    return None


def after_type(token: Token | None) -> str | None:
    """Say what to write for what stands between a column's type and the next column, or None."""
    if token is None or token.is_symbol(",", ")"):
        return None
    if token.is_symbol("(", "["):
        return f"expected ')' or ',' after the type of a column, found '{token.value}': {_AFTER_TYPE[token.value]}"
    return _answer(token.keyword, _AFTER_TYPE.get(token.keyword))


def computed_column(name: str) -> str:
    """Say what to write for ``name AS expression`` among the columns."""
    return (
        f"column '{name}' is computed, which a declaration cannot do: declare what the source holds, and write "
        "expressions in queries; for the event time TIMESTAMP BY takes an expression"
    )


def in_query(cursor: Cursor) -> str | None:
    """Say what to write in place of what comes next in a query, or None."""
    return _answer_in_query([token for token in (cursor.ahead(0), cursor.ahead(1)) if token is not None])


def starts_foreign_clause(tokens: Sequence[Token], index: int) -> bool:
    """Tell whether a clause of another system starts at this token of a query."""
    return _answer_in_query(tokens[index : index + 2]) is not None


def _answer_in_query(tokens: Sequence[Token]) -> str | None:
    words = ["NUMBER" if token.kind == "number" else token.keyword for token in tokens]
    match (*words, "", "")[:2]:
        case ("WITHIN", "NUMBER" | "INTERVAL"):
            return f"WITHIN: {_JOIN_WINDOW}"
        case ("ASOF", "JOIN" | "LEFT" | "INNER"):
            return f"ASOF JOIN: {_LATEST}"
        case ("EMIT", "CHANGES" | "FINAL"):
            return f"EMIT {words[1]}: results are always written as they are found, each once; leave it out"
        case ("GRACE", "PERIOD"):
            return "GRACE PERIOD: how late rows may come is said in CREATE STREAM ... DELAY INTERVAL 5 SECONDS"
        case ("MATCH_RECOGNIZE", _):
            return "MATCH_RECOGNIZE: join the stream with itself under two aliases, and compare their times in WHERE"
        case ("WITH", "TIES") | ("PARTITION BY", _):
            return f"{words[0]}: leave it out"
        case _:
            return None


def after_select(tokens: Sequence[Token]) -> str | None:
    """Say what to write for a word between SELECT and its list, given the tokens from it on, or None."""
    words = [token.keyword or token.value for token in tokens[:3]]
    if words[:1] == ["TOP"] and len(tokens) > 1 and tokens[1].kind == "number":
        return "TOP: a stream of results has no end; limit where the results are read"
    if words == ["STREAM", "*", "FROM"] or (words[:1] == ["STREAM"] and words[2:] == ["."]):
        return "SELECT STREAM: every query runs continuously; leave STREAM out"
    return None


def join_window(cursor: Cursor) -> str | None:
    """Say what to write for ``WITHIN 1 MINUTE`` behind a relation of a join, or None."""
    following = cursor.ahead(1)
    if not cursor.at_word("WITHIN") or following is None:
        return None
    if following.kind in ("number", "string") or following.is_symbol("(") or following.keyword == "INTERVAL":
        return f"WITHIN: {_JOIN_WINDOW}"
    return None


def window_clause(cursor: Cursor) -> str | None:
    """Say what to write for ``WINDOW TUMBLING (SIZE 1 MINUTE)``, or None."""
    following = cursor.ahead(1)
    if not cursor.at_word("WINDOW") or following is None:
        return None
    if following.keyword not in ("TUMBLING", "HOPPING", "SESSION"):
        return None
    return f"WINDOW {following.keyword}: rows are not grouped into windows; {_BUCKETS}"


def table_function(token: Token) -> str | None:
    """Say what to write for ``TUMBLE(...)`` and the like in FROM, or None."""
    name = token.value.lower()
    return f"{token.value.upper()}: {_BUCKETS}" if name in _TABLE_FUNCTIONS else None


def _answer(word: str, answer: str | None) -> str | None:
    return None if answer is None else f"{word} is not a word of Plait: {answer}"
