"""``partitionBy 'a, b'``: the columns whose values become directories."""

from __future__ import annotations

import re
from collections.abc import Sequence

from plait.sinks.storable import Atomic, SparkType
from plait.spelling import did_you_mean, folded

_NAME = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^`,]*?))\s*(?:,|$)")
_IMPOSSIBLE = re.compile(r"void|variant|binary|interval|geometry.*|geography.*|string collate .*")


def partition_columns(value: str) -> tuple[str, ...]:
    """Return the names in ``a, b``; odd ones stand in backquotes. Raises ValueError, saying why, if it is no list."""
    names: list[str] = []
    position = 0
    while position < len(value) or not names:
        found = _NAME.match(value, position)
        name = None if found is None else (found[1] or found[2] or "").replace("``", "`")
        if found is None or not name:
            raise ValueError(f"partitionBy is '{value}'; expected names of columns: 'a, b', odd ones in backquotes")
        if folded(name) in map(folded, names):
            raise ValueError(f"partitionBy names column '{name}' twice; keep one")
        names.append(name)
        position = found.end()
    if value.rstrip().endswith(","):
        raise ValueError(f"partitionBy is '{value}'; remove the superfluous comma")
    return tuple(names)


def partition_problem(value: str, columns: Sequence[tuple[str | None, SparkType | None]]) -> str | None:
    """Say why results with these columns cannot be partitioned so, or None. A name or type that is None is not known
    yet.
    """
    try:
        wanted = partition_columns(value)
    except ValueError as problem:
        return str(problem)
    known = {folded(name): type_ for name, type_ in columns if name is not None}
    is_complete = all(name is not None for name, _ in columns)
    for name in wanted:
        type_ = known.get(folded(name))
        if folded(name) not in known and is_complete:
            hint = did_you_mean(name, (found for found, _ in columns if found is not None))
            return f"partitionBy names '{name}', which is no column of the results{hint}"
        if type_ is not None and not (isinstance(type_, Atomic) and not _IMPOSSIBLE.fullmatch(type_.name)):
            return f"partitionBy names '{name}', which has type {type_}: no directory can be named after that; cast it"
    if is_complete and len(wanted) == len(columns):
        return "partitionBy names all columns of the results, so that none is left for the files; leave one out"
    return None
