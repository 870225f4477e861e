"""Which patterns are told to take for ever."""

from __future__ import annotations

import pytest

from plait.sql.lexis.regular_expressions import like_problem, pattern_problem


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "abc",
        "^[a-z]+@[a-z.]+$",
        r"\d{4}-\d{2}-\d{2}",
        "(ab)+",
        "(?:ab){2,5}c*",
        "a|b|c",
        "[(a+)+]",
        r"\(a+\)\+",
        "(?i)warn.*disk",
        "(?<year>[0-9]{4})",
        "[]a]+",
        "a{2,}b",
        "x??y*?z*+",
    ],
)
def test_plain_patterns_are_let_pass(pattern: str) -> None:
    assert pattern_problem(pattern) is None


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+",
        "(a*)*b",
        "((a+))+",
        "(?:a+){10}",
        "(a+){2,}",
        "(a|a)*",
        "(a?){30}",
        "(x(y+)z)*",
        "(?<n>a+)+",
        r"([a-z]\d*)+",
        "([]a]*)+",
    ],
)
def test_what_is_repeated_in_a_repetition_explodes(pattern: str) -> None:
    assert pattern_problem(pattern) == "a part that is repeated has a repetition or a choice in it"


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("a*a*a*a*b", "more than 3 repetitions"),
        ("a?" * 7, "more than 6 choices"),
        ("(a|b)" * 7, "more than 6 choices"),
        (r"(a)\1", "refers back"),
        (r"(?<n>a)\k<n>", "refers back"),
        ("(?=a)", "looks ahead"),
        ("(?<!a)b", "looks ahead or behind"),
        ("(?x)(a+) +", "sets flags"),
        (r"(\Q)\E+)+", "quotes"),
        ("a" * 501, "longer than 500"),
    ],
)
def test_other_ways_to_take_long_are_named(pattern: str, why: str) -> None:
    assert why in (pattern_problem(pattern) or "")


def test_a_pattern_of_like_has_few_stretches_of_any_length() -> None:
    assert like_problem("%a%b%") is None
    assert like_problem("%a%b%c%d%") == "it has more than 4 %"
