"""What is made of a sound plan is looked at where it is another: whatever is broken there is found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.errors import InvalidPlanError
from plait.plan.validate import validate_change
from tests.unit.plan.test_validate import BROKEN, QUERIES, SOUND, Break

NAMES = frozenset(query.name for query in QUERIES)
IDLE_INDEXES = 7
"""An index that nobody probes any more is let go with the query; that none is left, `test_replan.py` finds out."""


@pytest.mark.parametrize(("number", "break_it"), BROKEN, ids=[f"{n}-{i}" for i, (n, _) in enumerate(BROKEN)])
def test_what_a_change_breaks_is_refused_by_the_invariant_it_breaks(number: int, break_it: Break) -> None:
    broken = break_it(SOUND)
    if number == IDLE_INDEXES:
        pytest.skip("not looked at")
    # Stores and trees as new objects: none of them is taken for the one that was sound.
    anew = replace(
        broken, stores=tuple(replace(each) for each in broken.stores), trees=tuple(map(replace, broken.trees))
    )
    with pytest.raises(InvalidPlanError) as caught:
        validate_change(SOUND, anew, QUERIES, NAMES)
    assert caught.value.invariant == number


def test_a_sound_plan_is_a_sound_change_of_itself() -> None:
    validate_change(SOUND, SOUND, QUERIES, frozenset())
    validate_change(SOUND, replace(SOUND, trees=tuple(map(replace, SOUND.trees))), QUERIES, NAMES)


def test_stores_out_of_order_are_found_though_each_is_the_very_same() -> None:
    with pytest.raises(InvalidPlanError, match="invariant 1"):
        validate_change(SOUND, replace(SOUND, stores=SOUND.stores[::-1]), QUERIES, frozenset())


def test_a_query_that_is_gone_and_ends_somewhere_is_found() -> None:
    left = tuple(query for query in QUERIES if query.name != "q")
    names = tuple(name for name in SOUND.queries if name != "q")
    with pytest.raises(InvalidPlanError, match="invariant 12"):
        validate_change(SOUND, replace(SOUND, queries=names), left, frozenset())
