"""Of hundreds of selections an index says for each row what DuckDB says of each by itself."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from plait.kernels.bands import ordered_int64
from plait.operators.column_names import SELECTIONS_PER_WORD, word_names
from plait.operators.ingest.indexed import indexed_words
from plait.operators.ingest.indexing import selection_index
from plait.plan.model import Selection
from plait.query.model import SourceExpression
from plait.sql.lexis.tokens import tokens_of
from tests.oracle.duckdb_oracle import load
from tests.oracle.translate import connection, to_duckdb
from tests.property.drawn_selections import COLUMNS, drawn_rows, drawn_selection

TYPES = {column.name: column.type for column in COLUMNS}


def selection(*conjuncts: str) -> Selection:
    return Selection(
        conjuncts=tuple(
            SourceExpression(
                sql=sql, columns=tuple(dict.fromkeys(t.value for t in tokens_of(sql) if t.kind == "quoted"))
            )
            for sql in conjuncts
        )
    )


def holding(selections: list[Selection], rows: pa.Table) -> dict[int, list[bool]]:
    """Return for each selection that an index decides, by place, for which rows it holds."""
    index = selection_index(selections, TYPES)
    words = len(word_names(max(len(selections), 2)))
    columns = {name: rows[name].combine_chunks() for name in rows.column_names}
    bits = indexed_words(index, columns, rows.num_rows, words)
    found = {}
    for place in index.places:
        word, bit = divmod(place, SELECTIONS_PER_WORD)
        found[place] = ((bits[:, word] >> np.int64(bit)) & 1).astype(bool).tolist()
    decided = {divmod(place, SELECTIONS_PER_WORD) for place in index.places}
    for word in range(words):
        mask = sum(1 << bit for of, bit in decided if of == word)
        assert not (bits[:, word] & ~np.int64(mask)).any(), "bits of selections that it does not decide"
    return found


def expected(selections: list[Selection], rows: pa.Table) -> list[list[bool]]:
    load(connection(), {"many": rows})
    asked = ", ".join(f"({to_duckdb(each.sql)}) IS TRUE" for each in selections)
    return [column.to_pylist() for column in connection().sql(f"SELECT {asked} FROM many").to_arrow_table().columns]


@pytest.mark.parametrize("seed", range(8))
def test_hundreds_of_selections_hold_where_duckdb_says_so(seed: int) -> None:
    rng = random.Random(seed)
    rows = drawn_rows(rng, 200)
    selections = [selection(*drawn_selection(rng)) for _ in range(200)]
    found, wanted = holding(selections, rows), expected(selections, rows)
    assert len(found) > 100
    for place, holds in found.items():
        assert holds == wanted[place], selections[place].sql
    assert {True, False} <= {each for holds in found.values() for each in holds}


def test_a_slice_of_rows_has_the_bits_of_its_own_rows() -> None:
    rng = random.Random(99)
    rows = drawn_rows(rng, 90)
    selections = [selection(*drawn_selection(rng)) for _ in range(70)]
    whole, part = holding(selections, rows), holding(selections, rows.slice(31, 17))
    assert part == {place: holds[31:48] for place, holds in whole.items()}


@pytest.mark.parametrize("count", [1, 62, 63, 64, 65, 126, 127, 130])
def test_each_selection_has_a_bit_of_its_own_at_the_ends_of_words_too(count: int) -> None:
    rows = pa.table({"c_l": pa.array([*range(count), None])})
    found = holding([selection(f"`c_l` = {place}") for place in range(count)], rows)
    assert found == {place: [row == place for row in range(count)] + [False] for place in range(count)}


def test_what_lies_at_a_bound_is_told_from_what_lies_beside_it() -> None:
    rows = pa.table({"c_l": pa.array([-(2**63), 4, 5, 6, 2**63 - 1, None])})
    tests = ["`c_l` < 5", "`c_l` <= 5", "`c_l` > 5", "`c_l` >= 5", "`c_l` <> 5", "NOT (`c_l` < 5)", "`c_l` <=> NULL"]
    assert list(holding([selection(sql) for sql in tests], rows).values()) == [
        [True, True, False, False, False, False],
        [True, True, True, False, False, False],
        [False, False, False, True, True, False],
        [False, False, True, True, True, False],
        [True, True, False, True, True, False],
        [False, False, True, True, True, False],
        [False, False, False, False, False, True],
    ]


def test_selections_over_several_columns_must_hold_in_all_of_them_and_none_asks_nothing() -> None:
    rows = pa.table({"c_l": pa.array([1, 1, 2, None]), "c_s": pa.array(["a", "b", "a", "a"])})
    found = holding([selection("`c_l` = 1", "`c_s` < 'b'"), selection(), selection("`c_s` = 'a'")], rows)
    assert found == {0: [True, False, False, False], 1: [True] * 4, 2: [True, False, True, True]}


def test_conditions_that_connect_columns_are_not_in_the_index() -> None:
    asked = [selection("`c_l` = 1 OR `c_s` = 'a'"), selection("`c_l` = 1"), selection("`c_l` = 1", "`c_s` LIKE 'a%'")]
    assert selection_index([*asked, None], TYPES).places == (1,)


def test_constants_that_spark_cannot_compute_are_left_to_it() -> None:
    asked = [selection(f"`c_i` = {constant}") for constant in ("-5", "(+(5))", "-(-2147483648)", "- (- 5)")]
    assert selection_index(asked, TYPES).places == (0, 1)


def test_all_rows_of_hundreds_of_ranges_are_counted_as_often_as_they_are_in_one() -> None:
    rows = pa.table({"c_l": pa.array(np.arange(500))})
    found = holding([selection(f"`c_l` BETWEEN {low} AND {low + 9}") for low in range(490)], rows)
    assert {sum(holds) for holds in found.values()} == {10}
    assert pc.sum(pa.array([sum(holds) for holds in found.values()])).as_py() == 4900


def test_equal_constants_of_two_types_of_columns_are_other_bounds() -> None:
    whole, fractional = selection("`c_l` <= 1"), selection("`c_d` <= 1.0D")
    types = {"c_l": "bigint", "c_d": "double"}
    found = {each.column: each for each in selection_index([whole, fractional], types).columns}
    assert found["c_l"].bounds == (1,)
    assert found["c_d"].bounds == tuple(ordered_int64(np.array([1.0])).tolist())
