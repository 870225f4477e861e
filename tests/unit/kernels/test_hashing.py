from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.kernels.hashing import combine, partition_of, xxhash64
from tests.unit.kernels import reference

INT64 = st.integers(-(2**63), 2**63 - 1)

# From Spark 4.2: a, b, xxhash64(a), xxhash64(a, b), xxhash64(b, a), pmod(xxhash64(a), 7)
SPARK = (
    (0, 6278314744523580143, -5252525462095825812, 2056625809967480011, 1645615216274742189, 4),
    (1, 5090537039564311515, -7001672635703045582, -7684320206584894393, 2422027153725631407, 5),
    (-1, -4629161420259339404, 3858142552250413010, 83403583617104422, -27369027015493761, 3),
    (2, -8266848354430668203, -3341702809300393011, -6091456670559087277, 6165198684967098408, 2),
    (42, -6329975792576927173, -6876166290308861218, 6777892702372674919, 47967224930344617, 6),
    (9223372036854775807, -2364995089329352458, -3246596055638297850, 8854899134151146242, 5365568609536437971, 2),
    (-9223372036854775808, 6796619034484074658, -8619748838626508300, 4288182753611900650, -213705588021611930, 3),
    (1000000000, -2199628200636619352, -2686906837814245204, 6318651019782771727, 8151982615411590715, 3),
    (-1000000000000, -7342276384364697240, -8245780799238183817, 1914336888147233934, -5448771855430728214, 0),
    (1700000000000000, -4624032049778536635, 6483947384059677160, 3328352478894868397, 4079287222049216422, 6),
    (-4511243184718316475, 4264586827708199833, -5473425104959555874, -1670403662268978796, -8602024564147228893, 3),
    (2804489806378827305, -2039521562892790459, -4531387250315747537, 8560827044511343971, 6368656639159124795, 5),
)
A, B, HASH_A, HASH_AB, HASH_BA, PARTITION = (np.array(column) for column in zip(*SPARK, strict=True))


def test_hashes_equal_sparks() -> None:
    assert xxhash64(A).tolist() == HASH_A.tolist()


def test_composite_keys_equal_sparks_and_depend_on_the_order_of_columns() -> None:
    assert combine((A, B)).tolist() == HASH_AB.tolist()
    assert combine((B, A)).tolist() == HASH_BA.tolist()


def test_partitions_equal_sparks() -> None:
    found = partition_of(A, 7)
    assert found.tolist() == PARTITION.tolist()
    assert found.dtype == np.int32


@settings(deadline=None)
@given(st.lists(INT64, max_size=20), st.integers(1, 1000))
def test_hashes_and_partitions_equal_the_specification(values: list[int], parallelism: int) -> None:
    keys = np.array(values, np.int64)
    hashes = [reference.xxhash64(value) for value in values]
    assert xxhash64(keys).tolist() == hashes
    assert partition_of(keys, parallelism).tolist() == [hashed % parallelism for hashed in hashes]


@settings(deadline=None)
@given(st.lists(st.tuples(INT64, INT64, INT64), max_size=20))
def test_three_columns_chain_their_hashes(rows: list[tuple[int, int, int]]) -> None:
    columns = np.array(rows, np.int64).reshape(-1, 3).T
    expected = [reference.xxhash64(c, reference.xxhash64(b, reference.xxhash64(a) % 2**64) % 2**64) for a, b, c in rows]
    assert combine(list(columns)).tolist() == expected


def test_a_single_column_is_its_own_key() -> None:
    assert combine([A]) is A


def test_no_columns_are_no_key() -> None:
    with pytest.raises(ValueError, match="at least one column"):
        combine([])


def test_no_partitions_are_refused() -> None:
    with pytest.raises(ValueError, match="parallelism is 0"):
        partition_of(A, 0)


def test_hashing_leaves_its_input_alone() -> None:
    before = A.copy()
    combine((A, B))
    assert A.tolist() == before.tolist()
    assert A.flags.writeable
