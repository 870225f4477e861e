from datetime import timedelta

import pytest

from plait.errors import OptionError
from plait.sql.lexis.durations import delay_us, idle_us, parse_duration_us, window_us

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30 seconds", 30 * SECOND),
        ("INTERVAL 30 SECONDS", 30 * SECOND),
        ("INTERVAL '1' MINUTE", 60 * SECOND),
        ("interval '90 seconds'", 90 * SECOND),
        ("1 hour 30 minutes", 5400 * SECOND),
        ("INTERVAL 1 HOUR 30 MINUTES", 5400 * SECOND),
        ("INTERVAL '1:30' HOUR TO MINUTE", 5400 * SECOND),
        ("INTERVAL '1 02:03:04.5' DAY TO SECOND", 93784 * SECOND + 500_000),
        ("INTERVAL '-1:30' HOUR TO MINUTE", -5400 * SECOND),
        ("2 weeks", 14 * 86400 * SECOND),
        ("1 day", 86400 * SECOND),
        ("1.5 seconds", 1_500_000),
        ("250 ms 3 us", 250_003),
        ("1 hour -10 minutes", 3000 * SECOND),
        ("0 seconds", 0),
        ("unbounded", None),
        (" UNBOUNDED ", None),
        (None, None),
        (timedelta(minutes=2), 120 * SECOND),
    ],
)
def test_durations_are_exact_microseconds(text: str | timedelta | None, expected: int | None) -> None:
    assert parse_duration_us(text) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1 month", "a month has no fixed length; use days"),
        ("INTERVAL 2 YEARS", "a year has no fixed length"),
        ("3 quarters", "a quarter has no fixed length"),
        ("5 parsecs", "'parsecs' is not a unit of time"),
        ("seconds", "not a duration"),
        ("30", "not a duration"),
        ("30s", "'s' is not a unit of time"),
        ("", "empty duration"),
        ("1:30", "not a duration"),
        ("1:30 DAY TO SECOND", "does not fit DAY TO SECOND"),
        ("0.0000001 seconds", "finer than a microsecond"),
        ("999999999999 weeks", "too long"),
    ],
)
def test_what_is_no_duration_is_refused_with_a_remedy(text: str, says: str) -> None:
    with pytest.raises(OptionError, match=says):
        parse_duration_us(text)


def test_a_window_is_longer_than_zero_or_unbounded() -> None:
    assert window_us("1 second") == SECOND
    assert window_us("unbounded") is None
    for text in ("0 seconds", "-1 second"):
        with pytest.raises(OptionError, match="longer than zero"):
            window_us(text)


def test_a_delay_may_be_zero_but_not_negative_or_unbounded() -> None:
    assert delay_us("0 seconds") == 0
    with pytest.raises(OptionError, match="negative"):
        delay_us("-1 second")
    with pytest.raises(OptionError, match="unbounded"):
        delay_us("unbounded")


def test_an_idle_time_is_bounded_and_longer_than_zero() -> None:
    assert idle_us("30 seconds") == 30 * SECOND
    for text in ("0 seconds", "unbounded"):
        with pytest.raises(OptionError, match="idle time"):
            idle_us(text)


@pytest.mark.parametrize("value", [30, 1.5, ["30 seconds"]])
def test_what_is_no_text_and_no_timedelta_is_no_duration(value: object) -> None:
    with pytest.raises(OptionError, match="is not a duration; write for example '30 seconds'"):
        window_us(value)  # type: ignore[arg-type]
