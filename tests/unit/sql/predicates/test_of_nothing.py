"""What expressions are where a relation has no row."""

from __future__ import annotations

import pytest

from plait.sql.predicates.of_nothing import of_nothing


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("`a`", "null"),
        ("`a`.`b`", "null"),
        ("`a` + 1 > 5", "null"),
        ("`a`['b'] = 1", "null"),
        ("coalesce(`a`, map('b', 1))['b'] = 1", "unknown"),
        ("`a` BETWEEN 1 AND `b`", "null"),
        ("5 BETWEEN 6 AND `a`", "unknown"),
        ("5 NOT BETWEEN 6 AND `a`", "unknown"),
        ("`a`.`b`.`c`.`d`.`e` + 1", "null"),
        ("coalesce(`a`, named_struct('f', 5)).f = 5", "unknown"),
        ("`a` IN (1, 2)", "null"),
        ("`a` NOT IN (1, 2)", "null"),
        ("lower(`a`) LIKE 'x%'", "null"),
        ("CAST(`a` AS BIGINT)", "null"),
        ("`ts` + INTERVAL 5 MINUTES", "null"),
        ("`a` IS NULL", "true"),
        ("`a` + `b` IS NOT NULL", "false"),
        ("NOT (`a` IS NULL)", "false"),
        ("`a` <=> NULL", "true"),
        ("`a` <=> 3", "false"),
        ("`a` = 1 OR `a` IS NULL", "true"),
        ("`a` = 1 AND `a` IS NULL", "null"),
        ("`a` = 1 AND `b` IS NOT NULL", "false"),
        ("coalesce(`a`, `b`)", "null"),
        ("coalesce(`a`, 3)", "value"),
        ("coalesce(`a`, 3) = 3", "unknown"),
        ("my_function(`a`)", "unknown"),
        ("my_function(`a`) OR `a` IS NULL", "true"),
        ("CASE WHEN `a` IS NULL THEN 1 END", "value"),
        ("CASE WHEN `ts` IS NOT NULL THEN coalesce(`a`, 0) END > 3", "null"),
        ("CASE WHEN `a` > 1 THEN 5 WHEN `b` IS NULL THEN `c` ELSE 1 END", "null"),
        ("CASE WHEN my_function(`a`) THEN 5 END", "unknown"),
        ("CASE `a` WHEN 1 THEN 5 END", "unknown"),
    ],
)
def test_only_what_follows_from_nulls_alone_is_claimed(sql: str, expected: str) -> None:
    assert of_nothing(sql) == expected
