"""Evaluate residual predicates, what no key decides: in DuckDB, or by a function the user registered.

DuckDB was taken because its comparisons are Spark's: NaN equals itself and is larger than anything, text is compared by
its bytes, integers overflow with an error. What differs is translated or refused before a plan is made
(`plait.sql.predicates.evaluation`). It runs in the task's own thread, on Arrow data in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from plait.errors import PredicateError
from plait.operators.evaluating import EvaluationError, database, evaluated, naive
from plait.operators.probe.partials import NO_HIGH, NO_LOW, Int64s, Rows
from plait.query.predicates import Residual

Predicates: TypeAlias = Mapping[str, Callable[..., pa.Array]]
"""Registered predicates by name: functions of Arrow arrays of one length to a boolean array of that length."""

Mask: TypeAlias = npt.NDArray[np.bool_]

_PROBE_ROW, _STORED_ROW = "probe row", "stored row"


def holds(residual: Residual[Any], operands: Sequence[pa.Array], predicates: Predicates) -> Mask:
    """Return for each row whether the predicate is true of it; NULL is not (bool[n])."""
    truth = _called(residual, operands, predicates) if residual.is_function else _evaluated(residual, operands)
    return np.asarray(pc.fill_null(truth, False).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _called(residual: Residual[Any], operands: Sequence[pa.Array], predicates: Predicates) -> pa.Array:
    name, rows = residual.sql, len(operands[0])
    function = predicates.get(name)
    if function is None:
        raise PredicateError(
            f"predicate '{name}' is not registered; call engine.predicate('{name}', function) before the engine starts"
        )
    try:
        answer = function(*operands)
    except SystemExit as error:
        raise PredicateError(
            f"predicate '{name}' wanted to exit (status {error.code}); it must return truth values, or raise an error",
            predicate=residual,
        ) from error
    except Exception as error:
        reason = f"predicate '{name}' raised {type(error).__name__}: {error}"
        raise PredicateError(reason, predicate=residual) from error
    if isinstance(answer, pa.ChunkedArray):
        answer = answer.combine_chunks()
    if not isinstance(answer, pa.Array) or not pa.types.is_boolean(answer.type) or len(answer) != rows:
        shown = f"{answer.type} array of {len(answer)}" if isinstance(answer, pa.Array) else type(answer).__name__
        raise PredicateError(
            f"predicate '{name}' returned a {shown}; expected a pyarrow boolean array of {rows} rows",
            predicate=residual,
        )
    return answer


def _evaluated(residual: Residual[Any], operands: Sequence[pa.Array]) -> pa.Array:
    try:
        return evaluated((residual.sql,), dict(enumerate(operands)))[0]
    except EvaluationError as error:
        raise _failed(residual, str(error)) from error


def pairs_that_hold(
    residual: Residual[Any],
    ours: Mapping[int, pa.Array],
    theirs: Mapping[int, pa.Array],
    *,
    low: Int64s | None,
    high: Int64s | None,
    tau: Int64s | None,
    chosen: Rows,
    capacity: int,
) -> Iterator[tuple[Rows, Rows]]:
    """Yield the (probe position, stored row) pairs of which a predicate is true, in pieces of at most `capacity`.

    `ours` and `theirs`: the operands by number, one value a probe, one value a stored row of `chosen`. Bounds
    on `tau` as in `plait.kernels.matching`; `tau` of the chosen rows.
    """
    import duckdb

    probes = {str(number): naive(array) for number, array in ours.items()}
    stored = {str(number): naive(array) for number, array in theirs.items()}
    count = max((len(array) for array in ours.values()), default=0)
    probes[_PROBE_ROW] = pa.array(np.arange(count, dtype=np.int32))
    stored[_STORED_ROW] = pa.array(chosen)
    conditions = [f"({residual.sql})"]
    if tau is not None and len(tau):
        stored["tau"] = pa.array(tau)
        # A bound that every pair keeps would cost as much as the predicate.
        if low is not None and low.max(initial=NO_LOW) > tau.min():
            probes["low"] = pa.array(low)
            conditions.append("tau >= low")
        if high is not None and high.min(initial=NO_HIGH) < tau.max():
            probes["high"] = pa.array(high)
            conditions.append("tau <= high")
    cursor = database().cursor()
    cursor.register("probes", pa.table(probes))
    cursor.register("stored", pa.table(stored))
    query = f'SELECT "{_PROBE_ROW}", "{_STORED_ROW}" FROM probes JOIN stored ON {" AND ".join(conditions)}'
    try:
        for batch in pa.RecordBatchReader.from_stream(cursor.sql(query)):
            rows, stored_rows = batch.column(0).to_numpy(), batch.column(1).to_numpy()
            for start in range(0, len(rows), capacity):
                yield rows[start : start + capacity], stored_rows[start : start + capacity]
    except duckdb.Error as error:
        raise _failed(residual, str(error).splitlines()[0]) from error


def _failed(residual: Residual[Any], reason: str) -> PredicateError:
    return PredicateError(
        f"the join predicate {residual.sql} cannot be computed for some pair of rows ({reason}); "
        "guard the values it fails for, with a condition or with try_divide, nullif or coalesce",
        predicate=residual,
    )
