"""What can be set about plans that follow the data."""

from __future__ import annotations

import pytest

from plait.errors import OptionError
from plait.runtime.engine_options import habits
from plait.sql.script.set_options import batches_of, checked_option


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("plait.adapt", "auto"),
        ("plait.adapt", "OFF"),
        ("plait.cycle", "10 seconds"),
        ("plait.cycle", "1 batch"),
        ("plait.cycle", "20 batches"),
        ("plait.history", "60"),
        ("plait.forecast", "trends"),
        ("plait.forecast", "last"),
    ],
)
def test_what_the_options_accept(name: str, value: str) -> None:
    assert checked_option(name, value) == (name, value.lower())


@pytest.mark.parametrize(
    ("name", "value", "expects"),
    [
        ("plait.adapt", "on", "expected auto or off"),
        ("plait.cycle", "0 seconds", "expected a duration such as '10 seconds', or '5 batches'"),
        ("plait.cycle", "0 batches", "or '5 batches'"),
        ("plait.cycle", "5", "or '5 batches'"),
        ("plait.history", "1", "expected a whole number of cycles from 2 to 1000"),
        ("plait.history", "1001", "from 2 to 1000"),
        ("plait.forecast", "holt", "expected trends or last"),
    ],
)
def test_what_the_options_refuse_and_what_they_expect_instead(name: str, value: str, expects: str) -> None:
    with pytest.raises(OptionError, match=expects):
        checked_option(name, value)


def test_options_become_habits() -> None:
    usual, other = habits({}), habits({"adapt": "off", "cycle": "2 minutes", "forecast": "last"})
    assert (usual.adapts, usual.cycle.seconds, usual.cycle.batches, usual.policy.outlook.trends) == (
        True,
        10.0,
        None,
        True,
    )
    assert (other.adapts, other.cycle.seconds, other.policy.outlook.trends) == (False, 120.0, False)
    assert habits({"cycle": "7 batches"}).cycle.batches == 7
    assert batches_of("seven batches") is None
