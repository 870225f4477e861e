"""What is remembered of queries is forgotten once as many are gone as are left."""

from __future__ import annotations

from plait.optimizer.examples import example_query
from plait.plan.relations import keys_of
from plait.query.remembering import FEWEST_GONE, Gone, forget, remembered


@remembered(2)
def doubled(number: int) -> int:
    asked.append(number)
    return 2 * number


asked: list[int] = []


def test_an_answer_is_given_again_until_it_is_forgotten() -> None:
    asked.clear()
    forget()
    assert [doubled(each) for each in (1, 1, 2, 1)] == [2, 2, 4, 2]
    assert asked == [1, 2]
    forget()
    assert (doubled(1), asked) == (2, [1, 2, 1])


def test_it_is_forgotten_when_more_queries_are_gone_than_left_and_not_before() -> None:
    for left in (0, FEWEST_GONE, 200):
        gone, most = Gone(), max(FEWEST_GONE, left)
        for _ in range(2):
            doubled(7)
            asked.clear()
            for _ in range(most):
                gone.note(1, left)
            doubled(7)
            assert asked == []
            gone.note(1, left)
            doubled(7)
            assert asked == [7]


def test_keys_of_queries_are_among_it() -> None:
    query = example_query("q", "r.a = s.a")
    known = keys_of(query, "r")
    assert keys_of(query, "r") is known
    forget()
    assert keys_of(query, "r") == known
    assert keys_of(query, "r") is not known
