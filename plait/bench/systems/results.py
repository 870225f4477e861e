"""Add up results that a system wrote to files, because it could not add them up itself."""

from __future__ import annotations

from pathlib import Path

from plait.bench.checksum import Checksum, aggregates
from plait.bench.systems.task import Answer, Task
from plait.errors import PlaitError
from plait.workloads.joins import JoinQuery, OutputOf

_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint", "timestamp"})


def added_up(task: Task) -> tuple[Answer, ...]:
    """Return the answers from the files below ``task.results``. Raises PlaitError where a file cannot be read."""
    return tuple(_answer(query, task.results / query.name) for query in task.questions.queries)


def _answer(query: JoinQuery, folder: Path) -> Answer:
    import duckdb

    files = [str(path) for path in sorted(folder.rglob("*")) if _holds_rows(path)]
    if not files:
        return Answer(query=query.name, rows=0, checksum=Checksum())
    columns = {output.name: _read_as(output) for output in query.outputs}
    sums = ", ".join(aggregates(_integer(output) for output in query.outputs))
    try:
        found = duckdb.execute(
            f"SELECT {sums} FROM read_csv($files, header = false, auto_detect = false, delim = ',', quote = '\"', "
            "escape = '\"', columns = $columns)",
            {"files": files, "columns": columns},
        ).fetchone()
    except duckdb.Error as error:
        raise PlaitError(f"the results of query '{query.name}' cannot be read: {error}") from error
    total = Checksum.of_sums(found or ())
    return Answer(query=query.name, rows=total.rows, checksum=total)


def _holds_rows(path: Path) -> bool:
    """Tell whether a file holds results: not hidden, as files in the making are, nor below a hidden folder."""
    return path.is_file() and path.stat().st_size > 0 and not path.name.startswith((".", "_"))


def _read_as(output: OutputOf) -> str:
    return "BIGINT" if output.type in _NUMBERS else "VARCHAR" if output.type == "string" else output.type


def _integer(output: OutputOf) -> str:
    """Return a column as an integer: a time is one already."""
    from plait.bench.integers import duckdb_integers

    return output.name if output.type == "timestamp" else duckdb_integers((output,))[0]
