"""Expressions are computed as they are written, so that they fail where Spark fails."""

from __future__ import annotations

import pyarrow as pa
import pytest

from plait.operators.evaluating import EvaluationError, evaluated

LARGEST = 2**63 - 1


@pytest.mark.parametrize(
    "expression", ['"0" + 1 > 0', '"0" + 1 = 5', '"0" * 2 > 0', '-2 - "0" < 3', 'NOT ("0" + 1 > 3)', '3 < "0" + 1']
)
def test_what_overflows_fails_although_it_is_only_compared(expression: str) -> None:
    with pytest.raises(EvaluationError, match="Overflow"):
        evaluated([expression], {0: pa.array([1, LARGEST])})
    assert len(evaluated([expression], {0: pa.array([1, 2])})[0]) == 2
