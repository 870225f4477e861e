"""Which names a pattern of Hadoop's matches."""

from __future__ import annotations

import pytest

from plait.runtime.admission.stream_files import glob_pattern, is_hidden


@pytest.mark.parametrize(
    ("glob", "matches", "others"),
    [
        ("*.csv", ["a.csv", ".csv"], ["a.csv.gz", "a/b.csv"]),
        ("part-?", ["part-1"], ["part-10", "part-"]),
        ("{00000,00001}.parquet", ["00000.parquet", "00001.parquet"], ["00002.parquet", "{00000,00001}.parquet"]),
        ("{a{1,2},b}", ["a1", "a2", "b"], ["a", "a,b"]),
        ("[ab]x", ["ax", "bx"], ["cx"]),
        ("[^ab]x", ["cx"], ["ax"]),
        (r"\*,x", ["*,x"], ["a,x"]),
        ("a.b", ["a.b"], ["axb"]),
    ],
)
def test_patterns_match_what_hadoop_says(glob: str, matches: list[str], others: list[str]) -> None:
    pattern = glob_pattern(glob)
    assert [name for name in matches + others if pattern.fullmatch(name)] == matches


def test_spark_passes_over_hidden_names_but_not_over_folders_of_partitions() -> None:
    names = [".a", "_a", "a._COPYING_", "_k=1", "a"]
    assert [is_hidden(name) for name in names] == [True, True, True, False, False]
