"""What cannot be converted makes an event time NULL, wherever in the expression it stands."""

import pytest

from plait.sql.expressions.forgiving import forgiving


@pytest.mark.parametrize(
    ("sql", "tried"),
    [
        ("to_timestamp(`t`, 'yyyy')", "try_to_timestamp(`t`, 'yyyy')"),
        ("CAST(`t` AS TIMESTAMP)", "try_CAST(`t` AS TIMESTAMP)"),
        ("`t`::timestamp_ntz", "try_CAST(`t` AS timestamp_ntz)"),
        ("timestamp_millis(CAST(`ms` AS BIGINT))", "timestamp_millis(try_CAST(`ms` AS BIGINT))"),
        ("coalesce(TO_TIMESTAMP(`t`), `u`)", "coalesce(try_TO_TIMESTAMP(`t`), `u`)"),
        ("(to_date(`t`)) + INTERVAL 1 DAY", "(try_to_date(`t`) + INTERVAL 1 DAY)"),
        ("CASE WHEN `k` > 1 THEN `t`::date END", "(CASE WHEN (`k` > 1) THEN try_CAST(`t` AS date) END)"),
        ("try_cast(`t` AS TIMESTAMP)", "TRY_CAST(`t` AS TIMESTAMP)"),
        ("concat('to_date(x', `t`)", "concat('to_date(x', `t`)"),
        ("timestamp_micros((`ns` - `o`) DIV 1000)", "timestamp_micros(((`ns` - `o`) DIV 1000))"),
        ("`head`.`at`", "`head`.`at`"),
    ],
)
def test_every_conversion_is_tried_and_nothing_else_changes(sql: str, tried: str) -> None:
    assert forgiving(sql) == tried
