"""Add up results that a system wrote to files, because it could not add them up itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.systems.checksum import Checksum, aggregates
from benchmarks.systems.integers import duckdb_integers
from benchmarks.systems.task import Answer, Task
from benchmarks.workloads.joins import JoinQuery, OutputOf
from plait.errors import PlaitError

_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint", "timestamp"})

_PARQUET = b"PAR1"


def added_up(task: Task) -> tuple[Answer, ...]:
    """Return the answers from the files below ``task.results``. Raises PlaitError where a file cannot be read."""
    return tuple(_answer(query, task.results / query.name) for query in task.questions.queries)


def _answer(query: JoinQuery, folder: Path) -> Answer:
    import duckdb

    files = [path for path in sorted(folder.rglob("*")) if _holds_rows(path)]
    if not files:
        return Answer(query=query.name, rows=0, checksum=Checksum())
    try:
        found = duckdb.execute(_sums(query, files)).fetchone()
    except duckdb.Error as error:
        raise PlaitError(f"the results of query '{query.name}' cannot be read: {error}") from error
    total = Checksum.of_sums(found or ())
    return Answer(query=query.name, rows=total.rows, checksum=total)


def _sums(query: JoinQuery, files: list[Path]) -> str:
    names = ", ".join(_quoted(str(path)) for path in files)
    if _is_parquet(files[0]):
        return f"SELECT {', '.join(aggregates(duckdb_integers(query.outputs)))} FROM read_parquet([{names}])"
    columns = ", ".join(f"{_quoted(output.name)}: {_quoted(_read_as(output))}" for output in query.outputs)
    return (
        f"SELECT {', '.join(aggregates(map(_integer, query.outputs)))} FROM read_csv([{names}], header = false, "
        "auto_detect = false, delim = ',', quote = '\"', escape = '\"', allow_quoted_nulls = false, "
        f"columns = {{{columns}}})"
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _holds_rows(path: Path) -> bool:
    """Tell whether a file holds results: not hidden, as files in the making are, nor below a hidden folder."""
    return path.is_file() and path.stat().st_size > 0 and not path.name.startswith((".", "_"))


def _is_parquet(path: Path) -> bool:
    """Tell by a file's first bytes what it is: not every system gives its files an ending."""
    with path.open("rb") as file:
        return file.read(len(_PARQUET)) == _PARQUET


def _read_as(output: OutputOf) -> str:
    return "BIGINT" if output.type in _NUMBERS else "VARCHAR" if output.type == "string" else output.type


def _integer(output: OutputOf) -> str:
    """Return a column as an integer: a time is one already."""
    return duckdb_integers((replace(output, type="bigint") if output.type == "timestamp" else output,))[0]
