"""Options that a program sets, written as a script would write them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from plait.errors import OptionError
from plait.runtime.engine_options import written


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("auto", "auto"),
        (3, "3"),
        (0.5, "0.5"),
        (True, "true"),
        (None, "None"),
        (np.int64(3), "3"),
        (np.float64(0.5), "0.5"),
        (np.bool_(False), "false"),
        (np.str_("auto"), "auto"),
        (Decimal("3"), "3"),
    ],
)
def test_values_are_written_as_a_script_would_write_them(value: Any, text: str) -> None:
    assert written("plait.gap", value) == ("plait.gap", text)


@pytest.mark.parametrize("value", [b"3", [3], (3,), {"a": 1}, object(), slice(3)])
@pytest.mark.parametrize("name", ["plait.gap", "spark.sql.shuffle.partitions"])
def test_a_value_that_no_script_could_write_is_refused(name: str, value: object) -> None:
    with pytest.raises(OptionError, match=rf"{name} is .*; expected a text, a number, True or False"):
        written(name, value)


def test_a_setting_of_spark_cannot_be_none() -> None:
    with pytest.raises(OptionError, match=r"spark\.x is None; expected a text"):
        written("spark.x", None)


@pytest.mark.parametrize("name", [None, 5, b"plait.gap", ["plait.gap"]])
def test_a_name_that_is_no_text_is_refused(name: object) -> None:
    with pytest.raises(OptionError, match=r"expected the name of an option, such as 'plait\.routing', found"):
        written(name, "auto")
