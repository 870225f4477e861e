import pytest

from plait.plan.coverage import _can_be_reached

LINKS = [("a", "b"), ("b", "c"), ("c", "e")]


@pytest.mark.parametrize(
    ("wanted", "start", "is_reached"),
    [
        ("dcf", "d", True),  # d, f, c: while nothing is linked with the path, anything may come next
        ("dc", "d", True),
        ("dca", "d", False),  # with c there b or e come first
        ("ax", "a", False),
        ("abcex", "a", True),
        ("abex", "x", False),
    ],
)
def test_a_set_is_reached_if_in_some_order_every_cross_product_is_the_only_choice(
    wanted: str, start: str, is_reached: bool
) -> None:
    assert _can_be_reached(frozenset(wanted), start, LINKS) is is_reached
