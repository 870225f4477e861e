"""Which stored tuples a shared member takes, and which of them each query takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from plait.operators.column_names import SELECTED
from plait.operators.probe.selections import answers, gather, selection_words, with_selections
from plait.plan.model import Member, Selection
from plait.query.model import SourceExpression
from plait.state.buckets import OpenBucket
from tests.unit.state.builders import A, written

ZERO, ONE, TWO = (Selection(conjuncts=(SourceExpression(sql=f"x{number}", columns=("x",)),)) for number in range(3))


def member(*alternatives: Selection) -> Member:
    return Member(store="s", ordinal=0, selection=Selection(any_of=alternatives), window_us=None)


def opened(directory: Path, told: tuple[Selection, ...], bits: list[int] | None) -> OpenBucket:
    rows = {"id": [1, 2, 3], A: [5, 6, 7], "#tau": [1, 2, 3], **({} if bits is None else {"#bits": bits})}
    storage, bucket = written(directory, rows)
    layout = replace(bucket.layout, columns=("id",), keys=(A,), selections=tuple(each.sql for each in told))
    return OpenBucket(storage, replace(bucket, layout=layout))


def test_a_shared_member_takes_what_any_of_its_queries_selects(tmp_path: Path) -> None:
    bucket = opened(tmp_path, (ZERO, ONE, TWO), [1, 2, 4])
    words, mask = selection_words(bucket, member(ZERO, TWO))
    assert words is not None
    assert ((words & mask) != 0).tolist() == [True, False, True]


def test_each_query_takes_its_own(tmp_path: Path) -> None:
    bucket = opened(tmp_path, (ZERO, ONE), [1, 2, 3])
    found = gather(bucket, np.array([2, 1], np.int32), ("id", ONE.column, ZERO.column))
    assert found.to_pydict() == {"id": [3, 2], ONE.column: [True, True], ZERO.column: [True, False]}
    whole = with_selections(bucket, ("id", ZERO.column))
    assert whole.column(ZERO.column).to_pylist() == [True, False, True]


def test_a_bucket_that_tells_of_one_query_serves_it_and_no_other(tmp_path: Path) -> None:
    bucket = opened(tmp_path, (ZERO,), None)
    shared = member(ZERO, ONE)
    assert answers(bucket.bucket, shared, ("id", SELECTED + "x1", "#tau"))
    assert selection_words(bucket, shared) == (None, 0)
    found = gather(bucket, np.array([0], np.int32), (ZERO.column, ONE.column))
    assert found.to_pydict() == {ZERO.column: [True], ONE.column: [False]}


def test_a_bucket_that_tells_of_none_of_them_or_lacks_a_column_does_not_answer(tmp_path: Path) -> None:
    bucket = opened(tmp_path, (TWO,), None)
    assert not answers(bucket.bucket, member(ZERO, ONE), ("id",))
    assert not answers(bucket.bucket, member(TWO, ONE), ("other",))


def test_selections_in_several_words_are_put_together(tmp_path: Path) -> None:
    many = tuple(Selection(conjuncts=(SourceExpression(sql=f"y{number:03d}", columns=("x",)),)) for number in range(70))
    rows = {"id": [1, 2, 3], A: [5, 6, 7], "#tau": [1, 2, 3], "#bits": [1, 0, 0], "#bits1": [0, 1, 2]}
    storage, bucket = written(tmp_path, rows)
    layout = replace(bucket.layout, columns=("id",), keys=(A,), selections=tuple(each.sql for each in many))
    words, mask = selection_words(OpenBucket(storage, replace(bucket, layout=layout)), member(many[0], many[63]))
    assert words is not None
    assert ((words & mask) != 0).tolist() == [True, True, False]
