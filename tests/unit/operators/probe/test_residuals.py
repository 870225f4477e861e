"""Residual predicates, evaluated on Arrow columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from plait.errors import PredicateError
from plait.operators.probe.residuals import holds, pairs_that_hold
from plait.query.predicates import Residual

NAN, INF = float("nan"), float("inf")


def true_of(sql: str, *columns: pa.Array) -> list[bool]:
    return holds(Residual(operands=(), sql=sql, text=sql), columns, {}).tolist()


def test_null_is_not_true():
    assert true_of('"0" < "1"', pa.array([1, None, 3]), pa.array([2, 2, None])) == [True, False, False]


def test_nan_equals_itself_and_is_larger_than_infinity():
    values = pa.array([NAN, INF, 1.0])
    assert true_of('"0" > "1"', values, pa.array([INF, NAN, NAN])) == [True, False, False]
    assert true_of('"0" = "1"', values, pa.array([NAN, INF, 2.0])) == [True, True, False]


def test_instants_are_compared_whatever_zone_they_carry():
    ours = pa.array([0, 5], pa.timestamp("us", "Europe/Berlin"))
    theirs = pa.array([0, 4], pa.timestamp("us", "UTC"))
    assert true_of('"0" <= "1"', ours, theirs) == [True, False]


def test_text_is_compared_by_its_bytes():
    assert true_of('"0" < "1"', pa.array(["Z", "z", "é"]), pa.array(["a", "Z", "z"])) == [True, False, False]


def test_an_overflow_names_the_predicate_and_says_what_to_do():
    with pytest.raises(PredicateError, match=r'"0" \+ "1" > 3 cannot be computed .* try_divide, nullif or coalesce'):
        true_of('"0" + "1" > 3', pa.array([2**63 - 1]), pa.array([1]))


def called(function: object, *columns: pa.Array) -> list[bool]:
    return holds(
        Residual(operands=(), sql="similar", text="", is_function=True), columns, {"similar": function}
    ).tolist()  # type: ignore[dict-item]


def test_a_registered_predicate_gets_whole_columns():
    assert called(pc.equal, pa.array(["a", None]), pa.array(["a", "b"])) == [True, False]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda column: pa.array([1, 2]), "returned a int64 array of 2; expected a pyarrow boolean array of 2 rows"),
        (lambda column: pa.array([True]), "returned a bool array of 1; expected a pyarrow boolean array of 2 rows"),
        (lambda column: [True, False], "returned a list"),
        (lambda column: 1 / 0, "raised ZeroDivisionError: division by zero"),
    ],
)
def test_a_registered_predicate_that_misbehaves_is_named(function, message):
    with pytest.raises(PredicateError, match=message):
        called(function, pa.array([1, 2]))


def test_a_predicate_nobody_registered_says_how():
    with pytest.raises(PredicateError, match=r"call engine\.predicate\('near', function\)"):
        holds(Residual(operands=(), sql="near", text="", is_function=True), [pa.array([1])], {})


@pytest.mark.parametrize("capacity", [1, 2, 1000])
def test_blocks_are_joined_within_windows_on_the_chosen_rows_alone(capacity):
    random = np.random.default_rng(3)
    ours, theirs = random.integers(0, 9, 40), random.integers(0, 9, 60)
    low, high = random.integers(0, 5, 40), random.integers(3, 9, 40)
    chosen = np.sort(random.choice(1000, 60, replace=False)).astype(np.int32)
    tau = random.integers(0, 9, 60)
    found = [
        pair
        for probes, rows in pairs_that_hold(
            Residual(operands=(), sql='"1" % 4 < "0" % 3', text=""),
            {0: pa.array(ours)},
            {1: pa.array(theirs)},
            low=low,
            high=high,
            tau=tau,
            chosen=chosen,
            capacity=capacity,
        )
        for pair in zip(probes.tolist(), rows.tolist(), strict=True)
    ]
    assert sorted(found) == [
        (probe, int(chosen[row]))
        for probe in range(40)
        for row in range(60)
        if theirs[row] % 4 < ours[probe] % 3 and low[probe] <= tau[row] <= high[probe]
    ]
