from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from plait.state.naming import bucket_path, encoded, index_path, stem

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


@given(TEXT)
def test_any_text_becomes_a_fit_file_name(text: str) -> None:
    name = encoded(text)
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-~")
    assert 0 < len(name) <= 100


@given(TEXT, TEXT)
def test_different_texts_have_different_names(left: str, right: str) -> None:
    assert (encoded(left) == encoded(right)) == (left == right)


def test_plain_text_stays_readable() -> None:
    assert encoded("orders_2-x") == "orders_2-x"
    assert encoded("Orders/é").startswith("orders-~")


def test_names_that_differ_in_case_alone_do_not_meet() -> None:
    assert encoded("Orders").lower() != encoded("orders")


@given(TEXT, st.integers(0, 99), TEXT, st.lists(TEXT, min_size=1, max_size=3))
def test_an_index_is_found_from_its_bucket_and_the_reverse(
    store: str, partition: int, name: str, keys: list[str]
) -> None:
    bucket = bucket_path(store, partition, name)
    index = index_path(bucket, tuple(keys))
    assert stem(index) == stem(bucket)
    assert index != bucket
    assert bucket.startswith("stores/")
    assert bucket.count("/") == 3
