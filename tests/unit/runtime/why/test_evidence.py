"""Which sources can be read once more for the sake of a row."""

from __future__ import annotations

from typing import cast

import pytest
from pyspark.sql import SparkSession

from plait.errors import OptionError
from plait.query.model import Stream
from plait.runtime.why.evidence import read_again

NO_SPARK = cast(SparkSession, None)


def test_who_asks_about_the_groups_of_a_query_is_sent_to_that_query() -> None:
    groups = Stream(name="per_minute", time="until", derived="identity")
    with pytest.raises(OptionError, match=r"'per_minute' is the groups of query .* instead: --query per_minute"):
        read_again(NO_SPARK, groups, "checkpoint")


def test_a_frame_of_the_program_cannot_be_read_once_more() -> None:
    with pytest.raises(OptionError, match=r"'orders' is a DataFrame of the program's; .* possible for files"):
        read_again(NO_SPARK, Stream(name="orders", time="at"), "checkpoint")
